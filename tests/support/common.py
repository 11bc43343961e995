"""A clock that can be set, scripts in processes of their own, and how much time there is."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

LONG = os.environ.get("RECOLLECT_TEST_PROFILE") == "long"
"""Whether there is time, as in `make test-long`. What is repeated to meet rare cases is repeated more often then."""
SECONDS = float(os.environ.get("RECOLLECT_TEST_SECONDS", "3")) / 3
"""How long whatever goes on for a time, to meet rare cases, goes on with each store."""
DISK = os.environ.get("RECOLLECT_TEST_DISK") or tempfile.gettempdir()
"""A folder on a real disk."""


def times(number: int) -> range:
    """So many rounds of what takes long, or a quarter of them where there is no time."""
    return range(number if LONG else number // 4)


def eventually(holds: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether it holds within that time, which is long so that no slow machine fails."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


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
