"""Stores of plain files: the log of each place is the truth, and an SQLite index beside it answers what is asked."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from recollect.stores.audit import Entry, UndoSize
from recollect.stores.files import aside, files, unsaved
from recollect.stores.files.copying import copy
from recollect.stores.files.fileset import AUDIT, INDEX_FILE, SHELVES, VECTORS
from recollect.stores.files.index import PlaceIndex
from recollect.stores.files.lines import Shelved, line
from recollect.stores.files.log import Log, tell
from recollect.stores.files.log_reader import remove_index
from recollect.stores.files.metrics import QUERY, Meter
from recollect.stores.files.rewriting import compact
from recollect.stores.files.staging import Staging
from recollect.stores.paths import TRASH, empty_trash, path_exists
from recollect.stores.port import Damage, Place
from recollect.stores.resident import columns_path
from recollect.stores.shelves import ShelfItem
from recollect.stores.sqlite.opening import create, moves
from recollect.stores.sqlite.place_file import SOON
from recollect.stores.sqlite.places import SqlitePlaces
from recollect.stores.touches import Touches
from recollect.stores.transactions import StaleFileError, Transaction
from recollect.stores.undo import NO_UNDO, Undo, document_name
from recollect.stores.write_timer import timer
from recollect.values.errors import (
    ConcurrencyError,
    CorruptionError,
    ReadOnlyError,
    RecollectError,
    SchemaError,
    StoreError,
)
from recollect.values.record import Record, new_id, utc_now

if TYPE_CHECKING:
    from recollect.stores.shortlist import Ask, Shortlist

_TRIES = 3
_MOST_TOUCHES = 100_000
"""Retrievals that are counted before they are written ahead of their time: a query may return thousands of entries."""


class Layout(Protocol):
    """Where the files of each place are."""

    root: str

    @property
    def own_folder(self) -> str:
        """A folder of the whole store's own."""
        ...

    def path(self, place: Place) -> str:
        """The folder of a place."""
        ...

    def parts(self, place: Place) -> list[str]:
        """All that belongs to a place and to no other, the lock's folder last."""
        ...

    def beside(self, place: Place) -> list[str]:
        """What people have set for it, outside of that."""
        ...

    def make(self, place: Place, meter: Meter) -> Log: ...

    def places(self, tenant: str) -> list[Place]: ...

    def tenants(self) -> list[str]: ...

    def starting(self) -> None:
        """Before a write."""
        ...

    def check_format(self, place: Place) -> None:
        """SchemaError if a later version has written to a place."""
        ...

    def write_format(self, place: Place) -> None:
        """Write the number of the format beside a new place."""
        ...


