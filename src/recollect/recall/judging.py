"""How relevant each hit is, and how likely an answer is among them, from what the pool knows of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from recollect.recall.hits import Hit
from recollect.recall.relevance import Sign, answered, asking, relevance
from recollect.recall.selection import Likelihood, speaks_for_itself
from recollect.text.mentions import named_in_vain
from recollect.text.query import TextQuery

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.recall.pool import Pool

    Floats = NDArray[np.float32]


class Asked(NamedTuple):
    """The question, and what it was compared by. The arrays are by position."""

    text: str
    query: TextQuery
    speakers: set[str]
    """Whom it names."""
    odds: Floats | None
    """That a memory belongs to it by its meaning; NaN for a memory without a vector, None without a model."""
    deviation: Floats
    """How far its meaning stands out, in standard deviations."""
    time: Floats | None
    """How close a memory is to the time that it names."""


def judged(
    hits: Sequence[Hit],
    positions: Mapping[str, int],
    pool: Pool,
    asked: Asked,
    is_beginning: Callable[[str], bool],
) -> tuple[list[Hit], Likelihood]:
    """The hits, best first, each with its relevance. `is_beginning` says whether a memory has a word that begins so."""
    signs = _signs(hits, positions, pool, asked)
    size, unknown = pool.size(), pool.unknown(asked.query)
    # "Sam" may be Samuel.
    names = [name for name in named_in_vain(asked.text, unknown.words) if not is_beginning(name)]
    again = [
        Hit(hit.memory, hit.scored, relevance(sign, place, size))
        for place, (hit, sign) in enumerate(zip(hits, signs, strict=True), 1)
    ]
    return again, Likelihood(answered(signs, size, unknown.share, nobody=bool(names)), names)


def _signs(hits: Sequence[Hit], positions: Mapping[str, int], pool: Pool, asked: Asked) -> list[Sign]:
    coverage, others = pool.coverage(asked.query), pool.spoken_by_others(asked.speakers)
    top = max((hit.score for hit in hits), default=0.0)
    signs: list[Sign] = []
    for hit in hits:
        at, odds, time = positions[hit.memory.id], asked.odds, asked.time
        meaning = None if odds is None or odds[at] != odds[at] else float(odds[at])
        signs.append(
            Sign(
                coverage=float(coverage[at]),
                meaning=meaning,
                deviation=0.0 if meaning is None else float(asked.deviation[at]),
                behind=top - hit.score,
                other_speaker=others is not None and bool(others[at]),
                time=0.0 if time is None else float(time[at]),
                asking=asking(hit.memory.text),
                alone=speaks_for_itself(hit.memory),
            )
        )
    return signs
