"""The API, as its own document tells it: every call, what it takes, and what comes back."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from recollect.server import openapi
from recollect.server.pages.settings import address_of
from recollect.server.pages.site import Visit, page

_REF = "#/components/schemas/"
_FIRST = "memories"
"""The group that comes first; the others by their names."""

Type = list[tuple[str, str]]
"""A type in pieces: the words, and the name of the type that they lead to, or nothing."""


@page("/api", "API", template="reference.html", nav="API", group="Server")
def reference(visit: Visit) -> dict[str, Any]:
    query = visit.query("q")
    words = query.lower().split()
    calls = [call for searched, call in _calls() if all(word in searched for word in words)]
    names = [_FIRST, *sorted({each["group"] for each in calls} - {_FIRST})]
    groups = [{"name": name, "calls": [each for each in calls if each["group"] == name]} for name in names]
    return {
        "q": query,
        "count": len(calls),
        "all": len(_calls()),
        "groups": [group for group in groups if group["calls"]],
        "types": _reached(calls),
        "base": address_of(visit),
    }


@cache
def _document() -> dict[str, Any]:
    return msgspec.json.decode(openapi.document())


@cache
def _calls() -> list[tuple[str, dict[str, Any]]]:
    """Each with the words by which it is found."""
    return [
        _call(method.upper(), path, operation)
        for path, methods in _document()["paths"].items()
        for method, operation in methods.items()
    ]


def _call(method: str, path: str, operation: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    takes = [
        _argument(parameter["name"], parameter["schema"], parameter.get("required", False), parameter["in"])
        for parameter in operation["parameters"]
        if parameter["in"] != "header"  # which are the same for every call, and told once
    ]
    takes += _body(operation.get("requestBody"))
    (answer,) = (response for status, response in operation["responses"].items() if status != "default")
    gives = answer["content"]["application/json"]["schema"]
    more = operation["description"].partition("\n")[2].strip()
    searched = " ".join(
        (method, path, operation["operationId"], operation["description"], *(parameter["name"] for parameter in takes))
    )
    return searched.lower(), {
        "id": operation["operationId"],
        "group": operation["tags"][0],
        "method": method,
        "path": path,
        "role": operation["x-role"],
        "summary": operation["summary"],
        "more": [" ".join(part.split()) for part in more.split("\n\n") if part],
        "takes": takes,
        "gives": _type(gives) if gives else [("nothing", "")],
    }


def _body(body: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The fields of what is sent, or one line for what may have any."""
    if body is None:
        return []
    schema = body["content"]["application/json"]["schema"]
    named = _schemas().get(schema.get("$ref", "").removeprefix(_REF))
    if named is None or "properties" not in named:
        return [_argument("the body", schema, body["required"], "body")]
    required = named.get("required", ())
    return [_argument(name, part, name in required, "body") for name, part in named["properties"].items()]


def _argument(name: str, schema: dict[str, Any], required: bool, where: str) -> dict[str, Any]:
    default = schema.get("default")
    return {
        "name": name,
        "in": where,
        "type": _type(schema),
        "required": required,
        "default": None if default in (None, [], {}) else msgspec.json.encode(default).decode(),
    }


def _type(schema: dict[str, Any]) -> Type:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REF)
        return [(_short(name), name)]
    if kinds := schema.get("anyOf"):
        parts = [_type(kind) for kind in kinds if kind != {"type": "null"}]  # what may be left out is told as such
        return [piece for at, part in enumerate(parts) for piece in ([(" or ", "")] if at else []) + part]
    if "enum" in schema:
        return [(" | ".join(map(str, schema["enum"])), "")]
    if schema.get("type") == "array":
        return [("list of ", ""), *_type(schema.get("items", {}))]
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return [("object of ", ""), *_type(schema["additionalProperties"])]
    return [(schema.get("format") or schema.get("type") or "any JSON", "")]


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _schemas() -> dict[str, Any]:
    return _document()["components"]["schemas"]


def _reached(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The types that these calls name, and those that they are made of."""
    waiting = [
        name for call in calls for _, name in call["gives"] + [p for a in call["takes"] for p in a["type"]] if name
    ]
    schemas: dict[str, dict[str, Any]] = {}
    while waiting:
        name = waiting.pop()
        if name in schemas or name not in _schemas():
            continue
        schema = _schemas()[name]
        required = schema.get("required", ())
        fields = [_argument(key, part, key in required, "") for key, part in schema.get("properties", {}).items()]
        schemas[name] = {"id": name, "name": _short(name), "about": schema.get("description", ""), "fields": fields}
        if not fields:
            schemas[name]["about"] = schemas[name]["about"] or "".join(text for text, _ in _type(schema))
        waiting += [ref for field in fields for _, ref in field["type"] if ref]
    return sorted(schemas.values(), key=lambda each: each["name"].lower())
