"""The scratchpad of a conversation: working state under keys, which an agent reads when it wants to."""

from __future__ import annotations

import builtins
from datetime import datetime
from typing import Any

import msgspec

from recollect.facets.shelf import Shelf
from recollect.policies.secrets import screen
from recollect.stores.shelves import Thing
from recollect.values import validation
from recollect.values.errors import InputError, NotFoundError
from recollect.values.filters import belongs_to
from recollect.values.record import render
from recollect.view import CONVERSATIONS, View

SHELF = "scratchpad"
_LONGEST_KEY = 100


class Note(msgspec.Struct, frozen=True):
    """A value as it was last written."""

    key: str
    value: Any
    created_at: datetime
    """When something was first written under the key."""
    updated_at: datetime
    version: int
    """How often it was written since."""


class Scratchpad:
    """Any JSON under a key, seen by this conversation only, and never put before a model unless it is read.

    It is kept on a shelf and not among the memories: nothing recalls it, counts it or makes a vector of it. Secrets are
    refused, every change is in the audit log and can be undone. It outlives the conversation's end; `clear` ends it.
    An agent has notes of its own beside those of the whole conversation, and its own come first.
    """

    def __init__(self, view: View) -> None:
        if view.address.conversation is None or view.address.workspace is None:
            raise InputError("conversation", 'must be chosen first: memory.at(conversation="…").scratchpad')
        self._view = view
        self._shelf = Shelf(view, SHELF, _note, action="scratchpad")
        conversation, own = view.address.conversation, (view.address.account, view.address.agent)
        started = list(view.things(CONVERSATIONS, parent=conversation))
        started.sort(key=lambda thing: (thing.account, thing.agent) != own)
        self._rooms = {thing.body["channel"] for thing in started}
        """The channels in which a conversation of this name was started."""
        seen = (thing.body["channel"] for thing in started if view.sees(thing))
        self._channel = view.address.channel or next(seen, None)

    def write(self, key: str, value: Any) -> Note:
        """Put a value under a key, in place of the one that is there."""
        view = self._view
        with view.logging_refusals("scratchpad"):
            view.screen_address()
            key = _key(key)
            value = validation.metadata({"value": value}, "value", validation.MAX_CONTENT_BYTES)["value"]
            text, most = render({key: value}), view.preset.remember.max_chars
            if most is not None and len(text) > most:
                raise InputError("value", f"{len(text):,} characters is over the limit of {most:,}")
            screen(view.preset.secrets, "value", text)  # a password may be one only under its name
        (stored,) = self._shelf.save("wrote to the scratchpad", self._thing(key, value))
        return _note(stored)

    def read(self, key: str) -> Any:
        """NotFoundError where nothing is written under the key."""
        return self.note(key).value

    def note(self, key: str) -> Note:
        """A value and when it was written."""
        key = _key(key)
        for thing in self._things(key):
            return _note(thing)
        raise NotFoundError(f"the scratchpad of this conversation has nothing under {key!r}")

    def list(self) -> builtins.list[Note]:
        """Every note, by key."""
        notes: dict[str, Note] = {}
        for thing in self._things():
            notes.setdefault(thing.body["key"], _note(thing))
        return [notes[key] for key in sorted(notes)]

    def clear(self, key: str | None = None) -> int:
        """Remove what is under a key, or everything. Returns how many notes.

        From a view of an agent or account everything is what is its own. Under a key it is that too, and the note of
        the whole conversation only where there is no own.
        """
        with self._view.logging_refusals("scratchpad"):
            wanted = None if key is None else _key(key)
        with self._shelf.transaction():
            things = self._clearable(wanted)
            self._shelf.remove("cleared the scratchpad", things)
        return len(things)

    def _is_of_this(self, thing: Thing) -> bool:
        """Notes of another channel's conversation of the same name are not this one's."""
        channel = self._view.address.channel
        return "channel" in thing.body or channel is None or self._rooms <= {channel}

    def _clearable(self, key: str | None) -> builtins.list[Thing]:
        seen, address = self._things(key), self._view.address
        own = [thing for thing in seen if belongs_to(address, thing.account, thing.agent)]
        return own if own or key is None else seen

    def _thing(self, key: str, value: Any) -> Thing:
        address = self._view.address
        owner = address.conversation, address.account, address.agent
        path = msgspec.json.encode((*owner, key, *filter(None, [self._channel]))).decode()
        body = {"key": key, "value": value} | ({"channel": self._channel} if self._channel else {})
        return self._shelf.thing(path, body, *owner)

    def _things(self, key: str | None = None) -> builtins.list[Thing]:
        """Notes that this view sees, its own first, then those written last."""
        address = self._view.address
        owner = address.account, address.agent
        seen = [
            thing
            for thing in self._shelf.things(parent=address.conversation)
            if key in (None, thing.body["key"]) and self._is_of_this(thing)
        ]
        seen.sort(key=lambda thing: thing.changed_at, reverse=True)
        return sorted(seen, key=lambda thing: (thing.account, thing.agent) != owner)


def seen_notes(view: View, conversation: str | None = None) -> builtins.list[Thing]:
    """Notes of one conversation or of all that a view sees, the one written last first."""
    things = [thing for thing in view.things(SHELF, parent=conversation) if view.sees(thing)]
    open_to_view = {
        parent: parent is None or view.sees_conversation(parent) for parent in {note.parent for note in things}
    }
    seen = [thing for thing in things if open_to_view[thing.parent]]
    return sorted(seen, key=lambda thing: thing.changed_at, reverse=True)


def _key(value: Any) -> str:
    return validation.label(value, "key", _LONGEST_KEY)


def _note(thing: Thing) -> Note:
    return Note(thing.body["key"], thing.body["value"], thing.created_at, thing.changed_at, thing.version)
