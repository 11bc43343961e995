"""Stores of plain files: many books under one root."""

from __future__ import annotations

import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from recollect.runtime import forking, imports
from recollect.stores.audit import Entry, UndoSize
from recollect.stores.files import aside, files, unsaved
from recollect.stores.files.book import Book
from recollect.stores.files.copying import copy
from recollect.stores.files.metrics import QUERY, Meter
from recollect.stores.files.rewriting import compact
from recollect.stores.files.transaction import Inside, Opened, Transaction
from recollect.stores.files.writer import SOON
from recollect.stores.intents import Intents
from recollect.stores.paths import TRASH, empty_trash, open_files, there
from recollect.stores.port import After, Before, By, Damage, Order, Place
from recollect.stores.resident.cache import Copies
from recollect.stores.scans import Resume, merged, resumed
from recollect.stores.shelves import Thing
from recollect.stores.write_timer import timer
from recollect.values.errors import StoreError
from recollect.values.filters import Filter
from recollect.values.record import Record, new_id, utc_now

if TYPE_CHECKING:
    from recollect.stores.files.resident import Resident
    from recollect.stores.shortlist import Ask, Shortlist

_PAGE = 500
_FILES_EACH = 5
"""That a book keeps open at most."""
_KNOWN_BOOKS = 1024
"""Of so many places it stays known what their files say."""
T = TypeVar("T")


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

    def make(self, place: Place, meter: Meter) -> Book: ...

    def places(self, tenant: str) -> list[Place]: ...

    def tenants(self) -> list[str]: ...

    def starting(self) -> None:
        """Before a write."""
        ...


