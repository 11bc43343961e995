"""Looking ahead: what a simulation says will happen is what happens, and looking changes nothing."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.common import Clock
from support.stores import STORES, located

from recollect import InputError, Memory
from recollect.maintenance.plot import sparkline

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
EACH = pytest.mark.parametrize("store", STORES)
PRESETS = pytest.mark.parametrize("preset", ["atlas", "inklings", "every fourth day"])


def fill(memory: Memory) -> None:
    kinds = ("conversation", "task", "error", "fact")
    memory.remember_many(
        {
            "content": f"thing {chr(97 + n)}",
            "kind": kinds[n % 4],
            "importance": (0.0201, 0.05, 0.11, 0.5)[n // 4 % 4],
            "embedding": [float(at == (n - 8 if 16 <= n < 20 else n)) for at in range(24)],
        }
        for n in range(24)
    )


@EACH
@PRESETS
def test_what_is_foretold_comes_true(store: str, preset: str, tmp_path: Path, clock: Clock) -> None:
    if preset == "every fourth day":
        (tmp_path / "fourth.toml").write_text('extends = "inklings"\n[maintenance]\nconsolidate_hours = 96\n')
        preset = str(tmp_path / "fourth.toml")
    with Memory(located(store, tmp_path / "memory"), preset=preset, clock=clock) as memory:
        fill(memory)
        days = 40
        ahead = memory.simulate(days=days)
        foretold = {(event.id, event.change) for event in ahead.events if not event.held}
        assert len(foretold) > 5
        happened: set[tuple[str, str]] = set()
        live: list[int] = []
        for day in range(days + 1):
            clock.now = NOW + day * DAY
            steps = [step for report in memory.maintain().jobs for step in report.steps]
            happened |= {(step.id, step.change) for step in steps}
            live.append(len(memory.list()))
        happened |= {(one.id, "expire") for one in memory.list(state="expired")}
        assert foretold == happened
        assert list(ahead.live) == live


def test_each_event_says_when_and_why(tmp_path: Path, clock: Clock) -> None:
    with Memory(tmp_path / "memory", preset="atlas", clock=clock) as memory:
        talk = memory.remember("we talked", kind="conversation", importance=0.5)
        fact = memory.remember("a fact", kind="fact", importance=0.11)
        ahead = memory.simulate()
        assert [(event.id, event.change, event.day, event.at) for event in ahead.events] == [
            (talk.id, "expire", 7, NOW + 7 * DAY),
            (fact.id, "archive", 14, NOW + 14 * DAY),
        ]
        assert ahead.events[1].why == "its importance has decayed to 0.0993, below 0.1"
        assert ahead.live == (2,) * 7 + (1,) * 7 + (0,) * 17
        assert [(line.kind, line.tier, line.live[13]) for line in ahead.retained] == [
            ("conversation", "workspace", 0),
            ("fact", "workspace", 1),
        ]


@EACH
def test_looking_ahead_changes_nothing(store: str, tmp_path: Path, clock: Clock) -> None:
    with Memory(located(store, tmp_path / "memory"), preset="inklings", clock=clock) as memory:
        fill(memory)
        before, logged = memory.list(state=None), memory.audit.search(limit=100)
        assert memory.simulate(days=400).events
        assert memory.list(state=None) == before
        assert memory.audit.search(limit=100) == logged


def test_what_would_be_too_much_at_once_waits(tmp_path: Path, clock: Clock) -> None:
    with Memory(tmp_path / "memory", preset="inklings", clock=clock) as memory:
        memory.remember_many({"content": f"thing {n}", "importance": 0.5} for n in range(20))
        ahead = memory.simulate(days=120)
        first = min(event.day for event in ahead.events)
        that_day = [event.held for event in ahead.events if event.day == first]
        assert (that_day.count(False), that_day.count(True)) == (6, 14)  # 30 % of 20, and the rest waits
        assert ahead.live[-1] == 0  # in portions, day by day


def test_what_a_ledger_would_lose_when_it_is_compacted_is_told(tmp_path: Path, clock: Clock) -> None:
    with Memory(f"ledger:{tmp_path / 'memory'}", preset="ledger", clock=clock) as memory:
        memory.remember("a small thing", kind="fact", importance=0.2)
        ahead = memory.simulate(days=60)
        assert [(event.job, event.change, event.held) for event in ahead.events] == [("compact", "forget", True)]
        assert "removes it for good" in ahead.events[0].why


@pytest.mark.parametrize("days", [0, -1, 3651, 1.5, "30"])
def test_days_are_a_number_that_makes_sense(memory: Memory, days: object) -> None:
    with pytest.raises(InputError, match="days"):
        memory.simulate(days=days)  # type: ignore[arg-type]


def test_a_plot_has_a_line_for_each_kind_and_one_for_all(tmp_path: Path, clock: Clock) -> None:
    with Memory(tmp_path / "memory", preset="atlas", clock=clock) as memory:
        assert ET.fromstring(memory.simulate().svg()) is not None
        fill(memory)
        drawn = ET.fromstring(memory.simulate().svg())
        lines = drawn.findall("{http://www.w3.org/2000/svg}polyline")
        assert len(lines) == 5
        assert all(len((line.get("points") or "").split()) == 31 for line in lines)


def test_a_sparkline_fits_its_width() -> None:
    assert sparkline([0, 5, 10]) == "▁▅█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""
    assert len(sparkline(range(100))) == 30
