"""The one ASGI application. Every request goes through the same steps:

guard → count → identify once → rank → body → thread → answer → pack
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from recollect.remote import wire
from recollect.remote.wire import ADDRESS, header
from recollect.server import spans
from recollect.server.access.caller import Caller
from recollect.server.bodies import LeftError, with_body
from recollect.server.counting import RequestCount
from recollect.server.problems import CONTENT_TYPE, EncodingError
from recollect.server.serving import FORM, Serving
from recollect.server.web import ROOT, Answer, Asgi, HttpRequest, Route, Routes, Trace, failure, refusal, stopping
from recollect.values.errors import AccessError, InputError, NotFoundError, RecollectError

Lifespan = Callable[[], contextlib.AbstractAsyncContextManager[None]]
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_SAFE_DATA = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}
"""Headers of every answer of the API."""
_SAFE_PAGES = {
    **_SAFE_DATA,
    "content-security-policy": _POLICY,
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_STRICT = {"strict-transport-security": "max-age=31536000"}
_LONG_BODY = 1 << 16
"""A body over so many bytes is not read before its sender is identified. A shorter one has mostly arrived already."""
_log = logging.getLogger("recollect.server")


class Pipeline:
    def __init__(
        self,
        serving: Serving,
        routes: Routes,
        *,
        missing: Route | None = None,
        hosts: Sequence[str] = (),
        origins: Sequence[str] | None = None,
        cross_origins: Sequence[str] = (),
        lifespans: Sequence[Lifespan] = (),
    ) -> None:
        """`missing` answers paths outside of the API that no route has.

        `hosts` are the names that the server answers to; none is for any. `origins` are those of the web pages that
        may call; None does not look at it. `cross_origins` are those of them that are told so by CORS.
        """
        self._serving, self._routes, self._missing = serving, routes, missing
        self._hosts, self._origins, self._lifespans = frozenset(hosts), origins, lifespans
        strict = _STRICT if serving.secure else {}
        self._safe_pages, self._safe_data = (
            [(name.encode(), value.encode()) for name, value in (headers | strict).items()]
            for headers in (_SAFE_PAGES, _SAFE_DATA)
        )
        self._respond: Asgi = self._answer
        if cross_origins:
            from starlette.middleware.cors import CORSMiddleware

            self._respond = CORSMiddleware(
                self._answer, allow_origins=cross_origins, allow_methods=["*"], allow_headers=["*"]
            )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        trace = Trace(scope["raw_path"].decode("latin-1"), headers)
        count = RequestCount(self._serving.metrics, scope["method"], trace)
        safe_headers = self._safe_data if trace.path.startswith(f"{ROOT}/") else self._safe_pages

        async def send_counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                count.status = message["status"]
                names = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in safe_headers if pair[0] not in names)]
            elif not message.get("more_body"):
                count.end()  # before the last piece is sent: whoever has an answer finds it in the numbers
            await send(message)

        try:
            if (refused := self._guard(scope["headers"], headers)) is not None:
                await _send(send_counted, refused)
            else:
                await self._respond({**scope, "recollect.trace": trace}, receive, send_counted)
        except LeftError:
            pass
        except asyncio.CancelledError:  # the server stops, and has waited for this as long as it does
            if not count.status:
                await _send(send_counted, stopping())
        except Exception:
            _log.exception("a request failed")
            if not count.status:
                await _send(send_counted, failure())
        finally:
            count.end()

    async def _live(self, receive: Any, send: Any) -> None:
        """ASGI's lifespan: what has to run from the start of the server to its end."""
        await receive()
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self._serving.stop)
            for lifespan in self._lifespans:
                await stack.enter_async_context(lifespan())
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    def _guard(self, sent: Sequence[tuple[bytes, bytes]], headers: Mapping[str, str]) -> Answer | None:
        """The refusal of a request that was meant for another server, or that can be read in two ways."""
        if len(sent) != len(headers) and (refused := _repeated(sent)) is not None:
            return refused
        if self._hosts and _PORT.sub("", headers.get("host", "").lower()) not in self._hosts:
            return _MISDIRECTED
        if self._origins is not None and headers.get("origin") not in (None, *self._origins):
            return refusal(AccessError("origin: pages of this origin may not call; `--allow-origin` lets them"))
        return _ambiguous(headers)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        trace: Trace = scope["recollect.trace"]
        # Without its body, which the server leaves out itself, HEAD is GET.
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        try:
            route, parts = self._routes.match(method, trace)
        except NotFoundError as error:
            is_page = type(error) is NotFoundError and not trace.path.startswith(f"{ROOT}/")
            if self._missing is None or not is_page:
                await _send(send, refusal(error))
                return
            route, parts = self._missing, dict[str, str]()
        request = HttpRequest.from_scope(scope, method, parts, trace)
        answer = await _RouteCall(self._serving, route, request).answer(receive)
        if answer.application is not None:
            await answer.application(scope, receive, send)
        elif answer.stream is not None:
            await self._send_stream(send, answer)
        else:
            await _send(send, answer)

    async def _send_stream(self, send: Any, answer: Answer) -> None:
        assert answer.stream is not None
        with answer.stream.file:
            await send({"type": "http.response.start", "status": answer.status, "headers": answer.asgi_headers()})
            parts = answer.stream.parts
            while part := await self._serving.in_thread(lambda: next(parts, b"")):
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


