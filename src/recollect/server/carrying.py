"""How requests are carried: read from the wire, worked on in threads, counted, and answered."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import anyio.to_thread
import msgspec
from litestar import Request, Response

from recollect.errors import RecollectError
from recollect.remote import wire
from recollect.server import spans
from recollect.server.asked import Answer, Asked
from recollect.server.problems import CONTENT_TYPE, TooLargeError, TooManyError, problem_of
from recollect.server.serving import Serving

_log = logging.getLogger("recollect.server.access")


async def guarded(
    serving: Serving, asked: Asked, name: str, work: Callable[[], Answer], path: str | None = None
) -> Answer:
    """Done in a thread, counted, timed, and its refusal told as one."""
    start = time.perf_counter()

    def run() -> Answer:
        with spans.span(f"{asked.method} {name}") as span:
            try:
                answer = work()
            except RecollectError as error:
                answer = refusal(error)
                serving.refused(asked, name, error, answer.status)
            except Exception:
                logging.getLogger("recollect.server").exception("%s failed", name)
                answer = _failure()
            span.set_attribute("http.response.status_code", answer.status)
            return answer

    answer = await anyio.to_thread.run_sync(run, limiter=serving.threads)
    took = time.perf_counter() - start
    labels = {"route": path or name, "method": asked.method}
    serving.metrics.count("recollect_http_requests_total", "Requests.", {**labels, "status": str(answer.status)})
    serving.metrics.took("recollect_http_request_seconds", "Time to answer.", took, labels)
    _log.info(
        "%s %s %s",
        asked.method,
        name,
        answer.status,
        extra={"metadata": {"route": labels["route"], "status": answer.status, "ms": round(took * 1e3, 2)}},
    )
    return answer


def refusal(error: RecollectError, status: int | None = None) -> Answer:
    problem = problem_of(error)
    if status is not None:
        problem = msgspec.structs.replace(problem, status=status)
    headers = {"www-authenticate": "Bearer"} if problem.status == 401 else {}
    if problem.status in (429, 503):
        headers["retry-after"] = str(max(1, round(error.seconds)) if isinstance(error, TooManyError) else 1)
    return Answer(msgspec.json.encode(problem), problem.status, CONTENT_TYPE, headers)


def _failure() -> Answer:
    problem = wire.Problem("StoreError", 500, "something went wrong here; it is in the server's log")
    return Answer(msgspec.json.encode(problem), 500, CONTENT_TYPE)


def response(answer: Answer) -> Response[bytes]:
    return Response(
        answer.content,
        status_code=answer.status,
        media_type=answer.media_type,
        headers=dict(answer.headers),
    )


async def send_answer(send: Any, answer: Answer) -> None:
    """For what is no handler of litestar's."""
    headers = {"content-type": answer.media_type, **answer.headers}
    start = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": start})
    await send({"type": "http.response.body", "body": answer.content})


def asked_of(request: Request[Any, Any, Any], body: bytes = b"") -> Asked:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.scope["headers"]}
    client = request.client.host if request.client else ""
    query = [(name, value) for name, value in request.query_params.multi_items()]
    return Asked(request.method, request.scope["path"], {}, query, headers, request.cookies, body, client)


async def body_of(request: Request[Any, Any, Any], most: int, seconds: float) -> bytes:
    """All of it, unless it is too large or too slow in coming."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise TooLargeError("body", f"is over the limit of {most:,} bytes")
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise TooLargeError("body", f"is over the limit of {most:,} bytes")
                parts.append(part)
    except TimeoutError:
        raise TooLargeError("body", f"did not arrive within {seconds:g} s") from None
    return b"".join(parts)
