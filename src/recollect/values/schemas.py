"""JSON Schemas as msgspec makes them, for clients that have no null: an argument that is not given is left out."""

from __future__ import annotations

from typing import Any


def without_null(part: dict[str, Any]) -> dict[str, Any]:
    """The schema of one field without `null` among its types, and without `null` as its default."""
    kinds = [option for option in part.get("anyOf", []) if option != {"type": "null"}]
    rest = {key: value for key, value in part.items() if key != "anyOf" and (key, value) != ("default", None)}
    return {**kinds[0], **rest} if len(kinds) == 1 else ({**rest, "anyOf": kinds} if kinds else rest)
