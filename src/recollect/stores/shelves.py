"""What is addressed rather than recalled: a thing under a key on a shelf, with a version.

What is recalled is a record; what is addressed, has a status or must be unique is on a shelf; what happened is an
audit entry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from recollect.errors import ConflictError
from recollect.record import EPOCH


class Thing(msgspec.Struct, frozen=True):
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


def check_version(thing: Thing, there: int, expect: int | None) -> None:
    """`there` is the version that is kept now, 0 for none."""
    if expect is not None and expect != there:
        known = f"version {there}" if there else "not there"
        raise ConflictError(f"{thing.shelf} {thing.key} is {known}, not version {expect}; read it again")


def as_kept(thing: Thing, there: Thing | None, expect: int | None, exact: bool) -> Thing:
    """What a store keeps, in place of what is there now."""
    version = there.version if there else 0
    check_version(thing, version, expect)
    if exact:
        return thing
    return msgspec.structs.replace(
        thing, version=version + 1, created_at=there.created_at if there else thing.created_at
    )


def names(things: Iterable[Thing]) -> list[str] | None:
    """What stands for them in the audit log, where a key that somebody chose must not stand; None for none."""
    return [hashlib.sha256(f"{thing.shelf}\0{thing.key}".encode()).hexdigest()[:16] for thing in things] or None
