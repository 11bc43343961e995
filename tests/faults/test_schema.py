"""Schema versions: an older file is upgraded with all it holds, a newer one is refused and not touched."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest
from support import disks

from recollect import Memory, ReadOnlyError, SchemaError
from recollect.conformance.samples import sample
from recollect.stores.rows import COLUMNS, to_values
from recollect.stores.sqlite.opening import SCHEMA

if TYPE_CHECKING:
    from support.common import Script

FIRST = files("recollect.stores.sqlite").joinpath("migrations", "001_memories.sql").read_text()
OURS = 0x7265636C


def old_file(store_url: str) -> Path:
    """A workspace as the first schema left it, with a memory in it."""
    path = Path(store_url, "default", "workspaces", "default", "memory.db")
    path.parent.mkdir(parents=True)
    record = sample("a heron of old", id="0" * 32, tags=("birds",), created_at=datetime(2025, 1, 1, tzinfo=UTC))
    with closing(apsw.Connection(str(path))) as raw:
        raw.execute(FIRST)
        row = dict(zip(COLUMNS, to_values(record), strict=True))
        for later in ("derived_from", "valid_from", "valid_until"):
            del row[later]
        marks = ", ".join("?" * len(row))
        raw.execute(f"INSERT INTO memories ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
        raw.execute("INSERT INTO memories_text (rowid, text) VALUES (1, 'a heron of old')")
        raw.execute(f"PRAGMA application_id = {OURS}; PRAGMA user_version = 1")
    return path


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute("PRAGMA user_version").fetchone()[0]


@pytest.mark.clause("INK-22")
def test_an_older_file_is_upgraded_with_all_it_holds(store_url: str) -> None:
    path = old_file(store_url)
    with Memory(store_url) as memory:
        (hit,) = memory.recall("heron")
        assert (hit.memory.id, hit.memory.tags) == ("0" * 32, ("birds",))
        memory.revise(hit.memory.id, content="a heron of today")
        assert [record.content for record in memory.history("0" * 32)] == ["a heron of old", "a heron of today"]
        assert all(log.ok for log in memory.audit.verify())
        assert memory.doctor().ok
    assert version(path) == SCHEMA > 1


@pytest.mark.clause("INK-22")
def test_reading_alone_upgrades_too_and_keeps_the_memories(store_url: str) -> None:
    old_file(store_url)
    with Memory(store_url) as memory:
        assert [record.content for record in memory.list()] == ["a heron of old"]
        assert memory.audit.verify() == []


@pytest.mark.clause("INK-22")
@pytest.mark.parametrize("place", ["default/workspaces/default/memory.db", "default/account.db"])
def test_a_newer_file_is_refused_and_not_touched(store_url: str, place: str) -> None:
    with Memory(store_url) as memory:
        memory.remember("a heron")
        memory.remember("a heron for all", tier="account")
        memory.at(workspace="other").remember("a heron elsewhere")
    path = Path(store_url, place)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    before = disks.fingerprint(Path(store_url))
    with Memory(store_url) as memory:
        for verb in (
            lambda: memory.recall("heron"),
            lambda: memory.list(),
            lambda: memory.stats(),
            lambda: memory.compact(),
            lambda: memory.remember("another", tier="account" if "account" in place else "workspace"),
        ):
            with pytest.raises(SchemaError, match=f"schema {SCHEMA + 1}.*Upgrade recollect"):
                verb()
    assert disks.fingerprint(Path(store_url)) == before


def test_an_older_file_that_cannot_be_written_says_why_it_cannot_be_read(
    store_url: str, run: Callable[..., str]
) -> None:
    path = old_file(store_url)
    before = path.read_bytes()
    said = run(LIST, store_url, before=disks.read_only_disk(Path(store_url)))
    assert said == f"{ReadOnlyError.__name__}\n"
    assert path.read_bytes() == before


LIST = """
import sys
from recollect import Memory, StoreError
try:
    print(len(Memory(sys.argv[1]).list()))
except StoreError as error:
    assert "older schema" in str(error)
    print(type(error).__name__)
"""

AT_ONCE = """
import sys, threading
from recollect import Memory
def work(memory, folder):
    ids.append(memory.remember(f"a heron in {folder}").id)
    assert memory.recall("heron")
print("ready", flush=True)
sys.stdin.readline()
for folder in sys.argv[1:]:
    ids = []
    with Memory(folder) as memory:
        threads = [threading.Thread(target=work, args=(memory, folder)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(*ids, sep=",")
"""


@pytest.mark.slow
@pytest.mark.clause("INK-22")
def test_many_processes_and_their_threads_may_open_an_old_file_or_a_fresh_folder_at_the_same_moment(
    tmp_path: Path, start: Callable[..., Script]
) -> None:
    folders = [str(tmp_path / f"{kind}{n}") for n in range(20) for kind in ("old", "fresh")]
    for folder in folders[::2]:
        old_file(folder)
    processes = [start(AT_ONCE, *folders) for _ in range(5)]
    assert [process.line() for process in processes] == ["ready"] * 5
    for process in processes:
        process.tell("go")
    said = [process.finish().split() for process in processes]
    for folder, *printed in zip(folders, *said, strict=True):
        ids = ",".join(printed).split(",")
        assert len(ids) == 5 * 3
        with Memory(folder) as memory:
            old = ["0" * 32] if "old" in folder.rpartition("/")[2] else []
            assert {record.id for record in memory.list()} == {*ids, *old}
            assert all(log.ok for log in memory.audit.verify())
            assert memory.doctor().ok
