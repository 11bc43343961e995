"""Starting afresh in a forked process, where threads and connections of the parent cannot be used."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    def after_fork(self) -> None:
        """Called in the new process, before anything else runs in it."""
        ...


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()


def watch(owner: Forkable) -> None:
    """Have its `after_fork` called for as long as it lives."""
    _watched.add(owner)


def _forked() -> None:
    for owner in list(_watched):
        owner.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_forked)
