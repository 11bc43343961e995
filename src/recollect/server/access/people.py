"""People who log in, with a password or through a provider of OpenID Connect."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from recollect.operations import RANKS, Rank
from recollect.server.access.account_store import PLACE, AccountStore, bound_parts, checked_parts
from recollect.server.access.caller import Caller
from recollect.server.access.passwords import hash_password
from recollect.stores.shelves import ShelfItem
from recollect.values import validation
from recollect.values.errors import AccessError, ConflictError, InputError, NotFoundError

SHELF = "people"
LOGINS = "logins"
"""The shelf of the logins; the key of the person is the parent of theirs."""


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

    def caller(self, form_token: str) -> Caller:
        # Names may hold a slash: two people must not be one.
        tenant, name = (part.replace("%", "%25").replace("/", "%2F") for part in (self.tenant or "", self.name))
        ident = f"person:{tenant}/{name}"
        return Caller(ident, self.name, self.rank, "person", bound_parts(self), form_token)


class People:
    def __init__(self, accounts: AccountStore) -> None:
        self._accounts = accounts

    def add(
        self, name: str, password: str | None, rank: str, *, subject: str | None = None, **bound: str | None
    ) -> Person:
        """Without a password they come by OpenID Connect only, by their verified e-mail as a name, or by `subject`."""
        name, parts = _checked_name(name), checked_parts(bound)
        tenant = parts.get("tenant") or PLACE.tenant
        if self.things_named(name, tenant):
            raise ConflictError(f"there is a person called {name} already")
        if subject is not None:
            subject_label = validation.label(subject, "subject", 255)
            if any(other.subject == subject_label for other in self.list()):
                raise ConflictError("subject: somebody else comes by it already")
        person = Person(
            name=name,
            rank=validation.choice(rank, "rank", Rank),
            created_at=self._accounts.clock(),
            comes_by="oidc" if password is None else "password",
            subject=subject,
            **parts,  # type: ignore[arg-type]
        )
        password_hash = None if password is None else hash_password(password)
        try:
            with self._accounts.transaction():
                key = msgspec.json.encode((tenant, name)).decode()
                self._accounts.add(SHELF, key, {**msgspec.to_builtins(person), "password": password_hash})
                self._accounts.log("person", f"added a {person.rank}", name)
        except ConflictError:
            raise ConflictError(f"there is a person called {name} already") from None
        return person

    def set_password(self, name: str, password: str, tenant: str | None = None) -> None:
        """Sets another password, and logs them out everywhere."""
        key = self.thing(name, tenant).key
        changes: dict[str, Any] = {
            "password": hash_password(password),
            "failures": 0,
            "locked_until": None,
            "tries": {},
            "comes_by": "password",
        }
        with self._accounts.transaction():
            body = self._accounts.change(SHELF, key, "person", changes)
            self._log_out_everywhere(key)
            self._accounts.log("person", "changed a password", body["name"])

    def remove(self, name: str, tenant: str | None = None) -> None:
        item = self.thing(name, tenant)
        with self._accounts.transaction():
            self._log_out_everywhere(item.key)
            self._accounts.remove(SHELF, [item.key])
            self._accounts.log("person", "removed a person", item.body["name"])

    def get(self, name: str, tenant: str | None = None) -> Person:
        return person_of(self.thing(name, tenant))

    def list(self, tenant: str | None = None) -> list[Person]:
        return self._accounts.all(SHELF, Person, tenant)

    def thing(self, name: str, tenant: str | None) -> ShelfItem:
        """Names are unique in a tenant only: whoever manages one must not learn of names in another."""
        name = _checked_name(name)
        items = self.things_named(name, tenant)
        if not items:
            raise NotFoundError(f"there is no person {name}")
        if len(items) > 1:
            tenants = ", ".join(sorted(str(item.body["tenant"]) for item in items))
            raise InputError("tenant", f"must be named, because {name} is in several: {tenants}")
        return items[0]

    def things_named(self, name: str, tenant: str | None = None) -> list[ShelfItem]:
        return [
            item
            for item in self._accounts.store.shelf(PLACE, SHELF)
            if item.body["name"] == name and tenant in (None, item.body["tenant"])
        ]

    def _log_out_everywhere(self, key: str) -> None:
        logins = self._accounts.store.shelf(PLACE, LOGINS, parent=key)
        self._accounts.remove(LOGINS, [login.key for login in logins])


def check_may_make(caller: Caller, rank: str, bound: Mapping[str, str | None]) -> None:
    """Nobody gives more than they have: neither a higher rank nor a wider address."""
    if RANKS.index(validation.choice(rank, "rank", Rank)) > RANKS.index(caller.rank):
        raise AccessError(f"rank: the role {caller.rank} cannot give the role {rank}")
    for part, value in caller.bound.items():
        if bound.get(part, value if part == "tenant" else None) != value:
            raise AccessError(f"{part}: you are bound to {value}, and so is whatever you make")


def person_of(item: ShelfItem) -> Person:
    return msgspec.convert(item.body, Person, strict=False)


def _checked_name(value: Any) -> str:
    return validation.name(value, "name").lower()
