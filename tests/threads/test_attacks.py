"""What somebody who wished the memory ill has found, kept so that it stays mended."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from support.common import SECONDS
from support.concepts import Concepts
from support.stores import FILES, STORES, located, traces
from support.watchdog import together

from recollect import ConcurrencyError, Memory, RecollectError
from recollect.stores.audit import Entry

STORM = min(SECONDS, 5)
"""Seconds that threads go on for in each test."""


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "m")


def test_recall_goes_on_after_the_ends_of_conversations_are_forgotten(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        ids = [memory.remember(f"tea {number}", conversation=name).id for number, name in enumerate("cdec")]
        assert len(memory.recall("tea")) == 4
        memory.forget(ids[0])
        memory.forget([ids[2], ids[3]])
        assert [hit.memory.id for hit in memory.recall("tea")] == [ids[1]]


def test_a_sound_store_is_called_sound_however_often_it_is_looked_at(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        for _ in range(3):
            memory.remember("tea and coffee")
            assert memory.verify() == []
            memory.undo()
            assert memory.verify() == []
            assert memory.doctor().ok


def _undo(memory: Memory, undone: list[Entry]) -> None:
    undone.append(memory.undo())


def test_threads_that_undo_at_once_undo_different_changes(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        for _ in range(5):
            kept = {memory.remember(f"note {number}").id for number in range(4)}
            undone: list[Entry] = []
            together(*[partial(_undo, memory, undone)] * 4)
            assert len({entry.meta["of"] for entry in undone}) == 4
            assert not kept & {record.id for record in memory.list()}


def test_erasing_a_conversation_erases_notes_that_were_overwritten_or_cleared(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        pad = memory.at(conversation="c").scratchpad
        pad.write("k", "overwrittenzq")
        pad.write("k", "newzq")
        pad.write("j", "clearedzq")
        pad.clear("j")
        memory.remember("hi", conversation="c")
        memory.forget(conversation="c", erase=True)
        assert traces(url, b"zq") == []


HOLDER = """
import fcntl, sqlite3, sys, time
if sys.argv[1].endswith(".db"):
    db = sqlite3.connect(sys.argv[1], isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
else:
    file = open(sys.argv[1], "r+")
    fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("url", FILES, indirect=True)
def test_nobody_waits_for_a_writer_to_write_vectors_or_counts(url: str, tmp_path: Path) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many(f"tea number {number}" for number in range(20))
    held = next(path for path in sorted(tmp_path.rglob("*")) if path.name in ("memory.db", "lock"))
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(held)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        memory = Memory(url, embedder=Concepts())
        memory.recall("tea")  # the first may wait for vectors to be made
        started = time.monotonic()
        for _ in range(5):
            assert memory.recall("tea")
        memory.close()
        assert time.monotonic() - started < 3.0
    finally:
        holder.kill()
        holder.wait()
        assert holder.stdout is not None
        holder.stdout.close()


def test_closing_while_others_compact_holds_nobody_up(url: str) -> None:
    memory = Memory(url, embedder="none")
    memory.remember("tea")
    stop = time.monotonic() + STORM

    def until(deed: object) -> None:
        while time.monotonic() < stop:
            with suppress(ConcurrencyError):  # whatever is closed again and again may ask to be tried again
                deed()  # type: ignore[operator]

    together(
        lambda: until(memory.compact),
        lambda: until(lambda: memory.remember("coffee")),
        lambda: until(lambda: (memory.close(), time.sleep(0.001))),
    )
    assert memory.recall("tea")
    memory.close()


def test_forgetting_a_workspace_beside_readers_raises_no_false_alarm(url: str) -> None:
    stop, alarms = time.monotonic() + STORM, list[str]()
    with Memory(url, embedder="none") as memory:
        view = memory.at(workspace="w")

        def fill() -> None:
            while time.monotonic() < stop:
                for number in range(5):
                    view.remember(f"tea {number}")
                view.forget(workspace="w")

        def read() -> None:
            while time.monotonic() < stop:
                try:
                    view.recall("tea")
                    view.stats()
                    view.list()
                    alarms.extend(str(damage) for damage in view.verify())
                except RecollectError as error:
                    alarms.append(repr(error))

        together(fill, read, read, read)
    assert alarms == []


FORKS = """
import os, sys, threading, time
from recollect import Memory
memory = Memory(sys.argv[1], embedder="none")
memory.remember("tea")
stop, kept = time.monotonic() + float(sys.argv[2]), []
def work(number):
    while time.monotonic() < stop:
        if number % 3 == 0:
            kept.append(memory.remember("tea").id)
        elif number % 3 == 1:
            memory.recall("tea")
        else:
            memory.list(limit=5)
threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
for thread in threads:
    thread.start()
while time.monotonic() < stop:
    pid = os.fork()
    if pid == 0:
        import signal
        signal.alarm(15)
        memory.remember("of a child")
        assert memory.recall("tea")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
for thread in threads:
    thread.join()
assert set(kept) <= {record.id for record in memory.list(limit=1_000_000)}
assert memory.verify() == []
assert all(log.ok for log in memory.audit.verify())
print("sound")
"""


def test_forks_in_a_storm_of_threads_leave_parent_and_children_whole(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS, url, str(STORM)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert (done.stdout, done.returncode) == ("sound\n", 0), done.stderr[-2000:]


def test_a_child_forked_during_the_first_recall_answers(url: str) -> None:
    script = """
import os, sys, threading, time
from recollect import Memory
memory = Memory(sys.argv[1], embedder="none")
memory.remember("tea")
threading.Thread(target=lambda: memory.recall("tea"), daemon=True).start()
time.sleep(0.01)
pid = os.fork()
if pid == 0:
    import signal
    signal.alarm(15)
    assert memory.recall("tea")
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, url]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 0


def test_an_id_means_one_memory_of_all_that_a_view_sees(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        own, shared = memory.remember("of the workspace"), memory.remember("of the account", tier="account")
        assert own.id != shared.id
        assert memory.get(shared.id).text == "of the account"
        memory.forget(shared.id, erase=True)
        assert [record.text for record in memory.list()] == ["of the workspace"]
