"""A word that no memory has is read as one that some have, where one letter makes the difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.concepts import Concepts, texts
from support.stores import STORES, located

from recollect import Memory, ModelError
from recollect.recall.recall import recall
from recollect.recall.spelling import as_written, is_name, may_be_misspelled, neighbours, slips


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


def test_what_is_private_gives_no_word(url: str) -> None:
    """A server lets none but its owner see what agents keep to themselves."""
    with Memory(url, embedder="none") as memory:
        memory.remember("The garden is mine, and so is ramipril")
        agent = memory.at(agent="ann")
        said = "The chrysanthemum is for Robert, who met Marcus Feldmann; public liability insurance is due"
        agent.remember(said, kind="journal")
        public = replace(memory._view, sees_private=False)  # pyright: ignore[reportPrivateUsage]
        for question in ("where is the chrysantemum?", "what does Bob do?", "where is Feldi?", "when is PLI due?"):
            for view in (public, replace(public, address=agent._view.address)):  # pyright: ignore[reportPrivateUsage]
                assert "read" not in recall(view, question, {}, touch=False, min_relevance=0.0).report, question


def test_of_several_words_the_one_that_most_memories_have_is_meant(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many(["a contact of mine", "the contract is signed", "another contract, not signed"])
        assert memory.recall("which conract?").report == 'read "conract" as "contract"'


def test_a_slip_of_the_hand_comes_before_a_letter_that_is_missing(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many(["the angle is right", "an angel, an angel", "angeld is no word, angeld"])
        assert memory.recall("which angeld?").report == ""
        memory.remember_many(["the trial was long", "the trials were long", "the trail is steep"])
        assert memory.recall("how long is the trali?").report == 'read "trali" as "trail"'


def test_one_name_is_not_taken_for_another(url: str) -> None:
    """Only where the hand has slipped: two letters that changed places, or one that is doubled or not."""
    with Memory(url, embedder="none") as memory:
        memory.remember_many(["my aunt Maria lives in Ghent", "I met Karin and Philipp", "we talked with Hannah"])
        for question in ("where does Marta live?", "where does marta live?", "who met Katrin?", "who knows Hanna?"):
            assert "Maria" not in memory.recall(question).report
            assert "karin" not in memory.recall(question).report, question
        assert memory.recall("where does Mraia live?").report == 'read "mraia" as "maria"'
        assert memory.recall("who talked with Hannnah?").report == 'read "hannnah" as "hannah"'


def test_another_letter_is_one_beside_it_or_another_vowel_of_a_long_word(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many(["the horse is 1.6 m tall", "the calendar is in the hall", "a blanket is in the box"])
        assert memory.recall("how tall is the house?").report == ""
        assert memory.recall("where is the calender?").report == 'read "calender" as "calendar"'
        assert memory.recall("where is the blanjet?").report == 'read "blanjet" as "blanket"'


def test_a_word_that_memories_have_outside_the_conditions_is_left_as_it_is(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember("the contact at Siemens is Ute", kind="finding")
        memory.remember("the contract with Siemens ends in May", kind="fact")
        assert memory.recall("who is the contact at Siemens?", kind="fact").report == ""
        assert memory.recall('who is the "contact" of the contract?').report == ""
        memory.remember("the chrysanthemum is in the hall", kind="finding")
        assert "chrysant" not in memory.recall('the chrysanthemum of "contract with Siemens"').report


def test_what_is_written_without_spaces_is_left_alone(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many(["妹は京都の大学で働いています", "ประตูบ้านสีแดงมาก"])
        for question in ("妹は京都の大学で働いていまし", "ประตูบ้านสีแดงมาด"):
            assert "read" not in memory.recall(question).report


def test_the_oldest_of_many_that_begin_alike_is_found(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember("the constable came at noon")
        memory.remember_many([f"the contractor number {n} confirmed the contract" for n in range(450)])
        hits = memory.recall("when did the constabel come?")
        assert (texts(hits)[0], hits.report) == ("the constable came at noon", 'read "constabel" as "constable"')


def test_the_model_is_asked_with_the_word_that_was_meant(tmp_path: Path) -> None:
    """And a word that it knows is no misspelling."""

    class Reader(Concepts):
        asked: ClassVar[list[str]] = []

        def embed_query(self, text: str) -> Any:
            self.asked.append(text)
            return super().embed_query(text)

        def knows(self, word: str) -> bool:
            return word == "plain"

    with Memory(tmp_path, embedder=Reader()) as memory:
        memory.remember_many(["the recycling is fetched on Tuesdays", "the plane lands at noon"])
        assert memory.recall("when is the recyclng fetched?").report == 'read "recyclng" as "recycling"'
        assert Reader.asked[-1] == "when is the recycling fetched?"
        assert memory.recall("when does the plain land?").report == ""


@pytest.mark.parametrize("answers", [True, False])
def test_a_model_that_cannot_be_read_keeps_no_word_from_being_meant(tmp_path: Path, answers: bool) -> None:
    """One that has not answered is not asked for its words: that may take as long."""
    looked: list[str] = []

    class Gone(Concepts):
        def embed_query(self, text: str) -> Any:
            if not answers:
                raise ModelError("no such file")
            return super().embed_query(text)

        def knows(self, word: str) -> bool:
            looked.append(word)
            raise ModelError("no such file")

    with Memory(tmp_path, embedder=Gone()) as memory:
        memory.remember_many(["the recycling is fetched on Tuesdays", "the plane lands at noon"])
        hits = memory.recall("when is the recyclng fetched?")
        assert texts(hits)[0] == "the recycling is fetched on Tuesdays"
        assert 'read "recyclng" as "recycling"' in hits.report
        assert bool(looked) is answers


def test_what_can_be_misspelled() -> None:
    assert [may_be_misspelled(word) for word in ("cat", "houses", "wonderful", "v2.14", "4711000", "大学で働いて")] == [
        False,
        True,
        True,
        False,
        False,
        False,
    ]
    assert not may_be_misspelled("a" * 25)
    assert as_written("tives", ["the creatives met"]) is None
    assert as_written("recyclings", ["the recycling is due"]) == "recycling"
    assert is_name("maria", ["my aunt Maria"], asked_as_name=False)
    assert not is_name("maria", ["Maria lives in Ghent"], asked_as_name=False)
    assert is_name("maria", ["Maria lives in Ghent"], asked_as_name=True)
    assert not is_name("recycling", ["Recycling is on Tuesdays", "the recycling"], asked_as_name=True)


_words = st.text("abcd", min_size=2, max_size=7)


def _edits(word: str) -> dict[str, set[str]]:
    """What the textbook says, but for the first letter, which must be right."""
    splits = [(word[:at], word[at:]) for at in range(1, len(word) + 1)]
    letters = "abcdefghijklmnopqrstuvwxyz"
    return {
        "less": {a + b[1:] for a, b in splits if b},
        "swapped": {a + b[1] + b[0] + b[2:] for a, b in splits if len(b) > 1},
        "other": {a + letter + b[1:] for a, b in splits if b for letter in letters},
        "more": {a + letter + b for a, b in splits for letter in letters},
    }


@given(_words)
def test_one_letter_is_what_the_textbook_says(word: str) -> None:
    edits, tried = _edits(word), {*slips(word), *neighbours(word), word}
    assert edits["less"] | edits["swapped"] | edits["more"] <= tried
    assert tried - {word[0] + word} <= {word}.union(*edits.values())


@given(_words)
def test_a_slip_changes_no_letter_for_another(word: str) -> None:
    assert _edits(word)["swapped"] <= {*slips(word), word}
    assert all(set(other) == set(word) for other in slips(word))
