"""The score of the default preset, of every memory at once.

    own     = text + meaning
    score   = own + what neighbours in the conversation lend + speaker + time + company

Text counts in shares of the best match, meaning in standard deviations of the cosine: so the weights hold for any
number of memories and any model. Company is a share of the best score in the same conversation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.policies.ranking import Calibrated as Weights

Floats = NDArray[np.float32]
Integers = NDArray[np.integer[Any]]
Flags = NDArray[np.bool_]

_STEEP = 4
"""How fast lending ends with length: at twice `short` a turn lends a sixteenth."""
_NO_SPREAD = 1e-6
"""Cosines this close to each other differ by rounding only."""


MEASURED = Weights()


class Neighbours(NamedTuple):
    """Columns of the memories, by position."""

    length: Floats
    """Characters."""
    conversation: Integers
    """A number of the conversation; a memory outside any has a number of its own."""
    before: Integers
    """The position of the memory before it in the same conversation; -1 for none."""
    after: Integers


class CosineMoments(NamedTuple):
    """Of the cosine, over all that can be seen and compared."""

    mean: float
    spread: float


class Lending(NamedTuple):
    """From which position, and what share; position -1 with share 0 for nobody."""

    position: Integers
    share: Floats


class Scores(NamedTuple):
    """The parts as they count, weights included. They add up to the total."""

    text: Floats
    meaning: Floats
    neighbours: Floats
    speaker: Floats
    time: Floats
    company: Floats
    total: Floats
    """Minus infinity where a memory is no candidate: hidden, or without both a match and a vector."""
    candidate: Flags


def lendings(columns: Neighbours, weights: Weights, visible: Flags | None = None) -> tuple[Lending, ...]:
    """Who may lend to whom. Depends on no question: keep it while the columns and what is visible stay the same."""
    loans: list[Lending] = []
    for step in (columns.before, columns.after):
        step = skipping(step, visible)
        length = np.append(columns.length, np.float32(0.0))  # position -1 is nobody, of no length
        second = np.append(step, np.asarray([-1], step.dtype))[step]
        longest = columns.length
        for at, share in ((step, weights.neighbour), (second, weights.second_neighbour)):
            longest = np.maximum(longest, length[at])
            gate = np.minimum(np.float32(1.0), np.float32(weights.short) / np.maximum(longest, 1.0)) ** _STEEP
            loans.append(Lending(at, np.where(at >= 0, np.float32(share) * gate, np.float32(0.0))))
    return tuple(loans)


def skipping(step: Integers, visible: Flags | None) -> Integers:
    """The next visible position. Hidden memories are skipped as if they did not exist."""
    if visible is None or visible.all():
        return step
    shown = np.append(visible, True)
    ahead = np.where(shown, np.arange(len(shown)), np.append(step, len(step)))
    ahead[ahead < 0] = len(step)
    while not shown[ahead].all():  # each round looks twice as far
        ahead = ahead[ahead]
    ahead[ahead == len(step)] = -1
    return np.where(visible, ahead[step], -1).astype(step.dtype)


def score(
    text: Floats,
    cosine: Floats | None,
    columns: Neighbours,
    *,
    speaker: Floats | Flags | None = None,
    time: Floats | None = None,
    visible: Flags | None = None,
    weights: Weights = MEASURED,
    lending: tuple[Lending, ...] | None = None,
    moments: CosineMoments | None = None,
) -> Scores:
    """Every part for every memory; all arrays by position.

    `cosine` is None without a model, and NaN where a memory has no vector yet. `speaker` is 1 for what was said by
    whom the question asks about, `time` how close a memory is to the time it asks about. `lending` saves time where
    it has been kept; it must have been made with the same columns, weights and `visible`. `moments` are given where
    these memories are a part of all.
    """
    shown = np.ones(len(text), np.bool_) if visible is None else visible
    by_text = _share_of_best(text if shown.all() else np.where(shown, text, np.float32(0.0)), weights.text)
    by_meaning, has_vector = _deviations(cosine, shown, weights.meaning, moments)
    if not has_vector.all():
        _presume(by_meaning, by_text, shown & ~has_vector, has_vector)
    candidate = has_vector if has_vector.all() else shown & ((text > 0.0) | has_vector)
    own = np.zeros(len(text) + 1, np.float32)  # position -1 is nobody
    np.add(by_text, by_meaning, out=own[:-1])
    borrowed = _borrowed(own, lendings(columns, weights, visible) if lending is None else lending)
    if not candidate.all():
        borrowed[~candidate] = 0.0
    by_speaker = _hit(speaker, candidate, weights.speaker)
    by_time = _hit(time, candidate, weights.time)
    alone = own[:-1]
    alone += borrowed
    for part in [part for part, hit in ((by_speaker, speaker), (by_time, time)) if hit is not None]:
        alone += part
    company = _company(alone, columns.conversation, candidate, weights.company)
    alone += company
    total = alone if candidate.all() else np.where(candidate, alone, np.float32(-np.inf))
    return Scores(by_text, by_meaning, borrowed, by_speaker, by_time, company, total, candidate)


def _borrowed(own: Floats, lending: tuple[Lending, ...]) -> Floats:
    """In one temporary: of a million memories each one costs as much as the sum."""
    borrowed, lent = np.zeros(len(own) - 1, np.float32), np.empty(len(own) - 1, np.float32)
    for position, share in lending:
        np.take(own, position, out=lent, mode="wrap")
        lent *= share
        borrowed += lent
    return borrowed


def _share_of_best(text: Floats, weight: float) -> Floats:
    best = max(float(text.max(initial=0.0)), 1e-9)
    return text.astype(np.float32, copy=False) * np.float32(weight / best)


def _deviations(
    cosine: Floats | None, shown: Flags, weight: float, moments: CosineMoments | None
) -> tuple[Floats, Flags]:
    """How far a memory stands out among those that can be seen and compared, and which those are."""
    if cosine is None:
        return np.zeros(len(shown), np.float32), np.zeros(len(shown), np.bool_)
    compared = ~np.isnan(cosine)
    compared &= shown
    if not compared.any():
        return np.zeros(len(shown), np.float32), compared
    if moments is None:
        seen = cosine[compared].astype(np.float64)
        moments = CosineMoments(float(seen.mean()), float(seen.std()))
    far = cosine - np.float32(moments.mean)
    far *= np.float32(weight / (moments.spread if moments.spread > _NO_SPREAD else 1.0))
    return far if compared.all() else np.where(compared, far, np.float32(0.0)), compared


def _presume(meaning: Floats, text: Floats, lacking: Flags, compared: Flags) -> None:
    """Where a memory has no vector yet, what those with as good a match of words have in meaning, in place.

    Otherwise it would lose to worse ones for no other reason than that they have one.
    """
    matched = compared & (text > 0.0)
    wanted = lacking & (text > 0.0)
    if not wanted.any() or not matched.any():
        return
    matches = text[matched].astype(np.float64)
    values, spread = meaning[matched].astype(np.float64), matches.var()
    slope = max(float(((matches - matches.mean()) * (values - values.mean())).mean()) / spread, 0.0) if spread else 0.0
    meaning[wanted] = values.mean() + slope * (text[wanted] - matches.mean())


def _hit(hit: Floats | Flags | None, candidate: Flags, weight: float) -> Floats:
    if hit is None:
        return np.zeros(len(candidate), np.float32)
    return np.where(candidate, weight * hit, 0.0).astype(np.float32)


def _company(alone: Floats, conversation: Integers, candidate: Flags, weight: float) -> Floats:
    """A good answer seldom stands alone: the best of a conversation recommends the others."""
    best = np.full(int(conversation.max(initial=-1)) + 1, -np.inf, np.float32)
    if candidate.all():
        np.maximum.at(best, conversation, alone)
        company = best[conversation]
        company *= np.float32(weight)
        return company
    np.maximum.at(best, conversation[candidate], alone[candidate])
    company = np.zeros(len(alone), np.float32)
    company[candidate] = np.float32(weight) * best[conversation[candidate]]
    return company
