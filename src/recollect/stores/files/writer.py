"""Transactions on the files of one place: staged, then appended as a whole, then read back like anybody's."""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from recollect.stores.audit import Entry
from recollect.stores.files import audit_file, files, unsaved
from recollect.stores.files.book import Book
from recollect.stores.files.fileset import AUDIT, CHANGES, TOMBSTONES, UNDO, VECTORS
from recollect.stores.files.lines import Change, Changed, Tombstone, line, named
from recollect.stores.files.lock import LockNote
from recollect.stores.files.metrics import CONTENTION, WRITE
from recollect.stores.files.reader import Parts, tell, tell_failure
from recollect.stores.files.rewriting import rewrite
from recollect.stores.files.staging import Mark, Staged
from recollect.stores.files.state import FOREVER
from recollect.stores.intents import Part
from recollect.stores.scope import Scope, let_go
from recollect.stores.touches import Touched
from recollect.values.errors import ConcurrencyError, ReadOnlyError, RecollectError, StoreError, UnsavedWarning
from recollect.values.record import SCHEMA_VERSION, new_id

_TRIES = 50


class GoneError(StoreError):
    """What a transaction ends with where there is nothing left to write to."""


SOON = 0.25
"""Seconds that what can be made up for waits for other writers."""
_PAUSE = 0.005


