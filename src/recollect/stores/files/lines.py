"""What stands in the files besides the memories: changes, tombstones, vectors, things and undo, a line each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Set
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from recollect.stores.shelves import ShelfItem
from recollect.stores.undo import FieldValues, OldValues, Undo, document_name
from recollect.values.record import EPOCH, Record

_canonical = msgspec.json.Encoder(order="sorted").encode
_encode = msgspec.json.Encoder().encode
_SEAL = b',"checksum":"sha256:'
_SEAL_SIZE = len(_SEAL) + 64 + len(b'"}')


class Change(msgspec.Struct):
    id: str
    version: int
    timestamp: datetime
    """When the memory was created: another program may give an id to another memory."""
    set: FieldValues


class Tombstone(msgspec.Struct):
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


class Shelved(msgspec.Struct, omit_defaults=True):
    """A version of a thing on a shelf, or its removal."""

    shelf: str
    key: str
    version: int = 0
    body: dict[str, Any] = {}
    parent: str | None = None
    account: str | None = None
    agent: str | None = None
    created_at: datetime = EPOCH
    changed_at: datetime = EPOCH
    removed: bool = False

    def thing(self) -> ShelfItem:
        return ShelfItem(*(getattr(self, name) for name in ShelfItem.__struct_fields__))

    @classmethod
    def of(cls, item: ShelfItem) -> Shelved:
        return cls(**{name: getattr(item, name) for name in ShelfItem.__struct_fields__})


class Buried(NamedTuple):
    """A memory that was deleted, and whose lines are still in the log: the version of its tombstone tells which."""

    id: str
    version: int
    size: int
    """Bytes that it takes in undo data, where it is moved when the log is written anew."""


class UndoLine(msgspec.Struct, omit_defaults=True):
    """What it takes to undo an entry of the audit log."""

    seq: int
    at: datetime
    deleted: list[Record] = []
    """Memories whose lines are gone from the log."""
    buried: list[Buried] = []
    changed: list[OldValues] = []
    things: list[ShelfItem] = []
    before: list[Record] = []
    """In lines of earlier versions: memories that the entry changed or deleted. Those that are stored it changed."""

    @classmethod
    def of(cls, seq: int, at: datetime, undo: Undo, tombs: Mapping[str, int]) -> UndoLine:
        """`tombs` are the versions of the tombstones of memories whose lines stay in the log."""
        gone = [record for record in undo.deleted if record.id not in tombs]
        buried = [
            Buried(record.id, tombs[record.id], len(_encode(record))) for record in undo.deleted if record.id in tombs
        ]
        return cls(seq, at, gone, buried, list(undo.changed), list(undo.things))

    @property
    def ids(self) -> set[str]:
        """Of the memories that it tells of."""
        return Undo([*self.before, *self.deleted], self.changed).ids | {buried.id for buried in self.buried}

    def with_records(self, records: Mapping[Buried, Record]) -> UndoLine | None:
        """The line with these memories whole; None if one of its own is not among them."""
        if not all(buried in records for buried in self.buried):
            return None
        return replace(self, deleted=[*self.deleted, *(records[buried] for buried in self.buried)], buried=[])

    def without(self, names: Set[str]) -> UndoLine | None:
        """The line without these memories and documents; None if nothing is left of it."""
        left = replace(
            self,
            deleted=[record for record in self.deleted if record.id not in names],
            buried=[buried for buried in self.buried if buried.id not in names],
            changed=[values for values in self.changed if values.id not in names],
            things=[item for item in self.things if document_name(item.shelf, item.key) not in names],
            before=[record for record in self.before if record.id not in names],
        )
        return left if left.deleted or left.buried or left.changed or left.things or left.before else None

    def undo(self) -> Undo:
        return Undo([*self.before, *self.deleted], self.changed, self.things)


class Purged(NamedTuple):
    """Undo data that was purged, and may be in the file still."""

    seqs: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()
    """Of memories and documents."""

    def __or__(self, other: tuple[Any, ...]) -> Purged:  # pyright: ignore[reportIncompatibleMethodOverride]
        seqs, names = other
        return Purged(self.seqs | seqs, self.names | names)

    def left_of(self, seq: int, data: bytes) -> bytes | None:
        """What is left of a line with undo data; None for nothing."""
        if seq in self.seqs:
            return None
        if not self.names or ((undo := undo_line(data)).ids.isdisjoint(self.names) and not undo.things):
            return data
        left = undo.without(self.names)
        return None if left is None else data if left == undo else line(left)[:-1]


class UndoHead(msgspec.Struct):
    seq: int
    at: datetime
    buried: list[Buried] = []

    @property
    def more_bytes(self) -> int:
        """What it takes to undo the entry, besides its line."""
        return sum(buried.size for buried in self.buried)


class Named(msgspec.Struct):
    id: str


class Audited(msgspec.Struct):
    seq: int
    hash: str


tombstone = msgspec.json.Decoder(Tombstone).decode
undo_line = msgspec.json.Decoder(UndoLine).decode
_named = msgspec.json.Decoder(Named).decode


def named(data: bytes) -> str:
    """The id on a line."""
    return _named(data).id


def line(entry: msgspec.Struct) -> bytes:
    return _encode(entry) + b"\n"


def without_reason(stone: bytes) -> bytes:
    """The line of a tombstone without the words of a person."""
    return line(replace(tombstone(stone), reason=""))


def sealed(entry: msgspec.Struct | dict[str, Any], plain: bool) -> bytes:
    """A line with the SHA-256 of its canonical JSON (sorted keys, no spaces) at the end, where people look last.

    JSON content keeps the order of its keys; a `plain` entry has none.
    """
    canonical = _canonical(entry)
    body = canonical if plain else _encode(entry)
    return b"".join((body[:-1], _SEAL, hashlib.sha256(canonical).hexdigest().encode(), b'"}\n'))


def intact(line: bytes) -> bool:
    """Whether a line is what was written. One without a checksum cannot be told from one that is. MsgspecError."""
    body, seal = line[:-_SEAL_SIZE], line[-_SEAL_SIZE:]
    if seal.startswith(_SEAL):
        digest = hashlib.sha256(body)
        digest.update(b"}")
        if digest.hexdigest().encode() == seal[len(_SEAL) : -2]:
            return True
    # another program may write the keys in another order, or with spaces
    fields = msgspec.json.decode(line, type=dict[str, Any])
    checksum = fields.pop("checksum", None)
    return checksum is None or checksum == "sha256:" + hashlib.sha256(_canonical(fields)).hexdigest()
