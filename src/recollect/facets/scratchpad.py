"""The scratchpad of a conversation: working state under keys, which an agent reads when it wants to."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from recollect import validation
from recollect.errors import InputError, NotFoundError
from recollect.record import Record, render
from recollect.stores.port import Place
from recollect.verbs import remember as changes
from recollect.verbs.draft import screen
from recollect.verbs.forget import Forget, forget
from recollect.view import View

KIND = "scratchpad"
_LONGEST_KEY = 100


class Note(msgspec.Struct, frozen=True):
    """A value as it was last written."""

    key: str
    value: Any
    written_at: datetime
    id: str
    """Of the record that holds it, for `history`, `undo` and the audit log."""


class Scratchpad:
    """Any JSON under a key, seen by this conversation only, and never put before a model unless it is read.

    Each note is a record of the kind `scratchpad`, so what holds for memories holds for it: secrets are refused, every
    change is in the audit log and can be undone, and earlier values stay in the history. It outlives the conversation's
    end; `clear` ends it. An agent has notes of its own beside those of the whole conversation, and its own come first.
    """

    def __init__(self, view: View) -> None:
        if view.address.conversation is None or view.address.workspace is None:
            raise InputError("conversation", 'must be chosen first: memory.at(conversation="…").scratchpad')
        self._view = view

    def write(self, key: str, value: Any) -> Note:
        """Put a value under a key, in place of the one that is there."""
        view = self._view
        with view.refusing("scratchpad"):
            key = _key(key)
            value = validation.metadata({"value": value}, "value", validation.MAX_CONTENT_BYTES)["value"]
            screen(view.preset, "value", render({key: value}))  # a password may be one only under its name
            fields: dict[str, Any] = {"content": {"key": key, "value": value}, "metadata": {"key": key}}
            with view.store.transaction(self._place):  # of two who write the same key, one finds the other's note
                own = [record for record in self._records(key) if _owner(record) == self._owner]
                if own:
                    return _note(changes.revise(view, own[0].id, fields))
                fields |= {"kind": KIND, "tier": "conversation", "importance": 1.0}
                return _note(changes.remember(view, [fields])[0])

    def read(self, key: str) -> Any:
        """NotFoundError where nothing is written under the key."""
        return self.note(key).value

    def note(self, key: str) -> Note:
        """A value and when it was written."""
        key = _key(key)
        for record in self._records(key):
            return _note(record)
        raise NotFoundError(f"the scratchpad of this conversation has nothing under {key!r}")

    def list(self) -> list[Note]:
        """Every note, by key."""
        notes: dict[str, Note] = {}
        for record in self._records():
            notes.setdefault(record.metadata["key"], _note(record))
        return [notes[key] for key in sorted(notes)]

    def clear(self, key: str | None = None) -> int:
        """Forget what is under a key, or everything. Returns how many notes."""
        view = self._view
        with view.refusing("scratchpad"):
            wanted = None if key is None else _key(key)
        with view.store.transaction(self._place):
            found = [record.id for record in self._records(wanted)]
            if found:
                forget(view, Forget(id=found, reason="scratchpad cleared"))
        return len(found)

    @property
    def _place(self) -> Place:
        return self._view.place

    @property
    def _owner(self) -> tuple[str | None, str | None]:
        return self._view.address.account, self._view.address.agent

    def _records(self, key: str | None = None) -> list[Record]:
        """Live notes that this view sees, its own first, then the newest."""
        conversation = self._view.address.conversation
        where = self._view.where(kinds=(KIND,), tiers=("conversation",), conversation=conversation)
        found = [
            record
            for record in self._view.store.scan(where, newest_first=True)
            if _is_note(record) and key in (None, record.metadata["key"])
        ]
        return sorted(found, key=lambda record: _owner(record) != self._owner)


def _key(value: Any) -> str:
    return validation.label(value, "key", _LONGEST_KEY)


def _owner(record: Record) -> tuple[str | None, str | None]:
    return record.address.account, record.address.agent


def _is_note(record: Record) -> bool:
    """Anybody may remember something of this kind; only what was written here has a key and a value."""
    content = record.content
    return isinstance(record.metadata.get("key"), str) and isinstance(content, dict) and "value" in content


def _note(record: Record) -> Note:
    return Note(record.metadata["key"], record.content["value"], record.created_at, record.id)
