"""Real processes on one folder: what one was told is stored is there, whatever happens to the others."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.common import times

from recollect import ConflictError, Memory
from recollect.stores.sqlite import database

if TYPE_CHECKING:
    from support.common import Clock, Script

    Start = Callable[..., Script]
    Run = Callable[..., str]

WRITER = """
import sys
from recollect import Memory
folder, name, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Memory(folder) as memory:
    for n in range(number):
        print(memory.at(agent=name).remember(f"{name} saw heron number {n}").id, flush=True)
"""

READER = """
import sys
from recollect import Memory
with Memory(sys.argv[1]) as memory:
    for n in range(int(sys.argv[2])):
        for hit in memory.recall("heron", limit=20):
            assert "heron" in hit.memory.text and hit.memory.digest() == hit.memory.checksum
        for record in memory.list(limit=20):
            assert memory.get(record.id).content == record.content
        memory.stats()
"""


def sound(memory: Memory) -> bool:
    """Every file whole, every audit log unbroken."""
    return memory.doctor().ok and all(log.ok for log in memory.audit.verify())


def killed(process: Script, after: float) -> list[str]:
    """End a process the hard way, after so many seconds. Returns the lines that it had still printed in full."""
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    assert process.stdout is not None
    assert process.stderr is not None
    lines = process.stdout.readlines()
    assert process.stderr.read() == ""
    assert process.wait() == -signal.SIGKILL
    return [line for line in lines if line.endswith("\n")]


@pytest.mark.slow
def test_four_writers_and_two_readers_share_a_folder(store_url: str, start: Start) -> None:
    writers = [start(WRITER, store_url, f"agent{n}", 40) for n in range(4)]
    readers = [start(READER, store_url, 40) for _ in range(2)]
    acknowledged = [writer.finish().split() for writer in writers]
    for reader in readers:
        reader.finish()
    with Memory(store_url) as memory:
        for ids in acknowledged:
            assert len(ids) == 40
            assert [memory.get(ident).id for ident in ids] == ids
        assert memory.stats().total == 160
        assert memory.stats().agents == {f"agent{n}": 40 for n in range(4)}
        (log,) = memory.audit.verify()
        assert (log.ok, log.entries) == (True, 160)
        assert sound(memory)


CHANGING = """
import random, sys
from recollect import Memory
memory, draw = Memory(sys.argv[1]), random.Random(int(sys.argv[2]))
mine = []  # each with its earlier versions, which are forgotten with it
def say(*lines):
    print(*lines, sep="\\n", flush=True)
while True:
    kind = draw.choice(("remember", "remember", "remember", "many", "forget", "revise", "recall"))
    if kind == "remember" or not mine:
        mine.append([memory.remember("a heron " * draw.randint(1, 300)).id])
        say(f"there {mine[-1][-1]}")
    elif kind == "many":
        for record in memory.remember_many(f"heron {n}" for n in range(20)):
            say(f"there {record.id}")
    elif kind == "forget":
        gone = mine.pop(draw.randrange(len(mine)))
        say(*(f"unsure {ident}" for ident in gone))
        memory.forget(gone[-1], erase=draw.random() < 0.3)
        say(*(f"gone {ident}" for ident in gone))
    elif kind == "revise":
        versions = draw.choice(mine)
        versions.append(memory.revise(versions[-1], content="a grey heron").id)
        say(f"there {versions[-1]}")
    else:
        memory.recall("heron")
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_writer_killed_at_any_moment_loses_nothing_it_had_acknowledged(
    store_url: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.0)  # whoever finds a lock left behind fails at once
    draw = random.Random(20260301)
    last: dict[str, str] = {}
    for turn in times(32):
        writer = start(CHANGING, store_url, turn)
        lines = [writer.line() for _ in range(draw.randint(1, 40))]
        lines += killed(writer, after=draw.random() * 0.01)
        last |= {ident: word for word, ident in map(str.split, lines)}
        with Memory(store_url) as memory:
            stored = {record.id for record in memory.list(state=None, limit=100_000)}
            wrong = [word for ident, word in last.items() if word == ("gone" if ident in stored else "there")]
            assert wrong == []
            assert sound(memory)
            memory.remember("life goes on")
    assert Counter(last.values())["there"] > 50


BATCHES = """
import sys
from itertools import count
from recollect import Memory
memory = Memory(sys.argv[1])
for n in count(int(sys.argv[2])):
    print("begin", n, flush=True)
    memory.remember_many({"content": f"batch {n} item {i} " * 8, "tags": [f"batch{n}"]} for i in range(400))
    print("stored", n, flush=True)
"""


@pytest.mark.slow
def test_remember_many_killed_in_the_middle_is_all_or_nothing(store_url: str, start: Start) -> None:
    draw = random.Random(7)
    first, unfinished = 0, 0
    for _ in range(10):
        writer = start(BATCHES, store_url, first)
        lines = [writer.line(), *killed(writer, after=draw.random() * 0.08)]
        begun, stored = (
            {int(line.split()[1]) for line in lines if line.startswith(word)} for word in ("begin", "stored")
        )
        with Memory(store_url) as memory:
            for batch in begun:
                found = len(memory.list(tags=[f"batch{batch}"], limit=1000))
                assert found == 400 if batch in stored else found in (0, 400)
                unfinished += found == 0
            assert sound(memory)
        first = max(begun) + 1
    assert unfinished, "no process was killed in the middle: the test shows nothing"


