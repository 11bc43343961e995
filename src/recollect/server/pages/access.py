"""Keys and people: who may use this server, and as what. The checks are those of the API, and nothing beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from recollect.memory import view_of
from recollect.operations import RANKS
from recollect.server import accounts
from recollect.server.access.caller import PARTS, Caller
from recollect.server.access.keys import IssuedKey, Key
from recollect.server.access.people import Person
from recollect.server.pages.site import Done, Visit, action, page
from recollect.server.serving import Serving
from recollect.server.web import Answer, HttpRequest
from recollect.values.errors import InputError

Work = Callable[[Serving, Caller, HttpRequest], Answer]


def _called(visit: Visit, work: Work, body: Any = None, **parts: str) -> bytes:
    """As if it had come over the API: what a page may do is what the API may."""
    request = visit.request._replace(parts=parts, body=b"" if body is None else msgspec.json.encode(body))
    return work(visit.serving, visit.caller, request).content


@page("/access", "Keys and people", rank="admin", template="access.html", nav="Keys and people", group="Server")
def access(visit: Visit) -> dict[str, Any]:
    caller, now = visit.caller, view_of(visit.serving.memory).now()
    keys = msgspec.json.decode(_called(visit, accounts.list_keys), type=list[Key])
    people = msgspec.json.decode(_called(visit, accounts.list_people), type=list[Person])
    return {
        "keys": [
            {
                **msgspec.structs.asdict(key),
                "bound": _bound(key),
                "state": "revoked" if key.revoked_at else "expired" if key.expires_at and key.expires_at <= now else "",
                "mine": key.id == caller.id,
                "manageable": caller.may(key.rank),
            }
            for key in sorted(keys, key=lambda key: key.revoked_at is not None)
        ],
        "people": [
            {
                **msgspec.structs.asdict(person),
                "bound": _bound(person),
                "locked": person.locked_until is not None and person.locked_until > now,
                "mine": caller.how == "person"
                and (caller.name, caller.bound["tenant"]) == (person.name, person.tenant),
                "manageable": caller.may(person.rank),
            }
            for person in people
        ],
        "ranks": [rank for rank in RANKS if caller.may(rank)],
        "free": [part for part in PARTS if part not in caller.bound],
        "mine": dict(caller.bound),
    }


def _bound(owner: Key | Person) -> str:
    parts = [f"{part} {value}" for part in PARTS if (value := getattr(owner, part)) is not None]
    return ", ".join(parts) if owner.tenant is not None else ", ".join(["every tenant", *parts])


def _fields(visit: Visit) -> dict[str, Any]:
    parts = {part: value for part in PARTS if (value := visit.field(part).strip())}
    parts.setdefault("tenant", visit.memory.address.tenant)
    return {"name": visit.field("name").strip(), "rank": visit.field("rank", "member"), **parts}


def _shown(visit: Visit, content: bytes, message: str) -> Done:
    made = msgspec.json.decode(content, type=IssuedKey)
    data = {"key": made.key, "secret": made.secret, "next": visit.link("/access")}
    return Done(visit.link("/access"), message, show=data, template="key_made.html")


@action("/access/keys", rank="admin", again="/access")
def create_key(visit: Visit) -> Done:
    expires = visit.field("expires_at").strip()
    fields = {**_fields(visit), **({"expires_at": expires} if expires else {})}
    return _shown(visit, _called(visit, accounts.create_key, fields), "A new key")


@action("/access/keys/{id}/rotate", rank="admin", again="/access")
def rotate_key(visit: Visit) -> Done:
    visit.confirm("rotate")
    return _shown(visit, _called(visit, accounts.rotate_key, id=visit.parts["id"]), "The key was rotated")


@action("/access/keys/{id}/revoke", rank="admin", again="/access")
def revoke_key(visit: Visit) -> Done:
    visit.confirm("revoke")
    _called(visit, accounts.revoke_key, id=visit.parts["id"])
    return Done(visit.link("/access"), f"Key {visit.parts['id']} is revoked, and worth nothing from now on.")


@action("/access/people", rank="admin", again="/access")
def add_person(visit: Visit) -> Done:
    fields = {**_fields(visit), "password": visit.field("password")}
    _called(visit, accounts.add_person, fields)
    return Done(visit.link("/access"), f"{fields['name'].lower()} can log in now.")


@action("/access/people/{name}/password", rank="admin", again="/access")
def set_password(visit: Visit) -> Done:
    name = visit.parts["name"]
    _called(visit, accounts.set_password, {"password": visit.field("password")}, name=name)
    return Done(visit.link("/access"), f"{name} has another password, and is logged out everywhere.")


@action("/access/people/{name}/remove", rank="admin", again="/access")
def remove_person(visit: Visit) -> Done:
    visit.confirm(visit.parts["name"])
    _called(visit, accounts.remove_person, name=visit.parts["name"])
    return Done(visit.link("/access"), f"{visit.parts['name']} is removed, and logged out everywhere.")


@action("/settings/password", rank="reader", again="/settings")
def own_password(visit: Visit) -> Done:
    """Everybody their own, by the one that they have: an open browser is not enough to take an account over."""
    if visit.caller.how != "person":
        raise InputError("password", "is something that only people have")
    fields = {"password": visit.field("password"), "current": visit.field("current")}
    _called(visit, accounts.set_password, fields, name=visit.caller.name)
    return Done("/login", "")
