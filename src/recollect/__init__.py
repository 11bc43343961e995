"""recollect: memory for AI agents that remembers, recalls, explains and forgets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.adapters.clients.wrapping import wrap, wrapping
    from recollect.aio import AsyncMemory
    from recollect.memory import Memory
    from recollect.recall.hits import Hit, Hits
    from recollect.recall.query import Query
    from recollect.values.errors import (
        AccessError,
        ConcurrencyError,
        ConflictError,
        ConversationTransitionError,
        CorruptionError,
        DamageWarning,
        DiskFullError,
        InputError,
        LimitError,
        ModelError,
        MovedError,
        NotFoundError,
        PresetError,
        ReadOnlyError,
        RecollectError,
        SchemaError,
        SecretError,
        SizeLimitError,
        StoreError,
        UnavailableError,
        UnreadableError,
        UnsavedWarning,
    )
    from recollect.values.record import Address, Record

__all__ = [
    "AccessError",
    "Address",
    "AsyncMemory",
    "ConcurrencyError",
    "ConflictError",
    "ConversationTransitionError",
    "CorruptionError",
    "DamageWarning",
    "DiskFullError",
    "Hit",
    "Hits",
    "InputError",
    "LimitError",
    "Memory",
    "ModelError",
    "MovedError",
    "NotFoundError",
    "PresetError",
    "Query",
    "ReadOnlyError",
    "RecollectError",
    "Record",
    "SchemaError",
    "SecretError",
    "SizeLimitError",
    "StoreError",
    "UnavailableError",
    "UnreadableError",
    "UnsavedWarning",
    "wrap",
    "wrapping",
]

__version__ = "0.1.0"


_MODULES = {
    "Address": "recollect.values.record",
    "AsyncMemory": "recollect.aio",
    "Hit": "recollect.recall.hits",
    "Hits": "recollect.recall.hits",
    "Memory": "recollect.memory",
    "Query": "recollect.recall.query",
    "Record": "recollect.values.record",
    "wrap": "recollect.adapters.clients.wrapping",
    "wrapping": "recollect.adapters.clients.wrapping",
}
"""The modules of these names; all others are errors."""


def __getattr__(name: str) -> Any:
    """Imports the module of a name when it is first used.

    `python -m recollect` imports this file before anything of ours can handle Ctrl-C, so it must load nothing slow.
    asyncio alone costs more than all of recollect, and most programs never await.
    """
    if name not in __all__:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES.get(name, "recollect.values.errors")), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
