"""The limits of a ledger: how large a session may be, and what is cached and batched."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import Clock, eventually
from support.ledger_files import NOW, Files, checksum, entry

from recollect import DiskFullError, InputError, Memory, SizeLimitError
from recollect.stores.files.index import PlaceIndex
from recollect.values.record import Record

LIMIT = 52_428
"""Of a session in these tests, in bytes: 0.05 MB."""


@pytest.fixture
def files(tmp_path: Path) -> Files:
    files = Files(tmp_path / "memory")
    # No index.json is written while a test measures how much room is left.
    files.configure(storage={"max_session_size_mb": 0.05}, performance={"batch_write_interval_ms": 3_600_000})
    return files


def used(files: Files) -> int:
    """What counts towards the limit: the log and what belongs to it, tombstones and index."""
    names = ("memory.jsonl", "changes.jsonl", "tombstones.jsonl", "index.json")
    return sum(path.stat().st_size for name in names if (path := files.session() / name).exists())


def fill(memory: Memory, files: Files, share: float, **fields: Any) -> list[str]:
    """Entries of about 1,000 bytes, to a share of the limit."""
    ids: list[str] = []
    while used(files) < share * LIMIT - 1000:
        ids.append(memory.sessions.add("s", entry(f"{len(ids):03} " + "x" * 700, "preference", **fields)))
    return ids


def session(files: Files, clock: Clock, **settings: Any) -> Memory:
    memory = files.open(clock)
    memory.sessions.create("u", session_id="s", **settings)
    return memory


def exactly(files: Files, memory: Memory, more: int = 0) -> dict[str, Any]:
    """An entry that makes the session exactly as large as it may be, or so many bytes larger."""
    memory.sessions.add("s", entry("x" * 500, "preference"))
    overhead = len((files.session() / "memory.jsonl").read_bytes().splitlines()[-1]) + 1 - 500
    return entry("x" * (LIMIT - used(files) - overhead + more), "preference")


@pytest.mark.clause("LED-10", "LED-19")
@pytest.mark.parametrize("auto", [True, False])
def test_case_1_exactly_at_the_limit_is_accepted_and_a_byte_more_is_not(files: Files, clock: Clock, auto: bool) -> None:
    with session(files, clock, compaction={"auto_compact": auto}) as memory:
        fill(memory, files, 0.8)
        last = exactly(files, memory, 1)
        before = (files.session() / "memory.jsonl").read_bytes()
        with pytest.raises(SizeLimitError):
            memory.sessions.add("s", last)
        assert sorted(line["content"] for line in files.log()) == sorted(
            json.loads(line)["content"] for line in before.splitlines()
        )
        last["content"] = last["content"][:-1]
        memory.sessions.add("s", last)
        assert used(files) == LIMIT
        entries = memory.sessions.load("s").total_entries
    assert used(files) == LIMIT
    with files.open(clock) as memory:
        assert memory.sessions.load("s").total_entries == entries == len(files.log())


@pytest.mark.clause("LED-10")
def test_above_nine_tenths_a_session_compacts_itself(files: Files, clock: Clock) -> None:
    with session(files, clock) as memory:
        faded = memory.sessions.add("s", entry("faded", importance=0.3, timestamp=NOW - timedelta(days=999)))
        ids = fill(memory, files, 0.5)
        for ident in ids[:20]:
            memory.sessions.delete("s", ident)
        fill(memory, files, 0.89)
        assert memory.sessions.metrics()["memory.compaction.count"] == 0
        assert {ids[0], faded} <= {line["id"] for line in files.log()}
        memory.sessions.add_many("s", [entry("z" * 700, "preference") for _ in range(3)])
        assert memory.sessions.metrics()["memory.compaction.count"] == 1
        assert memory.sessions.load("s").last_compaction is not None
        assert not {*ids[:20], faded} & {line["id"] for line in files.log()}
        assert {*ids[20:]} < {line["id"] for line in files.log()}
        assert used(files) < 0.9 * LIMIT


@pytest.mark.clause("LED-10", "LED-16")
@pytest.mark.parametrize(
    ("settings", "compacted"),
    [({"threshold": 0.3}, True), ({"threshold": 0.5}, False), ({"auto_compact": False, "threshold": 0.1}, False)],
)
def test_when_a_session_compacts_itself_can_be_set(
    files: Files, clock: Clock, settings: dict[str, Any], compacted: bool
) -> None:
    with session(files, clock, compaction=settings) as memory:
        first = fill(memory, files, 0.2)[0]
        memory.sessions.delete("s", first)
        fill(memory, files, 0.4)
        assert (first not in {line["id"] for line in files.log()}) is compacted


@pytest.mark.clause("LED-10")
def test_what_does_not_fit_even_then_is_refused_with_figures_and_leaves_no_trace(files: Files, clock: Clock) -> None:
    with session(files, clock) as memory:
        fill(memory, files, 0.99)
        before, size = files.log(), used(files)
        for many in (1, 30):
            with pytest.raises(SizeLimitError, match=r"bytes are used and .* would pass the limit of 52,428") as caught:
                memory.sessions.add_many("s", [entry(f"owl {'y' * 2000}", "preference") for _ in range(many)])
            error = caught.value
            assert isinstance(error, DiskFullError)
            assert (error.used, error.limit) == (size, LIMIT)
            assert many * 2000 < error.adding < many * 2600
        assert [line["id"] for line in files.log()] == [line["id"] for line in before]
        assert memory.sessions.query("s", {"text": "owl"}) == []
        assert files.holding("yyyy") == []
        assert memory.sessions.delete("s", before[0]["id"])
        assert memory.sessions.delete("s", before[1]["id"])
        memory.sessions.add("s", entry("z" * 1000, "preference"))
        assert used(files) <= LIMIT


@pytest.mark.clause("LED-10")
def test_a_session_never_outgrows_its_limit_by_what_is_derived_from_it(files: Files, clock: Clock) -> None:
    def add_all(memory: Memory) -> None:
        for n in range(1000):
            memory.sessions.add("s", entry(f"short {n}", "preference", tags=[f"tag-{n}"]))
            assert used(files) <= LIMIT

    with session(files, clock) as memory, pytest.raises(SizeLimitError):
        add_all(memory)
    assert 0.95 * LIMIT < used(files) <= LIMIT
    with files.open(clock) as memory:
        assert memory.sessions.rebuild_index("s") == len(files.log())
        assert used(files) <= LIMIT


@pytest.mark.clause("LED-10", "LED-11")
def test_what_is_read_and_refused_at_the_limit_costs_no_entry(files: Files, clock: Clock) -> None:
    """Retrievals that wait to be counted must neither make the session larger nor come in the way of compaction."""
    with session(files, clock) as memory:
        kept = fill(memory, files, 1.0, importance=0.9)
        for size in (3000, 20, 3000, 20, 20, 3000):
            memory.sessions.query("s", {"text": "xxx*"})
            memory.recall("xxx*", limit=1000)
            try:
                kept.append(memory.sessions.add("s", entry("owl " + "y" * size, "preference", importance=0.9)))
            except SizeLimitError:
                assert size > 20 or used(files) > LIMIT - 600
            assert {line["id"] for line in files.log()} == set(kept)
            assert used(files) <= LIMIT
    with files.open(clock) as memory:
        assert {hit.memory.id for hit in memory.sessions.query("s", {})} == set(kept)
        assert memory.sessions.compact("s") <= LIMIT
        assert {line["id"] for line in files.log()} == set(kept)
        assert used(files) <= LIMIT


def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The entries that are read from the index, from now on."""
    read: list[str] = []
    really = PlaceIndex.load

    def recording(index: PlaceIndex, ids: Sequence[str]) -> list[Record]:
        read.extend(ids)
        return really(index, ids)

    monkeypatch.setattr(PlaceIndex, "load", recording)
    return read


