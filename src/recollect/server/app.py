"""The application: requests come in here, are worked on in threads, and go out with the headers that keep them safe."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import tempfile
from collections.abc import AsyncIterator, Sequence
from typing import IO, Any

import anyio.to_thread
import msgspec
from litestar import Litestar, Request, Response, get, route
from litestar.config.compression import CompressionConfig
from litestar.exceptions import HTTPException
from litestar.response import Stream
from litestar.types import ControllerRouterHandler

from recollect.errors import RecollectError
from recollect.memory import Memory
from recollect.remote import wire
from recollect.server import openapi
from recollect.server.access.caller import Caller
from recollect.server.asked import JSON, Answer, Asked, as_json
from recollect.server.carrying import asked_of, body_of, guarded, refusal, response, send_answer
from recollect.server.limits import Limits
from recollect.server.problems import CONTENT_TYPE, TooLargeError
from recollect.server.router import EXPORT, IMPORT, MethodError, Route, match
from recollect.server.serving import Serving

_CHUNK = 1 << 16
_METHODS: Any = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]
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
}


def application(
    serving: Serving,
    *,
    hosts: Sequence[str] = (),
    pages: Sequence[ControllerRouterHandler] = (),
    secure: bool = False,
    lifespan: Sequence[Any] = (),
) -> Litestar:
    """`hosts` are the names that it answers to; none is for any. `secure` is for one that is reached by TLS only."""
    headers = dict(_SAFE, **({"strict-transport-security": "max-age=31536000"} if secure else {}))

    async def keep_safe(message: Any, scope: Any) -> None:
        if message["type"] == "http.response.start":
            there = {name for name, _ in message["headers"]}
            message["headers"] = [
                *message["headers"],
                *((n.encode(), v.encode()) for n, v in headers.items() if n.encode() not in there),
                *([] if b"cache-control" in there else [(b"cache-control", b"no-store")]),
            ]

    return Litestar(
        [*_probes(serving), _calls(serving), *pages],
        before_send=[keep_safe],
        openapi_config=None,
        logging_config=None,
        compression_config=CompressionConfig(backend="gzip", minimum_size=1024, gzip_compress_level=4),
        middleware=[_only(frozenset(hosts))] if hosts else [],
        exception_handlers={Exception: _broken},
        request_max_body_size=None,
        lifespan=list(lifespan),
    )


def _only(hosts: frozenset[str]) -> Any:
    """Answers to these names alone. A page elsewhere may have its own name lead here, to use what a browser keeps."""
    problem = wire.Problem("InputError", 421, "host: this server is not called so; `--host NAME` lets it be")

    def around(app: Any) -> Any:
        async def asked(scope: Any, receive: Any, send: Any) -> None:
            given = dict(scope["headers"]).get(b"host", b"").decode("latin-1").lower()
            if scope["type"] == "http" and re.sub(r":\d+$", "", given) not in hosts:
                await send_answer(send, Answer(msgspec.json.encode(problem), 421, CONTENT_TYPE))
                return
            await app(scope, receive, send)

        return asked

    return around


def _broken(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """What no handler of ours has met."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status >= 500:
        logging.getLogger("recollect.server").error("a request failed", exc_info=error)
    detail = error.detail if isinstance(error, HTTPException) else "something went wrong here; it is in the log"
    if status == 405 and request.scope["path"].startswith("/v1/"):
        try:
            match(request.method, request.scope["raw_path"].decode("latin-1").removeprefix("/v1"))
        except MethodError as other:
            return response(_not_so(other))
        except RecollectError as missing:
            return response(refusal(missing))
    content = msgspec.json.encode(wire.Problem("StoreError" if status >= 500 else "InputError", status, detail))
    headers = {"allow": "GET"} if status == 405 else {}
    return Response(content, status_code=status, media_type=CONTENT_TYPE, headers=headers)


def _not_so(error: MethodError) -> Answer:
    answer = refusal(error, 405)
    return answer._replace(headers={**answer.headers, "allow": error.allowed})


def _probes(serving: Serving) -> list[ControllerRouterHandler]:
    @get("/healthz", include_in_schema=False)
    async def healthz() -> Response[bytes]:
        return Response(b'{"status":"ok"}', media_type=JSON)

    @get("/readyz", include_in_schema=False)
    async def readyz() -> Response[bytes]:
        try:
            await anyio.to_thread.run_sync(serving.ready)
        except RecollectError as error:
            return response(refusal(error)._replace(status=503))
        return Response(b'{"status":"ready"}', media_type=JSON)

    @get("/metrics", include_in_schema=False)
    async def metrics(request: Request[Any, Any, Any]) -> Response[bytes]:
        asked = asked_of(request)

        def read() -> Answer:
            if not serving.open_metrics:
                serving.identify(asked).check("admin", "metrics")
            return Answer(serving.metrics.text(serving.gauges()).encode(), media_type="text/plain; version=0.0.4")

        return response(await guarded(serving, asked, "metrics", read))

    @get("/v1/openapi.json", include_in_schema=False)
    async def described() -> Response[bytes]:
        return Response(openapi.document(), media_type=JSON)

    return [healthz, readyz, metrics, described]


def _calls(serving: Serving) -> ControllerRouterHandler:
    @route("/v1/{rest:path}", http_method=_METHODS, include_in_schema=False, status_code=200)
    async def call(request: Request[Any, Any, Any]) -> Response[Any]:
        raw: bytes = request.scope["raw_path"]
        path = raw.decode("latin-1").removeprefix("/v1")
        try:
            known, parts = match(request.method, path)
        except MethodError as error:
            return response(_not_so(error))
        except RecollectError as error:
            return response(refusal(error))
        if known is EXPORT:
            return await _export(serving, request)
        if known is IMPORT:
            return await _import(serving, request)
        try:
            body = await body_of(request, serving.limits.body, serving.limits.seconds)
        except RecollectError as error:
            return response(refusal(error))
        asked = asked_of(request, body)._replace(parts=parts, path=path)
        return response(await guarded(serving, asked, known.name, lambda: _answered(serving, known, asked), known.path))

    return call


def _answered(serving: Serving, known: Route, asked: Asked) -> Answer:
    caller = serving.identify(asked)
    caller.check(known.rank, known.name)
    return known.work(serving, caller, asked)


# What is too long to be held in memory goes by way of a file, so that a refusal is one and no lock waits for a client.


async def _export(serving: Serving, request: Request[Any, Any, Any]) -> Response[Any]:
    asked = asked_of(request)
    file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the last byte is sent)
    lines = "ndjson" in asked.headers.get("accept", "")

    def write() -> Answer:
        caller = _caller(serving, asked, EXPORT)
        count = caller.view(serving.memory, wire.address_of(asked.headers)).export(file)  # type: ignore[arg-type]
        return as_json({"memories": count})

    answer = await guarded(serving, asked, "export", write)
    if answer.status != 200:
        file.close()
        return response(answer)
    media = "application/x-ndjson" if lines else JSON
    return Stream(_sent(file, lines), media_type=media)


def _caller(serving: Serving, asked: Asked, known: Route) -> Caller:
    caller = serving.identify(asked)
    caller.check(known.rank, known.name)
    return caller


async def _sent(file: IO[bytes], lines: bool) -> AsyncIterator[bytes]:
    """A document as it is, or what is in its lines alone."""
    with contextlib.closing(file):
        file.seek(0)
        while part := await anyio.to_thread.run_sync(lambda: file.readlines(_CHUNK) if lines else [file.read(_CHUNK)]):
            sent = b"".join(filter(None, map(_line, part))) if lines else part[0]
            if not lines and not sent:
                return
            if sent:
                yield sent


def _line(line: bytes) -> bytes:
    bare = line.strip()
    return b"" if bare[:1] in (b"]", b"") or bare.endswith(b'"memories":[') else bare.removesuffix(b",") + b"\n"


async def _import(serving: Serving, request: Request[Any, Any, Any]) -> Response[bytes]:
    asked = asked_of(request)
    views: list[Memory] = []

    def known() -> Answer:
        views.append(_caller(serving, asked, IMPORT).view(serving.memory, wire.address_of(asked.headers)))
        return as_json(None)

    told = await guarded(serving, asked, "import", known)
    if told.status != 200:  # nobody's bytes are read before it is known whose they are
        return response(told)
    with tempfile.TemporaryFile() as file:
        try:
            await _saved(request, file, serving.limits)
        except RecollectError as error:
            return response(refusal(error))

        def read() -> Answer:
            file.seek(0)
            return as_json(views[0].import_(file))  # type: ignore[arg-type]

        return response(await guarded(serving, asked, "import", read))


async def _saved(request: Request[Any, Any, Any], file: IO[bytes], limits: Limits) -> None:
    """As long as something comes: a client that says nothing for a while is given up."""
    length = request.headers.get("content-length", "")
    size, parts = 0, aiter(request.stream())
    while True:
        try:
            async with asyncio.timeout(limits.seconds):
                part = await anext(parts, None)
        except TimeoutError:
            raise TooLargeError("body", f"nothing came for {limits.seconds:g} s") from None
        if part is None:
            return
        size += len(part)
        if size > limits.upload or (length.isdecimal() and int(length) > limits.upload):
            raise TooLargeError("body", f"is over the limit of {limits.upload:,} bytes")
        await anyio.to_thread.run_sync(file.write, part)
