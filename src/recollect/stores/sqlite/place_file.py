"""One place in one file: its memories, its documents and its audit log."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime

import apsw

from recollect.stores.audit import Entry
from recollect.stores.integrity import CHANGED, is_intact
from recollect.stores.intents import IntentPart
from recollect.stores.port import Damage, Place
from recollect.stores.rows import UNREADABLE, to_changes, to_record
from recollect.stores.sqlite.database import Database
from recollect.stores.sqlite.rows import DIALECT, INSERT, UPDATE, indexed, to_row
from recollect.stores.sqlite.turns import Settling
from recollect.stores.tables.engine import Statement
from recollect.stores.tables.memories import (
    Name,
    embedded_as,
    id_exists,
    no_memory,
    prove_speakers,
    unprove_speakers,
)
from recollect.stores.touches import Touched, Touches
from recollect.stores.transactions import StaleFileError
from recollect.values.errors import CorruptionError, StoreError
from recollect.values.record import Record, to_micros

_PAGE = 500
SOON = 0.25
"""Lock timeout in seconds for writes that can be deferred (retrievals, vectors)."""

_CHANGES = "SELECT (SELECT max(rev) FROM changed), (SELECT min(rev) FROM changed), (SELECT max(seq) FROM memories)"
MOST_CHANGES = 20_000
"""Rows of `changed` from which the older half is dropped. A copy in memory that is further behind is made anew."""
_CHANGES_SHARE = 5
"""In a large place one row for so many memories: the larger a copy, the longer it takes to make it anew."""
_TRIM_EVERY = 64
"""Transactions after which it is looked how many rows `changed` has."""
_NEXT = "SELECT max(coalesce((SELECT max(seq) FROM memories), 0), (SELECT last FROM numbers)) + 1"
_INDEX = "INSERT INTO memories_text (rowid, text) VALUES (?, ?)"
_UNINDEX = "INSERT INTO memories_text (memories_text, rowid, text) VALUES ('delete', ?, ?)"
_EMBED = "INSERT OR REPLACE INTO embeddings (seq, model, vector) VALUES (?, ?, ?)"
_EMBED_ID = "INSERT OR REPLACE INTO embeddings (seq, model, vector) SELECT seq, ?, ? FROM memories WHERE id = ?"
_EMBEDDED = "UPDATE memories SET embedded = ? WHERE id = ?"
_TOUCH = "UPDATE memories SET access_count = access_count + ?, accessed_at = max(accessed_at, ?) WHERE id = ?"
_DELETED = "SELECT seq, coalesce(segmented, text), conversation, named FROM memories WHERE id = ?"


class PlaceFile(Database):
    """`put`, `update`, `delete` and `embed` are called in a transaction."""

    def __init__(self, path: str, place: Place, touches: Touches, in_memory: bool = False) -> None:
        self.place = place
        self.touches = touches
        self._written: Mapping[str, Touched] = {}
        self._entries_before: int | None = None
        """How many audit entries there were before those of the open transaction; None if it has none."""
        self._begun = 0
        """How many transactions were begun."""
        super().__init__(path, in_memory)

    def put(self, records: Sequence[Record]) -> Sequence[Record]:
        if len(records) == 1:
            self._put_one(records[0])
        else:
            for at in range(0, len(records), _PAGE):
                self._put(records[at : at + _PAGE])
        if statements := prove_speakers(DIALECT, self.place, records):
            self._run(statements)
        return records

    def _run(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self.writer.execute(statement.sql, statement.values).fetchall()

    def put_at(self, seq: int, record: Record) -> None:
        """With a number that is free."""
        self._put_one(record, seq)
        self._run(prove_speakers(DIALECT, self.place, [record]))

    def _put_one(self, record: Record, seq: int | None = None) -> None:
        execute = self.writer.execute
        if seq is None:
            (seq,) = execute(_NEXT).fetchone()
        row = to_row(seq, record)
        try:
            execute(INSERT, row)
        except apsw.ConstraintError:
            raise id_exists(record.id) from None
        execute(_INDEX, (seq, indexed(row)))
        if record.embedding is not None:
            execute(_EMBED, (seq, record.embedding_model, record.embedding))

    def _put(self, records: Sequence[Record]) -> None:
        many = self.writer.executemany
        (first,) = self.writer.execute(_NEXT).fetchone()
        rows = [to_row(seq, record) for seq, record in enumerate(records, first)]
        try:
            many(INSERT, rows)
        except apsw.ConstraintError as error:
            stored = {row[1]: self.row("SELECT seq FROM memories WHERE id = ?", (row[1],)) for row in rows}
            for ident in (row[1] for row in rows if stored[row[1]] not in (None, row[:1])):
                raise id_exists(ident) from None
            raise self.problem(apsw.CorruptError(str(error))) from error
        many(_INDEX, [(row[0], indexed(row)) for row in rows])
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
                raise no_memory(record.id)

    def embed(self, model: str | None, vectors: Mapping[str, bytes]) -> None:
        many = self.writer.executemany
        many(_EMBED_ID, [(model, vector, ident) for ident, vector in vectors.items()])
        many(_EMBEDDED, [(embedded_as(model or "", len(vector) // 4), ident) for ident, vector in vectors.items()])

    def delete(self, ids: Sequence[str], reason: str = "") -> None:
        execute = self.writer.execute
        names: set[Name] = set()
        for ident in ids:
            row = execute(_DELETED, (ident,)).fetchone()
            if row is None:
                raise no_memory(ident)
            seq, words, conversation, name = row
            if conversation is not None and name is not None:
                names.add(Name(conversation, name))
            execute(_UNINDEX, (seq, words))
            execute("DELETE FROM embeddings WHERE seq = ?", (seq,))
            execute("DELETE FROM memories WHERE seq = ?", (seq,))
        self._run(unprove_speakers(DIALECT, self.place, names))
        self.touches.drop(ids)

    def touch(self, ids: Sequence[str], at: datetime) -> None:
        """Kept in memory and written along with the next change, or after a while if nobody else writes then."""
        if self.writable and self.touches.add(ids, at):
            self.settle(0.0)

    def appended(self, entry: Entry) -> None:
        """Called in a transaction, with each new audit entry."""
        if self._entries_before is None:
            self._entries_before = entry.seq - 1

    def intent(self) -> IntentPart | None:
        """What the open transaction is about to commit; None if nothing is logged of it."""
        if self._entries_before is None:
            return None
        rows = self.rows("SELECT id FROM audit WHERE seq > ?", (self._entries_before,))
        return IntentPart(*self.place, self._entries_before, [ident for (ident,) in rows]) if rows else None

    def begun(self) -> None:
        self._entries_before = None
        self._written = self.touches.take()
        if self._written:
            rows = [(count, to_micros(at), ident) for ident, (count, at) in self._written.items()]
            self.writer.executemany(_TOUCH, rows)
        self._begun += 1
        if self._begun % _TRIM_EVERY == 1:
            self._trim_changes(MOST_CHANGES)

    def _trim_changes(self, most: int) -> None:
        """Drop the older half of the list of changes where it has grown longer than that."""
        ((newest, oldest, last),) = self.writer.execute(_CHANGES).fetchall()
        most = max(most, (last or 0) // _CHANGES_SHARE)
        if newest is not None and newest - oldest >= most:
            self.writer.execute("DELETE FROM changed WHERE rev < ?", (newest - most // 2,))

    def ended(self, committed: bool) -> None:
        written, self._written = self._written, {}
        if not committed:
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
        except StaleFileError:
            self.touches.take()
        except StoreError:
            self.touches.put_back({})  # not again at once

    def dismiss(self) -> None:
        """So that whoever still has this file open notices that its memories are gone."""
        self.writer.execute(
            "ALTER TABLE memories RENAME TO dropped; ALTER TABLE audit RENAME TO dropped_audit; "
            "ALTER TABLE things RENAME TO dropped_things"
        )

    def refresh(self) -> None:
        """Called before each read outside a transaction, for files that are derived from others."""

    def size(self) -> int:
        return _size(self.path) + _size(self.path + "-wal")

    def compact(self) -> int:
        self.settle()
        self.checkpoint()
        before = self.size()
        self.vacuum()
        return before - self.size()

    def vacuum(self) -> None:
        """Give unused space back."""
        with self.alone() as connection:
            connection.execute("DELETE FROM changed WHERE rev < (SELECT max(rev) FROM changed)")
            connection.execute("INSERT INTO memories_text (memories_text) VALUES ('optimize')")
            connection.execute("VACUUM")
        self.checkpoint()

    def _integrity(self) -> list[tuple[str]]:
        """By a connection of its own: one that has looked before compares with what it remembers of the text index."""
        with self.connected() as connection:
            return connection.execute("PRAGMA integrity_check").fetchall()

    def damage(self) -> list[Damage]:
        damages = [Damage(self.path, line) for (line,) in self._integrity() if line != "ok"]
        missing = self.rows("SELECT m.id FROM memories m WHERE m.seq NOT IN (SELECT id FROM memories_text_docsize)")
        damages += [Damage(ident, "is missing from the text index") for (ident,) in missing]
        for (seq,) in self.rows("SELECT seq FROM memories"):
            try:
                for row in self.rows(f"{DIALECT.whole} WHERE m.seq = ?", (seq,)):
                    record = to_record(self.place, row)
                    if not is_intact(record):
                        damages.append(Damage(record.id, CHANGED))
            except (CorruptionError, *UNREADABLE) as error:
                damages.append(Damage(f"{self.path}, row {seq}", str(error)))
        if damages and not self.current():  # it may have been looked at beside the log of another file
            raise StaleFileError
        return damages


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