@pytest.mark.clause("LED-14")
@pytest.mark.parametrize(("size", "others", "again"), [(100, 99, 0), (100, 100, 1), (3, 2, 0), (3, 3, 1), (0, 0, 1)])
def test_the_entries_used_last_are_cached(
    files: Files, clock: Clock, monkeypatch: pytest.MonkeyPatch, size: int, others: int, again: int
) -> None:
    files.configure(performance={"cache_size": size})
    with session(files, clock) as memory:
        ids = memory.sessions.add_many("s", [entry(str(n)) for n in range(101)])
        memory.sessions.get("s", ids[0])
        for ident in ids[1 : others + 1]:
            memory.sessions.get("s", ident)
        read = loads(monkeypatch)
        found = memory.sessions.get("s", ids[0])
        assert found is not None
        assert found.content == "0"
        assert len(read) == again


@pytest.mark.clause("LED-14")
def test_the_entry_that_was_not_used_for_longest_makes_room(
    files: Files, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.configure(performance={"cache_size": 2})
    with session(files, clock) as memory:
        a, b, c = memory.sessions.add_many("s", [entry("a"), entry("b"), entry("c")])
        for ident in (a, b, a, c):
            memory.sessions.get("s", ident)
        read = loads(monkeypatch)
        memory.sessions.get("s", a)
        assert len(read) == 0
        memory.sessions.get("s", b)
        assert len(read) == 1


DELETER = """
import sys
from recollect import Memory
with Memory(sys.argv[1], preset="ledger") as memory:
    memory.sessions.delete("s", sys.argv[2])
    memory.sessions.compact("s")
"""


@pytest.mark.clause("LED-14")
def test_a_cached_entry_that_another_process_deletes_or_rewrites_is_not_served(
    files: Files, clock: Clock, run: Callable[..., str]
) -> None:
    with session(files, clock) as memory:
        one, two = memory.sessions.add_many("s", [entry("one"), entry("two")])
        assert memory.sessions.get("s", one)
        assert memory.sessions.get("s", two)
        script = "import sys; from recollect import Memory; m = Memory(sys.argv[1], preset='ledger')\n"
        run(
            f"{script}m.sessions.delete('s', sys.argv[2]); m.sessions.compact('s'); m.close()",
            f"ledger:{files.root}",
            one,
        )
        assert memory.sessions.get("s", one) is None
        found = memory.sessions.get("s", two)
        assert found is not None
        assert found.content == "two"


@pytest.mark.clause("LED-14")
def test_a_batch_is_written_under_one_lock_and_flushed_as_one(
    files: Files, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[int] = []
    flushed: list[int] = []
    flock, fsync = fcntl.flock, os.fsync
    monkeypatch.setattr(fcntl, "flock", lambda fd, how: (locked.append(how), flock(fd, how))[1])
    monkeypatch.setattr(os, "fsync", lambda fd: (flushed.append(os.fstat(fd).st_ino), fsync(fd))[1])
    with session(files, clock) as memory:
        memory.sessions.add("s", entry("so that the files are there"))
        counts: list[int] = []
        for many in (2, 40):
            locked.clear()
            flushed.clear()
            memory.sessions.add_many("s", [entry(f"{many} {n}") for n in range(many)])
            assert sum(bool(how & fcntl.LOCK_EX) for how in locked) == 1
            assert flushed.count((files.session() / "memory.jsonl").stat().st_ino) == 1
            counts.append(len(flushed))
        assert counts == [2, 2]  # the log, and the note in the lock that says how long it was and will be
        assert memory.sessions.load("s").total_entries == 43


@pytest.mark.clause("LED-14")
def test_a_batch_is_stored_as_a_whole_or_not_at_all(files: Files, clock: Clock) -> None:
    with session(files, clock) as memory:
        with pytest.raises(InputError, match="importance"):
            memory.sessions.add_many("s", [*(entry(str(n)) for n in range(20)), entry(importance=7)])
        assert files.log() == []
        assert memory.sessions.load("s").total_entries == 0


@pytest.mark.clause("LED-14")
@pytest.mark.parametrize(("interval", "at_once"), [(0, True), (3_600_000, False)])
def test_retrievals_are_counted_on_disk_after_the_batch_interval(
    files: Files, clock: Clock, interval: int, at_once: bool
) -> None:
    files.configure(performance={"batch_write_interval_ms": interval})
    with session(files, clock) as memory:
        ident = memory.sessions.add("s", entry())
        for _ in range(3):
            memory.sessions.query("s", {"text": "owl"})
        # What finds the log taken, by the thread that writes the index, is written by the timer.
        assert eventually(lambda: bool(files.log(file="changes.jsonl")), 60 if at_once else 0) is at_once
        found = memory.sessions.get("s", ident)
        assert found is not None
        assert found.access_count == 3
    with files.open(clock) as memory:
        found = memory.sessions.get("s", ident)
        assert found is not None
        assert found.access_count == 3


@pytest.mark.clause("LED-25")
@pytest.mark.clause("LED-31")
def test_compaction_strips_verbose_metadata_of_older_entries_and_never_content(tmp_path: Path, clock: Clock) -> None:
    files = Files(tmp_path / "memory")
    files.configure(compaction={"strip_metadata_after_hours": 48, "strip_metadata_over_bytes": 100})
    long = {"trace": "x" * 500, "model": "small", "page": 7}
    content = {"message": "y" * 500, "metadata": long}
    with files.open(clock) as memory:
        session = memory.at(workspace="s")
        old = session.remember(content, kind="finding", metadata=long)
        short = session.remember("old too", kind="finding", metadata={"page": 8})
        clock.forward(hours=72)
        new = session.remember("new", kind="finding", metadata=long)
        memory.sessions.compact("s")

        def metadata() -> list[Any]:
            return [session.get(one.id).metadata for one in (old, short, new)]

        assert metadata() == [{"model": "small", "page": 7}, {"page": 8}, long]
        # The document's metadata is in the content; what else is there stays, however long.
        assert session.get(old.id).content == {"message": "y" * 500, "metadata": {"model": "small", "page": 7}}
        told = files.json("sessions", "s", "metadata.json")
        assert (told["stripped_entries"], 1000 < told["stripped_bytes"] < 1040) == (1, True)
        clock.forward(hours=72)
        memory.sessions.compact("s")
        assert metadata()[2] == {"model": "small", "page": 7}
        assert memory.sessions.load("s").stripped_entries == 2
        memory.sessions.compact("s")
        assert memory.sessions.load("s").stripped_entries == 2
        assert memory.doctor().ok
    assert [line["checksum"] == checksum(line) for line in files.log()] == [True] * 3
