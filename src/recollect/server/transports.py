"""How an MCP server is reached: over the pipes of the process that started it, or over HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from types import FrameType
from typing import Any, cast

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

PATH = "/mcp"
_PATIENCE = 3
"""Seconds that open connections have to end by themselves."""
_CHUNK = 65_536
_AHEAD = 64
"""Lines that are read before the first of them is dealt with."""


def over_stdio(server: Server[Any]) -> None:
    """Until the client closes its end, or a signal asks to stop."""
    anyio.run(_stdio, server)


async def _stdio(server: Server[Any]) -> None:
    with anyio.CancelScope() as scope:
        loop = asyncio.get_running_loop()
        _on_signals(lambda: loop.call_soon_threadsafe(scope.cancel))
        lines = cast("anyio.AsyncFile[str]", _lines(0, loop))
        try:
            async with stdio_server(stdin=lines) as (read, write):
                await server.run(read, write, server.create_initialization_options())
        except* BrokenPipeError:
            pass  # the client is gone


async def _lines(fd: int, loop: asyncio.AbstractEventLoop) -> AsyncIterator[str]:
    """The lines of a file descriptor.

    They are read by a thread that nobody waits for: the SDK's own cannot be stopped before the client says something.
    """
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    room = threading.Semaphore(_AHEAD)

    def tell(line: bytes | None) -> None:
        room.acquire()
        loop.call_soon_threadsafe(lines.put_nowait, line)

    def read() -> None:
        rest = b""
        with suppress(RuntimeError):  # of a loop that is closed: nobody listens any more
            while chunk := os.read(fd, _CHUNK):
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    tell(line)
            tell(rest)
            tell(None)

    threading.Thread(target=read, daemon=True).start()
    while (line := await lines.get()) is not None:
        room.release()
        if line.strip():
            yield line.decode(errors="replace")


def over_http(server: Server[Any], listening: socket.socket, host: str) -> None:
    """Until a signal asks to stop. Only who names `host` or this machine, and no page of another site, is answered."""
    names = [host if ":" not in host else f"[{host}]", "127.0.0.1", "localhost", "[::1]", socket.gethostname()]
    guard = TransportSecuritySettings(
        allowed_hosts=[f"{name}:*" for name in names],
        allowed_origins=[f"http://{name}:*" for name in names],
    )
    # No request depends on one before it, so a client may go on after this process was started anew.
    app = server.streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True, transport_security=guard
    )
    config = uvicorn.Config(
        app, log_config=None, access_log=False, ws="none", lifespan="on", timeout_graceful_shutdown=_PATIENCE
    )
    _on_signals(lambda: None)  # uvicorn stops at a signal, and then sends it once more to whoever was there before
    uvicorn.Server(config).run(sockets=[listening])


def _on_signals(stop: Callable[[], object]) -> None:
    def handle(number: int, frame: FrameType | None) -> None:
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
