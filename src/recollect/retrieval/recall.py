"""From a question to hits: candidates from the store, scores from the preset's policies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from recollect.filters import Filter
from recollect.policies.decay import Decay
from recollect.policies.ranking import Evidence, dedupe
from recollect.presets import Preset
from recollect.retrieval.hits import Hit, Hits
from recollect.retrieval.query import read
from recollect.stores.base import Match, Store

_LOOSE_WORTH = 0.5
"""What a match inside a longer word is worth beside a match of the whole word."""


def recall(
    store: Store,
    preset: Preset,
    decay: Decay,
    query: str,
    wheres: Sequence[Filter],
    limit: int,
    *,
    doubles: bool = False,
) -> Hits:
    """The best hits in all of the places asked, best first, each text once unless `doubles`. Nothing is touched."""
    candidates: list[Match] = []
    for where in wheres:
        candidates += _candidates(store, query, where, limit, preset.recall.fetch(limit))
    if len(wheres) > 1:
        candidates.sort(key=lambda match: -match.score)
    hits = _score(candidates, query, preset, decay, wheres[0].now)
    hits.sort(key=lambda hit: (-hit.score, hit.memory.id))
    distinct = hits if doubles else dedupe(hits, lambda hit: hit.memory.text, lambda hit: hit.score)
    return Hits(distinct[:limit])


def _candidates(store: Store, query: str, where: Filter, limit: int, wanted: int) -> list[Match]:
    wish = read(query)
    if not wish:
        return []
    found = store.search_text(wish, where, wanted)
    if len(found) < limit and wish.words:
        seen = {match.record.id for match in found}
        weakest = found[-1].score if found else 1.0
        loose = store.search_text(msgspec.structs.replace(wish, loose=True), where, wanted)
        fresh = [match for match in loose if match.record.id not in seen]
        best = max((match.score for match in fresh), default=0.0) or 1.0
        found += [Match(record, _LOOSE_WORTH * weakest * score / best) for record, score in fresh]
    return found


def _score(candidates: list[Match], query: str, preset: Preset, decay: Decay, now: datetime) -> list[Hit]:
    best = (candidates[0].score if candidates else 0.0) or 1.0
    score = preset.ranking.score
    return [
        Hit(match.record, score(Evidence(match.record, query, match.score / best, rank), decay, now))
        for rank, match in enumerate(candidates, 1)
    ]
