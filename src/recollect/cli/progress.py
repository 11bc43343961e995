"""A progress bar on stderr for work that takes long, where there is a terminal to see it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE_SECONDS = 0.5


@contextmanager
def progress(label: str, total: int | None) -> Generator[Callable[[int], None]]:
    """Gives a function to call with how many are done. Nothing is shown in the first half second."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    start = time.monotonic()
    shown: list[Progress] = []
    with ExitStack() as stack:

        def tell(done: int) -> None:
            if not shown:
                if time.monotonic() - start < _PATIENCE_SECONDS:
                    return
                shown.append(stack.enter_context(_bar()))
                shown[0].add_task(label, total=total)
            shown[0].update(shown[0].task_ids[0], completed=done)

        yield tell


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def bars() -> Generator[Callable[[str, int, int | None], None]]:
    """One bar after the other, as what is done changes."""
    with ExitStack() as stack:
        shown: dict[str, Callable[[int], object]] = {}

        def tell(what: str, done: int, total: int | None) -> None:
            if what not in shown:
                stack.close()
                shown.clear()
                shown[what] = stack.enter_context(progress(what, total))
            shown[what](done)

        yield tell
