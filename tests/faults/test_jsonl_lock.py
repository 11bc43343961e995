"""The writer's lock of ledgers and notebooks: no live holder is robbed, no dead one blocks, readers see no halves."""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from support.common import SECONDS, eventually
from support.jsonl import KINDS, Kept, assert_sound

from recollect import Memory
from recollect.values.errors import ConcurrencyError

if TYPE_CHECKING:
    from support.common import Script

    Start = Callable[..., Script]

pytestmark = pytest.mark.clause("LED-06")


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    return Kept(request.param, tmp_path / "memory")


def note(kept: Kept) -> dict[str, Any]:
    return json.loads((kept.aside / "lock").read_text())


HOLDER = """
import os, sys
from recollect import Memory
memory = Memory(sys.argv[1], preset=sys.argv[2])
real = os.fsync
def waiting(fd):
    os.fsync = real
    print("held", flush=True)
    sys.stdin.readline()
    real(fd)
memory.remember("before")
os.fsync = waiting
memory.remember_many(["by the holder", "by the holder too"])
print("done", flush=True)
"""


def holder(kept: Kept, start: Start) -> Script:
    """Somebody in the middle of writing, with the lock in hand until told to go on."""
    script = start(HOLDER, kept.url, kept.preset)
    assert script.line() == "held"
    return script


def test_the_lock_file_says_who_holds_it_and_why(kept: Kept, start: Start) -> None:
    script = holder(kept, start)
    said = note(kept)
    assert (said["pid"], said["operation"]) == (script.pid, "write")
    held, expires = datetime.fromisoformat(said["timestamp"]), datetime.fromisoformat(said["expires_at"])
    assert held.tzinfo is not None
    assert (expires - held).total_seconds() == 5
    script.tell("go on")
    assert script.line() == "done"
    assert eventually(lambda: note(kept) == {})  # the files that follow the log may be written just now
    script.finish()
    assert note(kept) == {}


def test_a_killed_holder_blocks_nobody_and_its_half_is_taken_back(kept: Kept, start: Start) -> None:
    script = holder(kept, start)
    with kept.open() as memory:
        assert [record.content for record in memory.list()] == ["before"]
        script.send_signal(signal.SIGKILL)
        script.wait()
        assert "from" in note(kept)
        assert [record.content for record in memory.list()] == ["before"]
        memory.remember("after")
        assert sorted(record.content for record in memory.list()) == ["after", "before"]
    assert note(kept) == {}
    assert_sound(kept)


def test_a_stopped_holder_is_never_robbed(tmp_path: Path, start: Start) -> None:
    kept = Kept("ledger", tmp_path / "memory")
    kept.hurry(lock_timeout_ms=50, max_retries=2, retry_backoff_ms=10)
    script = holder(kept, start)
    script.send_signal(signal.SIGSTOP)
    expires = datetime.fromisoformat(note(kept)["expires_at"])
    with kept.open() as memory:
        while datetime.now(expires.tzinfo) <= expires:
            time.sleep(0.01)
        for _ in range(2):
            with pytest.raises(ConcurrencyError, match=rf"process {script.pid} \(write since .* 3 tries of 0\.05 s"):
                memory.remember("by a robber")
        assert [record.content for record in memory.list()] == ["before"]
        script.send_signal(signal.SIGCONT)
        script.tell("go on")
        script.finish()
        memory.remember("in its turn")
        assert sorted(record.content for record in memory.list()) == [
            *("before", "by the holder", "by the holder too", "in its turn")
        ]
    assert_sound(kept)


def test_whoever_waits_gets_the_lock_when_it_is_free(kept: Kept, start: Start) -> None:
    script = holder(kept, start)
    with kept.open() as memory:
        waiting = threading.Thread(target=lambda: memory.remember("by who waited"))
        waiting.start()
        time.sleep(0.05)
        script.tell("go on")
        waiting.join(30)
        script.finish()
        assert memory.stats().total == 4
    assert_sound(kept)


