"""Transactions of several places at once, taken in one order so that no two callers can wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from recollect.errors import StoreError
from recollect.stores.port import Place, in_order
from recollect.stores.sqlite.memories import Memories
from recollect.stores.sqlite.opening import BUSY_SECONDS, MovedError

if TYPE_CHECKING:
    from recollect.stores.sqlite.folder import SqliteFolder


class Writing:
    """The transaction of some places: opened if this thread has none, else joined.

    Inside an open one, several steps are taken back together if one fails; a single step leaves nothing by itself.
    """

    __slots__ = ("_durable", "_folder", "_opened", "_places", "_seconds", "_steps")

    def __init__(
        self,
        folder: SqliteFolder,
        places: Sequence[Place],
        steps: int = 2,
        durable: bool = True,
        seconds: float = BUSY_SECONDS,
    ) -> None:
        self._folder = folder
        self._places = places if len(places) == 1 else in_order(places)
        self._steps = steps
        self._durable = durable
        self._seconds = seconds

    def __enter__(self) -> Memories:
        """The handle of the first place."""
        inside = self._folder.inside()
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
                for place in self._places:
                    inside[place].savepoint()
        return inside[self._places[0]]

    def _open(self, inside: dict[Place, Memories]) -> None:
        try:
            for place in self._places:
                while place not in inside:
                    handle = self._folder.creating(place)
                    try:
                        handle.begin(seconds=self._seconds, durable=self._durable)
                    except MovedError:
                        self._folder.discard(place, handle)
                        continue
                    inside[place] = handle
        except BaseException as error:
            self._close(inside, error)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        inside = self._folder.inside()
        if self._opened and inside:
            self._close(inside, error)
        elif self._steps > 1:
            for place in self._places:
                inside[place].release(error)

    def _close(self, inside: dict[Place, Memories], error: BaseException | None) -> None:
        """Each is ended, whatever happens to the others."""
        problem: BaseException | None = None
        for place in list(inside):
            try:
                inside.pop(place).end(error or problem)
            except BaseException as failure:
                problem = problem or failure
        if problem is not None:
            raise problem
