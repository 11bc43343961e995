"""Transactions of several places at once, taken in one order so that no two callers can wait for each other."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence

from recollect.stores.files.book import Book
from recollect.stores.files.changes import Changes
from recollect.stores.files.fileset import AUDIT, VECTORS
from recollect.stores.files.reader import tell
from recollect.stores.files.staging import Mark
from recollect.stores.files.writer import Writer
from recollect.stores.intents import Intents
from recollect.stores.port import Place, in_order
from recollect.stores.scope import Scope, end_left
from recollect.values.errors import RecollectError, StoreError


class Opened:
    """A book, and who writes into it."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.writer = Writer(book)
        self.changes = Changes(book)

    @property
    def deferred(self) -> bool:
        """Whether counted retrievals or the files derived from the log are yet to be written."""
        session = self.book.session
        return bool(self.book.touches) or (session is not None and session.behind)

    def settle(self) -> None:
        self.writer.settle()
        self.writer.write_snapshots()

    def put_away(self) -> str:
        """Write what was put off and let go of the files. What could not be written, or nothing."""
        book, problem = self.book, ""
        try:
            self.writer.settle()
            self.writer.save_unsaved()
            self.writer.write_snapshots(book.config.patience.timeout, durable=True)
        except RecollectError as error:
            problem = str(error)
        if book.reader.unsaved:
            problem = problem or book.unsaved_because
        self._sync()
        if book.wrote and book.session is None:
            book.audit.note()
        book.forget()
        return problem

    def _sync(self) -> None:
        """What followed without waiting is durable on close."""
        book = self.book
        try:
            book.sync(AUDIT, VECTORS)
        except (OSError, StoreError) as error:
            tell(book.place, logging.ERROR, "audit log not made durable", problem=str(error))


class Inside(threading.local):
    """The places in which a thread has a transaction open."""

    def __init__(self) -> None:
        self._places: dict[Place, Opened] = {}

    @property
    def places(self) -> dict[Place, Opened]:
        end_left()
        return self._places


class Transaction(Scope[Mapping[Place, Opened]]):
    """Opened if the thread has none, else joined. What goes wrong inside takes back what was done in this one."""

    __slots__ = ("_inside", "_intents", "_marks", "_mine", "_open", "_places", "_seconds", "_starting")

    def __init__(
        self,
        inside: Inside,
        open: Callable[[Place], Opened],
        starting: Callable[[], None],
        intents: Intents,
        places: Sequence[Place],
        seconds: float | None = None,
    ) -> None:
        """`seconds` to wait for other writers; as long as the store is patient without."""
        self._inside = inside
        self._open = open
        self._starting = starting
        self._intents = intents
        self._places = list(places) if len(places) == 1 else in_order(places)
        self._seconds = seconds
        self._mine: dict[Place, Opened] = {}
        self._marks: list[tuple[Writer, Mark]] = []

    def enter(self) -> Mapping[Place, Opened]:
        places = self._inside.places
        if not places:
            self._starting()
            self._begin(places)
        for place in self._places:
            if place not in places:
                raise StoreError(f"a transaction in {place} was begun inside one of other places; name all at once")
        if not self._mine:
            self._marks = [(places[place].writer, places[place].writer.staged.mark()) for place in self._places]
        return places

    def _begin(self, places: dict[Place, Opened]) -> None:
        for place in self._places:
            opened = places[place] = self._mine[place] = self._open(place)
            if self._seconds is None:
                opened.writer.begin()
            else:
                opened.writer.begin_within(self._seconds, "write")

    def leave(self, error: BaseException | None) -> None:
        if self._mine:
            self._end(error)
        elif error is not None:
            for writer, mark in self._marks:
                writer.take_back(mark)

    def _end(self, error: BaseException | None) -> None:
        """Whether there is room is known of all places before any is written. Each is ended, whatever happens."""
        problem: BaseException | None = None
        record = ""
        if error is None:
            try:
                for opened in self._mine.values():
                    opened.writer.prepare()
                record = self._noted()
            except BaseException as failure:
                problem = failure
        for place, opened in list(self._mine.items()):
            try:
                opened.writer.end(error or problem)
                self._inside.places.pop(place, None)
                del self._mine[place]
            except (RecollectError, OSError) as failure:
                # It has let go of the place itself; after an interrupt `abandon` does.
                self._inside.places.pop(place, None)
                del self._mine[place]
                problem = problem or failure
            except BaseException as failure:
                problem = problem or failure
        if record and problem is None:
            self._intents.done(record)
        elif record and not self._mine:
            self._intents.finish_left()
        if problem is not None:
            raise problem

    def _noted(self) -> str:
        """The path of the record of what is about to be committed; none for a change of one place."""
        parts = [part for opened in self._mine.values() if (part := opened.writer.intent()) is not None]
        if len(parts) < 2:
            return ""
        try:
            return self._intents.note(parts)
        except OSError as error:
            raise StoreError(f"the change could not be written: {error.strerror}") from error

    def abandon(self) -> None:
        for place, opened in list(self._mine.items()):
            opened.writer.abandon()
            self._inside.places.pop(place, None)
            del self._mine[place]
        for writer, mark in self._marks:
            if writer.book.mine() is not None:  # else all of it was taken back
                writer.take_back(mark)
