"""Maintenance in the background of a server."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.common import Clock
from support.stores import STORES, located

from recollect import Memory
from recollect.presets import load
from recollect.server.upkeep import BackgroundMaintenance

INKLINGS = load("inklings")


def fill(memory: Memory) -> None:
    for workspace in ("shop", "home"):
        view = memory.at(workspace=workspace)
        view.remember_many({"content": f"thing {n} of {workspace}", "importance": 0.5} for n in range(20))


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.clause("INK-19", "INK-25")
def test_a_missed_schedule_runs_once_at_the_start_and_works_off_what_has_faded(tmp_path: Path, kind: str) -> None:
    clock = Clock(datetime(2026, 1, 1, tzinfo=UTC))
    with Memory(located(kind, tmp_path / "memory"), preset="inklings", clock=clock, embedder="none") as memory:
        fill(memory)
        clock.forward(days=200)
        with BackgroundMaintenance(memory, first=600) as background:
            for live in (14, 14):  # a second look on the same day finds it done
                background.run_once()
                assert [len(memory.at(workspace=name).list()) for name in ("shop", "home")] == [live, live]
            for _ in range(10):
                clock.forward(days=1)
                background.run_once()
            assert [len(memory.at(workspace=name).list()) for name in ("shop", "home")] == [0, 0]
        assert len(memory.at(workspace="shop").list(state="archived")) == 20


@pytest.mark.clause("INK-25")
def test_it_runs_by_itself_in_a_thread_that_ends_with_the_process(tmp_path: Path) -> None:
    clock = Clock(datetime(2026, 1, 1, tzinfo=UTC))
    with Memory(tmp_path / "memory", preset="inklings", clock=clock, embedder="none") as memory:
        fill(memory)
        clock.forward(days=200)
        done = threading.Event()
        with BackgroundMaintenance(memory, first=0) as background:
            once = background.run_once
            background.run_once = lambda: (once(), done.set())  # pyright: ignore[reportAttributeAccessIssue]
            for _ in range(600):
                if done.wait(0.1) or len(memory.at(workspace="home").list()) < 20:
                    break
        assert not [thread for thread in threading.enumerate() if thread.name == "recollect-maintenance"]
        assert len(memory.at(workspace="home").list()) < 20


@pytest.mark.clause("INK-25")
def test_it_can_be_switched_off(tmp_path: Path) -> None:
    preset = replace(INKLINGS, maintenance=replace(INKLINGS.maintenance, background=False))
    with Memory(tmp_path, preset=preset, embedder="none") as memory, BackgroundMaintenance(memory, first=0):
        assert not [thread for thread in threading.enumerate() if thread.name == "recollect-maintenance"]
