"""What somebody has looked at and left as it is, so that it is not shown to them again."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from datetime import datetime

import msgspec

from recollect.policies.secrets import screen
from recollect.stores.audit import Entry
from recollect.stores.shelves import Thing, names
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

    def reject(self, suggestions: Iterable[tuple[str, str]]) -> Entry | None:
        """Not again, each a key and words. Returns the audit entry by which that is taken back."""
        view, place = self._view, self._view.place
        with view.refusing("reviews"):
            view.screen_address()
            wanted = {validation.label(key, "key", _LONGEST_KEY): told[:_LONGEST] for key, told in suggestions}
            if not wanted:
                raise InputError("key", "choose at least one suggestion first")
            for key, told in wanted.items():
                screen(view.preset.secrets, "key", f"{key} {told}")
        now = view.now()
        things = [Thing(SHELF, k, {"told": told}, created_at=now, changed_at=now) for k, told in wanted.items()]
        with view.store.transaction(place):
            there = {thing.key for thing in view.store.find(place, SHELF, list(wanted))}
            new = [thing for thing in things if thing.key not in there]
            for thing in new:
                view.store.keep(place, thing)
            number = "1 suggestion" if len(new) == 1 else f"{len(new):,} suggestions"
            return (
                view.log(place, "review", f"turned down {number}", (), new, things_changed=names(new)) if new else None
            )

    def accept_again(self, key: str) -> Entry | None:
        """Show it again."""
        view, place = self._view, self._view.place
        with view.refusing("reviews"):
            key = validation.label(key, "key", _LONGEST_KEY)
        with view.store.transaction(place):
            things = view.store.find(place, SHELF, [key])
            if not things:
                return None
            view.store.remove(place, SHELF, [key])
            return view.log(place, "review", "shows 1 suggestion again", (), things, things_changed=names(things))

    def list(self) -> builtins.list[Rejected]:
        """The latest first."""
        things = self._view.things(SHELF, newest_first=True)
        return [Rejected(thing.key, thing.body["told"], thing.changed_at) for thing in things]
