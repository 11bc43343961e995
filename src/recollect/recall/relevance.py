"""Whether a hit is an answer at all: the share of such hits that were right, as a number from 0 to 1.

A score says what comes first. It has no zero: the best of what does not answer has a score too. So this is told from
what means the same in every memory: the share of the question's words that a hit has, how similar its meaning is in
the terms of the model, and what speaker, time and neighbours add. Fitted by logistic regression on LoCoMo's development
set, on questions that it answers and on others.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class _Fit(NamedTuple):
    base: float
    coverage: float
    meaning: float
    """For each unit of log odds that the model gives."""
    rest: float
    """For each unit of the score without meaning."""


_WORDS = _Fit(-7.99, 3.56, 0.0, 0.462)
_BOTH = _Fit(-7.29, 2.05, 0.281, 0.328)
_USUAL = 600
"""Memories in a place when this was measured. Among fewer, each is more likely to be the one."""
_PRIOR = 0.5


def relevance(coverage: float, meaning: float | None, rest: float, memories: int) -> float:
    """`meaning` is in log odds, None for a memory without a vector; `rest` is the score without what meaning gave."""
    fit = _WORDS if meaning is None else _BOTH
    fewer = _PRIOR * math.log(_USUAL / min(max(memories, 1), _USUAL))
    odds = fit.base + fit.coverage * coverage + fit.meaning * (meaning or 0.0) + fit.rest * rest + fewer
    return 1.0 / (1.0 + math.exp(-odds))
