"""What is damaged or not saved in any session is told by whatever is asked about it."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect import Memory
from recollect.values.errors import DamageWarning, UnsavedWarning

pytestmark = pytest.mark.clause("LED-29")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(f"ledger:{tmp_path}/memory", preset="ledger") as memory:
        for name in ("first", "second"):
            memory.sessions.create("u", session_id=name)
            memory.sessions.add_many(name, [{"type": "finding", "content": f"heron {n}"} for n in range(3)])
        yield memory


def damage(tmp_path: Path, session: str) -> None:
    log = tmp_path / "memory" / "sessions" / session / "memory.jsonl"
    log.write_bytes(log.read_bytes().replace(b"heron 1", b"eagle 1"))


@pytest.mark.clause("LED-13")
def test_a_query_export_and_stats_tell_of_damaged_entries(memory: Memory, tmp_path: Path) -> None:
    damage(tmp_path, "second")
    sessions = memory.sessions
    for hits in (sessions.query("second", {}), sessions.search_by_type("second", "finding"), sessions.search("heron")):
        assert "1 damaged memory is left out" in hits.report
    assert sessions.query("first", {}).report == ""
    assert len(sessions.query("second", {})) == 2
    with pytest.warns(DamageWarning, match="1 damaged"):
        sessions.export("second")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sessions.export("first")
    assert len(sessions.stats("second").corrupt) == 1


def test_the_memory_that_holds_the_sessions_reports_damage_of_all(memory: Memory, tmp_path: Path) -> None:
    assert memory.verify() == []
    damage(tmp_path, "second")
    (found,) = memory.verify()
    assert found.where.startswith("second: memory.jsonl")
    (finding,) = [finding for finding in memory.doctor().findings if finding.problem == "corrupt"]
    assert "second: memory.jsonl" in finding.examples[0]
    assert memory.at(workspace="first").verify() == []


def test_an_entry_that_is_not_saved_says_so_and_so_does_the_memory(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", failing)
    for number in range(2):
        with pytest.warns(UnsavedWarning) as caught:
            added = memory.sessions.add("second", {"type": "finding", "content": f"held {number}"})
        (warning,) = [warning for warning in caught if added in str(warning.message)]
        assert warning.filename == __file__
    assert memory.unsaved == memory.stats().unsaved == 2
    assert (memory.at(workspace="first").unsaved, memory.at(workspace="second").unsaved) == (0, 2)
    (finding,) = [finding for finding in memory.doctor().findings if finding.problem == "not saved yet"]
    assert finding.count == 2
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory.sessions.add("second", {"type": "finding", "content": "after"})
    assert memory.unsaved == 0
