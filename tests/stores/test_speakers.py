"""Who said a turn: by what its metadata says, else by a name before a colon that a second turn proves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.stores import STORES, located

from recollect import Memory
from recollect.stores.port import Place


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


@pytest.fixture
def memory(url: str) -> Iterator[Memory]:
    with Memory(url, embedder="none") as memory:
        yield memory


def said(memory: Memory) -> dict[str, int]:
    view = memory.at(conversation="c")._view
    return {name: count for (name,), count in view.store.count(view.where(), ("speaker",)).items()}


def turns(memory: Memory, *texts: str, **fields: object) -> list[str]:
    talk = memory.at(conversation="c")
    return [talk.remember(text, role="user", importance=0.7, **fields).id for text in texts]  # pyright: ignore


def test_a_name_is_a_speakers_once_a_second_turn_begins_with_it(memory: Memory) -> None:
    turns(memory, "Ann: one", "well then")
    assert said(memory) == {"user": 2}
    turns(memory, "Ann: two", "Bob: three")
    assert said(memory) == {"ann": 2, "user": 2}
    turns(memory, "Ann: four", "Bob: five")
    assert said(memory) == {"ann": 3, "bob": 2, "user": 1}


def test_a_name_is_no_longer_proven_when_one_turn_is_left_of_those_that_had_it(memory: Memory) -> None:
    one, two, three = turns(memory, "Ann: one", "Ann: two", "Ann: three")
    memory.forget(two)
    assert said(memory) == {"ann": 2}
    memory.forget(three)
    assert said(memory) == {"user": 1}
    memory.undo()
    assert said(memory) == {"ann": 2}
    memory.forget([one, three])
    turns(memory, "Ann: four")
    assert said(memory) == {"user": 1}


def test_turns_at_another_address_prove_nothing(memory: Memory) -> None:
    turns(memory, "Ann: one")
    memory.at(conversation="c", agent="atlas").remember("Ann: two", role="user")
    assert said(memory) == {"user": 2}


def test_many_at_once_prove_as_one_by_one_do(memory: Memory) -> None:
    talk = memory.at(conversation="c")
    talk.remember_many([{"content": text, "role": "user"} for text in ("Ann: a", "Bob: b", "Ann: c", "well")])
    assert said(memory) == {"ann": 2, "user": 2}


def test_who_speaks_is_read_in_other_scripts_and_from_what_was_given(memory: Memory) -> None:
    turns(memory, "田中：こんにちは", "田中：はい", "प्रिया: नमस्ते", "प्रिया: हाँ")
    turns(memory, "so it is", metadata={"speaker": "  Bob   Stone "})
    turns(memory, "so it was", metadata={"speaker": " "})
    assert said(memory) == {"田中": 2, "प्रिया": 2, "bob stone": 1, "user": 1}


def test_another_process_opens_what_was_proven(memory: Memory, url: str) -> None:
    turns(memory, "Ann: one", "Ann: two")
    memory.close()
    with Memory(url, embedder="none") as again:
        assert said(again) == {"ann": 2}
        assert again._view.store.places("default") == [Place("default", "default")]
