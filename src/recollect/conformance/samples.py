"""Memories and filters to try a store with."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from recollect.filters import Filter
from recollect.record import Address, Record, new_id
from recollect.stores.port import JournaledStore, Place

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HERE = Address()
PLACE = Place("default", "default")
SHARED = Place("default", None)
"""What the accounts of the tenant share."""

SECOND = timedelta(seconds=1)
TICK = timedelta(microseconds=1)
"""The smallest difference in time that a store must tell apart."""


def sample(content: Any = "the build is green", **fields: Any) -> Record:
    """A valid memory in the default workspace; parts of its address may be given like fields."""
    parts: dict[str, Any] = {part: fields.pop(part) for part in Address.__struct_fields__ if part in fields}
    created = fields.get("created_at", NOW)
    given: dict[str, Any] = {
        "id": new_id(),
        "address": Address(**parts),
        "tier": "workspace",
        "kind": "fact",
        "importance": 0.5,
        "created_at": created,
        "accessed_at": created,
        **fields,
    }
    record = Record(content=content, **given)
    if record.tier == "account":
        record = replace(record, address=replace(record.address, workspace=None))
    return replace(record, checksum=record.digest())


def where(view: Address = HERE, **conditions: Any) -> Filter:
    """A filter that sees every state unless told otherwise."""
    given: dict[str, Any] = {"now": NOW, "state": None, **conditions}
    return Filter(view=view, **given)


class DeliberateError(Exception):
    """What goes wrong in a transaction of a test."""


@contextmanager
def failing(store: JournaledStore, *places: Place) -> Generator[None]:
    """A transaction around a block, which ends in an exception that must take everything back and pass on."""
    try:
        with ExitStack() as transactions:
            for place in places:
                transactions.enter_context(store.transaction(place))
            yield
            raise DeliberateError
    except DeliberateError:
        return
    pytest.fail("the exception did not pass on")


def keep(store: JournaledStore, *records: Record) -> list[Record]:
    return list(store.put(records))


def found(store: JournaledStore, ident: str, view: Address = HERE) -> Record | None:
    """The one with this id, in whatever state."""
    return next(iter(store.get([ident], view)), None)


def ids(records: Iterable[Record]) -> list[str]:
    return [record.id for record in records]
