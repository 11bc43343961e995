"""Stores of plain files: many books under one root."""

from __future__ import annotations

import os
import shutil
import threading
import weakref
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from heapq import merge
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING

from recollect.errors import StoreError
from recollect.filters import Filter, visible
from recollect.record import Address, Record, new_id
from recollect.stores.audit import Entry
from recollect.stores.copies import Copies
from recollect.stores.files import files
from recollect.stores.files.book import GoneError
from recollect.stores.files.metrics import QUERY, Meter
from recollect.stores.files.searching import SearchedBook
from recollect.stores.port import NO_SETTINGS, Damage, Match, Place, Settings, StoreStats, by_place
from recollect.text.query import TextQuery

if TYPE_CHECKING:
    from recollect.stores.corpus import Corpus
    from recollect.stores.files.resident import Resident

_TRASH = ".trash-"
_PAGE = 500
_OPEN_BOOKS = 256


class JsonlFolder:
    """Keeps each place in files of its own. Any number of processes and threads may share the folder."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = os.path.abspath(root)
        self.meter = Meter()
        self._forget_books()
        _folders.add(self)

    def _forget_books(self) -> None:
        self._lock = threading.Lock()
        self._books: dict[Place, SearchedBook] = {}
        self.residents: Copies[SearchedBook, Resident] = Copies()

    def abandon(self) -> None:
        """In a forked child: what the parent's threads were doing is theirs to finish."""
        self._forget_books()

    def settings(self, place: Place) -> Settings:
        return NO_SETTINGS

    def crowded(self, place: Place) -> bool:
        return False

    # What a layout decides

    def path(self, place: Place) -> str:
        """The folder of a place."""
        raise NotImplementedError

    def parts(self, place: Place) -> list[str]:
        """All that belongs to a place and to no other, the lock's folder last."""
        return [self.path(place)]

    def make(self, place: Place) -> SearchedBook:
        raise NotImplementedError

    def tenants(self) -> list[str]:
        raise NotImplementedError

    def workspaces(self, tenant: str) -> list[str]:
        raise NotImplementedError

    def starting(self) -> None:
        """Before a write."""

    def dropped(self, place: Place) -> None:
        """After a place was removed."""

    # Books

    def book(self, place: Place) -> SearchedBook:
        book = self._books.get(place)
        return self._open(place) if book is None else book

    def _open(self, place: Place) -> SearchedBook:
        """A book that was not open, and in its place let one go that has been open for longest."""
        with self._lock:
            book = self._books.get(place)
            if book is None:
                book = self._books[place] = self.make(place)
            spare = [key for key, old in self._books.items() if not old.busy and old is not book]
            closing = [self._books.pop(key) for key in spare[: max(0, len(self._books) - _OPEN_BOOKS)]]
        for old in closing:
            self.residents.drop(old)
            with old.guard:
                old.put_away()
        return book

    @contextmanager
    def reading(self, place: Place) -> Generator[SearchedBook]:
        book = self.book(place)
        with book.guard:
            book.refresh()
            yield book

    def transaction(self, place: Place) -> Transaction:
        self.starting()
        return Transaction(self.book(place))

    def _places(self, where: Filter) -> list[Place]:
        view = where.view
        shared = Place(view.tenant, None)
        own = [] if view.workspace is None else [Place(view.tenant, view.workspace)]
        if where.tiers and "account" not in where.tiers:
            return own
        return [shared] if where.tiers == ("account",) else [*own, shared]

    # Memories

    def put(self, records: Sequence[Record]) -> Sequence[Record]:
        groups = by_place(records)
        if len(groups) == 1:
            place, group = groups.popitem()
            with self.transaction(place) as book:
                return book.put(group)
        stored: dict[int, Record] = {}
        for place, group in groups.items():
            with self.transaction(place) as book:
                stored.update(zip(map(id, group), book.put(group), strict=True))
        return [stored[id(record)] for record in records]

    def get(self, ids: Sequence[str], view: Address) -> list[Record]:
        found: list[Record] = []
        for place in dict.fromkeys((Place(view.tenant, view.workspace), Place(view.tenant, None))):
            with self.reading(place) as book:
                for ident in dict.fromkeys(ids):
                    row = book.state.rows.get(ident)
                    if row is not None and visible(view, row.record) and (record := book.record(row)):
                        found.append(record)
        return found

    def update(self, records: Sequence[Record]) -> None:
        for place, group in by_place(records).items():
            with self.transaction(place) as book:
                book.update(group)

    def delete(self, records: Sequence[Record], reason: str = "") -> None:
        for place, group in by_place(records).items():
            with self.transaction(place) as book:
                book.delete(group, reason)

    def touch(self, records: Sequence[Record], at: datetime) -> None:
        for place, group in by_place(records).items():
            with self.reading(place) as book:
                for record in group:
                    book.touch(record.id, at)

    def scan(
        self, where: Filter, *, newest_first: bool = False, limit: int | None = None, bare: bool = False
    ) -> Iterator[Record]:
        streams = [self._scan(place, where, newest_first, limit, bare) for place in self._places(where)]
        merged = merge(*streams, key=lambda record: record.created_at, reverse=newest_first)
        return islice(merged, limit)

    def _scan(self, place: Place, where: Filter, newest_first: bool, limit: int | None, bare: bool) -> Iterator[Record]:
        with self.meter.timed(QUERY), self.reading(place) as book:
            found = book.matching(where, newest_first)[:limit]
        if bare:
            yield from found
            return
        ids = [record.id for record in found]
        for at in range(0, len(ids), _PAGE):
            with self.reading(place) as book:
                rows = [row for ident in ids[at : at + _PAGE] if (row := book.state.rows.get(ident))]
                page = [record for row in rows if (record := book.record(row))]
            yield from page

    def search_text(self, query: TextQuery, where: Filter, limit: int) -> list[Match]:
        found: list[Match] = []
        with self.meter.timed(QUERY):
            for place in self._places(where):
                with self.reading(place) as book:
                    found += book.search(query, where, limit)
        found.sort(key=lambda match: -match.score)
        return found[:limit]

    @contextmanager
    def corpus(self, place: Place, model: str | None) -> Generator[Corpus]:
        book = self.book(place)
        from recollect.stores.files.resident import Resident  # numpy takes longer to import than all of this package

        with self.residents.lent(book, Resident) as resident, resident.corpus(model) as corpus:
            yield corpus

    def stats(self, where: Filter) -> StoreStats:
        states: Counter[str] = Counter()
        kinds: Counter[str] = Counter()
        tiers: Counter[str] = Counter()
        agents: Counter[str] = Counter()
        embedded = size = 0
        for place in self._places(where):
            with self.reading(place) as book:
                size += book.size()
                for row in book.state.rows.values():
                    record = row.record
                    if where.matches(record):
                        states[record.state(where.now)] += 1
                        kinds[record.kind] += 1
                        tiers[record.tier] += 1
                        agents[record.address.agent or ""] += 1
                        embedded += row.vector is not None
        return StoreStats(sum(states.values()), states, kinds, tiers, agents, embedded, size)

    def drop(self, tenant: str, workspace: str) -> None:
        place = Place(tenant, workspace)
        parts = self.parts(place)
        if not any(os.path.exists(part) for part in parts):
            return
        book = self.book(place)
        book.begin("drop")
        trash = os.path.join(os.path.dirname(parts[0]), _TRASH + new_id())
        try:
            os.mkdir(trash, files.PRIVATE_FOLDER)
            for number, part in enumerate(parts):
                with suppress(FileNotFoundError):
                    os.rename(part, os.path.join(trash, str(number)))
        except OSError as error:
            raise StoreError(f"workspace {workspace} could not be removed: {error.strerror}") from error
        finally:
            book.end(GoneError())
        with self._lock:
            self._books.pop(place, None)
        self.residents.drop(book)
        self.dropped(place)
        self._empty_trash(os.path.dirname(parts[0]))

    def _empty_trash(self, folder: str) -> None:
        """Also finishes what a killed process began."""
        with suppress(FileNotFoundError):
            for name in os.listdir(folder):
                if name.startswith(_TRASH):
                    shutil.rmtree(os.path.join(folder, name), ignore_errors=True)

    def scrub(self, place: Place) -> None:
        self.compact(place)

    def compact(self, place: Place) -> int:
        book = self.book(place)
        if not book.exists():
            return 0
        self._empty_trash(os.path.dirname(self.parts(place)[0]))
        with book.guard:
            book.settle()
            book.begin("compact")
            try:
                freed = book.compact()
            finally:
                book.end(None)
        return freed

    def damage(self, place: Place) -> list[Damage]:
        with self.reading(place) as book:
            return book.verify()

    # The audit log

    def append(self, place: Place, entry: Entry, before: Sequence[Record] = ()) -> Entry:
        with self.transaction(place) as book:
            return book.append(entry, before)

    def entries(
        self, place: Place, *, contains: str = "", about: str = "", newest_first: bool = False, limit: int | None = None
    ) -> Iterator[Entry]:
        with self.reading(place) as book:
            return book.entries(contains, about, newest_first, limit)

    def written(self, place: Place) -> int:
        with self.reading(place) as book:
            return book.written()

    def before(self, place: Place, seq: int) -> list[Record] | None:
        with self.reading(place) as book:
            return book.before(seq)

    def forget_before(self, place: Place, *, until: datetime | None = None, about: Sequence[str] | None = None) -> int:
        if not self.book(place).exists():
            return 0
        with self.transaction(place) as book:
            return book.forget_before(until, about)

    def close(self) -> None:
        with self._lock:
            books = list(self._books.values())
            self._books.clear()
            self.residents.clear()
        problems: list[str] = []
        for book in books:
            with book.guard:
                try:
                    book.put_away()
                except StoreError as error:
                    problems.append(str(error))
                if problem := book.unsaved_problem():
                    problems.append(problem)
        if problems:
            raise StoreError(f"what was kept in memory could not be written and is lost: {problems[0]}")


class Transaction:
    """Opens one, or joins the one that is open. Inside another, an exception takes back what was done in this one."""

    __slots__ = ("_book", "_mark")

    def __init__(self, book: SearchedBook) -> None:
        self._book = book

    def __enter__(self) -> SearchedBook:
        book = self._book
        book.begin()
        assert book.staged is not None
        self._mark = book.staged.mark()
        return book

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._book.take_back(self._mark)
        self._book.end(error)


_folders: weakref.WeakSet[JsonlFolder] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for folder in list(_folders):
        folder.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def holds_something(*paths: str) -> bool:
    return any(files.identity(path).size for path in paths)


def folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as found:
            return sorted(entry.name for entry in found if entry.is_dir() and not entry.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []
