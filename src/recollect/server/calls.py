"""The API: each request is read, becomes one call, and is answered. No framework stands in between."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

from recollect.memory import Memory
from recollect.remote import wire
from recollect.server import openapi
from recollect.server.access.caller import Caller
from recollect.server.http import (
    LeftError,
    body_of,
    guarded,
    length_of,
    part_of,
    refusal,
    request_from,
    send_answer,
)
from recollect.server.problems import TooLargeError, TooSlowError
from recollect.server.requests import JSON, Answer, HttpRequest, as_json
from recollect.server.router import EXPORT, IMPORT, MethodError, Route, match
from recollect.server.serving import Serving
from recollect.values.errors import RecollectError
from recollect.values.record import SCHEMA_VERSION

ROOT = "/v1"
LINES = "application/x-ndjson"
_CHUNK = 1 << 16


class Calls:
    """The API below `/v1`, as an ASGI application."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        with contextlib.suppress(LeftError):
            try:
                answer = await self._answer(scope, receive, send)
            except MethodError as error:
                refused = refusal(error, 405)
                answer = refused._replace(headers={**refused.headers, "allow": error.allowed})
            except RecollectError as error:
                answer = refusal(error)
            if answer is not None:
                await send_answer(send, answer)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> Answer | None:
        """None where it has been sent already."""
        serving, path = self._serving, scope["raw_path"].decode("latin-1").removeprefix(ROOT)
        if path == "/openapi.json" and scope["method"] == "GET":
            request = request_from(scope)
            request.trace.route = path
            return await serving.in_thread(lambda: Answer(openapi.document()).packed(request))
        route, parts = match(scope["method"], path)
        if route is EXPORT:
            return await self._export(request_from(scope), send)
        if route is IMPORT:
            return await self._import(scope, receive)
        request = request_from(scope)._replace(parts=parts, path=path)
        callers: list[Caller] = []

        def identified() -> Answer:
            callers.append(self._caller(request, route))
            return as_json(None)

        if length_of(scope) > _CHUNK or "transfer-encoding" in request.headers:  # not before it is known whose it is
            refused = await guarded(serving, request, route.name, identified, route.path)
            if refused.status != 200:
                return refused
        body = await body_of(scope, receive, serving.limits.body, serving.limits.seconds)
        whole = request._replace(body=body)

        def work() -> Answer:
            if not callers:
                identified()
            return route.work(serving, callers[0], whole)

        return await guarded(serving, whole, route.name, work, route.path)

    def _caller(self, request: HttpRequest, route: Route) -> Caller:
        caller = self._serving.identify(request)
        caller.check(route.rank, route.name)
        return caller

    # What is too long to be held in memory goes by way of a file, so that a refusal is one and no lock waits for a
    # client.

    async def _export(self, request: HttpRequest, send: Any) -> Answer | None:
        with tempfile.TemporaryFile() as file:

            def write() -> Answer:
                view = self._caller(request, EXPORT).view(self._serving.memory, wire.address_of(request.headers))
                count = view.export(file)  # type: ignore[arg-type]
                file.seek(0)
                return as_json({"memories": count})

            answer = await guarded(self._serving, request, "export", write, EXPORT.path)
            if answer.status != 200:
                return answer
            await self._stream(request, file, send)
        return None

    async def _stream(self, request: HttpRequest, file: IO[bytes], send: Any) -> None:
        """A document as it is, or what is in its lines alone."""
        lines = request.prefers(LINES, JSON)
        headers = [(b"content-type", (LINES if lines else JSON).encode()), (b"vary", b"accept, accept-encoding")]
        parts = _lines(file) if lines else iter(lambda: file.read(_CHUNK), b"")
        if request.takes_gzip:
            headers += [(b"content-encoding", b"gzip")]
            parts = _gzipped(parts)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while part := await self._serving.in_thread(lambda: next(parts, b"")):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _import(self, scope: Any, receive: Any) -> Answer:
        serving, request = self._serving, request_from(scope)
        views: list[Memory] = []

        def identify_caller() -> Answer:
            views.append(self._caller(request, IMPORT).view(serving.memory, wire.address_of(request.headers)))
            return as_json(None)

        answer = await guarded(serving, request, "import", identify_caller, IMPORT.path)
        if answer.status != 200:  # nobody's bytes are read before it is known whose they are
            return answer
        with tempfile.TemporaryFile() as file:
            await _saved(serving, scope, receive, file)

            def read() -> Answer:
                file.seek(0)
                with contextlib.closing(_document(file) if _is_lines(request) else file) as whole:
                    return as_json(views[0].import_(whole))  # type: ignore[arg-type]

            return await guarded(serving, request, "import", read, IMPORT.path)


def _is_lines(request: HttpRequest) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == LINES


def _document(file: IO[bytes]) -> IO[bytes]:
    """An export in lines as the document that it was. What has a shelf is a thing, and comes behind the memories."""
    document: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by who has asked for it)
    with tempfile.TemporaryFile() as things:
        counts = {document: 0, things: 0}
        document.write(b'{"format":"recollect","schema_version":%d,"memories":[' % SCHEMA_VERSION)
        for line in file:
            if bare := line.strip():
                part = things if bare.startswith(b'{"shelf":') else document
                part.write((b"," if counts[part] else b"") + b"\n" + bare)
                counts[part] += 1
        document.write(b'\n],"things":[')
        things.seek(0)
        shutil.copyfileobj(things, document)
    document.write(b"\n]}\n")
    document.seek(0)
    return document


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    while part := file.readlines(_CHUNK):
        if sent := b"".join(filter(None, map(_line, part))):
            yield sent


def _line(line: bytes) -> bytes:
    bare = line.strip()
    return b"" if bare[:1] in (b"]", b"") or bare.endswith(b'"memories":[') else bare.removesuffix(b",") + b"\n"


def _gzipped(parts: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(4, wbits=31)
    for part in parts:
        if packed := packer.compress(part):
            yield packed
    yield packer.flush()


async def _saved(serving: Serving, scope: Any, receive: Any, file: IO[bytes]) -> None:
    """As long as something comes: a client that says nothing for a while is given up."""
    limits, size, more = serving.limits, 0, True
    while more:
        try:
            async with asyncio.timeout(limits.seconds):
                part, more = await part_of(receive)
        except TimeoutError:
            raise TooSlowError("body", f"nothing came for {limits.seconds:g} s") from None
        size += len(part)
        if max(size, length_of(scope)) > limits.upload:
            raise TooLargeError("body", f"is over the limit of {limits.upload:,} bytes")
        await serving.in_thread(lambda part=part: file.write(part))
