"""The order of hits: which positions are best, how scores are put together, and newer facts before older ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.policies.ranking import Calibrated, Part, Score
from recollect.recall.hits import Hit
from recollect.recall.relevance import asking
from recollect.text.times import QuestionTime, names_time
from recollect.values.record import TIERS, Record, storing_order

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.recall.pool import Pool

    Floats = NDArray[np.float32]

_USUAL_LENGTH = 5.0
"""The logarithm of a turn's characters at which its length says nothing."""
_STEP = 1e-4
"""By how much a newer fact is put above the older one, at most: what was above both stays there."""


def summed(names: Sequence[str], shares: Sequence[float], weights: Calibrated, more: Sequence[Part] = ()) -> Score:
    """The parts that had a say, each with its weight where it has one of its own."""
    factors = (weights.text, weights.meaning, 1.0, weights.speaker, weights.time, 1.0)
    parts = tuple(
        Part(name, share / weight, weight, share)
        for name, share, weight in zip(names, shares, factors, strict=True)
        if share and weight
    )
    parts = (*parts, *more)
    return Score(sum(part.share for part in parts), "sum", parts)


def of_itself(text: str, turn: bool, when: bool, weights: Calibrated) -> list[Part]:
    """What tells of a memory by itself whether it answers: what only asks does not, a turn that says more does."""
    parts: list[Part] = []
    if (share := asking(text)) and weights.asking:
        parts.append(Part("asks", -share, weights.asking, -share * weights.asking))
    if not turn:
        return parts
    if weights.length:
        longer = math.log(min(max(len(text), 1), weights.short)) - _USUAL_LENGTH
        parts.append(Part("length", longer, weights.length, longer * weights.length))
    if when and weights.when and names_time(text):
        parts.append(Part("names a time", 1.0, weights.when, weights.when))
    return parts


def part_name(part: str, what: QuestionTime | set[str] | None) -> str:
    """The name of a part, with what in the question it comes from."""
    if not what:
        return part
    return f"{part} ({what.words if isinstance(what, QuestionTime) else ', '.join(sorted(what))})"


def spread(hits: Sequence[Hit], weight: float) -> list[Hit]:
    """Each hit loses for every better one of its conversation: a list stands in several of them."""
    left, chosen = list(hits), list[Hit]()
    before: dict[str, int] = {}
    while left:
        at = max(range(len(left)), key=lambda at: left[at].score - weight * before.get(_talk(left[at]), 0))
        hit = left.pop(at)
        if number := before.get(_talk(hit), 0):
            part = Part("conversation again", -number, weight, -number * weight)
            hit = Hit(hit.memory, Score(hit.score + part.share, "sum", (*hit.scored.parts, part)), hit.relevance)
        if hit.memory.address.conversation is not None:
            before[_talk(hit)] = before.get(_talk(hit), 0) + 1
        chosen.append(hit)
    return chosen


def _talk(hit: Hit) -> str:
    return hit.memory.address.conversation or ""


def by_score(hit: Hit) -> tuple[float, int, tuple[int, str]]:
    return -hit.score, tier_order(hit), storing_order(hit.memory.id)


def tier_order(hit: Hit) -> int:
    """Lower for a narrower tier: of equal hits that of the conversation comes first, that of the account last."""
    return -TIERS.index(hit.memory.tier)


def only_above(values: Floats, threshold: float, pool: Pool) -> Floats:
    import numpy as np

    return np.where(pool.shown & (values > threshold), values, -np.inf).astype(np.float32)


def ranks(values: Floats, count: int) -> dict[int, int]:
    """The places of the highest values by position, 1 for the best. Equal values share a place."""
    ranks: dict[int, int] = {}
    last, rank = None, 0
    for number, at in enumerate(best_positions(values, count), 1):
        value = float(values[at])
        if value != last:
            last, rank = value, number
        ranks[at] = rank
    return ranks


def best_positions(values: Floats, count: int) -> list[int]:
    """The positions of the highest values, best first, without those of minus infinity."""
    import numpy as np

    from recollect.stores.resident.highest import edge

    if 0 < count < len(values):
        some = np.flatnonzero(values >= edge(values, count))
        if len(some) > count:  # all that are as good as the last one, so that which of them comes is no accident
            some = some[values[some] >= np.partition(values[some], -count)[-count]]
    else:
        some = np.arange(len(values))
    some = some[np.isfinite(values[some])]
    return some[np.argsort(-values[some], kind="stable")].tolist()[:count]


def freshened(
    query: str, hits: list[Hit], positions: dict[str, int], model: str | None
) -> tuple[list[Hit], dict[str, str]]:
    """Newer facts before older ones that they replace, and before which each was put. The score stays the order."""
    from recollect.recall.freshness import freshen

    ranked = list(range(len(hits)))
    order, moved = freshen(
        query,
        ranked,
        [hit.score for hit in hits],
        [hit.memory.text for hit in hits],
        [(hit.memory.created_at, positions[hit.memory.id]) for hit in hits],
        [_direction(hit.memory, model) for hit in hits],
    )
    if not moved:
        return hits, {}
    again: list[Hit] = []
    for place, at in reversed(list(enumerate(order))):
        hit = hits[at]
        floor = again[-1].score if again else hit.score
        if at in moved and hit.score <= floor:
            above = min((hits[other].score for other in order[:place] if other not in moved), default=floor + _STEP)
            gain = max(min(floor + _STEP, above), floor) - hit.score
            fresh = Part(f"newer than {hits[moved[at]].memory.id[:8]}", gain, 1.0, gain)
            hit = Hit(hit.memory, Score(hit.score + gain, "sum", (*hit.scored.parts, fresh)), hit.relevance)
        again.append(hit)
    return again[::-1], {hits[new].memory.id: hits[old].memory.id for new, old in moved.items()}


def _direction(record: Record, model: str | None) -> Floats | None:
    """Its vector of this model, normalised."""
    import numpy as np

    if record.embedding is None or model is None or record.embedding_model != model:
        return None
    vector: Floats = np.frombuffer(record.embedding, "<f4")
    return vector / np.float32(np.sqrt(vector @ vector) or 1.0)
