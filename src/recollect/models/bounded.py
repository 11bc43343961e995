"""Calls that may take too long, made in threads of their own so that whoever asks can stop waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from recollect.runtime import forking
from recollect.values.errors import ModelError

_T = TypeVar("_T")

_MOST = 8
"""Calls at a time. More wait for their turn, and their time runs meanwhile."""
_IDLE = 10.0
"""Seconds after which a thread without work ends."""


class _Call:
    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.done = threading.Event()
        self.given_up = False
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.work()
        except BaseException as error:  # raised again where it was asked
            self.error = error
        self.done.set()


class ThreadPool:
    """A few threads, begun when they are needed and ended when they are not."""

    def __init__(self) -> None:
        self.after_fork()
        forking.watch(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        self._threads = 0
        self._busy = 0

    def ask(self, work: Callable[[], _T], seconds: float) -> _T:
        """What the call returns or raises, or ModelError if it takes longer; the answer may still come."""
        call = self.begin(work)
        if not call.done.wait(seconds):
            call.given_up = True
            raise ModelError(f"no answer within {seconds:g} s")
        if call.error is not None:
            raise call.error
        return call.result

    @property
    def busy(self) -> bool:
        """Whether calls are under way."""
        return self._busy > 0

    def begin(self, work: Callable[[], Any]) -> _Call:
        """Make a call and wait for nothing. ModelError if there is no thread to be had."""
        call = _Call(work)
        with self._lock:
            if self._threads - self._busy <= self._calls.qsize() and self._threads < _MOST:
                self._more()
            self._calls.put(call)
        return call

    def _more(self) -> None:
        # Not of a pool: Python waits for the threads of a pool before it exits.
        thread = threading.Thread(target=self._work, name="recollect-asking", daemon=True)
        try:
            thread.start()
            self._threads += 1
        except RuntimeError as error:  # there are too many, or the interpreter is ending
            if not self._threads:
                raise ModelError(str(error)) from None

    def _work(self) -> None:
        calls = self._calls
        while True:
            try:
                call = calls.get(timeout=_IDLE)
            except Empty:
                with self._lock:
                    if calls.empty():
                        self._threads -= 1
                        return
                continue
            with self._lock:
                self._busy += 1
            if not call.given_up:
                call.run()
            del call  # it holds whoever asked, who may have gone by the time of the next one
            with self._lock:
                self._busy -= 1
