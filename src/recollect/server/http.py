"""HTTP in and out: reads requests from ASGI, runs them in threads, and sends their answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from litestar import Response

from recollect.remote import wire
from recollect.server import spans
from recollect.server.counting import trace_of
from recollect.server.problems import (
    CONTENT_TYPE,
    TooLargeError,
    TooManyError,
    TooSlowError,
    UnderWayError,
    problem_of,
)
from recollect.server.requests import Answer, HttpRequest
from recollect.server.serving import Serving
from recollect.values.errors import RecollectError


class LeftError(Exception):
    """The client has disconnected in the middle of its request, so there is nobody to answer."""


async def guarded(
    serving: Serving,
    request: HttpRequest,
    name: str,
    work: Callable[[], Answer],
    path: str | None = None,
    login: bool = False,
) -> Answer:
    """Run `work` in a thread, and answer its errors. A `login` has its own threads; BusyError if all are taken."""
    request.trace.route = path or name

    def run() -> Answer:
        with spans.span(f"{request.method} {name}") as span:
            try:
                answer = work()
            except RecollectError as error:
                answer = refusal(error)
                serving.refused(request, name, error, answer.status)
            except Exception:
                logging.getLogger("recollect.server").exception("%s failed", name)
                answer = failure()
            span.set_attribute("http.response.status_code", answer.status)
            return answer.packed(request)

    return await (serving.in_login_thread(request.client, run) if login else serving.in_thread(run))


def refusal(error: RecollectError, status: int | None = None) -> Answer:
    problem = problem_of(error)
    if status is not None:
        problem = msgspec.structs.replace(problem, status=status)
    headers = {"www-authenticate": "Bearer"} if problem.status == 401 else {}
    if problem.status in (429, 503) or isinstance(error, UnderWayError):
        headers["retry-after"] = str(max(1, round(error.seconds)) if isinstance(error, TooManyError) else 1)
    return Answer(msgspec.json.encode(problem), problem.status, CONTENT_TYPE, headers)


def failure() -> Answer:
    problem = wire.Problem("StoreError", 500, "something went wrong here; it is in the server's log")
    return Answer(msgspec.json.encode(problem), 500, CONTENT_TYPE)


def response(answer: Answer) -> Response[bytes]:
    """An answer as litestar's handlers return it."""
    return Response(
        answer.content,
        status_code=answer.status,
        headers={"content-type": answer.media_type, **answer.headers},
    )


async def send_answer(send: Any, answer: Answer) -> None:
    """Send an answer through ASGI, outside of litestar's handlers."""
    headers = [
        (b"content-type", answer.media_type.encode()),
        (b"content-length", b"%d" % len(answer.content)),
        *((name.encode(), value.encode()) for name, value in answer.headers.items()),
    ]
    if answer.status == 304:  # it has no body
        headers = [pair for pair in headers if pair[0] != b"content-length"]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.content})


def request_from(scope: Any, body: bytes = b"") -> HttpRequest:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    client = scope.get("client") or ("",)
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True) if scope["query_string"] else ()
    cookies = _cookies(headers["cookie"]) if "cookie" in headers else {}
    return HttpRequest(scope["method"], scope["path"], {}, query, headers, cookies, body, client[0], trace_of(scope))


def _cookies(header: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in header.split(";"))
    return {name.strip(): value.strip().strip('"') for name, _, value in pairs}


def length_of(scope: Any) -> int:
    """The Content-Length of a request; 0 if it has none."""
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return int(length) if length.isdigit() else 0


async def part_of(receive: Any) -> tuple[bytes, bool]:
    """The next part of a body, and whether more is to come."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise LeftError
    return message.get("body", b""), message.get("more_body", False)


async def body_of(scope: Any, receive: Any, most: int, seconds: float) -> bytes:
    """All of it, unless it is too large or too slow in coming."""
    if length_of(scope) > most:
        raise TooLargeError("body", f"is over the limit of {most:,} bytes")
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(seconds):
            while more:
                part, more = await part_of(receive)
                body += part
                if len(body) > most:
                    raise TooLargeError("body", f"is over the limit of {most:,} bytes")
    except TimeoutError:
        raise TooSlowError("body", f"did not arrive within {seconds:g} s") from None
    return bytes(body)
