"""A real server in a thread of this process, and keys to it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from recollect import Memory
from recollect.server.limits import Limits
from recollect.server.running import built
from recollect.server.serving import Serving

PLENTY = Limits(per_second=1e6, burst=1_000_000)


class Served:
    """Where it is, and what is behind it."""

    def __init__(self, serving: Serving, url: str) -> None:
        self.serving, self.url = serving, url

    def key(self, role: str = "owner", **bound: Any) -> str:
        return self.serving.accounts.keys.create("test", role, **bound).secret

    def memory(self, role: str = "owner", **bound: Any) -> Memory:
        return Memory(self.url, key=self.key(role, **bound))

    def headers(self, role: str = "owner", **bound: Any) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key(role, **bound)}"}


@contextmanager
def served(memory: Memory, *, limits: Limits = PLENTY, **options: Any) -> Iterator[Served]:
    serving = Serving(memory, limits=limits, **options)
    with listening(built(serving)) as url:
        yield Served(serving, url)


@contextmanager
def listening(app: Any, **options: Any) -> Iterator[str]:
    """An application on a free port until the block ends."""
    # Only where TCP is named does asyncio send small answers at once; otherwise each waits for 40 ms.
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.bind(("127.0.0.1", 0))
    taken.listen(512)
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", ws="none", **options)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[taken])), daemon=True)
    started = threading.Event()
    begin = server.startup

    async def startup(sockets: Any = None) -> None:
        await begin(sockets=sockets)
        loops.append(asyncio.get_running_loop())
        started.set()

    async def until_told() -> None:
        """As uvicorn does, without looking ten times a second whether it is time to go."""
        await stopped.wait()

    server.startup, server.main_loop = startup, until_told  # type: ignore[method-assign]
    loops, stopped = list[asyncio.AbstractEventLoop](), asyncio.Event()
    thread.start()
    assert started.wait(20), "the server did not start"
    try:
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
    finally:
        server.should_exit = True
        loops[0].call_soon_threadsafe(stopped.set)
        thread.join(20)
        taken.close()
        assert not thread.is_alive(), "the server did not stop"
