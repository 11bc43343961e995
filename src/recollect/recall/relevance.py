"""Whether anything that was found is an answer, and how likely each hit is to be one: numbers from 0 to 1.

A score says what comes first. It has no zero: the best of what does not answer has a score too. So both are told from
what means the same in every memory: the share of the question's words that a hit has, how similar its meaning is in the
terms of the model, whether somebody else said it. What only tells which hit is best *here* (rank, distance to the best)
says nothing about whether any is right: it counts for the hit and not for the answer. Fitted by logistic regression on
LoCoMo's development conversations and windows of them, each left out in turn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple


class Sign(NamedTuple):
    """What tells of one hit whether it is an answer."""

    coverage: float
    """The share of what the question asks for that it has; rare words count more."""
    meaning: float | None
    """In log odds of the model; None for a memory without a vector."""
    deviation: float
    """Standard deviations of the cosine above the average."""
    behind: float
    """How much higher the best score is."""
    other_speaker: bool
    """Whether the question names a speaker, and somebody else said it."""
    time: float
    """How close it is to the time that the question names, from 0 to 1."""
    asking: float
    """The share of its text that asks something itself."""
    alone: bool
    """Whether it belongs to no conversation."""


class _Weights(NamedTuple):
    base: float
    coverage: float
    meaning: float
    deviation: float
    behind: float
    rank: float
    """For the logarithm of the place among the hits."""
    memories: float
    """For the logarithm of the number of memories: among fewer, each is more likely to be the one."""
    other_speaker: float
    time: float
    asking: float


_TURN = _Weights(-1.89, 2.14, 0.255, 0.448, -0.05, -0.73, -0.368, -1.90, 1.70, -2.14)
_TURN_BY_WORDS = _Weights(-1.39, 3.08, 0.0, 0.0, -0.115, -1.04, -0.191, -0.67, 1.21, -1.98)
_FACT = _Weights(-2.05, 1.94, 0.222, 0.533, -0.323, 0.0, -0.421, 0.0, 0.0, -2.14)
_FACT_BY_WORDS = _Weights(-1.29, 3.07, 0.0, 0.0, -0.606, 0.0, -0.308, 0.0, 0.0, -1.98)
_FEWEST = 12
"""The smallest memory that this was measured in: nothing is known of what still fewer mean."""
_FIRST = 10
"""So many of the best hits are looked at for an answer."""
_NOBODY = 3.0
"""What a name that no memory has takes off."""
_SENTENCE = re.compile(r"[^.!?…\n]+[.!?…]*")


def relevance(sign: Sign, place: int, memories: int) -> float:
    """How likely a hit is an answer; `place` is 1 for the best, and `memories` how many were looked at."""
    by_words = sign.meaning is None
    w = (_FACT_BY_WORDS if by_words else _FACT) if sign.alone else (_TURN_BY_WORDS if by_words else _TURN)
    return _probability(
        w.base
        + w.coverage * sign.coverage
        + w.meaning * (sign.meaning or 0.0)
        + w.deviation * sign.deviation
        + w.behind * sign.behind
        + w.rank * math.log(max(place, 1))
        + w.memories * _size(memories)
        + w.other_speaker * sign.other_speaker
        + w.time * sign.time
        + w.asking * sign.asking
    )


def answered(signs: Sequence[Sign], memories: int, unknown: float, *, nobody: bool = False) -> float:
    """How likely an answer is among the hits; `unknown` is the share of the question's words that no memory has.

    `nobody` says that it names somebody whom no memory has.
    """
    first = signs[:_FIRST]
    if not first:
        return 0.0
    best = max(first, key=_closeness)
    size, time = _size(memories), max(sign.time for sign in first)
    base = -_NOBODY if nobody else 0.0
    odds = [sign.meaning for sign in first if sign.meaning is not None]
    if not odds:
        return _probability(base + 1.17 + 6.21 * best.coverage - 0.519 * size - 2.29 * unknown + 3.66 * time)
    farthest = max(sign.deviation for sign in first) - math.sqrt(2.0 * math.log(max(memories, 1)))
    return _probability(
        base
        + 1.12
        + 3.96 * best.coverage
        + 0.222 * (best.meaning if best.meaning is not None else max(odds))
        + 0.212 * max(odds)
        - 0.517 * size
        - 1.79 * unknown
        + 4.06 * time
        + 0.535 * farthest
    )


def _size(memories: int) -> float:
    return math.log(max(memories, _FEWEST))


def asking(text: str) -> float:
    """The share of a text's letters that stand in sentences which end in a question mark."""
    if "?" not in text:
        return 0.0
    sentences = _SENTENCE.findall(text)
    return sum(len(sentence) for sentence in sentences if sentence.endswith("?")) / max(sum(map(len, sentences)), 1)


def _closeness(sign: Sign) -> float:
    return 2.0 * sign.coverage + 0.28 * (sign.meaning or 0.0) - 2.0 * sign.other_speaker


def _probability(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(max(odds, -50.0), 50.0)))
