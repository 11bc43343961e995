"""Presets: list them, show one as a TOML file to start from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import click
import msgspec

from recollect.cli import output
from recollect.cli.completing import COMPLETED
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import ID, Column, Styled
from recollect.cli.paths import PATH
from recollect.cli.target import Target, scoped
from recollect.presets import load, names


@click.group(cls=LazyGroup, default="list", sections={"Commands": {"list": "presets:list_", "show": "presets:show"}})
def presets() -> None:
    """List the presets that come with recollect, or show one.

    \b
    Example:
      recollect presets
      recollect presets show atlas > mine.toml
    """


@click.command("list", cls=Leaf)
@scoped
def list_(target: Target) -> None:
    """List the presets that come with recollect.

    \b
    Example:
      recollect presets list
    """
    presets = [load(name) for name in names()]
    if target.json:
        output.emit([{"name": preset.name, "description": preset.description} for preset in presets])
        return
    rows: list[list[Styled]] = [[preset.name, preset.description] for preset in presets]
    output.table([Column("preset", ID), Column("for", flexible=True, wrap=True)], rows)


@click.command(cls=Leaf)
@click.argument("name", required=False, type=PATH, shell_complete=COMPLETED["preset"])
@scoped
def show(target: Target, name: str | None) -> None:
    """Show every value of a preset, as TOML that can be saved, changed and used with --preset.

    NAME may also be a TOML file; without it, the one that --preset names is shown.

    \b
    Example:
      recollect presets show atlas
    """
    preset = load(name) if name else target.rules()
    if target.json:
        output.emit(preset)
    else:
        click.echo("\n".join(_toml(msgspec.to_builtins(preset), "")).strip())


Table = dict[str, Any]


def _toml(table: Table, path: str) -> Iterator[str]:
    """The values first, then the tables inside. What is not set has no place in TOML and is left out."""
    inside = {key: value for key, value in table.items() if _is_table(value) or _is_tables(value)}
    for key, value in table.items():
        if key not in inside and value is not None:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in inside.items():
        name = f"{path}{_key(key)}"
        for entry in cast("list[Table]", value) if _is_tables(value) else ():
            yield from ("", f"[[{name}]]", *_toml(entry, f"{name}."))
        if _is_table(value) and value:
            yield from ("", f"[{name}]", *_toml(cast("Table", value), f"{name}."))


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(map(_is_table, cast("list[Any]", value)))


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _value(key)


def _value(value: Any) -> str:
    """JSON, which for text, numbers, booleans and lists of them is TOML too."""
    return msgspec.json.encode(value).decode()
