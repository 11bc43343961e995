"""The verb revise, and the history that it leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from recollect.policies.personal import is_automatic_tag
from recollect.stores.port import Place
from recollect.values.errors import ConflictError, InputError
from recollect.values.filters import PRIVATE_KINDS
from recollect.values.record import Record, parse_time, superseded
from recollect.verbs.remember import with_model
from recollect.verbs.remember.draft import draft_record, signed
from recollect.view import View

REVISED = "revised a "
"""How the message of its audit entry begins."""
_TOGETHER = 500
"""Ids that a filter names at once."""


def revise(view: View, ident: str, changes: Mapping[str, Any]) -> Record:
    """A new record in place of an old one, which stays as its history."""
    with view.logging_refusals("revise"):
        view.screen_address()
        place = Place.of(view.find_one(ident))
        with view.store.transaction(place):
            new = _superseded(view, place, ident, changes)
    view.new_in(place)
    return view.mark_unsaved([new])[0]


def _superseded(view: View, place: Place, ident: str, changes: Mapping[str, Any]) -> Record:
    """As it is now that nobody else can write there."""
    (old,) = view.store.get(place, [ident]) or [view.find_one(ident)]
    if old.superseded_by is not None:
        raise ConflictError(f"memory {old.id} was superseded by {old.superseded_by}; revise that one")
    successor = _successor(view, old, changes)
    view.check_private(successor.kind, successor.address.agent)
    (new,) = view.store.put(place, [successor])
    view.store.update(place, [superseded(old, new)])
    changes = {"created": [new.id], "changed": [old.id]}
    view.log(place, "revise", f"{REVISED}{new.kind}", before=[old], concerning=[new], **changes)
    return new


def _successor(view: View, old: Record, changes: Mapping[str, Any]) -> Record:
    now = view.now()
    inherited: dict[str, Any] = {
        "content": old.content,
        "kind": old.kind,
        "importance": old.importance,
        "tags": old.tags,
        "role": old.role,
        "source": old.source,
        "references": old.references,
        "derived_from": old.derived_from,
        "valid_from": old.valid_from,
        "valid_until": old.valid_until,
        "metadata": old.metadata,
        "lifetime": old.lifetime,
        "tier": old.tier,
    }
    if old.lifetime == "conversation" and old.address.conversation is None:
        del inherited["lifetime"]  # from a version that stored it without a conversation
    if old.kind in PRIVATE_KINDS:  # an entry of a journal stays on its day, in the order of the others
        inherited |= {"created_at": old.created_at, "expires_at": old.expires_at}
    elif old.expires_at is not None:
        inherited["expires_at"] = _as_long(old.created_at, old.expires_at, now)
    values = {field: value for field, value in changes.items() if value is not None}
    if "content" in values:  # the new words tell of themselves
        inherited["tags"] = tuple(tag for tag in old.tags if not is_automatic_tag(tag))
    if not values:
        raise InputError("content", "or another field must be given: there is nothing to revise")
    if "valid_from" in values and old.valid_until and parse_time(values["valid_from"], "valid_from") >= old.valid_until:
        del inherited["valid_until"]  # so again, after it was over
    if "content" not in values and "embedding" not in values:
        inherited |= {"embedding": old.floats, "embedding_model": old.embedding_model}
    new = draft_record(inherited | dict(with_model(view, values)), old.address, view.preset, now)
    return signed(replace(new, address=old.address), view.address.agent)


def _as_long(created: datetime, expires: datetime, now: datetime) -> datetime:
    try:
        return now + (expires - created)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def history(view: View, ident: str) -> list[Record]:
    """Every version of a memory, oldest first."""
    record = view.find_one(ident)
    return [*ancestors(view, [record])[::-1], record, *view.successors(record)]


def ancestors(view: View, records: Sequence[Record], *, damaged: bool = False) -> list[Record]:
    """What these superseded, directly and before, newest first; `damaged` ones only where they are asked for."""
    scan = view.store.scan if damaged else view.scan
    earlier: list[Record] = []
    generation = list(records)
    seen = {record.id for record in records}
    while generation:
        replaced: list[Record] = []
        for at in range(0, len(generation), _TOGETHER):
            ids = tuple(record.id for record in generation[at : at + _TOGETHER])
            replaced += scan(view.where(state=None, superseded_by=ids), order="newest")
        generation = [record for record in replaced if record.id not in seen]
        earlier += generation
        seen.update(record.id for record in generation)
    return earlier
