"""Runs calls that may take too long in threads, so that the caller can stop waiting for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

from recollect.runtime import forking
from recollect.values.errors import ModelError

_T = TypeVar("_T")

_MOST = 8
"""Calls at a time. Further ones wait in a queue, and their timeout runs meanwhile."""
_IDLE = 10.0
"""Seconds after which a thread without work ends."""
_NONE: Any = object()


class _PooledCall:
    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.done = threading.Event()
        self.given_up = False
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.work()
        except BaseException as error:  # raised again in the thread of the caller
            self.error = error
        self.done.set()


class ThreadPool:
    """Up to eight daemon threads, started when they are needed and ended after some idle seconds."""

    def __init__(self) -> None:
        self.after_fork()
        forking.watch(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._calls: SimpleQueue[_PooledCall] = SimpleQueue()
        self._threads = 0
        self._busy = 0

    def ask(self, work: Callable[[], _T], seconds: float) -> _T:
        """Return or raise what `work` does; ModelError if it takes longer, though `work` still runs to its end."""
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

    def begin(self, work: Callable[[], Any]) -> _PooledCall:
        """Queue a call without waiting for it. ModelError if no thread can be started."""
        call = _PooledCall(work)
        with self._lock:
            if self._threads - self._busy <= self._calls.qsize() and self._threads < _MOST:
                self._start_thread()
            self._calls.put(call)
        return call

    def each(self, items: Iterable[_T], work: Callable[[_T], object], most: int) -> None:
        """Do the work for each item, for up to `most` of them at a time: one in the caller's own thread.

        After an error no further item is begun, and it is raised. When this returns, nothing is under way.
        """
        left, lock = iter(items), threading.Lock()
        over = [threading.Event() for _ in range(most - 1)]
        errors = list[BaseException]()
        stopped = False

        def work_off() -> None:
            while True:
                with lock:
                    item = _NONE if stopped or errors else next(left, _NONE)
                if item is _NONE:
                    return
                work(cast("_T", item))

        def help_out(ended: threading.Event) -> None:
            with lock:
                if stopped:
                    return
                ended.clear()
            try:
                work_off()
            except BaseException as error:  # raised again in the thread of the caller
                errors.append(error)
            finally:
                ended.set()

        for ended in over:
            ended.set()  # as long as no thread has begun, there is nothing to wait for
            with suppress(ModelError):  # where no thread can be had, the caller does all of it
                self.begin(partial(help_out, ended))
        try:
            work_off()
        finally:
            with lock:
                stopped = True
            for ended in over:
                ended.wait()
        if errors:
            raise errors[0]

    def _start_thread(self) -> None:
        # Not a ThreadPoolExecutor: Python waits for the threads of one before it exits.
        thread = threading.Thread(target=self._run_calls, name="recollect-asking", daemon=True)
        try:
            thread.start()
            self._threads += 1
        except RuntimeError as error:  # there are too many, or the interpreter is ending
            if not self._threads:
                raise ModelError(str(error)) from None

    def _run_calls(self) -> None:
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
            del call  # it references its caller, which should be collected before the next call comes
            with self._lock:
                self._busy -= 1
