"""Every request in the metrics and in the access log, once. No label and no line holds content."""

from __future__ import annotations

import logging
import time
from typing import Literal

from recollect.server.metrics import Metrics
from recollect.server.web import Trace

Surface = Literal["api", "mcp", "page", "probe"]
PROBES = ("/healthz", "/readyz", "/metrics")
MCP_PATH = "/mcp"
_log = logging.getLogger("recollect.server.access")


def surface_of(path: str) -> Surface:
    path = path.rstrip("/")  # as the router reads it
    if path.startswith("/v1/"):
        return "api"
    if path == MCP_PATH:
        return "mcp"
    return "probe" if path in PROBES else "page"


class RequestCount:
    """Counts one request by what it was for and what came of it."""

    def __init__(self, metrics: Metrics, method: str, trace: Trace) -> None:
        self._metrics, self._method, self._trace = metrics, method, trace
        self._start, self._ended = time.perf_counter(), False
        self.status = 0

    def end(self) -> None:
        """The first call counts."""
        if self._ended:
            return
        self._ended = True
        took, method = time.perf_counter() - self._start, self._method
        surface, route = surface_of(self._trace.path), self._trace.route
        if self.status:  # otherwise the client has left, and nobody was answered
            self._metrics.count_request(surface, route, method, self.status, took)
        if _log.isEnabledFor(logging.INFO):
            line = {"surface": surface, "route": route, "status": self.status, "ms": round(took * 1e3, 2)}
            _log.info("%s %s %s", method, route, self.status, extra={"metadata": line | self._who()})

    def _who(self) -> dict[str, str]:
        """The name of the key or person, and the tenant that the request was about."""
        caller, tenant = self._trace.caller, self._trace.tenant
        return {} if caller is None else {"caller": caller.name} | ({"tenant": tenant} if tenant else {})
