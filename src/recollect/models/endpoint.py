"""A web service that takes and gives JSON: asked again when that can help, and never telling its key."""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import msgspec

from recollect.runtime import forking
from recollect.values.errors import InputError, ModelError
from recollect.values.record import utc_now

if TYPE_CHECKING:
    import httpx

_FIRST_PAUSE, _LONGEST_PAUSE, _LONGEST_WAIT = 0.5, 20.0, 60.0
_WORTH_ANOTHER_TRY = frozenset([408, 425, 429, 500, 502, 503, 504, 529])
_ADVICE = {
    403: "check what the key may do",
    404: "check the URL, which most often ends in /v1, and the name of the model",
    429: "try again later, or raise the limit of your account",
}
_LONGEST_SAID, _LONGEST_PROBLEM = 300, 600
_KEY = re.compile(r"[!-~]+")
_SECONDS = re.compile(r"\d{1,9}(?:\.\d+)?", re.ASCII)
_NEWLINE = re.compile(rb"\r\n|\n|\r")

_T = TypeVar("_T")
_limit: ContextVar[float | None] = ContextVar("recollect_endpoint_limit", default=None)


@contextmanager
def within(seconds: float) -> Generator[None]:
    """No call of an endpoint that this thread makes in the block takes longer, whatever deadline the endpoint has."""
    token = _limit.set(seconds)
    try:
        yield
    finally:
        _limit.reset(token)


class Service(NamedTuple):
    """What differs between the services that an endpoint may be."""

    path: str
    own: str
    """The environment variable with a key for this service alone."""
    other: str
    """The variable of another program with a key that will do; it is never sent unencrypted to another machine."""
    advice: Mapping[int, str] = {}
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    headers: Mapping[str, str] = {}


class RefusedError(ModelError):
    """The server refused the request, and a retry would not help."""

    def __init__(self, text: str, status: int, answer: str) -> None:
        super().__init__(text)
        self.status = status
        self.answer = answer


class PassingError(Exception):
    """A failure that may pass. `asked` is how long the other side wants to be left alone, if it says."""

    def __init__(self, problem: str, asked: float | None = None) -> None:
        super().__init__(problem)
        self.asked = asked


class Endpoint:
    """`timeout` is the seconds without a sign of life in one try, of which there are `retries` more than one.

    `deadline` is the seconds for the whole answer: all tries, the pauses between them and reading to the end. Of a
    stream it ends with the first piece, because the pieces come as fast as the caller takes them.

    What reads an answer raises ValueError if it cannot be used, and PassingError if it should be asked for again.
    """

    def __init__(
        self,
        url: str,
        service: Service,
        key: str | None,
        timeout: float,
        retries: int,
        sleep: Callable[[float], None],
        deadline: float,
    ) -> None:
        if not deadline > 0:
            raise InputError("deadline", "must be more than 0 seconds")
        self._deadline = deadline
        self._url, self.shown, self._login = _address(url, service.path)
        self._key = _checked(key) if key else _key_from_environment(self._url, service)
        self._service = service
        self._timeout, self._retries, self._sleep = timeout, retries, sleep
        if find_spec("httpx") is None:
            raise ModelError("httpx is not installed; run `pip install httpx`")
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        forking.watch(self)

    def post(self, body: Any, read: Callable[[bytes], _T]) -> _T:
        """What `read` makes of the answer, or ModelError when all tries have failed or another would not help."""
        content, attempt, until = msgspec.json.encode(body), 0, self._until()
        while True:
            try:
                with self._answer(content, until) as answer:
                    return read(self._whole(answer, until))
            except PassingError as failure:
                self._wait(attempt, failure, until)
            except ValueError as error:
                raise self._error(f"the answer cannot be used: {error}") from None
            attempt += 1

    def stream(self, body: Any, read: Callable[[Iterator[bytes]], Iterator[str]]) -> Iterator[str]:
        """What `read` makes of the data of each event, as it comes.

        Until the first piece is out, a failure leads to another try. After that it is a ModelError at once: the pieces
        of another answer would not fit those of the first.
        """
        content, attempt, begun, until = msgspec.json.encode(body), 0, False, self._until()

        def chunks(answer: httpx.Response) -> Iterator[bytes]:
            for chunk in answer.iter_bytes():
                if not begun:
                    self._check_time(until)
                yield chunk

        while True:
            try:
                with self._answer(content, until) as answer:
                    self._check_stream(answer, until)
                    for piece in read(_data(chunks(answer))):
                        begun = True
                        yield piece
                    return
            except PassingError as failure:
                if begun:
                    raise self._error(f"broke off in the middle of its answer: {failure}") from None
                self._wait(attempt, failure, until)
            except ValueError as error:
                raise self._error(f"the answer cannot be used: {error}") from None
            attempt += 1

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def after_fork(self) -> None:
        # Closing them properly would tell the other end that the parent has left.
        self._lock, self._client = threading.Lock(), None

    def _open(self) -> httpx.Client:
        import httpx

        with self._lock:
            if self._client is None:
                headers = {"Content-Type": "application/json", **self._service.headers}
                if self._key:
                    headers[self._service.key_header] = self._service.key_prefix + self._key
                self._client = httpx.Client(headers=headers, auth=self._login, timeout=self._timeout)
            return self._client

    def _until(self) -> float:
        limit = _limit.get()
        return time.monotonic() + (self._deadline if limit is None else min(limit, self._deadline))

    def _check_time(self, until: float) -> float:
        """The seconds that are left. ModelError if there are none: another try would have no more."""
        if (left := until - time.monotonic()) <= 0:
            raise self._error("did not answer before the deadline; is it busy, or the deadline too short?")
        return left

    def _whole(self, answer: httpx.Response, until: float) -> bytes:
        """A body may come byte by byte, each of them in time, and the whole never."""
        body = bytearray()
        for chunk in answer.iter_bytes():
            self._check_time(until)
            body += chunk
        return bytes(body)

    @contextmanager
    def _answer(self, content: bytes, until: float) -> Generator[httpx.Response]:
        """A successful answer whose body is still to be read. Every failure until then is classified here."""
        import httpx

        timeout = min(self._timeout, self._check_time(until))
        try:
            with self._open().stream("POST", self._url, content=content, timeout=timeout) as answer:
                if not answer.is_success:
                    raise self._refusal(answer, self._whole(answer, until))
                yield answer
        except httpx.TimeoutException:
            problem = f"gave no answer within {timeout:g} s; is it busy, or the timeout too short?"
            raise PassingError(problem) from None
        except httpx.RequestError as error:
            problem = f"cannot be reached ({str(error) or type(error).__name__}); is it running, and the URL right?"
            raise PassingError(problem) from None
        except (httpx.InvalidURL, UnicodeError) as error:  # hosts that cannot be one are either
            if isinstance(error, UnicodeDecodeError):  # is in the answer
                raise
            raise self._error("the URL cannot be used; is there a mistake in it?") from None

    def _wait(self, attempt: int, failure: PassingError, until: float) -> None:
        pause = _pause(attempt) if failure.asked is None else failure.asked
        if attempt >= self._retries or pause > _LONGEST_WAIT or time.monotonic() + pause >= until:
            raise self._error(str(failure)) from None
        self._sleep(pause)

    def _refusal(self, answer: httpx.Response, content: bytes) -> RefusedError | PassingError:
        status, reason = answer.status_code, self._error_text(content)
        key = {401: f"check the key, in {self._service.own} or {self._service.other}"}
        advice = (_ADVICE | key | dict(self._service.advice)).get(status, "")
        text = f"answered with {status}{reason and f' ({reason})'}{advice and f'; {advice}'}"
        if status in _WORTH_ANOTHER_TRY:
            return PassingError(text, wait_asked(answer.headers.get("retry-after"), utc_now()))
        return RefusedError(f"{self.shown}: {text}", status, reason)

    def _check_stream(self, answer: httpx.Response, until: float) -> None:
        """Endpoints that cannot stream, or that have failed without saying so in the status, answer in another way."""
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "text/event-stream":
            reason = self._error_text(self._whole(answer, until))
            raise ValueError(f"it is {kind or 'of no type'}, not a stream of events{reason and f' ({reason})'}")

    def _error(self, problem: str) -> ModelError:
        return ModelError(f"{self.shown}: {self._hidden(problem)[:_LONGEST_PROBLEM]}")

    def _error_text(self, content: bytes) -> str:
        try:
            error = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError):
            error = content.decode("utf-8", "replace")
        return self._hidden(one_line(error))[:_LONGEST_SAID]

    def _hidden(self, text: str) -> str:
        """Without the key, which some repeat when they refuse it. To be cut only afterwards: half a key is one too."""
        return text.replace(self._key, "***") if self._key else text


