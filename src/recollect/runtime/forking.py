"""Forks: what must be at rest before one, and starting afresh in the new process.

Threads, connections and locks of the parent cannot be used in the child.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from types import TracebackType
from typing import Protocol, runtime_checkable

_PATIENCE = 10.0
"""Seconds that a fork waits for calls under way."""


class Forkable(Protocol):
    def after_fork(self) -> None:
        """Called in the new process, before anything else runs in it."""
        ...


@runtime_checkable
class Pausing(Protocol):
    """An object that is also notified before a fork."""

    def before_fork(self) -> None:
        """Called by the thread that forks: come to rest."""
        ...

    def resume(self) -> None:
        """Called in the parent afterwards: go on."""
        ...


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_forking = threading.local()


def watch(owner: Forkable) -> None:
    """Notify an object of forks for as long as it lives (it is held by a weak reference)."""
    _watched.add(owner)


def _before() -> None:
    _forking.paused = [owner for owner in list(_watched) if isinstance(owner, Pausing)]
    for owner in _forking.paused:
        owner.before_fork()
    _wait_for_imports()


def _wait_for_imports() -> None:
    """A child would wait for ever for a module that another thread is importing: its lock is held in the child, too."""
    until = time.monotonic() + _PATIENCE
    while _others_import() and time.monotonic() < until:
        time.sleep(0.001)


def _others_import() -> bool:
    locks = getattr(sys.modules["importlib._bootstrap"], "_module_locks", {})
    held = [lock for reference in list(locks.values()) if (lock := reference()) is not None]
    return any(getattr(lock, "owner", None) not in (None, threading.get_ident()) for lock in held)


def _in_parent() -> None:
    for owner in reversed(_forking.paused):
        owner.resume()
    _forking.paused = []


def _in_child() -> None:
    _forking.paused = []
    for owner in list(_watched):
        owner.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


class Gate:
    """Short work that must not be under way while the process forks, because a library locks something of its own.

    Use it as a context manager, and not inside itself.
    """

    def __init__(self) -> None:
        self.after_fork()
        watch(self)

    def after_fork(self) -> None:
        # Taken by itself, not by way of the condition: that is Python, and an interrupt in it would leave it locked.
        self._lock = threading.Lock()
        self._change = threading.Condition(self._lock)
        self._inside: set[int] = set()
        """Threads. One that an interrupt kept from leaving stays here until it comes again."""
        self._shut = False

    def __enter__(self) -> None:
        with self._lock:
            while self._shut:
                self._change.wait()
            self._inside.add(threading.get_ident())

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._inside.discard(threading.get_ident())
            if self._shut:
                self._change.notify_all()

    def before_fork(self) -> None:
        with self._lock:
            self._shut = True
            self._change.wait_for(lambda: self._inside <= {threading.get_ident()}, _PATIENCE)

    def resume(self) -> None:
        with self._lock:
            self._shut = False
            self._change.notify_all()


importing = Gate()
"""Around imports that are put off until they are needed: a child would wait for ever for one that was under way."""
