"""The process that serves: connections, TLS, and an orderly end."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Sequence
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from recollect.server.app import Asgi, application
from recollect.server.pages.handlers import handlers
from recollect.server.serving import Serving
from recollect.server.warming import Warming

if TYPE_CHECKING:
    from recollect.server.access.oidc import OpenId

_HEADERS = 10.0
"""Seconds for a client to send its request."""
_IDLE = 15
_DRAIN = 20
"""Seconds that requests have to end after a signal."""
_CONNECTIONS = 2000
IDLE_OF_ONE = 200
"""Connections without a request that one address, which may be a proxy, can hold open."""


class Secured(NamedTuple):
    """Files for TLS."""

    certificate: str
    key: str


class Prompt(H11Protocol):
    """Drops clients that open a connection and send no request in time, or that hold too many open."""

    idle: ClassVar[dict[str, dict[Prompt, None]]] = {}
    """The connections of each address that wait for a request, the longest waiting first."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._waiting: asyncio.TimerHandle | None = self.loop.call_later(_HEADERS, self._give_up)
        self._address = self.client[0] if self.client else ""
        self._rest()

    def _rest(self) -> None:
        """Wait for a request. The connection of this address that has waited longest goes if there are too many."""
        waiting = self.idle.setdefault(self._address, {})
        waiting[self] = None
        if len(waiting) > IDLE_OF_ONE:
            longest = next(iter(waiting))
            longest._wake()
            longest.transport.close()

    def _wake(self) -> None:
        waiting = self.idle.get(self._address, {})
        waiting.pop(self, None)
        if not waiting:
            self.idle.pop(self._address, None)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and not self._busy():
            self._rest()

    def _give_up(self) -> None:
        if not self._busy() and not self.transport.is_closing():
            self.transport.close()

    def _busy(self) -> bool:
        begun: Any = self.cycle
        return begun is not None and not begun.response_complete

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._busy():
            self._settle()
        elif self._waiting is None:  # the next request on the same connection has begun
            self._waiting = self.loop.call_later(_HEADERS, self._give_up)

    def handle_events(self) -> None:
        before: Any = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._settle()
            if self._busy():
                self._wake()

    def _settle(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def eof_received(self) -> Any:
        """Clients whose request is complete still get their answer."""
        begun: Any = self.cycle
        return self._busy() and not begun.more_body

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()
        self._wake()
        super().connection_lost(exc)


def _heard(number: int, frame: FrameType | None) -> None:
    """uvicorn has stopped already."""


def built(
    serving: Serving,
    *,
    hosts: Sequence[str] = (),
    oidc: OpenId | None = None,
    warm: bool = False,
) -> Asgi:
    """The whole application: API, pages, and MCP where its package is installed.

    `warm` has it get ready for the first question when it starts.
    """
    pages = handlers(serving, oidc=oidc)
    lifespans: list[Any] = [Warming(serving.memory).running] if warm else []
    if find_spec("mcp") is not None:
        from recollect.server.mcp_route import mcp_route

        handler, running = mcp_route(serving)
        pages.append(handler)
        lifespans.append(running)
    return application(serving, hosts=hosts, pages=pages, lifespan=lifespans)


def run(app: Asgi, listening: socket.socket, *, tls: Secured | None = None, proxies: Sequence[str] = ()) -> None:
    """Until a signal asks to stop: then no new request is taken, and those under way are finished.

    `proxies` are the addresses whose word is taken for where a request comes from.
    """
    config = uvicorn.Config(
        app,
        http=Prompt,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies) or None,
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_DRAIN,
        limit_concurrency=_CONNECTIONS,
        h11_max_incomplete_event_size=65_536,
    )
    for number in (signal.SIGINT, signal.SIGTERM):  # which uvicorn, when it has stopped, sends once more
        signal.signal(number, _heard)
    server = uvicorn.Server(config)
    asyncio.run(server.serve(sockets=[listening]))
