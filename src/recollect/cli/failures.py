"""Every error as one line for people, a JSON document for programs, and an exit code."""

from __future__ import annotations

from contextlib import suppress

import click

from recollect.cli.text import printable
from recollect.values.errors import RecollectError

FAILED, INTERRUPTED = 1, 130
_LONGEST = 2000
"""Characters of a message."""


def report(error: Exception, *, as_json: bool) -> int:
    """Tell of the error and return the exit code. What nobody foresaw is raised again."""
    if isinstance(error, click.Abort):
        return INTERRUPTED
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    if as_json:
        with suppress(OSError):  # it may be stdout that failed
            _print_json(error)
    if isinstance(error, click.ClickException):
        vars(error)["message"] = _cut(error.message)
        error.show()
        return error.exit_code
    if isinstance(error, RecollectError | OSError):
        click.echo(printable(f"recollect: {_line(error)}"), err=True)
        return FAILED
    raise error


def _line(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    if isinstance(error, click.ClickException):
        return _cut(error.format_message())
    return _cut(" ".join(str(error).split()))


def _cut(message: str) -> str:
    """Of a long value that is refused no more than the beginning is repeated."""
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"


def _print_json(error: Exception) -> None:
    from recollect.cli.text import json_of

    param = getattr(error, "param", None)
    field = getattr(error, "field", None) or (param.name if isinstance(param, click.Parameter) else None)
    document = {"error": {"type": type(error).__name__, "message": _line(error), "field": field}}
    click.echo(json_of(document))
