from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from recollect.policies.decay import HalfLife, NoDecay, Weekly
from recollect.policies.retention import Retention, decayed, early, expiry, in_window, over_quota
from recollect.presets import load
from recollect.values.record import Address, Record

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def record(id: str = "1", *, kind: str = "fact", importance: float = 0.5, age: timedelta = timedelta(0)) -> Record:
    return Record(
        id=id,
        address=Address(),
        tier="workspace",
        kind=kind,
        content="text",
        importance=importance,
        created_at=NOW - age,
        accessed_at=NOW - age,
    )


@pytest.mark.clause("ATL-11")
@pytest.mark.parametrize(
    ("kind", "days"),
    [
        ("conversation", 7),
        ("task", 30),
        ("decision", 90),
        ("approval", 90),
        ("error", 14),
        ("failure", 14),
        ("preference", None),
    ],
)
def test_each_kind_expires_after_its_days(kind: str, days: int | None) -> None:
    until = expiry(load("atlas").retention, kind, NOW, explicit=False)
    assert until == (None if days is None else NOW + timedelta(days=days))


@pytest.mark.clause("ATL-11")
def test_what_the_user_asked_to_remember_never_expires() -> None:
    assert expiry(load("atlas").retention, "conversation", NOW, explicit=True) is None


def test_asking_changes_nothing_where_the_preset_does_not_say_so() -> None:
    assert expiry(Retention(ttl_days={"fact": 1}), "fact", NOW, explicit=True) == NOW + timedelta(days=1)


def test_an_expiry_after_the_last_date_is_never() -> None:
    assert (
        expiry(Retention(ttl_days={"fact": 36_525}), "fact", datetime(9999, 1, 1, tzinfo=UTC), explicit=False) is None
    )


@pytest.mark.clause("JRN-01")
@pytest.mark.parametrize(
    ("kind", "age", "active"),
    [
        ("journal", timedelta(0), True),
        ("journal", timedelta(days=7), True),
        ("journal", timedelta(days=7) + TICK, False),
        ("journal", timedelta(days=-1), True),
        ("core", timedelta(days=5000), True),
    ],
)
def test_journal_entries_stay_in_the_prompt_for_a_week_and_core_for_ever(
    kind: str, age: timedelta, active: bool
) -> None:
    assert in_window(load("journal").retention, record(kind=kind, age=age), NOW) is active


@pytest.mark.clause("JRN-01")
def test_the_journals_window_is_no_expiry() -> None:
    assert expiry(load("journal").retention, "journal", NOW, explicit=False) is None


@pytest.mark.clause("ATL-12")
@pytest.mark.parametrize(
    ("importance", "weeks", "archived"),
    [
        (1.0, 44, False),  # 0.1047
        (1.0, 45, True),  # 0.0995
        (0.5, 31, False),  # 0.1019
        (0.5, 32, True),  # 0.0969
        (0.1, 0, False),  # exactly at the limit
        (0.099, 0, True),
    ],
)
def test_a_memory_is_archived_when_decay_takes_it_under_a_tenth(importance: float, weeks: int, archived: bool) -> None:
    atlas = load("atlas")
    memory = record(importance=importance, age=timedelta(weeks=weeks))
    assert decayed(atlas.retention, memory, atlas.decay, NOW) is archived


def test_nothing_is_archived_without_a_limit() -> None:
    assert not decayed(Retention(), record(importance=0.0), Weekly(), NOW)
    assert not decayed(Retention(archive_below=0.1), record(age=timedelta(days=9999)), NoDecay(), NOW)
    assert decayed(Retention(archive_below=0.1), record(age=timedelta(days=9999)), HalfLife(), NOW)  # 0.5 × floor


@pytest.mark.clause("ATL-03")
@pytest.mark.parametrize(("importance", "eligible"), [(0.0, True), (0.199, True), (0.2, False), (1.0, False)])
def test_under_a_fifth_a_memory_may_be_cleaned_up_early(importance: float, eligible: bool) -> None:
    assert early(load("atlas").retention, record(importance=importance)) is eligible


def test_early_cleanup_is_off_by_default() -> None:
    assert not early(Retention(), record(importance=0.0))


MEMORIES = [
    record("a", importance=0.9, age=timedelta(days=9)),
    record("b", importance=0.1, age=timedelta(days=1)),
    record("c", importance=0.1, age=timedelta(days=5)),
    record("d", importance=0.5, age=timedelta(days=3)),
]


@pytest.mark.clause("ATL-13")
@pytest.mark.parametrize(
    ("quota", "order", "go"),
    [
        (4, "importance", ""),
        (9, "importance", ""),
        (None, "importance", ""),
        (3, "importance", "c"),
        (2, "importance", "cb"),
        (1, "importance", "cbd"),
        (3, "oldest", "a"),
        (1, "oldest", "acd"),
    ],
)
def test_over_quota_the_least_important_or_the_oldest_go_first(
    quota: int | None, order: Literal["importance", "oldest"], go: str
) -> None:
    assert "".join(memory.id for memory in over_quota(MEMORIES, quota, order)) == go


def test_memories_alike_in_all_else_go_in_the_order_in_which_they_are_given() -> None:
    twins = [record(id) for id in "cab"]
    assert [memory.id for memory in over_quota(twins, 1)] == ["c", "a"]
    assert [memory.id for memory in over_quota(twins, 1, "oldest")] == ["c", "a"]
