"""MCP at /mcp, behind the same keys: each request is served the view of whoever sent it.

Importing the package of MCP takes longer than all the rest of a server's start, so that is left to the first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from litestar import Litestar, asgi
from litestar.types import ControllerRouterHandler

from recollect.memory import Memory
from recollect.remote import wire
from recollect.server.http import refusal, request_from, send_answer
from recollect.server.recalls import TOOLS
from recollect.server.requests import HttpRequest
from recollect.server.serving import Serving
from recollect.values.errors import RecollectError

if TYPE_CHECKING:
    from recollect.server.mcp import ServedMemory

PATH = "/mcp"
_seen: ContextVar[ServedMemory] = ContextVar("seen")
Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]


class _Inner:
    """The application of the MCP package: made when it is first asked for, and run until the server ends."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._wanted, self._ended = asyncio.Event(), asyncio.Event()

    async def application(self) -> Any:
        self._wanted.set()
        return await asyncio.shield(self._made)

    @asynccontextmanager
    async def running(self, _: Litestar) -> AsyncGenerator[None]:
        self._made: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # In one task, because the package's task group must be left by the task that entered it.
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            self._ended.set()
            self._wanted.set()
            await task

    async def _run(self) -> None:
        await self._wanted.wait()
        if self._ended.is_set():
            return
        try:
            inner = await asyncio.to_thread(self._make)
            async with inner.router.lifespan_context(inner):
                self._made.set_result(inner)
                await self._ended.wait()
        except Exception as error:
            if self._made.done():
                raise
            self._made.set_exception(error)  # for whoever asks

    def _make(self) -> Any:
        from recollect.server.mcp import serve_each

        # No request depends on one before it, so a client may go on after this process was started anew. Which hosts
        # and pages may ask is the application's to say.
        server = serve_each(_seen.get, self._called)
        return server.streamable_http_app(streamable_http_path=PATH, stateless_http=True, json_response=True)

    def _called(self, name: str, memory: Memory) -> None:
        if name in TOOLS:
            self._serving.recalled(memory)


def mcp_route(serving: Serving) -> tuple[ControllerRouterHandler, Lifespan]:
    """Its handler, and what must run as long as the application does."""
    inner = _Inner(serving)

    @asgi(PATH, is_mount=False, copy_scope=True)
    async def handler(scope: Any, receive: Any, send: Any) -> None:
        request = request_from(scope)
        try:
            seen = await serving.in_thread(lambda: _view(serving, request))
        except RecollectError as error:
            answer = refusal(error)
            await serving.in_thread(partial(serving.refused, request, "mcp", error, answer.status))
            await send_answer(send, answer)
            return
        _seen.set(seen)
        application = await inner.application()
        whole, until = False, asyncio.get_running_loop().time() + serving.limits.seconds

        async def in_time() -> Any:
            nonlocal whole
            if whole:  # what comes now is that the client has left
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                return {"type": "http.disconnect"}
            whole = not message.get("more_body", False)
            return message

        await application({**scope, "path": PATH, "raw_path": PATH.encode(), "root_path": ""}, in_time, send)

    return handler, inner.running


def _view(serving: Serving, request: HttpRequest) -> ServedMemory:
    """By a key only: no page of a browser calls tools."""
    caller = serving.identify(request._replace(cookies={}))
    from recollect.server.mcp import ServedMemory

    return ServedMemory(caller.view(serving.memory, wire.address_of(request.headers)), not caller.may("member"))
