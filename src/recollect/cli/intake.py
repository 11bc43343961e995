"""What commands take in: text from arguments or stdin, lines of text or JSON, key=value pairs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from recollect.cli.progress import progress
from recollect.values.errors import InputError, RecollectError
from recollect.values.record import utc_now
from recollect.verbs.remember.draft import draft_record

if TYPE_CHECKING:
    from recollect.memory import Memory

_BATCH = 1000


def piped() -> bool:
    """Whether stdin is something other than a person's keyboard."""
    return not sys.stdin.isatty()


def check_new(file: str, force: bool) -> None:
    """InputError where a file is there that nobody said to replace."""
    if not force and os.path.isfile(file):
        raise InputError("file", f"{file} is there already; pass --force to replace it")


def _means_stdin(words: Sequence[str]) -> bool:
    """Whether a TEXT is `-`, which stands for what is piped in. The one place that decides it."""
    return tuple(words) == ("-",)


def _stdin_text() -> str:
    return read_file("-", "stdin").rstrip("\r\n")


def read_text(words: Sequence[str]) -> str:
    """The words as they were typed; from stdin if there are none, or only `-`."""
    if words and not _means_stdin(words):
        return " ".join(words)
    if not words and not piped():
        raise click.UsageError("Give the TEXT, or pipe it in.")
    return _stdin_text()


class TextArgument(click.Argument):
    """A TEXT in one word or several, which `-` alone reads from stdin: `click.argument("query", cls=TextArgument)`."""

    reads_stdin = True
    """So the help of the command says."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        value = super().process_value(ctx, value)
        if self.nargs == 1:
            return _stdin_text() if value is not None and _means_stdin([value]) else value
        return (_stdin_text(),) if value and _means_stdin(value) else value


def read_file(file: str, field: str) -> str:
    """All of a file, or of stdin if it is `-`. `field` is the option or argument that names it."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise InputError(field, f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        name = "stdin" if file == "-" else file
        raise InputError(name, f"is not UTF-8 text (at byte {error.start:,})") from None


def parse_json(words: str, field: str = "content") -> Any:
    """The value of a JSON text. Every command reads JSON with this function."""
    try:
        return msgspec.json.decode(words)
    except RecursionError:
        raise InputError(field, "is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise InputError(field, f"is not JSON: {error}") from None


ABOUT_VALUES = 'A VALUE that is JSON, such as 5, true or "5", is stored as JSON, and any other as text.'
"""For the help of every option that takes KEY=VALUE."""


def pairs(typed: Sequence[str], option: str = "--meta") -> dict[str, Any] | None:
    """KEY=VALUE, as often as the option was typed."""
    values: dict[str, Any] = {}
    for pair in typed:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE.", param_hint=option)
        if key in values:
            raise click.BadParameter(f"the key {key!r} is given twice.", param_hint=option)
        values[key] = _json_or_text(value, option.lstrip("-"))
    return values or None


def _json_or_text(value: str, field: str) -> Any:
    try:
        return msgspec.json.decode(value)
    except RecursionError:
        raise InputError(field, "is nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return value


Item = tuple[int, dict[str, Any]]
"""The number of a line, and the fields of the memory that it holds."""


def plain_lines(fields: Mapping[str, Any]) -> list[Item]:
    return [(number, {**fields, "content": line}) for number, line in _lines()]


def json_lines(fields: Mapping[str, Any], file: str = "-") -> list[Item]:
    """What a line leaves open is as the options say."""
    items: list[Item] = []
    for number, line in _lines(file):
        value = parse_json(line, f"line {number:,}")
        if not isinstance(value, dict):
            raise InputError(f"line {number:,}", 'must be a JSON object such as {"content": "…", "kind": "fact"}')
        items.append((number, {**fields, **value}))
    return items


def _lines(file: str = "-") -> Iterator[tuple[int, str]]:
    for number, line in enumerate(read_file(file, "file").split("\n"), 1):
        if line := line.strip():
            yield number, line


def store_all(memory: Memory, items: Sequence[Item]) -> list[str]:
    """Store all of them, or none: every line is tried before the first is stored."""
    check_all(items, lambda fields: _try(memory, fields))
    stored: list[str] = []
    rest = iter(items)
    with progress("Storing", len(items)) as tell:
        while batch := [fields for _, fields in islice(rest, _BATCH)]:
            stored += [record.id for record in memory.remember_many(batch)]
            tell(len(stored))
    return stored


def check_all(items: Sequence[Item], check: Callable[[dict[str, Any]], object]) -> None:
    """Ends with the first line that is refused, and names it."""
    with progress("Checking", len(items)) as tell:
        for done, (number, fields) in enumerate(items, 1):
            try:
                check(fields)
            except RecollectError as error:
                error.args = (f"line {number:,}: {error}; nothing was stored",)
                raise
            tell(done)


def _try(memory: Memory, fields: Mapping[str, Any]) -> None:
    try:
        draft_record(fields, memory.address, memory.preset, utc_now())
    except RecollectError:
        memory.remember_many([fields])  # refused once more, by the memory itself, so that it is in the audit log
