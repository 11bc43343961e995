"""Reading a question: what is looked for, and what was only said to ask for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.text.query_parser import parse_query


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("which indentation does Alice want?", ("indentation", "alice", "want")),
        ("What is the deploy target?", ("deploy", "target")),
        ("tea tea TEA", ("tea",)),
        ("e-mail: bob@example.org", ("mail", "bob", "example", "org")),
        ("x y 9", ("9",)),
        ("plan x", ("plan",)),
        ("茶", ("茶",)),
        ("who are you", ("who", "are", "you")),
        ("", ()),
        (" \n\t", ()),
        ("?!… -- *", ()),
    ],
)
def test_words_that_only_ask_count_when_there_are_no_others(query: str, words: tuple[str, ...]) -> None:
    wish = parse_query(query)
    assert wish.words == words
    assert bool(wish) is bool(words)


@pytest.mark.parametrize(
    ("query", "phrases", "words"),
    [
        ('"the build is green"', ("the build is green",), ()),
        ('deploy "us-east-1" now', ("us-east-1",), ("deploy", "now")),
        ("“curly quotes” too", ("curly quotes",), ("too",)),
        ('"one" and "two"', ("one", "two"), ("and",)),
        ('an "open quote', (), ("open", "quote")),
        ('""', (), ()),
    ],
)
def test_what_is_quoted_is_a_phrase(query: str, phrases: tuple[str, ...], words: tuple[str, ...]) -> None:
    wish = parse_query(query)
    assert (wish.phrases, wish.words) == (phrases, words)


@pytest.mark.parametrize(
    ("query", "patterns", "words"),
    [
        ("auth*", ("auth*",), ()),
        ("colo?r", ("colo?r",), ()),
        ("*ship", ("*ship",), ()),
        ("auth* tokens", ("auth*",), ("tokens",)),
        ("really?", (), ("really",)),
        ("is it ready? yes*", ("yes*",), ("ready",)),
        ("* ? **", (), ()),
    ],
)
def test_stars_and_question_marks_inside_words_are_wildcards(
    query: str, patterns: tuple[str, ...], words: tuple[str, ...]
) -> None:
    wish = parse_query(query)
    assert (wish.patterns, wish.words) == (patterns, words)


def test_nobody_asks_for_more_than_sixteen_phrases_or_patterns() -> None:
    wish = parse_query(" ".join(f'"phrase {number}" pattern{number}*' for number in range(100)))
    assert wish.phrases == tuple(f"phrase {number}" for number in range(16))
    assert wish.patterns == tuple(f"pattern{number}*" for number in range(16))
    assert wish.words == ()
    assert parse_query("a* a* a* b").patterns == ("a*",)


@given(st.text())
def test_any_text_can_be_read(query: str) -> None:
    wish = parse_query(query)
    assert all(wish.words)
    assert all(wish.patterns)
    assert all(wish.phrases)


@pytest.mark.parametrize("query", ["*a" * 25_000, "a?" * 2500, "ab*?" * 12_000, "a" * 40 + "*" * 25])
def test_a_pattern_that_nobody_types_is_read_as_words(query: str) -> None:
    assert parse_query(query).patterns == ()
    assert parse_query(query).words


def test_patterns_are_bounded_in_length_and_number() -> None:
    asked = parse_query(" ".join(f"*w{number}*" for number in range(5000)) + " " + "a" * 63 + "*")
    assert len(asked.patterns) == 16
    assert parse_query("a" * 63 + "*").patterns == ("a" * 63 + "*",)
