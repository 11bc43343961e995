"""Hand edits that an index must not hide: what the files say is true, whoever has read them before."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.jsonl import KINDS, Kept

from recollect import Memory


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    return Kept(request.param, tmp_path / "memory")


def by_hand(kept: Kept, ident: str, text: str) -> bytes:
    """A line as a person would write it, without its end."""
    when = "2026-01-10T10:00:00Z"
    note: dict[str, Any] = {"id": ident, "text": text, "ts": when}
    entry = {"id": ident, "content": text, "timestamp": when, "type": "finding"}
    return json.dumps(note if kept.kind == "notebook" else entry).encode()


def contents(memory: Memory) -> list[Any]:
    return sorted(record.content for record in memory.list(limit=100))


def check(kept: Kept, memory: Memory, expected: list[str]) -> None:
    """As this process sees it, another, and one without the index; and after the files were written anew."""
    assert contents(memory) == expected
    assert {hit.memory.content for hit in memory.recall("meets")} <= set(expected)
    memory.forget(memory.remember("to be forgotten").id)
    memory.compact()
    assert contents(memory) == expected
    memory.close()
    assert sorted(kept.contents()) == expected
    for path in kept.aside.glob("index.db*"):
        path.unlink()
    assert sorted(kept.contents()) == expected


def lines(kept: Kept) -> None:
    kept.memories.parent.mkdir(parents=True, exist_ok=True)
    kept.memories.write_bytes(
        b"".join(by_hand(kept, f"m-{n}", f"number {n} meets on Friday") + b"\n" for n in range(1, 6))
    )


@pytest.mark.parametrize("reopened", [False, True])
def test_a_line_that_is_edited_in_place_while_another_is_added(kept: Kept, reopened: bool) -> None:
    lines(kept)
    memory = kept.open()
    assert len(contents(memory)) == 5
    if reopened:
        memory.close()
    before = kept.memories.read_bytes()
    after = before.replace(b"number 3 meets on Friday", b"number 3 meets on Monday")
    with kept.memories.open("r+b") as file:  # the same file, by its inode
        file.write(after + by_hand(kept, "m-6", "number 6 meets on Friday") + b"\n")
    memory = kept.open() if reopened else memory
    expected = [f"number {n} meets on {'Monday' if n == 3 else 'Friday'}" for n in range(1, 7)]
    check(kept, memory, expected)


@pytest.mark.parametrize("then", ["removed", "longer", "shorter", "renamed", "ended"])
def test_what_becomes_of_a_last_line_without_its_end(kept: Kept, then: str) -> None:
    lines(kept)
    whole = kept.memories.read_bytes()
    kept.memories.write_bytes(whole + by_hand(kept, "m-9", "number 9 meets on Friday"))
    memory = kept.open()
    five = [f"number {n} meets on Friday" for n in range(1, 6)]
    assert contents(memory) == [*five, "number 9 meets on Friday"]
    last, end = {
        "removed": (b"", []),
        "longer": (by_hand(kept, "m-9", "number 9 meets on Saturday night"), ["number 9 meets on Saturday night"]),
        "shorter": (by_hand(kept, "m-9", "number 9 meets"), ["number 9 meets"]),
        "renamed": (by_hand(kept, "m-8", "number 9 meets on Friday"), ["number 9 meets on Friday"]),
        "ended": (by_hand(kept, "m-9", "number 9 meets on Friday") + b"\n", ["number 9 meets on Friday"]),
    }[then]
    with kept.memories.open("r+b") as file:
        file.truncate(len(whole))
        file.seek(0, os.SEEK_END)
        file.write(last)
    check(kept, memory, [*five, *end])


def test_an_index_that_others_made_holds_nothing_of_what_is_erased(kept: Kept) -> None:
    """The process keeps its index in memory, and takes the one on the disk away."""
    with kept.open() as memory:
        ident = memory.remember("the zugunruhe of herons", tags=["zugunruhe"]).id
        memory.remember("stays")
    with kept.open() as memory:
        memory._view.store.log(memory._view.place).refuse_index(forever=True)  # pyright: ignore
        assert memory.forget(ident, erase=True).erased
        held = [path for path in kept.root.rglob("*") if path.is_file() and b"zugunruhe" in path.read_bytes()]
        assert not held
        assert contents(memory) == ["stays"]
    assert kept.contents() == ["stays"]


def test_a_receipt_is_true_of_the_derived_files_too(tmp_path: Path) -> None:
    kept = Kept("ledger", tmp_path / "memory")
    with kept.open() as memory:
        ident = memory.remember("a heron", tags=["zugunruhe"], metadata={"of": "zugunruhe"}).id
        memory.close()  # index.json and indices/ are written
        assert memory.forget(ident, erase=True).erased
        held = [path for path in kept.root.rglob("*") if path.is_file() and b"zugunruhe" in path.read_bytes()]
        assert not held
