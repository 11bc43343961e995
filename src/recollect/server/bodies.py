"""Reads the body of a request: as bytes, as the fields of a form, or into a file."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs

import msgspec

from recollect.server.limits import Limits
from recollect.server.problems import TooLargeError, TooSlowError
from recollect.server.web import HttpRequest, Route
from recollect.values.errors import InputError

Receive = Callable[[], Awaitable[Any]]
T = TypeVar("T")
_MOST_FIELDS = 10_000


class LeftError(Exception):
    """The client has disconnected in the middle of its request, so there is nobody to answer."""


class Upload(NamedTuple):
    """A file in a form."""

    filename: str
    content: bytes


async def with_body(
    route: Route, request: HttpRequest, receive: Receive, limits: Limits, in_thread: Callable[..., Awaitable[Any]]
) -> HttpRequest:
    """The request with its body, as the route takes it."""
    if route.body == "file":
        return await _read_to_file(request, receive, limits, in_thread)
    if route.body == "none" or not (request.length or "transfer-encoding" in request.headers):
        return request
    if route.longest is not None:
        limits = limits._replace(body=route.longest)
    if route.body == "form":
        return request._replace(form=await _read_form(request, receive, limits))
    return request._replace(body=await _read(request, receive, limits))


async def _parts(request: HttpRequest, receive: Receive, limit: int) -> AsyncGenerator[bytes]:
    """The body part by part, unless it is over the limit."""
    too_large = TooLargeError("body", f"is over the limit of {limit:,} bytes")
    if request.length > limit:
        raise too_large
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise LeftError
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        if size > limit:
            raise too_large
        yield part


async def _read(request: HttpRequest, receive: Receive, limits: Limits) -> bytes:
    """All of the body, unless it is too large or too slow in coming."""
    try:
        async with asyncio.timeout(limits.seconds):
            return b"".join([part async for part in _parts(request, receive, limits.body)])
    except TimeoutError:
        raise TooSlowError("body", f"did not arrive within {limits.seconds:g} s") from None


async def _read_form(request: HttpRequest, receive: Receive, limits: Limits) -> dict[str, list[Any]]:
    body = await _read(request, receive, limits)
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        return await _read_multipart(request, body)
    if body.count(b"&") >= _MOST_FIELDS:
        raise InputError("form", f"must have at most {_MOST_FIELDS:,} fields")
    return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)


async def _read_multipart(request: HttpRequest, body: bytes) -> dict[str, list[Any]]:
    from starlette.datastructures import Headers
    from starlette.formparsers import MultiPartException, MultiPartParser

    async def stream() -> AsyncGenerator[bytes]:
        yield body

    parser = MultiPartParser(
        Headers(dict(request.headers)), stream(), max_fields=_MOST_FIELDS, max_part_size=max(1, len(body))
    )
    try:
        fields = await parser.parse()
    except (MultiPartException, ValueError, KeyError):
        raise InputError("form", "is not multipart/form-data") from None
    form: dict[str, list[Any]] = {}
    for name, value in fields.multi_items():
        if not isinstance(value, str):
            value = Upload(value.filename or "", await value.read())
        form.setdefault(name, []).append(value)
    await fields.close()
    return form


async def _read_to_file(
    request: HttpRequest, receive: Receive, limits: Limits, in_thread: Callable[..., Awaitable[Any]]
) -> HttpRequest:
    """As long as something comes: a client that sends nothing for a while is refused."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by the route, or below)
    parts = _parts(request, receive, limits.upload)
    try:
        while True:
            async with asyncio.timeout(limits.seconds):
                part = await anext(parts, None)
            if part is None:
                break
            await in_thread(lambda part=part: file.write(part))
    except BaseException as error:
        file.close()
        if isinstance(error, TimeoutError):
            raise TooSlowError("body", f"nothing came for {limits.seconds:g} s") from None
        raise
    file.seek(0)
    return request._replace(file=file)


def decoded_body(request: HttpRequest, kind: type[T]) -> T:
    """The JSON in a body; an empty body is an empty object."""
    try:
        return msgspec.json.decode(request.body or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise explained(str(error)) from None
    except RecursionError:
        raise InputError("body", "is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InputError("body", "is not JSON") from None


def explained(message: str) -> InputError:
    """msgspec's message by the name of the argument, without the value that some of them quote."""
    problem, _, place = message.partition(" - at `$")
    field = place.strip("`.[]") or "body"  # `$[...]` is somewhere inside of what has no names
    if problem == "Number out of range":
        return InputError("body", "has a number that is too large")
    if problem.startswith("Expected `object`") and not place:
        return InputError("body", "must be a JSON object")
    if problem.startswith("Object contains unknown field"):
        return InputError(problem.split("`")[1][:48], "is not an argument of this call")
    if problem.startswith("Object missing required field"):
        return InputError(problem.split("`")[1], "is missing")
    return InputError(field, problem[:1].lower() + problem[1:].replace("`", ""))


def check_no_query(request: HttpRequest) -> None:
    """InputError for arguments in the query of a request that takes none there."""
    for name, _ in request.query:
        raise InputError(name[:48], "is not an argument of this call's query")
