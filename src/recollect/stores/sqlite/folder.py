"""The SQLite folder: one file per workspace, one per tenant for what its accounts share."""

from __future__ import annotations

import os
import shutil
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from heapq import merge
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from recollect.errors import CorruptionError, StoreError
from recollect.filters import Filter
from recollect.record import Address, Record, new_id
from recollect.stores.audit import Entry
from recollect.stores.copies import Copies
from recollect.stores.port import NO_SETTINGS, Damage, Match, Place, Settings, StoreStats, by_place
from recollect.stores.sqlite.database import BUSY_SECONDS, MovedError, create
from recollect.stores.sqlite.memories import Memories
from recollect.text.query import TextQuery

if TYPE_CHECKING:
    from recollect.stores.corpus import Corpus
    from recollect.stores.sqlite.resident import Resident

_OPEN_FILES = 64
_TRASH = ".trash-"
_TRIES = 100
"""How often a read begins anew."""


class SqliteFolder:
    """Isolation by files: `root/<tenant>/account.db` and `root/<tenant>/workspaces/<workspace>/memory.db`.

    Any number of processes and threads may share the folder. A file is opened when it is first used.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).absolute()
        self._forget_handles()
        _folders.add(self)

    def _forget_handles(self) -> None:
        self._lock = threading.Lock()
        self._handles: OrderedDict[Place, Memories] = OrderedDict()
        self.residents: Copies[Memories, Resident] = Copies()
        self._alive: weakref.WeakSet[Memories] = weakref.WeakSet()
        self._may_open = threading.Event()
        self._may_open.set()
        self._thread = _Thread()

    def abandon(self) -> None:
        """In a forked child: what could not be closed before must not be used there, nor closed."""
        _abandoned.extend(self._alive)
        self._forget_handles()

    # Opening

    def _path(self, place: Place) -> str:
        tenant = f"{self.root}/{_folder_name(place.tenant)}"
        if place.workspace is None:
            return f"{tenant}/account.db"
        return f"{tenant}/workspaces/{_folder_name(place.workspace)}/memory.db"

    def inside(self) -> dict[Place, Memories]:
        """The places in which this thread has a transaction open."""
        return self._thread.places

    def discard(self, place: Place, handle: Memories) -> None:
        with self._lock:
            if self._handles.get(place) is handle:
                del self._handles[place]
        self.residents.drop(handle)

    def _recent(self, place: Place) -> Memories | None:
        """As `_existing`, but without asking the file system each time. Reading may raise MovedError."""
        if (handle := self._handles.get(place)) and handle.fresh() and not self.inside():
            return handle
        return self._existing(place)

    def _existing(self, place: Place, new: bool = False) -> Memories | None:
        """The open file for a place, or None where nothing was ever stored. A new one is still empty."""
        if handle := self.inside().get(place):
            return handle
        if not self.inside():
            self._may_open.wait()
        with self._lock:
            if handle := self._handles.get(place):
                if handle.current():
                    self._handles.move_to_end(place)
                    return handle
                del self._handles[place]
                self.residents.drop(handle)
            handle = self._open(place, new)
            if handle is None:
                return None
            self._handles[place] = handle
            self._alive.add(handle)
            evicted = self._handles.popitem(last=False)[1] if len(self._handles) > _OPEN_FILES else None
            if evicted:
                self.residents.drop(evicted)
        if evicted:
            evicted.settle()
        return handle

    def _open(self, place: Place, new: bool) -> Memories | None:
        path = self._path(place)
        while os.path.exists(path) if new else _used(path):
            with suppress(MovedError):  # dropped by another process, and perhaps begun anew
                return Memories(path, place)
        return None

    def creating(self, place: Place) -> Memories:
        handle = self._recent(place)
        while handle is None:
            with suppress(MovedError):  # dropped by another process between two of our steps
                create(self._path(place))
            handle = self._existing(place, new=True)
        return handle

    def _places(self, where: Filter, opened: _Opener | None = None) -> Iterator[Memories]:
        """Where memories that the filter sees may be: the workspace, and what the tenant's accounts share."""
        tenant, opened = where.view.tenant, opened or self._existing
        for workspace in dict.fromkeys((where.view.workspace, None)):
            wanted = not where.tiers or ("account" in where.tiers if workspace is None else where.tiers != ("account",))
            if wanted and (handle := opened(Place(tenant, workspace))):
                yield handle

    # The port

    def transaction(self, place: Place) -> _Writing:
        return _Writing(self, place)

    def put(self, records: Sequence[Record]) -> Sequence[Record]:
        for place, group in by_place(records).items():
            with _Writing(self, place, len(group)) as handle:
                handle.put(group)
        return records

    def get(self, ids: Sequence[str], view: Address) -> list[Record]:
        try:
            return self._get(ids, view, self._recent)
        except MovedError:
            return _again(lambda: self._get(ids, view, self._existing))

    def _get(self, ids: Sequence[str], view: Address, opened: _Opener) -> list[Record]:
        handle = opened(Place(view.tenant, view.workspace))
        found = handle.get(ids, view) if handle else []
        if len(found) < len(ids) and view.workspace is not None and (handle := opened(Place(view.tenant, None))):
            found += handle.get(ids, view)
        return found

    def update(self, records: Sequence[Record]) -> None:
        for place, group in by_place(records).items():
            with _Writing(self, place) as handle:
                handle.update(group)

    def delete(self, records: Sequence[Record], reason: str = "") -> None:
        for place, group in by_place(records).items():
            with _Writing(self, place) as handle:
                handle.delete(group)

    def touch(self, records: Sequence[Record], at: datetime) -> None:
        for record in records:
            while handle := self._recent(Place.of(record)):
                with suppress(MovedError):
                    handle.touch(record.id, at)
                    break

    def scan(
        self, where: Filter, *, newest_first: bool = False, limit: int | None = None, bare: bool = False
    ) -> Iterator[Record]:
        streams = [handle.scan(where, newest_first, limit) for handle in self._places(where)]
        if len(streams) == 1:
            return streams[0]
        return _merge(streams, newest_first, limit)

    def search_text(self, query: TextQuery, where: Filter, limit: int) -> list[Match]:
        try:
            found = [m for handle in self._places(where, self._recent) for m in handle.search(query, where, limit)]
        except MovedError:
            found = _again(lambda: [m for handle in self._places(where) for m in handle.search(query, where, limit)])
        found.sort(key=lambda match: -match.score)
        return found[:limit]

    @contextmanager
    def corpus(self, place: Place, model: str | None) -> Generator[Corpus]:
        # numpy takes longer to import than all of this package
        from recollect.stores.corpus import empty
        from recollect.stores.sqlite.resident import Resident

        for _ in range(_TRIES):
            handle = self._existing(place)
            if handle is None:
                yield empty()
                return
            with ExitStack() as stack:
                try:
                    resident = stack.enter_context(self.residents.lent(handle, Resident))
                    corpus = stack.enter_context(resident.corpus(model))
                except MovedError:
                    self.residents.drop(handle)
                    continue
                yield corpus
                return
        raise MovedError

    def stats(self, where: Filter) -> StoreStats:
        return _again(lambda: self._stats(where))

    def _stats(self, where: Filter) -> StoreStats:
        totals: dict[str, dict[str, int]] = {"states": {}, "kinds": {}, "tiers": {}, "agents": {}}
        total = embedded = size = 0
        for handle in self._places(where):
            for name, counts in handle.counts(where).items():
                for key, number in counts.items():
                    totals[name][key] = totals[name].get(key, 0) + number
            embedded += handle.embedded(where)
            size += handle.size()
        total = sum(totals["states"].values())
        return StoreStats(total=total, **totals, embedded=embedded, size_bytes=size)

    def settings(self, place: Place) -> Settings:
        return NO_SETTINGS

    def crowded(self, place: Place) -> bool:
        return False

    def tenants(self) -> list[str]:
        return _names(self.root)

    def workspaces(self, tenant: str) -> list[str]:
        folder = self.root / _folder_name(tenant) / "workspaces"
        return [name for name in _names(folder) if _used(self._path(Place(tenant, name)))]

    def drop(self, tenant: str, workspace: str) -> None:
        place = Place(tenant, workspace)
        with _Writing(self, place) as handle:
            folder = Path(handle.path).parent
            handle.dismiss()
            try:
                os.rename(folder, folder.with_name(_TRASH + new_id()))
            except OSError as error:
                raise StoreError(f"workspace {workspace} could not be removed: {error.strerror}") from error
        self.discard(place, handle)
        self._empty_trash(tenant)

    def _empty_trash(self, tenant: str) -> None:
        """Also finishes what a killed process began."""
        for folder in (self.root / _folder_name(tenant) / "workspaces").glob(_TRASH + "*"):
            shutil.rmtree(folder, ignore_errors=True)

    def scrub(self, place: Place) -> None:
        if handle := self._existing(place):
            handle.settle()
            handle.checkpoint()

    def compact(self, place: Place) -> int:
        self._empty_trash(place.tenant)
        handle = self._existing(place)
        return handle.compact() if handle else 0

    def damage(self, place: Place) -> list[Damage]:
        try:
            return _again(lambda: handle.damage() if (handle := self._existing(place)) else [])
        except CorruptionError as error:
            return [Damage(self._path(place), str(error))]

    def append(self, place: Place, entry: Entry, before: Sequence[Record] = ()) -> Entry:
        with _Writing(self, place, 1) as handle:
            return handle.append(entry, before)

    def entries(
        self, place: Place, *, contains: str = "", about: str = "", newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Entry]:
        handle = self._existing(place)
        return handle.entries(contains, about, newest_first, limit) if handle else iter(())

    def written(self, place: Place) -> int:
        return _again(lambda: handle.written() if (handle := self._existing(place)) else 0)

    def before(self, place: Place, seq: int) -> list[Record] | None:
        return _again(lambda: handle.before(seq) if (handle := self._existing(place)) else None)

    def forget_before(self, place: Place, *, until: datetime | None = None, about: Sequence[str] | None = None) -> int:
        if not self._existing(place):
            return 0
        with _Writing(self, place) as handle:
            return handle.forget_before(until, about)

    def close(self) -> None:
        with self._lock:
            handles = list(self._handles.values())
            self._handles.clear()
            self.residents.clear()
        for handle in handles:  # without the lock: a thread that still writes there may need it to finish
            handle.settle()
            handle.close()

    def pause(self) -> None:
        """Before a fork: close every file, and open none until `resume`.

        SQLite believes that a child has the locks which only its parent holds. In files that both have open, one would
        then clear away what the other still writes to.
        """
        deadline = time.monotonic() + BUSY_SECONDS
        mine = self.inside().values()
        while True:
            # Whoever is in a transaction may open what it takes to finish that. Nobody else may begin.
            self._may_open.clear()
            with self._lock:
                alive = [handle for handle in self._alive if not handle.closed and handle not in mine]
            for handle in alive:
                if handle.lock.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
                    handle.settle()
                    handle.close()
                    handle.lock.release()
            self._lock.acquire()
            if time.monotonic() > deadline or all(handle.closed or handle in mine for handle in self._alive):
                return
            self._lock.release()

    def resume(self) -> None:
        self._may_open.set()
        self._lock.release()


