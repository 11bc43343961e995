"""A word that no memory has is read as one that some have, where one letter makes the difference."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.concepts import texts
from support.stores import STORES, located

from recollect import Memory
from recollect.recall.spelling import beginning, differ_by_one, meant


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


@pytest.mark.parametrize(
    "typed",
    ["recyclng", "recycliing", "recycking", "recylcing", "RECYLCING", "recyclin"],
    ids=["one less", "one more", "another", "two changed places", "in capitals", "the last is missing"],
)
def test_a_word_with_one_letter_wrong_is_found_and_the_report_says_so(url: str, typed: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many(["The recycling is collected on Tuesdays", "The recital is on Fridays", "Rent is due"])
        hits = memory.recall(f"when is the {typed} fetched?")
        assert texts(hits) == ["The recycling is collected on Tuesdays"]
        assert hits.report in (f'read "{typed.lower()}" as "recycling"', "")  # the index may know it by its stem
        assert memory.recall("when is the recycling fetched?").report == ""


def test_what_some_memory_has_is_left_as_it_is(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many(["The casket is in the cellar", "The basket is in the attic"])
        hits = memory.recall("where is the casket?")
        assert (texts(hits)[0], hits.report) == ("The casket is in the cellar", "")


def test_short_words_numbers_and_what_is_asked_exactly_are_left_alone(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many(["the cart is red", "port 54321 is open", "the harbour master called"])
        for question in ("carp?", "54322?"):
            assert memory.recall(question).report == "", question
        assert memory.query({"text": "harbuor"}) == memory.query({"text": '"harbuor master"'}) == []
        assert texts(memory.recall('"harbuor master"')) == ["the harbour master called"]


def test_nothing_that_cannot_be_seen_gives_a_word(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.at(workspace="hers").remember("The chrysanthemum is hers")
        memory.at(agent="ann").remember("The wallflower is Ann's")
        mine = memory.at(workspace="mine", agent="bob")
        mine.remember("The garden is mine")
        for typed in ("chrysantemum", "wallflover"):
            hits = mine.recall(f"where is the {typed} of the garden?", min_relevance=0.0)
            assert (texts(hits), hits.report) == (["The garden is mine"], "")


def test_of_several_words_the_one_that_most_memories_have_is_meant() -> None:
    assert meant("conract", ["a contract", "another contract", "a contact"]) == "contract"
    assert meant("conract", ["nothing", "of the kind"]) is None
    assert [beginning(word) for word in ("cat", "houses", "wonderful", "v2.14", "4711000")] == [
        None,
        "ho",
        "won",
        None,
        None,
    ]


_words = st.text("abcd", min_size=1, max_size=7)


def _edits(word: str) -> set[str]:
    splits = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    return {
        *(a + b[1:] for a, b in splits if b),
        *(a + b[1] + b[0] + b[2:] for a, b in splits if len(b) > 1),
        *(a + letter + b[1:] for a, b in splits if b for letter in "abcd"),
        *(a + letter + b for a, b in splits for letter in "abcd"),
    }


@given(_words, _words)
def test_one_letter_is_what_the_textbook_says(word: str, other: str) -> None:
    """But for the first letter, which must be right."""
    assert differ_by_one(word, other) == (word != other and word[0] == other[0] and other in _edits(word))
