"""Has stores write what they have put off: some seconds later, and when the process ends."""

from __future__ import annotations

import atexit
import math
import threading
import time
from typing import NamedTuple, Protocol

from recollect.runtime import forking
from recollect.stores.touches import SECONDS

_TRIES = 5
"""After so many attempts the store waits for its next change, or for the end of the process: a disk may stay full."""


class DefersWrites(Protocol):
    def settle(self) -> bool:
        """Write everything that was put off, in all places. False if some could not be written. Never fails."""
        ...


class _Due(NamedTuple):
    at: float
    """On the monotonic clock."""
    seconds: float
    tries: int
    store: DefersWrites


class WriteTimer:
    """One daemon thread for all stores of a process. It runs only while something waits.

    A store is referenced from its first deferred write until that is written, so that a store which is dropped without
    `close` loses nothing; after that nothing here refers to it.
    """

    def __init__(self) -> None:
        self.after_fork()
        forking.watch(self)
        atexit.register(self.write_all)

    def after_fork(self) -> None:
        """What the parent has put off is its own to write."""
        # Taken by itself, not by way of the condition: an interrupt inside that would leave it locked.
        self._lock = threading.Lock()
        self._change = threading.Condition(self._lock)
        self._due: dict[int, _Due] = {}
        """By the identity of the store."""
        self._thread: threading.Thread | None = None

    def schedule(self, store: DefersWrites, seconds: float | None = None, tries: int = 0) -> None:
        """Have a store settle after so many seconds, with everything that it puts off until then."""
        seconds = SECONDS if seconds is None else seconds
        at = time.monotonic() + seconds
        if (due := self._due.get(id(store))) is not None and due.at <= at:  # most calls: no lock for them
            return
        with self._lock:
            if (due := self._due.get(id(store))) is not None and due.at <= at:
                return
            self._due[id(store)] = _Due(at, seconds, tries, store)
            if tries < _TRIES:
                self._wake()

    def _wake(self) -> None:
        """With the lock held."""
        self._change.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="recollect-writes", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # the interpreter is ending, or there are too many threads: written at exit
                self._thread = None

    def _run(self) -> None:
        while True:
            with self._lock:
                first = min((due.at for due in self._due.values()), default=math.inf)
                if first == math.inf:
                    self._thread = None
                    return
                wait = first - time.monotonic()
                if wait > 0:
                    self._change.wait(min(wait, threading.TIMEOUT_MAX))
                    continue
            self._write(time.monotonic())

    def _write(self, until: float) -> None:
        with self._lock:
            ready = [self._due.pop(key) for key, due in list(self._due.items()) if due.at <= until]
        for due in ready:
            if not _settled(due.store):
                tries = due.tries + 1
                self.schedule(due.store, due.seconds if tries < _TRIES else math.inf, tries)

    def write_all(self) -> None:
        """Write what waits now. Called when the interpreter ends."""
        with self._lock:
            stores, self._due = [due.store for due in self._due.values()], {}
        for store in stores:
            _settled(store)

    def forget(self, store: DefersWrites) -> None:
        """Do not wait for a store that has written everything, or has told its caller what it could not."""
        with self._lock:
            self._due.pop(id(store), None)


def _settled(store: DefersWrites) -> bool:
    try:
        return store.settle()
    except Exception:  # whatever it is: the thread goes on for the other stores
        return False


timer = WriteTimer()
