"""The OpenAPI document, made from the same list as the routes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, cast

import msgspec

from recollect import __version__
from recollect.operations import served_operations, signature
from recollect.remote import wire
from recollect.remote.calls import KeyFacts
from recollect.server import accounts
from recollect.server.access.keys import IssuedKey, Key
from recollect.server.access.people import Person
from recollect.server.api import form
from recollect.server.idempotency import HEADER
from recollect.server.router import EXPORT, IMPORT, ROUTES, Route
from recollect.tools import Tool
from recollect.values.record import Address
from recollect.values.schemas import without_null
from recollect.verbs.import_ import Imported

_NAME = {"type": "string", "minLength": 1, "maxLength": 192, "pattern": "^[A-Za-z0-9._~%-]+$"}
"""A name in a header: percent-encoded."""
_REF = "#/components/schemas/{name}"
_PUBLISHED = {"ConversationRules": "Conversations", "IssuedKey": "Made", "RecallResult": "Found"}
"""Components that keep the name they had before their class was renamed: clients are generated from the document."""
_OTHERS: dict[str, tuple[Any, Any, str]] = {
    "server.about": (None, KeyFacts, "What a client needs to know of the memory behind its key."),
    "tools": (None, list[Tool], "The tools that the preset offers to a model."),
    "tools.call": (dict[str, Any], dict[str, Any], "Call a tool as a model would. A refusal is a result."),
    "keys.list": (None, list[Key], "The keys of the tenant, newest first, without their secrets."),
    "keys.create": (accounts.NewKey, IssuedKey, "A new key. Its secret is shown this once."),
    "keys.rotate": (None, IssuedKey, "Another secret in place of a key's, which is worth nothing at once."),
    "keys.revoke": (None, Key, "A key that is worth nothing from now on."),
    "people.list": (None, list[Person], "The people of the tenant."),
    "people.add": (accounts.NewPerson, Person, "Somebody who can log in."),
    "people.password": (accounts.NewPassword, None, "Another password; everywhere else they are logged out."),
    "people.remove": (None, None, "Somebody who can no longer log in."),
    "export": (None, dict[str, Any], "All that the key sees, as one document, or line by line as NDJSON."),
    "import": (dict[str, Any], Imported, "An export, ids, times and states as they were."),
}

_PARTS = {
    "keys": {"id": "The id of the key."},
    "people": {"name": "The name with which the person logs in."},
    "tools": {"name": "The name of the tool."},
}
"""The words about parts of paths that belong to no operation."""


@cache
def document() -> bytes:
    routes = (*ROUTES, EXPORT, IMPORT)
    kinds: list[Any] = [wire.Problem, Address]
    for route in routes:
        body, gives, _ = _describe(route)
        kinds += [kind for kind in (body, gives) if kind is not None and kind is not type(None)]
    schemas, components = _published(msgspec.json.schema_components(kinds, ref_template=_REF))
    by_kind = {_id(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(f"/v1{route.path}", {})[route.method.lower()] = _operation(route, by_kind, components)
    made: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "recollect", "version": __version__, "description": "Memory for AI agents."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": {
                "Refused": {
                    "description": "Refused, and why.",
                    "content": {"application/problem+json": {"schema": by_kind[_id(wire.Problem)]}},
                }
            },
        },
        "security": [{"key": []}],
    }
    return msgspec.json.encode(made)


def _published(schema: Any) -> Any:
    """A schema with the published names of its components: as keys, titles and references."""
    if isinstance(schema, dict):
        return {_PUBLISHED.get(key, key): _published(value) for key, value in cast("dict[str, Any]", schema).items()}
    if isinstance(schema, list | tuple):
        return [_published(part) for part in cast("Sequence[Any]", schema)]
    if isinstance(schema, str):
        start, _, name = schema.rpartition("/")
        return f"{start}/{_PUBLISHED[name]}" if start and name in _PUBLISHED else _PUBLISHED.get(schema, schema)
    return schema


def _id(kind: Any) -> str:
    return repr(kind)


def _describe(route: Route) -> tuple[Any, Any, str]:
    """The types of a route's body and answer, and its description."""
    if route.name in served_operations():
        call_form = form(route.name)
        return call_form.body, wire.given_as(call_form.signature.gives), call_form.signature.doc
    return _OTHERS[route.name]


def _operation(route: Route, by_kind: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    body, gives, doc = _describe(route)
    parameters = _path_parameters(route)
    parameters += [
        {
            "name": wire.header(part),
            "in": "header",
            "schema": _NAME,
            "description": f"Narrow to one {part}.",
        }
        for part in wire.ADDRESS
    ]
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": doc.partition("\n")[0],
        "description": doc,
        "tags": [route.name.partition(".")[0] if "." in route.name else "memories"],
        "x-role": route.rank,
    }
    if route.method == "GET" and body is not None:
        parameters += _query(components[body.__name__])
    elif body is not None:
        operation["requestBody"] = {
            "required": bool(components.get(getattr(body, "__name__", ""), {}).get("required")),
            "content": {"application/json": {"schema": by_kind[_id(body)]}},
        }
    if _is_repeatable(route):
        words = "A text of your own for this request: sent again with it, the request is done once."
        schema = {"type": "string", "maxLength": 200}
        parameters.append({"name": HEADER, "in": "header", "schema": schema, "description": words})
    gives_schema: dict[str, Any] = {} if gives in (None, type(None)) else by_kind[_id(gives)]
    answer: dict[str, Any] = {"description": "Done.", "content": {"application/json": {"schema": gives_schema}}}
    operation["parameters"] = parameters
    operation["responses"] = {str(route.status): answer, "default": {"$ref": "#/components/responses/Refused"}}
    return operation


def _is_repeatable(route: Route) -> bool:
    """Whether a second request under the same key is not done again. An import leaves alone what is there already."""
    operation = served_operations().get(route.name)
    return route is not IMPORT and (route.method != "GET" if operation is None else operation.writes)


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    words = _PARTS.get(route.name.partition(".")[0], {})
    if route.name in served_operations():
        words = {parameter.name: parameter.doc for parameter in signature(route.name).takes}
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    text = {"type": "string", "minLength": 1}
    return [
        {"name": name, "in": "path", "required": True, "schema": text}
        | ({"description": words[name]} if words.get(name) else {})
        for name in names
    ]


def _query(schema: dict[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": without_null(part)}
        for name, part in schema.get("properties", {}).items()
    ]
