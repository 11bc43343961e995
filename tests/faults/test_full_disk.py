"""A full disk: the write is refused, nothing acknowledged is lost, and all goes on when there is space again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support import disks

BODY = """
from collections import Counter
from recollect import Memory, StoreError, DiskFullError

def refused(verb, *arguments, **options):
    try:
        verb(*arguments, **options)
    except DiskFullError:
        return True
    return False

memory = Memory(folder)
kept = [record.id for record in memory.remember_many(f"heron number {n}" for n in range(400))]
fill()
try:
    for n in range(100_000):
        kept.append(memory.remember(f"heron number {n} " * 50).id)
    raise SystemExit("the disk was never full")
except DiskFullError:
    pass

for turn in range(3):
    assert refused(memory.remember, "heron " * 1000)
    assert refused(memory.remember_many, [f"heron {n} " * 50 for n in range(100)])
    assert refused(memory.revise, kept[0], content="heron " * 1000)
    assert not everywhere or refused(memory.at(workspace="another").remember, "heron " * 1000)

# What can be read without writing can be read.
assert [memory.get(ident).id for ident in kept] == kept
assert len(memory.list(limit=100_000)) == memory.stats().total == len(kept)
asked = [memory.recall(f"heron number {n}", limit=300, min_relevance=0) for n in range(3)]
retrieved = Counter(hit.memory.id for hits in asked for hit in hits)
assert len(retrieved) >= 300
assert all(log.ok for log in memory.audit.verify())

def sound():
    with Memory(folder) as other:
        assert {record.id for record in other.list(limit=100_000)} == {*kept}
        assert other.doctor().ok

make_space()
kept.append(memory.remember("heron " * 1000).id)
sound()
memory.close()
sound()
with Memory(folder) as memory:
    assert {ident: memory.get(ident).access_count for ident in retrieved} == retrieved
    memory.at(workspace="another").remember("heron " * 1000)
print("well")
"""

SMALL_DISK = """
import os, sys
disk = sys.argv[1]
folder, ballast, everywhere = f"{disk}/memory", f"{disk}/ballast", True
def fill():
    with open(ballast, "wb") as file:
        free = os.statvfs(disk)
        file.write(b"x" * (free.f_bavail * free.f_bsize - 200_000))
def make_space():
    os.remove(ballast)
"""

SIZE_LIMIT = """
import resource, sys
folder, everywhere = sys.argv[1], False
before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
def fill():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
def make_space():
    resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))
"""


def test_a_full_disk_refuses_writes_and_loses_nothing(tmp_path: Path, run: Callable[..., str]) -> None:
    disk = tmp_path / "disk"
    assert run(SMALL_DISK + BODY, disk, before=disks.small_disk(disk, "4m")) == "well\n"


def test_a_limit_on_the_size_of_files_is_a_full_disk_too(store_url: str, run: Callable[..., str]) -> None:
    pytest.importorskip("resource", reason="Windows limits no sizes")
    assert run(SIZE_LIMIT + BODY, store_url) == "well\n"


RESTART = """
from recollect import Memory, StoreError, DiskFullError
memory = Memory(folder)
kept = [memory.remember(f"heron number {n}").id for n in range(20)]
memory.close()
with open(ballast, "wb", buffering=0) as file:
    try:
        while file.write(b"x" * 4096):
            pass
    except OSError:
        pass
for turn in range(2):
    with Memory(folder) as memory:
        for verb in (lambda: memory.list(), lambda: memory.recall("heron"), lambda: memory.remember("heron " * 1000)):
            try:
                verb()
            except StoreError as error:
                print(type(error).__name__)
os.remove(ballast)
with Memory(folder) as memory:
    assert {record.id for record in memory.list(limit=1000)} >= {*kept}
    assert memory.doctor().ok
    memory.remember("heron " * 1000)
"""


def test_a_memory_opened_on_a_full_disk_says_so_and_works_once_there_is_space(
    tmp_path: Path, run: Callable[..., str]
) -> None:
    disk = tmp_path / "disk"
    said = run(SMALL_DISK + RESTART, disk, before=disks.small_disk(disk, "2m"))
    assert said.split().count("DiskFullError") >= 2
    assert set(said.split()) <= {"DiskFullError"}
