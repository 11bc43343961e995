"""Deleted memories of a ledger stay in its log, under tombstones, and nowhere else, until the log is written anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect import ConflictError, Memory
from recollect.stores.files import files

WORD = "zugunruhe"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(f"ledger:{tmp_path}/store", embedder="none") as memory:
        yield memory


def session(tmp_path: Path) -> Path:
    return tmp_path / "store" / "sessions" / "default"


def holding(tmp_path: Path) -> set[str]:
    """The files of the session that have the word."""
    return {path.name for path in session(tmp_path).iterdir() if WORD.encode() in path.read_bytes()}


def test_what_was_forgotten_is_in_one_file(memory: Memory, tmp_path: Path) -> None:
    note = memory.remember(f"the {WORD} of herons")
    stored_in = {name for name in holding(tmp_path) if name.endswith(".jsonl")}
    assert len(stored_in) == 1
    memory.forget(note.id)
    assert {name for name in holding(tmp_path) if name.endswith(".jsonl")} == stored_in
    memory.undo()
    assert memory.get(note.id) == note


def test_the_state_before_the_deletion_comes_back(memory: Memory) -> None:
    """Its changes and retrievals, too, which are lines of other files."""
    note = memory.remember(f"the {WORD} of herons", tags=["a"])
    memory.archive(note.id)
    memory.restore(note.id)
    memory.recall(WORD)
    before = memory.get(note.id)
    memory.forget(note.id)
    memory.undo()
    assert memory.get(note.id) == before


def test_a_second_deletion_brings_back_the_second_memory(memory: Memory, tmp_path: Path) -> None:
    """The lines of both are in the log, under one id."""
    note = memory.remember("the first of this id")
    memory.export(tmp_path / "all.jsonl")
    memory.forget(note.id)
    memory.import_(tmp_path / "all.jsonl")
    memory.archive(note.id)
    second = memory.get(note.id)
    forgotten = memory.forget(note.id)
    memory.undo(forgotten.entries[0])
    assert memory.get(note.id) == second


def test_erasing_another_memory_keeps_it_and_leaves_the_log(memory: Memory, tmp_path: Path) -> None:
    other, note = memory.remember("a fox"), memory.remember(f"the {WORD} of herons")
    memory.forget(note.id)
    assert memory.forget(other.id, erase=True).erased
    assert holding(tmp_path) == {"undo.jsonl"}
    memory.undo(next(entry.id for entry in memory.audit.search() if entry.action == "forget"))
    assert memory.get(note.id) == note


def test_compaction_for_room_keeps_it(memory: Memory, tmp_path: Path) -> None:
    note = memory.remember(f"the {WORD} of herons")
    memory.forget(note.id)
    memory._view.on_disk.compact(memory._view.place)
    assert holding(tmp_path) == {"undo.jsonl"}
    memory.undo()
    assert memory.get(note.id) == note


def test_the_verb_compact_removes_it(memory: Memory, tmp_path: Path) -> None:
    note = memory.remember(f"the {WORD} of herons")
    memory.forget(note.id)
    memory.compact()
    assert holding(tmp_path) == set()
    with pytest.raises(ConflictError, match="can no longer be undone"):
        memory.undo()


def test_it_is_erased_from_the_log(memory: Memory, tmp_path: Path) -> None:
    note = memory.remember(f"the {WORD} of herons")
    memory.forget(note.id)
    assert memory.forget(note.id, erase=True).erased
    assert holding(tmp_path) == set()


@pytest.mark.parametrize("fails", range(1, 4))
def test_a_disk_that_fails_while_the_log_is_written_anew_loses_nothing(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    note = memory.remember(f"the {WORD} of herons")
    memory.forget(note.id)
    replace, calls = files.replace, 0

    def failing(path: str, data: bytes, durable: bool = True) -> None:
        nonlocal calls
        calls += path.endswith(".jsonl")
        if path.endswith(".jsonl") and calls == fails:
            raise OSError(28, "No space left on device")
        replace(path, data, durable=durable)

    monkeypatch.setattr(files, "replace", failing)
    with pytest.raises(Exception, match=r"(N|n)o space"):
        memory._view.on_disk.compact(memory._view.place)
    monkeypatch.undo()
    memory.undo()
    assert memory.get(note.id) == note


def test_a_line_that_somebody_took_out_makes_undo_a_conflict(memory: Memory, tmp_path: Path) -> None:
    note, other = memory.remember(f"the {WORD} of herons"), memory.remember("a fox")
    memory.forget(note.id)
    memory.close()
    for path in session(tmp_path).glob("*.jsonl"):
        if path.name not in ("audit.jsonl", "undo.jsonl"):
            kept = [line for line in path.read_bytes().splitlines(keepends=True) if WORD.encode() not in line]
            path.write_bytes(b"".join(kept))
    with pytest.raises(ConflictError, match="can no longer be undone"):
        memory.undo()
    assert memory.get(other.id) == other
