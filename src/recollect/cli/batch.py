"""The same for many workspaces or sessions: one that fails does not keep the others waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from recollect.cli.output import note
from recollect.cli.progress import progress
from recollect.values.errors import StoreError

T = TypeVar("T")


def each(label: str, names: Sequence[str], do: Callable[[str], T]) -> tuple[dict[str, T], dict[str, str]]:
    """What it gave for each, and what was wrong where it failed."""
    done: dict[str, T] = {}
    failed: dict[str, str] = {}
    with progress(label, len(names)) as tell:
        for name in names:
            try:
                done[name] = do(name)
            except StoreError as error:
                failed[name] = str(error)
            tell(len(done) + len(failed))
    return done, failed


def end(failed: dict[str, str], *, quiet: bool) -> None:
    """Tell of failures, unless they are in the JSON document, and exit with 1 if there were any."""
    if not quiet:
        for name, problem in failed.items():
            note(f"recollect: {name}: {' '.join(problem.split())}")
    if failed:
        click.get_current_context().exit(1)
