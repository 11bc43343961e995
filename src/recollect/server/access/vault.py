"""Where keys, people and logins are kept: on shelves of a workspace that no view can name."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

import msgspec

from recollect import validation
from recollect.errors import AccessError, ConflictError, InputError, NotFoundError
from recollect.record import new_id, parse_time, utc_now
from recollect.remote.operations import RANKS, Rank
from recollect.server.access.caller import PARTS, Caller, RefusedLoginError, UnknownCallerError
from recollect.stores.audit import Entry, request_meta
from recollect.stores.port import SERVER, Place, Store
from recollect.stores.shelves import Thing

PLACE = Place("default", SERVER)
_SEEN = timedelta(minutes=1)
"""So seldom is it written that a key was used."""
_LOGIN = timedelta(hours=12)
_FREE_TRIES = 5
"""Wrong passwords before somebody has to wait."""
_LONGEST_WAIT = 900.0
_MARK = "rk"
_AGAIN = 100
_MOST_NOBODIES = 10_000
_nobodies: OrderedDict[str, dict[str, Any]] = OrderedDict()
"""What was tried with names that nobody has, as it is kept of people."""
_nobodies_lock = threading.Lock()
_PATIENCE = 5.0
_checking = threading.BoundedSemaphore(2)
"""Passwords that are checked at once: each takes 64 MiB, and nobody shall take all there is by guessing."""
T = TypeVar("T")


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


class Person(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    rank: Rank
    tenant: str = "default"
    workspace: str | None = None
    account: str | None = None
    agent: str | None = None
    created_at: datetime
    last_login: datetime | None = None
    failures: int = 0
    """Wrong passwords since the last right one."""
    locked_until: datetime | None = None
    comes_by: Literal["password", "oidc"] = "password"
    """`oidc` is for somebody without a password, who can only be vouched for by a provider."""
    subject: str | None = None
    """What the provider calls them. Where it is known, their e-mail alone lets nobody in."""


class Made(msgspec.Struct, frozen=True):
    """A key as it is told to whoever asked for it: the only time that its secret is seen."""

    key: Key
    secret: str


class Vault:
    """Everything is looked up when it is asked for: what another process revokes is revoked here as well."""

    def __init__(self, store: Store, clock: Callable[[], datetime] = utc_now) -> None:
        self._store, self._clock = store, clock

    # Keys

    def create_key(
        self,
        name: str,
        rank: str,
        *,
        expires_at: datetime | str | None = None,
        all_tenants: bool = False,
        **bound: str | None,
    ) -> Made:
        parts = _checked(bound)
        if all_tenants:
            if parts:
                raise InputError("all_tenants", f"and {next(iter(parts))} do not go together")
            parts = {"tenant": None}
        key = Key(
            id=secrets.token_hex(6),
            name=validation.label(name, "name"),
            rank=validation.choice(rank, "rank", Rank),
            created_at=self._clock(),
            expires_at=None if expires_at is None else parse_time(expires_at, "expires_at"),
            **parts,  # type: ignore[arg-type]
        )
        if key.expires_at is not None and key.expires_at <= self._clock():
            raise InputError("expires_at", "must be later than now")
        with self._store.transaction(PLACE):
            made = self._secret(key)
            self.log("key", f"made key {key.id} for a {key.rank}", key.id)
        return made

    def _secret(self, key: Key) -> Made:
        secret = secrets.token_urlsafe(32)
        self._keep("keys", key.id, {**_plain(key), "hash": _hash(secret)})
        return Made(key, f"{_MARK}_{key.id}_{secret}")

    def rotate_key(self, ident: str) -> Made:
        """Another secret under the same id. The one before it is worth nothing at once."""
        secret = secrets.token_urlsafe(32)

        def changed(body: Mapping[str, Any]) -> dict[str, Any]:
            if body.get("revoked_at") is not None:
                raise ConflictError(f"key {ident} is revoked; make a new one")
            return {"hash": _hash(secret)}

        with self._store.transaction(PLACE):
            body = self._change("keys", ident, "key", changed)
            self.log("key", f"rotated key {ident}", ident)
        return Made(msgspec.convert(body, Key, strict=False), f"{_MARK}_{ident}_{secret}")

    def revoke_key(self, ident: str) -> Key:
        with self._store.transaction(PLACE):
            body = self._change("keys", ident, "key", {"revoked_at": self._clock(), "hash": ""})
            self.log("key", f"revoked key {ident}", ident)
        return msgspec.convert(body, Key, strict=False)

    def key(self, ident: str) -> Key:
        return msgspec.convert(self._body("keys", ident, "key"), Key, strict=False)

    def keys(self, tenant: str | None = None) -> list[Key]:
        """The newest first."""
        return self._all("keys", Key, tenant)

    def caller_of(self, given: str) -> Caller:
        """Whoever a key belongs to."""
        mark, _, rest = given.partition("_")
        ident, _, secret = rest.partition("_")
        found = self._store.find(PLACE, "keys", [ident]) if mark == _MARK and ident and secret else []
        body = found[0].body if found else {"hash": ""}
        right = hmac.compare_digest(_hash(secret), str(body["hash"]))
        if not found or not right:
            raise UnknownCallerError("the key is not known here, or no longer")
        key, now = msgspec.convert(body, Key, strict=False), self._clock()
        if key.expires_at is not None and key.expires_at <= now:
            raise UnknownCallerError(f"key {key.id} expired on {key.expires_at:%Y-%m-%d}; make a new one")
        if key.last_used is None or now - key.last_used >= _SEEN:
            self._seen(found[0], now)
        return Caller(key.id, key.name, key.rank, "key", _bound(key))

    def _seen(self, key: Thing, now: datetime) -> None:
        """Only on what was read: a key that is being revoked must not come back by this."""
        body = msgspec.to_builtins({**key.body, "last_used": now})
        with contextlib.suppress(ConflictError):
            self._store.keep(PLACE, msgspec.structs.replace(key, body=body), expect=key.version)

    # People

    def add_person(
        self, name: str, password: str | None, rank: str, *, subject: str | None = None, **bound: str | None
    ) -> Person:
        """Without a password they come by OpenID Connect only, by their verified e-mail as a name, or by `subject`."""
        name, parts = _name(name), _checked(bound)
        if self._store.find(PLACE, "people", [name]):
            raise ConflictError(f"there is a person called {name} already")
        if subject is not None and any(
            one.subject == validation.label(subject, "subject", 255) for one in self.people()
        ):
            raise ConflictError("subject: somebody else comes by it already")
        person = Person(
            name=name,
            rank=validation.choice(rank, "rank", Rank),
            created_at=self._clock(),
            comes_by="oidc" if password is None else "password",
            subject=subject,
            **parts,  # type: ignore[arg-type]
        )
        body = {**_plain(person), "password": None if password is None else hashed(password)}
        try:
            with self._store.transaction(PLACE):
                self._store.keep(PLACE, Thing("people", name, body, created_at=self._clock()), expect=0)
                self.log("person", f"added a {person.rank}", name)
        except ConflictError:
            raise ConflictError(f"there is a person called {name} already") from None
        return person

    def set_password(self, name: str, password: str) -> None:
        """Everywhere else they are logged out."""
        changed = {"password": hashed(password), "failures": 0, "locked_until": None, "comes_by": "password"}
        with self._store.transaction(PLACE):
            body = self._change("people", _name(name), "person", changed)
            self.log_out_everywhere(body["name"])
            self.log("person", "changed a password", body["name"])

    def remove_person(self, name: str) -> None:
        body = self._body("people", _name(name), "person")
        with self._store.transaction(PLACE):
            self.log_out_everywhere(body["name"])
            self._store.remove(PLACE, "people", [body["name"]])
            self.log("person", "removed a person", body["name"])

    def person(self, name: str) -> Person:
        return msgspec.convert(self._body("people", _name(name), "person"), Person, strict=False)

    def people(self, tenant: str | None = None) -> list[Person]:
        return self._all("people", Person, tenant)

    def log_in(self, name: str, password: str) -> tuple[str, Caller]:
        """A token for a cookie. Whoever guesses waits twice as long each time."""
        from argon2 import PasswordHasher
        from argon2.exceptions import VerificationError

        name = name.strip().lower()
        found = self._store.find(PLACE, "people", [name])
        # Counted before it is known whether it is right: else many could guess at once.
        known: Mapping[str, Any] = {"password": None}
        if found:
            known = self._change("people", name, "person", self._tried)
        else:  # who is not there is told the same as who is
            with _nobodies_lock:
                _nobodies[name] = self._tried(_nobodies.get(name, {}))
                _nobodies.move_to_end(name)
                while len(_nobodies) > _MOST_NOBODIES:
                    _nobodies.popitem(last=False)
        if not _checking.acquire(timeout=_PATIENCE):
            raise UnknownCallerError("too many are logging in at once; try again in a moment")
        try:
            # Whoever has no password, or is not there, is refused like anybody, and after as long.
            PasswordHasher().verify(known["password"] or _NOBODY(), password)
        except VerificationError:
            raise UnknownCallerError("the name or the password is wrong") from None
        finally:
            _checking.release()
        if not known["password"]:
            raise UnknownCallerError("the name or the password is wrong")
        right = {"failures": 0, "locked_until": None, "last_login": self._clock()}
        self._change("people", name, "person", right)
        return self.start_login(name)

    def log_in_by(self, subject: str, email: str) -> tuple[str, Caller]:
        """Whoever a provider vouches for. `email` is empty unless it is verified. They must have been added before."""
        everybody = self.people()
        person = next((one for one in everybody if one.subject == subject), None) or next(
            (one for one in everybody if email and one.subject is None and one.name == email.lower()), None
        )
        if person is None:
            raise RefusedLoginError("nobody", "nobody was added under this login; ask whoever manages this server")
        self._change("people", person.name, "person", {"last_login": self._clock()})
        return self.start_login(person.name)

    def first_time(self, state: str) -> bool:
        """Whether nobody has brought this back before, to any process. Those of an hour ago are forgotten."""
        old = self._clock() - timedelta(hours=1)
        gone: list[str] = []
        for thing in self._store.shelf(PLACE, "states"):
            if thing.created_at >= old:
                break
            gone.append(thing.key)
        if gone:
            self._store.remove(PLACE, "states", gone)
        try:
            self._store.keep(PLACE, Thing("states", _hash(state), {}, created_at=self._clock()), expect=0)
        except ConflictError:
            return False
        return True

    def _tried(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What a try at a password changes. UnknownCallerError while there has to be a pause."""
        now, locked = self._clock(), body.get("locked_until")
        if locked is not None and (until := parse_time(locked, "locked_until")) > now:
            raise UnknownCallerError(f"too many wrong passwords; try again in {_seconds(until - now)}")
        failures = int(body.get("failures", 0)) + 1
        wait = min(2.0 ** (failures - _FREE_TRIES), _LONGEST_WAIT) if failures >= _FREE_TRIES else 0.0
        return {"failures": failures, "locked_until": now + timedelta(seconds=wait) if wait else None}

    def start_login(self, name: str) -> tuple[str, Caller]:
        token, form = secrets.token_urlsafe(32), secrets.token_urlsafe(16)
        body = {"person": name, "form": form, "until": self._clock() + _LOGIN}
        thing = Thing("logins", _hash(token), msgspec.to_builtins(body), parent=name)
        self._store.keep(PLACE, thing)
        return token, self._as(self.person(name), form)

    def logged_in(self, token: str) -> Caller:
        found = self._store.find(PLACE, "logins", [_hash(token)])
        if not found or parse_time(found[0].body["until"], "until") <= self._clock():
            raise UnknownCallerError("you are not logged in, or no longer")
        try:
            person = self.person(found[0].body["person"])
        except NotFoundError:
            raise UnknownCallerError("you are not logged in, or no longer") from None
        return self._as(person, found[0].body["form"])

    def _as(self, person: Person, form: str) -> Caller:
        return Caller(f"person:{person.name}", person.name, person.rank, "person", _bound(person), form)

    def log_out(self, token: str) -> None:
        self._store.remove(PLACE, "logins", [_hash(token)])

    def log_out_everywhere(self, name: str) -> None:
        keys = [thing.key for thing in self._store.shelf(PLACE, "logins", parent=name)]
        if keys:
            self._store.remove(PLACE, "logins", keys)

    # All of them

    @property
    def empty(self) -> bool:
        """Whether there is nobody yet."""
        return not self.people() and not any(key.revoked_at is None for key in self.keys())

    def log(self, action: str, message: str, about: str | None = None, whence: str | None = None) -> None:
        """Into the server's own audit log."""
        meta = {name: value for name, value in (("about", about), ("from", whence)) if value}
        meta |= request_meta()
        self._store.append(PLACE, Entry(0, new_id(), self._clock(), action, message, None, meta))

    def entries(self, limit: int = 100) -> Iterator[Entry]:
        return self._store.entries(PLACE, newest_first=True, limit=limit)

    def _all(self, shelf: str, kind: type[T], tenant: str | None) -> list[T]:
        things = self._store.shelf(PLACE, shelf, newest_first=True)
        return [
            msgspec.convert(thing.body, kind, strict=False)
            for thing in things
            if tenant is None or thing.body.get("tenant") == tenant
        ]

    def _body(self, shelf: str, key: str, what: str) -> dict[str, Any]:
        found = self._store.find(PLACE, shelf, [key])
        if not found:
            raise NotFoundError(f"there is no {what} {key}")
        return found[0].body

    def _change(
        self, shelf: str, key: str, what: str, change: Mapping[str, Any] | Callable[[Mapping[str, Any]], dict[str, Any]]
    ) -> dict[str, Any]:
        """Some fields of what is there, read again as often as somebody else was quicker."""
        for _ in range(_AGAIN):
            found = self._store.find(PLACE, shelf, [key])
            if not found:
                raise NotFoundError(f"there is no {what} {key}")
            given = change(found[0].body) if callable(change) else change
            body: dict[str, Any] = msgspec.to_builtins({**found[0].body, **given})
            thing = msgspec.structs.replace(found[0], body=body, changed_at=self._clock())
            with contextlib.suppress(ConflictError):
                self._store.keep(PLACE, thing, expect=found[0].version)
                return body
        raise ConflictError(f"{what} {key} is being changed by others; try again")

    def clean(self) -> int:
        """Forget logins that are over. How many."""
        now = self._clock()
        over = [t.key for t in self._store.shelf(PLACE, "logins") if parse_time(t.body["until"], "until") <= now]
        return self._store.remove(PLACE, "logins", over) if over else 0

    def _keep(self, shelf: str, key: str, body: Mapping[str, Any]) -> None:
        self._store.keep(PLACE, Thing(shelf, key, msgspec.to_builtins(dict(body)), changed_at=self._clock()))


