"""What of the hits is told: whether an answer is among them, and which are worth reading beside the best."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from recollect.presets import RecallRules
from recollect.recall.hits import Hit
from recollect.values.record import Record, storing_order

_TURN = "conversation"
"""The kind of a turn, whether it is in a conversation or only was said by a wrapped client."""


class Likelihood(NamedTuple):
    """That an answer is among the hits."""

    value: float
    unknown_names: Sequence[str] = ()
    """Names in the question that no memory has: what comes closest is about somebody else."""


def speaks_for_itself(record: Record) -> bool:
    """Whether it is no turn of a conversation."""
    return record.address.conversation is None and record.kind != _TURN


def selected(
    hits: list[Hit], likelihood: Likelihood | None, asked: float | None, rules: RecallRules, *, topic: bool
) -> tuple[list[Hit], str]:
    """The hits to be told, and why there are none.

    `asked` is the relevance that the caller wants of each hit; without it, the preset's rules say. `topic` is for all
    that bears on the question.
    """
    if not hits or any(hit.relevance is None for hit in hits):
        return hits, ""
    best = max(hits, key=_relevance)
    nothing = f"nothing relevant: the best ({best.memory.id}) has a relevance of {_relevance(best):.3f}"
    if asked is not None:
        if _relevance(best) < asked:
            return [], f"{nothing}, below {asked:g}"
        return [hit for hit in hits if _relevance(hit) >= asked], ""
    if likelihood is not None and likelihood.value < rules.min_relevance:
        names = ", ".join(likelihood.unknown_names)
        why = f"{likelihood.value:.3f}, below {rules.min_relevance:g}"
        return [], f"{nothing}, and that any is an answer a likelihood of {why}" + (
            f"; no memory has the name {names}" if names else ""
        )
    # The best of those that speak for themselves: how relevant a turn is was measured on other things.
    alone = [hit for hit in hits if speaks_for_itself(hit.memory)]
    if topic or not alone:
        return hits, ""
    best = max(alone, key=_relevance)
    return [h for h in hits if not speaks_for_itself(h.memory) or _relevance(h) >= _least_relevance(h, best, rules)], ""


def _least_relevance(hit: Hit, best: Hit, rules: RecallRules) -> float:
    """What is newer may correct the best."""
    share = rules.share_of_best if _time_stored(hit) <= _time_stored(best) else rules.share_of_best_if_newer
    return share * _relevance(best)


def _relevance(hit: Hit) -> float:
    return hit.relevance or 0.0


def _time_stored(hit: Hit) -> tuple[datetime, tuple[int, str]]:
    return hit.memory.created_at, storing_order(hit.memory.id)