class FileFolder:
    """Keeps each place in files of its own. Any number of processes and threads may share the folder."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.meter = Meter()
        self.clock: Callable[[], datetime] = utc_now
        """Where the times in files come from."""
        self.intents = Intents(layout.own_folder)
        self._forget_books()
        forking.watch(self)

    def _forget_books(self) -> None:
        self._lock = threading.Lock()
        self._books: OrderedDict[Place, Opened] = OrderedDict()
        """The one that was used last comes last."""
        self._recent: OrderedDict[Place, Opened] = OrderedDict()
        """Those that may have files open, in the same order."""
        self.residents: Copies[Book, Resident] = Copies()
        self._inside = Inside()

    def after_fork(self) -> None:
        """What the parent's threads were doing is theirs to finish."""
        for opened in list(self._books.values()):
            opened.book.abandon()
        self._forget_books()

    # Books

    def opened(self, place: Place) -> Opened:
        """The book of a place, which may keep files open from now on; in turn, others let go of theirs."""
        idle: list[tuple[Place, Opened]] = []
        unused: list[Opened] = []
        with self._lock:
            opened = self._books.pop(place, None)
            if opened is None:
                opened = self._make(place)
                unused = self._take_unused(len(self._books) + 1 - _KNOWN_BOOKS)
            self._books[place] = self._recent[place] = opened
            self._recent.move_to_end(place)
            while len(self._recent) > max(1, open_files() // _FILES_EACH):
                idle.append(self._recent.popitem(last=False))
        for other, old in idle:
            if not old.book.close_files():  # somebody reads it just now
                with self._lock:
                    self._recent[other] = old
        for old in unused:
            self.residents.drop(old.book)
            self._settle(old)
            old.book.forget()
        if unused:
            self.defer()  # what the indices of all sessions should say of them
        return opened

    def _make(self, place: Place) -> Opened:
        opened = Opened(self._layout.make(place, self.meter))
        opened.book.now = lambda: self.clock()
        opened.book.defer = self.defer
        return opened

    def _take_unused(self, excess: int) -> list[Opened]:
        """Pops up to `excess` least recently used books that nobody uses; the caller forgets what they have read."""
        unused: list[Place] = []
        for place, opened in self._books.items():
            if len(unused) >= excess:
                break
            if not opened.book.busy and not opened.book.reader.unsaved:
                unused.append(place)
        for place in unused:
            self._recent.pop(place, None)
        return [self._books.pop(place) for place in unused]

    def book(self, place: Place) -> Book:
        """That of this thread's transaction, if it has one there: another thread may close the folder meanwhile."""
        mine = self._inside.places.get(place)
        if place not in self._books and not self._inside.places:
            self.intents.finish_left()
        return (mine or self.opened(place)).book

    def known(self) -> list[Opened]:
        with self._lock:
            return list(self._books.values())

    def transaction(self, *places: Place) -> Transaction:
        return Transaction(self._inside, self.opened, self._starting, self.intents, places)

    def _starting(self) -> None:
        self.intents.finish_left()
        self._layout.starting()

    def _exists(self, place: Place) -> bool:
        return place in self._inside.places or self.book(place).fileset.exists()

    # Memories

    def put(self, place: Place, records: Sequence[Record]) -> Sequence[Record]:
        if not records:
            return []
        with self.transaction(place) as opened:
            return opened[place].changes.put(records)

    def get(self, place: Place, ids: Sequence[str]) -> list[Record]:
        book, wanted = self.book(place), dict.fromkeys(ids)

        def read() -> list[Record]:
            rows = [row for ident in wanted if (row := book.row(ident))]
            return [record for row in rows if (record := book.record(row))]

        return book.read(read)

    def with_texts(self, place: Place, texts: Sequence[str]) -> list[Record]:
        book = self.book(place)
        return book.read(lambda: book.with_texts(frozenset(texts)))

    def update(self, place: Place, records: Sequence[Record]) -> None:
        with self.transaction(place) as opened:
            opened[place].changes.update(records)

    def delete(self, place: Place, ids: Sequence[str], reason: str = "") -> None:
        with self.transaction(place) as opened:
            opened[place].changes.delete(ids, reason)

    def touch(self, place: Place, ids: Sequence[str], at: datetime) -> None:
        with suppress(StoreError, OSError):
            self.opened(place).writer.touch(ids, at)
            self.defer()

    def defer(self) -> None:
        """Have `settle` called in a while, and when the process ends."""
        timer.schedule(self)

    def settle(self) -> bool:
        """Write what was put off in all places. False if some could not be written."""
        waiting = [opened for opened in self.known() if opened.deferred]
        for opened in waiting:
            self._settle(opened)
            if opened.book.place not in self._recent:  # its files were closed for others before
                opened.book.close_files()
        return not any(opened.deferred for opened in waiting)

    def _settle(self, opened: Opened) -> None:
        with suppress(StoreError, OSError):
            opened.settle()

    def scan(
        self,
        where: Filter,
        *,
        order: Order = "oldest",
        after: After | None = None,
        limit: int | None = None,
        whole: bool = True,
    ) -> Iterator[Record]:
        places = resumed(Place.seen_by(where), after, lambda place: self._holds(place, where, order, after))
        return merged([self._scan(place, where, order, at, limit, whole) for place, at in places], order, limit)

    def _holds(self, place: Place, where: Filter, order: Order, after: After | None) -> bool:
        """Whether the memory that a scan goes on behind is there, and where it stood."""
        book = self.book(place)
        row = book.read(lambda: book.row(after.id)) if after else None
        if after is None or row is None or row.record.created_at != after.created_at or not where.matches(row.record):
            return False
        return order != "importance" or row.record.importance == after.importance

    def _scan(
        self, place: Place, where: Filter, order: Order, resume: Resume | None, limit: int | None, whole: bool
    ) -> Iterator[Record]:
        book = self.book(place)
        with self.meter.timed(QUERY):
            stubs = book.read(lambda: book.matching(where, order, resume))[:limit]
        if not whole:
            yield from stubs
            return
        ids = [record.id for record in stubs]
        for at in range(0, len(ids), _PAGE):
            page = {record.id: record for record in self.get(place, ids[at : at + _PAGE])}
            yield from (page[ident] for ident in ids[at : at + _PAGE] if ident in page)

    def count(self, where: Filter, by: Sequence[By] = ()) -> dict[tuple[str, ...], int]:
        counts: Counter[tuple[str, ...]] = Counter()
        for place in Place.seen_by(where):
            book = self.book(place)
            if tuple(by) == ("speaker",):
                speakers = self._ask(book, lambda resident: resident.speakers(where))
                counts.update({(name,): number for name, number in speakers.items()})
                continue
            names: dict[str, str] = {}
            if "speaker" in by:
                ids = book.read(lambda book=book: [row.record.id for row in book.rows()])
                names = self._ask(book, lambda resident, ids=ids: resident.speaker_of(ids))
            values = book.read(
                lambda book=book, names=names: list(book.counted(where, by, lambda ident: names.get(ident, "")))
            )
            counts.update(values)
        return dict(counts)

    def search(self, ask: Ask) -> list[Shortlist]:
        with self.meter.timed(QUERY):
            answers = [
                self._ask(self.book(place), lambda resident: resident.search(ask)) for place in Place.seen_by(ask.where)
            ]
        return [answer for answer in answers if answer is not None]

    def _ask(self, book: Book, what: Callable[[Resident], T]) -> T:
        """What the copy of a book answers. In a transaction, one that is made for the question."""
        imports.load("recollect.stores.files.resident")
        from recollect.stores.files.resident import Resident

        if book.mine() is not None:
            return book.read(lambda: what(Resident(book)))
        resident = self.residents.get(book, lambda: Resident(book))
        answer = book.read(lambda: what(resident))
        self.residents.make_room()
        return answer

    def ids_like(self, place: Place, part: str, limit: int) -> list[str]:
        book = self.book(place)
        idents = book.read(lambda: [row.record.id for row in book.rows()])
        alike = [ident for ident in idents if ident.startswith(part) or ident.endswith(part)]
        return sorted(alike, key=lambda ident: (ident != part, ident))[:limit]

    def lacking(self, place: Place, model: str, dimensions: int, limit: int) -> list[str]:
        return self._ask(self.book(place), lambda resident: resident.lacking(model, dimensions, limit))

    def embed(self, place: Place, model: str, vectors: Mapping[str, bytes]) -> None:
        if vectors and self._exists(place):
            with Transaction(self._inside, self.opened, self._layout.starting, self.intents, (place,), SOON) as inside:
                inside[place].changes.embed(model, vectors)

    def places(self, tenant: str) -> list[Place]:
        return self._layout.places(tenant)

    def tenants(self) -> list[str]:
        return self._layout.tenants()

    def drop(self, place: Place) -> None:
        parts = self._layout.parts(place)
        if place.workspace is None or not any(map(there, parts)):
            return
        writer, book = self.opened(place).writer, self.book(place)
        trash = os.path.join(os.path.dirname(parts[0]), TRASH + new_id())
        with writer.turn("drop") as turn:
            try:
                os.mkdir(trash, files.PRIVATE_FOLDER)
                for number, part in enumerate(parts):
                    with suppress(FileNotFoundError):
                        os.rename(part, os.path.join(trash, str(number)))
            except OSError as error:
                raise StoreError(f"workspace {place.workspace} could not be removed: {error.strerror}") from error
            finally:
                book.forget(everything=True)
                turn.gone = True
        self.residents.drop(book)
        empty_trash(os.path.dirname(parts[0]))

    # The audit log

    def append(self, place: Place, entry: Entry, before: Sequence[Record] = (), things: Sequence[Thing] = ()) -> Entry:
        with self.transaction(place) as opened:
            return opened[place].changes.append(entry, before, things)

    def entries(
        self,
        place: Place,
        *,
        contains: Sequence[str] = (),
        about: str = "",
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Entry]:
        book = self.book(place)
        return book.read(lambda: book.entries(contains, about, newest_first, limit))

    def written(self, place: Place) -> int:
        book = self.book(place)
        return book.read(lambda: book.last_entry()[0])

    def before(self, place: Place, seq: int) -> Before | None:
        book = self.book(place)
        return book.read(lambda: book.before(seq))

    def undo_sizes(self, place: Place) -> list[UndoSize]:
        book = self.book(place)
        return book.read(lambda: [UndoSize(head.seq, head.at, len(line)) for head, line in book.undo_lines()])

    def undos(self, place: Place) -> Iterator[tuple[int, Before]]:
        book = self.book(place)
        return iter(book.read(book.undos))

    def forget_before(self, place: Place, *, seqs: Sequence[int] | None = None) -> int:
        if not self._exists(place):
            return 0
        with self.transaction(place) as opened:
            return opened[place].changes.forget_before(seqs)

    # Shelves

    def keep(self, place: Place, thing: Thing, *, expect: int | None = None, exact: bool = False) -> Thing:
        with self.transaction(place) as opened:
            return opened[place].changes.keep(thing, expect, exact)

    def find(self, place: Place, shelf: str, keys: Sequence[str]) -> list[Thing]:
        book = self.book(place)
        return book.read(lambda: [thing for key in dict.fromkeys(keys) if (thing := book.thing(shelf, key))])

    def shelf(
        self,
        place: Place,
        shelf: str | None = None,
        *,
        parent: str | None = None,
        contains: str = "",
        newest_first: bool = False,
        after: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Thing]:
        book = self.book(place)
        return iter(book.read(lambda: book.things(shelf, parent, contains, newest_first, after, limit)))

    def remove(self, place: Place, shelf: str, keys: Sequence[str]) -> int:
        if not self._exists(place):
            return 0
        with self.transaction(place) as opened:
            return opened[place].changes.remove(shelf, keys)

    # On disk

    def opened_at(self) -> str:
        return self._layout.root

    def size(self, place: Place) -> int:
        return self.book(place).fileset.size()

    def unsaved(self, place: Place) -> int:
        opened = self._books.get(place)
        return len(opened.book.reader.unsaved) if opened else 0

    def scrub(self, place: Place, erased: Collection[str] = ()) -> int:
        book = self.book(place)
        with book.guard:
            book.reader.purge_unsaved()
        self._compact(place, erased)
        return aside.count(book.fileset)

    def compact(self, place: Place) -> int:
        return self._compact(place)

    def _compact(self, place: Place, erased: Collection[str] = ()) -> int:
        opened = self.opened(place)
        if not opened.book.fileset.exists():
            return 0
        empty_trash(os.path.dirname(self._layout.parts(place)[0]))
        opened.writer.settle()
        return self._compacted(opened, erased)

    def _compacted(self, opened: Opened, erased: Collection[str] = ()) -> int:
        """Of this very book: another thread may have closed the folder since, and a book that is opened anew would wait
        for the lock of this one."""
        writer = opened.writer
        with writer.turn("compact"):
            writer.drop_undo()
            freed = compact(opened.book, erased)
            if opened.book.reader.unsaved:  # there may be room now
                writer.write_unsaved()
            return freed

    def damage(self, place: Place) -> list[Damage]:
        return self.book(place).damage()

    def copy(self, place: Place, folder: str) -> None:
        opened, layout = self.opened(place), self._layout
        if opened.book.fileset.exists():
            copy(opened, [*layout.parts(place), *layout.beside(place)], layout.root, folder)

    def close(self) -> None:
        with self._lock:
            books = list(self._books.values())
            self._books.clear()
            self._recent.clear()
        self.residents.clear()
        try:
            self._put_away(books)
        finally:
            timer.forget(self)

    def _put_away(self, several: Sequence[Opened]) -> None:
        problems = [problem for opened in several if (problem := opened.put_away())]
        if left := [opened.book for opened in several if opened.book.reader.unsaved]:
            raise StoreError(unsaved.lost(left))
        if problems:
            raise StoreError(problems[0])


def holds_something(*paths: str) -> bool:
    return any(files.identity(path).size for path in paths)
