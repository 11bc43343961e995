"""What is addressed rather than recalled: a thing under a key on a shelf, with a version.

What is recalled is a record; what is addressed, has a status or must be unique is on a shelf; what happened is an
audit entry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from recollect.values.errors import ConflictError
from recollect.values.record import EPOCH, from_micros, to_micros

COLUMNS = ("shelf", "key", "body", "parent", "account", "agent", "version", "created_at", "changed_at")
"""Of a thing in a table, in the order of `to_row` and `from_row`."""
_encode = msgspec.json.Encoder().encode
_body = msgspec.json.Decoder(dict[str, Any]).decode


class ShelfItem(msgspec.Struct, frozen=True):
    shelf: str
    key: str
    """Unique on its shelf of its place."""
    body: dict[str, Any]
    parent: str | None = None
    account: str | None = None
    """Whose it is; None is shared by all, as with memories."""
    agent: str | None = None
    version: int = 0
    created_at: datetime = EPOCH
    changed_at: datetime = EPOCH

    def contains(self, folded: str) -> bool:
        """Whether the body has a text that was case-folded before."""
        return not folded or folded in msgspec.json.encode(self.body).decode().casefold()


def as_kept(item: ShelfItem, stored: ShelfItem | None, expect: int | None, exact: bool) -> ShelfItem:
    """What a store keeps, in place of what is there now."""
    version = stored.version if stored else 0
    if expect is not None and expect != version:
        state = f"version {version}" if version else "not there"
        raise ConflictError(f"{item.shelf} {item.key} is {state}, not version {expect}; read it again")
    if exact:
        return item
    return msgspec.structs.replace(
        item, version=version + 1, created_at=stored.created_at if stored else item.created_at
    )


def to_row(item: ShelfItem) -> tuple[Any, ...]:
    owner, times = (
        (item.parent, item.account, item.agent),
        (to_micros(item.created_at), to_micros(item.changed_at)),
    )
    return item.shelf, item.key, _encode(item.body).decode(), *owner, item.version, *times


def from_row(row: Sequence[Any]) -> ShelfItem:
    shelf, key, body, parent, account, agent, version, created, changed = row
    return ShelfItem(
        shelf, key, _body(body), parent, account, agent, version, from_micros(created), from_micros(changed)
    )


def names(items: Iterable[ShelfItem]) -> list[str] | None:
    """What stands for them in the audit log, where a key that somebody chose must not stand; None for none."""
    return [hashlib.sha256(f"{item.shelf}\0{item.key}".encode()).hexdigest()[:16] for item in items] or None
