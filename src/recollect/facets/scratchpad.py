"""The scratchpad of a conversation: working state under keys, which an agent reads when it wants to."""

from __future__ import annotations

import builtins
from datetime import datetime
from typing import Annotated, Any

import msgspec

from recollect.facets.shelf import Shelf
from recollect.operations import Doc, operation
from recollect.policies.secrets import screen
from recollect.stores.shelves import ShelfItem
from recollect.values import validation
from recollect.values.errors import InputError, NotFoundError
from recollect.values.filters import belongs_to
from recollect.values.record import render
from recollect.view import CONVERSATIONS, View

SHELF = "scratchpad"
NO_CONVERSATION = 'must be chosen first: --conversation NAME on the command line, memory.at(conversation="…") in Python'
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
            raise InputError("conversation", NO_CONVERSATION)
        self._view = view
        self._shelf = Shelf(view, SHELF, _note, action="scratchpad")
        conversation, own = view.address.conversation, (view.address.account, view.address.agent)
        started = list(view.things(CONVERSATIONS, parent=conversation))
        started.sort(key=lambda item: (item.account, item.agent) != own)
        self._rooms = {item.body["channel"] for item in started}
        """The channels in which a conversation of this name was started."""
        seen = (item.body["channel"] for item in started if view.sees(item))
        self._channel = view.address.channel or next(seen, None)

    @operation("PUT /scratchpad/{key}", does="changes", replaces_in="workspace")
    def write(
        self, key: Annotated[str, Doc("The name of the note.")], value: Annotated[Any, Doc("Text or JSON.")]
    ) -> Note:
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

    @operation()
    def read(self, key: Annotated[str, Doc("The name of the note.")]) -> Any:
        """NotFoundError where nothing is written under the key."""
        return self.note(key).value

    @operation("GET /scratchpad/{key}")
    def note(self, key: Annotated[str, Doc("The name of the note.")]) -> Note:
        """A value and when it was written."""
        key = _key(key)
        for item in self._things(key):
            return _note(item)
        raise NotFoundError(f"the scratchpad of this conversation has nothing under {key!r}")

    @operation("GET /scratchpad")
    def list(self) -> builtins.list[Note]:
        """Every note, by key."""
        notes: dict[str, Note] = {}
        for item in self._things():
            notes.setdefault(item.body["key"], _note(item))
        return [notes[key] for key in sorted(notes)]

    @operation("DELETE /scratchpad", does="removes")
    def clear(
        self, key: Annotated[str | None, Doc("The name of the note; all notes if it is left out.")] = None
    ) -> int:
        """Remove what is under a key, or everything. Returns how many notes.

        From a view of an agent or account everything is what is its own. Under a key it is that too, and the note of
        the whole conversation only where there is no own.
        """
        with self._view.logging_refusals("scratchpad"):
            wanted = None if key is None else _key(key)
        with self._shelf.transaction():
            items = self._clearable(wanted)
            self._shelf.remove("cleared the scratchpad", items)
        return len(items)

    def _is_of_this(self, item: ShelfItem) -> bool:
        """Notes of another channel's conversation of the same name are not this one's."""
        channel = self._view.address.channel
        return "channel" in item.body or channel is None or self._rooms <= {channel}

    def _clearable(self, key: str | None) -> builtins.list[ShelfItem]:
        seen, address = self._things(key), self._view.address
        own = [item for item in seen if belongs_to(address, item.account, item.agent)]
        return own if own or key is None else seen

    def _thing(self, key: str, value: Any) -> ShelfItem:
        address = self._view.address
        owner = address.conversation, address.account, address.agent
        path = msgspec.json.encode((*owner, key, *filter(None, [self._channel]))).decode()
        body = {"key": key, "value": value} | ({"channel": self._channel} if self._channel else {})
        return self._shelf.thing(path, body, *owner)

    def _things(self, key: str | None = None) -> builtins.list[ShelfItem]:
        """Notes that this view sees, its own first, then those written last."""
        address = self._view.address
        owner = address.account, address.agent
        seen = [
            item
            for item in self._shelf.things(parent=address.conversation)
            if key in (None, item.body["key"]) and self._is_of_this(item)
        ]
        seen.sort(key=lambda item: item.changed_at, reverse=True)
        return sorted(seen, key=lambda item: (item.account, item.agent) != owner)


def seen_notes(view: View, conversation: str | None = None) -> builtins.list[ShelfItem]:
    """Notes of one conversation or of all that a view sees, the one written last first."""
    items = [item for item in view.things(SHELF, parent=conversation) if view.sees(item)]
    open_to_view = {
        parent: parent is None or view.sees_conversation(parent) for parent in {note.parent for note in items}
    }
    seen = [item for item in items if open_to_view[item.parent]]
    return sorted(seen, key=lambda item: item.changed_at, reverse=True)


def _key(value: Any) -> str:
    return validation.label(value, "key", _LONGEST_KEY)


def _note(item: ShelfItem) -> Note:
    return Note(item.body["key"], item.body["value"], item.created_at, item.changed_at, item.version)
