"""Streams of the clients that store their turn when they end."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from recollect.adapters.clients.calls import WrappedCall
from recollect.adapters.clients.turns import Reply

P = ParamSpec("P")
R = TypeVar("R")


async def threaded(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Like `asyncio.to_thread`, but the function runs to its end even if the task is cancelled."""
    work = partial(copy_context().run, partial(function, *args, **kwargs))
    return await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, work))


class _Stream(ABC):
    """Behaves like the client's stream. Everything is read through it, so that everything is heard."""

    def __init__(self, inner: Any, call: WrappedCall) -> None:
        self._inner = inner
        self._call = call
        self._reply = Reply()
        call.begin(self._reply)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_inner" not in self.__dict__:
            raise AttributeError(name)
        value = getattr(self._inner, name)
        if name == "text_stream":
            return self._texts()
        if name == "until_done":
            return self._until_done
        return self._after_all(value) if name.startswith("get_final_") else value

    def __repr__(self) -> str:
        return f"<recollect.wrap of {self._inner!r}>"

    def __del__(self) -> None:
        with suppress(Exception):
            self._call.leave(self._reply)

    def _hear(self, event: Any) -> str:
        return self._call.hear(self._reply, self._call.shape.event, event)

    @abstractmethod
    def _texts(self) -> Any:
        """The text of the stream, without its events."""

    @abstractmethod
    def _until_done(self) -> Any:
        """Read to the end."""

    @abstractmethod
    def _after_all(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method that reads to the end, read through us."""


class Stream(_Stream):
    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self._next()[0]

    def _next(self) -> tuple[Any, str]:
        """The next event and its text."""
        try:
            event = next(self._inner)
        except StopIteration:
            self.finish()
            raise
        except BaseException:
            self.finish(quietly=True)
            raise
        text = self._hear(event)
        if self._reply.over:
            self.finish()
        return event, text

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._inner.close()
        finally:
            self.finish(quietly=error is not None)

    def close(self) -> None:
        self.__exit__(None, None, None)

    def finish(self, quietly: bool = False) -> None:
        self._call.finish(self._reply, quietly=quietly)

    def _texts(self) -> Iterator[str]:
        with suppress(StopIteration):
            while True:
                if text := self._next()[1]:
                    yield text

    def _until_done(self) -> Self:
        for _ in self:
            pass
        return self

    def _after_all(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def final(*args: Any, **kwargs: Any) -> Any:
            self._until_done()
            return method(*args, **kwargs)

        return final


class AsyncStream(_Stream):
    """As Stream, awaited."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return (await self._next())[0]

    async def _next(self) -> tuple[Any, str]:
        try:
            event = await anext(self._inner)
        except StopAsyncIteration:
            await self.finish()
            raise
        except BaseException:
            await self.finish(quietly=True)
            raise
        text = self._hear(event)
        if self._reply.over:
            await self.finish()
        return event, text

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._inner.close()
        finally:
            await self.finish(quietly=error is not None)

    async def close(self) -> None:
        await self.__aexit__(None, None, None)

    async def finish(self, quietly: bool = False) -> None:
        await threaded(self._call.finish, self._reply, quietly=quietly)

    async def _texts(self) -> AsyncIterator[str]:
        with suppress(StopAsyncIteration):
            while True:
                if text := (await self._next())[1]:
                    yield text

    async def _until_done(self) -> Self:
        async for _ in self:
            pass
        return self

    def _after_all(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def final(*args: Any, **kwargs: Any) -> Any:
            await self._until_done()
            return await method(*args, **kwargs)

        return final


class Manager:
    """What `stream` helpers return: the request is made on entering."""

    def __init__(self, method: Callable[..., Any], call: WrappedCall) -> None:
        self._method = method
        self._call = call

    def __enter__(self) -> Stream:
        self._inner = self._method(**self._call.prepare())
        self._stream = Stream(self._inner.__enter__(), self._call)
        return self._stream

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._inner.__exit__(kind, error, trace)
        finally:
            self._stream.finish(quietly=error is not None)


class AsyncManager:
    """As Manager, awaited."""

    def __init__(self, method: Callable[..., Any], call: WrappedCall) -> None:
        self._method = method
        self._call = call

    async def __aenter__(self) -> AsyncStream:
        self._inner = self._method(**await threaded(self._call.prepare))
        self._stream = AsyncStream(await self._inner.__aenter__(), self._call)
        return self._stream

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._inner.__aexit__(kind, error, trace)
        finally:
            await self._stream.finish(quietly=error is not None)
