"""Transactions of several places at once, taken in one order so that no two callers can wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from recollect.stores.port import Place, in_order
from recollect.stores.scope import Scope
from recollect.stores.sqlite.opening import MovedError
from recollect.stores.sqlite.place_file import PlaceFile
from recollect.values.errors import RecollectError, StoreError

if TYPE_CHECKING:
    from recollect.stores.sqlite.places import SqlitePlaces


H = TypeVar("H", bound=PlaceFile)


class Writing(Scope[H], Generic[H]):
    """The transaction of some places: opened if this thread has none, else joined.

    Inside an open one, several steps are taken back together if one fails; a single step leaves nothing by itself.
    """

    __slots__ = ("_depth", "_durable", "_folder", "_opened", "_places", "_seconds", "_steps")

    def __init__(
        self,
        folder: SqlitePlaces[H],
        places: Sequence[Place],
        steps: int = 2,
        durable: bool = True,
        seconds: float | None = None,
    ) -> None:
        """`seconds` to wait for other writers; as long as the store is patient without."""
        self._folder = folder
        self._places = places if len(places) == 1 else in_order(places)
        self._steps = steps
        self._durable = durable
        self._seconds = seconds
        self._depth = 0
        self._opened: bool | None = None
        """Not known before it is entered."""

    def enter(self) -> H:
        """The handle of the first place."""
        inside, self._depth = self._folder.inside(), self._folder.thread.depth
        self._opened = not inside
        if not self._places:
            return None  # pyright: ignore[reportReturnType] - nobody has a place to write to
        if not inside:
            self._open(inside)
        else:
            for place in self._places:
                if place not in inside:
                    raise StoreError(f"a transaction in {place} was begun inside one of other places; name all at once")
            if self._steps > 1:
                self._folder.thread.depth = self._depth + 1
                for place in self._places:
                    inside[place].savepoint(self._depth)
        return inside[self._places[0]]

    def _open(self, inside: dict[Place, H]) -> None:
        self._folder.starting()
        for place in self._places:
            while place not in inside:
                handle = inside[place] = self._folder.creating(place)
                try:
                    seconds = handle.patience if self._seconds is None else self._seconds
                    handle.begin(seconds=seconds, durable=self._durable)
                except MovedError:
                    del inside[place]
                    self._folder.discard(place, handle)

    def leave(self, error: BaseException | None) -> None:
        inside = self._folder.inside()
        if self._opened:
            self._close(inside, error)
        elif self._steps > 1:
            for place in self._places:
                inside[place].release(self._depth, error)
            self._folder.thread.depth = self._depth

    def _close(self, inside: dict[Place, H], error: BaseException | None) -> None:
        """Each is ended, whatever happens to the others. Where some were committed by then, they are taken back."""
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
            self._folder.intents.done(record)
        elif record and not inside:
            self._folder.intents.finish_left()
        if problem is not None:
            raise problem

    def _noted(self, inside: dict[Place, H]) -> str:
        """The path of the record of what is about to be committed; none for a change of one place."""
        parts = [part for handle in inside.values() if (part := handle.intent()) is not None]
        if len(parts) < 2:
            return ""
        for handle in inside.values():
            handle.prepare()
        try:
            return self._folder.intents.note(parts)
        except OSError as error:
            raise StoreError(
                f"{self._folder.intents.folder}: the change could not be written: {error.strerror}"
            ) from error

    def abandon(self) -> None:
        inside = self._folder.inside()
        for place in self._places:
            if place in inside and self._opened:
                inside[place].abandon()
                del inside[place]
            elif place in inside and self._opened is False and self._steps > 1:
                inside[place].take_back(self._depth)
                self._folder.thread.depth = self._depth
