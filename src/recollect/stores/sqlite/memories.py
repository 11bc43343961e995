"""The memories of one place, in one file."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import apsw

from recollect.errors import ConflictError, CorruptionError, NotFoundError, StoreError
from recollect.filters import Filter, visible
from recollect.record import Address, Record, to_micros
from recollect.stores.port import Damage, Match, Place
from recollect.stores.sqlite.audit import LoggedDatabase
from recollect.stores.sqlite.database import UNREADABLE, MovedError
from recollect.stores.sqlite.rows import INSERT, SELECT, UPDATE, condition, indexed, to_changes, to_record, to_row
from recollect.text.fts import expression, word_pattern
from recollect.text.query import TextQuery
from recollect.text.segment import fold

_PAGE = 500
_TOUCHES_KEPT = 256
_TOUCHES_SECONDS = 5.0

# Subselects, not LEFT JOIN: reading one memory by id is four times faster that way.
_WITH_EMBEDDING = f"""SELECT {SELECT}, (SELECT vector FROM embeddings e WHERE e.seq = m.seq),
    (SELECT model FROM embeddings e WHERE e.seq = m.seq) FROM memories m"""
_GET = f"{_WITH_EMBEDDING} WHERE m.id = ?"
_INDEX = "INSERT INTO memories_text (rowid, text) VALUES (?, ?)"
_UNINDEX = "INSERT INTO memories_text (memories_text, rowid, text) VALUES ('delete', ?, ?)"
_EMBED = "INSERT OR REPLACE INTO embeddings (seq, model, vector) VALUES (?, ?, ?)"
_TOUCH = "UPDATE memories SET access_count = access_count + ?, accessed_at = max(accessed_at, ?) WHERE id = ?"
_GROUPS = {
    "kinds": "m.kind",
    "tiers": "m.tier",
    "agents": "coalesce(m.agent, '')",
    "states": """CASE WHEN m.superseded_by IS NOT NULL THEN 'superseded' WHEN m.archived_at IS NOT NULL THEN 'archived'
        WHEN m.expires_at <= {now} THEN 'expired' ELSE 'live' END""",
}


class Memories(LoggedDatabase):
    def __init__(self, path: str, place: Place) -> None:
        self.place = place
        self._touches: dict[str, tuple[int, int]] = {}
        self._flushed: dict[str, tuple[int, int]] = {}
        self._oldest_touch = 0.0
        super().__init__(path)
        self.connection.create_scalar_function("word_like", _word_like, 2, deterministic=True)

    def put(self, records: Sequence[Record]) -> None:
        if len(records) == 1:
            self._put_one(records[0])
            return
        for at in range(0, len(records), _PAGE):
            self._put(records[at : at + _PAGE])

    def _put_one(self, record: Record) -> None:
        execute, row = self.connection.execute, to_row(None, record)
        try:
            execute(INSERT, row)
        except apsw.ConstraintError:
            raise ConflictError(f"a memory with the id {record.id} exists already") from None
        seq = self.connection.last_insert_rowid()
        execute(_INDEX, (seq, indexed(row)))
        if record.embedding is not None:
            execute(_EMBED, (seq, record.embedding_model, record.embedding))

    def _put(self, records: Sequence[Record]) -> None:
        many = self.connection.executemany
        (first,) = self.connection.execute("SELECT coalesce(max(seq), 0) + 1 FROM memories").fetchone()
        rows = [to_row(seq, record) for seq, record in enumerate(records, first)]
        try:
            many(INSERT, rows)
        except apsw.ConstraintError as error:
            stored = {row[1]: self.row("SELECT seq FROM memories WHERE id = ?", (row[1],)) for row in rows}
            for ident in (row[1] for row in rows if stored[row[1]] not in (None, row[:1])):
                raise ConflictError(f"a memory with the id {ident} exists already") from None
            raise self.problem(apsw.CorruptError(str(error))) from error
        many(_INDEX, [(row[0], indexed(row)) for row in rows])
        if embeddings := [
            (seq, record.embedding_model, record.embedding)
            for seq, record in enumerate(records, first)
            if record.embedding is not None
        ]:
            many(_EMBED, embeddings)

    def update(self, records: Sequence[Record]) -> None:
        execute = self.connection.execute
        for record in records:
            found = execute(UPDATE, to_changes(record)).fetchone()
            if found is None:
                raise NotFoundError(f"there is no memory {record.id}")
            if record.embedding is None:
                execute("DELETE FROM embeddings WHERE seq = ?", found)
            else:
                execute(_EMBED, (*found, record.embedding_model, record.embedding))

    def delete(self, records: Sequence[Record]) -> None:
        execute = self.connection.execute
        for record in records:
            found = self.row("SELECT seq, coalesce(segmented, text) FROM memories WHERE id = ?", (record.id,))
            if found is None:
                raise NotFoundError(f"there is no memory {record.id}")
            seq, words = found
            execute(_UNINDEX, (seq, words))
            execute("DELETE FROM embeddings WHERE seq = ?", (seq,))
            execute("DELETE FROM memories WHERE seq = ?", (seq,))
            self._touches.pop(record.id, None)

    def get(self, ids: Sequence[str], view: Address) -> list[Record]:
        found: list[Record] = []
        for ident in ids if len(ids) == 1 else dict.fromkeys(ids):
            if (row := self.row(_GET, (ident,))) and visible(view, record := self._record(row)):
                found.append(record)
        return found

    def scan(self, where: Filter, newest_first: bool, limit: int | None) -> Iterator[Record]:
        """Page by page, so that no read transaction stays open while the caller works."""
        clause, values = condition(where)
        way, beyond = ("DESC", "<") if newest_first else ("ASC", ">")
        sql = (
            f"SELECT m.seq, {_WITH_EMBEDDING.removeprefix('SELECT ')} WHERE (m.created_at, m.seq) {beyond} (?, ?) "
            f"AND {clause} ORDER BY m.created_at {way}, m.seq {way} LIMIT ?"
        )
        edge = (1 << 62) if newest_first else -(1 << 62)
        after, left = (edge, edge), limit
        while left is None or left > 0:
            try:
                page = self.rows(sql, (*after, *values, min(_PAGE, left or _PAGE)))
            except MovedError:
                if self.closed:
                    raise
                return  # nothing is left to be seen
            for row in page:
                yield self._record(row[1:])
            if len(page) < _PAGE:
                return
            after = (page[-1][12], page[-1][0])
            left = left and left - len(page)

    def search(self, query: TextQuery, where: Filter, limit: int) -> list[Match]:
        clause, values = condition(where)
        match = expression(query)
        for pattern in query.patterns:
            clause += " AND word_like(?, m.text)"
            values.append(word_pattern(pattern))
        if match:
            # CROSS JOIN keeps the text index outermost, where it can hand out rows by rank and stop at the limit.
            sql = f"""SELECT {SELECT}, NULL, NULL, t.rank FROM memories_text t CROSS JOIN memories m ON m.seq = t.rowid
                WHERE memories_text MATCH ? AND {clause} ORDER BY t.rank LIMIT ?"""
            rows = self.rows(sql, (match, *values, limit))
        elif query.patterns:
            sql = f"SELECT {SELECT}, NULL, NULL, -1.0 FROM memories m WHERE {clause} ORDER BY m.created_at DESC LIMIT ?"
            rows = self.rows(sql, (*values, limit))
        else:
            rows = []
        return [Match(self._record(row[:-1]), -row[-1]) for row in rows]

    def _record(self, row: Sequence[Any]) -> Record:
        """A row with its embedding, and the retrievals that are not written yet."""
        if self._touches and (touch := self._touches.get(row[0])):
            row = (*row[:12], max(row[12], touch[1]), row[13] + touch[0], *row[14:])
        try:
            return to_record(self.place, row)
        except UNREADABLE as error:
            raise self.problem(error) from error

    def touch(self, ident: str, at: datetime) -> None:
        """Kept in memory and written along with the next change: a recall must not cost a disk flush."""
        if not self.writable:
            return
        with self.lock:
            if self.closed:
                raise MovedError
            if not self._touches:
                self._oldest_touch = time.monotonic()
            self._count(ident, 1, to_micros(at))
            if len(self._touches) >= _TOUCHES_KEPT or time.monotonic() - self._oldest_touch > _TOUCHES_SECONDS:
                self.settle()

    def _count(self, ident: str, count: int, at: int) -> None:
        before, last = self._touches.get(ident, (0, at))
        self._touches[ident] = (before + count, max(last, at))

    def flush(self) -> None:
        self._flushed, self._touches = self._touches, {}
        for ident, (count, at) in self._flushed.items():
            self.connection.execute(_TOUCH, (count, at, ident))

    def ended(self, kept: bool) -> None:
        flushed, self._flushed = self._flushed, {}
        if not kept:
            for ident, (count, at) in flushed.items():
                self._count(ident, count, at)

    def settle(self) -> None:
        """Write the counted retrievals now, without waiting for the disk: losing some to a power cut is no harm.

        If they cannot be written they wait for the next time: no recall may fail because a disk is full.
        """
        with self.lock:
            if self.closed or not self._touches or self.connection.in_transaction:
                return
            self._oldest_touch = time.monotonic()
            self.connection.execute("PRAGMA synchronous = NORMAL")
            try:
                self.begin()
                self.end(None)
            except MovedError:
                self._touches.clear()
            except StoreError:
                pass
            finally:
                self.connection.execute("PRAGMA synchronous = FULL")

    def dismiss(self) -> None:
        """So that whoever still has this file open notices that its memories are gone."""
        self.connection.execute("ALTER TABLE memories RENAME TO dropped; ALTER TABLE audit RENAME TO dropped_audit")

    def counts(self, where: Filter) -> dict[str, dict[str, int]]:
        clause, values = condition(where)
        now = str(to_micros(where.now))
        sql = f"SELECT {{}}, count(*) FROM memories m WHERE {clause} GROUP BY 1"
        return {name: dict(self.rows(sql.format(by.format(now=now)), values)) for name, by in _GROUPS.items()}

    def embedded(self, where: Filter) -> int:
        clause, values = condition(where)
        row = self.row(f"SELECT count(*) FROM memories m JOIN embeddings e ON e.seq = m.seq WHERE {clause}", values)
        return row[0] if row else 0

    def size(self) -> int:
        return _size(self.path) + _size(self.path + "-wal")

    def compact(self) -> int:
        self.settle()
        self.checkpoint()
        before = self.size()
        with self.guard():
            self.connection.execute("INSERT INTO memories_text (memories_text) VALUES ('optimize')")
            self.connection.execute("VACUUM")
        self.checkpoint()
        return before - self.size()

    def damage(self) -> list[Damage]:
        found = [Damage(self.path, line) for (line,) in self.rows("PRAGMA integrity_check") if line != "ok"]
        missing = self.rows("SELECT m.id FROM memories m WHERE m.seq NOT IN (SELECT id FROM memories_text_docsize)")
        found += [Damage(ident, "is missing from the text index") for (ident,) in missing]
        for (seq,) in self.rows("SELECT seq FROM memories"):
            try:
                for row in self.rows(f"{_WITH_EMBEDDING} WHERE m.seq = ?", (seq,)):
                    record = self._record(row)
                    if record.digest() != record.checksum:
                        found.append(Damage(record.id, "does not match its checksum: it was changed outside recollect"))
            except (CorruptionError, *UNREADABLE) as error:
                found.append(Damage(f"{self.path}, row {seq}", str(error)))
        return found


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _word_like(pattern: Any, text: Any) -> bool:
    return re.search(pattern, fold(text)) is not None
