"""The verb recall: from what a caller asks of a view to hits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any

from msgspec.structs import replace

from recollect import validation
from recollect.recall.hits import Hits
from recollect.recall.recall import Question, Recall, Rerank, past
from recollect.record import parse_time
from recollect.view import APART, View


def recall(
    view: View,
    query: str,
    conditions: Mapping[str, Any],
    *,
    limit: int | None = None,
    touch: bool = True,
    as_of: datetime | str | None = None,
    why_not: str | None = None,
    rerank: Rerank | None = None,
    zone: tzinfo | None = None,
) -> Hits:
    limit = view.preset.recall.limit if limit is None else validation.count(limit, "limit", high=1000)
    then = None if as_of is None else parse_time(as_of, "as_of")
    where = view.narrowed("live", conditions) if then is None else past(view.narrowed(None, conditions), then)
    where = replace(where, without_kinds=APART)
    question = Question(validation.query(query), [where], limit, then, zone, rerank)
    asked = Recall(view.store, view.preset, view.decay, question, view.embedding)
    hits = asked.hits()
    if why_not is not None:
        hits.absence = asked.absence(validation.memory_id(why_not, "why_not"), hits)
    if touch and hits and then is None:
        view.store.touch([hit.memory for hit in hits], where.now)
    return hits
