"""Keys and people, as those who may manage them do over HTTP."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from recollect.errors import AccessError, InputError, NotFoundError
from recollect.server.access.caller import Caller, UnknownCallerError
from recollect.server.access.vault import Key, Person, check_may_make
from recollect.server.asked import Answer, Asked, as_json
from recollect.server.serving import Serving

T = TypeVar("T")


class NewKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    rank: str = "member"
    tenant: str | None = None
    workspace: str | None = None
    account: str | None = None
    agent: str | None = None
    expires_at: str | None = None


class NewPerson(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    password: str
    rank: str = "member"
    tenant: str | None = None
    workspace: str | None = None
    account: str | None = None
    agent: str | None = None


class NewPassword(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    password: str
    current: str | None = None
    """The one before it, of whoever changes their own."""


def body_of(asked: Asked, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(asked.body or b"{}", type=kind)
    except msgspec.ValidationError as error:
        from recollect.server.api import explained

        raise explained(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError("body", "is not JSON") from None


def _bound(caller: Caller, given: NewKey | NewPerson) -> dict[str, str | None]:
    """As asked for, in the tenant of whoever asks unless they have all."""
    asked = {part: getattr(given, part) for part in ("tenant", "workspace", "account", "agent")}
    merged = {part: value if value is not None else caller.bound.get(part) for part, value in asked.items()}
    check_may_make(caller, given.rank, merged)
    return {part: value for part, value in merged.items() if value is not None}


def _mine(caller: Caller, owner: Key | Person) -> None:
    """AccessError for what is another tenant's, or above whoever asks."""
    for part, value in caller.bound.items():
        if getattr(owner, part) != value:
            raise AccessError(f"{part}: this belongs to another")
    caller.check(owner.rank, "account")


def list_keys(serving: Serving, caller: Caller, asked: Asked) -> Answer:
    return as_json([key for key in serving.vault.keys(caller.bound.get("tenant")) if _sees(caller, key)])


def _sees(caller: Caller, owner: Key | Person) -> bool:
    return all(getattr(owner, part) == value for part, value in caller.bound.items())


def create_key(serving: Serving, caller: Caller, asked: Asked) -> Answer:
    given = body_of(asked, NewKey)
    bound: dict[str, Any] = _bound(caller, given)
    made = serving.vault.create_key(given.name, given.rank, expires_at=given.expires_at, **bound)
    return as_json(made, 201)


def rotate_key(serving: Serving, caller: Caller, asked: Asked) -> Answer:
    _mine(caller, serving.vault.key(asked.parts["id"]))
    return as_json(serving.vault.rotate_key(asked.parts["id"]))


def revoke_key(serving: Serving, caller: Caller, asked: Asked) -> Answer:
    _mine(caller, serving.vault.key(asked.parts["id"]))
    return as_json(serving.vault.revoke_key(asked.parts["id"]))


def list_people(serving: Serving, caller: Caller, asked: Asked) -> Answer:
    return as_json([one for one in serving.vault.people(caller.bound.get("tenant")) if _sees(caller, one)])


def add_person(serving: Serving, caller: Caller, asked: Asked) -> Answer:
    given = body_of(asked, NewPerson)
    person: Any = serving.vault.add_person(given.name, given.password, given.rank, **_bound(caller, given))
    return as_json(person, 201)


def set_password(serving: Serving, caller: Caller, asked: Asked) -> Answer:
    """Everybody their own; those who manage people, others'."""
    given = body_of(asked, NewPassword)
    if caller.id != f"person:{asked.parts['name'].strip().lower()}":
        caller.check("admin", "people.password")
        person = _one(serving, caller, asked.parts["name"])
    else:
        person = serving.vault.person(asked.parts["name"])
        if person.comes_by == "password":  # an open browser is not enough to take an account over
            _prove(serving, person, given.current)
        elif not caller.may("admin"):
            raise AccessError("password: you come by the login of another provider, and have none here")
    serving.vault.set_password(person.name, given.password)
    return as_json(None)


def _prove(serving: Serving, person: Person, current: str | None) -> None:
    if current is None:
        raise InputError("current", "is missing: the password that you have now")
    try:
        token, _ = serving.vault.log_in(person.name, current)
    except UnknownCallerError as error:  # they are known, and stay logged in
        raise InputError("current", str(error)) from None
    serving.vault.log_out(token)


def _one(serving: Serving, caller: Caller, name: str) -> Person:
    """Of those that the caller manages: others are not there for them."""
    person = serving.vault.person(name)
    if not _sees(caller, person):
        raise NotFoundError(f"there is no person {name}")
    caller.check(person.rank, "account")
    return person


def remove_person(serving: Serving, caller: Caller, asked: Asked) -> Answer:
    person = _one(serving, caller, asked.parts["name"])
    serving.vault.remove_person(person.name)
    return as_json(None)