class _Thread(threading.local):
    def __init__(self) -> None:
        self.places: dict[Place, Memories] = {}


class _Writing:
    """The transaction of one place: opened if this thread has none there, else joined.

    Inside an open one, several steps are taken back together if one fails; a single step leaves nothing by itself.
    """

    __slots__ = ("_folder", "_handle", "_outermost", "_place", "_steps")

    def __init__(self, folder: SqliteFolder, place: Place, steps: int = 2) -> None:
        self._folder = folder
        self._place = place
        self._steps = steps

    def __enter__(self) -> Memories:
        folder, place = self._folder, self._place
        inside = folder.inside()
        handle = inside.get(place)
        self._outermost = handle is None
        if handle is not None and self._steps > 1:
            handle.savepoint()
        while handle is None:
            handle = folder.creating(place)
            try:
                handle.begin()
            except MovedError:
                folder.discard(place, handle)
                handle = None
        inside[place] = self._handle = handle
        return handle

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._outermost:
            del self._folder.inside()[self._place]
            self._handle.end(error)
        elif self._steps > 1:
            self._handle.release(error)


_T = TypeVar("_T")
_Opener = Callable[[Place], Memories | None]
_folders: weakref.WeakSet[SqliteFolder] = weakref.WeakSet()
_abandoned: list[Memories] = []
_forking = threading.local()


