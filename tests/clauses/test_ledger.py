"""The ledger preset, "Agent Memory Persistence Layer": scores, decay and rules for input."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import Clock

from recollect import InputError, Memory

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with Memory(tmp_path / "memory", preset="ledger", clock=clock) as memory:
        yield memory


def parts(memory: Memory, query: str) -> dict[str, float]:
    (hit,) = memory.recall(query, touch=False)
    return {part.name: part.value for part in hit.explain().parts}


@pytest.mark.clause("LED-08")
def test_a_score_is_the_product_of_four(ledger: Memory, clock: Clock) -> None:
    ledger.remember("the owl in the tree", importance=0.8, kind="finding")
    ledger.remember("an owl", importance=0.3, kind="decision")
    clock.now += timedelta(hours=100)
    hits = ledger.recall("owl tree")
    assert len(hits) == 2
    for hit in hits:
        told = hit.explain()
        assert [part.name for part in told.parts] == ["importance", "decay", "recency_boost", "match_quality"]
        assert told.how == "product"
        product = 1.0
        for part in told.parts:
            product *= part.share
        assert hit.score == pytest.approx(product)
        importance, decay, boost, quality = (part.value for part in told.parts)
        assert importance == hit.memory.importance
        assert 0.1 <= decay <= 1.0
        assert 1.0 <= boost <= 1.5
        assert 0.0 < quality <= 1.0
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.mark.clause("LED-08")
def test_the_order_is_by_the_product_and_not_by_the_match_alone(ledger: Memory) -> None:
    ledger.remember("owl tree", importance=0.1)
    ledger.remember("owl tree forest and more", importance=1.0)
    assert [hit.memory.importance for hit in ledger.recall("owl tree")] == [1.0, 0.1]


@pytest.mark.clause("LED-08")
@pytest.mark.clause("LED-31")
def test_the_match_quality_is_the_share_of_what_was_asked(ledger: Memory) -> None:
    ledger.remember("an owl alone")
    assert parts(ledger, "owl")["match_quality"] == 1.0
    assert 0.0 < parts(ledger, "owl tree")["match_quality"] < 0.6
    assert parts(ledger, "owl*")["match_quality"] == 1.0
    assert parts(ledger, "owl* tree")["match_quality"] == pytest.approx(0.5)
    ledger.remember("owl and tree")
    assert [hit.explain().parts[3].value for hit in ledger.recall("owl tree")] == [1.0, pytest.approx(0.2, abs=0.2)]


@pytest.mark.clause("LED-08")
def test_what_was_used_within_a_day_is_boosted(ledger: Memory, clock: Clock) -> None:
    ledger.remember("an owl", kind="preference")
    assert parts(ledger, "owl")["recency_boost"] == 1.5
    clock.now += timedelta(hours=24)
    assert parts(ledger, "owl")["recency_boost"] == 1.0
    ledger.recall("owl")
    clock.now += timedelta(hours=23)
    assert parts(ledger, "owl")["recency_boost"] == 1.5


@pytest.mark.clause("LED-09")
@pytest.mark.parametrize(
    ("kind", "half_life"), [("conversation", 168), ("decision", 720), ("finding", 336), ("anything", 168)]
)
def test_a_memory_halves_by_its_kind_down_to_a_tenth(ledger: Memory, clock: Clock, kind: str, half_life: int) -> None:
    ledger.remember("an owl", kind=kind)
    for halves in range(4):
        clock.now = NOW + timedelta(hours=half_life * halves)
        assert parts(ledger, "owl")["decay"] == pytest.approx(0.5**halves)
    clock.now = NOW + timedelta(hours=half_life * 4)
    assert parts(ledger, "owl")["decay"] == 0.1
    clock.now = NOW + timedelta(hours=half_life * 1000)
    assert parts(ledger, "owl")["decay"] == 0.1


@pytest.mark.clause("LED-09")
def test_a_preference_never_decays(ledger: Memory, clock: Clock) -> None:
    ledger.remember("prefers tabs", kind="preference")
    clock.now += timedelta(days=3650)
    assert parts(ledger, "tabs")["decay"] == 1.0


@pytest.mark.clause("LED-09")
def test_decay_is_computed_when_asked_and_changes_nothing_stored(ledger: Memory, clock: Clock) -> None:
    owl = ledger.remember("an owl", importance=0.8)
    clock.now += timedelta(hours=168)
    assert ledger.recall("owl", touch=False)[0].explain().parts[1].value == pytest.approx(0.5)
    assert ledger.diagnose(owl.id).strength == pytest.approx(0.4)
    assert ledger.get(owl.id) == owl
    clock.now = NOW
    assert parts(ledger, "owl")["decay"] == 1.0


@pytest.mark.clause("LED-20")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"conversation": "sess\n"}, "conversation: .*1 to 64 bytes"),
        ({"conversation": "x" * 65}, "conversation: .*1 to 64 bytes"),
        ({"references": ["mem.1"]}, "references: .*1 to 32 letters"),
        ({"references": ["m" * 33]}, "references: .*1 to 32 letters"),
        ({"tags": ["t" * 33]}, "tags: .*1 to 32 letters"),
        ({"tags": ["a/b"]}, "tags: .*1 to 32 letters"),
        ({"content": "x" * 1_048_577}, "content: .*over the limit of 1,048,576 bytes"),
        ({"created_at": "10.01.2026"}, "created_at: .*ISO 8601"),
        ({"expires_at": "tomorrow"}, "expires_at: .*ISO 8601"),
    ],
)
def test_ids_tags_sizes_and_times_are_checked(ledger: Memory, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        ledger.remember_many([{"content": "an owl", **fields}])
    assert ledger.stats().total == 0


@pytest.mark.clause("LED-20")
def test_what_is_exactly_at_the_limits_is_kept(ledger: Memory) -> None:
    stored = ledger.remember(
        "x" * 1_048_576,
        conversation="s" * 64,
        references=["m" * 32],
        tags=["t" * 32, "security.authentication"],
        created_at="2026-01-10T14:23:45.678Z",
    )
    assert ledger.get(stored.id) == stored
    assert stored.created_at == datetime(2026, 1, 10, 14, 23, 45, 678_000, tzinfo=UTC)
