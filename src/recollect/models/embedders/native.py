"""Calls into native code, for which the interpreter waits before it ends.

A thread that comes back from native code while the interpreter ends is stopped on the spot; in C++ that aborts the
whole process. Such calls are short, so whoever ends waits for those under way, and no other begins.
"""

from __future__ import annotations

import atexit
import threading
from types import TracebackType

from recollect.runtime import forking
from recollect.values.errors import ModelError


class _Native:
    def __init__(self) -> None:
        self._ending = False
        self.after_fork()
        forking.watch(self)
        atexit.register(self._end)

    def after_fork(self) -> None:
        # Taken by itself, not by way of the condition: that is Python, and an interrupt in it would leave it locked.
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._inside: set[int] = set()
        """Threads. One that an interrupt kept from leaving stays here until it comes again."""

    def __enter__(self) -> None:
        with self._lock:
            if self._ending:
                raise ModelError("the interpreter is ending, so no model can be used any more")
            self._inside.add(threading.get_ident())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside.discard(threading.get_ident())
            self._idle.notify_all()

    def _end(self) -> None:
        with self._lock:
            self._ending = True
            self._idle.wait_for(lambda: self._inside <= {threading.get_ident()})


native = _Native()
