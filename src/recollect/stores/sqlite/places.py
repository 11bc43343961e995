"""Places that are SQLite files: open handles, reading, transactions and forks, for every store that has them."""

from __future__ import annotations

import threading
import time
import weakref
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from recollect.runtime import forking, imports
from recollect.stores.intents import Intents
from recollect.stores.paths import open_files
from recollect.stores.port import Place
from recollect.stores.resident.cache import ResidentCache
from recollect.stores.scope import end_left
from recollect.stores.sqlite.opening import ADVICE, BUSY_SECONDS
from recollect.stores.sqlite.place_file import SOON, PlaceFile
from recollect.stores.sqlite.rows import DIALECT
from recollect.stores.tables.engine import Rows, Statement, What
from recollect.stores.tables.memories import MemoryTable
from recollect.stores.tables.shelves import ShelfTable
from recollect.stores.touches import Touches
from recollect.stores.transactions import StaleFileError, ThreadState, Transaction
from recollect.stores.write_timer import timer
from recollect.values.errors import CorruptionError, StoreError
from recollect.values.record import Record

if TYPE_CHECKING:
    from recollect.stores.shortlist import Ask, Shortlist
    from recollect.stores.sqlite.resident import Resident

_TRIES = 100
"""How often a read begins anew."""
_T = TypeVar("_T")
H = TypeVar("H", bound=PlaceFile)


