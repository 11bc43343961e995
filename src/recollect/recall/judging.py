"""How relevant each hit is, and how likely an answer is among them, from what the pool knows of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from recollect.recall.hits import Hit
from recollect.recall.question import LOOKED_AT
from recollect.recall.relevance import Sign, answered, asking, relevance
from recollect.recall.selection import Likelihood, speaks_for_itself
from recollect.text.identifiers import identifiers, of_another
from recollect.text.mentions import has_another_name, is_named, names_in
from recollect.text.query import TextQuery

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.recall.pool import Pool
    from recollect.recall.search import Search

    Floats = NDArray[np.float32]


_ANOTHER = 0.1
"""What is left of the relevance of a memory that names another thing of the kind: INV-2024-0117, and not 0118."""
_MOST_IDENTIFIERS = 8
"""So many of a question are looked up."""
FEW = 3
"""Among so few memories how far one is from the average says nothing."""


class Asked(NamedTuple):
    """The question, and what it was compared by, by position."""

    text: str
    query: TextQuery
    speakers: set[str]
    """Whom it names."""
    odds: Mapping[int, float] | None
    """That a hit belongs to it by its meaning; NaN for a memory without a vector, None without a model."""
    deviation: Mapping[int, float]
    """How far a hit's meaning stands out, in standard deviations."""
    time: Floats | None
    """How close a memory is to the time that it names."""


def judged(
    hits: Sequence[Hit],
    positions: Mapping[str, int],
    pool: Pool,
    asked: Asked,
    search: Search,
    newer: Mapping[str, str],
) -> tuple[list[Hit], Likelihood]:
    """The hits, best first, each with its relevance. `newer` says before which each was put that replaces it."""
    signs = _signs(hits, positions, pool, asked)
    size, unknown = pool.size(), pool.unknown(asked.query, search.guessed)
    named = names_in(asked.text)
    names = [name for word, name in named.items() if word in unknown.words]
    asked_for = set(sorted(identifiers(asked.text))[:_MOST_IDENTIFIERS])
    strange = {identifier for identifier in asked_for if not search.is_written(identifier)}
    others = (
        {hit.memory.id for hit in hits if of_another(hit.memory.text[:LOOKED_AT], asked_for)}
        if asked_for
        else set[str]()
    )
    for word, name in named.items():
        alike = {hit.memory.id for hit in hits if has_another_name(hit.memory.text[:LOOKED_AT], name)}
        if alike and word not in unknown.words and word not in search.guessed:
            others |= alike
            if not any(is_named(hit.memory.text[:LOOKED_AT], name) for hit in hits):
                names.append(name)
    values = {
        hit.memory.id: relevance(sign, place, size) * (_ANOTHER if hit.memory.id in others else 1.0)
        for place, (hit, sign) in enumerate(zip(hits, signs, strict=True), 1)
    }
    for ident in [hit.memory.id for hit in reversed(hits) if hit.memory.id in newer]:
        values[ident] = max(values[ident], values.get(newer[ident], 0.0))
    again = [Hit(hit.memory, hit.scored, values[hit.memory.id]) for hit in hits]
    right = [sign for hit, sign in zip(hits, signs, strict=True) if hit.memory.id not in others]
    coverage = {hit.memory.id: sign.coverage for hit, sign in zip(hits, signs, strict=True)}
    likely = answered(right, size, unknown.share, nobody=bool(names or (strange and others)))
    return again, Likelihood(likely, [*names, *sorted(strange)], coverage)


def _signs(hits: Sequence[Hit], positions: Mapping[str, int], pool: Pool, asked: Asked) -> list[Sign]:
    coverage, others = pool.coverage(asked.query, list(positions.values())), pool.spoken_by_others(asked.speakers)
    top = max((hit.score for hit in hits), default=0.0)
    few = pool.size() <= FEW
    signs: list[Sign] = []
    for hit in hits:
        at, odds, time = positions[hit.memory.id], asked.odds, asked.time
        meaning = None if odds is None or odds[at] != odds[at] else float(odds[at])
        signs.append(
            Sign(
                coverage=coverage[at],
                meaning=meaning,
                deviation=0.0 if meaning is None or few else float(asked.deviation[at]),
                behind=top - hit.score,
                other_speaker=others is not None and bool(others[at]),
                time=0.0 if time is None else float(time[at]),
                asking=asking(hit.memory.text),
                alone=speaks_for_itself(hit.memory),
            )
        )
    return signs
