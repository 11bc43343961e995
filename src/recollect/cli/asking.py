"""Questions on the terminal before something is deleted."""

from __future__ import annotations

from collections.abc import Callable

import click

from recollect.cli.intake import piped
from recollect.values.errors import RecollectError


class DeclinedError(RecollectError):
    """Nobody said yes: the answer was no, or there was no terminal to ask on. Nothing was changed."""


def confirm(question: str, preview: Callable[[], None] | None = None, no: str = "nothing was forgotten") -> None:
    """Asks, and raises DeclinedError on a no. Where there is nobody to ask, --yes must be given."""
    if piped():
        raise DeclinedError(f"{question} There is no terminal to ask on; give --yes to go on.")
    if preview is not None:
        preview()
    if not click.confirm(question, err=True):
        raise DeclinedError(no)
