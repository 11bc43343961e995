"""The measures against tables worked out by hand."""

from __future__ import annotations

from math import log2

import pytest

from recollect.evaluation.measures import all_at, any_at, ndcg, percentile, recall_at, reciprocal_rank, scores

FOUND = ["a", "x", "b", "y", "z", "c"]


@pytest.mark.parametrize(
    ("k", "wanted", "share", "some", "every"),
    [
        (1, "a", 1.0, 1, 1),
        (1, "b", 0.0, 0, 0),
        (1, "ab", 0.5, 1, 0),
        (3, "ab", 1.0, 1, 1),
        (3, "abc", 2 / 3, 1, 0),
        (5, "abc", 2 / 3, 1, 0),
        (6, "abc", 1.0, 1, 1),
        (20, "abc", 1.0, 1, 1),
        (20, "abcd", 0.75, 1, 0),
        (20, "q", 0.0, 0, 0),
        (5, "cq", 0.0, 0, 0),
    ],
)
def test_recall_any_and_all(k: int, wanted: str, share: float, some: int, every: int) -> None:
    assert recall_at(k, FOUND, set(wanted)) == pytest.approx(share)
    assert any_at(k, FOUND, set(wanted)) == some
    assert all_at(k, FOUND, set(wanted)) == every


@pytest.mark.parametrize(
    ("k", "wanted", "expected"),
    [(10, "a", 1.0), (10, "b", 1 / 3), (10, "cb", 1 / 3), (10, "c", 1 / 6), (5, "c", 0.0), (10, "q", 0.0)],
)
def test_the_reciprocal_rank_is_that_of_the_first_that_is_wanted(k: int, wanted: str, expected: float) -> None:
    assert reciprocal_rank(k, FOUND, set(wanted)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("k", "wanted", "expected"),
    [
        (10, "a", 1.0),
        (10, "x", 1 / log2(3)),
        (10, "ab", (1 + 1 / 2) / (1 + 1 / log2(3))),
        (10, "ax", 1.0),
        (10, "aq", 1 / (1 + 1 / log2(3))),
        (2, "axb", 1.0),  # three are wanted, and no order could show more than two
        (10, "q", 0.0),
        (5, "c", 0.0),
    ],
)
def test_ndcg_is_a_share_of_the_best_order(k: int, wanted: str, expected: float) -> None:
    assert ndcg(k, FOUND, set(wanted)) == pytest.approx(expected)


def test_nothing_found_scores_nothing() -> None:
    got = scores([([], {"a"})])

    assert set(got.recall.values()) == set(got.any.values()) == set(got.all.values()) == {0.0}
    assert got.ndcg_at_10 == got.mrr_at_10 == 0.0


def test_scores_are_means_over_questions_not_over_what_is_wanted() -> None:
    got = scores([(["a"], {"a"}), (["x", "b"], {"b", "c", "d", "e"})])

    assert got.questions == 2
    assert got.recall == pytest.approx({1: 0.5, 3: 0.625, 5: 0.625, 10: 0.625, 20: 0.625})
    assert got.any == {1: 0.5, 3: 1.0, 5: 1.0, 10: 1.0, 20: 1.0}
    assert got.all == {1: 0.5, 3: 0.5, 5: 0.5, 10: 0.5, 20: 0.5}
    assert got.mrr_at_10 == pytest.approx(0.75)


def test_ndcg_and_mrr_look_at_ten() -> None:
    eleventh = [*"bcdefghijk", "a"]
    got = scores([(eleventh, {"a"})])

    assert got.recall[10] == got.ndcg_at_10 == got.mrr_at_10 == 0.0
    assert got.recall[20] == 1.0


def test_no_questions_score_nothing() -> None:
    assert scores([]).questions == 0
    assert scores([]).recall[10] == 0.0


@pytest.mark.parametrize(
    ("share", "values", "expected"),
    [
        (0.5, [], 0.0),
        (0.95, [7.0], 7.0),
        (0.5, [3.0, 1.0, 2.0], 2.0),
        (0.5, [4.0, 3.0, 2.0, 1.0], 2.0),
        (0.95, [float(value) for value in range(1, 21)], 19.0),
        (0.95, [float(value) for value in range(1, 101)], 95.0),
    ],
)
def test_percentiles_are_values_that_were_measured(share: float, values: list[float], expected: float) -> None:
    assert percentile(share, values) == expected
