"""The table of preset keys holds each key that a preset may have, with its default, and no other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from recollect.presets import Preset

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "presets.md"
_ROW = re.compile(r"^\| `([a-z_.]+)` \| .+ \| (.+) \|$", re.MULTILINE)


def test_every_key_of_a_preset_is_in_the_table_with_its_default() -> None:
    table = sorted(_ROW.findall(DOCUMENT.read_text().partition("## Every key")[2]))
    assert table == sorted({("extends", '`"recollect"`'), *_keys(inspect.type_info(Preset), "")})


def _keys(kind: inspect.Type, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _keys(one, path)
    elif isinstance(kind, inspect.VarTupleType):
        yield from _keys(kind.item_type, path)
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields:
            key = f"{path}{field.encode_name}"
            inner = list(_keys(field.type, f"{key}."))
            if isinstance(field.type, inspect.UnionType) and isinstance(field.default, msgspec.Struct):
                tag = field.default.__struct_config__
                yield f"{key}.{tag.tag_field}", f"`{json.dumps(tag.tag)}`"
            if not inner or isinstance(field.type, inspect.VarTupleType):
                yield key, _default(field)
            yield from inner


def _default(field: inspect.Field) -> str:
    made: Any = field.default
    if made is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
        made = field.default_factory()
    if made is msgspec.NODEFAULT:
        return "must be given"
    return "none" if made in (None, (), {}, "") else f"`{json.dumps(msgspec.to_builtins(made))}`"
