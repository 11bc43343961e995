"""The journal preset, "Agent Memory Feature": journal for a week in the prompt, core for ever, oldest first."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.common import Clock

from recollect import InputError, Memory
from recollect.policies.retention import in_window

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
WEEK = timedelta(weeks=1)


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def journal(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with Memory(tmp_path / "memory", preset="journal", clock=clock) as memory:
        yield memory.at(agent="gaia")


def in_prompt(journal: Memory, now: datetime) -> list[str]:
    return [one.text for one in journal.list(newest_first=False) if in_window(journal.preset.retention, one, now)]


@pytest.mark.clause("JRN-01")
def test_a_journal_entry_is_in_the_prompt_for_a_week_and_core_for_ever(journal: Memory, clock: Clock) -> None:
    journal.remember("met Alice", kind="journal")
    journal.remember("I am Gaia", kind="core")
    assert in_prompt(journal, NOW + WEEK) == ["met Alice", "I am Gaia"]
    clock.now = NOW + WEEK + timedelta(microseconds=1)
    assert in_prompt(journal, clock.now) == ["I am Gaia"]
    clock.now = NOW + 1000 * WEEK
    assert in_prompt(journal, clock.now) == ["I am Gaia"]


@pytest.mark.clause("JRN-01")
def test_expiry_is_a_matter_of_asking_and_the_row_stays(journal: Memory, clock: Clock) -> None:
    entry = journal.remember("met Alice")
    assert (entry.kind, entry.expires_at) == ("journal", None)
    clock.now += 52 * WEEK
    journal.maintain(early=True)
    assert journal.get(entry.id) == entry
    assert journal.list() == [entry]
    assert [hit.memory.text for hit in journal.recall("Alice")] == ["met Alice"]
    assert journal.diagnose(entry.id).status == "live"


def test_a_recall_reads_like_a_diary(journal: Memory, clock: Clock) -> None:
    for day, text in enumerate(["met Alice once", "met Alice twice", "met Alice again"]):
        clock.now = NOW + timedelta(days=day)
        journal.remember(text)
    hits = journal.recall("Alice again")
    assert [hit.memory.text for hit in hits] == ["met Alice once", "met Alice twice", "met Alice again"]
    assert [hit.score for hit in hits] == [2.0, 1.0, 0.0]
    for hit in hits:
        (part,) = hit.explain().parts
        assert (part.name, part.share) == ("age_days", hit.score)


def test_an_entry_is_not_blank_and_has_at_most_10_000_characters(journal: Memory) -> None:
    assert journal.remember("x " * 5000).importance == 0.5
    with pytest.raises(InputError, match="10,001 characters is over the limit of 10,000"):
        journal.remember("x " * 5000 + "x")
    with pytest.raises(InputError, match="must not be empty or blank"):
        journal.remember(" \n ")


def test_a_journal_is_private_to_its_agent(tmp_path: Path, journal: Memory) -> None:
    entry = journal.remember("met Alice")
    with Memory(tmp_path / "memory", preset="journal") as memory:
        assert memory.at(agent="other").list() == []
        assert memory.at(agent="other").recall("Alice") == []
        assert memory.at(agent="gaia").list() == [entry]
        assert memory.list() == [entry]
