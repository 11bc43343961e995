"""Work that is watched: it is done in time, or the test fails with what every thread was doing.

A thread that hangs cannot be ended. So those here are daemons, and a memory one of them hangs in is never closed, which
would wait for the same lock: the test fails, and the next one goes on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from recollect import Memory

PATIENCE = float(os.environ.get("RECOLLECT_TEST_PATIENCE", "10"))
"""Seconds. Nothing that is tried here takes one, on a machine that does nothing else."""


_lost: set[int | None] = set()
"""Threads that hang in tests before this one, and are of no interest to it."""


def together(*works: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Do all of it at once, each in a thread of its own. An error in one is an error here, and so is a hang."""
    problems: list[BaseException] = []
    begin = threading.Barrier(len(works))

    def watched(work: Callable[[], object]) -> None:
        try:
            begin.wait()
            work()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=watched, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        while thread.is_alive() and not problems and time.monotonic() < deadline:
            thread.join(min(0.1, seconds))
    if problems:
        raise problems[0]
    hanging = [thread for thread in threads if thread.is_alive()]
    if hanging:
        problem = stacks()
        _lost.update(thread.ident for thread in hanging)
        pytest.fail(f"{len(hanging)} of {len(threads)} threads hang after {seconds:g} s\n{problem}", pytrace=False)


def beside(work: Callable[[], object], other: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Do the one once, and the other again and again for as long as that takes."""
    done = threading.Event()

    def first() -> None:
        try:
            work()
        finally:
            done.set()

    def second() -> None:
        other()
        while not done.is_set():
            other()

    together(first, second, seconds=seconds)


def took(work: Callable[[], object]) -> float:
    """How many seconds it takes. It must end."""
    begin = time.monotonic()
    together(work)
    return time.monotonic() - begin


def stacks() -> str:
    """What every thread is doing now, but for this one."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    own_ident = threading.get_ident()
    return "\n".join(
        f"--- {names.get(ident, ident)}\n{''.join(traceback.format_stack(frame)[-14:])}"
        for ident, frame in sys._current_frames().items()
        if ident != own_ident and ident not in _lost
    )


@contextmanager
def opened(url: str, **options: Any) -> Iterator[Memory]:
    """A memory that is closed only if all went well, since closing waits for those who hang in it."""
    memory = Memory(url, **options)
    yield memory
    together(memory.close)


def ended(process: subprocess.Popen[str], seconds: float = PATIENCE) -> str:
    """What a process printed, which ends well and in time. One that hangs says what it does, and is killed."""
    try:
        printed, problem = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # with its children, who would keep the pipe open for ever
        process.kill()
        printed, problem = process.communicate(timeout=PATIENCE)
        pytest.fail(f"the process hangs after {seconds:g} s\n{printed}\n{problem}", pytrace=False)
    assert process.returncode == 0, problem
    return printed


STACKS = f"""
import faulthandler
faulthandler.dump_traceback_later({PATIENCE - 2}, exit=True)
"""
"""What a script begins with, so that it says where it hangs before it is killed."""
