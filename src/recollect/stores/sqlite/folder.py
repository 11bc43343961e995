"""The SQLite folder: one file per workspace, one per tenant for what its accounts share."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from recollect.runtime import forking, imports
from recollect.stores.audit import GENESIS, Entry
from recollect.stores.intents import Intents
from recollect.stores.paths import (
    TRASH,
    check_apart,
    empty_trash,
    folder_name,
    names_in,
    open_files,
    perhaps,
    there,
    unreadable,
)
from recollect.stores.port import NO_SETTINGS, Damage, Place, Settings
from recollect.stores.resident.cache import Copies
from recollect.stores.scope import end_left
from recollect.stores.sqlite.memories import SOON, Memories
from recollect.stores.sqlite.opening import ADVICE, BUSY_SECONDS, MovedError, create, moves
from recollect.stores.sqlite.rows import DIALECT
from recollect.stores.sqlite.transaction import Writing
from recollect.stores.tables.audit import AuditTable
from recollect.stores.tables.engine import Rows, Statement, What
from recollect.stores.tables.memories import MemoryTable, prove_speakers, unprove_speakers
from recollect.stores.tables.shelves import ShelfTable
from recollect.stores.touches import Touches
from recollect.stores.write_timer import timer
from recollect.values.errors import CorruptionError, StoreError
from recollect.values.record import Record, new_id

if TYPE_CHECKING:
    from recollect.stores.shortlist import Ask, Shortlist
    from recollect.stores.sqlite.resident import Resident

_WRITTEN = "SELECT seq FROM sqlite_sequence WHERE name = 'audit'"
# Not the last entry's number: where that one was removed, its place stays empty and is missed.
_LAST = f"SELECT coalesce(({_WRITTEN}), 0), coalesce((SELECT hash FROM audit ORDER BY seq DESC LIMIT 1), '{GENESIS}')"
_FILES_EACH = 8
"""That one place keeps open: two for each connection, and one that they share."""
_TRIES = 100
"""How often a read begins anew."""


class SqliteFolder(MemoryTable, AuditTable, ShelfTable):
    """Isolation by files: `root/<tenant>/account.db` and `root/<tenant>/workspaces/<workspace>/memory.db`.

    Any number of processes and threads may share the folder. A file is opened when it is first used.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).absolute()
        self.tables = self
        self.intents = Intents(self.root)
        self._forget_handles()
        forking.watch(self)

    def _forget_handles(self) -> None:
        self._lock = threading.Lock()
        self._handles: OrderedDict[Place, Memories] = OrderedDict()
        self.touches: dict[Place, Touches] = {}
        self._most = open_files() // _FILES_EACH
        self.residents: Copies[Memories, Resident] = Copies()
        self._alive: weakref.WeakSet[Memories] = weakref.WeakSet()
        self._may_open = threading.Event()
        self._may_open.set()
        self.thread = _Thread()
        """What is open in each."""

    def after_fork(self) -> None:
        """In a forked child: what could not be closed before must not be used there, nor closed."""
        _abandoned.extend(self._alive)
        _abandoned.append(self.residents)
        self._forget_handles()

    # Opening

    def _path(self, place: Place) -> str:
        tenant = f"{self.root}/{folder_name(place.tenant)}"
        if place.workspace is None:
            return f"{tenant}/account.db"
        return f"{tenant}/workspaces/{folder_name(place.workspace)}/memory.db"

    def inside(self) -> dict[Place, Memories]:
        """The places in which this thread has a transaction open."""
        end_left()
        return self.thread.places

    def discard(self, place: Place, handle: Memories) -> None:
        with self._lock:
            if self._handles.get(place) is handle:
                del self._handles[place]
        self.residents.drop(handle)
        handle.close()

    def _recent(self, place: Place) -> Memories | None:
        """As `_existing`, but without asking the file system each time. Reading may raise MovedError."""
        if (handle := self._handles.get(place)) and handle.fresh() and not self.inside():
            return handle
        return self._existing(place)

    def _existing(self, place: Place, new: bool = False) -> Memories | None:
        """The open file for a place, or None where nothing was ever stored. A new one is still empty."""
        if handle := self.inside().get(place):
            return handle
        if not self._may_open.is_set() and not self.inside():
            self._may_open.wait()
        if place not in self._handles and not self.inside():
            self.intents.finish_left()
        going: list[Memories] = []
        try:
            with self._lock:
                handle = self._handles.get(place)
                if handle and not handle.current():
                    going.append(self._handles.pop(place))
                    handle = None
                if handle is None and (handle := self._open(place, new)):
                    self._handles[place] = handle
                    self._alive.add(handle)
                    going += self._idle(len(self._handles) - self._most)
                elif handle:
                    self._handles.move_to_end(place)
        finally:
            for gone in going:
                self.residents.drop(gone)
                gone.settle(0.0)
                gone.close()
        return handle

    def _idle(self, excess: int) -> list[Memories]:
        """Of those not used for longest so many, which are closed then."""
        idle = [place for place, handle in list(self._handles.items())[:-1] if not handle.busy]
        return [self._handles.pop(place) for place in idle[: max(0, excess)]]

    def _open(self, place: Place, new: bool) -> Memories | None:
        path = self._path(place)
        while there(path) if new else _used(path):
            with suppress(MovedError):  # dropped by another process, and perhaps begun anew
                return Memories(path, place, self.touches.setdefault(place, Touches()))
        return None

    def creating(self, place: Place) -> Memories:
        handle = self._recent(place)
        while handle is None:
            with suppress(MovedError):  # dropped by another process between two of our steps
                create(self._path(place))
            handle = self._existing(place, new=True)
        return handle

    def _read(self, place: Place, read: Callable[[Memories], _T], nothing: _T) -> _T:
        """Once more where a workspace was dropped, or its file closed by a fork or for others, while it was read."""
        try:
            handle = self._recent(place)
            return nothing if handle is None else read(handle)
        except MovedError:
            pass
        for _ in range(_TRIES):
            handle = self._existing(place)
            try:
                return nothing if handle is None else read(handle)
            except MovedError:
                continue
        raise MovedError

    # Memories

    def transaction(self, *places: Place) -> Writing:
        return Writing(self, places)

    def put(self, place: Place, records: Sequence[Record]) -> Sequence[Record]:
        with Writing(self, (place,), len(records)) as handle:
            handle.put(records)
            self.run(place, prove_speakers(self, place, records))
        return records

    def update(self, place: Place, records: Sequence[Record]) -> None:
        with Writing(self, (place,)) as handle:
            handle.update(records)

    def delete(self, place: Place, ids: Sequence[str], reason: str = "") -> None:
        with Writing(self, (place,)) as handle:
            self.run(place, unprove_speakers(self, place, handle.delete(ids)))

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
        return [answer for answer in answers if answer is not None and answer.block.size]

    def _resident(self, place: Place, ask: Callable[[Resident], _T], nothing: _T) -> _T:
        """What the copy of a place answers."""
        imports.load("recollect.stores.sqlite.resident")
        from recollect.stores.sqlite.resident import Resident

        def read(handle: Memories) -> _T:
            if handle.inside:
                return ask(Resident(handle))
            answer = ask(self.residents.get(handle, lambda: Resident(handle)))
            self.residents.make_room()
            return answer

        return self._read(place, read, nothing)

    def embed(self, place: Place, model: str, vectors: Mapping[str, bytes]) -> None:
        if vectors and self._existing(place):
            with Writing(self, (place,), durable=False, seconds=SOON) as handle:
                handle.embed(model, vectors)

    def places(self, tenant: str) -> list[Place]:
        folder = self.root / folder_name(tenant) / "workspaces"
        places = [*(Place(tenant, name) for name in names_in(folder)), Place(tenant, None)]
        return [place for place in places if perhaps(lambda place: _used(self._path(place)), place)]

    def drop(self, place: Place) -> None:
        if place.workspace is None or not (self.inside().get(place) or _used(self._path(place))):
            return
        with Writing(self, (place,)) as handle:
            folder = Path(handle.path).parent
            handle.dismiss()
            try:
                with moves.moving(handle.path):
                    os.rename(folder, folder.with_name(TRASH + new_id()))
            except OSError as error:
                raise StoreError(f"workspace {place.workspace} could not be removed: {error.strerror}") from error
        self.discard(place, handle)
        empty_trash(folder.parent)

    # The audit log and the shelves are in `stores/tables`, over these.

    dialect = DIALECT

    def rows(self, place: Place, sql: str, values: Sequence[Any] = ()) -> Rows:
        return self._read(place, lambda handle: handle.rows(sql, values), [])

    def writing(self, place: Place) -> Writing:
        return Writing(self, (place,), 1)

    def run(
        self,
        place: Place,
        statements: Sequence[Statement],
        what: What = "memory",
        keys: Iterable[Sequence[Any]] = (),
        wait: bool = True,
    ) -> list[Rows]:
        execute = self.inside()[place].writer.execute
        return [execute(statement.sql, statement.values).fetchall() for statement in statements]

    def last_entry(self, place: Place) -> tuple[int, str]:
        return self.inside()[place].writer.execute(_LAST).fetchone() or (0, GENESIS)

    def appended(self, place: Place, entry: Entry) -> None:
        self.inside()[place].appended(entry)

    def next_item(self, place: Place) -> None:
        """The table counts by itself."""

    def unreadable(self, place: Place, what: str, error: Exception) -> CorruptionError:
        return CorruptionError(f"{self._path(place)} is damaged: {what} cannot be read ({error}). {ADVICE}")

    def written(self, place: Place) -> int:
        rows = self.rows(place, _WRITTEN)
        return rows[0][0] if rows else 0

    # On disk

    def settings(self, place: Place) -> Settings:
        return NO_SETTINGS

    def size(self, place: Place) -> int:
        return self._read(place, lambda handle: handle.size(), 0)

    def unsaved(self, place: Place) -> int:
        return 0

    def crowded(self, place: Place) -> bool:
        return False

    def scrub(self, place: Place, erased: Collection[str] = ()) -> int:
        def scrubbed(handle: Memories) -> int:
            self.residents.drop(handle)
            handle.settle()
            handle.checkpoint()
            return 0  # a damaged memory is a row, which can be deleted as others are

        return self._read(place, scrubbed, 0)

    def compact(self, place: Place) -> int:
        def compacted(handle: Memories) -> int:
            self.residents.drop(handle)
            return handle.compact()

        empty_trash(self.root / folder_name(place.tenant) / "workspaces")
        return self._read(place, compacted, 0)

    def damage(self, place: Place) -> list[Damage]:
        try:
            return self._read(place, lambda handle: handle.damage(), [])
        except CorruptionError as error:
            return [Damage(self._path(place), str(error))]

    def copy(self, place: Place, folder: str) -> None:
        path = SqliteFolder(folder)._path(place)
        create(path)
        self._read(place, lambda handle: handle.copy(path), None)

    def elsewhere(self, folder: str) -> SqliteFolder:
        return SqliteFolder(folder)

    def check_apart(self, folder: str) -> None:
        check_apart(folder, str(self.root))

    def tenants(self) -> list[str]:
        return names_in(self.root)

    def opened_at(self) -> str:
        return str(self.root)

    def close(self) -> None:
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
        mine = self.inside().values()
        # Whoever is in a transaction may open what it takes to finish that. Nobody else may begin.
        self._may_open.clear()
        while True:
            with self._lock:
                alive = [handle for handle in self._alive if handle not in mine]
            for handle in alive:
                handle.settle(0.0)
                handle.close()
            self.residents.clear()
            closed = [handle.close(max(deadline - time.monotonic(), 0.0)) for handle in alive]
            self._lock.acquire()
            if time.monotonic() > deadline or (all(closed) and not (set(self._alive) - {*alive, *mine})):
                return
            self._lock.release()

    def resume(self) -> None:
        self._may_open.set()
        self._lock.release()


class _Thread(threading.local):
    def __init__(self) -> None:
        self.places: dict[Place, Memories] = {}
        self.depth = 0


_T = TypeVar("_T")
_abandoned: list[object] = []


def _used(path: str) -> bool:
    """Whether anything was ever stored there: an empty file is left where the disk was full."""
    try:
        return os.path.getsize(path) > 0
    except FileNotFoundError:
        return False
    except OSError as error:
        raise unreadable(error, path) from error
