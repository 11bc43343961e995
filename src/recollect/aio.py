"""AsyncMemory: Memory for asyncio, made from it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from recollect.audit import AuditLog, Verified
from recollect.memory import Memory
from recollect.presets import Preset
from recollect.record import Address
from recollect.stores.audit import Entry

P = ParamSpec("P")
R = TypeVar("R")


def _threaded(
    verb: Callable[Concatenate[Memory, P], R],
) -> Callable[Concatenate[AsyncMemory, P], Awaitable[R]]:
    @wraps(verb)
    async def call(self: AsyncMemory, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(verb, self.memory, *args, **kwargs)

    return call


class AsyncAuditLog:
    """The audit log, awaited."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log

    async def record(self, action: str, message: str, meta: Mapping[str, Any] | None = None) -> Entry:
        return await asyncio.to_thread(self._log.record, action, message, meta)

    async def search(self, text: str = "", *, about: str = "", limit: int = 10) -> list[Entry]:
        return await asyncio.to_thread(self._log.search, text, about=about, limit=limit)

    async def verify(self) -> list[Verified]:
        return await asyncio.to_thread(self._log.verify)


class AsyncMemory:
    """The same verbs, awaited. Each runs in a thread, so the event loop never waits for the disk."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes what `Memory` takes, or a Memory."""
        self.memory = args[0] if args and isinstance(args[0], Memory) else Memory(*args, **kwargs)

    @property
    def address(self) -> Address:
        return self.memory.address

    @property
    def preset(self) -> Preset:
        return self.memory.preset

    @property
    def audit(self) -> AsyncAuditLog:
        return AsyncAuditLog(self.memory.audit)

    @wraps(Memory.at)
    def at(self, **parts: Any) -> Self:
        return type(self)(self.memory.at(**parts))

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
    compact = _threaded(Memory.compact)
    stats = _threaded(Memory.stats)
    workspaces = _threaded(Memory.workspaces)
    export = _threaded(Memory.export)
    import_ = _threaded(Memory.import_)
    close = _threaded(Memory.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
