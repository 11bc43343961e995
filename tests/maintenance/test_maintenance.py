"""Archiving, by hand and by rule: what decayed, what was never worth much, and what is over the quota."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.common import Clock

from recollect import ConflictError, Hits, Memory, NotFoundError, Record
from recollect.presets import load

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY, WEEK = timedelta(days=1), timedelta(weeks=1)


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with Memory(tmp_path / "memory", preset="atlas", clock=clock) as memory:
        yield memory


def small(tmp_path: Path, clock: Clock, retention: str = "quota = 5") -> Memory:
    """As in the Atlas document, with less room."""
    path = tmp_path / "small.toml"
    path.write_text(f'extends = "atlas"\n[retention]\n{retention}\n')
    return Memory(tmp_path / "memory", preset=path, clock=clock)


def texts(found: Hits | list[Record]) -> list[str]:
    return [one.memory.text if hasattr(one, "memory") else one.text for one in found]


# By hand


def test_an_archived_memory_is_kept_but_not_recalled_until_it_is_restored(memory: Memory, clock: Clock) -> None:
    owl, fox = memory.remember_many(["an owl", {"content": "a fox", "tier": "account"}])
    clock.now += DAY
    archived = memory.archive([fox.id, owl.id, fox.id], reason="winter")
    assert [one.id for one in archived] == [fox.id, owl.id]
    assert [one.archived_at for one in archived] == [NOW + DAY] * 2
    assert memory.get(owl.id) == archived[1]
    assert memory.recall("owl fox") == []
    with pytest.raises(ConflictError, match="is archived already"):
        memory.archive(owl.id)
    assert [one.id for one in memory.restore([owl.id, fox.id])] == [owl.id, fox.id]
    assert sorted(texts(memory.recall("owl fox"))) == ["a fox", "an owl"]
    with pytest.raises(ConflictError, match="is not archived"):
        memory.restore(owl.id)


def test_archiving_several_archives_none_if_one_is_missing(memory: Memory) -> None:
    owl = memory.remember("an owl")
    with pytest.raises(NotFoundError):
        memory.archive([owl.id, "missing"])
    assert memory.get(owl.id) == owl


def test_archiving_does_not_undo_a_revision_made_meanwhile(tmp_path: Path, memory: Memory, clock: Clock) -> None:
    owl = memory.remember("an owl")
    with Memory(tmp_path / "memory") as other:

        class Interrupted:
            """Whoever asks this clock for the time finds the memory revised by someone else."""

            def __call__(self) -> datetime:
                if other.get(owl.id).superseded_by is None:
                    other.revise(owl.id, content="a robin")
                return NOW

        with Memory(tmp_path / "memory", clock=Interrupted()) as slow:
            slow.archive(owl.id)
    assert memory.get(owl.id).superseded_by is not None
    assert texts(memory.list()) == ["a robin"]


# By rule


@pytest.mark.clause("ATL-12")
def test_what_has_decayed_below_a_tenth_is_archived_and_can_be_restored(memory: Memory, clock: Clock) -> None:
    faint = memory.remember("a faint owl", kind="fact", importance=0.2)
    strong = memory.remember("a strong owl", kind="fact", importance=0.9)
    clock.now = NOW + 13 * WEEK  # 0.2 * 0.95 ** 13 = 0.103
    assert memory.maintain().decayed == ()
    clock.now = NOW + 14 * WEEK  # 0.2 * 0.95 ** 14 = 0.098
    assert memory.maintain().decayed == (faint.id,)
    assert memory.get(faint.id).archived_at == clock.now
    assert memory.get(faint.id).content == "a faint owl"
    assert texts(memory.recall("owl", touch=False)) == ["a strong owl"]
    assert memory.maintain().decayed == ()
    (back,) = memory.restore(faint.id)
    assert (back.access_count, back.accessed_at) == (1, clock.now)
    assert memory.maintain().decayed == ()
    assert sorted(texts(memory.recall("owl"))) == ["a faint owl", "a strong owl"]
    assert memory.maintain().decayed == ()
    assert memory.get(strong.id).archived_at is None


@pytest.mark.clause("ATL-12", "INK-06")
def test_a_retrieval_starts_the_decay_anew(memory: Memory, clock: Clock) -> None:
    owl = memory.remember("an owl", kind="fact", importance=0.2)
    clock.now = NOW + 10 * WEEK
    memory.recall("owl")
    clock.now = NOW + 23 * WEEK
    assert memory.maintain().decayed == ()
    clock.now = NOW + 24 * WEEK
    assert memory.maintain().decayed == (owl.id,)


@pytest.mark.clause("ATL-03")
def test_what_was_of_little_importance_goes_early_if_that_is_wanted(memory: Memory) -> None:
    low, edge = memory.remember_many(
        [
            {"content": "low", "kind": "fact", "importance": 0.19},
            {"content": "edge", "kind": "fact", "importance": 0.2},
        ]
    )
    assert memory.maintain().unimportant == ()
    assert memory.maintain(early=True, dry_run=True).unimportant == (low.id,)
    assert memory.get(low.id).archived_at is None
    assert memory.maintain(early=True).unimportant == (low.id,)
    assert memory.get(low.id).archived_at == NOW
    assert memory.get(edge.id) == edge
    assert memory.restore(low.id)[0].archived_at is None


def test_a_dry_run_says_what_would_be_done_and_does_nothing(memory: Memory, clock: Clock) -> None:
    owl = memory.remember("an owl", kind="fact", importance=0.15)
    clock.now += 30 * WEEK
    logged = memory.audit.search()
    done = memory.maintain(early=True, dry_run=True)
    assert (done.decayed, done.unimportant) == ((owl.id,), ())
    assert memory.list(state=None) == [owl]
    assert memory.audit.search() == logged
    assert memory.maintain(early=True).decayed == (owl.id,)


def test_only_live_memories_are_maintained(memory: Memory, clock: Clock) -> None:
    memory.archive(memory.remember("archived", kind="fact", importance=0.15).id)
    memory.revise(memory.remember("old", kind="fact", importance=0.15).id, content="new", importance=0.9)
    memory.remember("expired", kind="conversation", importance=0.15)
    clock.now += 8 * DAY
    assert memory.maintain(early=True).unimportant == ()


def test_what_it_takes_to_undo_is_kept_for_thirty_days(memory: Memory, clock: Clock) -> None:
    owl, fox = memory.remember_many([{"content": "owl", "kind": "fact"}, {"content": "fox", "kind": "fact"}])
    memory.forget(owl.id)
    (old,) = memory.audit.search("forgot")
    clock.now += 15 * DAY
    memory.forget(fox.id)
    clock.now += 15 * DAY
    assert memory.maintain().undo_dropped == 0
    clock.now += DAY
    assert memory.at(agent="atlas").maintain().undo_dropped == 0
    assert memory.maintain().undo_dropped == 1
    with pytest.raises(ConflictError, match="can no longer be undone"):
        memory.undo(old.id)
    memory.undo()
    assert memory.list(state=None) == [fox]


def test_the_default_preset_archives_nothing(tmp_path: Path, clock: Clock) -> None:
    with Memory(tmp_path / "memory", clock=clock) as memory:
        memory.remember("an owl", importance=0.0)
        clock.now += 1000 * WEEK
        done = memory.maintain(early=True)
        assert (done.decayed, done.unimportant) == ((), ())


# Quota


@pytest.mark.clause("ATL-13")
def test_over_the_quota_the_least_important_are_archived_first(tmp_path: Path, clock: Clock) -> None:
    assert load("atlas").retention.quota == 10_000
    with small(tmp_path, clock) as memory:
        memory.remember_many({"content": f"m{n}", "kind": "fact", "importance": n / 10} for n in (5, 3, 8, 1, 9))
        assert memory.list(state="archived") == []
        memory.remember("m6", kind="fact", importance=0.6)
        assert texts(memory.list(state="archived")) == ["m1"]
        memory.remember("m0", kind="fact", importance=0.0)
        assert sorted(texts(memory.list(state="archived"))) == ["m0", "m1"]
        memory.remember_many([{"content": f"n{n}", "kind": "fact", "importance": 0.7} for n in range(3)])
        assert sorted(texts(memory.list())) == ["m8", "m9", "n0", "n1", "n2"]
        assert len(memory.list(state=None)) == 10
        (entry, *_) = memory.audit.search("over the quota")
        assert (entry.action, entry.message) == ("quota", "archived 3 memories over the quota of 5")


@pytest.mark.clause("ATL-13")
def test_the_quota_is_each_agents_own_over_all_workspaces_of_a_tenant(tmp_path: Path, clock: Clock) -> None:
    with small(tmp_path, clock) as memory:
        ada, bob = memory.at(agent="ada"), memory.at(agent="bob")
        shop = memory.at(workspace="shop", agent="ada")
        first = ada.remember("first", kind="fact", importance=0.1)
        for number in range(4):
            shop.remember(f"s{number}", kind="fact", importance=0.5)
            bob.remember(f"b{number}", kind="fact", importance=0.05)
            memory.remember(f"shared {number}", kind="fact", importance=0.01)
            memory.at(tenant="other", agent="ada").remember(f"o{number}", kind="fact", importance=0.01)
        assert ada.get(first.id).archived_at is None
        shop.remember("s4", kind="fact", importance=0.5)
        assert ada.get(first.id).archived_at == NOW
        assert len(shop.list()) == 5
        assert len(memory.list()) == 8
        assert len(memory.at(tenant="other").list()) == 4
        assert ada.diagnose(first.id).reason == "was archived to keep the quota"


@pytest.mark.clause("ATL-13")
def test_the_quota_holds_however_memories_come(tmp_path: Path, clock: Clock) -> None:
    with small(tmp_path, clock, "quota = 250") as memory:
        me = memory.at(agent="atlas")
        me.remember_many({"content": f"many {n}", "kind": "fact"} for n in range(240))
        for number in range(20):
            me.remember(f"one {number}", kind="fact")
        assert me.stats().states in ({"live": 250 - n, "archived": 10 + n} for n in range(3)), "room for a hundredth"
        me.remember_many({"content": f"more {n}", "kind": "fact"} for n in range(300))
        assert me.stats().states == {"live": 248, "archived": 312}


def test_expired_and_account_memories_do_not_count(tmp_path: Path, clock: Clock) -> None:
    with small(tmp_path, clock) as memory:
        memory.remember_many({"content": f"talk {n}", "kind": "conversation"} for n in range(5))
        memory.remember_many({"content": f"mine {n}", "tier": "account", "kind": "fact"} for n in range(5))
        clock.now += 7 * DAY
        memory.remember_many({"content": f"fact {n}", "kind": "fact"} for n in range(5))
        assert memory.stats().states == {"live": 10, "expired": 5}


def test_a_quota_may_let_the_oldest_go_first(tmp_path: Path, clock: Clock) -> None:
    with small(tmp_path, clock, 'quota = 2\nquota_order = "oldest"') as memory:
        for text, importance in (("first", 1.0), ("second", 0.0), ("third", 0.0)):
            memory.remember(text, kind="fact", importance=importance)
            clock.now += DAY
        assert texts(memory.list(state="archived")) == ["first"]


@pytest.mark.clause("ATL-11")
@pytest.mark.parametrize(
    ("kind", "text", "days"),
    [
        ("conversation", "we talked about owls", 7),
        ("task", "watered the plants", 30),
        ("decision", "blue it is", 90),
        ("approval", "the budget is fine", 90),
        ("error", "the build broke", 14),
        ("failure", "the upload stopped", 14),
        ("fact", "owls fly at night", None),
        ("conversation", "Please remember this: owls fly at night", None),
    ],
)
def test_a_memory_expires_by_its_kind_and_is_never_retrieved_again(
    memory: Memory, clock: Clock, kind: str, text: str, days: int | None
) -> None:
    stored = memory.remember(text, kind=kind)
    if days is None:
        assert stored.expires_at is None
        clock.now += timedelta(days=10_000)
        assert memory.recall(text)
        return
    assert stored.expires_at == NOW + days * DAY
    clock.now = NOW + days * DAY - timedelta(microseconds=1)
    assert texts(memory.recall(text)) == [text]
    clock.now += timedelta(microseconds=1)
    assert memory.recall(text) == []
    assert memory.list() == []
    assert memory.get(stored.id).content == text
