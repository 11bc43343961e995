"""What is wrong with a preset, told by the path of the key and with the key that was probably meant."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import inspect

from recollect.presets import Preset
from recollect.presets.files import table
from recollect.values.errors import PresetError


def explain(message: str, data: dict[str, Any], origin: str) -> PresetError:
    """msgspec's message, told by the path of the key and with the key that was probably meant."""
    problem, _, place = message.replace("at `key` in ", "at ").partition(" - at `$")
    path = _path(place.rstrip("`"), data)
    names = _known_names(path, data)
    if problem.startswith("Object contains unknown field"):
        key = problem.split("`")[1]
        hint = closest(key, names) or f"; the keys here are {', '.join(names)}"
        return PresetError(".".join([*path, key]), f"unknown key in preset {origin}{hint}")
    if problem.startswith("Object missing required field"):
        key = problem.split("`")[1]
        return PresetError(".".join([*path, key]), f"missing in preset {origin}")
    hint = ""
    if problem.startswith("Invalid"):
        value = problem.partition("'")[2].rstrip("'")
        hint = f"{closest(value, names)} (one of {', '.join(names)})" if names else ""
    return PresetError(".".join(path), f"in preset {origin}: {problem[:1].lower()}{problem[1:]}{hint}")


def _path(place: str, data: dict[str, Any]) -> list[str]:
    """`.decay.hours[...]` as keys. msgspec hides the keys of open tables, so they are tried one by one."""
    path: list[str] = []
    value: Any = data
    for step in place.replace("[", ".[").split(".[...]")[0].split(".")[1:]:
        path.append(step.strip("[]"))
        value = value[int(path[-1])] if step.startswith("[") else value[step]
    if "[...]" in place and isinstance(value, dict):
        inner = table(value)  # pyright: ignore[reportUnknownArgumentType]
        path.extend([key for key in inner if not _fits(data, path, {key: inner[key]})][:1])
    return path


def _fits(data: dict[str, Any], path: list[str], part: dict[str, Any]) -> bool:
    changed = copy.deepcopy(data)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = part
    try:
        msgspec.convert(changed, Preset)
    except msgspec.ValidationError:
        return False
    return True


def _known_names(path: list[str], data: dict[str, Any]) -> tuple[str, ...]:
    """The keys of the table at the path, or the values that a choice there may have."""
    kinds: list[inspect.Type] = [inspect.type_info(Preset)]
    value: Any = data
    for step in path:
        chosen = _structs(kinds, value)
        tags = tuple([str(kind.tag) for kind in chosen if kind.tag_field == step])
        if tags:
            return tags
        fields = [field.type for kind in chosen for field in kind.fields if field.encode_name == step]
        items = [kind.item_type for kind in kinds if isinstance(kind, inspect.VarTupleType)]
        kinds = [
            part for kind in fields + items for part in (kind.types if isinstance(kind, inspect.UnionType) else (kind,))
        ]
        value = value[int(step)] if step.isdigit() else table(value).get(step)
    choices = [kind.key_type if isinstance(kind, inspect.DictType) else kind for kind in kinds]
    literals = [str(value) for kind in choices if isinstance(kind, inspect.LiteralType) for value in kind.values]
    keys = [[kind.tag_field, *(field.encode_name for field in kind.fields)] for kind in _structs(kinds, value)]
    return tuple(literals) or tuple([str(key) for names in keys for key in names if key is not None])


def _structs(kinds: list[Any], value: Any) -> list[Any]:
    """The structs among the types; of a tagged union only the one that the table's tag names, if it names one."""
    structs = [kind for kind in kinds if hasattr(kind, "fields")]
    fields = table(value) if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownArgumentType]
    return [kind for kind in structs if kind.tag_field and fields.get(kind.tag_field) == kind.tag] or structs


def closest(word: str, candidates: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, candidates, 1, 0.5)
    return f", did you mean `{near[0]}`?" if near else ""
