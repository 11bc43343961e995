"""BM25 over posting lists."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recollect.recall.lexical import brake_of, text_scores

TEXTS = ["tea", "tea and green tea", "coffee", "green", "cocoa", "water", "juice", "salt"]


def lengths(texts: list[str]) -> NDArray[np.float32]:
    return np.array([len(text) for text in texts], np.float32)


def reading(texts: Any) -> Callable[[Sequence[int]], dict[int, str]]:
    return lambda rows: {row: texts[row] for row in rows}


def index(texts: list[str]) -> Callable[[str], NDArray[np.int64]]:
    return lambda term: np.array([i for i, text in enumerate(texts) if term in text.lower().split()], np.int64)


def expected(terms: list[str], texts: list[str], row: int, counted: bool) -> float:
    mean = sum(map(len, texts)) / len(texts)
    held = 1.2 * (0.25 + 0.75 * len(texts[row]) / max(mean, 1.0))
    score = 0.0
    for term in dict.fromkeys(terms):
        having = sum(term in text.lower().split() for text in texts)
        times = texts[row].lower().split().count(term)
        if times:
            idf = max(1e-6, math.log((len(texts) - having + 0.5) / (having + 0.5)))
            times = times if counted else 1
            score += idf * times * 2.2 / (times + held)
    return score


def test_the_brake_is_harder_on_what_is_longer() -> None:
    # 1.2 · (0.25 + 0.75 · length / 20)
    assert brake_of(np.array([0, 10, 20, 50], np.float32)).tolist() == pytest.approx([0.3, 0.75, 1.2, 2.55])
    assert brake_of(np.array([0, 0], np.float32)).tolist() == pytest.approx([0.3, 0.3])
    assert brake_of(np.zeros(0, np.float32)).tolist() == []


def test_only_what_is_visible_makes_the_mean_length() -> None:
    visible = np.array([True, False, True])
    assert brake_of(np.array([10, 999, 30], np.float32), visible)[[0, 2]].tolist() == pytest.approx([0.75, 1.65])
    assert np.isfinite(brake_of(np.array([10.0], np.float32), np.array([False]))).all()


def test_scores_by_hand() -> None:
    # 8 texts of mean length 50 / 8. Two have tea: ln(6.5 / 2.5); two have green.
    idf = math.log(6.5 / 2.5)
    brake = brake_of(lengths(TEXTS))
    tea, both = 1.2 * (0.25 + 0.75 * 3 / 6.25), 1.2 * (0.25 + 0.75 * 17 / 6.25)
    scores = text_scores(["tea", "green", "tea", "nowhere"], index(TEXTS), brake)
    assert scores.dtype == np.float32
    assert scores[:3].tolist() == pytest.approx([idf * 2.2 / (1 + tea), 2 * idf * 2.2 / (1 + both), 0.0])
    counted = text_scores(["tea", "green"], index(TEXTS), brake, reading(TEXTS))
    assert counted[1] == pytest.approx(idf * 2 * 2.2 / (2 + both) + idf * 2.2 / (1 + both))
    assert counted[0] == pytest.approx(scores[0])


def test_a_word_that_all_have_counts_a_little() -> None:
    scores = text_scores(["tea"], index(["tea", "tea tea"]), np.ones(2, np.float32))
    assert scores.tolist() == pytest.approx([1.1e-6, 1.1e-6])


def test_other_forms_of_a_word_are_counted_with_it() -> None:
    def postings(_: str) -> NDArray[np.int64]:
        return np.array([0, 1])  # as an index with stems finds them

    texts = ["House, houses, housing", "one house", *"abcdef"]
    brake = np.ones(8, np.float32)
    scores = text_scores(["houses"], postings, brake, reading(texts))
    idf = math.log(6.5 / 2.5)
    assert scores[:2].tolist() == pytest.approx([idf * 3 * 2.2 / 4, idf * 2.2 / 2])


def test_what_the_index_finds_and_the_eye_does_not_keeps_its_score() -> None:
    texts = ["Krankenversicherung", *"abcdefg"]
    scores = text_scores(["versicherung"], lambda _: np.array([0]), np.ones(8, np.float32), reading(texts))
    assert scores[0] == pytest.approx(math.log(7.5 / 1.5) * 1.1)


def test_the_best_thirty_are_read_and_of_equals_the_first() -> None:
    texts = ["tea tea"] * 50 + ["milk"] * 200
    read: list[int] = []

    def reader(rows: Sequence[int]) -> dict[int, str]:
        read.extend(rows)
        return {row: texts[row] for row in rows}

    brake = np.ones(250, np.float32)
    brake[40:45] = 0.5
    text_scores(["tea"], index(texts), brake, reader)
    assert sorted(read) == [*range(25), *range(40, 45)]


def test_nothing_is_found_in_nothing() -> None:
    assert text_scores(["tea"], index([]), np.zeros(0, np.float32), reading([])).tolist() == []
    assert text_scores([], index(TEXTS), np.ones(8, np.float32), reading(TEXTS)).tolist() == [0.0] * 8


words = st.sampled_from(["tea", "milk", "salt", "green"])
corpora = st.lists(st.lists(words, max_size=6).map(" ".join), min_size=1, max_size=12)


@given(corpora, st.lists(words, max_size=5), st.booleans())
def test_scores_are_those_of_the_formula(texts: list[str], terms: list[str], counted: bool) -> None:
    scores = text_scores(terms, index(texts), brake_of(lengths(texts)), reading(texts) if counted else None)
    assert scores.tolist() == pytest.approx([expected(terms, texts, i, counted) for i in range(len(texts))], rel=1e-5)


@given(corpora, st.lists(words, max_size=5), st.booleans(), st.data())
def test_hidden_is_the_same_as_not_being_there(
    texts: list[str], terms: list[str], counted: bool, data: st.DataObject
) -> None:
    visible = np.array(data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))))
    rest = [text for text, seen in zip(texts, visible, strict=True) if seen]

    def reader(rows: Sequence[int]) -> dict[int, str]:
        assert all(visible[row] for row in rows)
        return {row: texts[row] for row in rows}

    brake = brake_of(lengths(texts), visible)
    scores = text_scores(terms, index(texts), brake, reader if counted else None, visible)
    alone = text_scores(terms, index(rest), brake_of(lengths(rest)), reading(rest) if counted else None)
    assert scores[visible].tolist() == alone.tolist()
    assert not scores[~visible].any()
