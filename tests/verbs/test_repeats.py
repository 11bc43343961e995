"""What is told again is one memory, on every store, whoever tells it at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import Clock
from support.stores import STORES, located
from support.watchdog import together

from recollect import Memory
from recollect.values.record import Address, Record, from_micros, new_id


@pytest.fixture(params=STORES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "m")


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime(2026, 3, 1, tzinfo=UTC))


@pytest.fixture
def memory(location: str, clock: Clock) -> Iterator[Memory]:
    with Memory(location, preset="recollect", embedder="none", clock=clock) as memory:
        yield memory


def test_the_memory_that_is_there_is_returned_and_counted(memory: Memory, clock: Clock) -> None:
    first = memory.remember("Alice prefers tabs", kind="preference", tags=["style"])
    clock.forward(days=2)
    second = memory.remember("Alice prefers tabs", tags=["people"])
    assert (second.id, second.kind, second.created_at) == (first.id, "preference", first.created_at)
    assert (second.access_count, second.accessed_at) == (1, clock())
    assert second.tags == ("style", "people")
    assert memory.list() == [second] == [memory.get(first.id)]
    assert [hit.memory.id for hit in memory.recall("tabs", touch=False)] == [first.id]


def test_it_is_there_once_after_a_restart(location: str) -> None:
    for _ in range(3):
        with Memory(location, preset="recollect", embedder="none") as memory:
            memory.remember("Alice prefers tabs")
    with Memory(location, preset="recollect", embedder="none") as memory:
        assert [record.access_count for record in memory.list()] == [2]


def test_again_insists(memory: Memory) -> None:
    first = memory.remember("tea at four")
    second = memory.remember("tea at four", again=True)
    assert first.id != second.id
    assert memory.remember("tea at four").id == second.id  # the latest
    assert len(memory.list()) == 2


OTHERS: list[dict[str, Any]] = [
    {"content": "Tea at four"},
    {"content": "tea at four "},
    {"content": "tea at four", "kind": "task"},
    {"content": "tea at four", "role": "user"},
    {"content": "tea at four", "source": "mail"},
    {"content": "tea at four", "created_at": "2025-01-01"},
    {"content": "tea at four", "expires_at": "2027-01-01"},
    {"content": "tea at four", "valid_from": "2025-01-01"},
    {"content": "tea at four", "valid_until": "2027-01-01"},
    {"content": "tea at four", "metadata": {"speaker": "Ann"}},
    {"content": "tea at four", "metadata": {"n": True}},
    {"content": "tea at four", "tags": [f"t{n}" for n in range(64)]},
    {"content": "tea at four", "conversation": "c"},
    {"content": "tea at four", "channel": "ops"},
    {"content": "tea at four", "tier": "account"},
]


@pytest.mark.parametrize("other", OTHERS, ids=range(len(OTHERS)))
def test_what_says_something_else_is_another(memory: Memory, other: dict[str, Any]) -> None:
    first = memory.remember("tea at four", tags=["one"], metadata={"n": 1})
    (second,) = memory.remember_many([other])
    assert second.id != first.id
    assert second.access_count == 0
    assert memory.get(first.id) == first


def test_views_have_their_own(memory: Memory) -> None:
    views = [memory, memory.at(agent="a"), memory.at(agent="b"), memory.at(account="u"), memory.at(channel="c")]
    assert len({view.remember("tea at four").id for view in views}) == len(views)
    assert len({view.remember("tea at four").id for view in views}) == len(views)


def test_turns_of_a_conversation_are_all_kept(memory: Memory) -> None:
    talk = memory.at(conversation="monday")
    assert len({talk.remember("yes", role="user").id for _ in range(3)}) == 3


@pytest.mark.parametrize("end", ["archive", "forget", "revise", "expire"])
def test_what_is_gone_can_be_told_anew(memory: Memory, clock: Clock, end: str) -> None:
    old = memory.remember("tea at four", expires_at=clock() + timedelta(days=1))
    if end == "archive":
        memory.archive(old.id)
    elif end == "forget":
        memory.forget(old.id)
    elif end == "revise":
        memory.revise(old.id, content="tea at five")
    else:
        clock.forward(days=2)
    new = memory.remember("tea at four")
    assert new.id != old.id
    assert new.access_count == 0


def test_a_batch_knows_its_own(memory: Memory) -> None:
    old = memory.remember("a")
    stored = memory.remember_many(["b", "a", "b", {"content": "b", "again": True}, "c"])
    assert [record.content for record in stored] == ["b", "a", "b", "b", "c"]
    assert stored[1].id == old.id
    assert stored[0] == stored[2] == memory.get(stored[0].id)
    assert stored[0].access_count == 1
    assert stored[3].id != stored[0].id
    assert len(memory.list()) == 4


def test_a_thousand_times_is_one_memory(memory: Memory) -> None:
    memory.remember_many(["tea"] * 1000)
    assert [record.access_count for record in memory.list()] == [999]


def test_telling_again_can_be_undone(memory: Memory) -> None:
    first = memory.remember("tea at four", tags=["one"])
    memory.remember_many(["tea at four", "coffee at five"])
    assert memory.audit.search("remembered")[0].message == "remembered a fact and a fact again"
    memory.undo()
    assert memory.list() == [first]
    memory.undo()
    assert memory.list() == []


def test_undoing_a_restore_keeps_the_retrievals_since(memory: Memory) -> None:
    """Restoring counted as one retrieval, which is taken back, and no more."""
    first = memory.remember("saffron rice")
    memory.archive(first.id)
    memory.restore(first.id)
    memory.recall("saffron")
    memory.recall("saffron")
    assert memory.get(first.id).access_count == 3
    memory.undo()
    undone = memory.get(first.id)
    assert (undone.access_count, undone.archived_at is not None) == (2, True)


def test_undoing_a_repetition_keeps_the_retrievals_since(memory: Memory) -> None:
    first = memory.remember("my dog is Bello")
    memory.remember("my dog is Bello", tags=["x"])
    for _ in range(5):
        memory.recall("dog Bello")
    memory.undo()
    assert (memory.get(first.id).access_count, memory.get(first.id).tags) == (5, ())


def test_the_documents_presets_keep_every_one(location: str) -> None:
    for preset in ("atlas", "aegis", "inklings", "ledger", "journal"):
        with Memory(location, preset=preset, embedder="none").at(workspace=preset) as memory:
            assert len({memory.remember("tea at four").id for _ in range(2)}) == 2


def test_the_importance_that_is_said_counts_where_it_is_higher(memory: Memory) -> None:
    memory.remember("tea at four", importance=0.6)
    assert memory.remember("tea at four").importance == 0.6
    assert memory.remember("tea at four", importance=0.2).importance == 0.6
    assert memory.remember("tea at four", importance=0.9).importance == 0.9


def test_an_expiry_stays_unless_it_is_said_anew(memory: Memory, clock: Clock) -> None:
    memory.remember("away", expires_at="2027-01-01")
    assert memory.remember("away").expires_at == datetime(2027, 1, 1, tzinfo=UTC)


def test_json_is_known_by_its_content(memory: Memory) -> None:
    first = memory.remember({"drink": "tea", "at": 4})
    assert memory.remember({"drink": "tea", "at": 4}).id == first.id
    assert memory.remember("drink: tea\nat: 4").id != first.id


def test_threads_that_tell_the_same_leave_one(memory: Memory) -> None:
    together(*([lambda: [memory.remember(f"tea at {n % 5}") for n in range(20)]] * 6))
    records = memory.list()
    assert sorted(record.content for record in records) == [f"tea at {n}" for n in range(5)]
    assert sum(record.access_count + 1 for record in records) == 120


def test_processes_that_tell_the_same_leave_one(location: str) -> None:
    script = f"""
