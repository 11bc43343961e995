"""Atlas UX, "Agent Memory Architecture", through the public surface."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import Clock
from support.stores import DATABASES, located

from recollect import Memory

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


@pytest.fixture
def atlas(url: str, clock: Clock) -> Iterator[Memory]:
    with Memory(url, preset="atlas", clock=clock) as memory:
        yield memory.at(tenant="acme", agent="cfo")


@pytest.mark.clause("ATL-01")
@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool_result"])
def test_an_episodic_record_has_every_field(atlas: Memory, role: Any) -> None:
    vector = [number / 1536 for number in range(1536)]
    stored = atlas.remember(
        "the invoice was paid",
        role=role,
        conversation="session-1",
        importance=0.7,
        embedding=vector,
        embedding_model="text-embedding-3-small",
    )
    found = atlas.get(stored.id)
    assert found == stored
    assert (found.address.tenant, found.address.agent, found.address.conversation) == ("acme", "cfo", "session-1")
    assert (found.role, found.content, found.importance) == (role, "the invoice was paid", 0.7)
    assert found.floats == pytest.approx(vector)
    assert len(found.embedding or b"") == 4 * 1536
    assert (found.created_at, found.expires_at) == (NOW, NOW + timedelta(days=30))
    assert atlas.remember("for good", kind="fact").expires_at is None


@pytest.mark.clause("ATL-01")
@pytest.mark.parametrize("dimensions", [1, 384, 768, 1536, 3072])
def test_the_dimension_of_an_embedding_is_free(atlas: Memory, dimensions: int) -> None:
    stored = atlas.remember("a lynx", embedding=[0.25] * dimensions)
    assert atlas.get(stored.id).floats == (0.25,) * dimensions
    assert atlas.stats().embedded == 1


PLAIN = "The office has a blue door"


@pytest.mark.clause("ATL-02")
@pytest.mark.parametrize(
    "text",
    [
        "We decided to use PostgreSQL",
        "I will switch to the new supplier: decision made",
        "Deployed version 7 to production",
        "I sent the report to the client",
        "I emailed Bob the contract",
        "I paid the invoice",
        "Assigned the task to Binky",
        "The offer stands at 5 million yen",
        "The board approved the budget",
        "The request was rejected",
        "The invoice is over $4,200",
        "It costs 300 EUR a month",
    ],
)
def test_decisions_actions_money_and_approvals_raise_importance(atlas: Memory, text: str) -> None:
    assert atlas.remember(text).importance > atlas.remember(PLAIN).importance


@pytest.mark.clause("ATL-02")
@pytest.mark.parametrize("text", ["ok", "Thanks!", "sounds good, thank you", "Hi there", "lol", "👍"])
def test_small_talk_and_acknowledgements_lower_importance(atlas: Memory, text: str) -> None:
    assert atlas.remember(text).importance < 0.2 < atlas.remember(PLAIN).importance


@pytest.mark.clause("ATL-02", "ATL-11")
@pytest.mark.parametrize(
    "text",
    [
        "Remember this: the door code is blue",
        "Please remember that I am vegetarian",
        "don't forget: no nuts",
        "Make sure to remember this: the deployment failed on a Friday",
        "You should remember this one",
        "Let's remember this for next time",
    ],
)
def test_an_explicit_wish_to_remember_is_worth_exactly_one_and_does_not_expire(atlas: Memory, text: str) -> None:
    stored = atlas.remember(text)
    assert stored.importance == 1.0
    assert stored.expires_at is None


@pytest.mark.clause("ATL-11", "ATL-23")
@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("We decided to use PostgreSQL", 90),
        ("Decided to roll back the failed release", 90),
        ("Alice approved the budget", 90),
        ("The request was rejected by Bob", 90),
        ("Completed the quarterly report", 30),
        ("Fixed the login bug", 30),
        ("The migration is complete", 30),
        ("The deployment failed at step 3", 14),
        ("Error: connection refused", 14),
        ("Permission denied while opening the socket", 14),
        ("The weather is nice", 7),
        ("Was the budget approved?", 7),
        ("We have not decided yet", 7),
        ("todo: call the bank", 7),
        ("he asked me to remember this", 7),
    ],
)
def test_without_a_kind_the_words_say_how_long_a_memory_lives(atlas: Memory, text: str, days: int) -> None:
    stored = atlas.remember(text)
    assert stored.expires_at == stored.created_at + timedelta(days=days)


@pytest.mark.clause("ATL-23")
def test_a_kind_that_is_given_is_not_judged_again(atlas: Memory) -> None:
    stored = atlas.remember("We decided to use PostgreSQL", kind="conversation")
    assert (stored.kind, stored.expires_at) == ("conversation", stored.created_at + timedelta(days=7))


def test_kinds_are_judged_only_where_the_preset_says_so(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        assert memory.remember("We decided to use PostgreSQL").kind == "fact"


@pytest.mark.clause("ATL-02")
@pytest.mark.parametrize("importance", [0.0, 0.33, 1.0])
def test_a_caller_may_give_its_own_importance(atlas: Memory, importance: float) -> None:
    for text in ("ok", PLAIN, "Remember this: the door is blue"):
        assert atlas.remember(text, importance=importance).importance == importance


def test_a_recall_is_ranked_by_the_weighted_sum_of_four(atlas: Memory, clock: Clock) -> None:
    atlas.remember("the owl in the tree", kind="fact", importance=0.2, created_at=NOW - timedelta(days=7))
    atlas.remember("an owl", kind="fact", importance=1.0, created_at=NOW)
    hits = atlas.recall("owl tree")
    assert len(hits) == 2
    for hit in hits:
        parts = {part.name: part for part in hit.explain().parts}
        assert {name: part.weight for name, part in parts.items()} == {
            "similarity": 0.5,
            "recency": 0.2,
            "importance": 0.2,
            "source": 0.1,
        }
        assert parts["source"].value == 1.0
        assert parts["importance"].value == hit.memory.importance
        assert parts["recency"].value == (1.0 if hit.memory.created_at == NOW else 0.5)
        assert hit.score == pytest.approx(sum(part.weight * part.value for part in parts.values()))
    assert max(part.value for hit in hits for part in hit.explain().parts if part.name == "similarity") == 1.0
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_five_are_recalled_unless_more_are_wanted(atlas: Memory) -> None:
    atlas.remember_many(f"owl number {number}" for number in range(12))
    assert len(atlas.recall("owl")) == 5
    assert len(atlas.recall("owl", limit=12)) == 12


@pytest.mark.clause("ATL-21")
def test_the_newer_memory_supersedes_the_older_which_stays_traceable(atlas: Memory, clock: Clock) -> None:
    old = atlas.remember("The CFO is Alice", kind="fact")
    clock.now += timedelta(days=1)
    new = atlas.revise(old.id, content="The CFO is Bob")
    assert [hit.memory.id for hit in atlas.recall("who is the CFO")] == [new.id]
    assert [one.id for one in atlas.list()] == [new.id]
    assert [one.id for one in atlas.history(new.id)] == [old.id, new.id]
    assert atlas.get(old.id).content == "The CFO is Alice"
    assert atlas.diagnose(old.id).current == new.id
    assert [entry.action for entry in atlas.audit.search(about=old.id)] == ["revise", "remember"]