def check_may_make(caller: Caller, rank: str, bound: Mapping[str, str | None]) -> None:
    """Nobody gives more than they have: neither a higher rank nor a wider address."""
    if RANKS.index(validation.choice(rank, "rank", Rank)) > RANKS.index(caller.rank):
        raise AccessError(f"rank: the role {caller.rank} cannot give the role {rank}")
    for part, value in caller.bound.items():
        if bound.get(part, value if part == "tenant" else None) != value:
            raise AccessError(f"{part}: you are bound to {value}, and so is whatever you make")


def hashed(password: str) -> str:
    from argon2 import PasswordHasher

    if not isinstance(password, str) or not 12 <= len(password) <= 200:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("password", "must have 12 to 200 characters")
    return PasswordHasher().hash(password)


def _NOBODY() -> str:  # noqa: N802
    """A hash that takes as long to check as anybody's."""
    global _nobody
    if not _nobody:
        _nobody = hashed(secrets.token_urlsafe(16))
    return _nobody


_nobody = ""


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _name(value: Any) -> str:
    return validation.name(value, "name").lower()


def _checked(bound: Mapping[str, str | None]) -> dict[str, str | None]:
    return {
        part: None if (value := bound.get(part)) is None else validation.name(value, part)
        for part in PARTS
        if part in bound and (part != "tenant" or bound[part] is not None)
    }


def _bound(owner: Key | Person) -> dict[str, str]:
    return {part: value for part in PARTS if (value := getattr(owner, part)) is not None}


def _plain(value: Any) -> dict[str, Any]:
    return msgspec.to_builtins(value)


def _seconds(wait: timedelta) -> str:
    seconds = max(1, round(wait.total_seconds()))
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
