"""MCP at /mcp, behind the same keys: each request is served the view of whoever sent it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from litestar import Litestar, asgi
from litestar.types import ControllerRouterHandler

from recollect.memory import Memory
from recollect.remote import wire
from recollect.server.asked import Asked
from recollect.server.carrying import asked_of, refusal, send_answer
from recollect.server.mcp import Seen, serve_each
from recollect.server.recalls import TOOLS
from recollect.server.serving import Serving
from recollect.values.errors import RecollectError

PATH = "/mcp"
_seen: ContextVar[Seen] = ContextVar("seen")
Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]


def mcp_route(serving: Serving) -> tuple[ControllerRouterHandler, Lifespan]:
    """Its handler, and what must run as long as the application does."""

    # No request depends on one before it, so a client may go on after this process was started anew. Which hosts and
    # pages may ask is the application's to say.
    def called(name: str, memory: Memory) -> None:
        if name in TOOLS:
            serving.recalled(memory)

    inner: Any = serve_each(_seen.get, called).streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True
    )

    @asgi(PATH, is_mount=False, copy_scope=True)
    async def handler(scope: Any, receive: Any, send: Any) -> None:
        asked = asked_of(scope)
        try:
            seen = await serving.in_thread(lambda: _view(serving, asked))
        except RecollectError as error:
            answer = refusal(error)
            await serving.in_thread(partial(serving.refused, asked, "mcp", error, answer.status))
            await send_answer(send, answer)
            return
        _seen.set(seen)
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

        await inner({**scope, "path": PATH, "raw_path": PATH.encode(), "root_path": ""}, in_time, send)

    @asynccontextmanager
    async def running(_: Litestar) -> AsyncGenerator[None]:
        async with inner.router.lifespan_context(inner):
            yield

    return handler, running


def _view(serving: Serving, asked: Asked) -> Seen:
    """By a key only: no page of a browser calls tools."""
    caller = serving.identify(asked._replace(cookies={}))
    return Seen(caller.view(serving.memory, wire.address_of(asked.headers)), not caller.may("member"))
