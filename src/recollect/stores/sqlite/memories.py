"""The memories of one place, in one file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import apsw

from recollect.stores.audit import Entry
from recollect.stores.integrity import CHANGED, is_intact, log_damage
from recollect.stores.intents import Part
from recollect.stores.port import By, Damage, Order, Place
from recollect.stores.rows import GROUPS, ORDERS, UNREADABLE, Edge, behind, text_key, to_changes, to_record
from recollect.stores.sqlite.database import Database
from recollect.stores.sqlite.opening import MovedError
from recollect.stores.sqlite.rows import INSERT, SELECT, UPDATE, condition, indexed, to_row
from recollect.stores.sqlite.turns import Settling
from recollect.stores.touches import Touched, Touches
from recollect.values.errors import ConflictError, CorruptionError, NotFoundError, StoreError
from recollect.values.filters import Filter
from recollect.values.record import Record, to_micros

_PAGE = 500
SOME = 400
"""Ids in one statement."""
SOON = 0.25
"""Seconds that what can be made up for waits for a writer."""

# Subselects, not LEFT JOIN: reading one memory by id is four times faster that way.
_WITH_EMBEDDING = f"""SELECT {SELECT}, (SELECT vector FROM embeddings e WHERE e.seq = m.seq),
    (SELECT model FROM embeddings e WHERE e.seq = m.seq) FROM memories m"""
_WITHOUT_CONTENT = f"SELECT {SELECT}, NULL, NULL FROM memories m".replace("m.text, m.data", "NULL, NULL")
_GET = f"{_WITH_EMBEDDING} WHERE m.id = ?"
# Answered from the index of ids alone, without reading a memory.
_IDS_LIKE = """SELECT id FROM memories WHERE id = ? OR substr(id, 1, ?) = ? OR substr(id, ?) = ?
    ORDER BY id <> ?1, id LIMIT ?"""
_CHANGES = "SELECT (SELECT max(rev) FROM changed), (SELECT min(rev) FROM changed)"
_MOST_CHANGES = 20_000
"""Rows of `changed` from which the older half is dropped. A copy in memory that is further behind is made anew."""
_INDEX = "INSERT INTO memories_text (rowid, text) VALUES (?, ?)"
_UNINDEX = "INSERT INTO memories_text (memories_text, rowid, text) VALUES ('delete', ?, ?)"
_NAME = "INSERT INTO texts (key, seq) VALUES (?, ?)"
_NAMED = f"""{_WITH_EMBEDDING} WHERE m.seq IN (SELECT seq FROM texts WHERE key IN ({{}})) AND m.text IN ({{}})
    AND m.superseded_by IS NULL AND m.archived_at IS NULL ORDER BY m.seq"""
_EMBED = "INSERT OR REPLACE INTO embeddings (seq, model, vector) VALUES (?, ?, ?)"
_EMBED_ID = "INSERT OR REPLACE INTO embeddings (seq, model, vector) SELECT seq, ?, ? FROM memories WHERE id = ?"
_TOUCH = "UPDATE memories SET access_count = access_count + ?, accessed_at = max(accessed_at, ?) WHERE id = ?"
_GROUPS: dict[By, str] = {
    **GROUPS,
    "embedded": "CASE WHEN EXISTS (SELECT 1 FROM embeddings e WHERE e.seq = m.seq) THEN 'yes' ELSE 'no' END",
}


class Memories(Database):
    """`put`, `update`, `delete` and `embed` are called in a transaction."""

    def __init__(self, path: str, place: Place) -> None:
        self.place = place
        self.touches = Touches()
        self._written: Mapping[str, Touched] = {}
        self._entries_before: int | None = None
        """How many audit entries there were before those of the open transaction; None if it has none."""
        super().__init__(path)

    def put(self, records: Sequence[Record]) -> None:
        if len(records) == 1:
            self._put_one(records[0])
            return
        for at in range(0, len(records), _PAGE):
            self._put(records[at : at + _PAGE])

    def _put_one(self, record: Record) -> None:
        execute, row = self.writer.execute, to_row(None, record)
        try:
            execute(INSERT, row)
        except apsw.ConstraintError:
            raise _exists(record.id) from None
        seq = self.writer.last_insert_rowid()
        execute(_INDEX, (seq, indexed(row)))
        if record.address.conversation is None:
            execute(_NAME, (text_key(record.text), seq))
        if record.embedding is not None:
            execute(_EMBED, (seq, record.embedding_model, record.embedding))

    def _put(self, records: Sequence[Record]) -> None:
        many = self.writer.executemany
        (first,) = self.writer.execute("SELECT coalesce(max(seq), 0) + 1 FROM memories").fetchone()
        rows = [to_row(seq, record) for seq, record in enumerate(records, first)]
        try:
            many(INSERT, rows)
        except apsw.ConstraintError as error:
            stored = {row[1]: self.row("SELECT seq FROM memories WHERE id = ?", (row[1],)) for row in rows}
            for ident in (row[1] for row in rows if stored[row[1]] not in (None, row[:1])):
                raise _exists(ident) from None
            raise self.problem(apsw.CorruptError(str(error))) from error
        many(_INDEX, [(row[0], indexed(row)) for row in rows])
        many(_NAME, [(text_key(r.text), seq) for seq, r in enumerate(records, first) if r.address.conversation is None])
        if embeddings := [
            (seq, record.embedding_model, record.embedding)
            for seq, record in enumerate(records, first)
            if record.embedding is not None
        ]:
            many(_EMBED, embeddings)

    def update(self, records: Sequence[Record]) -> None:
        execute = self.writer.execute
        for record in records:
            if execute(UPDATE, to_changes(record)).fetchone() is None:
                raise _missing(record.id)

    def embed(self, model: str, vectors: Mapping[str, bytes]) -> None:
        self.writer.executemany(_EMBED_ID, [(model, vector, ident) for ident, vector in vectors.items()])

    def delete(self, ids: Sequence[str]) -> None:
        execute = self.writer.execute
        for ident in ids:
            row = execute("SELECT seq, coalesce(segmented, text), text FROM memories WHERE id = ?", (ident,)).fetchone()
            if row is None:
                raise _missing(ident)
            seq, words, text = row
            execute(_UNINDEX, (seq, words))
            execute("DELETE FROM texts WHERE key = ? AND seq = ?", (text_key(text), seq))
            execute("DELETE FROM embeddings WHERE seq = ?", (seq,))
            execute("DELETE FROM memories WHERE seq = ?", (seq,))
        self.touches.drop(ids)

    def get(self, ids: Sequence[str]) -> list[Record]:
        if len(ids) == 1:
            row = self.row(_GET, (ids[0],))
            return [] if row is None else self._records([row])
        ids, rows = list(dict.fromkeys(ids)), list[tuple[Any, ...]]()
        for at in range(0, len(ids), SOME):
            some = ids[at : at + SOME]
            rows += self.rows(f"{_WITH_EMBEDDING} WHERE m.id IN ({marks(some)})", some)
        return self._records(rows)

    def with_texts(self, texts: Sequence[str]) -> list[Record]:
        rows: list[tuple[Any, ...]] = []
        for at in range(0, len(texts), SOME):
            some = texts[at : at + SOME]
            rows += self.rows(_NAMED.format(marks(some), marks(some)), (*map(text_key, some), *some))
        return self._records(rows)

    def scan(
        self, where: Filter, order: Order, edge: Edge | None, limit: int | None, whole: bool = True
    ) -> Iterator[Record]:
        """Page by page, so that no read transaction stays open while the caller works."""
        clause, values = condition(where)
        key, beyond, way = ORDERS[order]
        fields = key.replace("m.", "").split(", ")
        columns = _WITH_EMBEDDING if whole else _WITHOUT_CONTENT
        sql = (
            f"SELECT {key}, {columns.removeprefix('SELECT ')} WHERE ({key}) {beyond} ({marks(fields)}) "
            f"AND {clause} ORDER BY {way} LIMIT ?"
        )
        if edge is not None and edge.seq is None and not edge.behind:
            edge = edge._replace(seq=self.seq(edge.after.id))
        begin: Sequence[Any] = behind(fields, order, edge)
        left = limit
        while left is None or left > 0:
            try:
                page = self.rows(sql, (*begin, *values, min(_PAGE, left or _PAGE)))
            except MovedError:
                if self.closed:
                    raise
                return  # nothing is left to be seen
            yield from self._records([row[len(fields) :] for row in page])
            if len(page) < _PAGE:
                return
            begin = page[-1][: len(fields)]
            left = left and left - len(page)

    def ids_like(self, part: str, limit: int) -> list[str]:
        return [ident for (ident,) in self.rows(_IDS_LIKE, (part, len(part), part, -len(part), part, limit))]

    def seq(self, ident: str) -> int | None:
        row = self.row("SELECT seq FROM memories WHERE id = ?", (ident,))
        return row[0] if row else None

    def _records(self, rows: Sequence[Sequence[Any]]) -> list[Record]:
        """Rows with their embeddings, and the retrievals that are not written yet. One that cannot be read is left
        out, with a line in the log."""
        records: list[Record] = []
        for row in rows:
            try:
                records.append(to_record(self.place, row))
            except UNREADABLE as error:
                log_damage(self.place, f"{self.path}, memory {row[0]}", f"cannot be read: {error}")
        return [self.touches.onto(record) for record in records] if self.touches else records

    def touch(self, ids: Sequence[str], at: datetime) -> None:
        """Kept in memory and written along with the next change, or after a while if nobody else writes then."""
        if self.writable and self.touches.add(ids, at):
            self.settle(0.0)

    def appended(self, entry: Entry) -> None:
        """Called in a transaction, with each new audit entry."""
        if self._entries_before is None:
            self._entries_before = entry.seq - 1

    def intent(self) -> Part | None:
        """What the open transaction is about to commit; None if nothing is logged of it."""
        if self._entries_before is None:
            return None
        rows = self.rows("SELECT id FROM audit WHERE seq > ?", (self._entries_before,))
        return Part(*self.place, self._entries_before, [ident for (ident,) in rows]) if rows else None

    def begun(self) -> None:
        self._entries_before = None
        self._written = self.touches.take()
        rows = [(count, to_micros(at), ident) for ident, (count, at) in self._written.items()]
        if rows:
            self.writer.executemany(_TOUCH, rows)
        self._trim_changes(_MOST_CHANGES)

    def _trim_changes(self, most: int) -> None:
        """Drop the older half of the list of changes where it has grown longer than that."""
        ((newest, oldest),) = self.writer.execute(_CHANGES).fetchall()
        if newest is not None and newest - oldest >= most:
            self.writer.execute("DELETE FROM changed WHERE rev < ?", (newest - most // 2,))

    def ended(self, kept: bool) -> None:
        written, self._written = self._written, {}
        if not kept:
            self.touches.put_back(written)

    def settle(self, seconds: float = SOON) -> None:
        """Write the counted retrievals now, without waiting for the disk: losing some to a power cut is no harm.

        If they cannot be written they wait for the next time: no recall may fail because a disk is full.
        """
        if self.closed or self.inside or not self.touches:
            return
        try:
            with Settling(self, seconds):
                pass
        except MovedError:
            self.touches.take()
        except StoreError:
            self.touches.put_back({})  # not again at once

    def dismiss(self) -> None:
        """So that whoever still has this file open notices that its memories are gone."""
        self.writer.execute(
            "ALTER TABLE memories RENAME TO dropped; ALTER TABLE audit RENAME TO dropped_audit; "
            "ALTER TABLE things RENAME TO dropped_things"
        )

    def count(self, where: Filter, by: Sequence[By]) -> dict[tuple[str, ...], int]:
        clause, values = condition(where)
        fields = [_GROUPS[field].format(now=to_micros(where.now)) for field in by]
        grouped = f" GROUP BY {', '.join(str(n + 1) for n in range(len(fields)))}" if fields else ""
        rows = self.rows(
            f"SELECT {''.join(f'{field}, ' for field in fields)}count(*) FROM memories m WHERE {clause}{grouped}",
            values,
        )
        return {row[:-1]: row[-1] for row in rows if row[-1]}

    def size(self) -> int:
        return _size(self.path) + _size(self.path + "-wal")

    def compact(self) -> int:
        self.settle()
        self.checkpoint()
        before = self.size()
        with self.alone() as connection:
            connection.execute("DELETE FROM changed WHERE rev < (SELECT max(rev) FROM changed)")
            connection.execute("INSERT INTO memories_text (memories_text) VALUES ('optimize')")
            connection.execute("VACUUM")
        self.checkpoint()
        return before - self.size()

    def _integrity(self) -> list[tuple[str]]:
        """By a connection of its own: one that has looked before compares with what it remembers of the text index."""
        with self.connected() as connection:
            return connection.execute("PRAGMA integrity_check").fetchall()

    def damage(self) -> list[Damage]:
        found = [Damage(self.path, line) for (line,) in self._integrity() if line != "ok"]
        missing = self.rows("SELECT m.id FROM memories m WHERE m.seq NOT IN (SELECT id FROM memories_text_docsize)")
        found += [Damage(ident, "is missing from the text index") for (ident,) in missing]
        for (seq,) in self.rows("SELECT seq FROM memories"):
            try:
                for row in self.rows(f"{_WITH_EMBEDDING} WHERE m.seq = ?", (seq,)):
                    record = to_record(self.place, row)
                    if not is_intact(record):
                        found.append(Damage(record.id, CHANGED))
            except (CorruptionError, *UNREADABLE) as error:
                found.append(Damage(f"{self.path}, row {seq}", str(error)))
        if found and not self.current():  # it may have been looked at beside the log of another file
            raise MovedError
        return found


def marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _exists(ident: str) -> ConflictError:
    return ConflictError(f"a memory with the id {ident} exists already")


def _missing(ident: str) -> NotFoundError:
    return NotFoundError(f"there is no memory {ident}")


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
