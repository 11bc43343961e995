"""The application: requests come in here, and go out with the headers that keep them safe."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from litestar import Litestar, Request, Response, get
from litestar.exceptions import HTTPException
from litestar.types import ControllerRouterHandler

from recollect.remote import wire
from recollect.remote.wire import ADDRESS, header
from recollect.server.calls import ROOT, Calls
from recollect.server.counting import counted, trace_of
from recollect.server.http import LeftError, guarded, refusal, request_from, response, send_answer
from recollect.server.problems import CONTENT_TYPE, EncodingError
from recollect.server.requests import JSON, Answer
from recollect.server.serving import Serving
from recollect.values.errors import InputError, RecollectError

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_SAFE = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_SAFE_DATA = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}
"""Headers of every answer that is no page."""
Asgi = Callable[[Any, Any, Any], Awaitable[None]]


def application(
    serving: Serving,
    *,
    hosts: Sequence[str] = (),
    pages: Sequence[ControllerRouterHandler] = (),
    lifespan: Sequence[Any] = (),
) -> Asgi:
    """`hosts` are the names that it answers to; none is for any."""
    strict = {"strict-transport-security": "max-age=31536000"} if serving.secure else {}
    for_pages, for_data = (
        [(n.encode(), v.encode()) for n, v in (headers | strict).items()] for headers in (_SAFE, _SAFE_DATA)
    )
    calls = Calls(serving)
    site: Any = Litestar(
        [*_probes(serving), *pages],
        openapi_config=None,
        logging_config=None,
        exception_handlers={Exception: _broken},
        request_max_body_size=None,
        lifespan=list(lifespan),
        on_shutdown=[serving.stop],
    )

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await site(scope, receive, send)
            return
        called = scope["path"].startswith(f"{ROOT}/")
        always = for_data if called else for_pages

        async def send_safely(message: Any) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in always if pair[0] not in names)]
            await send(message)

        async def answer(send_counted: Any) -> None:
            if refused is not None:
                await send_answer(send_counted, refused)
            elif called:
                await calls(inner, receive, send_counted)
            else:
                await site(inner, receive, send_counted)

        refused = _ELSEWHERE if hosts and _host(scope) not in hosts else _ambiguous(scope)
        trace_of(scope)
        # HEAD is the same without its body, which the server leaves out itself.
        inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        await counted(serving.metrics, scope, send_safely, answer)

    return app


# A page elsewhere may have its own name lead here, to use what a browser keeps.
_ELSEWHERE = Answer(
    msgspec.json.encode(
        wire.Problem("InputError", 421, "host: this server is not called so; `--host NAME` lets it be")
    ),
    421,
    CONTENT_TYPE,
)


def _host(scope: Any) -> str:
    host = dict(scope["headers"]).get(b"host", b"").decode("latin-1").lower()
    return re.sub(r":\d+$", "", host)


_ONCE = frozenset(
    (b"authorization", b"idempotency-key", b"if-match", b"content-type", *(header(part).encode() for part in ADDRESS))
)
"""Headers of which two would leave it open which one counts."""


def _ambiguous(scope: Any) -> Answer | None:
    """The refusal of what somebody in front of us may have read in another way."""
    names = [name for name, _ in scope["headers"]]
    if b"content-length" in names and b"transfer-encoding" in names:
        refused = refusal(InputError("content-length", "and transfer-encoding do not go together"))
        return refused._replace(headers={**refused.headers, "connection": "close"})
    twice = [name for name in _ONCE.intersection(names) if names.count(name) > 1]
    if twice:
        return refusal(InputError(twice[0].decode(), "is given twice"))
    packed = next((value for name, value in scope["headers"] if name == b"content-encoding"), b"identity")
    if packed.strip().lower() not in (b"", b"identity"):
        return refusal(EncodingError("content-encoding", "must be left out: bodies are not unpacked here"))
    return None


def _broken(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """What no handler of ours has met."""
    status = error.status_code if isinstance(error, HTTPException) else 400 if isinstance(error, LeftError) else 500
    if status >= 500:
        logging.getLogger("recollect.server").error("a request failed", exc_info=error)
    detail = error.detail if isinstance(error, HTTPException) else "something went wrong here; it is in the log"
    content = msgspec.json.encode(wire.Problem("StoreError" if status >= 500 else "InputError", status, detail))
    headers = {"allow": "GET"} if status == 405 else {}
    return Response(content, status_code=status, media_type=CONTENT_TYPE, headers=headers)


def _probes(serving: Serving) -> list[ControllerRouterHandler]:
    @get("/healthz", include_in_schema=False)
    async def healthz() -> Response[bytes]:
        return Response(b'{"status":"ok"}', media_type=JSON)

    @get("/readyz", include_in_schema=False)
    async def readyz() -> Response[bytes]:
        try:
            await serving.in_thread(serving.ready)
        except RecollectError as error:
            return response(refusal(error)._replace(status=503))
        return Response(b'{"status":"ready"}', media_type=JSON)

    @get("/metrics", include_in_schema=False)
    async def metrics(request: Request[Any, Any, Any]) -> Response[bytes]:
        http_request = request_from(request.scope)

        def read() -> Answer:
            if not serving.open_metrics:
                serving.identify(http_request).check("admin", "metrics")
            return Answer(serving.metrics_text().encode(), media_type="text/plain; version=0.0.4")

        return response(await guarded(serving, http_request, "metrics", read))

    return [healthz, readyz, metrics]
