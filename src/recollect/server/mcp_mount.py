"""MCP at /mcp, behind the same keys: each request is served the view of its caller.

Importing the package of MCP takes longer than all the rest of a server's start, so that is left to the first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from recollect import tools
from recollect.memory import Memory
from recollect.remote import wire
from recollect.server.access.caller import Caller
from recollect.server.counting import MCP_PATH
from recollect.server.serving import Serving
from recollect.server.web import Answer, HttpRequest, Route

if TYPE_CHECKING:
    from recollect.server.mcp import ServedMemory

_current: ContextVar[ServedMemory] = ContextVar("served_memory")


class McpMount:
    """The SDK's application: made at the first request, and run until the server ends."""

    def __init__(self, serving: Serving, *, read_only: bool = False, at_once: bool = False) -> None:
        """With `read_only` the tools that change something are left out for everybody.

        `at_once` makes it before the server starts, instead of at the first request.
        """
        self._serving, self._read_only, self._at_once = serving, read_only, at_once
        self._wanted, self._ended = asyncio.Event(), asyncio.Event()

    def routes(self) -> list[Route]:
        # By a key only: no page of a browser calls tools. No GET: it would keep a connection open on which, without
        # sessions, nothing is ever sent.
        return [Route(method, MCP_PATH, "reader", self._serve, "mcp", keys_only=True) for method in ("POST", "DELETE")]

    def _serve(self, serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
        from recollect.server.mcp import ServedMemory

        view = serving.view(caller, wire.address_of(request.headers))
        served = ServedMemory(view, self._read_only or not caller.may("member"))

        async def application(scope: Any, receive: Any, send: Any) -> None:
            _current.set(served)
            sdk = await self._sdk()
            again = _with_body(request.body, receive)
            await sdk({**scope, "path": MCP_PATH, "raw_path": MCP_PATH.encode(), "root_path": ""}, again, send)

        return Answer(b"", application=application)

    async def _sdk(self) -> Any:
        self._wanted.set()
        return await asyncio.shield(self._made)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        self._made: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # In one task, because the package's task group must be left by the task that entered it.
        task = asyncio.create_task(self._run())
        try:
            if self._at_once:
                await self._sdk()
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
            sdk = await asyncio.to_thread(self._make)
            async with sdk.router.lifespan_context(sdk):
                self._made.set_result(sdk)
                await self._ended.wait()
        except Exception as error:
            if self._made.done():
                raise
            self._made.set_exception(error)  # for whoever asks

    def _make(self) -> Any:
        from mcp.server.transport_security import TransportSecuritySettings

        from recollect.server.mcp import serve_each

        # No request depends on one before it, so a client may go on after this process was started anew. The pipeline
        # has checked Host and Origin already; by default the SDK refuses every Host but localhost.
        server = serve_each(_current.get, self._called)
        return server.streamable_http_app(
            streamable_http_path=MCP_PATH,
            stateless_http=True,
            json_response=True,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )

    def _called(self, name: str, memory: Memory) -> None:
        if tools.counts_as_recall(name):
            self._serving.recalled(memory)


def _with_body(body: bytes, receive: Any) -> Any:
    """`receive` for a body that was read already. What comes after it is that the client has left."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Any:
        return messages.pop() if messages else await receive()

    return receive_again
