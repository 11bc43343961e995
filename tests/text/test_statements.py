"""What two sentences say of the same, read once for recall, superseding and merging."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.recall.freshness import freshen
from recollect.text.statements import (
    Assertion,
    are_opposite,
    contradicts,
    fingerprint,
    keys,
    names,
    plain,
    shared_words,
)

TESTS = Path(__file__).parents[1]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


LABELLED = [
    *((row["old"], row["new"]) for row in rows(TESTS / "maintenance" / "superseding.tsv")),
    *((row["older"], row["newer"]) for row in rows(TESTS.parent / "benchmarks" / "freshness.tsv")),
]


def newer_first(question: str, old: str, new: str) -> bool:
    return freshen(question, [0, 1], [1.0, 0.9], [old, new], [1, 2])[0] == [1, 0]


DENIED = [
    ("Can Zoe swim?", "Zoe can swim.", "Zoe can't swim."),
    ("Can Zoe swim?", "Zoe can swim.", "Zoe cannot swim."),
    ("Does the flat have a balcony?", "The flat has a balcony.", "The flat has no balcony."),
    ("Does the tea come with milk?", "The tea comes with milk.", "The tea comes without milk."),
    ("Does Ravi eat fish?", "Ravi eats fish.", "Ravi doesn't eat fish any more."),
    ("Does Ravi eat fish?", "Ravi eats fish.", "Ravi no longer eats fish."),
    ("Does the shop sell bread?", "The shop sells bread.", "The shop doesn't sell any bread."),
    ("Wohnt Jana in Mainz?", "Jana wohnt in Mainz.", "Jana wohnt nicht in Mainz."),
    ("Marie travaille ici ?", "Marie travaille ici.", "Marie ne travaille pas ici."),
]
REVERSED = [
    ("Is the lamp on the wall on?", "The lamp on the wall is on.", "The lamp on the wall is off."),
    ("Is the invoice paid?", "The invoice is unpaid.", "The invoice is paid."),
    ("Is the door to the yard locked?", "The door to the yard is locked.", "The door to the yard is unlocked."),
    ("Does the parser accept tabs?", "The parser accepts tabs.", "The parser rejects tabs."),
    ("Is the API key visible?", "The API key is visible.", "The API key is hidden."),
]
OTHER_VALUES = [
    ("How many seats does the van have?", "The van has seven seats.", "The van has nine seats."),
    ("Where is the printer?", "The printer is on the fourth floor.", "The printer is on the second floor."),
    ("When is the review?", "The review is on Monday.", "The review is on Thursday."),
    ("How often is the report due?", "The report is weekly.", "The report is monthly."),
    ("How much does the pass cost?", "The pass costs 40 euros.", "The pass costs 55 euros."),
]


@pytest.mark.parametrize(("question", "old", "new"), [*DENIED, *REVERSED, *OTHER_VALUES])
def test_recall_superseding_and_merging_agree_that_two_contradict(question: str, old: str, new: str) -> None:
    assert contradicts(old, new)
    assert contradicts(new, old)
    assert newer_first(question, old, new)
    assert fingerprint(old) != fingerprint(new)


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        ("Which car does Ida have?", "Ida has a red car.", "Ida has a second car."),
        ("Which tea does Ida like?", "Ida likes green tea.", "Ida also likes black tea."),
        ("Does Ida swim?", "Ida swims.", "Otto does not swim."),
        ("What does Ida say of tea?", "Ida: I like tea.", "Otto: I dislike tea."),
        ("Is the gate open?", "The gate is open.", "The gate of the yard next door is closed."),
    ],
)
def test_they_agree_that_two_do_not(question: str, old: str, new: str) -> None:
    assert not contradicts(old, new)
    assert not newer_first(question, old, new)


def test_what_happened_before_stays_true_though_the_newer_tells_how_things_are() -> None:
    started, stopped = "Kim starts the pump.", "Kim stops the pump."
    assert newer_first("Does Kim start the pump?", started, stopped)
    assert not contradicts(started, stopped)
    assert fingerprint(started) != fingerprint(stopped)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("The user likes tea", "the user enjoys tea"),
        ("He does not smoke", "He doesn't smoke"),
        ("Ann no longer smokes", "Ann does not smoke"),
        ("We met Alice at 10:30", "At 10:30 we met Alice"),
        ("The heating is on", "the heating runs"),
    ],
)
def test_the_same_in_other_words_has_one_fingerprint(text: str, other: str) -> None:
    assert fingerprint(text) == fingerprint(other)


def test_names_are_words_with_a_capital_that_begin_no_sentence() -> None:
    assert names("Who is Dr. Okafor? Where does Ann live") == ["Dr", "Okafor", "Ann"]
    assert names("McKinsey called: The offer stands") == ["McKinsey"]


def test_only_the_speaker_may_reverse_what_was_said() -> None:
    likes, dislikes = Assertion("I like tea", "Ken"), "I dislike tea"
    assert are_opposite(likes, Assertion(dislikes, "Ken"))
    assert not are_opposite(likes, Assertion(dislikes, "Ann"))


def test_of_labelled_pairs_those_that_contradict_can_be_looked_up_by_a_key() -> None:
    contradictions = [(old, new) for old, new in LABELLED if contradicts(old, new)]
    assert len(contradictions) > 100
    for old, new in contradictions:
        a, b = plain(old), plain(new)
        assert a is not None
        assert b is not None
        assert set(keys(a)) & set(keys(b)), (old, new)


def test_of_labelled_pairs_those_that_contradict_are_merged_only_where_plain_nouns_differ() -> None:
    same = [(old, new) for old, new in LABELLED if contradicts(old, new) and fingerprint(old) == fingerprint(new)]
    assert all(not names(old) and not any(map(str.isdigit, old)) for old, _ in same)
    assert len(same) <= 4


words = st.sampled_from(
    "the The Ann Bob gate is not isn't open closed on off 5 six May red a second also . ? can't".split()
)


@given(st.lists(words, max_size=9).map(" ".join) | st.text(max_size=40), st.lists(words, max_size=9).map(" ".join))
def test_any_two_texts_can_be_compared(old: str, new: str) -> None:
    assert contradicts(old, new) == contradicts(new, old)
    assert not contradicts(old, old)
    assert 0.0 <= shared_words(Assertion(old), Assertion(new)) <= 1.0
    if contradicts(old, new):
        a, b = plain(old), plain(new)
        assert a is not None
        assert b is not None
        assert set(keys(a)) & set(keys(b))
