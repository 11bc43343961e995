"""What of the hits is told: whether an answer is among them, and which are worth reading beside the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    unknown: Sequence[str] = ()
    """Names and numbers in the question that no memory has: what comes closest is about something else."""
    coverage: Mapping[str, float] = {}
    """The share of what the question asks for that each hit has."""


def speaks_for_itself(record: Record) -> bool:
    """Whether it is no turn of a conversation."""
    return record.address.conversation is None and record.kind != _TURN


def selected(
    hits: Sequence[Hit],
    likelihood: Likelihood | None,
    asked: float | None,
    rules: RecallRules,
    *,
    all_that_bear: bool = False,
    topic: float | None = None,
) -> tuple[list[Hit], str]:
    """The hits to be told, and why there are none.

    `asked` is the relevance that the caller wants of each hit; without it, the preset's rules say. `all_that_bear` is
    for whatever bears on the question. Where a question only names something, `topic` is the share of its words from
    which a hit is told however it compares.
    """
    if not hits or any(hit.relevance is None for hit in hits):
        return list(hits), ""
    best = max(hits, key=_relevance)
    nothing = f"nothing relevant: the best ({best.memory.id}) has a relevance of {_relevance(best):.3f}"
    if asked is not None:
        if _relevance(best) < asked:
            return [], f"{nothing}, below {asked:g}"
        return [hit for hit in hits if _relevance(hit) >= asked], ""
    if likelihood is not None and likelihood.value < rules.min_relevance:
        unknown = ", ".join(likelihood.unknown)
        why = f"{likelihood.value:.3f}, below {rules.min_relevance:g}"
        return [], f"{nothing}, and that any is an answer a likelihood of {why}" + (
            f"; no memory has {unknown}" if unknown else ""
        )
    if all_that_bear:
        return list(hits), ""
    about = set[str]()
    if likelihood is not None and topic is not None:
        about = {ident for ident, share in likelihood.coverage.items() if share >= topic}
    best = best_alone(hits)
    return [hit for hit in hits if hit.memory.id in about or not left_out(hit, best, None, rules)], ""


def best_alone(hits: Sequence[Hit]) -> Hit | None:
    """The best of those that speak for themselves: how relevant a turn is was measured on other things."""
    return max((hit for hit in hits if speaks_for_itself(hit.memory)), key=_relevance, default=None)


def left_out(hit: Hit, best: Hit | None, asked: float | None, rules: RecallRules) -> str:
    """Why a hit is not told beside the best; empty if it is. A turn always is: it is read in its talk."""
    if asked is not None:
        return f"its relevance of {_relevance(hit):.3f} is below {asked:g}" if _relevance(hit) < asked else ""
    if best is None or not speaks_for_itself(hit.memory):
        return ""
    # What is newer may correct the best.
    share = rules.share_of_best if _time_stored(hit) <= _time_stored(best) else rules.share_of_best_if_newer
    if _relevance(hit) >= share * _relevance(best):
        return ""
    return (
        f"its relevance of {_relevance(hit):.3f} is less than {share:g} of the {_relevance(best):.3f} "
        f"that {best.memory.id} has"
    )


def _relevance(hit: Hit) -> float:
    return hit.relevance or 0.0


def _time_stored(hit: Hit) -> tuple[datetime, tuple[int, str]]:
    return hit.memory.created_at, storing_order(hit.memory.id)
