"""A shelf as a view sees and changes it: every change is one audit entry, and can be undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from recollect.stores.audit import Entry
from recollect.stores.integrity import readable
from recollect.stores.port import Place
from recollect.stores.shelves import ShelfItem, names
from recollect.view import View

T = TypeVar("T")


class Shelf(Generic[T]):
    """The things of one kind in one place, by key. `read` makes of a thing what callers are given."""

    def __init__(
        self, view: View, name: str, read: Callable[[ShelfItem], T], *, action: str, place: Place | None = None
    ):
        self.name, self.read = name, read
        self.place = view.place if place is None else place
        self._view, self._action = view, action

    def transaction(self) -> AbstractContextManager[object]:
        return self._view.store.transaction(self.place)

    def sees(self, item: ShelfItem) -> bool:
        return self._view.sees(item)

    def things(
        self, *, parent: str | None = None, newest_first: bool = False, after: str | None = None
    ) -> Iterator[ShelfItem]:
        """Those that the view sees and that can be read, in the order in which they were first stored."""
        stored = self._view.store.shelf(self.place, self.name, parent=parent, newest_first=newest_first, after=after)
        return filter(self.sees, readable(self.place, stored))

    def stored(self, *keys: str) -> list[ShelfItem]:
        """Those that are stored, whether the view sees them or not: a key that another has is taken."""
        return self._view.store.find(self.place, self.name, keys)

    def list(self, *, parent: str | None = None, newest_first: bool = False) -> list[T]:
        return [self.read(item) for item in self.things(parent=parent, newest_first=newest_first)]

    def thing(
        self,
        key: str,
        body: dict[str, Any],
        parent: str | None = None,
        account: str | None = None,
        agent: str | None = None,
    ) -> ShelfItem:
        """A new one."""
        now = self._view.now()
        return ShelfItem(self.name, key, body, parent, account, agent, created_at=now, changed_at=now)

    def save(self, message: str, *items: ShelfItem, expect: int | None = None, **meta: Any) -> list[ShelfItem]:
        """Store things, in place of those under their keys, as one change. With `expect` that version must be there.

        They may be of several shelves of the place.
        """
        store, place = self._view.store, self.place
        with store.transaction(place):
            before = [*map(self._before, items)]
            stored = [store.keep(place, item, expect=expect) for item in items]
            self.log(message, before, **meta)
        return stored

    def _before(self, item: ShelfItem) -> ShelfItem:
        """The stored thing; if there is none, the new one, with version 0."""
        stored = self._view.store.find(self.place, item.shelf, [item.key])
        return stored[0] if stored else item

    def remove(self, message: str, items: Sequence[ShelfItem], **meta: Any) -> Entry | None:
        """Remove things as one change. Nothing is logged where there is nothing to remove."""
        if not items:
            return None
        with self.transaction():
            self._view.store.remove(self.place, self.name, [item.key for item in items])
            return self.log(message, items, **meta)

    def log(self, message: str, before: Sequence[ShelfItem], **meta: Any) -> Entry:
        """Add an audit entry with undo data. Called in a transaction."""
        return self._view.log(self.place, self._action, message, (), before, things_changed=names(before), **meta)
