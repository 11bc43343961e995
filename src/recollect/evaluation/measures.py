"""How good a ranking is. Pure functions of what was found, best first, and what should have been."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set

import msgspec

CUTS = (1, 3, 5, 10, 20)
"""The k of R@k, any@k and all@k."""

DEPTH = 10
"""The k of NDCG and MRR."""


class Measures(msgspec.Struct, frozen=True):
    """Means over questions, from 0 to 1."""

    questions: int
    recall: dict[int, float]
    any: dict[int, float]
    all: dict[int, float]
    ndcg_at_10: float = msgspec.field(name="ndcg@10")
    mrr_at_10: float = msgspec.field(name="mrr@10")


def recall_at(k: int, ranked: Sequence[str], wanted: Set[str]) -> float:
    """The share of what is wanted that is among the first k."""
    return len(wanted & set(ranked[:k])) / len(wanted)


def any_at(k: int, ranked: Sequence[str], wanted: Set[str]) -> float:
    """1 if at least one of what is wanted is among the first k, else 0."""
    return float(not wanted.isdisjoint(ranked[:k]))


def all_at(k: int, ranked: Sequence[str], wanted: Set[str]) -> float:
    """1 if everything that is wanted is among the first k, else 0."""
    return float(wanted <= set(ranked[:k]))


def reciprocal_rank(k: int, ranked: Sequence[str], wanted: Set[str]) -> float:
    """1 for a first place, 1/2 for a second, … of the best that is wanted; 0 if none is among the first k."""
    return next((1 / rank for rank, each in enumerate(ranked[:k], 1) if each in wanted), 0.0)


def ndcg(k: int, ranked: Sequence[str], wanted: Set[str]) -> float:
    """Places among the first k, each worth less than the one before, as a share of the best possible order's worth."""
    gained = sum(_worth(rank) for rank, each in enumerate(ranked[:k], 1) if each in wanted)
    return gained / sum(_worth(rank) for rank in range(1, min(k, len(wanted)) + 1))


def _worth(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def scores(rankings: Iterable[tuple[Sequence[str], Set[str]]]) -> Measures:
    """The means over questions, each as what was found, without doubles, and what was wanted, which is never empty."""
    asked = list(rankings)
    return Measures(
        len(asked),
        {k: _mean(recall_at(k, *each) for each in asked) for k in CUTS},
        {k: _mean(any_at(k, *each) for each in asked) for k in CUTS},
        {k: _mean(all_at(k, *each) for each in asked) for k in CUTS},
        _mean(ndcg(DEPTH, *each) for each in asked),
        _mean(reciprocal_rank(DEPTH, *each) for each in asked),
    )


def percentile(share: float, values: Iterable[float]) -> float:
    """The least value that is not below that share of all: of 20 values, 0.95 gives the 19th. 0 if there is none."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else 0.0


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return math.fsum(numbers) / len(numbers) if numbers else 0.0
