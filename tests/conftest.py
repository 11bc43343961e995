"""What tests of every kind use: a folder, a memory in it, a clock that can be set, and other processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect import Memory

# A model may be installed where tests run. Those that are about meaning ask for one themselves.
os.environ["RECOLLECT_EMBEDDER"] = "none"
# Scripts that tests start import from tests/support as the tests do.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(Path(__file__).parent)]))


class Clock:
    """Says what it was told to say."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)

    def back(self, **by: float) -> None:
        self.now -= timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return str(tmp_path / "memory")


@pytest.fixture
def memory(store_url: str, clock: Clock) -> Iterator[Memory]:
    with Memory(store_url, clock=clock) as memory:
        yield memory


class Script(subprocess.Popen[str]):
    """A script in a Python of its own; its `sys.argv[1:]` are the arguments. `before` is what starts that Python."""

    def __init__(self, script: str, *arguments: object, before: tuple[str, ...] = (), **options: Any) -> None:
        command = [*before, sys.executable, "-c", script, *map(str, arguments)]
        pipe = subprocess.PIPE
        super().__init__(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **options)

    def tell(self, line: str) -> None:
        assert self.stdin is not None
        self.stdin.write(f"{line}\n")
        self.stdin.flush()

    def line(self) -> str:
        assert self.stdout is not None
        return self.stdout.readline().rstrip("\n")

    def finish(self) -> str:
        """Wait for its end, which must be a good one. Returns what it still printed."""
        assert self.stdout is not None
        assert self.stderr is not None
        printed, problem = self.stdout.read(), self.stderr.read()
        assert self.wait(120) == 0, problem
        return printed


@pytest.fixture
def start() -> Iterator[Callable[..., Script]]:
    """Start a script."""
    started: list[Script] = []

    def start(*arguments: Any, **options: Any) -> Script:
        started.append(Script(*arguments, **options))
        return started[-1]

    yield start
    for script in started:
        script.kill()
        script.communicate()


@pytest.fixture
def run(start: Callable[..., Script]) -> Callable[..., str]:
    """Run a script to its end and return what it printed. An error in it is an error here."""
    return lambda *arguments, **options: start(*arguments, **options).finish()
