"""Printing: JSON for programs; for people, tables and lines with colour where there is a terminal that wants it.

All that memories say goes through here, and nothing of it can drive the terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import click
import msgspec

from recollect.cli import text

if TYPE_CHECKING:
    from rich.console import Console

Styled = str | tuple[str, str]
"""Text, or text and how it looks."""

ID, QUIET, STRONG = "cyan", "dim", "bold"
GOOD, BAD, CAREFUL = "green", "red", "yellow"


class Column(NamedTuple):
    header: str
    style: str = ""
    right: bool = False
    flexible: bool = False
    """Takes the width that is left."""
    wrap: bool = False
    """Whether what does not fit goes on in the next line, or is cut off with an ellipsis."""


def emit(document: Any) -> None:
    """One JSON document: on one line for programs, indented where a person looks on."""
    encoded = text.json_of(document)
    if sys.stdout.isatty():
        encoded = text.printable_json(msgspec.json.format(encoded, indent=2))
    click.echo(encoded)


def stream() -> BinaryIO:
    """Stdout for what is JSON already."""
    return cast("BinaryIO", _Printable()) if sys.stdout.isatty() else sys.stdout.buffer


class _Printable:
    """Takes whole characters at once."""

    def write(self, data: bytes) -> int:
        return sys.stdout.buffer.write(text.printable_json(data))

    def flush(self) -> None:
        sys.stdout.buffer.flush()


def note(words: str) -> None:
    """Something to know that is not the result."""
    click.echo(text.printable(words), err=True)


def terminal() -> bool:
    """Whether a person looks on, or FORCE_COLOR says so."""
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


def width() -> int:
    """Columns of the terminal; as good as endless where there is none."""
    return _console().width if terminal() else 10_000


def say(*parts: Styled, indent: int = 0) -> None:
    """One paragraph."""
    parts = tuple(map(_printable, parts))
    if not terminal():
        plain = "".join(part if isinstance(part, str) else part[0] for part in parts)
        click.echo("\n".join(" " * indent + line if line else line for line in plain.split("\n")))
        return
    from rich.padding import Padding
    from rich.text import Text

    paragraph = Text.assemble(*parts)
    _console().print(Padding(paragraph, (0, 0, 0, indent), expand=False) if indent else paragraph)


def _printable(part: Styled) -> Styled:
    return text.printable(part) if isinstance(part, str) else (text.printable(part[0]), part[1])


def table(columns: Sequence[Column], rows: Iterable[Sequence[Styled]]) -> None:
    shown = [list(map(_printable, row)) for row in rows]
    if terminal():
        _rich_table(columns, shown)
    else:
        _plain_table(columns, shown)


def facts(rows: Iterable[tuple[str, Styled | None]], indent: int = 0) -> None:
    """Names and values, without those that have no value."""
    shown = [(name, value) for name, value in rows if value is not None]
    longest = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        hanging((name.ljust(longest), QUIET), value, indent=indent)


def hanging(first: tuple[str, str], rest: Styled, indent: int = 0) -> None:
    """A paragraph whose further lines begin below the first line's second part."""
    if not terminal():
        say(first, "  ", rest, indent=indent)
        return
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    first, rest = (text.printable(first[0]), first[1]), _printable(rest)
    if " " not in (rest if isinstance(rest, str) else rest[0]):
        # One word, such as an id, is never broken in two: the terminal may wrap it, and copying gives it whole.
        _console().print(" " * indent, Text(*first), "  ", Text.assemble(rest), sep="", soft_wrap=True)
        return
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(*first), Text.assemble(rest))
    _console().print(Padding(grid, (0, 0, 0, indent), expand=False))


def _console() -> Console:
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))
    return Console(highlight=False, markup=False, emoji=False, color_system=None if plain else "auto")


def _rich_table(columns: Sequence[Column], rows: Iterable[Sequence[Styled]]) -> None:
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=QUIET)
    grid.expand = any(column.flexible for column in columns)
    for column in columns:
        grid.add_column(
            column.header,
            style=column.style,
            justify="right" if column.right else "left",
            no_wrap=not column.wrap,
            overflow="fold" if column.wrap else "ellipsis",
            ratio=1 if column.flexible else None,
        )
    for row in rows:
        grid.add_row(*(Text.assemble(cell) for cell in row))
    _console().print(grid)


def _plain_table(columns: Sequence[Column], rows: Iterable[Sequence[Styled]]) -> None:
    lines = [[column.header for column in columns]]
    lines += [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    click.echo("\n".join(_plain_row(columns, widths, line) for line in lines))


def _plain_row(columns: Sequence[Column], widths: Sequence[int], line: Sequence[str]) -> str:
    cells = [
        cell.rjust(wide) if column.right else cell.ljust(wide)
        for cell, wide, column in zip(line, widths, columns, strict=True)
    ]
    return "  ".join(cells).rstrip()
