"""Text for a word index: what stands in a memory must be found by the same word in a query."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.text.segment import parts, segment, spaceless, terms


def indexed(text: str) -> set[str]:
    """The entries that an index which splits on spaces and punctuation makes of a text."""
    return set(re.findall(r"[^\s.,;:!?()「」、。]+", segment(text).lower()))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("the meeting is on Tuesday", "tuesday"),
        ("明日の会議は東京です", "会議"),
        ("明日の会議は東京です", "東京"),
        ("我喜欢喝乌龙茶", "乌龙茶"),
        ("我喜欢喝乌龙茶", "茶"),
        ("서울에서 만나요", "서울"),
        ("ฉันชอบกินข้าวผัด", "ข้าวผัด"),
        ("ភាសាខ្មែរ", "ខ្មែរ"),
        ("Die Krankenversicherung zahlt", "versicherung"),
        ("Straße", "strasse"),
        ("ＡＢＣ１２３", "abc123"),
        ("ﬁnance report", "finance"),
        ("Version 2 of GPT漢字mix", "漢字"),
        ("ΟΔΟΣ", "οδος"),
    ],
)
def test_a_word_in_a_text_is_found(text: str, word: str) -> None:
    entries = indexed(text)
    for term in terms(word):
        if term.endswith("*"):
            assert any(entry.startswith(term[:-1]) for entry in entries)
        else:
            assert term in entries


@pytest.mark.parametrize(
    ("text", "word"), [("東京", "京東"), ("会議", "議会"), ("tea", "coffee"), ("ข้าวผัด", "ผักชี"), ("乌龙茶", "红茶")]
)
def test_a_word_that_is_not_there_is_not_found(text: str, word: str) -> None:
    assert not set(terms(word)) <= indexed(text)


def test_plain_english_is_its_own_segmentation() -> None:
    text = "Alice prefers tabs over spaces, always."
    assert segment(text) is text


def test_letters_keep_the_marks_that_belong_to_them() -> None:
    assert terms("ที่นี่") == ["ที่นี่"]
    assert all(not re.match("[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]", term) for term in terms("ข้าวผัดกุ้ง"))


def test_the_endings_of_a_long_word_stand_behind_the_text() -> None:
    body, endings = segment("Krankenversicherung ja").split("\n")
    assert body == "Krankenversicherung ja"
    assert "versicherung" in endings.split()
    assert "Krankenversicherung" not in endings.split()


def test_a_long_word_is_also_looked_for_by_its_parts() -> None:
    assert {"versicherung", "kranken"} <= set(parts("krankenversicherung"))
    assert parts("versicherun") == []
    assert parts("abc123def456ghi") == []


@pytest.mark.parametrize("letter", ["x", "漢", "ü"])
def test_a_megabyte_without_a_space_stays_about_a_megabyte(letter: str) -> None:
    word = letter * 1_000_000
    assert len(segment(word)) < 4_000_000
    assert parts(word) == []
    assert len(terms(word)) <= 1_000_000


@pytest.mark.parametrize(
    ("word", "is_it"), [("tea", False), ("茶", True), ("ชา", True), ("Größe", False), ("a茶", True)]
)
def test_scripts_without_spaces_are_known(word: str, is_it: bool) -> None:
    assert spaceless(word) is is_it


@given(st.text("abc 漢字東京ข้าผัด茶é", min_size=1))
def test_every_term_of_a_text_is_among_its_entries(text: str) -> None:
    entries = set(segment(text).split())
    for term in terms(text):
        assert any(entry == term or (term.endswith("*") and entry.startswith(term[:-1])) for entry in entries)
