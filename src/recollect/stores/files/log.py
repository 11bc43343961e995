"""The files of one place: its lock, what is appended to them, and what the disk has refused.

The log is the truth. Everything that is asked of memories and documents is answered by an index that is derived from
it (`index.py`); the audit log and what undo needs are read from their files.
"""

from __future__ import annotations

import logging
import math
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect.stores.audit import Entry, UndoSize
from recollect.stores.files import audit_file, files
from recollect.stores.files.audit_file import AuditFile, Last
from recollect.stores.files.buried import read_buried
from recollect.stores.files.config import Config
from recollect.stores.files.files import AppendOnly
from recollect.stores.files.fileset import AUDIT, TOMBSTONES, UNDO, VECTORS, Appender, FileSet
from recollect.stores.files.formats import Format
from recollect.stores.files.lines import Buried, Purged, UndoHead, UndoLine, line, tombstone, undo_line
from recollect.stores.files.lock import LockNote
from recollect.stores.files.metrics import CONTENTION, WRITE, Meter
from recollect.stores.files.staging import Staging
from recollect.stores.port import Place
from recollect.stores.undo import Undo
from recollect.values.errors import ConcurrencyError, ReadOnlyError, StoreError, UnsavedWarning
from recollect.values.record import Record, utc_now

if TYPE_CHECKING:
    from recollect.stores.files.session import Session

_TRIES = 50
_PAUSE = 0.005
_REFUSED_SECONDS = 60.0
"""After which it is tried again to write the index to the disk."""

log = logging.getLogger("recollect.store")
log.addHandler(logging.NullHandler())  # nothing on stderr unless the application asks for it

Parts = Mapping[str, bytes]
"""What is to be appended to each file."""


def log_enabled(level: int) -> bool:
    return log.isEnabledFor(level)


def tell(place: Place, level: int, message: str, **details: Any) -> None:
    """Levels and names are those of the ledger document."""
    if log.isEnabledFor(level):
        extra = {"component": "MemoryManager", "session_id": place.workspace, "metadata": details}
        log.log(level, message, extra=extra)


def tell_failure(place: Place, problem: StoreError) -> StoreError:
    """What the system refused, and the caller is about to be told."""
    tell(place, logging.ERROR, "I/O failure", problem=str(problem))
    return problem


