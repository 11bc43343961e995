"""Runs the command in forks of one process that has imported it already.

A fork takes milliseconds, where a new Python and its imports take a third of a second. What a test sees is the same: a
process of its own with its own environment, folder, files or terminal, and exit code. What is about the start of Python
itself needs a real start.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import pkgutil
import socket
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

_LARGEST_REQUEST = 100_000


class ForkServer:
    """The side of the tests. One command at a time."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "support.fork_server", str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()

    def start(self, words: Sequence[str], env: Mapping[str, str], files: Sequence[int], *, terminal: bool) -> None:
        """Start `recollect` with these words in this folder; `files` are its stdin, stdout and stderr."""
        request = {"words": words, "env": dict(env), "folder": os.getcwd(), "terminal": terminal}
        socket.send_fds(self._socket, [json.dumps(request).encode()], files)

    def wait(self, seconds: float = 120) -> int:
        """The exit code of the command, once it has ended. After a timeout the next command has another server."""
        self._socket.settimeout(seconds)
        try:
            return os.waitstatus_to_exitcode(int(self._socket.recv(100)))
        except TimeoutError:
            _servers.remove(self)
            self._process.kill()
            self.stop()
            raise

    def stop(self) -> None:
        self._socket.close()
        self._process.wait(30)


_servers: list[ForkServer] = []


def fork_server() -> ForkServer:
    """The server of this process, started when it is first needed."""
    if not _servers:
        _servers.append(ForkServer())
    return _servers[0]


def stop() -> None:
    while _servers:
        _servers.pop().stop()


def serve(number: int) -> None:
    """The other side: fork for each request. A fork returns from here, and runs the command."""
    _import_all()
    requests = socket.socket(fileno=number)
    while True:
        data, files, _, _ = socket.recv_fds(requests, _LARGEST_REQUEST, 3)
        if not data:
            os._exit(0)
        child = os.fork()
        if not child:
            requests.close()
            return _become(json.loads(data), files)
        for file in files:
            os.close(file)
        with suppress(OSError):  # the test may have given up
            requests.send(str(os.waitpid(child, 0)[1]).encode())


def _import_all() -> None:
    """Import what commands use, but open nothing and start no thread, neither of which survives a fork."""
    for name in ("apsw", "numpy", "rich.console", "rich.table"):
        importlib.import_module(name)
    package = importlib.import_module("recollect.cli")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"recollect.cli.{module.name}")


def _become(request: dict[str, Any], files: list[int]) -> None:
    if request["terminal"]:
        os.setsid()
        fcntl.ioctl(files[0], termios.TIOCSCTTY, 0)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv[1:] = request["words"]
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    for number, name, errors in ((1, "stdout", "strict"), (2, "stderr", "backslashreplace")):
        buffering = 1 if number == 2 or os.isatty(number) else -1  # 1: by lines
        stream = open(number, "w", buffering, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
    from recollect.cli import main

    main()
