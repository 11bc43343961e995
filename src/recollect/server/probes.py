"""Whether the process lives, whether its store answers, and its numbers."""

from __future__ import annotations

from recollect.server.metrics import CONTENT_TYPE
from recollect.server.serving import Serving
from recollect.server.web import Answer, HttpRequest, Route, refusal
from recollect.values.errors import RecollectError


def _healthz(serving: Serving, caller: None, request: HttpRequest) -> Answer:
    return Answer(b'{"status":"ok"}')


def _readyz(serving: Serving, caller: None, request: HttpRequest) -> Answer:
    try:
        serving.ready()
    except RecollectError as error:
        return refusal(error)._replace(status=503)
    return Answer(b'{"status":"ready"}')


def _metrics(serving: Serving, caller: object, request: HttpRequest) -> Answer:
    return Answer(serving.metrics.text(), media_type=CONTENT_TYPE)


def probe_routes(serving: Serving) -> list[Route]:
    return [
        Route("GET", "/healthz", None, _healthz, "healthz", body="none", threads="none"),
        Route("GET", "/readyz", None, _readyz, "readyz", body="none"),
        Route("GET", "/metrics", None if serving.open_metrics else "admin", _metrics, "metrics", body="none"),
    ]
