"""A real HTTP server on this machine that answers as a test says."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Asked(NamedTuple):
    """What a request said, and from which port."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    port: int


class Request(BaseHTTPRequestHandler):
    """One request, to be answered. `body` is what was sent with it."""

    protocol_version = "HTTP/1.1"
    body: bytes

    def do_GET(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        assert isinstance(self.server, Server)
        self.server.requests.append(Asked(self.path, dict(self.headers), self.body, self.client_address[1]))
        with suppress(ConnectionError):
            self.server.answer(self)

    do_POST = do_GET  # noqa: N815

    def reply(self, content: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.begin(len(content), status, headers)
        self.wfile.write(content)

    def begin(self, length: int, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Promise so many bytes."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def drop(self) -> None:
        """Break the connection off."""
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *arguments: object) -> None:
        """Nothing on stderr."""


class Server(ThreadingHTTPServer):
    """What was asked, in order, and what decides the answer."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Request], None]) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.answer = answer
        self.requests: list[Asked] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that leaves in the middle is what some tests are about, and nothing to print."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving(answer: Callable[[Request], None]) -> Iterator[Server]:
    with Server(answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def closed_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
