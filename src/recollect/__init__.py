"""recollect: memory for AI agents that remembers, recalls, explains and forgets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recollect.engine import Memory
from recollect.errors import (
    AccessDenied,
    Conflict,
    InvalidInput,
    InvalidPreset,
    NotFound,
    RecollectError,
    SchemaTooNew,
    SecretRefused,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
)
from recollect.record import Address, Record
from recollect.retrieval.hits import Hit, Hits

if TYPE_CHECKING:
    from recollect.aio import AsyncMemory

__all__ = [
    "AccessDenied",
    "Address",
    "AsyncMemory",
    "Conflict",
    "Hit",
    "Hits",
    "InvalidInput",
    "InvalidPreset",
    "Memory",
    "NotFound",
    "RecollectError",
    "Record",
    "SchemaTooNew",
    "SecretRefused",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # asyncio costs more to import than all of recollect, and most programs never await.
    if name == "AsyncMemory":
        return import_module("recollect.aio").AsyncMemory
    raise AttributeError(f"module 'recollect' has no attribute {name!r}")
