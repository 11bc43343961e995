"""The way to a server: one pool of connections, and a second try where that cannot do anything twice."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from recollect.operations import Operation, Signature, find_operation
from recollect.remote import wire
from recollect.runtime import imports
from recollect.values import validation
from recollect.values.errors import AccessError, InputError, StoreError, UnavailableError
from recollect.values.record import Record

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
_TIMEOUT = 60.0
_PAUSES = (0.1, 0.5, 1.5)
"""Seconds before another try."""
_PATIENCE = 600.0
"""Seconds to wait for what the server says that it is working on, and for an export or import, which takes long."""
_BUSY = frozenset((429, 502, 503, 504))


class Client:
    """Of one server, for as many threads as there are."""

    def __init__(self, url: str, key: str | None) -> None:
        if find_spec("httpx") is None:
            raise StoreError("httpx is not installed; run `pip install 'recollect[remote]'`")
        self.url = _address(url)
        self._key = (key or "").strip()  # a key that was read from a file ends with a line
        if not self._key.isascii() or not self._key.isprintable():
            raise InputError("key", "has characters that no key has")
        self._lock = threading.Lock()
        self._opened: tuple[int, httpx.Client] | None = None
        self.unsaved = 0
        """Writes that are in the server's memory only, as it said with its last answer."""

    def call(
        self, operation: str, signature: Signature, address: Mapping[str, str], arguments: Mapping[str, Any]
    ) -> tuple[bool, Any]:
        """Whether the disk refuses what was just written, and what the verb gives; or the error that it raises."""
        known_operation = find_operation(operation)
        path, rest = _path(known_operation, arguments)
        headers = wire.address_headers(address)
        if signature.gives is Record:  # one memory is given whole; in a list, vectors would be most of what is sent
            headers = {**headers, wire.VECTORS: "1"}
        if known_operation.method == "GET":
            defaults = {parameter.name: parameter.default for parameter in signature.takes}
            kinds = {parameter.name: parameter.type for parameter in signature.takes}
            asked = {name: value for name, value in rest.items() if value is not None or defaults.get(name) is not None}
            query = [
                (name, text)
                for name, value in asked.items()
                for text in wire.in_query(name, value, kinds[name], defaults.get(name))
            ]
            answer = self.send("GET", path, headers, params=query)
        else:
            answer = self.send(
                known_operation.method, path, headers, writes=known_operation.writes, content=_body(rest, signature)
            )
        with self._understood():
            waiting = answer.headers.get(wire.WAITING, "")
            self.unsaved = int(waiting) if waiting.isdecimal() else 0
            return wire.UNSAVED in answer.headers, wire.decoded(answer.content, signature)

    def about(self) -> bytes:
        """What the server says of itself."""
        return self.send("GET", "/about", {}).content

    def read(self, content: bytes, kind: type[T]) -> T:
        with self._understood():
            return msgspec.json.decode(content, type=kind)
        raise AssertionError

    def send(
        self, method: str, path: str, headers: Mapping[str, str], *, writes: bool = False, **more: Any
    ) -> httpx.Response:
        """Tried again where the server was not reached or is busy; it knows by the key what it has written already.

        What only reads and is slow is not sent again: the server would do the same work once more beside the first.
        """
        import httpx

        sent = dict(headers)
        if method != "GET":
            sent |= {"idempotency-key": uuid.uuid4().hex, "content-type": "application/json"}
        pauses, until = iter(_PAUSES), time.monotonic() + _PATIENCE
        while True:
            try:
                answer = self._http().request(method, f"{self.url}/v1{path}", headers=sent, **more)
            except httpx.TransportError as error:
                is_slow_read = isinstance(error, httpx.ReadTimeout) and not writes
                if is_slow_read or (pause := next(pauses, None)) is None:
                    raise self._unavailable(error, _TIMEOUT) from error
                time.sleep(pause)
                continue
            retry_after = answer.headers.get("retry-after", "")
            if answer.status_code == 409 and retry_after and time.monotonic() < until:
                time.sleep(0.2)  # what was sent before the connection was lost is being worked on
            elif answer.status_code in _BUSY and (pause := next(pauses, None)) is not None:
                time.sleep(min(float(retry_after), 5.0) if retry_after.isdecimal() else pause)
            else:
                return self._checked(answer)

    @contextmanager
    def download(self, path: str, address: Mapping[str, str]) -> Generator[Iterator[bytes]]:
        import httpx

        headers = wire.address_headers(address)
        try:
            with self._http().stream("GET", f"{self.url}/v1{path}", headers=headers, timeout=_patient()) as answer:
                if answer.status_code != 200:
                    answer.read()
                    self._checked(answer)
                    raise self._strange(answer.status_code)
                yield answer.iter_bytes()
        except httpx.TransportError as error:
            raise self._unavailable(error, _PATIENCE) from error

    def upload(self, path: str, address: Mapping[str, str], stream: IO[bytes]) -> bytes:
        parts = iter(lambda: stream.read(1 << 16), b"")
        import httpx

        headers = {**wire.address_headers(address), "content-type": "application/json"}
        try:
            answer = self._http().post(f"{self.url}/v1{path}", headers=headers, content=parts, timeout=_patient())
        except httpx.TransportError as error:
            raise self._unavailable(error, _PATIENCE) from error
        return self._checked(answer).content

    def close(self) -> None:
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None and opened[0] == os.getpid():
            opened[1].close()

    def _http(self) -> httpx.Client:
        """One for each process: a connection cannot be shared with a child."""
        imports.load("httpx")
        import httpx

        with self._lock:
            if self._opened is None or self._opened[0] != os.getpid():
                headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
                # Without TLS nobody's certificate is looked at, and reading all of them would take a while.
                verify = self.url.startswith("https:")
                self._opened = os.getpid(), httpx.Client(headers=headers, timeout=_TIMEOUT, verify=verify)
            return self._opened[1]

    def _unavailable(self, error: httpx.TransportError, seconds: float) -> UnavailableError:
        import httpx

        if isinstance(error, httpx.ReadTimeout):
            return UnavailableError(f"{self.url} gave no answer within {seconds:g} s; it may still be at work")
        return UnavailableError(f"{self.url} cannot be reached: {error}")

    @contextmanager
    def _understood(self) -> Generator[None]:
        """Something else than recollect may answer at the address, such as a page to log in at."""
        try:
            yield
        except msgspec.MsgspecError:
            raise self._strange(200) from None

    def _strange(self, status: int) -> StoreError:
        return StoreError(f"{self.url} says {status}, and not as recollect does")

    def _checked(self, answer: httpx.Response) -> httpx.Response:
        if 300 <= answer.status_code < 400:
            raise StoreError(f"{self.url} leads on to {answer.headers.get('location', 'elsewhere')}; give that address")
        if answer.status_code < 400:
            return answer
        try:
            problem = msgspec.json.decode(answer.content, type=wire.Problem)
        except msgspec.MsgspecError:
            raise self._strange(answer.status_code) from None
        if answer.status_code == 401:
            raise AccessError(f"{self.url}: {problem.detail}")
        raise problem.error()


