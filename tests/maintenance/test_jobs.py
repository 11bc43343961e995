"""Jobs: planned without a trace, done by one process at a time, when they are due, and undone if that is wanted."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.common import Clock, Script
from support.stores import STORES, located

from recollect import InputError, Memory, Record
from recollect.maintenance import leases, steps
from recollect.maintenance.jobs import EVERY
from recollect.maintenance.schedule import Maintained
from recollect.presets import load
from recollect.stores.port import Place
from recollect.values.errors import ConcurrencyError, ConflictError, ModelError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
PLACE = Place("default", "default")
EACH = pytest.mark.parametrize("store", STORES)


def opened(store: str, path: Path, clock: Clock, extra: str = "") -> Memory:
    file = path / "mine.toml"
    file.write_text(f'extends = "inklings"\n{extra}')
    return Memory(located(store, path / "memory"), preset=file, clock=clock)


def ran(done: Maintained) -> list[str]:
    return [report.job for report in done.jobs]


def by_job(done: Maintained, job: str) -> list[tuple[str, str]]:
    return [(step.id, step.change) for report in done.jobs if report.job == job for step in report.steps]


def fill(memory: Memory, number: int = 20) -> list[Record]:
    return memory.remember_many({"content": f"thing number {n}", "importance": 0.5} for n in range(number))


@EACH
def test_a_dry_run_lists_every_change_with_its_reason_and_leaves_no_trace(
    store: str, tmp_path: Path, clock: Clock
) -> None:
    extra = "[retention]\narchive_below = 0.1\nearly_cleanup_below = 0.3\nquota = 18\n"
    with opened(store, tmp_path, clock, extra) as memory:
        fill(memory, 16)
        faint = memory.remember("a faint owl", importance=0.05)
        low = memory.remember("a low owl", importance=0.2)
        logged, before = memory.audit.search(limit=1000), memory.list(state=None)
        done = memory.maintain(early=True, dry_run=True)
        assert by_job(done, "decay") == [(faint.id, "archive")]
        assert by_job(done, "early") == [(low.id, "archive")]
        (report,) = [report for report in done.jobs if report.job == "decay"]
        assert (report.outcome, report.workspace) == ("planned", "default")
        assert report.steps[0].why == "its importance has decayed to 0.05, below 0.1"
        assert memory.list(state=None) == before
        assert memory.audit.search(limit=1000) == logged
        assert list(memory._view.store.shelf(PLACE, leases.SHELF)) == []
        done = memory.maintain(early=True)
        assert (done.decayed, done.unimportant) == ((faint.id,), (low.id,))
        memory.undo()
        assert memory.get(low.id).archived_at is None


@EACH
def test_what_the_quota_takes_is_planned_like_the_rest(store: str, tmp_path: Path, clock: Clock) -> None:
    with opened(store, tmp_path, clock, "[retention]\nquota = 100\n") as memory:
        stored = fill(memory, 6)
    with opened(store, tmp_path, clock, "[retention]\nquota = 4\n") as memory:
        planned = memory.maintain(dry_run=True, jobs=["quota"])
        assert by_job(planned, "quota") == [(stored[0].id, "archive"), (stored[1].id, "archive")]
        assert len(memory.list()) == 6
        assert memory.maintain(jobs=["quota"], only=[stored[1].id]).jobs[0].steps == planned.jobs[0].steps[1:]
        assert len(memory.list()) == 5
        memory.undo()
        assert len(memory.list()) == 6


@EACH
@pytest.mark.clause("INK-19")
def test_a_missed_schedule_is_caught_up_once(store: str, tmp_path: Path, clock: Clock) -> None:
    with opened(store, tmp_path, clock) as memory:
        fill(memory)
        runs: list[datetime] = []
        for hours in (0, 1, 23, 24, 25, 24 * 9, 24 * 9 + 1, 24 * 10):
            clock.now = NOW + hours * HOUR
            memory.maintain()
            runs.append(last(memory))
        assert runs == [NOW + hours * HOUR for hours in (0, 0, 0, 24, 24, 24 * 9, 24 * 9, 24 * 10)]


def last(memory: Memory, job: str = "consolidate") -> datetime:
    (thing,) = memory._view.store.find(PLACE, leases.SHELF, [job])
    assert "owner" not in thing.body
    return datetime.fromisoformat(thing.body["last_run"])


def test_a_clock_that_was_set_back_stops_no_job(tmp_path: Path, clock: Clock) -> None:
    with opened("sqlite", tmp_path, clock) as memory:
        fill(memory)
        memory.maintain()
        clock.now = NOW - 400 * DAY
        memory.maintain()
        assert last(memory) == clock.now


@EACH
def test_a_job_that_another_process_has_is_left_to_it_until_its_lease_ends(
    store: str, tmp_path: Path, clock: Clock
) -> None:
    with opened(store, tmp_path, clock) as memory:
        fill(memory)
        lease = leases.take(memory._view, PLACE, "consolidate")
        assert lease is not None
        assert leases.take(memory._view, PLACE, "consolidate") is None
        (report,) = [report for report in memory.maintain().jobs if report.job == "consolidate"]
        assert report.outcome == "busy"
        clock.now += timedelta(minutes=10)  # its owner was killed
        assert "consolidate" not in ran(memory.maintain())
        assert last(memory) == clock.now
        with memory._view.store.transaction(PLACE), pytest.raises(leases.LeaseLostError):
            lease.check(memory._view)
        leases.give_back(memory._view, lease, done=True)
        assert last(memory) == clock.now


def test_whoever_was_taken_over_changes_nothing(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = [job for job in EVERY if job.name == "consolidate"]
    with opened("sqlite", tmp_path, clock) as memory:
        memory.remember_many({"content": f"thing {n}", "importance": 0.001} for n in range(3))
        planned = type(job).plan

        def slow(self: object, view: object, place: Place) -> steps.JobPlan:
            plan = planned(self, view, place)  # type: ignore[arg-type]
            clock.now += HOUR
            assert leases.take(memory._view, PLACE, "consolidate") is not None
            return plan

        monkeypatch.setattr(type(job), "plan", slow)
        (report,) = [report for report in memory.maintain().jobs if report.job == "consolidate"]
        assert (report.outcome, report.steps) == ("busy", ())
        assert len(memory.list()) == 3


def test_an_agents_run_is_not_taken_for_everybodys(tmp_path: Path, clock: Clock) -> None:
    with opened("sqlite", tmp_path, clock) as memory:
        memory.remember_many({"content": f"thing {n}", "importance": 0.001} for n in range(3))
        memory.at(agent="ada").remember("of ada", importance=0.001)
        assert len(by_job(memory.at(agent="bob").maintain(), "consolidate")) == 3
        assert len(by_job(memory.maintain(), "consolidate")) == 1


def test_jobs_that_are_named_run_whether_or_not_they_are_due(tmp_path: Path, clock: Clock) -> None:
    with opened("sqlite", tmp_path, clock) as memory:
        fill(memory)
        memory.maintain()
        faint = memory.remember("faint", importance=0.001)
        assert by_job(memory.maintain(), "consolidate") == []
        assert by_job(memory.maintain(jobs=["consolidate"]), "consolidate") == [(faint.id, "archive")]
        for wrong in (["tidy"], "consolidate", [7]):
            with pytest.raises(InputError, match="jobs: "):
                memory.maintain(jobs=wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="only: "):
            memory.maintain(only=["../x"])


def test_stopping_leaves_the_rest_for_the_next_time(tmp_path: Path, clock: Clock) -> None:
    with opened("sqlite", tmp_path, clock, "[retention]\narchive_below = 0.1\n") as memory:
        memory.remember("faint", importance=0.001)
        answers = iter([False, True])
        assert ran(memory.maintain(stopping=lambda: next(answers))) == ["decay"]
        assert list(memory._view.store.find(PLACE, leases.SHELF, ["consolidate"])) == []


def test_looking_after_nothing_leaves_nothing_behind(tmp_path: Path, clock: Clock) -> None:
    with opened("sqlite", tmp_path, clock) as memory:
        assert memory.maintain(early=True).jobs == ()
        assert not (tmp_path / "memory").exists()


def test_a_plan_that_would_lose_a_memory_is_not_committed(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = steps.changed
    with opened("sqlite", tmp_path, clock) as memory:
        stored = memory.remember_many({"content": f"thing {n}", "importance": 0.001} for n in range(3))

        def circle(*given: object) -> dict[str, Record]:
            after = changed(*given)  # type: ignore[arg-type]
            first, second = stored[0], stored[1]
            return after | {
                first.id: steps.replace(first, superseded_by=second.id),
                second.id: steps.replace(second, superseded_by=first.id),
            }

        monkeypatch.setattr(steps, "changed", circle)
        with pytest.raises(ConflictError, match="would be lost; nothing was changed"):
            memory.maintain()
        assert sorted(memory.list(), key=lambda one: one.id) == stored
        monkeypatch.undo()
        assert len(by_job(memory.maintain(), "consolidate")) == 3


WORKER = """
import sys
from datetime import datetime, UTC
from recollect import Memory
with Memory(sys.argv[1], preset=sys.argv[2]) as memory:
    print("ready", flush=True)
    input()
    done = memory.maintain(jobs=["consolidate"])
    print(sum(len(report.steps) for report in done.jobs))