class Log:
    """One thread writes at a time: the one that has the index's turn to write."""

    def __init__(self, place: Place, fileset: FileSet, format: Format, config: Config, meter: Meter) -> None:
        self.place = place
        self.fileset = fileset
        self.format = format
        self.config = config
        self.meter = meter
        self.appender = Appender(fileset, config.patience)
        self.session: Session | None = None
        """What a session of a ledger has beyond its memories."""
        self.audit = AuditFile(fileset, lambda: self.session.audit_entries() if self.session else self.audit.noted())
        self.turn = threading.RLock()
        """Held by the thread that writes, for a whole transaction."""
        self.staging: Staging | None = None
        """What the open transaction is about to append."""
        self.operation = "write"
        """What the lock's note says of the next transaction."""
        self.wrote = False
        self.unsaved: list[Parts] = []
        """What the disk has refused so far, in the order in which it was made."""
        self.unsaved_because = ""
        self.undropped = Purged()
        """Undo data that was purged, but the disk has refused to write the file without it."""
        self.retry: Callable[[], object] = lambda: None
        """Tries once more to write what the disk has refused."""
        self._refused_until = 0.0
        self.now: Callable[[], datetime] = utc_now
        self.defer: Callable[[], None] = lambda: None
        """Tells the store that the session has files to write within `batch_write_interval_ms`."""

    @property
    def index_refused(self) -> bool:
        """Whether the disk has refused to write the index, so that this process has one of its own in memory."""
        return time.monotonic() < self._refused_until

    def refuse_index(self, forever: bool = False) -> None:
        self._refused_until = math.inf if forever else time.monotonic() + _REFUSED_SECONDS

    def allow_index(self) -> None:
        self._refused_until = 0.0

    # The lock

    def lock(self, seconds: float) -> LockNote:
        """Wait for other processes that write. The note of one that died in the middle, or an idle one."""
        operation, self.operation = self.operation, "write"
        if seconds < self.config.patience.total:
            return self._lock_within(seconds, operation)
        for _ in range(_TRIES):
            try:
                return self._lock_patiently(operation)
            except FileNotFoundError:
                files.make_folder(self.fileset.folder)
        raise StoreError(f"{self.fileset.folder} is removed as often as it is made")

    def _lock_within(self, seconds: float, operation: str) -> LockNote:
        deadline = time.monotonic() + seconds
        while (left := self._try_lock(operation)) is None:
            if time.monotonic() >= deadline:
                raise ConcurrencyError(f"{self.fileset.folder}: somebody else writes just now; try again")
            time.sleep(_PAUSE)
        tell(self.place, logging.DEBUG, "lock acquired", operation=operation)
        return left

    def _try_lock(self, operation: str) -> LockNote | None:
        try:
            return self.appender.lock.try_acquire(operation)
        except FileNotFoundError as error:
            raise StoreError(f"{self.fileset.folder} is gone") from error

    def _lock_patiently(self, operation: str) -> LockNote:
        lock, waits = self.appender.lock, self.appender.lock.waits
        try:
            left = lock.acquire(operation)
            tell(self.place, logging.DEBUG, "lock acquired", operation=operation)
            return left
        except ConcurrencyError as error:
            tell(self.place, logging.WARNING, "lock timeout", problem=str(error))
            raise
        except StoreError as error:
            tell_failure(self.place, error)
            raise
        finally:
            if lock.waits > waits:
                self.meter.counts[CONTENTION] += 1

    def unlock(self) -> None:
        try:
            self.appender.release()
            tell(self.place, logging.DEBUG, "lock released")
        except OSError as error:
            tell(self.place, logging.ERROR, "lock file not written", problem=str(error))

    def failure(self, error: OSError) -> StoreError:
        return tell_failure(self.place, files.problem(error, self.fileset.folder))

    # Appending

    def save(self, parts: Parts, sizes: Mapping[str, int]) -> bool:
        """Append durably. If the disk refuses for long, a ledger keeps it in memory and says so: False then."""
        concurrency, started = self.config.concurrency, time.perf_counter()
        if self.unsaved:  # they are written in the order in which they were made
            self._hold(parts, self.unsaved_because)
            return False
        # Vectors can be made again at any time: alone, they are not worth a flush of the disk.
        durable = list(parts) != [VECTORS]
        for attempt in range(concurrency.max_retries + 1):
            try:
                self.appender.append(parts, sizes, durable=durable)
                if logged := parts.get(AUDIT):
                    self.audit.note_appended(self.appender.file(AUDIT).identity(), logged)
                self.meter.took(WRITE, started)
                return True
            except OSError as error:
                if error.errno is None:  # a TimeoutError that somebody's handler of signals has raised
                    raise
                problem = files.problem(error, self.fileset.folder)
                if isinstance(problem, ReadOnlyError):
                    raise tell_failure(self.place, problem) from error
                if attempt == concurrency.max_retries:
                    if self.session is None:  # only the ledger document keeps what the disk refuses
                        raise tell_failure(self.place, problem) from error
                    self._hold(parts, files.describe_error(error, self.fileset.folder))
                    return False
                time.sleep(concurrency.retry_backoff_ms / 1000 * 2**attempt)
        return False

    def _hold(self, parts: Parts, problem: str) -> None:
        self.unsaved.append(parts)
        self.unsaved_because = problem
        tell(self.place, logging.ERROR, "write kept in memory", problem=problem)
        warnings.warn(
            f"{problem}. It is kept in memory and written once that is possible; until then it is not durable",
            UnsavedWarning,
            stacklevel=2,
        )

    def write_unsaved(self, sizes: Mapping[str, int]) -> bool:
        """With the lock held: try to write what was kept in memory; leave it there if that still fails."""
        while self.unsaved:
            try:
                parts = audit_file.renumbered(self.unsaved[0], self.audit.last())
                self.appender.append(parts, sizes)
            except OSError as error:
                self.unsaved_because = files.describe_error(error, self.fileset.folder)
                return False
            self.unsaved.pop(0)
        return True

    def drop_undo(self) -> None:
        """Write the file of undo data without what was purged. StoreError if the disk refuses that."""
        if not any(self.undropped):
            return
        left = [each + b"\n" for _, each in self._undo_lines(None, saved_only=True)]
        try:
            files.replace(self.fileset.paths[UNDO], b"".join(left))
        except OSError as error:
            raise self.failure(error) from error
        self.undropped = Purged()

    def drop_unsaved_undo(self, purged: Purged) -> None:
        """Forget undo data that no file has yet."""
        for number, parts in enumerate(self.unsaved):
            if lines := parts.get(UNDO):
                heads = audit_file.undo_heads(lines.splitlines())
                left = (purged.left_of(head.seq, each) for head, each in heads)
                self.unsaved[number] = {**parts, UNDO: b"".join(each + b"\n" for each in left if each is not None)}

    def sync(self, *names: str) -> None:
        """Make durable what was written without waiting for the disk."""
        for name in names:
            file = AppendOnly(self.fileset.paths[name])
            try:
                if file.open():
                    file.sync()
            finally:
                file.close()

    # The audit log

    def last_entry(self, staging: Staging | None) -> Last:
        if staging is not None and (lines := staging.lines(AUDIT)):
            return audit_file.last_of(lines[-1])
        for parts in reversed(self.unsaved):
            if logged := parts.get(AUDIT):
                return audit_file.last_of(logged)
        return self.audit.last()

    def append_entry(self, staging: Staging, entry: Entry, undo: Undo) -> Entry:
        entry, logged = audit_file.sealed_line(entry, self.last_entry(staging))
        staging.add(AUDIT, logged)
        if any(undo):
            # Where files are written anew after each deletion, the lines of what was deleted leave the log at once.
            stones = [tombstone(each) for each in ([] if self.format.rewrites else staging.lines(TOMBSTONES))]
            tombs = {stone.id: stone.version for stone in stones if stone.version is not None}
            staging.add(UNDO, line(UndoLine.of(entry.seq, entry.at, undo, tombs)))
        return entry

    def entries(
        self, staging: Staging | None, contains: Sequence[str], about: str, newest_first: bool, limit: int | None
    ) -> Iterator[Entry]:
        return audit_file.entries(self._lines(AUDIT, staging), contains, about, newest_first, limit)

    def stored_by_audit(self) -> dict[str, bool]:
        """Of each memory that the audit log names, whether it was stored last, or deleted."""
        return audit_file.last_changes(self._lines(AUDIT, None))

    def _lines(self, name: str, staging: Staging | None) -> list[bytes]:
        more = staging.lines(name) if staging else []
        return self.audit.lines(name, *(parts.get(name, b"") for parts in self.unsaved), *more)

    def _undo_lines(self, staging: Staging | None, saved_only: bool = False) -> list[tuple[UndoHead, bytes]]:
        purged = self.undropped | (staging.purged if staging else Purged())
        heads = audit_file.undo_heads(self.audit.lines(UNDO) if saved_only else self._lines(UNDO, staging))
        left = ((head, purged.left_of(head.seq, each)) for head, each in heads)
        return [(head, each) for head, each in left if each is not None]

    def undo_of(self, staging: Staging | None, seq: int) -> Undo | None:
        def read() -> list[UndoLine]:
            if staging is None and not self.unsaved and not any(self.undropped):
                undo = self.audit.undo_line(seq)
                return [] if undo is None else [undo]
            return [undo_line(line) for head, line in self._undo_lines(staging) if head.seq == seq]

        return next((undo for _, undo in self._whole(read, staging)), None)

    def undos(self, staging: Staging | None) -> list[tuple[int, Undo]]:
        return self._whole(lambda: [undo_line(line) for _, line in self._undo_lines(staging)], staging)

    def _whole(self, read: Callable[[], list[UndoLine]], staging: Staging | None) -> list[tuple[int, Undo]]:
        """Undo data with the memories whose lines are in the log. What somebody has taken out of it is left out."""
        for _ in range(_TRIES):
            was = self.fileset.identity(UNDO)
            lines = read()
            whole = [line.with_records(self._buried(lines, staging)) for line in lines]
            # Whoever writes the log anew first moves these memories into the undo data: then it is read once more.
            if None not in whole or self.fileset.identity(UNDO) == was:
                return [(line.seq, line.undo()) for line in whole if line is not None]
        raise StoreError(f"{self.fileset.folder} is written anew as often as it is read")

    def _buried(self, lines: Sequence[UndoLine], staging: Staging | None = None) -> dict[Buried, Record]:
        wanted = [buried for line in lines for buried in line.buried]
        return read_buried(self.place, self.format, wanted, lambda name: self._lines(name, staging))

    def unbury(self, *, saved: bool = True) -> None:
        """Before lines of deleted memories go: move the memories into the undo data that tells of them.

        Without `saved`, only in what no file has yet.
        """
        parts = [part for part in self.unsaved if UNDO in part]
        stored = [line for _, line in self._undo_lines(None, saved_only=True)] if saved else []
        lines = [undo_line(each) for part in parts for each in part[UNDO].splitlines()]
        lines += map(undo_line, stored)
        if not any(line.buried for line in lines):
            return
        records = self._buried(lines)

        def moved(data: Iterable[bytes]) -> bytes:
            each = ((undo, undo.with_records(records)) for undo in map(undo_line, data))
            return b"".join(line(whole or undo) for undo, whole in each)

        self.unsaved = [
            {**part, UNDO: moved(part[UNDO].splitlines())} if UNDO in part else part for part in self.unsaved
        ]
        if stored:
            files.replace(self.fileset.paths[UNDO], moved(stored))

    def undo_sizes(self, staging: Staging | None) -> list[UndoSize]:
        return [UndoSize(head.seq, head.at, len(line) + head.more_bytes) for head, line in self._undo_lines(staging)]

    def purge(self, staging: Staging, seqs: Collection[int] | None, names: Collection[str]) -> int:
        lines = self._undo_lines(staging)
        whole = [head.seq for head, _ in lines] if seqs is None else seqs
        purged = Purged(frozenset(whole), frozenset(names))
        staging.purged |= purged
        return sum(purged.left_of(head.seq, each) != each for head, each in lines)
