"""What the lines of a place's files say, applied in any order to what is known already.

The order of lines in different files does not matter, nor does reading a line twice. Each line of a memory has a
version; a line counts if its version is higher than what is known, and a tombstone ends all versions up to its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from recollect.stores.files.files import Line
from recollect.stores.files.fileset import CHANGES, SHELVES, TOMBSTONES, VECTORS
from recollect.stores.files.formats import Format
from recollect.stores.files.lines import Change, Shelved, Tombstone, Vector
from recollect.stores.port import Damage, Place
from recollect.stores.shelves import ShelfItem
from recollect.values import validation
from recollect.values.errors import SchemaError
from recollect.values.record import SCHEMA_VERSION, Record

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, ValueError, OverflowError, RecursionError)
FOREVER = 1 << 62
PENDING = -1
"""The position of a line that is in no file yet."""


class Row(msgspec.Struct):
    """A memory, and what is known of its lines."""

    record: Record
    version: int
    vector_version: int = 0
    number: int = 0
    """Of its own line."""
    size: int = 0
    """Of its own line in bytes; 0 while it is in no file."""
    foreign: dict[str, Any] | None = None
    """Fields that other programs have given it."""
    seq: int = 0
    """Its number in the index; 0 if it is not there."""

    @property
    def last_version(self) -> int:
        return max(self.version, self.vector_version)


class KnownRows(Protocol):
    """What was known before."""

    def last_id(self) -> str:
        """No memory or tombstone has a greater id than this."""
        ...

    def known_row(self, ident: str) -> Row | None: ...

    def tomb(self, ident: str) -> int:
        """The version up to which a memory was deleted; 0 for none."""
        ...


class _Head(msgspec.Struct):
    """What every line of a memory has."""

    id: str
    version: int = 1


head = msgspec.json.Decoder(_Head).decode
_change = msgspec.json.Decoder(Change).decode
_tombstone = msgspec.json.Decoder(Tombstone).decode
_shelved = msgspec.json.Decoder(Shelved).decode
_vector = msgspec.json.Decoder(Vector).decode


class Replay:
    """Rows, tombstones and documents that the lines have changed. What they name is looked up in the source."""

    def __init__(self, place: Place, format: Format, source: KnownRows | None = None) -> None:
        self.place = place
        self.format = format
        self._source = source
        self._last_id = source.last_id() if source else ""
        """Ids begin with the time, so that of most lines the source need not be asked."""
        self.rows: dict[str, Row | None] = {}
        """By id; None for one that is not there, or not any more."""
        self.loaded: dict[str, Row] = {}
        """What the source knew of them."""
        self.stored: dict[str, None] = {}
        """Memories that are new, in the order of storing."""
        self.tombs: dict[str, int] = {}
        self.things: dict[tuple[str, str], ShelfItem | None] = {}
        """By shelf and key; None for one that was removed."""
        self.lines = 0
        """Of the file of memories, counted from its beginning."""
        self.highest = 0
        """The highest number that an id was given."""
        self.oldest_schema = SCHEMA_VERSION
        self.damage: dict[tuple[str, int], Damage] = {}
        """By file and byte."""
        self._readers: dict[str, Callable[[Line], object]] = {
            format.file: self._read_memory,
            CHANGES: self._read_change,
            VECTORS: self._read_vector,
            TOMBSTONES: self._read_tombstone,
            SHELVES: self._read_thing,
        }

    def row(self, ident: str) -> Row | None:
        if ident not in self.rows:
            row = self._source.known_row(ident) if self._source and ident <= self._last_id else None
            self.rows[ident] = row
            if row is not None:
                self.loaded[ident] = row
        return self.rows[ident]

    def tomb(self, ident: str) -> int:
        version = self.tombs.get(ident)
        if version is None:
            version = self._source.tomb(ident) if self._source and ident <= self._last_id else 0
        return version

    def read(self, name: str, line: Line) -> None:
        """Take in one line of a file. A line that cannot be read is noted and skipped."""
        counts = name == self.format.file
        if counts and line.whole:
            self.lines += 1
        if not line.data.strip():
            return
        try:
            self._readers[name](line)
        except UNREADABLE as error:
            if line.whole:
                where = f"{name}, line {self.lines}" if counts else f"{name}, byte {line.start:,}"
                self.damage[name, line.start] = Damage(where, _problem(error))

    def _read_memory(self, line: Line) -> None:
        record, version, schema, foreign = self.format.parse(line.data, self.place)
        validation.memory_id(record.id)  # it is shown to models, and nobody could name another to forget it
        if schema > SCHEMA_VERSION:
            raise SchemaError(
                f"{self.format.file} of {self.place.workspace} has an entry of schema version {schema}; "
                f"this recollect knows up to {SCHEMA_VERSION}. Use a newer one"
            )
        if not 0 < version < FOREVER:
            raise ValueError(f"version {version} is none that can be followed by another")
        existing, size = self.row(record.id), line.end - line.start
        if existing is not None and existing.size and version <= existing.version:
            same = version != existing.version or existing.size == size
            if existing.record.created_at != record.created_at or not same:
                raise ValueError(f"has the id {record.id} of line {existing.number}")
        self.oldest_schema = min(self.oldest_schema, schema)
        self.highest = max(self.highest, self.format.number(record.id))
        if version <= self.tomb(record.id) or (existing is not None and existing.version >= version):
            return
        self.stored.pop(record.id, None)  # one that was deleted and stored again comes last
        self.stored[record.id] = None
        self.rows[record.id] = Row(record, version, 0, self.lines, 0 if line.start == PENDING else size, foreign)

    def _read_change(self, line: Line) -> None:
        change = _change(line.data)
        row = self.row(change.id)
        if row is not None and change.version > row.version and change.timestamp == row.record.created_at:
            self.rows[change.id] = replace(row, record=change.set.onto(row.record), version=change.version)

    def _read_vector(self, line: Line) -> None:
        vector = _vector(line.data)
        row = self.row(vector.id)
        if row is None or vector.version <= max(row.vector_version, self.tomb(vector.id)):
            return
        record = replace(row.record, embedding=vector.vector, embedding_model=vector.model)
        self.rows[vector.id] = replace(row, record=record, vector_version=vector.version)

    def _read_thing(self, line: Line) -> None:
        """The last line of a thing says what it is: they are all in one file."""
        shelved = _shelved(line.data)
        self.things[shelved.shelf, shelved.key] = None if shelved.removed else shelved.thing()

    def _read_tombstone(self, line: Line) -> None:
        stone = _tombstone(line.data)
        self.bury(stone.id, FOREVER if stone.version is None else stone.version)

    def bury(self, ident: str, version: int) -> None:
        self.highest = max(self.highest, self.format.number(ident))
        self.tombs[ident] = max(version, self.tomb(ident))
        row = self.row(ident)
        if row is not None and row.version <= version:
            self.rows[ident] = None
            self.stored.pop(ident, None)


def is_current(name: str, data: bytes, source: KnownRows, version_of: Callable[[str, str], int | None]) -> bool:
    """Whether a line tells of something that was not deleted or replaced since."""
    if name == SHELVES:
        shelved = _shelved(data)
        return shelved.removed or version_of(shelved.shelf, shelved.key) == shelved.version
    line = head(data)
    return line.version > source.tomb(line.id)


def _problem(error: Exception) -> str:
    text = (str(error) or type(error).__name__)[:200]
    what = "is cut off" if "truncated" in text else "is not a whole entry"
    return f"{what} and is skipped: {text}"
