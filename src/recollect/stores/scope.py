"""A `with` block that ends in any case, so that nothing it holds outlives it.

Python may raise KeyboardInterrupt just as it calls `__exit__`, and then nothing of that is done. The traceback keeps
alive whatever the block was made of, so waiting for that to go is no help. But what `with` calls at the end is known to
nobody else: once it is gone, the block is over, however it was left.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import ref

if TYPE_CHECKING:
    from threading import RLock

T = TypeVar("T", covariant=True)


class Scope(ABC, Generic[T]):
    """What a thread holds for as long as a block runs."""

    __slots__ = ("_failed", "abandoning", "watch")
    watch: ref[partial[None]] | None

    @abstractmethod
    def enter(self) -> T:
        """Take it."""

    @abstractmethod
    def leave(self, error: BaseException | None) -> None:
        """The block has come to its end, or to an error."""

    @abstractmethod
    def abandon(self) -> None:
        """Let go of whatever is held still, which may be nothing: `enter` or `leave` was broken off anywhere."""

    def __enter__(self) -> T:
        end_left()
        if not hasattr(self, "watch"):  # what enters it is no `with`, but an ExitStack
            self.watch, self.abandoning, self._failed = None, False, 0
        _thread.entered.append(self)
        return self.enter()

    if TYPE_CHECKING:

        def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def end(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self.leave(error)
        self.watch = None
        end_left()

    def ending(self) -> partial[None]:
        """What `with` is to call. It is no bound method of ours: the frame of one would keep it."""
        self.abandoning, self._failed = False, 0
        ending = partial(self.end)
        self.watch = ref(ending, self.break_off)
        return ending

    def break_off(self, _: object = None) -> None:
        """The block is over and was not ended."""
        for attempt in range(1, _TRIES + 1):
            self.abandoning = True
            try:
                if self.watch is not None:
                    self.abandon()
                    self.watch = None
                return
            except BaseException:  # a further interrupt: one is on its way to the caller already
                self._failed += 1
                if self._failed == _MOST:
                    self.watch = None
                if attempt == _TRIES:
                    raise
            finally:
                self.abandoning = False


_TRIES, _MOST = 3, 12
"""How often letting go is tried again at once, and in all."""


class _EnteredScopes(threading.local):
    def __init__(self) -> None:
        self.entered: list[Scope[object]] = []


_thread = _EnteredScopes()
"""Of each thread, what it has entered and not left."""


def end_left() -> None:
    """End what a second interrupt has kept from ending: it may come in the very moment in which that is done.

    Called before every read and write, so it makes no call where there is nothing to end.
    """
    entered = _thread.entered
    while entered:
        last = entered[-1]
        if last.abandoning or ((watched := last.watch) is not None and watched() is not None):
            return  # its block goes on, or somebody is about to end it
        del entered[-1]
        try:
            last.break_off()
        except BaseException:
            entered.append(last)
            raise


class Attempt(Scope[bool]):
    """A lock for a block if nobody has it, and whether it was had. The thread must not have it before."""

    __slots__ = ("_lock", "_taken")

    def __init__(self, lock: RLock) -> None:
        self._lock = lock
        self._taken = False

    def enter(self) -> bool:
        self._taken = self._lock.acquire(blocking=False)
        return self._taken

    def leave(self, error: BaseException | None) -> None:
        if self._taken:
            self._lock.release()

    def abandon(self) -> None:
        let_go(self._lock)


def let_go(lock: RLock) -> None:
    """However often this thread has taken it, or not at all."""
    with suppress(RuntimeError):
        while True:
            lock.release()


class _Exit:
    """Asked by every `with` for the end of its block, before that begins."""

    def __get__(self, scope: Scope[object] | None, kind: type[Scope[object]]) -> Any:
        return kind.end if scope is None else scope.ending()


Scope.__exit__ = _Exit()  # pyright: ignore[reportAttributeAccessIssue]
