"""AsyncMemory: Memory for asyncio, made from it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from recollect.audit import AuditLog, Verified
from recollect.memory import Memory
from recollect.presets import Preset
from recollect.record import Address
from recollect.stores.audit import Entry

P = ParamSpec("P")
R = TypeVar("R")

_THREADS = 16
_ASKING = frozenset(["recall", "context", "consult", "query", "embed"])
"""Verbs that may wait for a model: they have threads of their own, so that the others never wait behind them."""


class _Threads:
    """Of one AsyncMemory and its views. Not asyncio's own, which everything else in the program waits for too."""

    def __init__(self) -> None:
        self._asking = ThreadPoolExecutor(_THREADS, "recollect-asking")
        self._others = ThreadPoolExecutor(_THREADS, "recollect-verb")

    async def run(self, verb: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        pool = self._asking if verb.__name__ in _ASKING else self._others
        context = copy_context()
        return await asyncio.get_running_loop().run_in_executor(pool, partial(context.run, verb, *args, **kwargs))


def _threaded(
    verb: Callable[Concatenate[Memory, P], R],
) -> Callable[Concatenate[AsyncMemory, P], Awaitable[R]]:
    @wraps(verb)
    async def call(self: AsyncMemory, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.threads.run(verb, self.memory, *args, **kwargs)

    return call


class AsyncAuditLog:
    """The audit log, awaited."""

    def __init__(self, log: AuditLog, threads: _Threads) -> None:
        self._log, self._threads = log, threads

    async def record(self, action: str, message: str, meta: Mapping[str, Any] | None = None) -> Entry:
        return await self._threads.run(self._log.record, action, message, meta)

    async def search(self, text: str = "", *, about: str = "", limit: int = 10) -> list[Entry]:
        return await self._threads.run(self._log.search, text, about=about, limit=limit)

    async def verify(self) -> list[Verified]:
        return await self._threads.run(self._log.verify)


class AsyncMemory:
    """The same verbs, awaited. Each runs in a thread, so the event loop never waits for the disk."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes what `Memory` takes, or a Memory."""
        self.memory = args[0] if args and isinstance(args[0], Memory) else Memory(*args, **kwargs)
        self.threads = _Threads()

    @property
    def address(self) -> Address:
        return self.memory.address

    @property
    def preset(self) -> Preset:
        return self.memory.preset

    @property
    def unsaved(self) -> int:
        return self.memory.unsaved

    @property
    def audit(self) -> AsyncAuditLog:
        return AsyncAuditLog(self.memory.audit, self.threads)

    @wraps(Memory.at)
    def at(self, **parts: Any) -> Self:
        view = type(self)(self.memory.at(**parts))
        view.threads = self.threads
        return view

    remember = _threaded(Memory.remember)
    remember_many = _threaded(Memory.remember_many)
    get = _threaded(Memory.get)
    list = _threaded(Memory.list)
    recall = _threaded(Memory.recall)
    context = _threaded(Memory.context)
    consult = _threaded(Memory.consult)
    query = _threaded(Memory.query)
    revise = _threaded(Memory.revise)
    forget = _threaded(Memory.forget)
    history = _threaded(Memory.history)
    undo = _threaded(Memory.undo)
    archive = _threaded(Memory.archive)
    restore = _threaded(Memory.restore)
    diagnose = _threaded(Memory.diagnose)
    doctor = _threaded(Memory.doctor)
    verify = _threaded(Memory.verify)
    maintain = _threaded(Memory.maintain)
    embed = _threaded(Memory.embed)
    compact = _threaded(Memory.compact)
    stats = _threaded(Memory.stats)
    workspaces = _threaded(Memory.workspaces)
    export = _threaded(Memory.export)
    import_ = _threaded(Memory.import_)
    backup = _threaded(Memory.backup)
    close = _threaded(Memory.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
