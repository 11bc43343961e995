"""A newer memory takes the place of one that it contradicts, and hardly ever of one that it does not."""

from __future__ import annotations

import csv
from datetime import timedelta
from pathlib import Path

import pytest
from support.common import Clock
from support.stores import STORES, located

from recollect import Memory
from recollect.presets import load, names
from recollect.text.statements import contradicts

HERE = Path(__file__).parent
FRESHNESS = HERE.parent.parent / "benchmarks" / "freshness.tsv"
HOUR = timedelta(hours=1)
EACH = pytest.mark.parametrize("store", STORES)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def measured(pairs: list[tuple[str, str, bool]]) -> tuple[float, float]:
    found = [(contradicts(old, new), right) for old, new, right in pairs]
    hits = sum(said and right for said, right in found)
    return hits / max(1, sum(said for said, _ in found)), hits / sum(right for _, right in found)


def test_of_labelled_pairs_nearly_all_that_is_found_is_right(record_property: pytest.RecordProperty) -> None:
    pairs = [(row["old"], row["new"], row["contradicts"] == "yes") for row in rows(HERE / "superseding.tsv")]
    assert len(pairs) >= 150
    precision, recall = measured(pairs)
    record_property("precision and recall", f"{precision:.3f} {recall:.3f}")
    print(f"superseding: precision {precision:.3f}, recall {recall:.3f} of {len(pairs)} pairs")
    assert precision >= 0.95
    assert recall >= 0.8


def test_so_it_is_of_pairs_that_it_was_not_written_for() -> None:
    pairs = [(row["older"], row["newer"], row["label"] == "contradict") for row in rows(FRESHNESS)]
    precision, recall = measured(pairs)
    assert precision >= 0.95
    assert recall >= 0.1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The deadline is 1 March", "Maybe the deadline is 15 April"),
        ("Maybe the deadline is 1 March", "Maybe the deadline is 15 April"),
        ("Tom said the deadline is 1 March", "Tom said the deadline is 15 April"),
        ("The deadline was 1 March and 3 May", "The deadline was 1 March and 15 April"),
        ("The price is 19 euros if you pay now", "The price is 24 euros if you pay now"),
        ("The team uses Slack", "The team uses Notion"),
        ("Anna has Python", "Anna has Rust"),
        ("Is the price 19 euros?", "Is the price 24 euros?"),
    ],
)
def test_where_it_is_not_sure_it_says_no(old: str, new: str) -> None:
    assert not contradicts(old, new)


def opened(store: str, path: Path, clock: Clock, extra: str = "") -> Memory:
    (path / "mine.toml").write_text(f"[maintenance]\nsupersede = true\n{extra}")
    return Memory(located(store, path / "memory"), preset=path / "mine.toml", clock=clock)


def test_no_preset_of_ours_has_it_on() -> None:
    assert not any(load(name).maintenance.supersede for name in names())


@EACH
def test_the_newest_of_a_chain_stays_and_all_are_its_history(store: str, tmp_path: Path, clock: Clock) -> None:
    with opened(store, tmp_path, clock) as memory:
        stored = []
        for number in (100, 250, 400):
            stored.append(memory.remember(f"The rate limit is {number} requests per minute"))
            clock.now += HOUR
        other = memory.remember("The burst limit is 7 requests per minute")
        planned = memory.maintain(dry_run=True)
        assert [(step.id, step.by) for report in planned.jobs for step in report.steps] == [
            (stored[1].id, stored[2].id),
            (stored[0].id, stored[2].id),
        ]
        assert len(memory.list()) == 4
        memory.maintain()
        assert {one.id for one in memory.list()} == {stored[2].id, other.id}
        assert {one.id for one in memory.history(stored[2].id)} == {one.id for one in stored}
        memory.undo()
        assert len(memory.list()) == 4


def test_who_says_it_and_where_must_be_the_same(tmp_path: Path, clock: Clock) -> None:
    old, new = "The gate code is 4711", "The gate code is 8123"
    with opened("sqlite", tmp_path, clock) as memory:
        memory.at(agent="ada").remember(old)
        memory.remember(old, channel="garden")
        memory.remember(old, kind="task")
        memory.remember(old, role="user")
        clock.now += HOUR
        memory.at(agent="bob").remember(new)
        memory.remember(new, channel="garage")
        memory.remember(new)
        assert memory.maintain().jobs == ()


def test_a_series_is_none_of_its_business(tmp_path: Path, clock: Clock) -> None:
    with opened("sqlite", tmp_path, clock) as memory:
        for number in range(13):
            memory.remember(f"The temperature is {number} degrees")
            clock.now += HOUR
        assert memory.maintain().jobs == ()


def test_what_is_too_much_at_once_is_held_back(tmp_path: Path, clock: Clock) -> None:
    with opened("sqlite", tmp_path, clock, "ask_least = 0\n") as memory:
        memory.remember("The gate code is 4711")
        clock.now += HOUR
        memory.remember("The gate code is 8123")
        (report,) = memory.maintain().jobs
        assert (report.outcome, len(report.held)) == ("held", 1)
        assert [event.held for event in memory.simulate(days=3).events] == [True]
