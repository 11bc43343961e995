"""Bad input is an InputError that names the argument, from a memory here and from one on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.served import served
from support.stores import STORES, located

from recollect import InputError, Memory

CALLS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "ids of a case": ("ids", lambda memory: memory.cases.save("q", ids=None)),
    "an id for ids of a case": ("ids", lambda memory: memory.cases.save("q", ids="m1")),
    "ids of a case that are none": ("ids", lambda memory: memory.cases.save("q", ids=["a b"])),
    "texts of a case": ("texts", lambda memory: memory.cases.save("q", texts=5)),
    "a text for texts of a case": ("texts", lambda memory: memory.cases.save("q", texts="x")),
    "the question of no case": ("question", lambda memory: memory.cases.remove(None)),
    "a negative limit": ("limit", lambda memory: memory.audit.matching(["x"], limit=-1)),
    "no limit": ("limit", lambda memory: memory.audit.matching(["x"], limit=None)),
    "a text for texts": ("texts", lambda memory: memory.audit.matching("x")),
    "numbers for texts": ("texts", lambda memory: memory.audit.matching([1])),
    "no texts": ("texts", lambda memory: memory.audit.matching(None)),
    "too many texts": ("texts", lambda memory: memory.audit.matching(["x"] * 101)),
    "an action that is none": ("action", lambda memory: memory.audit.matching(["x"], action="A b")),
    "a memory that is none": ("about", lambda memory: memory.audit.matching(["x"], about="a b")),
    "no text": ("text", lambda memory: memory.audit.search(text=None)),
    "no part": ("part", lambda memory: memory.ids_like(None)),
    "no entry": ("entry", lambda memory: memory.audit.named(None)),
    "a title to contain": ("contains", lambda memory: memory.conversations.list(contains=-1)),
    "a time for content": ("content", lambda memory: memory.remember(datetime(2026, 1, 1, tzinfo=UTC))),
    "a time in content": ("content", lambda memory: memory.remember({"at": datetime(2026, 1, 1, tzinfo=UTC)})),
    "a time in metadata": ("metadata", lambda memory: memory.remember("x", metadata={"at": datetime.now(UTC)})),
    "a time for a source": ("source", lambda memory: memory.remember("x", source=datetime.now(UTC))),
    "a time for one of many": ("content", lambda memory: memory.remember_many([{"content": datetime.now(UTC)}])),
    "no title to contain": ("contains", lambda memory: memory.conversations.list(contains=None)),
}


@pytest.fixture(params=STORES)
def memories(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Memory]]:
    with ExitStack() as opened:
        memory = opened.enter_context(Memory(located(request.param, tmp_path / "m"), embedder="none"))
        server = opened.enter_context(served(memory))
        yield [memory, opened.enter_context(server.memory(tenant="default"))]


def test_bad_input_is_refused_alike_through_both_doors(memories: list[Memory]) -> None:
    for memory in memories:
        for what, (field, call) in CALLS.items():
            with pytest.raises(InputError) as refused:
                call(memory)
            assert refused.value.field == field, what
        assert memory.cases.list() == []


@pytest.mark.parametrize("condition", ["state", "tier", "role"])
def test_a_word_that_is_none_of_the_choices_is_told_which_there_are(memories: list[Memory], condition: str) -> None:
    wrong: dict[str, Any] = {condition: "nosuch"}
    messages = set[str]()
    for memory in memories:
        with pytest.raises(InputError, match=f"^{condition}: 'nosuch' must be one of ") as refused:
            memory.list(**wrong)
        messages.add(str(refused.value))
    assert len(messages) == 1


def test_the_word_any_is_searched_for_like_others(memories: list[Memory]) -> None:
    """In a query it stands for None, but only of arguments that can be None."""
    for memory in memories:
        memory.audit.record("note", "is there any tea?")
        assert "any tea" in memory.audit.search("any")[0].message
        assert memory.conversations.list(contains="any") == []
