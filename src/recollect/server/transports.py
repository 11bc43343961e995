"""MCP over the pipes of the process that started the server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any, NamedTuple, cast

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE
from mcp.shared.message import SessionMessage

_CHUNK = 65_536
_AHEAD = 16
"""Lines that are read before the first of them is dealt with."""
_LONGEST = DEFAULT_MAX_REQUEST_BODY_SIZE
"""Bytes of one line, as of one request over HTTP: arguments may have 1 MiB, which escapes make three times as long."""
_ENDS = 1000
_ID = rb'"id"\s*:\s*(\d{1,15}|"[^"\\]{1,200}")'
_LEADING = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_TRAILING = re.compile(_ID + rb"\s*\}\s*$")


class _TooLong(NamedTuple):
    """A line that was passed over."""

    begin: bytes
    end: bytes

    def answer(self) -> SessionMessage:
        """Names the request, where its id comes first or last as all clients write it."""
        match = _LEADING.match(self.begin) or _TRAILING.search(self.end)
        ident = json.loads(match[1]) if match else None
        problem = types.ErrorData(
            code=types.INVALID_REQUEST, message=f"the message is over the limit of {_LONGEST:,} bytes"
        )
        return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=ident, error=problem))


def over_stdio(server: Server[Any]) -> None:
    """Until the client closes its end, or a signal asks to stop."""
    anyio.run(_stdio, server)


async def _stdio(server: Server[Any]) -> None:
    with anyio.CancelScope() as scope:
        loop = asyncio.get_running_loop()

        def stop(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(scope.cancel)

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        refused: asyncio.Future[Callable[[SessionMessage], Awaitable[None]]] = loop.create_future()
        lines = cast("anyio.AsyncFile[str]", _lines(0, loop, refused))
        try:
            async with stdio_server(stdin=lines) as (read, write):
                refused.set_result(write.send)
                await server.run(read, write, server.create_initialization_options())
        except* BrokenPipeError:
            pass  # the client is gone


async def _lines(
    fd: int, loop: asyncio.AbstractEventLoop, refused: asyncio.Future[Callable[[SessionMessage], Awaitable[None]]]
) -> AsyncIterator[str]:
    """The lines of a file descriptor. One that is too long is answered to whatever `refused` turns out to be.

    They are read by a thread that nobody waits for: the SDK's own cannot be stopped before the client says something.
    """
    lines: asyncio.Queue[bytes | _TooLong | None] = asyncio.Queue()
    room = threading.Semaphore(_AHEAD)

    def tell(line: bytes | _TooLong | None) -> None:
        room.acquire()
        loop.call_soon_threadsafe(lines.put_nowait, line)

    def read() -> None:
        with suppress(RuntimeError):  # of a loop that is closed: nobody listens any more
            for line in _split(iter(lambda: os.read(fd, _CHUNK), b"")):
                tell(line)
            tell(None)

    threading.Thread(target=read, daemon=True).start()
    while (line := await lines.get()) is not None:
        room.release()
        if isinstance(line, _TooLong):
            await (await refused)(line.answer())
        elif line.strip():
            yield line.decode(errors="replace")


def _split(chunks: Iterable[bytes]) -> Iterator[bytes | _TooLong]:
    """Lines, each put together once. Of one that is too long no more is kept than its two ends."""
    parts: list[bytes] = []
    size, begin, end = 0, b"", b""
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        for at, part in enumerate((first, *others)):
            if at:
                yield _TooLong(begin, end) if size > _LONGEST else b"".join(parts)
                parts, size, begin, end = [], 0, b"", b""
            size += len(part)
            begin, end = begin or part[:_ENDS], (end + part)[-_ENDS:]
            if size <= _LONGEST:
                parts.append(part)
            else:
                parts.clear()
    yield _TooLong(begin, end) if size > _LONGEST else b"".join(parts)
