"""recollect: memory for AI agents that remembers, recalls, explains and forgets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from recollect.adapters.clients.wrapping import wrap, wrapping
    from recollect.aio import AsyncMemory

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


def __getattr__(name: str) -> Any:
    # asyncio costs more to import than all of recollect, and most programs never await.
    if name == "AsyncMemory":
        return import_module("recollect.aio").AsyncMemory
    if name in ("wrap", "wrapping"):
        return getattr(import_module("recollect.adapters.clients.wrapping"), name)
    raise AttributeError(f"module 'recollect' has no attribute {name!r}")
