"""A folder that may only be read: reading works, writing is refused, nothing changes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import disks

from recollect import Memory

if TYPE_CHECKING:
    from support.common import Script

# Whoever is root may write everywhere, so it becomes nobody, once all that it needs from its own folders is loaded.
BECOME_NOBODY = """
import os, tempfile
from recollect import Memory
with tempfile.TemporaryDirectory() as folder, Memory(folder) as memory:
    record = memory.remember("warming up")
    memory.revise(record.id, content="warm"), memory.recall("warm"), memory.doctor(), memory.undo(), memory.compact()
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""

READ = """
import sys
from recollect import Memory, RecollectError
memory = Memory(sys.argv[1])
print(len(memory.list(limit=1000)), len(memory.recall("heron", limit=1000)), memory.stats().total)
assert memory.get(memory.list(newest_first=False)[0].id).content == "heron number 0"
assert all(log.ok for log in memory.audit.verify())
assert memory.audit.search("remembered")
assert memory.doctor().ok
"""

WRITE = """
ident = memory.list(newest_first=False)[0].id
for verb in (
    lambda: memory.remember("a fox"),
    lambda: memory.remember_many(["a fox", "a lynx"]),
    lambda: memory.at(workspace="another").remember("a fox"),
    lambda: memory.at(tenant="another").remember("a fox"),
    lambda: memory.revise(ident, content="a fox"),
    lambda: memory.archive(ident),
    lambda: memory.forget(ident),
    lambda: memory.forget(ident, erase=True),
    lambda: memory.forget(workspace="default"),
    lambda: memory.undo(),
    lambda: memory.compact(),
    lambda: memory.audit.record("note", "something happened"),
):
    try:
        verb()
        print("was done")
    except RecollectError as error:
        print(type(error).__name__)
assert len(memory.list(limit=1000)) == 10
memory.close()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where others may look in, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="recollect-"))
    folder.chmod(0o755)
    yield folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


def fill(folder: Path) -> None:
    with Memory(folder) as memory:
        for n in range(10):
            memory.remember(f"heron number {n}")


KILLED_WRITER = """
import os, sys
from recollect import Memory
memory = Memory(sys.argv[1])
for n in range(10):
    memory.remember(f"heron number {n}")
os.kill(os.getpid(), 9)
"""


def make_read_only(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)


def refuses_all_writes(said: str) -> bool:
    first, *errors = said.splitlines()
    assert first == "10 10 10"
    assert errors == ["ReadOnlyError"] * 12
    return True


def test_a_folder_without_write_permission_can_be_read(folder: Path, run: Callable[..., str]) -> None:
    fill(folder)
    make_read_only(folder)
    before = disks.fingerprint(folder)
    assert refuses_all_writes(run(BECOME_NOBODY + READ + WRITE, folder))
    assert disks.fingerprint(folder) == before


def test_what_a_killed_writer_left_can_be_read_without_write_permission(
    folder: Path, start: Callable[..., Script], run: Callable[..., str]
) -> None:
    start(KILLED_WRITER, folder).wait()
    make_read_only(folder)
    before = disks.fingerprint(folder)
    assert refuses_all_writes(run(BECOME_NOBODY + READ + WRITE, folder))
    assert disks.fingerprint(folder) == before


def test_a_read_only_disk_can_be_read(folder: Path, run: Callable[..., str]) -> None:
    fill(folder)
    before = disks.fingerprint(folder)
    assert refuses_all_writes(run(READ + WRITE, folder, before=disks.read_only_disk(folder)))
    assert disks.fingerprint(folder) == before


@pytest.mark.parametrize("missing", ["nothing", "the shared memory file"])
def test_what_a_killed_writer_left_can_be_read_on_a_read_only_disk(
    folder: Path, start: Callable[..., Script], run: Callable[..., str], missing: str
) -> None:
    start(KILLED_WRITER, folder).wait()
    if missing != "nothing":
        (folder / "default/workspaces/default/memory.db-shm").unlink()
    before = disks.fingerprint(folder)
    assert refuses_all_writes(run(READ + WRITE, folder, before=disks.read_only_disk(folder)))
    assert disks.fingerprint(folder) == before


FOLLOW = """
import sys
from recollect import Memory
memory = Memory(sys.argv[1])
while sys.stdin.readline():
    print(len(memory.list()), len(memory.recall("heron", limit=100)), flush=True)
"""


def test_who_may_only_read_sees_what_others_write_meanwhile(folder: Path, start: Callable[..., Script]) -> None:
    fill(folder)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    reader = start(BECOME_NOBODY + FOLLOW, folder)
    reader.tell("look")
    assert reader.line() == "10 10"
    with Memory(folder) as memory:
        for n in range(10, 13):
            memory.remember(f"heron number {n}")
            reader.tell("look")
            assert reader.line() == f"{n + 1} {n + 1}"
    reader.tell("look")
    assert reader.line() == "13 13"
