"""Keys and people, as those who may manage them do over HTTP."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.remote.wire import address_of, header
from recollect.server.access.caller import PARTS, Caller, UnknownCallerError
from recollect.server.access.keys import Key
from recollect.server.access.people import Person, check_may_make
from recollect.server.bodies import decoded_body
from recollect.server.serving import Serving
from recollect.server.web import Answer, HttpRequest, as_json
from recollect.values.errors import AccessError, InputError, NotFoundError


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
    """The current password, required of people who change their own."""


def _bound(caller: Caller, body: NewKey | NewPerson) -> dict[str, str | None]:
    """As asked for, in the tenant of whoever asks unless they have all."""
    wanted = {part: value for part in PARTS if (value := getattr(body, part)) is not None}
    merged: dict[str, str | None] = {**caller.narrowed(wanted)}
    check_may_make(caller, body.rank, merged)
    return merged


def _narrowed(caller: Caller, request: HttpRequest) -> Caller:
    """As somebody who sees no more than what the request is about."""
    parts = address_of(request.headers)
    for part in parts.keys() - set(PARTS):
        raise InputError(header(part), "keys and people are not bound to one; leave it out")
    if not parts:
        return caller
    return msgspec.structs.replace(caller, bound=caller.narrowed(parts))


def _key(serving: Serving, caller: Caller, ident: str) -> str:
    """Of those that the caller manages: others are not there for them."""
    key = serving.accounts.keys.get(ident)
    if not _sees(caller, key):
        raise NotFoundError(f"there is no key {ident}")
    caller.check(key.rank, "account")
    return key.id


def list_keys(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    caller = _narrowed(caller, request)
    return as_json([key for key in serving.accounts.keys.list(caller.bound.get("tenant")) if _sees(caller, key)])


def _sees(caller: Caller, owner: Key | Person) -> bool:
    return all(getattr(owner, part) == value for part, value in caller.bound.items())


def create_key(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    body = decoded_body(request, NewKey)
    bound: dict[str, Any] = _bound(_narrowed(caller, request), body)

    def make() -> Answer:
        return as_json(serving.accounts.keys.create(body.name, body.rank, expires_at=body.expires_at, **bound), 201)

    return serving.answers.once(caller, request, make, secret=True)  # the secret is shown once, in the first answer


def rotate_key(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    ident = _key(serving, _narrowed(caller, request), request.parts["id"])
    return serving.answers.once(caller, request, lambda: as_json(serving.accounts.keys.rotate(ident)), secret=True)


def revoke_key(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    ident = _key(serving, _narrowed(caller, request), request.parts["id"])
    return serving.answers.once(caller, request, lambda: as_json(serving.accounts.keys.revoke(ident)))


def list_people(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    caller = _narrowed(caller, request)
    return as_json(
        [person for person in serving.accounts.people.list(caller.bound.get("tenant")) if _sees(caller, person)]
    )


def add_person(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    body = decoded_body(request, NewPerson)
    bound = _bound(_narrowed(caller, request), body)

    def make() -> Answer:
        return as_json(serving.accounts.people.add(body.name, body.password, body.rank, **bound), 201)

    return serving.answers.once(caller, request, make)


def set_password(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    """Everybody their own; those who manage people, others'."""
    body = decoded_body(request, NewPassword)
    if caller.how != "person" or caller.name != request.parts["name"].strip().lower():
        caller.check("admin", "people.password")
        person = _find_person(serving, _narrowed(caller, request), request.parts["name"])
    else:
        person = serving.accounts.people.get(caller.name, caller.bound["tenant"])
        if person.comes_by == "password":  # an open browser is not enough to take an account over
            _prove(serving, person, body.current, request.client)
        elif not caller.may("admin"):
            raise AccessError("password: you come by the login of another provider, and have none here")

    def change() -> Answer:
        serving.accounts.people.set_password(person.name, body.password, person.tenant)
        return as_json(None)

    return serving.answers.once(caller, request, change)


def _prove(serving: Serving, person: Person, current: str | None, address: str) -> None:
    if current is None:
        raise InputError("current", "is missing: the password that you have now")
    try:
        token, caller = serving.accounts.logins.log_in(person.name, current, address)
    except UnknownCallerError as error:  # they are known, and stay logged in
        raise InputError("current", str(error)) from None
    serving.accounts.logins.log_out(token)
    if caller.bound["tenant"] != person.tenant:  # somebody else of this name
        raise InputError("current", "the name or the password is wrong")


def _find_person(serving: Serving, caller: Caller, name: str) -> Person:
    """Of those that the caller manages: others are not there for them."""
    person = serving.accounts.people.get(name, caller.bound.get("tenant"))
    if not _sees(caller, person):
        raise NotFoundError(f"there is no person {name}")
    caller.check(person.rank, "account")
    return person


def remove_person(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:

    def remove() -> Answer:
        person = _find_person(serving, _narrowed(caller, request), request.parts["name"])
        serving.accounts.people.remove(person.name, person.tenant)
        return as_json(None)

    return serving.answers.once(caller, request, remove)