from recollect import Memory
with Memory({location!r}, preset="recollect", embedder="none") as memory:
    for n in range(20):
        memory.remember(f"tea at {{n % 5}}")
"""
    running = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    with Memory(location, preset="recollect", embedder="none") as memory:
        assert sum(record.access_count + 1 for record in memory.list()) == 60
        assert len(memory.list()) == 5


def test_a_store_made_before_knows_its_texts(tmp_path: Path) -> None:
    """The hashes of texts are filled in when an older file is opened."""
    import apsw

    from recollect.stores.sqlite.opening import _MIGRATIONS  # pyright: ignore[reportPrivateUsage]

    file = tmp_path / "m/default/workspaces/default/memory.db"
    file.parent.mkdir(parents=True)
    connection = apsw.Connection(str(file))
    for script in _MIGRATIONS[:4]:
        connection.execute(script.read_text())
    row = {"id": new_id(), "tier": "workspace", "kind": "fact", "lifetime": "long_term", "importance": 0.5}
    row |= {"created_at": 1, "accessed_at": 1, "access_count": 0, "checksum": "", "schema_version": 1}
    row |= {"text": "tea at four"}
    record = Record(row["id"], Address(), "workspace", "fact", "tea at four", 0.5, from_micros(1), from_micros(1))
    row["checksum"] = record.digest()
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO memories ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
    connection.execute("INSERT INTO memories_text (rowid, text) VALUES (1, 'tea at four')")
    connection.execute(f"PRAGMA user_version = 4; PRAGMA application_id = {0x7265636C}")
    connection.close()
    with Memory(f"sqlite:{tmp_path / 'm'}", embedder="none") as memory:
        assert memory.remember("tea at four").access_count == 1