class _RouteCall:
    """One request at its route: identified once, by whichever step needs it first."""

    def __init__(self, serving: Serving, route: Route, request: HttpRequest) -> None:
        self._serving, self._route, self._request = serving, route, request
        self._caller: Caller | None = None
        self._identified = route.rank is None

    async def answer(self, receive: Any) -> Answer:
        serving, route, request = self._serving, self._route, self._request
        try:
            long = request.length > _LONG_BODY or "transfer-encoding" in request.headers or route.body == "file"
            if long and route.body != "none" and not self._identified:
                refused = await serving.in_thread(self._refused_early)
                if refused is not None:
                    return refused
            self._request = await with_body(route, request, receive, serving.limits, serving.in_thread)
            if route.threads == "none":
                return self._run(self._work)
            if route.threads == "logins":
                return await serving.in_login_thread(request.client, partial(self._run, self._work))
            return await serving.in_thread(partial(self._run, self._work), slow=route.threads == "slow")
        except RecollectError as error:  # of the body, or of a flood of logins
            return self._refuse(error).packed(request)

    def _refused_early(self) -> Answer | None:
        """Identify the caller before a long body is read. The answer if that is refused."""
        try:
            self._identify()
        except Exception as error:
            return self._run(partial(_raise, error))
        return None

    def _identify(self) -> None:
        request, route = self._request, self._route
        if self._identified or route.rank is None:
            return
        self._caller = caller = self._serving.identify(request._replace(cookies={}) if route.keys_only else request)
        if route.body != "form":  # whose token is in the body
            self._serving.check_form(caller, request, request.headers.get(FORM, ""))
        caller.check(route.rank, route.name)
        if route.body == "file":  # an address that is not the caller's is refused before a long import is read
            caller.narrowed(wire.address_of(request.headers))
        self._identified = True

    def _work(self) -> Answer:
        self._identify()
        if self._caller is not None and self._route.body == "form":
            self._serving.check_form(self._caller, self._request, self._request.field("form"))
        if self._route.threads != "slow" or self._caller is None:
            return self._route.work(self._serving, self._caller, self._request)
        with self._serving.slow_turns.taken(self._caller.id):
            return self._route.work(self._serving, self._caller, self._request)

    def _run(self, work: Callable[[], Answer]) -> Answer:
        """Run `work` and answer its errors, within a span."""
        request = self._request
        with spans.span(f"{request.method} {self._route.name}") as span:
            try:
                answer = work()
            except RecollectError as error:
                answer = self._refuse(error)
                self._serving.refused(request, self._route.name, error, answer.status)
            except Exception:
                _log.exception("%s failed", self._route.name)
                answer = failure()
            span.set_attribute("http.response.status_code", answer.status)
            return answer.packed(request)

    def _refuse(self, error: RecollectError) -> Answer:
        if self._route.refuse is None:
            return refusal(error)
        return self._route.refuse(self._serving, self._caller, self._request, error)


def _raise(error: Exception) -> Answer:
    raise error


async def _send(send: Any, answer: Answer) -> None:
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.asgi_headers()})
    await send({"type": "http.response.body", "body": answer.content})


# A web page elsewhere can have its own name resolve to this server, to use what a browser stores for it.
_MISDIRECTED = Answer(
    msgspec.json.encode(
        wire.Problem("InputError", 421, "host: this server is not called so; `--host NAME` lets it be")
    ),
    421,
    CONTENT_TYPE,
)


_PORT = re.compile(r":\d+$")
_ONCE = frozenset(
    name.encode()
    for name in (
        *("authorization", "content-encoding", "content-type", "host", "idempotency-key", "if-match", "origin"),
        *(header(part) for part in ADDRESS),
    )
)
"""Headers of which two would leave it open which one counts."""


def _repeated(sent: Sequence[tuple[bytes, bytes]]) -> Answer | None:
    names = [name for name, _ in sent]
    repeated = sorted(name for name in _ONCE.intersection(names) if names.count(name) > 1)
    return refusal(InputError(repeated[0].decode(), "is given twice")) if repeated else None


def _ambiguous(headers: Mapping[str, str]) -> Answer | None:
    """The refusal of a request that a proxy in front of us may have read in another way."""
    if "transfer-encoding" in headers and "content-length" in headers:
        refused = refusal(InputError("content-length", "and transfer-encoding do not go together"))
        return refused._replace(headers={**refused.headers, "connection": "close"})
    if headers.get("content-encoding", "").strip().lower() not in ("", "identity"):
        return refusal(EncodingError("content-encoding", "must be left out: bodies are not unpacked here"))
    return None
