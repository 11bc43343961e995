"""What the files of one place say, read so far: every memory without its content, and where its content stands.

The order of lines in different files does not matter, nor does reading a line twice. Each line of a memory has a
version; a line counts if its version is higher than what is known, and a tombstone ends all versions up to its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from recollect.stores.files.files import Line
from recollect.stores.files.fileset import CHANGES, SHELVES, TOMBSTONES, VECTORS
from recollect.stores.files.formats import Format
from recollect.stores.files.lines import Change, Shelved, Tombstone, Vector
from recollect.stores.port import Damage, Place
from recollect.stores.shelves import Thing
from recollect.values import validation
from recollect.values.errors import SchemaError
from recollect.values.record import SCHEMA_VERSION, Record, render

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, ValueError, OverflowError, RecursionError)
FOREVER = 1 << 62
PENDING = -1


class Row(msgspec.Struct):
    """A memory, with the bytes of its line and of its vector, which are PENDING while they are in no file."""

    record: Record
    """Without content, unless the line has no room for it, and without vector."""
    version: int
    start: int
    end: int
    number: int
    """Of the line."""
    vector: tuple[int, int] | None = None
    vector_version: int = 0
    held: tuple[Any] | None = None
    """The content, while it is in no file."""
    blob: bytes | None = None
    """The vector, while it is in no file."""

    @property
    def last_version(self) -> int:
        return max(self.version, self.vector_version)


class VectorHead(msgspec.Struct):
    id: str
    version: int
    model: str | None
    vector: msgspec.Raw


class _Head(msgspec.Struct):
    """What every line of a memory has."""

    id: str
    version: int = 1


_head = msgspec.json.Decoder(_Head).decode
_change = msgspec.json.Decoder(Change).decode
_tombstone = msgspec.json.Decoder(Tombstone).decode
_shelved = msgspec.json.Decoder(Shelved).decode
_vector_head = msgspec.json.Decoder(VectorHead).decode
decode_vector = msgspec.json.Decoder(Vector).decode


class State:
    def __init__(self, place: Place, format: Format, highest: int = 0) -> None:
        self.place = place
        self.format = format
        self.rows: dict[str, Row] = {}
        """In the order of storing."""
        self.kinds: Counter[str] = Counter()
        """How many there are of each."""
        self.by_text: dict[int, list[str]] | None = None
        """Ids by the hash of a text, of what is in no conversation; some may be gone. Made when it is first needed."""
        self.tombs: dict[str, int] = {}
        self.things: dict[tuple[str, str], Thing] = {}
        """By shelf and key, in the order in which they were first kept."""
        self.highest = highest
        """The highest number that an id was ever given."""
        self.unburied: dict[str, int] = {}
        """Memories that are left out because the audit log says that they were deleted, and no tombstone does: the
        versions up to which they are."""
        self.lines = 0
        self.oldest_schema = SCHEMA_VERSION
        self.damage: dict[tuple[str, int], Damage] = {}
        """By file and byte."""
        self._readers: dict[str, Callable[[Line], object]] = {
            format.file: self._memory,
            CHANGES: self._change,
            VECTORS: self._vector,
            TOMBSTONES: self._tombstone,
            SHELVES: self._thing,
        }

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

    def _memory(self, line: Line) -> None:
        record, version, schema = self.format.parse(line.data, self.place)
        validation.memory_id(record.id)  # it is shown to models, and nobody could name another to forget it
        if schema > SCHEMA_VERSION:
            raise SchemaError(
                f"{self.format.file} of {self.place.workspace} has an entry of schema version {schema}; "
                f"this recollect knows up to {SCHEMA_VERSION}. Use a newer one"
            )
        if not 0 < version < FOREVER:
            raise ValueError(f"version {version} is none that can be followed by another")
        known = self.rows.get(record.id)
        if known is not None and PENDING != known.start < line.start and version <= known.version:
            same_size = known.end - known.start == line.end - line.start
            if known.record.created_at != record.created_at or (version == known.version and not same_size):
                raise ValueError(f"has the id {record.id} of line {known.number}")
        self.oldest_schema = min(self.oldest_schema, schema)
        self.highest = max(self.highest, self.format.number(record.id))
        if version <= self.tombs.get(record.id, 0) or (known is not None and known.version >= version):
            return
        self.lose(record.id)  # one that was deleted and stored again comes last
        held = (self.format.content(line.data),) if line.start == PENDING else None
        row = self.rows[record.id] = Row(record, version, line.start, line.end, self.lines, held=held)
        self.kinds[record.kind] += 1
        if self.by_text is not None:
            with suppress(*UNREADABLE):  # found out when it is read
                self.note_text(row, render(record.content or self.format.content(line.data)))

    def note_text(self, row: Row, text: str) -> None:
        if self.by_text is not None and row.record.address.conversation is None:
            self.by_text.setdefault(hash(text), []).append(row.record.id)

    def lose(self, ident: str) -> None:
        if (row := self.rows.pop(ident, None)) is not None:
            self.kinds[row.record.kind] -= 1

    def _change(self, line: Line) -> None:
        change = _change(line.data)
        row = self.rows.get(change.id)
        if row is not None and change.version > row.version and change.timestamp == row.record.created_at:
            record = change.set.onto(row.record)
            if record.kind != row.record.kind:
                self.kinds.subtract((row.record.kind,))
                self.kinds.update((record.kind,))
            self.rows[change.id] = replace(row, record=record, version=change.version)

    def _vector(self, line: Line) -> None:
        head = _vector_head(line.data)
        row = self.rows.get(head.id)
        if row is None or head.version <= max(row.vector_version, self.tombs.get(head.id, 0)):
            return
        gone = bytes(head.vector) == b"null"
        self.rows[head.id] = replace(
            row,
            record=replace(row.record, embedding_model=head.model),
            vector=None if gone else (line.start, line.end),
            vector_version=head.version,
            blob=decode_vector(line.data).vector if line.start == PENDING else None,
        )

    def _thing(self, line: Line) -> None:
        """The last line of a thing says what it is: they are all in one file."""
        shelved = _shelved(line.data)
        path = shelved.shelf, shelved.key
        if shelved.removed:
            self.things.pop(path, None)
        else:
            self.things[path] = shelved.thing()

    def _tombstone(self, line: Line) -> None:
        stone = _tombstone(line.data)
        self.bury(stone.id, FOREVER if stone.version is None else stone.version)

    def bury(self, ident: str, version: int) -> None:
        self.highest = max(self.highest, self.format.number(ident))
        self.tombs[ident] = max(version, self.tombs.get(ident, 0))
        row = self.rows.get(ident)
        if row is not None and row.version <= version:
            self.lose(ident)

    def is_current(self, name: str, data: bytes) -> bool:
        """Whether a line tells of something that was not deleted or replaced since."""
        if name == SHELVES:
            shelved = _shelved(data)
            thing = self.things.get((shelved.shelf, shelved.key))
            return shelved.removed or (thing is not None and thing.version == shelved.version)
        head = _head(data)
        return head.version > self.tombs.get(head.id, 0)


def _problem(error: Exception) -> str:
    text = (str(error) or type(error).__name__)[:200]
    what = "is cut off" if "truncated" in text else "is not a whole entry"
    return f"{what} and is skipped: {text}"