def _before_fork() -> None:
    _forking.paused = list(_folders)
    for folder in _forking.paused:
        folder.pause()


def _after_fork() -> None:
    for folder in _forking.paused:
        folder.resume()
    _forking.paused = []


def _after_fork_in_child() -> None:
    for folder in list(_folders):
        folder.abandon()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


def _again(read: Callable[[], _T]) -> _T:
    """Read once more where a workspace was dropped, or its file closed by a fork, while it was read."""
    for _ in range(_TRIES):
        with suppress(MovedError):
            return read()
    return read()


def _used(path: str) -> bool:
    """Whether anything was ever stored there: an empty file is left where the disk was full."""
    try:
        return os.path.getsize(path) > 0
    except OSError:
        return False


def _folder_name(name: str) -> str:
    """Capital letters marked with `=`, so that `Shop` and `shop` stay apart where file names ignore case."""
    return name if name.islower() else "".join(f"={c}" if c.isupper() else c for c in name)


def _names(folder: Path) -> list[str]:
    try:
        entries = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [entry.replace("=", "") for entry in entries if not entry.startswith(".") and (folder / entry).is_dir()]


def _merge(streams: list[Iterator[Record]], newest_first: bool, limit: int | None) -> Iterator[Record]:
    merged = merge(*streams, key=lambda record: record.created_at, reverse=newest_first)
    return islice(merged, limit)