"""


def test_of_many_processes_one_does_the_job(tmp_path: Path, start: Callable[..., Script]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('extends = "inklings"\n[maintenance]\nask_share = 1.0\n')
    with Memory(tmp_path / "memory", preset=file) as memory:
        memory.remember_many({"content": f"thing {n}", "importance": 0.001} for n in range(500))
        started = [start(WORKER, tmp_path / "memory", file) for _ in range(4)]
        assert [script.line() for script in started] == ["ready"] * 4
        for script in started:
            script.tell("go")
        assert sum(int(script.finish()) for script in started) == 500
        assert len(memory.audit.search("archived", action="consolidate")) == 1


WATCHER = """
import sys
from recollect.cli import main
sys.argv = ["recollect", "maintain", "--watch", "--json", "--store", sys.argv[1], "--preset", "inklings"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_watching_ends_cleanly_when_it_is_told_to(
    number: signal.Signals, tmp_path: Path, start: Callable[..., Script]
) -> None:
    with Memory(tmp_path / "memory", preset="inklings") as memory:
        memory.remember_many({"content": f"thing {n}", "importance": 0.001} for n in range(3))
    script = start(WATCHER, tmp_path / "memory", env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert '"job":"consolidate"' in script.line()
    began = time.monotonic()
    script.send_signal(number)
    script.finish()
    assert time.monotonic() - began < 20
    with Memory(tmp_path / "memory", preset="inklings") as memory:
        assert len(memory.list(state="archived")) == 3
        assert all("owner" not in thing.body for thing in memory._view.store.shelf(PLACE, leases.SHELF))


class Counting:
    """An embedder that fails until it is told not to."""

    model, dimensions = "counting", 2

    def __init__(self) -> None:
        self.broken, self.embedded = True, 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.broken:
            raise ModelError("there is no provider")
        self.embedded += len(texts)
        return [[1.0, float(len(text))] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0]

    def close(self) -> None: ...


@pytest.mark.clause("INK-15")
def test_missing_vectors_are_made_every_thirty_minutes_and_silently_not_without_a_provider(
    tmp_path: Path, clock: Clock
) -> None:
    embedder: Any = Counting()
    with opened("sqlite", tmp_path, clock) as memory:
        fill(memory, 5)
        assert "embed" not in ran(memory.maintain(dry_run=True))
    with Memory(tmp_path / "memory", preset="inklings", clock=clock, embedder=embedder) as memory:
        (planned,) = memory.maintain(dry_run=True, jobs=["embed"]).jobs
        assert planned.count == 5
        assert memory.maintain(jobs=["embed"]).jobs == ()
    embedder.broken = False
    with Memory(tmp_path / "memory", preset="inklings", clock=clock, embedder=embedder) as memory:
        clock.now += timedelta(minutes=29)
        assert "embed" not in ran(memory.maintain())
        clock.now += timedelta(minutes=1)
        assert [report.count for report in memory.maintain().jobs if report.job == "embed"] == [5]
        assert memory.stats().embedded == 5


@pytest.mark.clause("INK-15")
def test_a_run_of_maintenance_makes_fifty_vectors_and_no_more(tmp_path: Path, clock: Clock) -> None:
    embedder: Any = Counting()
    embedder.broken = False
    with opened("sqlite", tmp_path, clock) as memory:
        fill(memory, 120)
    with Memory(tmp_path / "memory", preset="inklings", clock=clock, embedder=embedder) as memory:
        for made in (50, 100, 120):
            memory.maintain(jobs=["embed"])
            assert embedder.embedded == memory.stats().embedded == made


def test_watching_outlives_a_store_that_is_busy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from recollect.cli import maintaining

    calls: list[Callable[[], bool]] = []

    class Busy:
        preset = load("inklings")

        def maintain(self, stopping: Callable[[], bool]) -> Maintained:
            calls.append(stopping)
            if len(calls) == 1:
                raise ConcurrencyError("another process writes")
            os.kill(os.getpid(), signal.SIGTERM)
            while not stopping():
                time.sleep(0.01)
            return Maintained()

    monkeypatch.setattr(maintaining, "seconds", lambda memory: 0.01)
    before = signal.getsignal(signal.SIGTERM)
    busy: Any = Busy()
    target: Any = SimpleNamespace(json=False, typed="")
    maintaining._watch(busy, target)
    assert len(calls) == 2
    assert "another process writes" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) == before
