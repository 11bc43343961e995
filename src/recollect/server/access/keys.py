"""Keys for programs. A secret is shown once; only its hash is stored."""

from __future__ import annotations

import contextlib
import hmac
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from recollect.operations import Rank
from recollect.server.access.account_store import PLACE, AccountStore, bound_parts, checked_parts, hash_secret
from recollect.server.access.caller import Caller, UnknownCallerError
from recollect.stores.shelves import ShelfItem
from recollect.values import validation
from recollect.values.errors import ConflictError, InputError
from recollect.values.record import parse_time

_SHELF = "keys"
_PREFIX = "rk"
_USE_INTERVAL = timedelta(minutes=1)
"""`last_used` is written at most once in this time."""
_MOST_MADE = 1000


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a key. The secret itself is shown once and kept nowhere."""

    id: str
    name: str
    rank: Rank
    tenant: str | None = "default"
    """None for a service that names the tenant in each request."""
    workspace: str | None = None
    account: str | None = None
    agent: str | None = None
    created_at: datetime
    expires_at: datetime | None = None
    last_used: datetime | None = None
    revoked_at: datetime | None = None


class IssuedKey(msgspec.Struct, frozen=True):
    """A key as it is told to whoever asked for it: the only time that its secret is seen."""

    key: Key
    secret: str


class Keys:
    def __init__(self, accounts: AccountStore) -> None:
        self._accounts = accounts
        self._made: dict[str, tuple[int, Key, Caller]] = {}
        """What was made of a version of a key, by the key's id."""

    def create(
        self,
        name: str,
        rank: str,
        *,
        expires_at: datetime | str | None = None,
        all_tenants: bool = False,
        **bound: str | None,
    ) -> IssuedKey:
        parts, now = checked_parts(bound), self._accounts.clock()
        if all_tenants:
            if parts:
                raise InputError("all_tenants", f"and {next(iter(parts))} do not go together")
            parts = {"tenant": None}
        key = Key(
            id=secrets.token_hex(6),
            name=validation.label(name, "name"),
            rank=validation.choice(rank, "rank", Rank),
            created_at=now,
            expires_at=None if expires_at is None else parse_time(expires_at, "expires_at"),
            **parts,  # type: ignore[arg-type]
        )
        if key.expires_at is not None and key.expires_at <= now:
            raise InputError("expires_at", "must be later than now")
        secret = secrets.token_urlsafe(32)
        with self._accounts.transaction():
            self._accounts.put(_SHELF, key.id, {**msgspec.to_builtins(key), "hash": hash_secret(secret)})
            self._accounts.log("key", f"made key {key.id} for a {key.rank}", key.id)
        return IssuedKey(key, f"{_PREFIX}_{key.id}_{secret}")

    def rotate(self, ident: str) -> IssuedKey:
        """Another secret under the same id. The one before it is worth nothing at once."""
        secret = secrets.token_urlsafe(32)

        def new_hash(body: Mapping[str, Any]) -> dict[str, Any]:
            if body.get("revoked_at") is not None:
                raise ConflictError(f"key {ident} is revoked; make a new one")
            return {"hash": hash_secret(secret)}

        with self._accounts.transaction():
            body = self._accounts.change(_SHELF, ident, "key", new_hash)
            self._accounts.log("key", f"rotated key {ident}", ident)
        return IssuedKey(msgspec.convert(body, Key, strict=False), f"{_PREFIX}_{ident}_{secret}")

    def revoke(self, ident: str) -> Key:
        with self._accounts.transaction():
            changes = {"revoked_at": self._accounts.clock(), "hash": ""}
            body = self._accounts.change(_SHELF, ident, "key", changes)
            self._accounts.log("key", f"revoked key {ident}", ident)
        return msgspec.convert(body, Key, strict=False)

    def get(self, ident: str) -> Key:
        return msgspec.convert(self._accounts.get(_SHELF, ident, "key").body, Key, strict=False)

    def list(self, tenant: str | None = None) -> list[Key]:
        """The newest first."""
        return self._accounts.all(_SHELF, Key, tenant)

    def caller_of(self, token: str) -> Caller:
        """The caller whose key this is. UnknownCallerError if it is wrong, revoked or expired."""
        prefix, _, rest = token.partition("_")
        ident, _, secret = rest.partition("_")
        item = self._accounts.find(_SHELF, ident) if prefix == _PREFIX and ident and secret else None
        body = item.body if item else {"hash": ""}
        right = hmac.compare_digest(hash_secret(secret), str(body["hash"]))
        if item is None or not right:
            raise UnknownCallerError("the key is not known here, or no longer")
        now = self._accounts.clock()
        key, caller = self._read(item)
        if key.expires_at is not None and key.expires_at <= now:
            raise UnknownCallerError(f"key {key.id} expired on {key.expires_at:%Y-%m-%d}; make a new one")
        if key.last_used is None or now - key.last_used >= _USE_INTERVAL:
            self._write_last_used(item, now)
        return caller

    def _read(self, item: ShelfItem) -> tuple[Key, Caller]:
        """The key on the shelf and its caller, which are made once for each version of it.

        That the key is there and not revoked is never remembered: whoever comes here has just read it.
        """
        made = self._made.get(item.key)
        if made is None or made[0] != item.version:
            key = msgspec.convert(item.body, Key, strict=False)
            if len(self._made) >= _MOST_MADE:
                self._made.clear()
            made = item.version, key, Caller(key.id, key.name, key.rank, "key", bound_parts(key))
            self._made[item.key] = made
        return made[1], made[2]

    def _write_last_used(self, item: ShelfItem, now: datetime) -> None:
        # Only over the version that was read: a key that is being revoked must not come back by this.
        body = msgspec.to_builtins({**item.body, "last_used": now})
        with contextlib.suppress(ConflictError):
            self._accounts.store.keep(PLACE, msgspec.structs.replace(item, body=body), expect=item.version)
