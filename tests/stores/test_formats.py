"""Any later version opens what an earlier one wrote, and finds everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from support import formats, postgres, stores

from recollect import Memory

LATE = "A late note that is forgotten last"
REVISED = "The car is in garage 4"


def restored(name: str, kind: str, folder: Path) -> str:
    """The location of a store as an earlier version left it."""
    if kind != "postgresql":
        formats.unpack(name, kind, folder)
        return f"{kind}:{folder}/store{'.jsonl' if kind == 'notebook' else ''}"
    location = stores.fresh_location(untouched=True)
    with Memory(stores.located(kind, folder / "other")) as memory:  # makes the roles that own the schema
        memory.stats()
    with psycopg.connect(postgres.shared().url(), autocommit=True) as connection:
        connection.execute(formats.dump(name, location.rpartition("=")[2]).encode())
    return location


@pytest.fixture(params=formats.names())
def name(request: Any) -> str:
    return request.param


@pytest.mark.parametrize("kind", stores.STORES)
class TestAnEarlierFormat:
    def test_everything_is_found(self, name: str, kind: str, tmp_path: Path) -> None:
        location = restored(name, kind, tmp_path)
        with formats.opened(location) as memory:
            assert formats.differences(formats.expected(name, kind), formats.look(memory, kind)) == []

    def test_everything_is_found_after_a_change(self, name: str, kind: str, tmp_path: Path) -> None:
        location, expected = restored(name, kind, tmp_path), formats.expected(name, kind)
        with formats.opened(location) as memory:
            added = memory.remember("A note of today")
            memory.forget(added.id, erase=True)
        with formats.opened(location) as memory:
            state = formats.look(memory, kind)
        later = state["audit"]["default"]
        state["audit"]["default"] = later[len(later) - len(expected["audit"]["default"]) :]
        assert formats.differences(expected, state) == []

    def test_the_last_change_is_undone(self, name: str, kind: str, tmp_path: Path) -> None:
        with formats.opened(restored(name, kind, tmp_path)) as memory:
            assert memory.recall(LATE, limit=1)[0].memory.content != LATE
            memory.undo()
            (hit,) = memory.recall(LATE, limit=1)
            assert hit.memory.content == LATE

    def test_what_was_forgotten_can_be_erased(self, name: str, kind: str, tmp_path: Path) -> None:
        location = restored(name, kind, tmp_path)
        assert stores.traces(location, LATE.encode())
        with formats.opened(location) as memory:
            (record,) = [one for one in memory.list(state=None, limit=1000) if one.content == "The car is in garage 4"]
            memory.forget(record.id, erase=True)
            memory.compact()
        assert stores.traces(location, LATE.encode()) == []
        assert stores.traces(location, b"garage 4 is") == []


@pytest.mark.parametrize("kind", stores.STORES)
def test_an_earlier_store_learns_when_memories_are_valid(name: str, kind: str, tmp_path: Path) -> None:
    with formats.opened(restored(name, kind, tmp_path)) as memory:
        earlier = memory.list(state=None, limit=1000)
        assert {(record.valid_from, record.valid_until) for record in earlier} == {(None, None)}
        old = next(record for record in earlier if record.text == REVISED)
        new = memory.revise(old.id, content="The car is in garage 5", valid_from="2026-03-10")
        ended = memory.get(old.id)
        assert ended.valid_until == new.valid_from
        assert old.id not in {record.id for record in memory.list(state=None, limit=1000, valid_at="2026-03-10")}
        memory.undo()
        assert memory.get(old.id) == old
