"""A web service that takes and gives JSON: asked again when that can help, and never telling its key."""

from __future__ import annotations

import os
import random
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from recollect.embedders import forking
from recollect.errors import InputError, ModelError
from recollect.record import utc_now

if TYPE_CHECKING:
    import httpx

_FIRST_PAUSE, _LONGEST_PAUSE, _LONGEST_WAIT = 0.5, 20.0, 60.0
_WORTH_ANOTHER_TRY = frozenset([408, 425, 429, 500, 502, 503, 504])
_ADVICE = {
    401: "check the key, in RECOLLECT_EMBEDDING_KEY or OPENAI_API_KEY",
    403: "check what the key may do",
    404: "check the URL, which most often ends in /v1, and the name of the model",
    413: "use a smaller batch_size or max_characters",
    429: "try again later, or raise the limit of your account",
}
_LONGEST_MESSAGE = 300
_KEY = re.compile(r"[!-~]+")
_SECONDS = re.compile(r"\d{1,9}(?:\.\d+)?", re.ASCII)


class Endpoint:
    """`timeout` is in seconds, for each of the tries, of which there are `retries` more than one."""

    def __init__(
        self, url: str, path: str, key: str | None, timeout: float, retries: int, sleep: Callable[[float], None]
    ) -> None:
        self._url, self.shown = _address(url, path)
        self._key = _checked(key) if key else _key_from_environment(self._url)
        self._timeout, self._retries, self._sleep = timeout, retries, sleep
        if find_spec("httpx") is None:
            raise ModelError("httpx is not installed; run `pip install 'recollect[remote]'`")
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        forking.watch(self)

    def post(self, body: Any) -> bytes:
        """The answer to a question, or ModelError when all tries have failed or another would not help."""
        import httpx

        content, problem = msgspec.json.encode(body), ""
        for attempt in range(self._retries + 1):
            pause = _pause(attempt)
            try:
                answer = self._open().post(self._url, content=content)
            except httpx.TimeoutException:
                problem = f"gave no answer within {self._timeout:g} s; is it busy, or the timeout too short?"
            except httpx.RequestError as error:
                problem = f"cannot be reached ({str(error) or type(error).__name__}); is it running, and the URL right?"
            else:
                if answer.is_success:
                    return answer.content
                problem = self._refusal(answer.status_code, answer.content)
                asked = wait_asked(answer.headers.get("retry-after"), utc_now())
                pause = pause if asked is None else asked
                if answer.status_code not in _WORTH_ANOTHER_TRY or pause > _LONGEST_WAIT:
                    break
            if attempt < self._retries:
                self._sleep(pause)
        raise ModelError(f"{self.shown}: {problem}")

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
                headers = {"Content-Type": "application/json"}
                if self._key:
                    headers["Authorization"] = f"Bearer {self._key}"
                self._client = httpx.Client(headers=headers, timeout=self._timeout)
            return self._client

    def _refusal(self, status: int, content: bytes) -> str:
        said = _message(content)
        if self._key:
            said = said.replace(self._key, "***")
        said, advice = said[:_LONGEST_MESSAGE], _ADVICE.get(status, "")
        return f"answered with {status}{said and f' ({said})'}{advice and f'; {advice}'}"


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


def _pause(attempt: int) -> float:
    """Twice as long each time, and never the same for all who were turned away together."""
    return random.uniform(0.5, 1.0) * min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE)


def _message(content: bytes) -> str:
    """What the other side says is wrong, as one line."""
    try:
        said = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = content.decode("utf-8", "replace")
    for name in ("error", "message", "detail"):
        if isinstance(said, dict):
            said = said.get(name, said)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    line = "".join(letter if letter.isprintable() else " " for letter in str(said)[:10_000])  # pyright: ignore[reportUnknownArgumentType]
    return " ".join(line.split())


def _address(url: str, path: str) -> tuple[str, str]:
    """The whole address, and what of it may be shown: a user, a password or a query may be a secret."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError("url", "must begin with http:// or https:// and a host, as in https://host/v1")
    if not parts.path.endswith(path):
        parts = parts._replace(path=parts.path.rstrip("/") + path)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts), urlunsplit((parts.scheme, host, parts.path, "", ""))


def _checked(key: str) -> str:
    if not _KEY.fullmatch(key.strip()):
        raise InputError("key", "must be letters, digits and signs of ASCII, without spaces")
    return key.strip()


def _key_from_environment(url: str) -> str | None:
    """`RECOLLECT_EMBEDDING_KEY`, or OpenAI's; the latter, meant for another program, is never sent unencrypted."""
    if key := os.environ.get("RECOLLECT_EMBEDDING_KEY"):
        return _checked(key)
    parts = urlsplit(url)
    private = parts.scheme == "https" or parts.hostname in ("localhost", "127.0.0.1", "::1")
    key = os.environ.get("OPENAI_API_KEY") if private else None
    return _checked(key) if key else None