class Writer:
    """Who writes into a book: `begin` and `end` enclose whatever is staged, and may be nested.

    Whoever calls them is a `Scope`, and calls `abandon` where one of them did not come to its end.
    """

    def __init__(self, book: Book) -> None:
        self.book = book
        self.depth = 0
        """How many blocks of one thread are inside one another."""
        self._pid = 0
        self._parts: dict[str, bytes] | None = None
        self._taken: Mapping[str, Touched] = {}

    @property
    def staged(self) -> Staged:
        staged = self.book.mine()
        assert staged is not None, "not in a transaction"
        return staged

    # Beginning

    def turn(self, operation: str, seconds: float | None = None) -> Turn:
        """To write, for a block. `seconds` to wait for other writers; as long as the store is patient without."""
        return Turn(self, operation, seconds)

    def begin(self, operation: str = "write") -> None:
        """Take the lock, finish what a dead process left, and know all that is written."""
        book = self.book
        if self.depth and book.mine() is not None:
            self.depth += 1
            return
        if not book.writing.acquire(timeout=book.config.patience.total):
            problem = f"{book.fileset.folder}: another thread wrote for too long; try again"
            tell(book.place, logging.WARNING, "lock timeout", problem=problem)
            raise ConcurrencyError(problem)
        self._open(self._locked(operation))
        self.depth = 1

    def begin_within(self, seconds: float, operation: str) -> None:
        """As `begin`, for what can be made up for: it waits for other writers no longer than that."""
        deadline = time.monotonic() + seconds
        while not self._try_begin(operation):
            if time.monotonic() >= deadline:
                raise ConcurrencyError(f"{self.book.fileset.folder}: somebody else writes just now; try again")
            time.sleep(_PAUSE)

    def _try_begin(self, operation: str) -> bool:
        """As `begin`, but False at once where somebody else writes."""
        book = self.book
        if book.mine() is not None or not book.writing.acquire(blocking=False):
            return False
        left = book.appender.lock.try_acquire(operation)
        if left is None:
            book.writing.release()
            return False
        tell(book.place, logging.DEBUG, "lock acquired", operation=operation)
        self._open(left)
        self.depth = 1
        return True

    def _locked(self, operation: str) -> LockNote:
        for _ in range(_TRIES):
            try:
                return self._acquire(operation)
            except FileNotFoundError:
                files.make_folder(self.book.fileset.folder)
        raise StoreError(f"{self.book.fileset.folder} is removed as often as it is made")

    def _acquire(self, operation: str) -> LockNote:
        lock, place = self.book.appender.lock, self.book.place
        waits = lock.waits
        try:
            left = lock.acquire(operation)
            tell(place, logging.DEBUG, "lock acquired", operation=operation)
            return left
        except ConcurrencyError as error:
            tell(place, logging.WARNING, "lock timeout", problem=str(error))
            raise
        except StoreError as error:
            tell_failure(place, error)
            raise
        finally:
            if lock.waits > waits:
                self.book.meter.counts[CONTENTION] += 1

    def _open(self, left: LockNote) -> None:
        book = self.book
        self._pid = os.getpid()
        try:
            outcome = book.appender.recover(left) if left.began else ""
            if outcome == "taken back":
                tell(book.place, logging.WARNING, "unfinished write taken back", pid=left.pid)
            with book.guard:
                if outcome:
                    book.reader.reset()
                book.reader.refresh()
            if outcome == "unlogged":
                self._log_found(left)
            self._prepare()
            with book.guard:
                book.staged, book.owner = Staged(), threading.get_ident()
        except BaseException as error:
            self._release()
            if isinstance(error, OSError):
                raise self._failed(error) from error
            raise

    def _failed(self, error: OSError) -> StoreError:
        return tell_failure(self.book.place, files.problem(error, self.book.fileset.folder))

    def _log_found(self, left: LockNote) -> None:
        """Add the entry that a process died before writing, for what it did write."""
        book, appender = self.book, self.book.appender
        size = left.began[AUDIT][1]
        log, stones = appender.file(AUDIT), appender.file(TOMBSTONES)
        log.open(create=True)
        log.cut(size)
        created, deleted = (left.began.get(name, (0, FOREVER))[1] for name in (book.format.file, TOMBSTONES))
        with book.guard:
            new = [row.record.id for row in book.reader.state.rows.values() if row.start >= created]
        gone = [named(line.data) for line in files.lines(stones.read(deleted, left.ends.get(TOMBSTONES, 0)))]
        message = (
            f"found {len(new)} written and {len(gone)} forgotten by process {left.pid}, "
            "which ended before it could log that"
        )
        entry = Entry(0, new_id(), book.now(), "recover", message, None, {"created": new, "deleted": gone})
        _, logged = audit_file.sealed_line(entry, book.audit.last())
        appender.lock.announce(left.began, {**left.ends, AUDIT: size + len(logged)}, durable=False)
        log.append(logged)
        appender.lock.settle()

    def _prepare(self) -> None:
        """Write what was put off: what the disk refused, and files that must be written anew."""
        book = self.book
        if book.session is not None:
            book.session.check_settings()
        if book.reader.unsaved:
            self.write_unsaved()
        if book.undropped:
            with suppress(StoreError):
                self.drop_undo()
        if book.reader.state.unburied:
            self._bury_again()
        state = book.reader.state
        old = state.oldest_schema < SCHEMA_VERSION
        if not book.reader.unsaved and ((book.format.rewrites and state.tombs) or old):
            self._tidy()
            if old and book.session is not None and book.reader.state.oldest_schema >= SCHEMA_VERSION:
                book.session.migrated()

    def _bury_again(self) -> None:
        """Write tombstones in place of those that were lost: after this write nothing tells that they were."""
        book, at = self.book, self.book.now()
        unburied = book.reader.state.unburied.items()
        stones = [Tombstone(ident, at, "its tombstone was lost", version) for ident, version in unburied]
        book.appender.append({TOMBSTONES: b"".join(map(line, stones))}, book.reader.at)
        with book.guard:
            book.reader.reset()
            book.reader.refresh()

    def write_unsaved(self) -> None:
        """In a turn: try to write what was kept in memory; leave it there if that still fails."""
        book = self.book
        while book.reader.unsaved:
            try:
                parts = audit_file.renumbered(book.reader.unsaved[0], book.audit.last())
                book.appender.append(parts, book.reader.at)
            except OSError as error:
                book.unsaved_because = files.told(error, book.fileset.folder)
                return
            with book.guard:
                book.reader.unsaved.pop(0)
        unsaved.unwatch(book)
        with book.guard:
            book.reader.reset()
            book.reader.refresh()

    def save_unsaved(self) -> None:
        """Once more, if there is any."""
        if self.book.reader.unsaved:
            with self.turn("recover"):
                pass

    def _tidy(self) -> None:
        """Write anew what should be. If the disk refuses that, it is done with one of the next writes."""
        try:
            rewrite(self.book)
        except ReadOnlyError:
            raise
        except StoreError as error:
            tell(self.book.place, logging.ERROR, "not written anew yet", problem=str(error))

    # Ending

    def take_back(self, mark: Mark) -> None:
        with self.book.guard:
            self.staged.take_back(mark)

    def prepare(self) -> None:
        """Make sure that what was staged can be written. SizeLimitError if there is no room for it."""
        book, staged = self.book, self.staged
        parts = staged.parts()
        if parts and book.session is not None:
            book.session.check_room(parts)
        self._parts = self._with_touches(staged, parts)

    def intent(self) -> Part | None:
        """What is about to be written; None if nothing is logged of it."""
        entries = [audit_file.entry_of(line) for line in self.staged.lines.get(AUDIT, ())]
        if not entries:
            return None
        return Part(*self.book.place, entries[0].seq - 1, [entry.id for entry in entries])

    def _with_touches(self, staged: Staged, parts: dict[str, bytes]) -> dict[str, bytes]:
        """Write the counted retrievals along with the rest, unless they would take the place over its limit."""
        book = self.book
        with book.guard:
            book.touches.drop(staged.untouched)
            taken = book.touches.take()
            mark = staged.mark()
            flying: dict[str, tuple[int, Touched]] = {}
            for ident, touched in taken.items():
                row = staged.row(book.reader.state, ident)
                if row is None:
                    continue
                old, version = row.record, staged.version(book.reader.state, ident) + 1
                count, at = old.access_count + touched.times, max(old.accessed_at, touched.at)
                change = Change(ident, version, old.created_at, Changed(access_count=count, accessed_at=at))
                staged.add(CHANGES, line(change))
                flying[ident] = version, touched
            more = staged.parts()
            if flying and book.session is not None and not book.session.has_room(more):
                staged.take_back(mark)
                book.touches.put_back(taken)
                return parts
            self._taken, book.flying = taken, flying
            return more

    def end(self, error: BaseException | None) -> None:
        """Write what was staged, or forget it if there was an error. Prepares first, unless that was done."""
        if self._pid != os.getpid():
            return  # a fork in the middle: it is the parent's to finish
        self.depth -= 1
        if not self.depth:
            try:
                self._finish(error)
            finally:
                self.book.writing.release()

    def abandon(self, depth: int = 0) -> None:
        """Let go of what this thread holds beyond that depth, if anything: `begin` or `end` was broken off anywhere.

        What was being written is left to whoever comes next, as if this process had died.
        """
        book = self.book
        if depth:
            self.depth = depth
        elif self._pid in (0, os.getpid()) and book.writing.acquire(blocking=False):  # else another thread has it
            self.depth = 0
            self._forget_staged()
            book.appender.let_go()
            let_go(book.writing)

    def _finish(self, error: BaseException | None) -> None:
        try:
            if error is None:
                if self._parts is None:
                    self.prepare()
                self._commit()
        finally:
            self._forget_staged()
            self._release()

    def _forget_staged(self) -> None:
        book = self.book
        with book.guard:
            book.touches.put_back(self._taken)
            self._taken, book.flying = {}, {}
            book.staged, book.owner = None, 0
        self._parts = None

    def _commit(self) -> None:
        book, staged, parts = self.book, self.staged, self._parts or {}
        if parts:
            self._save(parts)
            book.wrote = True
        with book.guard:
            book.reader.refresh()
            self._taken, book.flying = {}, {}
            book.staged, book.owner = None, 0
        if staged.dropped_undo:
            with book.guard:
                book.reader.drop_unsaved_undo(staged.dropped_undo)
                book.undropped |= staged.dropped_undo.keys()
            with suppress(StoreError):  # logged; the next write tries again, and a compaction fails if it cannot
                self.drop_undo()
        if book.format.rewrites and TOMBSTONES in parts and not book.reader.unsaved:
            self._tidy()
        if parts and book.session is not None:
            book.session.written()

    def drop_undo(self) -> None:
        """Write the file of undo data without what was dropped. StoreError if the disk refuses that."""
        book = self.book
        if not book.undropped:
            return
        lines = audit_file.undo_heads(book.audit.lines(UNDO))
        left = [line + b"\n" for head, line in lines if head.seq not in book.undropped]
        try:
            files.replace(book.fileset.paths[UNDO], b"".join(left))
        except OSError as error:
            raise self._failed(error) from error
        book.undropped = set()

    def _save(self, parts: Parts) -> None:
        """Append durably. If the disk refuses for long, a ledger keeps it in memory and says so."""
        book, concurrency, started = self.book, self.book.config.concurrency, time.perf_counter()
        if book.reader.unsaved:  # they are written in the order in which they were made
            self._hold(parts, book.unsaved_because)
            return
        # Vectors can be made again at any time: alone, they are not worth a flush of the disk.
        durable = list(parts) != [VECTORS]
        for attempt in range(concurrency.max_retries + 1):
            try:
                book.appender.append(parts, book.reader.at, durable=durable)
                book.meter.took(WRITE, started)
                return
            except OSError as error:
                if error.errno is None:  # a TimeoutError that somebody's handler of signals has raised
                    raise
                problem = files.problem(error, book.fileset.folder)
                if isinstance(problem, ReadOnlyError):
                    raise tell_failure(book.place, problem) from error
                if attempt == concurrency.max_retries:
                    if book.session is None:  # only the ledger document keeps what the disk refuses
                        raise tell_failure(book.place, problem) from error
                    self._hold(parts, files.told(error, book.fileset.folder))
                    return
                time.sleep(concurrency.retry_backoff_ms / 1000 * 2**attempt)

    def _hold(self, parts: Parts, problem: str) -> None:
        book = self.book
        with book.guard:
            book.reader.hold(parts)
        unsaved.watch(book, self.save_unsaved)
        book.unsaved_because = problem
        tell(book.place, logging.ERROR, "write kept in memory", problem=problem)
        warnings.warn(
            f"{problem}. It is kept in memory and written once that is possible; until then it is not durable",
            UnsavedWarning,
            stacklevel=2,
        )

    def _release(self) -> None:
        try:
            self.book.appender.release()
            tell(self.book.place, logging.DEBUG, "lock released")
        except OSError as error:
            tell(self.book.place, logging.ERROR, "lock file not written", problem=str(error))

    # Retrievals

    def touch(self, ids: Sequence[str], at: datetime) -> None:
        """Kept in memory and written along with the next change: a recall must not cost a disk flush, nor wait."""
        book = self.book
        known = book.read(lambda: [ident for ident in ids if book.row(ident) is not None])
        if known and book.touches.add(known, at) and book.staged is None:
            self.settle(0.0)

    def settle(self, seconds: float = SOON) -> None:
        """Write the counted retrievals now. If they cannot be written they wait for the next time."""
        book = self.book
        if not book.touches:
            return
        try:
            if book.fileset.exists():
                with self.turn("touch", seconds):
                    pass
        except (RecollectError, OSError) as error:
            level = logging.WARNING if isinstance(error, ConcurrencyError) else logging.ERROR
            tell(book.place, level, "retrievals not counted yet", problem=str(error))

    def write_snapshots(self, seconds: float = SOON, *, durable: bool = False) -> None:
        """Write the files of a session that are derived from its log, where they are behind.

        Under the lock, so that of two processes the one that writes last has read everything. Whoever does not get the
        lock leaves it to the process that has it, which writes these files after what was stored until then.
        """
        book, session = self.book, self.book.session
        if session is None:
            return
        try:
            if session.should_write_snapshots(durable=durable):
                with self.turn("snapshot", seconds):
                    session.write_snapshots(durable=durable)
        except (RecollectError, OSError) as error:  # nothing is lost: the log has it all
            tell(book.place, logging.WARNING, "snapshots not written yet", problem=str(error))


class Turn(Scope["Turn"]):
    """One thread's turn to write."""

    __slots__ = ("_depth", "_operation", "_seconds", "_writer", "gone")

    def __init__(self, writer: Writer, operation: str, seconds: float | None) -> None:
        self._writer = writer
        self._operation = operation
        self._seconds = seconds
        self._depth = 0
        self.gone = False
        """Whether there is nothing left to write to."""

    def enter(self) -> Turn:
        self._depth = self._writer.depth if self._writer.book.mine() is not None else 0
        if self._seconds is None:
            self._writer.begin(self._operation)
        else:
            self._writer.begin_within(self._seconds, self._operation)
        return self

    def leave(self, error: BaseException | None) -> None:
        self._writer.end(GoneError() if self.gone else error)

    def abandon(self) -> None:
        self._writer.abandon(self._depth)
