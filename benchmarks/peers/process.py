"""A peer's process, spoken to line by line. Only the standard library."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, Self

PATIENCE = 3600.0
"""Seconds for one answer. Thousands of long texts are embedded in one call."""


@contextlib.contextmanager
def store_folder() -> Generator[Path]:
    """A folder for one store, gone in the end, and with it the database servers that a product left running in it."""
    with tempfile.TemporaryDirectory(prefix="peer-") as name:
        folder = Path(name)
        try:
            yield folder
        finally:
            for pid in servers(folder):
                os.kill(pid, signal.SIGINT)  # PostgreSQL's fast shutdown
            deadline = time.monotonic() + 60
            while servers(folder) and time.monotonic() < deadline:
                time.sleep(0.1)


def servers(folder: Path) -> list[int]:
    """The PostgreSQL servers whose data is in the folder."""
    pids = [int(path.read_text().split()[0]) for path in folder.rglob("postmaster.pid")]
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


class PeerError(Exception):
    """The product refused a call, or its process ended."""


class Process:
    def __init__(self, command: list[str], environment: dict[str, str], log: Path, user: str | None = None) -> None:
        with log.open("ab") as errors:
            # A group of its own, so that what the product starts is killed with it.
            self.process = subprocess.Popen(
                command, env=environment, stdin=-1, stdout=-1, stderr=errors, start_new_session=True, user=user
            )
        self.opened = False

    def send(self, what: str, **values: Any) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"do": what, **values}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise PeerError("the process has ended") from None

    def receive(self, patience: float = PATIENCE) -> dict[str, Any]:
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], patience)[0]:
            raise PeerError(f"no answer for {patience:.0f} seconds")
        line = self.process.stdout.readline()
        if not line:
            raise PeerError("the process has ended")
        answer = json.loads(line)
        if not answer["ok"]:
            raise PeerError(answer["error"])
        return answer

    def call(self, what: str, patience: float = PATIENCE, **values: Any) -> dict[str, Any]:
        if not self.opened:
            self.open()
        self.send(what, **values)
        return self.receive(patience)

    def open(self) -> float:
        self.opened = True
        return self.call("open", patience=120.0)["seconds"]

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None and self.process.poll() is None:
            with contextlib.suppress(PeerError, subprocess.TimeoutExpired):
                self.call("close", patience=60.0)
                self._close_pipes()
                self.process.wait(30)
        if self.process.poll() is None:
            self.kill()