class SqlitePlaces(MemoryTable, ShelfTable, Generic[H]):
    """Any number of processes and threads may share the files. A file is opened when it is first used."""

    def __init__(self, own_folder: str) -> None:
        self.tables = self
        self.intents = Intents(own_folder)
        self._forget_handles()
        forking.watch(self)

    @abstractmethod
    def path(self, place: Place) -> str:
        """Of the file of a place."""

    @abstractmethod
    def _open(self, place: Place, new: bool) -> H | None:
        """None where nothing was ever stored; a `new` one is still empty."""

    @abstractmethod
    def _create(self, place: Place) -> None:
        """Make the file of a place where there is none."""

    def starting(self) -> None:
        """Called before a thread takes the first lock of a transaction."""
        self.intents.finish_left()

    def _forget_handles(self) -> None:
        self._lock = threading.Lock()
        self._handles: OrderedDict[Place, H] = OrderedDict()
        self.touches: dict[Place, Touches] = {}
        self.residents: ResidentCache[H, Resident] = ResidentCache()
        self._alive: weakref.WeakSet[H] = weakref.WeakSet()
        self._may_open = threading.Event()
        self._may_open.set()
        self.thread: ThreadState[H] = ThreadState()
        """What is open in each."""

    def after_fork(self) -> None:
        """In a forked child: what could not be closed before must not be used there, nor closed."""
        _abandoned.extend(self._alive)
        _abandoned.append(self.residents)
        self._forget_handles()

    # Opening

    def inside(self) -> dict[Place, H]:
        """The places in which this thread has a transaction open."""
        end_left()
        return self.thread.places

    def discard(self, place: Place, handle: H) -> None:
        with self._lock:
            if self._handles.get(place) is handle:
                del self._handles[place]
        self.residents.drop(handle)
        handle.close()

    def _recent(self, place: Place) -> H | None:
        """As `_existing`, but without asking the file system each time. Reading may raise StaleFileError."""
        inside = self.inside()
        if (handle := inside.get(place)) or (
            not inside and (handle := self._handles.get(place)) is not None and handle.fresh()
        ):
            return handle
        return self._existing(place)

    def _existing(self, place: Place, new: bool = False) -> H | None:
        """The open file for a place, or None where nothing was ever stored. A new one is still empty."""
        inside = self.inside()
        if handle := inside.get(place):
            return handle
        if not inside:
            if not self._may_open.is_set():
                self._may_open.wait()
            if place not in self._handles:
                self.intents.finish_left()
        going: list[H] = []
        try:
            with self._lock:
                handle = self._handles.get(place)
                if handle and not handle.current():
                    going.append(self._handles.pop(place))
                    handle = None
                if handle is None and (handle := self._open(place, new)):
                    self._handles[place] = handle
                    self._alive.add(handle)
                    going += self._pop_idle()
                elif handle:
                    self._handles.move_to_end(place)
        finally:
            for gone in going:
                self._put_away(gone)
        return handle

    def _put_away(self, handle: H) -> None:
        """Close a handle that is in use no longer. What it has put off is written, or waits for the next one."""
        self.residents.drop(handle)
        handle.settle(0.0)
        handle.close()

    def _pop_idle(self) -> list[H]:
        """Pops the least recently used idle handles while too many files are open; the caller closes them."""
        excess = sum(handle.open_files for handle in self._handles.values()) - open_files()
        idle: list[Place] = []
        for place, handle in list(self._handles.items())[:-1]:
            if excess <= 0:
                break
            if not handle.busy:
                idle.append(place)
                excess -= handle.open_files
        return [self._handles.pop(place) for place in idle]

    def creating(self, place: Place) -> H:
        handle = self._recent(place)
        while handle is None:
            with suppress(StaleFileError):  # dropped by another process between two of our steps
                self._create(place)
            handle = self._existing(place, new=True)
        return handle

    def _read(self, place: Place, read: Callable[[H], _T], nothing: _T) -> _T:
        """Once more where a workspace was dropped, or its file closed by a fork or for others, while it was read."""
        try:
            handle = self._recent(place)
            if handle is None:
                return nothing
            handle.refresh()
            return read(handle)
        except StaleFileError:
            pass
        for _ in range(_TRIES):
            try:
                handle = self._existing(place)
                if handle is None:
                    return nothing
                handle.refresh()
                return read(handle)
            except StaleFileError:
                continue
        raise StaleFileError

    # PlaceFile

    def transaction(self, *places: Place) -> Transaction[H]:
        return Transaction(self, places)

    def put(self, place: Place, records: Sequence[Record]) -> Sequence[Record]:
        with self.writing(place) if len(records) == 1 else Transaction(self, (place,)) as handle:
            return handle.put(records)

    def update(self, place: Place, records: Sequence[Record]) -> None:
        with Transaction(self, (place,)) as handle:
            handle.update(records)

    def delete(self, place: Place, ids: Sequence[str], reason: str = "") -> None:
        with Transaction(self, (place,)) as handle:
            handle.delete(ids, reason)

    def touch(self, place: Place, ids: Sequence[str], at: datetime) -> None:
        with suppress(StoreError):
            self._read(place, lambda handle: handle.touch(ids, at), None)
            timer.schedule(self)

    def settle(self) -> bool:
        """Write the counted retrievals of all open files. False if some could not be written."""
        handles = list(self._handles.values())
        for handle in handles:
            with suppress(StoreError):
                handle.settle()
        return not any(handle.touches and not handle.closed for handle in handles)

    def search(self, ask: Ask) -> list[Shortlist]:
        answers = [
            self._resident(place, lambda resident: resident.search(ask), None) for place in Place.seen_by(ask.where)
        ]
        filled = [answer for answer in answers if answer is not None and answer.block.size]
        if (shelf := ask.beside) is None:
            return filled
        return [answer._replace(beside=list(self.shelf(answer.place, shelf))) for answer in filled]

    def _resident(self, place: Place, ask: Callable[[Resident], _T], nothing: _T) -> _T:
        """What the copy of a place answers."""
        imports.load("recollect.stores.sqlite.resident")
        from recollect.stores.sqlite.resident import Resident

        def read(handle: H) -> _T:
            if handle.inside:
                return ask(Resident(handle))
            answer = ask(self.residents.get(handle, lambda: Resident(handle)))
            self.residents.make_room()
            return answer

        return self._read(place, read, nothing)

    def embed(self, place: Place, model: str, vectors: Mapping[str, bytes]) -> None:
        if vectors and self._existing(place):
            with Transaction(self, (place,), durable=False, seconds=SOON) as handle:
                handle.embed(model, vectors)

    # What `stores/tables` are built on

    dialect = DIALECT

    def rows(self, place: Place, sql: str, values: Sequence[Any] = ()) -> Rows:
        return self._read(place, lambda handle: handle.rows(sql, values), [])

    def writing(self, place: Place) -> AbstractContextManager[H]:
        handle = self.inside().get(place)
        # A single step inside an open transaction takes nothing and leaves nothing, so it needs no scope of its own.
        return Transaction(self, (place,), 1) if handle is None else nullcontext(handle)

    def run(
        self,
        place: Place,
        statements: Sequence[Statement],
        what: What = "memory",
        keys: Iterable[Sequence[Any]] = (),
        wait: bool = True,
    ) -> list[Rows]:
        execute = self.thread.places[place].writer.execute
        return [execute(statement.sql, statement.values).fetchall() for statement in statements]

    def next_item(self, place: Place) -> None:
        """The table counts by itself."""

    def unreadable(self, place: Place, what: str, error: Exception) -> CorruptionError:
        return CorruptionError(f"{self.path(place)} is damaged: {what} cannot be read ({error}). {ADVICE}")

    def close(self) -> None:
        self.residents.finish()
        with self._lock:
            handles = list(self._handles.values())
            self._handles.clear()
        self.residents.clear()
        for handle in handles:
            handle.settle()
            handle.close()
        timer.forget(self)

    # Forks

    def before_fork(self) -> None:
        """Close every file, and open none until `resume`.

        SQLite believes that a child has the locks which only its parent holds. In files that both have open, one would
        then clear away what the other still writes to.
        """
        deadline = time.monotonic() + BUSY_SECONDS
        own_handles = self.inside().values()
        # Whoever is in a transaction may open what it takes to finish that. Nobody else may begin.
        self._may_open.clear()
        while True:
            with self._lock:
                alive = [handle for handle in self._alive if handle not in own_handles]
            for handle in alive:
                handle.settle(0.0)
                handle.close()
            self.residents.clear()
            closed = [handle.close(max(deadline - time.monotonic(), 0.0)) for handle in alive]
            self._lock.acquire()
            if time.monotonic() > deadline or (all(closed) and not (set(self._alive) - {*alive, *own_handles})):
                return
            self._lock.release()

    def resume(self) -> None:
        self._may_open.set()
        self._lock.release()


_abandoned: list[object] = []
