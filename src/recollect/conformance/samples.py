"""Memories, filters and questions to try a store with."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from recollect.stores.port import Place, Store, by_place
from recollect.stores.shortlist import Ask, Shortlist
from recollect.text.query import TextQuery
from recollect.values.filters import Filter
from recollect.values.record import Address, Record, new_id

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HERE = Address()
PLACE = Place("default", "default")
OTHER = Place("default", "other")
SHARED = Place("default", None)
"""What the accounts of the tenant share."""

SECOND = timedelta(seconds=1)
TICK = timedelta(microseconds=1)
"""The smallest difference in time that a store must tell apart."""
PLENTY = 1000
"""More memories than any claim keeps: a question that wants so many also looks inside longer words."""


def sample(content: Any = "the build is green", **fields: Any) -> Record:
    """A valid memory in the default workspace; parts of its address may be given like fields."""
    parts: dict[str, Any] = {part: fields.pop(part) for part in Address.__struct_fields__ if part in fields}
    created = fields.get("created_at", NOW)
    values: dict[str, Any] = {
        "id": new_id(),
        "address": Address(**parts),
        "tier": "workspace",
        "kind": "fact",
        "importance": 0.5,
        "created_at": created,
        "accessed_at": created,
        **fields,
    }
    record = Record(content=content, **values)
    if record.tier == "account":
        record = replace(record, address=replace(record.address, workspace=None))
    return replace(record, checksum=record.digest())


def where(view: Address = HERE, **conditions: Any) -> Filter:
    """A filter that sees every state unless told otherwise."""
    values: dict[str, Any] = {"now": NOW, "state": None, **conditions}
    return Filter(seen_from=view, **values)


class DeliberateError(Exception):
    """What goes wrong in a transaction of a test."""


@contextmanager
def failing(store: Store, *places: Place) -> Generator[None]:
    """A transaction around a block, which ends in an exception that must take everything back and pass on."""
    try:
        with store.transaction(*places):
            yield
            raise DeliberateError
    except DeliberateError:
        return
    pytest.fail("the exception did not pass on")


def keep(store: Store, *records: Record) -> list[Record]:
    """Put memories where they belong, and return them as stored, in the order given."""
    groups = by_place(records)
    if not groups:
        return []
    with store.transaction(*groups):
        stored = {place: iter(list(store.put(place, group))) for place, group in groups.items()}
    return [next(stored[Place.of(record)]) for record in records]


def update(store: Store, *records: Record) -> None:
    for place, group in by_place(records).items():
        store.update(place, group)


def delete(store: Store, *records: Record) -> None:
    for place, group in by_place(records).items():
        store.delete(place, ids(group))


def touch(store: Store, at: datetime, *records: Record) -> None:
    for place, group in by_place(records).items():
        store.touch(place, ids(group), at)


def stored(store: Store, ident: str, place: Place = PLACE) -> Record | None:
    """The one with this id, in whatever state."""
    return next(iter(store.get(place, [ident])), None)


def ids(records: Iterable[Record]) -> list[str]:
    return [record.id for record in records]


def total(store: Store, filter: Filter) -> int:
    return sum(store.count(filter).values())


def words(*words: str) -> TextQuery:
    return TextQuery(words=words)


NO_WORDS = TextQuery()


def ask(query: TextQuery = NO_WORDS, filter: Filter | None = None, **fields: Any) -> Ask:
    """A question. A loose query becomes one that also looks inside longer words."""
    if query.loose:
        query, fields = replace(query, loose=False), {"enough": PLENTY, **fields}
    return Ask(where=filter or where(), words=query, **fields)


def seen_ids(shortlist: Shortlist) -> list[str]:
    """What a shortlist may show, in its order."""
    block = shortlist.block
    return [block.ids[at] for at in shortlist.seen.mask.nonzero()[0].tolist()]


def matching_ids(shortlist: Shortlist, query: TextQuery) -> set[str]:
    """What answers the query: what has every phrase and pattern, or else one of the words at least."""
    if query.phrases or query.patterns:
        return set(seen_ids(shortlist))
    positions: set[int] = {at for row in (*shortlist.words.values(), *shortlist.loose.values()) for at in row.tolist()}
    assert all(shortlist.seen.mask[at] for at in positions), "words are counted only where the filter sees them"
    return {shortlist.block.ids[at] for at in positions}


def search(store: Store, query: TextQuery, filter: Filter | None = None) -> list[Record]:
    """The memories that a search finds, in no particular order."""
    records: list[Record] = []
    for shortlist in store.search(ask(query, filter)):
        records += store.get(shortlist.place, sorted(matching_ids(shortlist, query)))
    return records


def seen(store: Store, filter: Filter) -> list[str]:
    """Ids of all that a question without words sees."""
    return [ident for shortlist in store.search(ask(filter=filter)) for ident in seen_ids(shortlist)]


def contents(records: Iterable[Record]) -> list[Any]:
    return sorted(record.content for record in records)
