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

from recollect.server import openapi
from recollect.server.mcp_mount import McpMount
from recollect.server.pages.routes import MISSING, page_routes
from recollect.server.pipeline import Lifespan, Pipeline
from recollect.server.probes import probe_routes
from recollect.server.router import EXPORT, FORMER_ROUTES, IMPORT, ROUTES
from recollect.server.serving import Serving
from recollect.server.warming import Warming
from recollect.server.web import Answer, Asgi, HttpRequest, Route, Routes

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
_ARRIVAL = 1.0
"""Seconds until a connection over that limit costs another: a request that was sent is read within them."""


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
        """Wait for a request.

        Too many that wait are thinned out later, and not now: asyncio accepts many connections before it reads any, so
        the request of one that seems to wait may have arrived already.
        """
        waiting = self.idle.setdefault(self._address, {})
        waiting[self] = None
        if len(waiting) > IDLE_OF_ONE:
            self.loop.call_later(_ARRIVAL, self._thin_out, self._address)

    @classmethod
    def _thin_out(cls, address: str) -> None:
        """If this address still has too many connections that wait, close the one that has waited longest."""
        waiting = cls.idle.get(address, {})
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
    mcp_only: bool = False,
    read_only: bool = False,
    **origins: Any,
) -> Pipeline:
    """The whole application: API, pages, and MCP where its package is installed. With `mcp_only`, MCP and the probes.

    `warm` has it get ready for the first question when it starts. `read_only` is for MCP, `origins` for the Pipeline.
    """
    routes, api, missing = probe_routes(serving), tuple[Route, ...](), None
    lifespans: list[Lifespan] = [Warming(serving.memory).running] if warm else []
    if not mcp_only:
        routes += page_routes(oidc)
        api, missing = (*ROUTES, *FORMER_ROUTES, EXPORT, IMPORT, _OPENAPI), MISSING
    if mcp_only or find_spec("mcp") is not None:
        mount = McpMount(serving, read_only=read_only, at_once=mcp_only)
        routes += mount.routes()
        lifespans.append(mount.running)
    return Pipeline(serving, Routes(routes, api), missing=missing, hosts=hosts, lifespans=lifespans, **origins)


def _openapi(serving: Serving, caller: None, request: HttpRequest) -> Answer:
    return Answer(openapi.document())


_OPENAPI = Route("GET", "/openapi.json", None, _openapi, "openapi", body="none")


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
