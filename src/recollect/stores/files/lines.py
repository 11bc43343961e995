"""What stands in the files besides the memories themselves: changes, tombstones, vectors and undo, a line each."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from recollect.record import Lifetime, Record, Role, Tier

_canonical = msgspec.json.Encoder(order="sorted").encode
_encode = msgspec.json.Encoder().encode
_SEAL = b',"checksum":"sha256:'
_SEAL_SIZE = len(_SEAL) + 64 + len(b'"}')

CHANGEABLE = (
    "importance",
    "lifetime",
    "accessed_at",
    "access_count",
    "expires_at",
    "archived_at",
    "superseded_by",
    "tags",
    "references",
    "metadata",
)
"""The fields of a memory that may change after it was stored, besides its vector."""


class Changed(msgspec.Struct, omit_defaults=True):
    """New values of some fields. A field that is UNSET stays."""

    importance: float | msgspec.UnsetType = msgspec.UNSET
    lifetime: Lifetime | msgspec.UnsetType = msgspec.UNSET
    accessed_at: datetime | msgspec.UnsetType = msgspec.UNSET
    access_count: int | msgspec.UnsetType = msgspec.UNSET
    expires_at: datetime | msgspec.UnsetType | None = msgspec.UNSET
    archived_at: datetime | msgspec.UnsetType | None = msgspec.UNSET
    superseded_by: str | msgspec.UnsetType | None = msgspec.UNSET
    tags: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    references: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    # These never change. They stand here where a memory's own line has no room for them.
    tier: Tier | msgspec.UnsetType = msgspec.UNSET
    kind: str | msgspec.UnsetType = msgspec.UNSET
    role: Role | msgspec.UnsetType = msgspec.UNSET
    source: str | msgspec.UnsetType = msgspec.UNSET
    content: Any = msgspec.UNSET
    account: str | msgspec.UnsetType = msgspec.UNSET
    channel: str | msgspec.UnsetType = msgspec.UNSET
    conversation: str | msgspec.UnsetType = msgspec.UNSET
    agent: str | msgspec.UnsetType = msgspec.UNSET

    def onto(self, record: Record) -> Record:
        """The record with the new values."""
        given = {name: value for name in _FIELDS if (value := getattr(self, name)) is not msgspec.UNSET}
        parts = {name: given.pop(name) for name in _ADDRESS if name in given}
        if parts:
            given["address"] = replace(record.address, **parts)
        if given.get("tier") == "account":
            given["address"] = replace(given.get("address", record.address), workspace=None)
        return replace(record, **given)


_FIELDS = Changed.__struct_fields__
_ADDRESS = ("account", "channel", "conversation", "agent")


class Change(msgspec.Struct):
    id: str
    version: int
    timestamp: datetime
    """When the memory was created: another program may give an id to another memory."""
    set: Changed


class Tombstone(msgspec.Struct, omit_defaults=True):
    """A deletion of all that was written of a memory up to a version; without one, of all that ever was."""

    id: str
    timestamp: datetime
    reason: str = ""
    version: int | None = None


class Vector(msgspec.Struct):
    id: str
    version: int
    model: str | None
    vector: bytes | None
    """Little-endian float32, in base64. None takes an earlier one away."""


class Undo(msgspec.Struct):
    seq: int
    at: datetime
    before: list[Record]


class UndoHead(msgspec.Struct):
    seq: int
    at: datetime


class Named(msgspec.Struct):
    id: str


class UndoIds(msgspec.Struct):
    before: list[Named]


class Audited(msgspec.Struct):
    seq: int
    hash: str


def sealed(entry: msgspec.Struct, plain: bool) -> bytes:
    """A line with the SHA-256 of its canonical JSON (sorted keys, no spaces) at the end, where people look last.

    JSON content keeps the order of its keys; a `plain` entry has none.
    """
    canonical = _canonical(entry)
    body = canonical if plain else _encode(entry)
    return b"".join((body[:-1], _SEAL, hashlib.sha256(canonical).hexdigest().encode(), b'"}\n'))


def intact(line: bytes) -> bool:
    """Whether a line is what was written. One without a checksum cannot be told from one that is."""
    body, seal = line[:-_SEAL_SIZE], line[-_SEAL_SIZE:]
    if seal.startswith(_SEAL):
        digest = hashlib.sha256(body)
        digest.update(b"}")
        if digest.hexdigest().encode() == seal[len(_SEAL) : -2]:
            return True
    try:  # another program may write the keys in another order, or with spaces
        fields = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    given = fields.pop("checksum", None)
    return given is None or given == "sha256:" + hashlib.sha256(_canonical(fields)).hexdigest()
