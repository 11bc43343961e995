"""Pairs of almost equal vectors: found without comparing each with each, and hardly one is missed."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.maintenance import similar
from recollect.text.statements import fingerprint


def near(vector: np.ndarray, cosine: float, rng: np.random.Generator) -> np.ndarray:
    """A vector at that angle from another of length one, in a random direction."""
    other = rng.standard_normal(len(vector))
    other -= (other @ vector) * vector
    return cosine * vector + np.sqrt(1 - cosine**2) * other / np.linalg.norm(other)


def cloud(count: int, corner: float, rng: np.random.Generator, dimensions: int = 128) -> np.ndarray:
    """Vectors of length one; the nearer `corner` is to one, the more they point the same way."""
    axis = np.zeros(dimensions)
    axis[0] = corner / max(1e-9, np.sqrt(1 - corner**2))
    rows = rng.standard_normal((count, dimensions)) / np.sqrt(dimensions) + axis
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.clause("INK-19")
@pytest.mark.parametrize("corner", [0.0, 0.5, 0.75])
def test_hardly_a_pair_is_missed(corner: float) -> None:
    rng = np.random.default_rng(7)
    rows = cloud(4000, corner, rng)  # with their twins more than are simply compared each with each
    cosines = rng.uniform(0.951, 0.99, 1000)
    twins = np.stack([near(rows[at], cosine, rng) for at, cosine in enumerate(cosines)])
    units = np.concatenate((rows, twins)).astype(np.float32)
    brute = np.argwhere(np.triu(units @ units.T > 0.95, 1))
    found = similar.pairs(units, 0.95)
    assert found is not None
    right, ours = set(map(tuple, brute.tolist())), set(map(tuple, found.tolist()))
    assert len(right) >= 1000
    assert ours <= right
    assert len(ours) / len(right) >= 0.99


def test_few_are_compared_exactly() -> None:
    rng = np.random.default_rng(3)
    rows = cloud(500, 0.0, rng)
    units = np.concatenate((rows, [near(rows[0], 0.96, rng), near(rows[1], 0.94, rng)])).astype(np.float32)
    assert similar.pairs(units, 0.95).tolist() == [[0, 500]]  # type: ignore[union-attr]


def test_vectors_that_all_lie_in_one_corner_are_distrusted() -> None:
    rng = np.random.default_rng(5)
    assert not similar.tells_nothing(cloud(500, 0.9, rng).astype(np.float32), 0.95)
    assert similar.tells_nothing(cloud(500, 0.995, rng).astype(np.float32), 0.95)
    assert similar.tells_nothing(np.ones((500, 4), np.float32) / 2, 0.95)


def test_what_has_no_direction_is_not_used() -> None:
    rows = np.array([[1, 0], [np.nan, 1], [np.inf, 0], [0, 0], [3e38, 3e38], [1e-9, 0]], np.float32)
    assert similar.usable(rows).tolist() == [True, False, False, False, False, False]
    assert np.isfinite(similar.unit(rows[similar.usable(rows)])).all()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The limit is 5 requests", "The limit is 50 requests"),
        ("Version 1.2 is out", "Version 1.3 is out"),
        ("We ship on Monday", "We ship on Friday"),
        ("There are two servers", "There are three servers"),
        ("Alice likes tea", "Alice does not like tea"),
        ("The build works", "The build never works"),
        ("He can swim", "He can't swim"),
        ("Das ist erlaubt", "Das ist nicht erlaubt"),
        ("Wir haben Zeit", "Wir haben keine Zeit"),
        ("Está abierto", "Nunca está abierto"),
        ("con azúcar", "sin azúcar"),
        ("C'est ouvert", "Ce n'est pas ouvert"),
        ("avec sucre", "sans sucre"),
        ("the meeting is with Alice", "the meeting is with Bob"),
        ("written in Java", "written in JavaScript"),
        ("McKinsey called", "mckinley called"),
        ("written in C", "written in C#"),
        ("a raise of 5 %", "a raise of 5"),
        ("is it open?", "is it open"),
        ("The heating is on", "The heating is off"),
        ("The report is sent weekly", "The report is sent daily"),
    ],
)
def test_the_fingerprint_tells_apart(one: str, other: str) -> None:
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user likes tea", "the user enjoys tea"),
        ("We met Alice at 10:30", "At 10:30 we met Alice"),
        ("He does not smoke", "He doesn't smoke"),
    ],
)
def test_the_fingerprint_lets_the_same_in_other_words_pass(one: str, other: str) -> None:
    assert fingerprint(one) == fingerprint(other)