@pytest.fixture
def impatient(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """Waits for a moment at a time, three times more."""
    from recollect.stores.files import notebook
    from recollect.stores.files.config import Concurrency

    if kept.kind == "ledger":
        kept.hurry(lock_timeout_ms=1, max_retries=3, retry_backoff_ms=100)
    else:
        config = replace(notebook._CONFIG, concurrency=Concurrency(1, 3, 100))  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(notebook, "_CONFIG", config)
    return kept


@pytest.mark.parametrize("turn", [1, 2, 3, 4])
def test_whoever_waited_in_vain_tries_again_three_times(
    impatient: Kept, start: Start, monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    """Each time after twice as long. The holder ends in one of the pauses, or after all of them."""
    pauses: list[float] = []
    real = time.sleep

    def pause(seconds: float) -> None:
        if seconds < 0.1:
            real(seconds)
            return
        pauses.append(seconds)
        if len(pauses) == turn:
            script.tell("go on")
            script.finish()

    with impatient.open() as memory:
        script = holder(impatient, start)
        monkeypatch.setattr(time, "sleep", pause)
        if turn <= 3:
            memory.remember("by who tried again")
            assert memory.stats().total == 4
        else:
            with pytest.raises(ConcurrencyError, match=r"through 4 tries of 0\.001 s"):
                memory.remember("by who gave up")
            script.tell("go on")
            script.finish()
            assert memory.stats().total == 3
        assert pauses == [0.1, 0.2, 0.4][:turn]
    assert_sound(impatient)


def test_threads_take_turns(kept: Kept) -> None:
    with kept.open() as memory:

        def work(name: int) -> None:
            for n in range(15):
                memory.remember_many([f"{name} {n} a", f"{name} {n} b"])
                found = [record.content for record in memory.list(limit=1000)]
                assert len(found) % 2 == 0
                assert {f"{name} {k} a" for k in range(n + 1)} <= {*found}

        problems: list[BaseException] = []

        def guarded(name: int) -> None:
            try:
                work(name)
            except BaseException as problem:
                problems.append(problem)

        threads = [threading.Thread(target=guarded, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        assert memory.stats().total == 4 * 15 * 2
    assert_sound(kept)


FORKING = """
import os, sys, threading, time, traceback
from recollect import Memory
memory = Memory(sys.argv[1], preset=sys.argv[2])
memory.remember("first")
stop = threading.Event()
def write():
    n = 0
    while not stop.is_set():
        memory.remember(f"thread {n}")
        n += 1
        time.sleep(0.001)
    written.append(n)
written = []
thread = threading.Thread(target=write)
thread.start()
for child in range(12):
    pid = os.fork()
    if not pid:
        code = 1
        try:
            memory.remember(f"child {child}")
            assert f"child {child}" in [record.content for record in memory.list(limit=10_000)]
            memory.close()
            code = 0
        finally:
            if code:
                traceback.print_exc()
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
thread.join()
found = [record.content for record in memory.list(limit=10_000)]
expected = ["first", *(f"thread {n}" for n in range(written[0])), *(f"child {n}" for n in range(12))]
assert sorted(found) == sorted(expected)
assert memory.doctor().ok
memory.close()
"""


def test_a_fork_while_another_thread_writes_does_no_harm(kept: Kept, run: Callable[..., str]) -> None:
    run(FORKING, kept.url, "recollect")
    assert_sound(kept)


def test_a_lock_file_deleted_while_running_is_made_anew(kept: Kept) -> None:
    with kept.open() as one, kept.open() as other:
        for n in range(5):
            one.remember(f"one {n}")
            (kept.aside / "lock").unlink()
            other.remember(f"other {n}")
            assert one.stats().total == other.stats().total == 2 * n + 2
    assert note(kept) == {}
    assert_sound(kept)


@pytest.mark.clause("LED-12")
def test_a_workspace_dropped_by_another_process_is_empty_and_can_be_written(
    kept: Kept, run: Callable[..., str]
) -> None:
    drop = (
        "import sys; from recollect import Memory; m = Memory(sys.argv[1], preset=sys.argv[2]).at(workspace='shop'); "
    )
    with kept.open() as memory:
        shop = memory.at(workspace="shop")
        for n in range(3):
            shop.remember(f"zugunruhe {n}")
            run(drop + "m.forget(workspace='shop')", kept.url, kept.preset)
            assert shop.list() == []
            assert shop.recall("zugunruhe") == []
        shop.remember("a heron")
        shutil.rmtree(kept.root)
        shop.remember("a fox")
        assert [record.content for record in shop.list()] == ["a fox"]
        assert shop.doctor().ok
    assert b"zugunruhe" not in b"".join(path.read_bytes() for path in kept.root.rglob("*") if path.is_file())


WRITER = """
import sys, time
from recollect import Memory
url, preset, name, until = sys.argv[1], sys.argv[2], sys.argv[3], time.time() + float(sys.argv[4])
memory = Memory(url, preset=preset)
n = 0
while time.time() < until:
    memory.remember_many([f"{name} {n} {part} of 3" for part in range(3)])
    n += 1
    if n % 20 == 10:
        mark = memory.remember("to be gone", again=True)  # else both writers would forget the same note
        memory.forget(mark.id)
    if n % 50 == 0:
        memory.compact()
print(n)
memory.close()
"""

READER = """
import sys, time
from collections import Counter
from recollect import Memory
url, preset, until = sys.argv[1], sys.argv[2], time.time() + float(sys.argv[3])
memory = Memory(url, preset=preset)
last = Counter()
looks = 0
while not looks or time.time() < until:
    if looks % 40 == 39:
        memory.close()
        memory = Memory(url, preset=preset)
    batches = Counter()
    for record in memory.list(limit=100_000):
        if record.content != "to be gone":
            name, n, part, *_ = record.content.split()
            batches[name, int(n)] += 1
    assert set(batches.values()) <= {3}, [key for key, count in batches.items() if count != 3]
    seen = Counter(name for name, n in batches)
    for name, count in seen.items():
        assert {n for other, n in batches if other == name} == set(range(count)), "a gap"
    assert all(seen[name] >= count for name, count in last.items()), (last, seen)
    last = seen
    looks += 1
memory.close()
print(looks)
"""


@pytest.mark.slow
@pytest.mark.clause("LED-19")
@pytest.mark.parametrize("kind", KINDS)
def test_two_writers_and_eight_readers_see_whole_batches_without_gaps(tmp_path: Path, start: Start, kind: str) -> None:
    kept = Kept(kind, tmp_path / "memory")
    preset = kept.preset if kind == "ledger" else "recollect"  # which keeps more than 500
    writers = [start(WRITER, kept.url, preset, name, SECONDS) for name in ("one", "two")]
    readers = [start(READER, kept.url, preset, SECONDS) for _ in range(8)]
    written = {name: int(writer.finish()) for name, writer in zip(("one", "two"), writers, strict=True)}
    assert all(int(reader.finish()) > 0 for reader in readers)
    with Memory(kept.url, preset=preset) as memory:
        found = [record.content for record in memory.list(limit=100_000)]
        expected = [
            f"{name} {n} {part} of 3" for name, count in written.items() for n in range(count) for part in range(3)
        ]
        assert sorted(found) == sorted(expected)
        assert memory.doctor().ok
