"""Writes counted retrievals some seconds after they were counted, and when the process ends."""

from __future__ import annotations

import atexit
import threading
import time
from typing import Protocol

from recollect import forking
from recollect.stores.touches import SECONDS

_TRIES = 5
"""After so many attempts the counts wait for the next retrieval or change: a disk may stay full for long."""


class CountsRetrievals(Protocol):
    def settle_touches(self) -> bool:
        """Write the counted retrievals of all places. False if some could not be written. Never fails."""
        ...


class TouchTimer:
    """One daemon thread for all stores of a process. It runs only while something waits, and waits without a lock.

    A store is referenced from its first unwritten count until the count is written, so that a store which is dropped
    without `close` loses none; after that nothing here refers to it.
    """

    def __init__(self) -> None:
        self.after_fork()
        forking.watch(self)
        atexit.register(self.write_all)

    def after_fork(self) -> None:
        """The counts of the parent are its own to write."""
        self._lock = threading.Lock()
        self._due: dict[int, tuple[float, int, CountsRetrievals]] = {}
        """By the identity of the store: when to write, and how often that was tried."""
        self._thread: threading.Thread | None = None

    def schedule(self, store: CountsRetrievals, tries: int = 0) -> None:
        """Have a store write its counts after some seconds, with those that are counted until then."""
        if id(store) in self._due:  # most calls: no lock for them
            return
        with self._lock:
            self._due.setdefault(id(store), (time.monotonic() + SECONDS, tries, store))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="recollect-retrievals", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter is ending, or there are too many threads: written at exit
                    self._thread = None

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._due:
                    self._thread = None
                    return
                wait = min(due for due, _, _ in self._due.values()) - time.monotonic()
            if wait > 0:
                time.sleep(min(wait, SECONDS))
            else:
                self._write(time.monotonic())

    def _write(self, until: float) -> None:
        with self._lock:
            ready = [key for key, (due, _, _) in self._due.items() if due <= until]
            stores = [self._due.pop(key) for key in ready]
        for _, tries, store in stores:
            if not _settled(store) and tries + 1 < _TRIES:
                self.schedule(store, tries + 1)

    def write_all(self) -> None:
        """Write what waits now. Called when the interpreter ends."""
        with self._lock:
            stores, self._due = [store for _, _, store in self._due.values()], {}
        for store in stores:
            _settled(store)


def _settled(store: CountsRetrievals) -> bool:
    try:
        return store.settle_touches()
    except Exception:  # whatever it is: the thread goes on for the other stores
        return False


timer = TouchTimer()
