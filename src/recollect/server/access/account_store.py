"""The shelves that hold keys, people and logins: in a workspace of the store that no view can name."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from recollect.server.access.caller import PARTS
from recollect.stores.audit import Entry, request_meta
from recollect.stores.port import SERVER, Place, Store
from recollect.stores.shelves import ShelfItem
from recollect.values import validation
from recollect.values.errors import ConflictError, NotFoundError
from recollect.values.record import new_id, utc_now

PLACE = Place("default", SERVER)
_ATTEMPTS = 100
T = TypeVar("T")
Changes = Mapping[str, Any] | Callable[[Mapping[str, Any]], dict[str, Any]]
"""The fields to change, or a function that makes them of the fields as they are."""


class AccountStore:
    """Reads the store at every call: what another process revokes is revoked here as well."""

    def __init__(self, store: Store, clock: Callable[[], datetime] = utc_now) -> None:
        self.store, self.clock = store, clock

    def transaction(self) -> contextlib.AbstractContextManager[Any]:
        return self.store.transaction(PLACE)

    def all(self, shelf: str, kind: type[T], tenant: str | None) -> list[T]:
        """The newest first."""
        items = self.store.shelf(PLACE, shelf, newest_first=True)
        return [
            msgspec.convert(item.body, kind, strict=False)
            for item in items
            if tenant is None or item.body.get("tenant") == tenant
        ]

    def find(self, shelf: str, key: str) -> ShelfItem | None:
        return next(iter(self.store.find(PLACE, shelf, [key])), None)

    def get(self, shelf: str, key: str, what: str) -> ShelfItem:
        """`what` is the word for it in the NotFoundError."""
        if (item := self.find(shelf, key)) is None:
            raise NotFoundError(f"there is no {what} {key}")
        return item

    def put(self, shelf: str, key: str, body: Mapping[str, Any]) -> None:
        item = ShelfItem(shelf, key, msgspec.to_builtins(dict(body)), changed_at=self.clock())
        self.store.keep(PLACE, item)

    def add(self, shelf: str, key: str, body: Mapping[str, Any]) -> None:
        """ConflictError if the key is taken."""
        self.store.keep(PLACE, ShelfItem(shelf, key, msgspec.to_builtins(body), created_at=self.clock()), expect=0)

    def change(self, shelf: str, key: str, what: str, changes: Changes) -> dict[str, Any]:
        """Change some fields. Reads again and retries when another process was quicker. Returns all fields."""
        for _ in range(_ATTEMPTS):
            item = self.get(shelf, key, what)
            fields = changes(item.body) if callable(changes) else changes
            body: dict[str, Any] = msgspec.to_builtins({**item.body, **fields})
            with contextlib.suppress(ConflictError):
                changed = msgspec.structs.replace(item, body=body, changed_at=self.clock())
                self.store.keep(PLACE, changed, expect=item.version)
                return body
        raise ConflictError(f"{what} {key} is being changed by others; try again")

    def remove(self, shelf: str, keys: list[str]) -> int:
        return self.store.remove(PLACE, shelf, keys) if keys else 0

    def log(self, action: str, message: str, about: str | None = None, whence: str | None = None) -> None:
        """Append to the server's own audit log."""
        meta = {name: value for name, value in (("about", about), ("from", whence)) if value}
        meta |= request_meta()
        self.store.append(PLACE, Entry(0, new_id(), self.clock(), action, message, None, meta))

    def entries(self, limit: int = 100) -> Iterator[Entry]:
        """The server's own audit log, the newest first."""
        return self.store.entries(PLACE, newest_first=True, limit=limit)


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def checked_parts(bound: Mapping[str, str | None]) -> dict[str, str | None]:
    """The parts of an address that a key or a person is bound to, validated."""
    return {
        part: None if (value := bound.get(part)) is None else validation.name(value, part)
        for part in PARTS
        if part in bound and (part != "tenant" or bound[part] is not None)
    }


def bound_parts(owner: Any) -> dict[str, str]:
    """The parts of the address that a key or a person is bound to."""
    return {part: value for part in PARTS if (value := getattr(owner, part)) is not None}
