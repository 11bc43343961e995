"""Memories that say the same become one, nothing is lost by it, and what only looks alike is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stores import STORES, located
from support.watchdog import together

from recollect import AccessError, InputError, Memory, NotFoundError, StoreError
from recollect.verbs.deduplicate import find

SAME = [
    ("Alice prefers tabs", "alice prefers tabs."),
    ("Alice prefers tabs", " Alice  prefers tabs !"),
    ("the office is in Porto", "The office is in Porto!"),
    ("Alice prefers tabs", "Alice prefers tabs"),
]
DIFFERENT = [
    ("Alice prefers tabs", "Alice prefers spaces"),
    ("Alice prefers tabs", "Alice preferred tabs"),
    ("Alice prefers tabs", "Alice does not prefer tabs"),
    ("Alice prefers tabs", "Alice prefers tabs?"),
    ("Alice owes Bob 5", "Bob owes Alice 5"),
    ("the door code is 1234", "the door code is 1235"),
    ("Ann lives in Lisbon", "Ann lived in Lisbon"),
    ("she is the CEO", "she was the CEO"),
    ("he writes C", "he writes C++"),
    ("it costs $5", "it costs €5"),
    ("it is 5", "it is -5"),
    ("It was -5 in Oslo and 12 in Rome", "It was 5 in Oslo and -12 in Rome"),
    ("it rose by 5", "it rose by 5%"),
    ("hepatitis A vaccine given", "hepatitis vaccine given"),
    ("f(a, b)", "f(b)"),
    ("C# and F", "C and F#"),
    ("if (!ready) stop", "if (ready) stop"),
    ("2*(3+4)", "2*3+4"),
    ("10 MW", "10 mW"),
    ("https://youtu.be/dQw4", "https://youtu.be/DQW4"),
    ("https://example.org/Abc", "https://example.org/abc"),
    ("Tell US about it", "Tell us about it"),
    ("in Maßen trinken", "in Massen trinken"),
    ("मैं नहीं जाता", "मैं नहीं जाती"),
    ("لم يُكتب", "لم يَكتب"),
    ("We deploy on Fridays", "We used to deploy on Fridays"),
    ("トマトが好き", "トマトが嫌い"),
    ({"min": -5, "max": 10}, {"min": 5, "max": -10}),
    ({"x": 1}, ["x", 1]),
    ({"x": 1}, {"x": True}),
]


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with Memory(located(request.param, tmp_path / "m"), preset="recollect", embedder="none") as memory:
        yield memory


@pytest.mark.parametrize(("old", "new"), SAME)
def test_what_says_the_same_becomes_one(memory: Memory, old: str, new: str) -> None:
    first = memory.remember(old, tags=["a"], importance=0.9)
    second = memory.remember(new, tags=["b"], importance=0.2, again=True)
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
def test_what_only_looks_alike_is_left_alone(memory: Memory, old: Any, new: Any) -> None:
    memory.remember_many([{"content": old}, {"content": new}])
    assert memory.deduplicate() == []
    assert len(memory.list()) == 2


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


@pytest.mark.parametrize("field", ["kind", "role", "source", "metadata", "expires_at", "valid_from", "valid_until"])
def test_what_was_kept_apart_stays_apart(memory: Memory, field: str) -> None:
    values = {
        "kind": "task",
        "role": "user",
        "source": "mail",
        "metadata": {"speaker": "Ann"},
        "expires_at": "2099-01-01",
        "valid_from": "2020-01-01",
        "valid_until": "2099-01-01",
    }
    memory.remember("I prefer tabs")
    memory.remember_many([{"content": "I prefer tabs", field: values[field]}])
    assert memory.deduplicate() == []


def test_json_in_another_order_is_the_same(memory: Memory) -> None:
    memory.remember({"user": "ann", "city": "Oslo"})
    memory.remember({"city": "Oslo", "user": "ann"})
    assert len(memory.deduplicate()) == 1


def test_a_memory_gets_no_more_tags_than_it_may_have(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text("[remember]\nmax_tags = 3\n")
    with Memory(tmp_path / "m", preset=tmp_path / "p.toml", embedder="none") as memory:
        for end, tags in (("", ["a", "b"]), ("!", ["c"]), (".", ["d"])):
            memory.remember(f"tea{end}", tags=tags)
        memory.deduplicate()
        assert sorted(len(record.tags) for record in memory.list()) == [2, 2]
        memory.export(tmp_path / "x")
        with Memory(tmp_path / "n", preset=tmp_path / "p.toml", embedder="none") as other:
            assert other.import_(tmp_path / "x").added == 3


def test_what_was_edited_since_it_was_shown_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    with Memory(f"notebook:{path}", preset="recollect", embedder="none") as memory:
        memory.remember_many(["Buy milk", "buy milk"])
        shown = memory.deduplicate(dry_run=True)
        path.write_text(path.read_text().replace('"Buy milk"', '"The rent is due on Friday"'))
        assert memory.deduplicate(groups=shown) == []
        assert {record.content for record in memory.list()} == {"buy milk", "The rent is due on Friday"}


@pytest.mark.parametrize("groups", ["x", [1], [None], {"a": 1}, 5])
def test_groups_that_are_none_are_refused(memory: Memory, groups: Any) -> None:
    memory.remember_many(["tea", "Tea!"])
    with pytest.raises(InputError, match="groups"):
        memory.deduplicate(groups=groups)
    assert len(memory.list()) == 2


def test_all_places_or_none_are_merged(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for tier in ("workspace", "account"):
        memory.remember_many([{"content": "tea", "tier": tier}, {"content": "Tea!", "tier": tier}])
    store = memory._view.store
    update, calls = store.update, list[Any]()

    def failing(*given: Any) -> None:
        calls.append(given)
        if len(calls) == 2:
            raise StoreError("the disk failed")
        update(*given)

    monkeypatch.setattr(store, "update", failing)
    with pytest.raises(StoreError):
        memory.deduplicate()
    monkeypatch.undo()
    assert len(memory.list()) == 4
    assert len(memory.deduplicate()) == 2


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