def wait_asked(header: str | None, now: datetime) -> float | None:
    """The seconds that a Retry-After header asks for, given as a number or as a date."""
    if not header:
        return None
    if _SECONDS.fullmatch(header):
        return float(header)
    try:
        when = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max((when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds(), 0.0)


def one_line(error: Any) -> str:
    """What the other side says is wrong, out of the JSON that it says it in."""
    for name in ("error", "message", "detail"):
        if isinstance(error, dict):
            error = error.get(name, error)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    line = "".join(letter if letter.isprintable() else " " for letter in str(error)[:10_000])  # pyright: ignore[reportUnknownArgumentType]
    return " ".join(line.split())


def _data(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The data of server-sent events, of which the models' protocols put each on one line.

    A line is cut only where the protocol says: JSON may hold what other readers also take for the end of one.
    """
    left = b""
    for chunk in chunks:
        *lines, left = _NEWLINE.split(left + chunk)
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()
    if left.strip() == b"data: [DONE]":  # any other last line without an end is half a line
        yield b"[DONE]"


def _pause(attempt: int) -> float:
    """Twice as long each time, and never the same for all who were turned away together."""
    return random.uniform(0.5, 1.0) * min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE)


def _address(url: str, path: str) -> tuple[str, str, tuple[str, str] | None]:
    """The whole address, what of it may be shown, and the user and password in it.

    These are taken out because httpx logs addresses. A query may be a secret too, so it is not shown.
    """
    parts = _parts(url)
    if not parts.path.endswith(path):
        base = parts.path.rstrip("/")
        parts = parts._replace(path=base + (path.removeprefix("/v1") if base.endswith("/v1") else path))
    user, _, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    parts = parts._replace(netloc=host, fragment="")
    login = (unquote(name), unquote(password)) if user else None
    return urlunsplit(parts), urlunsplit(parts._replace(query="")), login


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # is a ValueError if it is not a number
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable() or " " in url:
        raise InputError("url", "must begin with http:// or https:// and a host, as in https://host/v1")
    return parts


def _checked(key: str) -> str:
    if not _KEY.fullmatch(key.strip()):
        raise InputError("key", "must be letters, digits and signs of ASCII, without spaces")
    return key.strip()


def _key_from_environment(url: str, service: Service) -> str | None:
    if key := os.environ.get(service.own):
        return _checked(key)
    parts = urlsplit(url)
    private = parts.scheme == "https" or parts.hostname in ("localhost", "127.0.0.1", "::1")
    key = os.environ.get(service.other) if private else None
    return _checked(key) if key else None
