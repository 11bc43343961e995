"""Consolidation: what matters stays, what has faded is archived, what is said twice is one, and nothing is lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.common import Clock, Script
from support.stores import STORES, located

from recollect import Memory, Record
from recollect.maintenance import consolidation
from recollect.maintenance.schedule import JobReport
from recollect.maintenance.steps import changed, check_kept, hold_back
from recollect.policies.decay import PerTier
from recollect.policies.maintenance import Consolidation
from recollect.presets import load
from recollect.values.record import Address

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
EACH = pytest.mark.parametrize("store", STORES)


def opened(store: str, path: Path, clock: Clock, extra: str = "") -> Memory:
    file = path / "mine.toml"
    file.write_text(f'extends = "inklings"\n{extra}')
    return Memory(located(store, path / "memory"), preset=file, clock=clock)


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with opened("sqlite", tmp_path, clock) as memory:
        yield memory


def consolidate(memory: Memory, **wish: Any) -> JobReport:
    (report,) = memory.maintain(jobs=["consolidate"], **wish).jobs or [JobReport("consolidate", None, "done")]
    return report


def told(report: JobReport) -> list[tuple[str, str]]:
    return [(step.id, step.change) for step in report.steps]


def vector(angle: float) -> list[float]:
    return [math.cos(angle), math.sin(angle)]


NEAR, FAR = math.acos(0.951), math.acos(0.949)


@pytest.mark.clause("INK-19")
def test_the_numbers_are_those_of_the_document() -> None:
    rules = load("inklings").consolidation
    assert rules == Consolidation(True, 0.7, 3, 0.01, 0.95, 10_000)
    assert load("inklings").maintenance.consolidate_hours == 24
    assert not any(load(name).consolidation.enabled for name in ("recollect", "atlas", "aegis", "ledger", "journal"))


@EACH
@pytest.mark.clause("INK-19")
def test_what_is_relevant_and_used_is_promoted(store: str, tmp_path: Path, clock: Clock) -> None:
    with opened(store, tmp_path, clock) as memory:
        used, once, dull = memory.remember_many(
            [
                {"content": "used", "importance": 0.6},
                {"content": "once", "importance": 1.0},
                {"content": "dull", "importance": 0.2},
            ]
        )
        for _ in range(4):
            memory._view.touch([used, dull])
        for _ in range(3):
            memory._view.touch([once])
        report = consolidate(memory)
        assert told(report) == [(used.id, "promote")]
        assert "is above 0.7, and it was recalled 4 times" in report.steps[0].why
        assert [memory.get(one.id).lifetime for one in (used, once, dull)] == ["long_term", "short_term", "short_term"]
        assert told(consolidate(memory)) == []
        memory.undo()
        assert memory.get(used.id).lifetime == "short_term"


@EACH
@pytest.mark.clause("INK-19")
def test_what_has_faded_is_archived_and_not_deleted(store: str, tmp_path: Path, clock: Clock) -> None:
    with opened(store, tmp_path, clock) as memory:
        low, kept, long = memory.remember_many(
            [
                {"content": "low", "importance": 0.02},
                {"content": "kept", "importance": 0.9},
                {"content": "long", "importance": 0.02, "lifetime": "long_term"},
            ]
        )
        clock.now += 346 * HOUR  # 0.02 * 0.998 ** 346 = 0.010004
        assert told(consolidate(memory)) == []
        clock.now += HOUR
        assert told(consolidate(memory)) == [(low.id, "archive")]
        assert memory.get(low.id).content == "low"
        assert memory.diagnose(low.id).reason == "had faded, or was over the cap, and was archived by consolidation"
        assert {one.id for one in memory.list()} == {kept.id, long.id}
        assert memory.restore(low.id)[0].archived_at is None


@EACH
@pytest.mark.clause("INK-19")
@pytest.mark.clause("INK-23")
def test_what_says_the_same_is_one_and_every_text_is_in_its_history(store: str, tmp_path: Path, clock: Clock) -> None:
    with opened(store, tmp_path, clock) as memory:
        first = memory.remember("the user likes tea", embedding=vector(0.0), tags=["drink"], importance=0.9)
        memory._view.touch([first])
        clock.now += HOUR
        second = memory.remember("the user enjoys tea", embedding=vector(NEAR), tags=["taste"])
        third = memory.remember("the user enjoys bread", embedding=vector(NEAR + FAR))
        again = memory.remember("the user enjoys tea", embedding=vector(NEAR))
        report = consolidate(memory)
        assert sorted(told(report)) == sorted([(second.id, "merge"), (again.id, "merge")])
        assert {step.by for step in report.steps} == {first.id}
        assert {one.id for one in memory.list()} == {first.id, third.id}
        kept = memory.get(first.id)
        assert {*kept.tags} == {"drink", "taste"}
        assert (kept.access_count, kept.importance) == (1, 0.9)
        assert {one.id for one in memory.history(first.id)} == {first.id, second.id, again.id}
        assert told(consolidate(memory)) == []
        memory.undo()
        assert memory.get(second.id).superseded_by is None
        assert memory.get(first.id).tags == ("drink",)


@pytest.mark.clause("INK-19")
@pytest.mark.parametrize(
    ("cosine", "merged"), [(math.cos(NEAR), 1), (math.cos(FAR), 0)], ids=["above 0.95", "below 0.95"]
)
def test_the_cosine_must_be_above_the_limit(memory: Memory, cosine: float, merged: int) -> None:
    memory.remember("likes tea", embedding=[1.0, 0.0])
    memory.remember("enjoys tea", embedding=vector(math.acos(cosine)))
    assert len(consolidate(memory).steps) == merged


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"content": "a limit of 5"}, {"content": "a limit of 50"}),
        ({"content": "he eats fish"}, {"content": "he never eats fish"}),
        ({"content": "met with Alice"}, {"content": "met with Bob"}),
        ({"content": "likes tea", "kind": "fact"}, {"content": "enjoys tea", "kind": "preference"}),
        ({"content": "likes tea", "channel": "a"}, {"content": "enjoys tea", "channel": "b"}),
        ({"content": "likes tea", "channel": "a"}, {"content": "enjoys tea"}),
        ({"content": "yes", "role": "user"}, {"content": "yes", "role": "user"}),
        ({"content": "likes tea", "embedding_model": "a"}, {"content": "enjoys tea", "embedding_model": "b"}),
    ],
)
def test_what_differs_in_what_vectors_do_not_see_is_not_merged(memory: Memory, one: Any, other: Any) -> None:
    memory.remember_many([{"embedding": [1.0, 0.0]} | one, {"embedding": [1.0, 0.0]} | other])
    assert consolidate(memory).steps == ()


def test_equal_texts_are_one_without_vectors(memory: Memory) -> None:
    old, new = memory.remember_many([{"content": "prefers tabs", "tier": "account", "kind": "preference"}] * 2)
    assert told(consolidate(memory)) == [(old.id, "merge")]
    assert [one.id for one in memory.history(new.id)] == [old.id, new.id]


@EACH
@pytest.mark.clause("INK-19")
def test_over_the_cap_the_least_relevant_of_a_scope_are_archived(store: str, tmp_path: Path, clock: Clock) -> None:
    with opened(store, tmp_path, clock, "[consolidation]\ncap = 4\n") as memory:
        here = memory.remember_many(
            {"content": f"here {n}", "importance": (3 + n) / 10, "channel": "a"} for n in (3, 0, 4, 1, 2)
        )
        memory.remember_many({"content": f"there {n}", "channel": "b"} for n in range(4))
        assert told(consolidate(memory)) == [(here[1].id, "archive")]
        assert len(memory.list()) == 8


# What could go wrong


class Hostile:
    """An embedder by which everything means the same."""

    dimensions = 8

    def __init__(self, noise: float = 0.0, rubbish: float | None = None) -> None:
        self.model = "hostile"
        self._noise, self._rubbish = noise, rubbish
        self._rng = np.random.default_rng(1)

    def embed_documents(self, texts: list[str]) -> np.ndarray:
        rows = np.ones((len(texts), 8)) + self._noise * self._rng.standard_normal((len(texts), 8))
        if self._rubbish is not None:
            rows[::2] = self._rubbish
        return rows

    def embed_query(self, text: str) -> np.ndarray:
        return np.ones(8)

    def close(self) -> None: ...


@pytest.mark.clause("INK-19")
@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("force", [False, True])
def test_an_embedder_by_which_all_is_the_same_cannot_wipe_a_bank(
    noise: float, force: bool, tmp_path: Path, clock: Clock
) -> None:
    hostile: Any = Hostile(noise)
    with Memory(tmp_path / "memory", preset="inklings", clock=clock, embedder=hostile) as memory:
        memory.remember_many(f"thing {'abcdefghij'[n // 10]}{'abcdefghij'[n % 10]}" for n in range(100))
        memory.embed()
        report = consolidate(memory, force=force)
        assert report.steps == ()
        assert "hardly differ" in report.note
        assert len(memory.list()) == 100


@EACH
@pytest.mark.clause("INK-19")
def test_what_would_take_too_much_of_a_scope_is_held_back_until_it_is_forced(
    store: str, tmp_path: Path, clock: Clock
) -> None:
    """Forty memories that mean nearly the same to a broken model, beside sixty that do not."""
    with opened(store, tmp_path, clock) as memory:
        rng = np.random.default_rng(2)
        names = [f"{'abcdefghij'[n // 10]}{'abcdefghij'[n % 10]}" for n in range(100)]
        stored = memory.remember_many(
            {
                "content": f"thing {name}",
                "channel": "busy",
                "embedding": [1.0] + [0.0] * 31 if n < 40 else rng.standard_normal(32).tolist(),
            }
            for n, name in enumerate(names)
        )
        other = memory.remember("faint", channel="calm", importance=0.001)
        report = consolidate(memory)
        assert report.outcome == "held"
        assert told(report) == [(other.id, "archive")]  # other scopes go on
        assert len(report.held) == 39
        assert report.note == "held back: it would take 39 of 100 in the channel busy, more than 30% at once"
        assert len(memory.list(limit=1000)) == 100
        some = [step.id for step in report.held[:2]]
        assert {step.id for step in consolidate(memory, force=True, only=some).steps} == {*some}
        forced = consolidate(memory, force=True)
        assert (len(forced.steps), forced.held, forced.note) == (37, (), "")
        (kept,) = {one.superseded_by for one in memory.list(state="superseded", limit=1000)}
        assert kept is not None
        assert {one.id for one in memory.history(kept)} == {one.id for one in stored[:40]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, 3e38, -1e-30])
def test_rubbish_vectors_merge_nothing(value: float) -> None:
    packed = np.full(8, value, "<f4").tobytes()
    odd = [b"", b"abc", b"abcde", packed]
    records = [
        record(f"{n}", content=f"thing {chr(97 + n)}", embedding=odd[n % 4] if n % 4 < 3 or value != 3e38 else None)
        for n in range(20)
    ]
    assert consolidation.plan(records, Consolidation(), PerTier(), NOW).steps == ()


def record(ident: str, **fields: Any) -> Record:
    given = {"tier": "workspace", "kind": "fact", "importance": 0.5, "created_at": NOW, "accessed_at": NOW} | fields
    return Record(id=ident, address=given.pop("address", Address()), embedding_model="m", **given)


records = st.lists(
    st.builds(
        lambda text, angle, importance, uses, age, lifetime, channel: {
            "content": text,
            "embedding": None if angle is None else np.array(vector(angle), "<f4").tobytes(),
            "importance": importance,
            "access_count": uses,
            "accessed_at": NOW - age * DAY,
            "created_at": NOW - age * DAY,
            "lifetime": lifetime,
            "tier": "workspace" if channel is None else "channel",
            "address": Address(channel=channel),
        },
        st.sampled_from(["owl", "an owl", "a fox", "fox", "no owl", "7 owls", "owls"]),
        st.none() | st.floats(0, 0.8),
        st.floats(0, 1),
        st.integers(0, 8),
        st.integers(0, 200),
        st.sampled_from(["short_term", "long_term", "conversation"]),
        st.sampled_from([None, "a", "b"]),
    ),
    max_size=30,
)


@pytest.mark.clause("INK-19")
@given(made=records, cap=st.integers(1, 12), force=st.booleans(), share=st.floats(0, 1))
def test_nothing_is_ever_lost(made: list[dict[str, Any]], cap: int, force: bool, share: float) -> None:
    live = [record(f"{n:032x}", **fields) for n, fields in enumerate(made)]
    rules = Consolidation(enabled=True, cap=cap)
    before = {one.id: one for one in live}
    plan = hold_back(consolidation.plan(live, rules, PerTier(), NOW), live, share, 0)
    plan = plan.forced() if force else plan
    after = before | changed(before, plan.steps, NOW)
    check_kept(live, after, NOW)
    assert after.keys() == before.keys()
    assert all(after[ident].content == one.content for ident, one in before.items())
    for one in after.values():
        seen = one
        for _ in after:
            seen = after[seen.superseded_by] if seen.superseded_by is not None else seen
        assert seen.superseded_by is None
        assert one.superseded_by is None or seen.state(NOW) == "live"
    for channel in (None, "a", "b"):
        mine = [one for one in live if one.address.channel == channel]
        gone = [one for one in mine if after[one.id].state(NOW) != "live"]
        assert force or len(gone) <= share * len(mine)
        assert not force or len(mine) - len(gone) <= cap


@pytest.mark.clause("INK-19")
def test_what_would_be_merged_into_what_the_cap_archives_is_archived_too() -> None:
    faded = {"importance": 0.1, "accessed_at": NOW - 100 * DAY, "created_at": NOW - 100 * DAY}
    texts = ["owl", "owl", "a fox"]
    live = [record(f"{n:032x}", content=text, **(faded if text == "owl" else {})) for n, text in enumerate(texts)]
    plan = consolidation.plan(live, Consolidation(enabled=True, cap=1), PerTier(), NOW)
    after = {one.id: one for one in live} | changed({one.id: one for one in live}, plan.steps, NOW)
    assert [one.content for one in after.values() if one.state(NOW) == "live"] == ["a fox"]


KILLED = """
import os, sys
import recollect.maintenance.steps as steps
from recollect import Memory
at = sys.argv[3]
with Memory(sys.argv[1], preset=sys.argv[2]) as memory:
    store = type(memory._view.store)
    def die(*given, **more):
        os.kill(os.getpid(), 9)
    if at == "update":
        update = store.update
        store.update = lambda *given: (update(*given), die())
    elif at == "append":
        append = store.append
        store.append = lambda *given, **more: (append(*given, **more), die())
    else:
        from recollect.maintenance import leases
        leases.give_back = die
    memory.maintain(jobs=["consolidate"], force=True)
"""


@EACH
@pytest.mark.clause("INK-19")
@pytest.mark.parametrize("at", ["update", "append", "end"])
def test_a_kill_in_the_middle_loses_nothing(
    store: str, at: str, tmp_path: Path, clock: Clock, start: Callable[..., Script]
) -> None:
    url = located(store, tmp_path / "memory")
    with Memory(url, preset="inklings") as memory:
        stored = memory.remember_many(
            {"content": f"thing {chr(97 + n)}", "importance": 0.001 if n % 2 else 0.5, "embedding": [1.0, n / 9]}
            for n in range(10)
        )
    script = start(KILLED, url, "inklings", at)
    assert script.wait(60) == -9
    with Memory(url, preset="inklings") as memory:
        assert {one.id: one.content for one in memory.list(state=None)} == {one.id: one.content for one in stored}
        assert len(memory.list()) == (2 if at == "end" else 10)  # all or nothing
        assert memory.doctor().ok
        assert consolidate(memory).outcome == "busy"
    clock.now = datetime.now(UTC) + HOUR
    with Memory(url, preset="inklings", clock=clock) as memory:
        assert bool(consolidate(memory, force=True).steps) is (at != "end")
        check_kept(stored, {one.id: one for one in memory.list(state=None)}, clock.now)
