"""Memories that say the same become one, nothing is lost by it, and what only looks alike is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.watchdog import together

from recollect import AccessError, Memory, NotFoundError
from recollect.verbs.deduplicate import find

SAME = [
    ("Alice prefers tabs", "alice prefers tabs."),
    ("Alice prefers tabs", "Alice  really prefers tabs"),
    ("the office is in Porto", "The office is in Porto!"),
    ("the door code is 1234", "Door code is 1234"),
]
DIFFERENT = [
    ("Alice prefers tabs", "Alice prefers spaces"),
    ("Alice prefers tabs", "Alice preferred tabs"),
    ("Alice prefers tabs", "Alice does not prefer tabs"),
    ("Alice prefers tabs", "Does Alice prefer tabs?"),
    ("Alice owes Bob 5", "Bob owes Alice 5"),
    ("the door code is 1234", "the door code is 1235"),
    ("Ann lives in Lisbon", "Ann lives in Porto"),
    ("Ann lives in Lisbon", "Ann lived in Lisbon"),
    ("she is the CEO", "she was the CEO"),
    ("he writes C", "he writes C++"),
    ("he writes C", "he writes C#"),
    ("it costs $5", "it costs €5"),
    ("it is 5", "it is -5"),
    ("it rose by 5", "it rose by 5%"),
    ("meet at 10:30", "meet at 10:31"),
    ("トマトが好き", "トマトが嫌い"),
]


@pytest.fixture(params=["sqlite", "ledger", "notebook"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with Memory(f"{request.param}:{tmp_path / 'm'}", preset="recollect", embedder="none") as memory:
        yield memory


@pytest.mark.parametrize(("old", "new"), SAME)
def test_what_says_the_same_becomes_one(memory: Memory, old: str, new: str) -> None:
    first = memory.remember(old, tags=["a"], importance=0.9)
    second = memory.remember(new, tags=["b"], importance=0.2)
    assert memory.doctor().findings[0].problem == "duplicates"
    (group,) = memory.deduplicate(dry_run=True)
    assert {group.keep.id, group.others[0].id} == {first.id, second.id}
    assert len(memory.list()) == 2

    memory.deduplicate()
    (left,) = memory.list()
    assert (set(left.tags), left.importance) == ({"a", "b"}, 0.9)
    assert {version.id for version in memory.history(left.id)} == {first.id, second.id}
    assert not memory.doctor().findings
    assert memory.deduplicate() == []

    memory.undo()
    assert sorted(memory.list(), key=lambda one: one.id) == sorted([first, second], key=lambda one: one.id)


@pytest.mark.parametrize(("old", "new"), DIFFERENT)
def test_what_only_looks_alike_is_left_alone(memory: Memory, old: str, new: str) -> None:
    memory.remember_many([old, new])
    assert memory.deduplicate() == []
    assert len(memory.list()) == 2


NEAR = [1.0, 0.1]


@pytest.mark.parametrize(
    ("long", "short", "vector", "merged"),
    [
        ("Alice prefers tabs in Python code", "Alice prefers tabs in code", NEAR, False),  # another name in one
        ("alice prefers tabs in all code", "alice prefers tabs in code", NEAR, True),
        ("alice prefers tabs in all code", "alice prefers tabs in code", [0.1, 1.0], False),
        ("alice prefers spaces in all code", "alice prefers tabs in code", NEAR, False),
        ("alice never prefers tabs in code", "alice prefers tabs in code", NEAR, False),
    ],
)
def test_what_means_the_same_in_fewer_words_joins_the_longer(
    memory: Memory, long: str, short: str, vector: list[float], merged: bool
) -> None:
    kept = memory.remember(long, embedding=[1.0, 0.0], embedding_model="m")
    memory.remember(short, embedding=vector, embedding_model="m")
    groups = memory.deduplicate()
    assert [(group.keep.id, group.alike) for group in groups] == ([(kept.id, "meaning")] if merged else [])


def test_vectors_that_are_all_equal_merge_nothing_by_themselves(memory: Memory) -> None:
    memory.remember_many(
        [{"content": f"fact number {n} of many", "embedding": [1.0, 0.0], "embedding_model": "m"} for n in range(300)]
    )
    assert memory.deduplicate() == []


def test_turns_and_other_addresses_are_left_alone(memory: Memory) -> None:
    memory.remember("yes!", conversation="a", role="user")
    memory.remember("yes", conversation="a", role="user")
    memory.at(agent="a").remember("tea!")
    memory.at(agent="b").remember("tea")
    memory.remember("tea", kind="task")
    assert memory.deduplicate() == []


def test_only_what_was_shown_is_merged(memory: Memory) -> None:
    memory.remember_many(["tea", "Tea!", "coffee", "Coffee!"])
    shown = memory.deduplicate(dry_run=True)
    memory.forget(shown[0].keep.id)
    assert [group.keep.id for group in memory.deduplicate(groups=shown[1:])] == [shown[1].keep.id]
    assert len(memory.list()) == 2


def test_nobody_merges_what_he_cannot_see(memory: Memory) -> None:
    mine = memory.at(agent="a")
    mine.remember_many(["tea", "Tea!"])
    groups = mine.deduplicate(dry_run=True)
    assert memory.at(agent="b").deduplicate() == []
    with pytest.raises((NotFoundError, AccessError)):
        memory.at(agent="b").deduplicate(groups=groups)
    assert len(mine.list()) == 2


def test_merging_at_once_merges_once(memory: Memory) -> None:
    memory.remember_many([f"tea {n}{end}" for n in range(20) for end in ("", "!", ".")])
    together(*([memory.deduplicate] * 4), lambda: [memory.remember(f"coffee {n}") for n in range(10)])
    assert len(memory.list()) == 30
    assert memory.stats().total == 70


@given(
    st.lists(st.sampled_from(["tea", "Tea", "tea!", "the tea", "no tea", "tea 1", "tea 2", "green tea"]), max_size=12)
)
def test_every_text_can_be_reached_from_what_is_left(texts: list[str]) -> None:
    """Whatever is merged, what stays leads to all of it, and every memory is in one group at most."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder, Memory(folder, embedder="none") as memory:
        stored = memory.remember_many([{"content": text, "again": True} for text in texts])
        groups = find(memory.list())
        members = [record.id for group in groups for record in (group.keep, *group.others)]
        assert len(set(members)) == len(members)
        memory.deduplicate()
        reached = {version.id for record in memory.list() for version in memory.history(record.id)}
        assert reached == {record.id for record in stored}