REVISER = """
import sys
from recollect import ConflictError, Memory
folder, name, *ids = sys.argv[1:]
with Memory(folder) as memory:
    memory.stats()
    print("ready", flush=True)
    sys.stdin.readline()
    for ident in ids:
        try:
            print(ident, memory.revise(ident, content=f"as {name} knows it").id)
        except ConflictError:
            print(ident, "ConflictError")
"""


def test_of_two_processes_that_revise_the_same_memory_exactly_one_wins(store_url: str, start: Start) -> None:
    with Memory(store_url) as memory:
        ids = [record.id for record in memory.remember_many(f"version one of {n}" for n in range(30))]
        both = [start(REVISER, store_url, name, *ids) for name in ("left", "right")]
        assert [process.line() for process in both] == ["ready", "ready"]
        for process in both:
            process.tell("go")
        outcomes = [dict(line.split() for line in process.finish().splitlines()) for process in both]
        for ident in ids:
            results = [outcome[ident] for outcome in outcomes]
            assert results.count("ConflictError") == 1
            (winner,) = (result for result in results if result != "ConflictError")
            assert [record.id for record in memory.history(ident)] == [ident, winner]
        assert memory.stats().states == {"live": 30, "superseded": 30}
        assert sound(memory)


HOLDER = """
import sys
from recollect import Memory
memory = Memory(sys.argv[1])
shop = memory.at(workspace="shop")
old = shop.remember("a heron in the old shop")
assert len(shop.recall("heron")) == 1
print("open", flush=True)
sys.stdin.readline()
assert shop.recall("heron") == []
assert shop.list(state=None) == []
assert shop.stats().total == 0
try:
    shop.get(old.id)
    raise SystemExit("the forgotten was served")
except LookupError:
    pass
print(shop.remember("a fox in the new shop").id, flush=True)
assert [hit.memory.text for hit in shop.recall("fox heron")] == ["a fox in the new shop"]
memory.close()
"""


@pytest.mark.clause("INK-09")
def test_a_process_that_has_a_workspace_open_when_another_forgets_it_goes_on_in_a_new_one(
    store_url: str, start: Start
) -> None:
    holder = start(HOLDER, store_url)
    assert holder.line() == "open"
    with Memory(store_url) as memory:
        shop = memory.at(workspace="shop")
        assert shop.forget(workspace="shop").count == 1
        assert not Path(store_url, "default", "workspaces", "shop").exists()
        holder.tell("go on")
        new = holder.finish().split()
        assert [record.id for record in shop.list(state=None)] == new
        assert sound(shop)


FORGETTER = """
import sys
from recollect import Memory
with Memory(sys.argv[1]) as memory:
    for n in range(int(sys.argv[2])):
        memory.at(workspace="shop").forget(workspace="shop")
"""

SHOPPER = """
import sys
from recollect import Memory
with Memory(sys.argv[1]) as memory:
    shop = memory.at(workspace="shop")
    for n in range(int(sys.argv[2])):
        shop.remember(f"heron number {n}")
        shop.recall("heron")
        shop.list()
        shop.stats()
        shop.audit.search("remembered")
"""


@pytest.mark.slow
def test_a_workspace_may_be_forgotten_again_and_again_while_others_use_it(store_url: str, start: Start) -> None:
    shoppers = [start(SHOPPER, store_url, 60) for _ in range(2)]
    forgetter = start(FORGETTER, store_url, 25)
    for process in (*shoppers, forgetter):
        process.finish()
    with Memory(store_url) as memory:
        assert sound(memory.at(workspace="shop"))
        assert len(memory.audit.search("forgot the workspace", limit=100)) == 25
    assert list(Path(store_url).rglob(".trash-*")) == []


FORKER = """
import os, sys
from recollect import Memory
def say(ident):
    os.write(1, ident.encode() + b"\\n")  # in one piece: two processes share the pipe
folder, parent_first = sys.argv[1], sys.argv[2] == "parent first"
memory = Memory(folder)
say(memory.remember("before the fork").id)
assert memory.recall("fork")
to_child, from_parent = os.pipe(), os.pipe()
child = os.fork()
if not child:
    for n in range(10):
        say(memory.remember(f"child {n}").id)
    os.write(from_parent[1], b"x")
    if parent_first:
        os.read(to_child[0], 1)
    for n in range(10):
        say(memory.remember(f"child again {n}").id)
    assert len(memory.recall("child", limit=100)) == 20
    memory.close()
    os._exit(0)
for n in range(10):
    say(memory.remember(f"parent {n}").id)
os.read(from_parent[0], 1)
if parent_first:
    memory.close()
    os.write(to_child[1], b"x")
status = os.waitpid(child, 0)[1]
say(memory.remember("after the child").id)
assert len(memory.recall("child parent", limit=100, min_relevance=0)) == 31
memory.close()
sys.exit(status)
"""


