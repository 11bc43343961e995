"""An index that may be written later than its log.

What is appended to the log is durable and acknowledged. As long as one process alone writes new memories, it keeps them
in mind and writes them to the index together: before the next question, or when the store settles. Nothing depends on
that: if the process dies, or another one brings the index up to date first, the lines are read from the log.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import apsw

from recollect.stores.files.index_tables import LAST_ID, FileRead
from recollect.stores.files.log import Log, Parts
from recollect.stores.files.log_reader import LogReader
from recollect.stores.files.replay import Row
from recollect.stores.port import Place
from recollect.stores.sqlite.place_file import MOST_CHANGES, SOON
from recollect.stores.touches import Touches
from recollect.values.errors import ConflictError, StoreError
from recollect.values.record import SCHEMA_VERSION, Record

_MOST_BYTES = 4 << 20
"""Bytes of lines that the index may lack: whoever asks next waits until it has them."""
_SHARED_SECONDS = 10.0
"""After another process wrote to the log or the index, the index is written with each append for so long: the other
one would have to read the lines from the log."""


class Deferred(NamedTuple):
    """What was appended to the log and is not in the index yet."""

    base: dict[str, FileRead]
    """How far the index has the files."""
    read: dict[str, FileRead]
    """How far it has them with the rows."""
    batches: tuple[Sequence[Row], ...]
    last_id: str
    lines: int
    entries: int | None
    size: int


class DeferredIndex(LogReader):
    """A transaction that only stores new memories opens none of SQLite. Whatever else is done in it opens one."""

    def __init__(self, path: str, place: Place, touches: Touches, log: Log, in_memory: bool) -> None:
        self._deferred: Deferred | None = None
        self.asleep = False
        """Whether the open transaction of the log has none of SQLite yet."""
        self._new_rows: list[Row] = []
        """What the transaction has stored while it was asleep."""
        self._row_marks: dict[int, int] = {}
        """How many those were at each open savepoint, by its depth."""
        self._shared_until = 0.0
        super().__init__(path, place, touches, log, in_memory)

    @property
    def is_deferred(self) -> bool:
        return self._deferred is not None

    # A transaction without one of SQLite

    def may_sleep(self) -> bool:
        """Whether all that it takes to store new memories is known: nobody else has written since this process did."""
        log, facts, deferred = self.log, self.facts, self._deferred
        if facts is None or not self.read or self.in_memory or self.touches or log.unsaved or any(log.undropped):
            return False
        if log.session is None or log.operation != "write" or (deferred is not None and deferred.size > _MOST_BYTES):
            return False
        if facts.get("checked") != log.config.integrity.enable_checksums or facts.get("unburied"):
            return False
        is_current = facts.get("oldest_schema", SCHEMA_VERSION) >= SCHEMA_VERSION and log.session.has_metadata
        return is_current and time.monotonic() >= self._shared_until

    def is_alone(self) -> bool:
        """With the lock held: whether the files are as this process has left them."""
        identities = self.identities()
        if all(file.identity == identities[name] for name, file in self.read.items()):
            return self.current()
        if any(file.identity.size != identities[name].size for name, file in self.read.items()):
            self._note_sharing()
        return False

    def _note_sharing(self) -> None:
        self._shared_until = time.monotonic() + _SHARED_SECONDS

    def sleep(self) -> None:
        """Begin a transaction without one of SQLite. Called with the log's lock held."""
        self.take_ownership()
        self._new_rows, self._row_marks, self.asleep = [], {}, True

    def _wake(self) -> None:
        """Open the transaction of SQLite after all, with what was stored until now."""
        self.asleep = False
        with self._translated():
            self.open_transaction(self.patience)
            self.take_in()
            self.commit_taken()
            self._trim_changes(MOST_CHANGES)
            start = 0
            for depth, count in sorted(self._row_marks.items()):
                self._put_rows(self._new_rows[start:count])
                super().savepoint(depth)
                start = count
            self._put_rows(self._new_rows[start:])
        self._new_rows, self._row_marks = [], {}

    def _put_rows(self, rows: Sequence[Row]) -> None:
        if rows:
            super().put([row.record for row in rows])
            self.put_lines(rows)

    def are_new(self, records: Sequence[Record]) -> bool:
        """Whether their ids are greater than any that the log has or had, each greater than the one before."""
        deferred, rows = self._deferred, self._new_rows
        last = rows[-1].record.id if rows else deferred.last_id if deferred is not None else ""
        if not rows:
            connection = self._take()
            try:
                with self._translated():
                    last = max(last, connection.execute(LAST_ID).fetchone()[0])
            finally:
                self._give_back(connection)
        for record in records:
            if record.id <= last:
                return False
            last = record.id
        return True

    def add_rows(self, rows: Sequence[Row]) -> None:
        self._new_rows += rows

    def defer(self, parts: Parts, entries: int | None) -> None:
        """The log has what was stored: the index gets it later."""
        names = [name for name in parts if name in self.log.fileset.read]
        identities = {name: self.log.appender.file(name).identity() for name in names}
        if any(identities[name].size != self.read[name].to + len(parts[name]) for name in names):
            self.read = {}  # a line without its end stood before: the lines are read from the log
            return
        before, rows = self._deferred, self._new_rows
        base, batches, last_id, size = dict(self.read), (), "", 0
        if before is not None:
            base, batches, last_id, size = before.base, before.batches, before.last_id, before.size
            entries = before.entries if entries is None else entries
        read = self.read | {
            name: FileRead(identities[name], identities[name].size, zlib.crc32(parts[name], self.read[name].crc))
            for name in names
        }
        assert self.facts is not None  # else it would have been read, and for that the transaction woken up
        lines, last_id = self.facts["lines"] + len(rows), rows[-1].record.id if rows else last_id
        size += sum(len(parts[name]) for name in names)
        self._deferred = Deferred(base, read, (*batches, rows) if rows else batches, last_id, lines, entries, size)
        self.read, self.facts["lines"] = read, lines

    # Writing what was deferred

    def take_in(self) -> None:
        if self._deferred is not None:
            self._write_deferred()
        super().take_in()

    def _write_deferred(self) -> None:
        assert self._deferred is not None
        deferred, self._deferred = self._deferred, None
        self.read, self.facts = {}, None
        if self.files_read() != deferred.base:  # another process has taken the lines in
            self._note_sharing()
            return
        try:
            self._put_rows([row for batch in deferred.batches for row in batch])
        except ConflictError:  # the index is not what its tables say: it is made anew from the log
            self.forget_files()
            return
        self.note_files({name: file for name, file in deferred.read.items() if file != deferred.base.get(name)})
        self.set_facts(lines=deferred.lines, **({} if deferred.entries is None else {"entries": deferred.entries}))
        self.read = deferred.read
        self.seen_next = {name: file.identity for name, file in self.read.items()}

    def commit_taken(self) -> None:
        """Commit what was taken in and begin anew: others must see at once what was acknowledged before."""
        if self.seen_next is not None:
            self._writer.execute("COMMIT")
            self.note_seen()
            self._writer.execute("BEGIN IMMEDIATE")

    def settle(self, seconds: float = SOON) -> None:
        super().settle(seconds)
        if self._deferred is not None and not self.closed and not self.inside:
            with suppress(StoreError):
                self.refresh()

    # What SQLite is asked, and how a transaction goes on

    def rows(self, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        if self.asleep and self.inside:
            self._wake()
        return super().rows(sql, parameters)

    @contextmanager
    def reading(self) -> Generator[Any]:
        if self.asleep and self.inside:
            self._wake()
        with super().reading() as connection:
            yield connection

    @property
    def writer(self) -> Any:
        if self.asleep and self.inside:
            self._wake()
        return super().writer

    def savepoint(self, depth: int) -> None:
        if self.asleep:
            self._row_marks[depth] = len(self._new_rows)
        else:
            super().savepoint(depth)

    def release(self, depth: int, error: BaseException | None) -> None:
        if not self.asleep:
            super().release(depth, error)
        elif error is None:
            self._row_marks.pop(depth, None)
        else:
            self.take_back(depth)

    def take_back(self, depth: int) -> None:
        if not self.asleep:
            super().take_back(depth)
        elif depth in self._row_marks:
            del self._new_rows[self._row_marks.pop(depth) :]

    def end(self, error: BaseException | None) -> None:
        if not self.asleep:
            super().end(error)
            return
        self._end(committed=error is None)
        if isinstance(error, apsw.Error):
            raise self.problem(error) from error

    def leave(self) -> None:
        self.asleep = False
        super().leave()
