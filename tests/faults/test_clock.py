"""A clock that goes backwards changes what time it is, and nothing else."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from support.stores import STORES, located

from recollect import Memory
from recollect.policies.decay import strength
from recollect.values.record import new_id

if TYPE_CHECKING:
    from pathlib import Path

    from support.common import Clock

LAST = datetime(9999, 12, 30, tzinfo=UTC)
PRESETS = ("recollect", "atlas", "aegis", "inklings", "ledger", "journal")


def test_ids_made_by_one_process_sort_in_the_order_they_were_made(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now)
    ids = [new_id() for _ in range(100)]
    for seconds in (-1, -86_400, 0, 1, -10_000_000):
        later = now + seconds * 1_000_000_000
        monkeypatch.setattr(time, "time_ns", lambda later=later: later)
        ids += [new_id() for _ in range(100)]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_verb_works_after_the_clock_went_back(store_url: str, clock: Clock, preset: str) -> None:
    with Memory(store_url, preset=preset, clock=clock) as memory:
        first = memory.remember("a heron at noon", kind="fact")
        memory.recall("heron")
        clock.back(days=400)
        second = memory.remember("a heron a year before", kind="fact")
        assert {hit.memory.id for hit in memory.recall("heron")} == {first.id, second.id}
        third = memory.revise(first.id, content="a grey heron")
        assert [record.id for record in memory.history(third.id)] == [first.id, third.id]
        memory.archive(second.id)
        memory.restore(second.id)
        memory.maintain()
        assert memory.diagnose(third.id).status == "live"
        memory.forget(second.id)
        memory.undo()
        assert memory.doctor().ok


@pytest.mark.parametrize("preset", PRESETS)
def test_a_memory_from_the_future_is_never_stronger_than_it_was_stored(
    store_url: str, clock: Clock, preset: str
) -> None:
    with Memory(store_url, preset=preset, clock=clock) as memory:
        record = memory.remember("a heron", importance=0.8)
        for years in (0, 1, 50):
            clock.back(days=365 * years)
            assert strength(memory.get(record.id), memory.preset.decay, clock.now) <= 0.8
            (hit,) = memory.recall("heron", touch=False)
            assert all(part.value <= 1.5 for part in hit.explain().parts)


@pytest.mark.clause("ATL-06")
def test_the_audit_log_keeps_the_order_of_writing(memory: Memory, clock: Clock) -> None:
    for n in range(5):
        clock.back(hours=n)
        memory.audit.record("note", f"note number {n}")
    assert [entry.message for entry in memory.audit.search("NOTE")] == [f"note number {n}" for n in (4, 3, 2, 1, 0)]
    assert all(log.ok for log in memory.audit.verify())


def test_a_retrieval_before_the_last_one_counts_and_does_not_turn_back_time(memory: Memory, clock: Clock) -> None:
    record = memory.remember("a heron")
    clock.forward(hours=2)
    latest = clock.now
    memory.recall("heron")
    clock.back(hours=1)
    memory.recall("heron")
    again = memory.get(record.id)
    assert (again.access_count, again.accessed_at) == (2, latest)


@pytest.mark.parametrize("now", [datetime(1, 6, 1, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC), LAST], ids=str)
@pytest.mark.parametrize("preset", PRESETS)
def test_clocks_at_the_ends_of_time_are_clocks_too(store_url: str, clock: Clock, preset: str, now: datetime) -> None:
    clock.now = now
    with Memory(store_url, preset=preset, clock=clock) as memory:
        record = memory.remember("a heron", kind="task")
        assert memory.get(record.id).created_at == now
        assert len(memory.recall("heron")) == 1
        memory.revise(record.id, content="a grey heron")
        memory.maintain()
        clock.now += timedelta(hours=1)
        assert len(memory.recall("heron")) == 1
        assert memory.doctor().ok


@pytest.mark.parametrize("store", STORES)
def test_a_clock_without_a_zone_is_taken_as_utc_everywhere(tmp_path: Path, store: str) -> None:
    with Memory(located(store, tmp_path / "m"), preset="ledger", clock=lambda: datetime(2026, 1, 1)) as memory:
        kept = memory.remember("a heron")
        assert kept.created_at == datetime(2026, 1, 1, tzinfo=UTC)
        memory.forget(memory.remember("an owl").id)
        memory.compact()
    with Memory(located(store, tmp_path / "m"), preset="ledger") as memory:
        assert memory.list() == [kept]
