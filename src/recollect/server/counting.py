"""Every request in the metrics and in the access log, once: API, pages, MCP and what is refused before any of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

from recollect.remote import wire

if TYPE_CHECKING:
    from recollect.server.access.caller import Caller
    from recollect.server.metrics import Metrics

Surface = Literal["api", "mcp", "page", "probe"]
_log = logging.getLogger("recollect.server.access")
_PROBES = ("/healthz", "/readyz", "/metrics")
_TRACE = "recollect.trace"
_UNKNOWN = "none"
"""The route of unknown paths: a path that a client made up must not become a label."""


class Trace:
    """Facts about a request that become known while it is answered."""

    __slots__ = ("caller", "route")

    def __init__(self) -> None:
        self.route = _UNKNOWN
        self.caller: Caller | None = None


def trace_of(scope: Any) -> Trace:
    return scope.setdefault(_TRACE, Trace())


def _surface(path: str) -> Surface:
    if path.startswith("/v1/"):
        return "api"
    if path == "/mcp":
        return "mcp"
    return "probe" if path in _PROBES else "page"


async def counted(
    metrics: Metrics, scope: Any, send: Callable[[Any], Awaitable[None]], answer: Callable[[Any], Awaitable[None]]
) -> None:
    """Answer a request, and count it by what it was for and what came of it. No label and no line holds content.

    It is counted before its last piece is sent: whoever has an answer finds it in the numbers."""
    start, status, ended, trace = time.perf_counter(), 0, False, trace_of(scope)

    def end() -> None:
        nonlocal ended
        if not ended:
            ended = True
            _count(metrics, scope, trace, status, time.perf_counter() - start)

    async def send_counted(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif not message.get("more_body"):
            end()
        await send(message)

    try:
        await answer(send_counted)
    finally:
        end()


def _count(metrics: Metrics, scope: Any, trace: Trace, status: int, took: float) -> None:
    surface = _surface(scope["path"])
    route = scope["path"] if surface in ("mcp", "probe") else trace.route
    labels = {"surface": surface, "route": route, "method": scope["method"]}
    if status:  # otherwise the client has left, and nobody was answered
        metrics.count("recollect_http_requests_total", "Requests.", {**labels, "status": str(status)})
        metrics.took("recollect_http_request_seconds", "Time to answer.", took, labels)
    if _log.isEnabledFor(logging.INFO):
        line = {"surface": surface, "route": route, "status": status, "ms": round(took * 1e3, 2)}
        line |= _who(scope, trace.caller)
        _log.info("%s %s %s", scope["method"], route, status, extra={"metadata": line})


def _who(scope: Any, caller: Caller | None) -> dict[str, str]:
    """The name of the key or person, and the tenant that the request was about."""
    if caller is None:
        return {}
    tenant = caller.bound.get("tenant")
    if tenant is None:
        named = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        tenant = wire.address_of(named).get("tenant")
    return {"caller": caller.name, **({"tenant": tenant} if tenant else {})}
