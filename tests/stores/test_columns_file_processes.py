"""The columns file among processes and on disks that do not take it: nobody waits, nothing fails, nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import disks
from support.stores import FILES, located

from recollect import Memory

if TYPE_CHECKING:
    from support.common import Script

SMALL = """
import os, sys, threading
from pathlib import Path
from recollect import Memory
from recollect.stores.resident import columns_file
from recollect.stores.sqlite import columns_writer
for name, value in (("LEAST", 5), ("_BEHIND", 0), ("DELAY", 0.0), ("_PAUSE", 0.0), ("_REST", 0.0)):
    setattr(columns_writer, name, value)
url = sys.argv[1]
folder = Path(url.partition(":")[2]).parent

def files():
    return sorted(path.name for path in folder.rglob("*-columns*"))

def found(memory, most=1000):
    return len(memory.recall("heron", limit=most, touch=False))
"""
FILL = """
with Memory(url, embedder="none") as memory:
    memory.remember_many(f"heron number {n}" for n in range(300))
    assert found(memory) == 300
assert len(files()) == 1, files()
"""


@pytest.fixture(params=FILES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "store" / "memory")


KILLED = """
def die(*_):
    print("dying", flush=True)
    os._exit(9)

columns_file.Writing.finish = die
memory = Memory(url, embedder="none")
memory.remember_many(f"heron number {n}" for n in range(300))
found(memory)
threading.Event().wait(60)
"""

AFTERWARDS = """
assert len(files()) == 1 and "-columns-" in files()[0], files()
with Memory(url, embedder="none") as memory:
    assert found(memory) == 300
assert [name for name in files() if "-columns-" in name] == []
assert len(files()) == 1
print("well")
"""


def test_who_is_killed_while_writing_leaves_nothing_that_is_used_or_stays(
    url: str, start: Callable[..., Script], run: Callable[..., str]
) -> None:
    script = start(SMALL + KILLED, url)
    output, _ = script.communicate(timeout=60)
    assert script.returncode == 9
    assert "dying" in output
    assert run(SMALL + AFTERWARDS, url) == "well\n"


SHARED = """
memory = Memory(url, embedder="none")
for turn in range(20):
    stored = memory.remember_many([f"heron {os.getpid()} {turn} {n}" for n in range(3)])
    assert found(memory, 1000) >= 303
    if turn % 7 == 3:
        memory.forget(stored[0].id, erase=True)
memory.close()
print("well")
"""


def test_processes_that_write_and_read_at_once_agree(
    url: str, start: Callable[..., Script], run: Callable[..., str]
) -> None:
    run(SMALL + FILL, url)
    scripts = [start(SMALL + SHARED, url) for _ in range(3)]
    assert [script.finish() for script in scripts] == ["well\n"] * 3
    with Memory(url, embedder="none") as memory:
        total = memory.stats().total
        assert total == 300 + 3 * 57
        assert len(memory.recall("heron", limit=1000)) == total
        assert memory.doctor().ok
    assert not list(Path(url.partition(":")[2]).parent.rglob("*-columns-*"))


FORKING = """
memory = Memory(url, embedder="none")
assert found(memory) == 300
child = os.fork()
for n in range(5):
    memory.remember(f"heron of {'parent' if child else 'child'} {n}")
    assert found(memory, 1000) >= 301
memory.close()
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
with Memory(url, embedder="none") as memory:
    assert found(memory) == 310
print("well")
"""


def test_a_fork_has_columns_of_its_own(url: str, run: Callable[..., str]) -> None:
    run(SMALL + FILL, url)
    assert run(SMALL + FORKING, url) == "well\n"


READ_ONLY = """
used = []
load = columns_file.load
columns_file.load = lambda *arguments: used.append(load(*arguments)) or used[-1]
with Memory(url, embedder="none") as memory:
    assert found(memory) == 300
print(len(used), used[-1] is not None, files())
"""


@pytest.mark.parametrize("there", [True, False], ids=["with a file", "without one"])
def test_where_nothing_can_be_written_a_file_is_read_and_none_is_made(
    tmp_path: Path, run: Callable[..., str], there: bool
) -> None:
    folder = tmp_path / "disk"
    url = f"sqlite:{folder}/memory"
    run(SMALL + FILL, url)
    if not there:
        next(folder.rglob("*-columns")).unlink()
    before = disks.fingerprint(folder)
    said = run(SMALL + READ_ONLY, url, before=disks.read_only_disk(folder))
    assert said == (f"1 {there} {['memory.db-columns'] if there else []}\n")
    assert disks.fingerprint(folder) == before


FULL = """
memory = Memory(url, embedder="none")
memory.remember_many(f"heron number {n}" for n in range(300))
ballast = open(folder / "ballast", "wb", buffering=0)
free = os.statvfs(folder)
ballast.write(b"x" * (free.f_bavail * free.f_bsize - int(sys.argv[2])))
assert found(memory) == 300
memory.close()
assert files() == [], files()
with Memory(url, embedder="none") as memory:
    assert found(memory) == 300
    assert memory.doctor().ok
ballast.close()
os.remove(folder / "ballast")
with Memory(url, embedder="none") as memory:
    assert found(memory) == 300
assert len(files()) == 1
print("well")
"""


@pytest.mark.parametrize("free", [0, 20_000, 60_000])
def test_on_a_disk_that_is_nearly_full_there_is_none_until_there_is_room(
    tmp_path: Path, run: Callable[..., str], free: int
) -> None:
    disk = tmp_path / "disk"
    assert run(SMALL + FULL, f"sqlite:{disk}/memory", free, before=disks.small_disk(disk, "4m")) == "well\n"
