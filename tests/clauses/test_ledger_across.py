"""Searches across the sessions of a ledger, and the indices that make them short."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.common import Clock
from support.ledger_files import Files, entry

from recollect import Memory
from recollect.stores.files.index import PlaceIndex


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "memory")


@pytest.fixture
def three(files: Files, clock: Clock) -> Memory:
    """Three sessions, each with a tag of its own, closed."""
    with files.open(clock) as memory:
        for n, name in enumerate(("ann", "bob", "cy")):
            memory.sessions.create(name, session_id=name)
            memory.sessions.add(name, entry(f"an owl of {name}", tags=[f"birds.{name}"], importance=0.9 - n / 10))
    return files.open(clock)


@pytest.mark.clause("LED-23")
def test_a_search_goes_across_sessions(three: Memory) -> None:
    with three:
        assert [hit.memory.content for hit in three.sessions.search("owl")] == [
            f"an owl of {n}" for n in ("ann", "bob", "cy")
        ]
        assert len(three.sessions.search("owl", limit=2)) == 2
        hits = three.sessions.search({"tags": ["birds"], "min_importance": 0.75, "sort_by": "importance"})
        assert [hit.memory.address.workspace for hit in hits] == ["ann", "bob"]
        three.remember("owls are birds", tier="account", tags=["birds"])
        assert sorted(hit.memory.address.workspace or "-" for hit in three.sessions.search({"tags": ["birds"]})) == [
            "-", "ann", "bob", "cy",
        ]  # fmt: skip
        assert three.at(workspace="bob").sessions.search("owl")[0].memory.content == "an owl of bob"
        assert {hit.memory.address.workspace for hit in three.at(workspace="bob").sessions.search("owl")} == {
            None,
            "bob",
        }


@pytest.mark.clause("LED-23")
def test_sessions_without_the_tag_are_not_even_opened(
    files: Files, three: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {topic: set(by) for topic, by in files.json("indices", "topic_index.json")["topics"].items()} == {
        f"birds.{name}": {name} for name in ("ann", "bob", "cy")
    }
    opened: set[str] = set()
    really = PlaceIndex.refresh

    def recording(index: PlaceIndex) -> None:
        opened.add(str(index.place.workspace))
        really(index)

    monkeypatch.setattr(PlaceIndex, "refresh", recording)
    with three:
        (hit,) = three.sessions.search({"tags": ["birds.bob"]})
        assert hit.memory.content == "an owl of bob"
        assert opened - {"None"} == {"bob"}
        assert len(three.sessions.search({"tags": ["birds"]})) == 3


@pytest.mark.clause("LED-23")
@pytest.mark.parametrize("behind", ["written since", "missing", "damaged", "from the future"])
def test_indices_that_are_behind_hide_nothing(files: Files, three: Memory, clock: Clock, behind: str) -> None:
    three.close()
    paths = sorted((files.root / "indices").iterdir())
    before = [path.read_bytes() for path in paths]
    with files.open(clock) as memory:
        memory.sessions.add("ann", entry("bob told ann", tags=["birds.bob"]))
    for path, data in zip(paths, before, strict=True):
        if behind == "missing":
            path.unlink()
        elif behind == "damaged":
            path.write_bytes(data[:-20])
        elif behind == "from the future":
            path.write_text(json.dumps({**json.loads(data), "version": 2}))
        else:
            path.write_bytes(data)
    with files.open(clock) as memory:
        found = memory.sessions.search({"tags": ["birds.bob"]})
        assert {hit.memory.address.workspace for hit in found} == {"ann", "bob"}
