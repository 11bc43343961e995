"""Where keys, people and logins are kept: on shelves of a workspace that no view can name."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

import msgspec

from recollect.remote.operations import RANKS, Rank
from recollect.server.access.caller import PARTS, BusyError, Caller, RefusedLoginError, UnknownCallerError
from recollect.server.access.passwords import hash_password, owner_of
from recollect.stores.audit import Entry, request_meta
from recollect.stores.port import SERVER, Place, Store
from recollect.stores.shelves import Thing
from recollect.values import validation
from recollect.values.errors import AccessError, ConflictError, InputError, NotFoundError
from recollect.values.record import new_id, parse_time, utc_now

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
_MOST_ADDRESSES = 64
"""Addresses of which it is known how often they tried a name. The latest count."""
LOGINS_AT_ONCE = 2
_checking = threading.BoundedSemaphore(LOGINS_AT_ONCE + 1)
"""Passwords that are checked at once: each takes 64 MiB, and nobody shall take all there is by guessing.

One more than there are logins at once: whoever is logged in can change their password during a flood of logins.
"""
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
    """Wrong passwords since the last right one, from anywhere."""
    locked_until: datetime | None = None
    """Until when the address that tried last has to wait. Other addresses need not."""
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

    def caller_of(self, token: str) -> Caller:
        """Whoever a key belongs to."""
        mark, _, rest = token.partition("_")
        ident, _, secret = rest.partition("_")
        things = self._store.find(PLACE, "keys", [ident]) if mark == _MARK and ident and secret else []
        body = things[0].body if things else {"hash": ""}
        right = hmac.compare_digest(_hash(secret), str(body["hash"]))
        if not things or not right:
            raise UnknownCallerError("the key is not known here, or no longer")
        key, now = msgspec.convert(body, Key, strict=False), self._clock()
        if key.expires_at is not None and key.expires_at <= now:
            raise UnknownCallerError(f"key {key.id} expired on {key.expires_at:%Y-%m-%d}; make a new one")
        if key.last_used is None or now - key.last_used >= _SEEN:
            self._seen(things[0], now)
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
        tenant = parts.get("tenant") or PLACE.tenant
        if self._named(name, tenant):
            raise ConflictError(f"there is a person called {name} already")
        if subject is not None and any(
            other.subject == validation.label(subject, "subject", 255) for other in self.people()
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
        body = {**_plain(person), "password": None if password is None else hash_password(password)}
        try:
            with self._store.transaction(PLACE):
                key = _person_key(name, tenant)
                self._store.keep(PLACE, Thing("people", key, body, created_at=self._clock()), expect=0)
                self.log("person", f"added a {person.rank}", name)
        except ConflictError:
            raise ConflictError(f"there is a person called {name} already") from None
        return person

    def set_password(self, name: str, password: str, tenant: str | None = None) -> None:
        """Everywhere else they are logged out."""
        key = self._thing(name, tenant).key
        changed: dict[str, Any] = {
            "password": hash_password(password),
            "failures": 0,
            "locked_until": None,
            "tries": {},
            "comes_by": "password",
        }
        with self._store.transaction(PLACE):
            body = self._change("people", key, "person", changed)
            self.log_out_everywhere(key)
            self.log("person", "changed a password", body["name"])

    def remove_person(self, name: str, tenant: str | None = None) -> None:
        thing = self._thing(name, tenant)
        with self._store.transaction(PLACE):
            self.log_out_everywhere(thing.key)
            self._store.remove(PLACE, "people", [thing.key])
            self.log("person", "removed a person", thing.body["name"])

    def person(self, name: str, tenant: str | None = None) -> Person:
        return _person(self._thing(name, tenant))

    def _thing(self, name: str, tenant: str | None) -> Thing:
        """Names are unique in a tenant only: whoever manages one must not learn of names in another."""
        things = self._named(_name(name), tenant)
        if not things:
            raise NotFoundError(f"there is no person {_name(name)}")
        if len(things) > 1:
            tenants = ", ".join(sorted(str(thing.body["tenant"]) for thing in things))
            raise InputError("tenant", f"must be named, because {_name(name)} is in several: {tenants}")
        return things[0]

    def _named(self, name: str, tenant: str | None = None) -> list[Thing]:
        return [
            thing
            for thing in self._store.shelf(PLACE, "people")
            if thing.body["name"] == name and tenant in (None, thing.body["tenant"])
        ]

    def people(self, tenant: str | None = None) -> list[Person]:
        return self._all("people", Person, tenant)

    def log_in(self, name: str, password: str, address: str = "") -> tuple[str, Caller]:
        """A token for a cookie, for whoever of this name has this password.

        Whoever guesses waits twice as long each time. Only tries from the same address count, so that nobody is locked
        out by a stranger.
        """
        name, address = name.strip().lower(), _network(address)
        if not _checking.acquire(blocking=False):  # before it counts as a try
            raise BusyError("too many are logging in at once; try again in a moment")
        try:
            key = self._check(name, password, address)
        finally:
            _checking.release()
        self._change("people", key, "person", lambda body: self._came(body, address))
        return self._start_login(key)

    def _check(self, name: str, password: str, address: str) -> str:
        """The key of whoever of this name has this password."""
        # Counted before it is known whether it is right: else many could guess at once.
        bodies = {
            thing.key: self._change("people", thing.key, "person", lambda body: self._tried(body, address))
            for thing in self._named(name)
        }
        if not bodies:  # who is not there is told the same as who is
            with _nobodies_lock:
                _nobodies[name] = self._tried(_nobodies.get(name, {}), address)
                _nobodies.move_to_end(name)
                while len(_nobodies) > _MOST_NOBODIES:
                    _nobodies.popitem(last=False)
        return owner_of(password, {key: body["password"] for key, body in bodies.items()})

    def _came(self, body: Mapping[str, Any], address: str) -> dict[str, Any]:
        """What a right password changes. Who guesses elsewhere goes on waiting."""
        tries = {client: tried for client, tried in body.get("tries", {}).items() if client != address}
        return {"failures": 0, "locked_until": None, "tries": tries, "last_login": self._clock()}

    def log_in_by(self, subject: str, email: str) -> tuple[str, Caller]:
        """Whoever a provider vouches for. `email` is empty unless it is verified. They must have been added before.

        An e-mail lets in only who was added without a password: an account with one is linked by its `subject`.
        """
        things = list(self._store.shelf(PLACE, "people"))
        by_subject = [thing for thing in things if thing.body.get("subject") == subject]
        by_email = [
            thing
            for thing in things
            if email
            and thing.body.get("subject") is None
            and thing.body.get("password") is None
            and thing.body["name"] == email.lower()
        ]
        if not (those := by_subject or by_email):
            raise RefusedLoginError("nobody", "nobody was added under this login; ask whoever manages this server")
        self._change("people", those[0].key, "person", {"last_login": self._clock()})
        return self._start_login(those[0].key)

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

    def _tried(self, body: Mapping[str, Any], address: str) -> dict[str, Any]:
        """What a try at a password changes. UnknownCallerError while there has to be a pause."""
        tries: dict[str, Any] = dict(body.get("tries", {}))
        before, now = tries.pop(address, {}), self._clock()
        locked = before.get("locked_until")
        if locked is not None and (until := parse_time(locked, "locked_until")) > now:
            raise UnknownCallerError(f"too many wrong passwords; try again in {_seconds(until - now)}")
        failures = int(before.get("failures", 0)) + 1
        wait = min(2.0 ** (failures - _FREE_TRIES), _LONGEST_WAIT) if failures >= _FREE_TRIES else 0.0
        pause = now + timedelta(seconds=wait) if wait else None
        tries[address] = {"failures": failures, "locked_until": pause}
        while len(tries) > _MOST_ADDRESSES:
            del tries[next(iter(tries))]
        return {"tries": tries, "failures": int(body.get("failures", 0)) + 1, "locked_until": pause}

    def start_login(self, name: str, tenant: str | None = None) -> tuple[str, Caller]:
        return self._start_login(self._thing(name, tenant).key)

    def _start_login(self, key: str) -> tuple[str, Caller]:
        """`key` is that of the person on their shelf."""
        token, form = secrets.token_urlsafe(32), secrets.token_urlsafe(16)
        body = {"person": key, "form": form, "until": self._clock() + _LOGIN}
        thing = Thing("logins", _hash(token), msgspec.to_builtins(body), parent=key)
        self._store.keep(PLACE, thing)
        return token, self._as(msgspec.convert(self._body("people", key, "person"), Person, strict=False), form)

    def logged_in(self, token: str) -> Caller:
        logins = self._store.find(PLACE, "logins", [_hash(token)])
        if not logins or parse_time(logins[0].body["until"], "until") <= self._clock():
            raise UnknownCallerError("you are not logged in, or no longer")
        people = self._store.find(PLACE, "people", [logins[0].body["person"]])
        if not people:
            raise UnknownCallerError("you are not logged in, or no longer")
        return self._as(_person(people[0]), logins[0].body["form"])

    def _as(self, person: Person, form: str) -> Caller:
        ident = f"person:{person.tenant}/{person.name}"
        return Caller(ident, person.name, person.rank, "person", _bound(person), form)

    def log_out(self, token: str) -> None:
        self._store.remove(PLACE, "logins", [_hash(token)])

    def log_out_everywhere(self, key: str) -> None:
        keys = [thing.key for thing in self._store.shelf(PLACE, "logins", parent=key)]
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
        things = self._store.find(PLACE, shelf, [key])
        if not things:
            raise NotFoundError(f"there is no {what} {key}")
        return things[0].body

    def _change(
        self, shelf: str, key: str, what: str, change: Mapping[str, Any] | Callable[[Mapping[str, Any]], dict[str, Any]]
    ) -> dict[str, Any]:
        """Some fields of what is there, read again as often as somebody else was quicker."""
        for _ in range(_AGAIN):
            things = self._store.find(PLACE, shelf, [key])
            if not things:
                raise NotFoundError(f"there is no {what} {key}")
            fields = change(things[0].body) if callable(change) else change
            body: dict[str, Any] = msgspec.to_builtins({**things[0].body, **fields})
            thing = msgspec.structs.replace(things[0], body=body, changed_at=self._clock())
            with contextlib.suppress(ConflictError):
                self._store.keep(PLACE, thing, expect=things[0].version)
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


def _network(address: str) -> str:
    """Of IPv6 the network, because a household or an attacker has all of its addresses."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False)) if parsed.version == 6 else str(parsed)


def _person(thing: Thing) -> Person:
    return msgspec.convert(thing.body, Person, strict=False)


def _person_key(name: str, tenant: str) -> str:
    return msgspec.json.encode((tenant, name)).decode()


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