def _patient() -> httpx.Timeout:
    import httpx

    return httpx.Timeout(_TIMEOUT, read=_PATIENCE)


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.username or parts.password or "@" in parts.netloc:
        raise InputError("store", "must not hold a user or a password; a key is given by itself, or in RECOLLECT_KEY")
    if parts.query or parts.fragment or not parts.netloc:
        raise InputError("store", "must be the address of a server and no more, such as https://memory.example.org")
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")


def _body(arguments: Mapping[str, Any], signature: Signature) -> bytes:
    parameters = {parameter.name: parameter for parameter in signature.takes}
    parts: list[bytes] = []
    for name, value in arguments.items():
        parameter = parameters.get(name)
        if parameter is None:  # of a file that goes along
            ready = value
        elif parameter.is_zone and value is not None:
            ready = validation.zone(value)
        else:
            ready = wire.sendable(parameter, value)
        try:
            parts.append(msgspec.json.encode(name) + b":" + wire.encoded(ready))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError(name, f"cannot be sent to a server: {error}") from None
    return b"{" + b",".join(parts) + b"}"


def _path(operation: Operation, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Where a call goes, and the arguments that are no part of that."""
    path, rest = operation.path, dict(arguments)
    for name in list(rest):
        if f"{{{name}}}" in path:
            value = rest.pop(name)
            if not isinstance(value, str) or not value:
                raise InputError(name, "must be a text that is not empty")
            quoted = quote(value, safe="")
            # Dots alone would be taken for a step up the path.
            path = path.replace(f"{{{name}}}", quoted if quoted.strip(".") else quoted.replace(".", "%2E"))
    return path, rest