@pytest.mark.parametrize("order", ["parent first", "child first"])
def test_parent_and_child_of_a_fork_both_keep_working(store_url: str, run: Run, order: str) -> None:
    ids = run(FORKER, store_url, order).split()
    assert len(ids) == 32
    with Memory(store_url) as memory:
        assert {record.id for record in memory.list(limit=100)} == set(ids)
        assert sound(memory)


FORKING_THREADS = """
import os, sys, threading
from recollect import Memory
memory = Memory(sys.argv[1])
done = threading.Event()
def write(name):
    while not done.is_set():
        ids.append(memory.remember(f"{name} of the parent").id)
        memory.recall("parent")
        memory.stats()
ids = []
threads = [threading.Thread(target=write, args=(f"thread {n}",)) for n in range(2)]
for thread in threads:
    thread.start()
try:
    for n in range(10):
        child = os.fork()
        if not child:
            print(memory.remember(f"child {n}").id, flush=True)
            memory.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
finally:
    done.set()
for thread in threads:
    thread.join()
memory.close()
print(*ids, sep="\\n")
"""


def test_a_program_may_fork_while_its_threads_write(store_url: str, run: Run) -> None:
    ids = run(FORKING_THREADS, store_url).split()
    with Memory(store_url) as memory:
        assert {record.id for record in memory.list(limit=100_000)} == set(ids)
        assert sound(memory)


def test_eight_threads_share_one_memory(memory: Memory) -> None:
    problems: list[BaseException] = []
    shared = memory.remember("everyone revises this")

    def work(name: str) -> None:
        try:
            mine = memory.at(agent=name)
            for n in range(8):
                record = mine.remember(f"{name} saw heron number {n}")
                assert mine.get(record.id) == record
                assert mine.recall(f"{name} heron")
                if n % 2:
                    mine.forget(record.id)
                else:
                    mine.revise(record.id, importance=1.0)
            try:
                memory.revise(shared.id, content=f"as {name} knows it")
            except ConflictError:
                return
            winners.append(name)
        except BaseException as problem:
            problems.append(problem)

    winners: list[str] = []
    threads = [threading.Thread(target=work, args=(f"agent{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert problems == []
    assert len(winners) == 1
    assert memory.stats().states == {"live": 8 * 4 + 1, "superseded": 8 * 4 + 1}
    assert sound(memory)


def test_a_memory_can_be_closed_while_threads_still_write(store_url: str) -> None:
    memory = Memory(store_url)
    memory.remember("a heron")
    done = threading.Event()

    def write() -> None:
        for n in count():
            record = memory.remember(f"heron {n}")
            memory.revise(record.id, importance=1.0)
            if done.is_set():
                return

    def write_until_closed() -> None:
        try:
            write()
        except Exception as problem:
            problems.append(problem)

    problems: list[Exception] = []
    threads = [threading.Thread(target=write_until_closed, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        memory.close()
    done.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    memory.close()
    assert all(type(problem).__module__ == "recollect.values.errors" for problem in problems)
    with Memory(store_url) as again:
        assert sound(again)


@pytest.mark.clause("INK-06")
def test_retrievals_are_still_counted_after_a_restart(store_url: str, clock: Clock) -> None:
    with Memory(store_url, clock=clock) as memory:
        record = memory.remember("a heron")
        for _ in range(3):
            clock.forward(hours=1)
            memory.recall("heron")
    with Memory(store_url, clock=clock) as memory:
        again = memory.get(record.id)
        assert (again.access_count, again.accessed_at) == (3, clock.now)


FILES = """
import os, sys
from recollect import Memory
folder = sys.argv[1]
def open_files():
    links = (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))
    paths = (os.readlink(link) for link in links if os.path.islink(link))
    return [os.path.relpath(path, folder) for path in paths if path.startswith(folder)]
memory = Memory(folder)
assert open_files() == []
memory.at(workspace="w50").recall("heron")
print(*sorted({path.removesuffix("-wal").removesuffix("-shm") for path in open_files()}))
for n in range(100):
    assert len(memory.at(workspace=f"w{n}").recall("heron")) == 1
print(len(open_files()))
memory.close()
assert open_files() == []
"""


@pytest.mark.clause("INK-09")
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="only Linux tells which files are open")
def test_with_a_hundred_workspaces_only_the_used_one_is_opened(store_url: str, run: Run) -> None:
    with Memory(store_url) as memory:
        memory.at(workspace="w0").remember("a heron")
    workspaces = Path(store_url, "default", "workspaces")
    for n in range(1, 100):
        shutil.copytree(workspaces / "w0", workspaces / f"w{n}")
    opened, most = run(FILES, store_url).splitlines()
    assert opened == "default/workspaces/w50/memory.db"
    assert int(most) <= 512, "half of what the system usually allows a process"
