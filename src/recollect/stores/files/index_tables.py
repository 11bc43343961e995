"""The tables of an index: the memories and documents of a log, and what is known of its lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from recollect.stores.fields import CHANGEABLE
from recollect.stores.files.files import FileIdentity
from recollect.stores.files.replay import Replay, Row
from recollect.stores.integrity import log_damage
from recollect.stores.port import Damage
from recollect.stores.rows import UNREADABLE, to_record
from recollect.stores.shelves import COLUMNS, ShelfItem, from_row, to_row
from recollect.stores.sqlite.place_file import PlaceFile
from recollect.stores.sqlite.rows import DIALECT
from recollect.stores.tables.conditions import marks
from recollect.stores.tables.engine import insert
from recollect.values.record import SCHEMA_VERSION, Record

_WHOLE = f"{DIALECT.whole} WHERE m.id = ?"
_SOME = f"{DIALECT.whole} WHERE m.id IN"
_AT_ONCE = 400
"""Ids in one statement."""
_EACH = f"""SELECT l.version, l.vector_version, l.number, l.size, l.foreign_fields, m.seq,
    {DIALECT.whole.removeprefix("SELECT ")} JOIN log_lines l USING (id)"""
_LEAN = _EACH.replace(DIALECT.whole.removeprefix("SELECT "), DIALECT.lean.removeprefix("SELECT "))
LAST_ID = "SELECT max(coalesce((SELECT max(id) FROM memories), ''), coalesce((SELECT max(id) FROM tombs), ''))"
_PUT_LINE = "INSERT OR REPLACE INTO log_lines VALUES (?, ?, ?, ?, ?, ?)"
_FILE = "INSERT OR REPLACE INTO log_files VALUES (?, ?, ?, ?, ?, ?, ?)"
_BURY = "INSERT INTO tombs VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET version = max(version, excluded.version)"
_KEEP = " ON CONFLICT (shelf, key) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[2:])
_DAMAGED = "INSERT OR REPLACE INTO damage VALUES (?, ?, ?, ?)"
_UNEMBED = "UPDATE memories SET embedded = NULL WHERE seq = ?"
# The last three make every copy in memory that follows the list of changes begin anew.
_CLEAR = """DELETE FROM memories; DELETE FROM embeddings; DELETE FROM things; DELETE FROM log_lines; DELETE FROM tombs;
    DELETE FROM unburied; DELETE FROM damage; DELETE FROM facts; DELETE FROM log_files;
    INSERT INTO memories_text (memories_text) VALUES ('delete-all');
    INSERT INTO changed (seq) VALUES (0); DELETE FROM changed; INSERT INTO changed (seq) VALUES (0)"""
_FIXED = [
    name for name in Record.__struct_fields__ if name not in (*CHANGEABLE, "embedding", "embedding_model", "checksum")
]
"""Fields that no change of a ledger touches. Those of a notebook may: its lines have no room for them."""


class FileRead(NamedTuple):
    """How far a file of the log was taken in."""

    identity: FileIdentity
    """The file as it was then."""
    to: int
    crc: int
    """The CRC-32 of its bytes up to there."""
    torn: bool = False
    """Whether a last line without its end was taken in besides."""


class IndexTables(PlaceFile):
    """What is called to change something is called in a transaction."""

    synchronous = "NORMAL"  # what a power cut takes away is taken in again from the log
    more_tables = Path(__file__).with_name("index.sql").read_text()
    facts: dict[str, int] | None = None
    """What a transaction knows of them; None before it has asked."""

    # What is known

    def files_read(self) -> dict[str, FileRead]:
        rows = self.rows("SELECT name, inode, size, changed, read_to, crc, torn FROM log_files")
        return {name: FileRead(FileIdentity(*which), to, crc, bool(torn)) for name, *which, to, crc, torn in rows}

    def known_row(self, ident: str) -> Row | None:
        rows = self.rows(f"{_EACH} WHERE m.id = ?", (ident,))
        return self._row(rows[0]) if rows else None

    def known_rows(self, *, whole: bool) -> Iterator[Row]:
        """All of them, in the order of storing; not `whole`: without content and vector."""
        sql = f"{_EACH if whole else _LEAN} WHERE m.seq > ? ORDER BY m.seq LIMIT 500"
        after = 0
        while page := self.rows(sql, (after,)):
            yield from map(self._row, page)
            after = page[-1][5]

    def _row(self, row: tuple[Any, ...]) -> Row:
        version, vector_version, number, size, foreign, seq, *record = row
        fields = msgspec.json.decode(foreign) if foreign else None
        return Row(to_record(self.place, record), version, vector_version, number, size, fields, seq)

    def load(self, ids: Sequence[str]) -> list[Record]:
        """Those that are there and can be read."""
        if len(ids) == 1:
            rows = self.rows(_WHOLE, ids)
        else:
            rows = [row for some in _shares(ids) for row in self.rows(f"{_SOME} ({marks(some)})", some)]
        records: list[Record] = []
        for row in rows:
            try:
                records.append(to_record(self.place, row))
            except UNREADABLE as error:
                log_damage(self.place, f"memory {row[0]}", f"cannot be read: {error}")
        return records

    def version(self, ident: str) -> int:
        """The highest of any line of a memory."""
        rows = self.rows("SELECT max(version, vector_version) FROM log_lines WHERE id = ?", (ident,))
        return max(rows[0][0] if rows else 0, self.tomb(ident))

    def counts(self, ids: Sequence[str]) -> list[tuple[str, int, int, int, int, int]]:
        """Of those that are there: the id, how often and when last retrieved, when created, and both versions."""
        sql = """SELECT m.id, access_count, accessed_at, created_at, version, vector_version
            FROM memories m JOIN log_lines USING (id) WHERE m.id IN"""
        return [row for some in _shares(ids) for row in self.rows(f"{sql} ({marks(some)})", some)]  # pyright: ignore

    def tomb(self, ident: str) -> int:
        rows = self.rows("SELECT version FROM tombs WHERE id = ?", (ident,))
        return rows[0][0] if rows else 0

    def last_id(self) -> str:
        """No memory or tombstone has a greater id than this."""
        return self.rows(LAST_ID)[0][0]

    def tombs(self) -> dict[str, int]:
        return dict(self.rows("SELECT id, version FROM tombs"))

    def unburied(self) -> dict[str, int]:
        """Memories that are left out because the audit log says that they were deleted, and no tombstone does."""
        if not self.fact("unburied"):
            return {}
        return dict(self.rows("SELECT id, version FROM unburied"))

    def fact(self, name: str, usual: int = 0) -> int:
        """A number about the whole log. In a transaction it is read once."""
        if not self.inside:
            return self._read_facts().get(name, usual)
        if self.facts is None:
            self.facts = self._read_facts()
        return self.facts.get(name, usual)

    def _read_facts(self) -> dict[str, int]:
        return dict(self.rows("SELECT name, value FROM facts"))

    @property
    def oldest_schema(self) -> int:
        return self.fact("oldest_schema", SCHEMA_VERSION)

    def damaged_lines(self) -> dict[tuple[str, int], Damage]:
        """By file and byte."""
        rows = self.rows("SELECT name, byte, at, problem FROM damage ORDER BY name, byte")
        return {(name, byte): Damage(where, problem) for name, byte, where, problem in rows}

    def kinds(self) -> dict[str, int]:
        return dict(self.rows("SELECT kind, count(*) FROM memories GROUP BY kind"))

    def things(self) -> list[ShelfItem]:
        """All documents, in the order in which they were first kept."""
        return [from_row(row) for row in self.rows(f"SELECT {', '.join(COLUMNS)} FROM things ORDER BY seq")]

    def thing_version(self, shelf: str, key: str) -> int | None:
        rows = self.rows("SELECT version FROM things WHERE shelf = ? AND key = ?", (shelf, key))
        return rows[0][0] if rows else None

    # Changing it

    def clear(self) -> None:
        self.writer.execute(_CLEAR).fetchall()
        self.facts = None

    def note_files(self, read: Mapping[str, FileRead]) -> None:
        self.writer.executemany(
            _FILE, [(name, *file.identity, file.to, file.crc, file.torn) for name, file in read.items()]
        )

    def set_facts(self, **facts: int) -> None:
        self.writer.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", list(facts.items()))
        if self.facts is not None:
            self.facts |= facts

    def bury(self, tombs: Iterable[tuple[str, int]]) -> None:
        self.writer.executemany(_BURY, list(tombs))

    def add_damage(self, damage: Mapping[tuple[str, int], Damage]) -> None:
        self.writer.executemany(_DAMAGED, [(*key, *each) for key, each in damage.items()])

    def put_lines(self, rows: Iterable[Row]) -> None:
        lines = [
            (row.record.id, row.version, row.vector_version, row.number, row.size, _json(row.foreign)) for row in rows
        ]
        self.writer.executemany(_PUT_LINE, lines)

    def replayed(self, replay: Replay) -> None:
        """Write what lines have changed."""
        for ident, row in replay.rows.items():
            loaded = replay.loaded.get(ident)
            if loaded is None or row is loaded:
                continue
            if row is None or ident in replay.stored:
                super().delete([ident])
                self.writer.execute("DELETE FROM log_lines WHERE id = ?", (ident,))
            else:
                self.restate(loaded, row)
        new = [row for ident in replay.stored if (row := replay.rows[ident]) is not None]
        if new:
            super().put([replace(row.record, checksum=row.record.digest()) for row in new])
            self.put_lines(new)
        self.bury(replay.tombs.items())
        for (shelf, key), item in replay.things.items():
            if item is None:
                self.writer.execute("DELETE FROM things WHERE shelf = ? AND key = ?", (shelf, key))
            else:
                self.writer.execute(insert(DIALECT, "things", COLUMNS, _KEEP), to_row(item))
        self.add_damage(replay.damage)
        self.set_facts(
            lines=replay.lines,
            highest=max(replay.highest, self.fact("highest")),
            oldest_schema=min(replay.oldest_schema, self.oldest_schema),
        )

    def restate(self, before: Row, row: Row) -> None:
        """Put what is new of a memory in place of what is known of it. It keeps its number."""
        old, new = before.record, row.record
        if any(getattr(old, name) != getattr(new, name) for name in _FIXED):
            super().delete([old.id])
            self.put_at(row.seq, replace(new, checksum=new.digest()))
        else:
            super().update([new])
            if (new.embedding, new.embedding_model) != (old.embedding, old.embedding_model):
                self._restate_vector(row)
        self.put_lines([row])

    def _restate_vector(self, row: Row) -> None:
        if row.record.embedding is not None:
            super().embed(row.record.embedding_model or "", {row.record.id: row.record.embedding})
        else:
            self.writer.execute("DELETE FROM embeddings WHERE seq = ?", (row.seq,))
            self.writer.execute(_UNEMBED, (row.seq,))


def _shares(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE))


def _json(fields: dict[str, Any] | None) -> str | None:
    return msgspec.json.encode(fields).decode() if fields else None
