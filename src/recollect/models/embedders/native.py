"""Calls into native code, for which the interpreter waits before it ends.

A thread that comes back from native code while the interpreter ends is stopped on the spot; in C++ that aborts the
whole process. Such calls are short, so whoever ends waits for those under way, and no other begins.
"""

from __future__ import annotations

import atexit
import threading
from types import TracebackType

from recollect import forking
from recollect.errors import ModelError


class _Native:
    def __init__(self) -> None:
        self._ending = False
        self.after_fork()
        forking.watch(self)
        atexit.register(self._end)

    def after_fork(self) -> None:
        self._idle = threading.Condition()
        self._calls = 0

    def __enter__(self) -> None:
        with self._idle:
            if self._ending:
                raise ModelError("the interpreter is ending, so no model can be used any more")
            self._calls += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._idle:
            self._calls -= 1
            self._idle.notify_all()

    def _end(self) -> None:
        with self._idle:
            self._ending = True
            self._idle.wait_for(lambda: not self._calls)


native = _Native()
