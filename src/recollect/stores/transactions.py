"""Transactions over one or several places: order, nesting, savepoints, interrupts; over files also half-done changes.

The locks of places are taken in one order (`port.in_order`), so that no two callers can wait for each other. A thread
has one transaction open: further ones inside it join it, in places that it holds. A change of several places leaves a
record before the first commit (`intents.py`), by which whoever comes after a kill takes it back or finishes it.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import Generic, Protocol, TypeVar

from recollect.stores.intents import IntentPart, Intents
from recollect.stores.port import Place, in_order
from recollect.stores.scope import Scope
from recollect.values.errors import ConcurrencyError, RecollectError, StoreError


class StaleFileError(ConcurrencyError):
    """The file that is open is no longer the one at its path: another process dropped the workspace."""

    def __init__(self, problem: str = "the workspace was forgotten by another process just now") -> None:
        super().__init__(f"{problem}; trying again is safe")


class Unit(Protocol):
    """What is committed by itself: the file of one place. One thread at a time is between `begin` and `end`."""

    @property
    def patience(self) -> float:
        """Lock timeout in seconds of a write that nobody has set another one for."""
        ...

    def begin(self, *, seconds: float, durable: bool, alone: bool) -> None:
        """Take the lock and open a transaction. StaleFileError, without either, if the file is no longer the one.

        `alone` is one of no other place.
        """
        ...

    def prepare(self) -> None:
        """Make sure, as far as that can be known before, that `end` will commit."""
        ...

    def intent(self) -> IntentPart | None:
        """What is about to be committed; None if nothing is logged of it."""
        ...

    def end(self, error: BaseException | None) -> None:
        """Commit, or roll back if there was an error."""
        ...

    def abandon(self) -> None:
        """Let go of what this thread holds, if anything: `begin` or `end` was broken off anywhere."""
        ...

    def savepoint(self, depth: int) -> None: ...

    def release(self, depth: int, error: BaseException | None) -> None:
        """Keep what was written since the savepoint, or take it back if there was an error."""
        ...

    def take_back(self, depth: int) -> None:
        """What was written since the savepoint, if that is there."""
        ...


U = TypeVar("U", bound=Unit)


class ThreadState(threading.local, Generic[U]):
    """What a thread has open."""

    def __init__(self) -> None:
        self.places: dict[Place, U] = {}
        self.depth = 0


class Units(Protocol[U]):
    """A store whose places are units."""

    intents: Intents
    thread: ThreadState[U]

    def inside(self) -> dict[Place, U]:
        """The places in which this thread has a transaction open."""
        ...

    def starting(self) -> None:
        """Called before a thread takes the first lock of a transaction."""
        ...

    def creating(self, place: Place) -> U:
        """The unit of a place, which is made where there is none."""
        ...

    def discard(self, place: Place, handle: U) -> None:
        """One that is no longer the one at its place."""
        ...


T = TypeVar("T")


class Nesting(Scope[T], Generic[T]):
    """The transaction of some places: opened if this thread has none, else joined.

    Inside an open one, several steps are taken back together if one fails; a single step leaves nothing by itself.
    """

    __slots__ = ("_opened", "_places", "_steps")

    def __init__(self, places: Sequence[Place], steps: int) -> None:
        self._places = places if len(places) == 1 else in_order(places)
        self._steps = steps
        self._opened: bool | None = None
        """Not known before it is entered."""

    def enter(self) -> T:
        inside = self._inside()
        self._opened = not inside
        if not self._places:
            return None  # pyright: ignore[reportReturnType] - nobody has a place to write to
        if self._opened:
            self._begin()
        else:
            for place in self._places:
                if place not in inside:
                    raise StoreError(f"a transaction in {place} was begun inside one of other places; name all at once")
            if self._steps > 1:
                self._savepoint()
        return self._handle()

    def leave(self, error: BaseException | None) -> None:
        if self._opened:
            self._end(error)
        elif self._steps > 1:
            self._release(error)

    def abandon(self) -> None:
        if self._opened:
            self._abandon()
        elif self._opened is False and self._steps > 1:
            self._take_back()

    @abstractmethod
    def _inside(self) -> Collection[Place]:
        """The places in which this thread has a transaction open."""

    @abstractmethod
    def _begin(self) -> None:
        """Take the locks of the places."""

    @abstractmethod
    def _handle(self) -> T:
        """What the block is given."""

    @abstractmethod
    def _savepoint(self) -> None:
        """Inside the open transaction: what is written from here on can be taken back."""

    @abstractmethod
    def _release(self, error: BaseException | None) -> None:
        """Keep what was written since the savepoint, or take it back if there was an error."""

    @abstractmethod
    def _end(self, error: BaseException | None) -> None:
        """Commit the transaction, or roll it back if there was an error."""

    @abstractmethod
    def _abandon(self) -> None:
        """Let go of the transaction, if there is one: `_begin` or `_end` was broken off anywhere."""

    @abstractmethod
    def _take_back(self) -> None:
        """What was written since the savepoint, if there is one: `_savepoint` or `_release` was broken off anywhere."""


class Transaction(Nesting[U], Generic[U]):
    """The transaction of some places that are files."""

    __slots__ = ("_depth", "_durable", "_seconds", "_units")

    def __init__(
        self,
        units: Units[U],
        places: Sequence[Place],
        steps: int = 2,
        durable: bool = True,
        seconds: float | None = None,
    ) -> None:
        """`seconds` to wait for other writers; as long as the store is patient without."""
        super().__init__(places, steps)
        self._units = units
        self._durable = durable
        self._seconds = seconds
        self._depth = 0

    def _inside(self) -> dict[Place, U]:
        self._depth = self._units.thread.depth
        return self._units.inside()

    def _handle(self) -> U:
        """That of the first place."""
        return self._units.thread.places[self._places[0]]

    def _savepoint(self) -> None:
        thread = self._units.thread
        thread.depth = self._depth + 1
        for place in self._places:
            thread.places[place].savepoint(self._depth)

    def _release(self, error: BaseException | None) -> None:
        thread = self._units.thread
        for place in self._places:
            thread.places[place].release(self._depth, error)
        thread.depth = self._depth

    def _begin(self) -> None:
        self._units.starting()
        inside = self._units.thread.places
        for place in self._places:
            while place not in inside:
                handle = inside[place] = self._units.creating(place)
                try:
                    seconds = handle.patience if self._seconds is None else self._seconds
                    handle.begin(seconds=seconds, durable=self._durable, alone=len(self._places) == 1)
                except StaleFileError:
                    del inside[place]
                    self._units.discard(place, handle)

    def _end(self, error: BaseException | None) -> None:
        """Each is ended, whatever happens to the others. Where some were committed by then, they are taken back."""
        inside = self._units.inside()
        problem: BaseException | None = None
        record = ""
        if error is None and len(inside) > 1:
            try:
                record = self._noted(inside)
            except BaseException as failure:
                problem = failure
        for place in list(inside):
            try:
                inside[place].end(error or problem)
                del inside[place]
            except RecollectError as failure:  # it has let go of the place; after an interrupt `abandon` does
                del inside[place]
                problem = problem or failure
            except BaseException as failure:
                problem = problem or failure
        if record and problem is None:
            self._units.intents.done(record)
        elif record and not inside:
            self._units.intents.finish_left()
        if problem is not None:
            raise problem

    def _noted(self, inside: dict[Place, U]) -> str:
        """The path of the record of what is about to be committed; none for a change of one place."""
        parts = [part for handle in inside.values() if (part := handle.intent()) is not None]
        if len(parts) < 2:
            return ""
        for handle in inside.values():
            handle.prepare()
        try:
            return self._units.intents.note(parts)
        except OSError as error:
            raise StoreError(
                f"{self._units.intents.folder}: the change could not be written: {error.strerror}"
            ) from error

    def _abandon(self) -> None:
        inside = self._units.inside()
        for place in self._places:
            if place in inside:
                inside[place].abandon()
                del inside[place]

    def _take_back(self) -> None:
        inside = self._units.inside()
        for place in self._places:
            if place in inside:
                inside[place].take_back(self._depth)
                self._units.thread.depth = self._depth