class FileStore(SqlitePlaces[PlaceIndex]):
    """Keeps each place in files of its own. Any number of processes and threads may share the folder."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.meter = Meter()
        self.clock: Callable[[], datetime] = utc_now
        """Where the times in files come from."""
        self._logs: dict[Place, Log] = {}
        self.settling = threading.RLock()
        """Held by the thread that writes what was put off: whoever closes the store waits for it."""
        super().__init__(layout.own_folder)

    def after_fork(self) -> None:
        """What the parent's threads were doing is theirs to finish."""
        for log in self._logs.values():
            log.appender.abandon()
        self._logs = {}
        self.settling = threading.RLock()
        super().after_fork()

    # Opening

    def path(self, place: Place) -> str:
        return self.log(place).fileset.path(INDEX_FILE)

    def log(self, place: Place) -> Log:
        log = self._logs.get(place)
        if log is None:
            log = self._layout.make(place, self.meter)
            log.now = lambda: self.clock()
            log.defer = self.defer
            log.retry = lambda: self._save_unsaved(place)
            log = self._logs.setdefault(place, log)
        return log

    def _open(self, place: Place, new: bool) -> PlaceIndex | None:
        log = self.log(place)
        if not new and not log.fileset.exists():
            return None
        self._layout.check_format(place)
        seconds = log.config.performance.batch_write_interval_ms / 1000
        touches = self.touches.setdefault(place, Touches(_MOST_TOUCHES, seconds))
        path = log.fileset.path(INDEX_FILE)
        if not os.access(log.fileset.folder, os.W_OK):
            log.refuse_index(forever=True)
        for _ in range(_TRIES):
            if log.index_refused:
                break
            try:
                create(path)
                return PlaceIndex(path, place, touches, log, in_memory=False)
            except StaleFileError:
                continue
            except (CorruptionError, SchemaError):  # it can be made anew at any time
                remove_index(path)
            except StoreError:
                log.refuse_index()
        log.refuse_index()
        return PlaceIndex(f"{path} {new_id()}", place, touches, log, in_memory=True)

    def _put_away(self, handle: PlaceIndex) -> None:
        super()._put_away(handle)
        self._forget_log(handle.place)

    def _forget_log(self, place: Place) -> None:
        """If it is not open, and nothing is left to be written of it."""
        log = self._logs.get(place)
        if log is not None and place not in self._handles and not log.unsaved and not self._is_behind(place):
            self._logs.pop(place, None)
            self.touches.pop(place, None)

    def _create(self, place: Place) -> None:
        files.make_folder(self.log(place).fileset.folder)
        self._layout.write_format(place)

    def starting(self) -> None:
        super().starting()
        self._layout.starting()

    def turn(self, place: Place, operation: str, seconds: float | None = None) -> Transaction[PlaceIndex]:
        """A transaction under another name in the lock's note."""
        if place not in self.inside():
            self.log(place).operation = operation
        return Transaction(self, (place,), 1, seconds=seconds)

    # Memories

    def get(self, place: Place, ids: Sequence[str]) -> list[Record]:
        """Those that were used last are cached, as the ledger document has it."""
        if place in self.inside():
            return super().get(place, ids)
        records = self._read(place, lambda index: index.cached(ids), [])
        touches = self.touches.get(place)
        return [touches.onto(record) for record in records] if touches else records

    def search(self, ask: Ask) -> list[Shortlist]:
        with self.meter.timed(QUERY):
            return super().search(ask)

    def touch(self, place: Place, ids: Sequence[str], at: datetime) -> None:
        with suppress(StoreError, OSError):
            self._read(place, lambda index: index.touch(ids, at), None)
            self.defer()

    def defer(self) -> None:
        """Have `settle` called in a while, and when the process ends."""
        timer.schedule(self)

    def settle(self) -> bool:
        """Write what was put off in all places. False if some could not be written."""
        with self.settling:
            waiting = [place for place in list(self._logs) if self._is_behind(place)]
            for place in waiting:
                self._settle(place)
                self._forget_log(place)
            return not any(map(self._is_behind, waiting))

    def _is_behind(self, place: Place) -> bool:
        """Whether counted retrievals or the files derived from the log are yet to be written."""
        log = self._logs.get(place)
        session = log.session if log else None
        return bool(self.touches.get(place)) or (session is not None and session.behind)

    def _settle(self, place: Place, seconds: float = SOON, *, durable: bool = False) -> None:
        """Write the counted retrievals, and the files of a session that are derived from its log.

        Under the lock, so that of two processes the one that writes last has read everything. Whoever does not get the
        lock leaves it to the process that has it, which writes these files after what was stored until then.
        """
        log = self.log(place)
        try:
            if self.touches.get(place) and log.fileset.exists():
                with self.turn(place, "touch", SOON):
                    pass
        except (RecollectError, OSError) as error:
            level = logging.WARNING if isinstance(error, ConcurrencyError) else logging.ERROR
            tell(place, level, "retrievals not counted yet", problem=str(error))
        session = log.session
        if session is None:
            return
        try:
            if self._read(place, lambda index: session.should_write_snapshots(index, durable=durable), False):
                with self.turn(place, "snapshot", seconds) as index:
                    session.write_snapshots(index, durable=durable)
        except (RecollectError, OSError) as error:  # nothing is lost: the log has it all
            tell(place, logging.WARNING, "snapshots not written yet", problem=str(error))

    def places(self, tenant: str) -> list[Place]:
        return self._layout.places(tenant)

    def tenants(self) -> list[str]:
        return self._layout.tenants()

    def drop(self, place: Place) -> None:
        parts = self._layout.parts(place)
        if place.workspace is None or not any(map(path_exists, parts)):
            return
        trash = os.path.join(os.path.dirname(parts[0]), TRASH + new_id())
        with suppress(_GoneError), self.turn(place, "drop") as index:
            try:
                os.mkdir(trash, files.PRIVATE_FOLDER)
                with moves.moving(index.path):
                    for number, part in enumerate(parts):
                        with suppress(FileNotFoundError):
                            os.rename(part, os.path.join(trash, str(number)))
            except OSError as error:
                raise StoreError(f"workspace {place.workspace} could not be removed: {error.strerror}") from error
            finally:
                index.log.unsaved.clear()
            raise _GoneError  # there is nothing left to write to
        self.touches.pop(place, None)
        self._logs.pop(place, None)
        if (open_index := self._handles.get(place)) is not None:
            self.discard(place, open_index)
        empty_trash(os.path.dirname(parts[0]))

    # The audit log

    def append(self, place: Place, entry: Entry, undo: Undo = NO_UNDO) -> Entry:
        with self.writing(place) as index:
            return index.log.append_entry(index.staging, entry, undo)

    def entries(
        self,
        place: Place,
        *,
        contains: Sequence[str] = (),
        about: str = "",
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Entry]:
        return self._log_read(place).entries(self._staged(place), contains, about, newest_first, limit)

    def _log_read(self, place: Place) -> Log:
        """The log of a place, once what killed processes have left is seen to."""
        if place not in self._handles and not self.inside():
            self.intents.finish_left()
        return self.log(place)

    def _staged(self, place: Place) -> Staging | None:
        index = self.inside().get(place)
        return index.own_staging() if index is not None else None

    def written(self, place: Place) -> int:
        written = self._log_read(place).last_entry(self._staged(place))[0]
        if not written or place in self.inside():
            return written
        return self._read(place, lambda index: index.entries_shown(written), written)

    def undo_of(self, place: Place, seq: int) -> Undo | None:
        return self._log_read(place).undo_of(self._staged(place), seq)

    def undo_sizes(self, place: Place) -> list[UndoSize]:
        return self._log_read(place).undo_sizes(self._staged(place))

    def undos(self, place: Place) -> Iterator[tuple[int, Undo]]:
        return iter(self._log_read(place).undos(self._staged(place)))

    def purge(
        self,
        place: Place,
        *,
        seqs: Collection[int] | None = (),
        ids: Collection[str] = (),
        documents: Collection[tuple[str, str]] = (),
    ) -> int:
        if not self._exists(place) or not (seqs is None or seqs or ids or documents):
            return 0
        with self.writing(place) as index:
            names = [*ids, *(document_name(*each) for each in documents)]
            return index.log.purge(index.staging, seqs, names)

    def _exists(self, place: Place) -> bool:
        return place in self.inside() or self.log(place).fileset.exists()

    # Shelves

    def keep(self, place: Place, item: ShelfItem, *, expect: int | None = None, exact: bool = False) -> ShelfItem:
        with self.writing(place) as index:
            stored = super().keep(place, item, expect=expect, exact=exact)
            index.staging.add(SHELVES, line(Shelved.of(stored)))
        return stored

    def remove(self, place: Place, shelf: str, keys: Sequence[str]) -> int:
        if not self._exists(place):
            return 0
        with self.writing(place) as index:
            for item in self.find(place, shelf, keys):
                index.staging.add(SHELVES, line(Shelved(shelf, item.key, removed=True)))
            return super().remove(place, shelf, keys)

    # On disk

    def opened_at(self) -> str:
        return self._layout.root

    def size(self, place: Place) -> int:
        return self.log(place).fileset.size()

    def unsaved(self, place: Place) -> int:
        log = self._logs.get(place)
        return len(log.unsaved) if log else 0

    def _save_unsaved(self, place: Place) -> None:
        """Once more, if there is any."""
        if self.log(place).unsaved:
            with self.turn(place, "recover"):
                pass

    def scrub(self, place: Place, erased: Collection[str] = ()) -> int:
        self._read(place, lambda index: index.purge_unsaved(), None)
        self._compact(place, erased)
        self._read(place, self._scrub_index, None)
        self._settle(place, self.log(place).config.patience.timeout, durable=True)
        return aside.count(self.log(place).fileset)

    def _scrub_index(self, index: PlaceIndex) -> None:
        """Leave no trace in it of what is gone from the log."""
        self.residents.drop(index)
        if not index.in_memory:
            index.checkpoint()
            columns_path.remove(index.path)
            return
        path = self.path(index.place)  # one that others made, or that this process could not write any more
        remove_index(path)
        columns_path.remove(path)
        if os.path.exists(path):
            raise ReadOnlyError(f"{path} cannot be removed by this process, and may hold what was erased. Remove it")

    def compact(self, place: Place) -> int:
        freed = self._compact(place)
        self._read(place, self._shrink_index, None)
        return freed

    def _shrink_index(self, index: PlaceIndex) -> None:
        """Leave no trace in it of what is gone from the log, and give unused space back.

        While another process reads older data that waits for the next time: the log is compacted, and that is what
        counts.
        """
        try:
            self._scrub_index(index)
            if not index.in_memory:
                index.vacuum()
        except ConcurrencyError as error:
            tell(index.place, logging.WARNING, "index not compacted yet", problem=str(error))

    def _compact(self, place: Place, erased: Collection[str] = ()) -> int:
        if not self.log(place).fileset.exists():
            return 0
        empty_trash(os.path.dirname(self._layout.parts(place)[0]))
        with self.turn(place, "compact") as index:
            return self._compacted(index, erased)

    def _compacted(self, index: PlaceIndex, erased: Collection[str] = ()) -> int:
        log = index.log
        index.unstage_touches()
        log.drop_undo()
        freed = compact(index, erased)
        if log.unsaved:  # there may be room now
            index.write_unsaved()
        return freed

    def damage(self, place: Place) -> list[Damage]:
        return self._read(place, lambda index: index.damage(), [])

    def copy(self, place: Place, folder: str) -> None:
        log, layout = self.log(place), self._layout
        if log.fileset.exists():
            copy(log, self.turn(place, "backup"), [*layout.parts(place), *layout.beside(place)], layout.root, folder)

    def close(self) -> None:
        with self.settling:
            self._close()

    def _close(self) -> None:
        self.residents.finish()
        try:
            self._write_all(list(self._logs))
        finally:
            with self._lock:
                handles = list(self._handles.values())
                self._handles.clear()
            self.residents.clear()
            for index in handles:
                index.settle()
                index.close()
            self._logs = {}
            timer.forget(self)

    def _write_all(self, places: Sequence[Place]) -> None:
        """Write what was put off. StoreError says what could not be written."""
        problems = [problem for place in places if (problem := self._write_put_off(place))]
        if left := [log for place in places if (log := self.log(place)).unsaved]:
            raise StoreError(unsaved.lost(left))
        if problems:
            raise StoreError(problems[0])

    def _write_put_off(self, place: Place) -> str:
        """What could not be written, or nothing."""
        log, problem = self.log(place), ""
        try:
            self._save_unsaved(place)
            self._settle(place, log.config.patience.timeout, durable=True)
        except RecollectError as error:
            problem = str(error)
        if log.unsaved:
            problem = problem or log.unsaved_because
        try:  # what followed without waiting is durable on close
            log.sync(AUDIT, VECTORS)
        except (OSError, StoreError) as error:
            tell(place, logging.ERROR, "audit log not made durable", problem=str(error))
        if log.wrote and log.session is None:
            log.audit.note()
        return problem


class _GoneError(StoreError):
    """What a transaction ends with where there is nothing left to write to."""


def holds_something(*paths: str) -> bool:
    return any(files.identity(path).size for path in paths)
