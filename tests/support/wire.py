"""A wire between a client and a server that can be cut at an exact moment."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Literal

Cut = Literal["before", "after", "late", "unheard"]
"""`before` loses what the client sent, `after` the server's answer to it; `late` brings it when the client is gone.

Of `unheard` the server learns nothing, not even that the client is gone.
"""


class Wire:
    """Listens on a port of its own and passes everything on, until it is told to cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._cut: Cut | None = None
        self._mark = b""
        self._change = threading.Lock()
        self._held: list[socket.socket] = []
        self.cuts = 0
        self.open = threading.Event()
        """While this is not set nobody gets through: whoever comes is sent away."""
        self.open.set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._start(self._accept)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}?sslmode=disable&gssencmode=disable"

    def cut(self, how: Cut, mark: bytes = b"COMMIT\0") -> None:
        """Once, where a client sends this mark, and does not begin a transaction along with it."""
        self._mark, self._cut = mark, how

    def _start(self, work: object, *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()  # type: ignore[arg-type]

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if not self.open.is_set():
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                client.close()
                continue
            answer = threading.Event()
            """Set when what the server says is not to be passed on."""
            self._start(self._upwards, client, server, answer)
            self._start(self._downwards, client, server, answer)

    def _upwards(self, client: socket.socket, server: socket.socket, muted: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 20):
                how = self._due(data)
                if how is None:
                    server.sendall(data)
                    continue
                muted.set()
                if how == "unheard":
                    _end(client)
                    self._held.append(server)
                    return
                if how == "late":
                    _end(client)
                    time.sleep(0.4)
                if how != "before":
                    server.sendall(data)
                    time.sleep(0.2)  # for the server to have done it
                break
        _end(client, server)

    def _due(self, data: bytes) -> Cut | None:
        with self._change:
            if self._cut is None or self._mark not in data or b"BEGIN" in data:
                return None
            how, self._cut = self._cut, None
            self.cuts += 1
            return how

    def _downwards(self, client: socket.socket, server: socket.socket, muted: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 20):
                if not muted.is_set():
                    client.sendall(data)
        if not muted.is_set():
            _end(client, server)


def _end(*sockets: socket.socket) -> None:
    for end in sockets:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
