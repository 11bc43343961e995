"""What somebody has looked at and left as it is, so that it is not shown to them again."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from datetime import datetime

import msgspec

from recollect.facets.shelf import Shelf
from recollect.policies.secrets import screen
from recollect.stores.audit import Entry
from recollect.stores.shelves import ShelfItem
from recollect.values import validation
from recollect.values.errors import InputError
from recollect.view import View

SHELF = "reviews"
_LONGEST_KEY = 200
_LONGEST = 500


class Rejected(msgspec.Struct, frozen=True):
    """A suggestion that was turned down."""

    key: str
    """What it was about, such as a job and a memory."""
    told: str
    """The suggestion in words that hold nothing of a memory."""
    at: datetime


class Reviews:
    """Suggestions of maintenance and of `doctor` that people have turned down in this workspace.

    They are kept on a shelf: every one is in the audit log, can be undone, and goes along with an export.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._shelf = Shelf(view, SHELF, _rejected, action="review")

    def reject(self, suggestions: Iterable[tuple[str, str]]) -> Entry | None:
        """Not again, each a key and words. Returns the audit entry by which that is taken back."""
        view = self._view
        with view.logging_refusals("reviews"):
            view.screen_address()
            wanted = {validation.label(key, "key", _LONGEST_KEY): text[:_LONGEST] for key, text in suggestions}
            if not wanted:
                raise InputError("key", "choose at least one suggestion first")
            for key, text in wanted.items():
                screen(view.preset.secrets, "key", f"{key} {text}")
        with self._shelf.transaction():
            stored = {item.key for item in self._shelf.stored(*wanted)}
            new = [self._shelf.thing(key, {"told": text}) for key, text in wanted.items() if key not in stored]
            number = "1 suggestion" if len(new) == 1 else f"{len(new):,} suggestions"
            for item in new:
                view.store.keep(view.place, item)
            return self._shelf.log(f"turned down {number}", new) if new else None

    def accept_again(self, key: str) -> Entry | None:
        """Show it again."""
        with self._view.logging_refusals("reviews"):
            key = validation.label(key, "key", _LONGEST_KEY)
        with self._shelf.transaction():
            return self._shelf.remove("shows 1 suggestion again", self._shelf.stored(key))

    def list(self) -> builtins.list[Rejected]:
        """The latest first."""
        return self._shelf.list(newest_first=True)


def _rejected(item: ShelfItem) -> Rejected:
    return Rejected(item.key, item.body["told"], item.changed_at)
