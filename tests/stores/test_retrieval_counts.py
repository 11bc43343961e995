"""Counted retrievals are written by themselves, by whoever forgets to close a memory."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest
from support.stores import STORES, located

from recollect import Memory
from recollect.stores import write_timer

EACH = pytest.mark.parametrize("kind", STORES)
_BEGIN = """
import os, sys, time
from recollect import Memory
from recollect.stores import write_timer
write_timer.SECONDS = {seconds}
memory = Memory({url!r}, embedder="none")
memory.remember("a heron")
def recall(times):
    for _ in range(times):
        assert memory.recall("heron")
"""


def child(url: str, rest: str, seconds: float = 600.0) -> subprocess.Popen[str]:
    code = _BEGIN.format(url=url, seconds=seconds) + rest
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def counted(url: str) -> int:
    with Memory(url, embedder="none") as memory:
        return sum(record.access_count for record in memory.list())


@EACH
@pytest.mark.clause("INK-06")
def test_a_script_that_ends_without_closing_loses_no_count(tmp_path: Path, kind: str) -> None:
    url = located(kind, tmp_path / "memory")
    with child(url, "recall(30)") as script:
        assert script.wait(60) == 0
    assert counted(url) == 30


@EACH
@pytest.mark.clause("INK-06")
def test_a_process_that_is_killed_has_written_what_it_counted_seconds_before(tmp_path: Path, kind: str) -> None:
    url = located(kind, tmp_path / "memory")
    with child(url, "recall(30)\nprint('done', flush=True)\nwhile True: time.sleep(1)", seconds=0.05) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "done\n"
        deadline = time.monotonic() + 60
        while counted(url) < 30 and time.monotonic() < deadline:
            time.sleep(0.05)
        running.kill()
    assert counted(url) == 30


@EACH
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_parent_and_child_each_write_their_own_counts(tmp_path: Path, kind: str) -> None:
    url = located(kind, tmp_path / "memory")
    code = "recall(3)\npid = os.fork()\nrecall(4)\nif pid: assert os.waitpid(pid, 0)[1] == 0\n"
    with child(url, code) as script:
        assert script.wait(60) == 0
    assert counted(url) == 11


@EACH
def test_nothing_is_kept_alive_once_the_counts_are_written(tmp_path: Path, kind: str) -> None:
    memory = Memory(located(kind, tmp_path / "memory"), embedder="none")
    memory.remember("a heron")
    memory.recall("heron")
    gone = weakref.ref(memory)
    write_timer.timer.write_all()
    assert memory.list()[0].access_count == 1
    memory.close()
    del memory
    gc.collect()
    assert gone() is None


def test_counts_that_cannot_be_written_to_a_server_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "postgresql" not in STORES:
        pytest.skip("without PostgreSQL")
    from recollect.stores.postgres import memories

    with Memory(located("postgresql", tmp_path / "memory"), embedder="none") as memory:
        memory.remember("a heron")
        memory.recall("heron")
        with monkeypatch.context() as patched:
            patched.setattr(memories, "_TOUCH", "SELECT 1 / 0 FROM {s}.memories WHERE %s = %s OR %s = ''")
            write_timer.timer.write_all()
        memory.recall("heron")
    assert counted(located("postgresql", tmp_path / "memory")) == 2


def test_the_timer_ends_when_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        tries = 0

        def settle(self) -> bool:
            self.tries += 1
            raise OSError

    monkeypatch.setattr(write_timer, "SECONDS", 0.0)
    timer, store = write_timer.WriteTimer(), Failing()
    timer.schedule(store)
    for thread in threading.enumerate():
        if thread.name == "recollect-writes" and thread.daemon:
            thread.join(60)
    assert store.tries == 5
