"""What a conversation holds while it lasts: its turns, and memories that end with it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from recollect.facets.conversations.persist import TURN
from recollect.stores.fields import CHANGEABLE
from recollect.stores.integrity import intact
from recollect.stores.port import by_place
from recollect.values.record import Address, Record
from recollect.view import View

Owner = tuple[str | None, str | None, str | None]
"""The channel, agent and account of a conversation."""


class Contents:
    """Content never changes, so it is read once; what else there is to know of a memory is read anew by `refresh`."""

    def __init__(self, view: View, conversation: str, owner: Owner) -> None:
        everything = replace(view, address=Address(view.address.tenant, view.address.workspace))
        self._store = view.store
        self._owner = owner
        self._where = everything.where(state=None, conversation=conversation)
        roles = ("user", "assistant")
        self._is_turn = everything.where(conversation=conversation, kinds=(TURN,), roles=roles).matcher()
        self._records = {record.id: record for record in self._own(self._store.scan(self._where))}
        self._persisted: set[str] = set()

    def new_turns(self) -> list[Record]:
        """Turns that this has not returned before, oldest first, without damaged ones."""
        turns = self._unpersisted()
        self._persisted.update(turn.id for turn in turns)
        return list(intact(turns))

    def has_new_turns(self) -> bool:
        return bool(self._unpersisted())

    def _unpersisted(self) -> list[Record]:
        return [r for r in self._records.values() if r.id not in self._persisted and self._is_turn(r)]

    def ending(self) -> list[Record]:
        """The memories that end with the conversation: those of its tier or with its lifetime, whoever wrote them."""
        return [r for r in self._records.values() if "conversation" in (r.tier, r.lifetime)]

    def refresh(self) -> None:
        """Read the changes. Of memories that were read before, only the fields that may change."""
        current = {record.id: record for record in self._own(self._store.scan(self._where, whole=False))}
        unread = [record for ident, record in current.items() if ident not in self._records]
        for place, records in by_place(unread).items():
            ids = [record.id for record in records]
            self._records.update((record.id, record) for record in self._store.get(place, ids))
        self._records = {
            ident: _updated(self._records[ident], record) for ident, record in current.items() if ident in self._records
        }

    def _own(self, records: Iterable[Record]) -> list[Record]:
        """Without those of a conversation of the same name in another channel, or of another agent or account."""
        channel, agent, account = self._owner
        return [
            record
            for record in records
            if record.address.channel in (None, channel)
            and agent in (None, record.address.agent or agent)
            and account in (None, record.address.account or account)
        ]


def _updated(read: Record, current: Record) -> Record:
    """The record with the mutable fields of `current`, which may lack content, vector and checksum."""
    return replace(read, **{field: getattr(current, field) for field in CHANGEABLE})
