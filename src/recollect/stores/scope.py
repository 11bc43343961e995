"""A `with` block that ends in any case, so that nothing it holds outlives it.

Python may raise KeyboardInterrupt just as it calls `__exit__`, and then nothing of that is done. The traceback keeps
alive whatever the block was made of, so waiting for that to go is no help. But what `with` calls at the end is known to
nobody else: once it is gone, the block is over, however it was left.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import ref

if TYPE_CHECKING:
    from threading import RLock

T = TypeVar("T", covariant=True)


class Scope(Generic[T]):
    """What a thread holds for as long as a block runs."""

    __slots__ = ("_watch",)

    def enter(self) -> T:
        """Take it."""
        raise NotImplementedError

    def leave(self, error: BaseException | None) -> None:
        """The block has come to its end, or to an error."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Let go of whatever is held still, which may be nothing: `enter` or `leave` was broken off anywhere."""
        raise NotImplementedError

    def __enter__(self) -> T:
        return self.enter()

    if TYPE_CHECKING:

        def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def end(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self.leave(error)
        self._watch = None

    def ending(self) -> partial[None]:
        """What `with` is to call. It is no bound method of ours: the frame of one would keep it."""
        ending = partial(self.end)
        self._watch = ref(ending, self._over)
        return ending

    def _over(self, _: ref[partial[None]]) -> None:
        """The block is over and was not ended."""
        while self._watch is not None:
            try:
                self.abandon()
                self._watch = None
            except KeyboardInterrupt:  # there is one on its way to the caller already
                continue
            except BaseException:
                self._watch = None
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
        if self._lock.acquire(blocking=False):  # else another thread has it
            self._lock.release()
            with suppress(RuntimeError):  # it had not been taken before
                self._lock.release()


class _Exit:
    """Asked by every `with` for the end of its block, before that begins."""

    def __get__(self, scope: Scope[object] | None, kind: type[Scope[object]]) -> Any:
        return kind.end if scope is None else scope.ending()


Scope.__exit__ = _Exit()  # pyright: ignore[reportAttributeAccessIssue]
