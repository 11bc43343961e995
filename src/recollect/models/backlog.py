"""Where memories wait for their vectors, in the order in which a worker serves them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from recollect.stores.port import Place

_LINGER = 0.05
"""Seconds that the worker waits for more, unless somebody waits for it."""


class Backlog:
    """Lent to a worker's thread, so it holds nothing that should go when its owner does."""

    def __init__(self, places: dict[Place, None] | None = None) -> None:
        self.places = places or {}
        self.closed = False
        self.keeping = threading.Lock()
        """Held while vectors are written; once it is closed, none are."""
        # Taken by itself, not by way of the condition: that is Python, and an interrupt in it would leave it locked.
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._serving: Place | None = None
        self._waiters = 0
        self._behind = False
        """Whether there is more than one batch to do."""

    def add(self, place: Place) -> None:
        with self._lock:
            self.places[place] = None
            self._wake.notify_all()

    def wait_for(self, place: Place, seconds: float) -> None:
        """Have a place served next, and wait until it is, but no longer."""
        with self._lock:
            self.places.pop(place, None)
            self.places = {place: None, **self.places}
            self._waiters += 1
            try:
                self._wake.notify_all()
                self._wake.wait_for(
                    lambda: self.closed or (place not in self.places and place != self._serving), seconds
                )
            finally:
                self._waiters -= 1

    def take(self, due: float) -> Place | None:
        """What is to be served now; None when it is closed, or when that time has come and there is nothing else."""
        with self._lock:
            self._wake.wait_for(lambda: self.places or self.closed, max(due - time.monotonic(), 0.0))
            if self.places and not self._waiters and not self._behind:
                # Wait for more: memories are often stored in a row, and one batch costs less.
                self._wake.wait_for(lambda: self._waiters or self.closed, _LINGER)
            if self.closed:
                return None
            self._serving = next(iter(self.places), None)
            if self._serving is not None:
                del self.places[self._serving]
            return self._serving

    def served(self, place: Place, more: bool) -> None:
        """A batch is done. If that was not all, the place comes again, behind those for which somebody waits."""
        with self._lock:
            self._serving, self._behind = None, more and not self.closed
            if self._behind:
                self.places = {place: None, **self.places} if self._waiters < 2 else {**self.places, place: None}
            self._wake.notify_all()

    def give_way(self, free: Callable[[], bool], seconds: float) -> None:
        """Wait until the worker may go on: `stir` has it look again."""
        with self._lock:
            self._wake.wait_for(lambda: free() or self.closed, seconds)

    def stir(self) -> None:
        with self._lock:
            self._wake.notify_all()

    def close(self) -> None:
        with self._lock:
            self.closed = True
            self._wake.notify_all()
