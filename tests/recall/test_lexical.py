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


def index(texts: list[str], terms: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """Where each of the words stands."""
    return {
        term: np.array([i for i, text in enumerate(texts) if term in text.lower().split()], np.int64) for term in terms
    }


def scored(terms: Sequence[str], texts: list[str], brake: NDArray[np.float32], read: Any = None) -> NDArray[np.float32]:
    words = index(texts, terms)
    return text_scores(words, len(texts), {word: len(at) for word, at in words.items()}, brake, read)


def mean(texts: list[str]) -> float:
    return sum(map(len, texts)) / len(texts) if texts else 0.0


def expected(terms: list[str], texts: list[str], row: int, counted: bool) -> float:
    held = 1.2 * (0.25 + 0.75 * len(texts[row]) / max(mean(texts), 1.0))
    score = 0.0
    for term in dict.fromkeys(terms):
        having = sum(term in text.lower().split() for text in texts)
        times = texts[row].lower().split().count(term)
        if times:
            idf = max(1e-6, math.log((len(texts) - having + 0.5) / (having + 0.5)))
            once, all_times = idf * 2.2 / (1 + held), idf * times * 2.2 / (times + held)
            score += once + (0.25 * (all_times - once) if counted else 0.0)
    return score


def test_the_brake_is_harder_on_what_is_longer() -> None:
    # 1.2 · (0.25 + 0.75 · length / 20)
    assert brake_of(np.array([0, 10, 20, 50], np.float32), 20.0).tolist() == pytest.approx([0.3, 0.75, 1.2, 2.55])
    assert brake_of(np.array([0, 0], np.float32), 0.0).tolist() == pytest.approx([0.3, 0.3])
    assert brake_of(np.zeros(0, np.float32), 0.0).tolist() == []


def test_scores_by_hand() -> None:
    # 8 texts of mean length 50 / 8. Two have tea: ln(6.5 / 2.5); two have green.
    idf = math.log(6.5 / 2.5)
    brake = brake_of(lengths(TEXTS), mean(TEXTS))
    tea, both = 1.2 * (0.25 + 0.75 * 3 / 6.25), 1.2 * (0.25 + 0.75 * 17 / 6.25)
    scores = scored(["tea", "green", "nowhere"], TEXTS, brake)
    assert scores.dtype == np.float32
    assert scores[:3].tolist() == pytest.approx([idf * 2.2 / (1 + tea), 2 * idf * 2.2 / (1 + both), 0.0])
    counted = scored(["tea", "green"], TEXTS, brake, reading(TEXTS))
    twice = idf * 2 * 2.2 / (2 + both) - idf * 2.2 / (1 + both)
    assert counted[1] == pytest.approx(float(scores[1]) + 0.25 * twice)
    assert counted[0] == pytest.approx(scores[0])


def test_a_word_that_all_have_counts_a_little() -> None:
    scores = scored(["tea"], ["tea", "tea tea"], np.ones(2, np.float32))
    assert scores.tolist() == pytest.approx([1.1e-6, 1.1e-6])


def test_other_forms_of_a_word_are_counted_with_it() -> None:
    texts = ["House, houses, housing", "one house", *"abcdef"]
    brake = np.ones(8, np.float32)
    # As an index with stems finds them.
    scores = text_scores({"houses": np.array([0, 1])}, 8, {"houses": 2}, brake, reading(texts))
    idf = math.log(6.5 / 2.5)
    once = idf * 2.2 / 2
    assert scores[:2].tolist() == pytest.approx([once + 0.25 * (idf * 3 * 2.2 / 4 - once), once])


def test_what_the_index_finds_and_the_eye_does_not_keeps_its_score() -> None:
    texts = ["Krankenversicherung", *"abcdefg"]
    words = {"versicherung": np.array([0])}
    scores = text_scores(words, 8, {"versicherung": 1}, np.ones(8, np.float32), reading(texts))
    assert scores[0] == pytest.approx(math.log(7.5 / 1.5) * 1.1)


def test_the_best_thirty_are_read_and_of_equals_the_first() -> None:
    texts = ["tea tea"] * 50 + ["milk"] * 200
    read: list[int] = []

    def reader(rows: Sequence[int]) -> dict[int, str]:
        read.extend(rows)
        return {row: texts[row] for row in rows}

    brake = np.ones(250, np.float32)
    brake[40:45] = 0.5
    scored(["tea"], texts, brake, reader)
    assert sorted(read) == [*range(25), *range(40, 45)]


def test_nothing_is_found_in_nothing() -> None:
    assert scored(["tea"], [], np.zeros(0, np.float32), reading([])).tolist() == []
    assert scored([], TEXTS, np.ones(8, np.float32), reading(TEXTS)).tolist() == [0.0] * 8


words = st.sampled_from(["tea", "milk", "salt", "green"])
corpora = st.lists(st.lists(words, max_size=6).map(" ".join), min_size=1, max_size=12)


@given(corpora, st.lists(words, max_size=5), st.booleans())
def test_scores_are_those_of_the_formula(texts: list[str], terms: list[str], counted: bool) -> None:
    brake = brake_of(lengths(texts), mean(texts))
    scores = scored(terms, texts, brake, reading(texts) if counted else None)
    assert scores.tolist() == pytest.approx([expected(terms, texts, i, counted) for i in range(len(texts))], rel=1e-5)


def test_how_often_a_word_is_said_counts_whatever_stands_beside_it() -> None:
    texts = ["a heron", "Heron! (heron), heron", *"abcdef"]
    counted = scored(["heron"], [text.lower().strip("!(),") for text in texts], np.ones(8, np.float32))
    words = {"heron": np.array([0, 1])}
    sharp = text_scores(words, 8, {"heron": 2}, np.ones(8, np.float32), reading(texts))
    assert sharp[1] > sharp[0] > 0
    assert counted[0] == sharp[0]
