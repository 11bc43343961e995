"""The verb: from what a caller asks of a view to hits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any, Literal

import msgspec

from recollect.policies.ranking import Ranking
from recollect.recall.absence import absence
from recollect.recall.hits import Hits
from recollect.recall.question import LOCAL, Question, Rerank
from recollect.recall.run import RecallRun
from recollect.text.times import point
from recollect.values import validation
from recollect.values.filters import Filter
from recollect.values.record import moved
from recollect.view import View


def recall(
    view: View,
    query: str,
    conditions: Mapping[str, Any],
    *,
    limit: int | None = None,
    touch: bool = True,
    as_of: datetime | str | None = None,
    why_not: str | None = None,
    rerank: Rerank | Literal["local", "none"] | None = None,
    zone: tzinfo | None = None,
    ranking: Ranking | None = None,
    min_relevance: float | None = None,
    topic: bool = False,
) -> Hits:
    """`topic` is for all that bears on the query."""
    limit = view.preset.recall.limit if limit is None else validation.count(limit, "limit", high=1000)
    zone = None if zone is None else validation.zone(zone)
    then = None if as_of is None else point(as_of, "as_of", view.now(), zone)
    where = view.narrowed("live" if then is None else None, conditions, zone)
    if then is not None:
        where = filter_as_of(where, then)
    chosen = view.preset.recall.rerank if rerank is None else _reranker(rerank)
    threshold = None if min_relevance is None else validation.importance(min_relevance, "min_relevance")
    question = Question(
        validation.query(query),
        [where],
        limit,
        then,
        zone,
        None if chosen == "none" else chosen,
        ranking=ranking,
        min_relevance=threshold,
        topic=topic,
    )
    hits = RecallRun(view, question).hits()
    if why_not is not None:
        hits.absence = absence(view, question, validation.memory_id(why_not, "why_not"), hits)
    if touch and then is None:
        view.touch([hit.memory for hit in hits])
    return hits


def _reranker(rerank: Any) -> Any:
    """What a caller names. A model that is missing is refused here; what fails later is only left out."""
    if callable(rerank):
        return rerank
    if validation.choice(rerank, "rerank", Literal["local", "none"]) == LOCAL:
        from recollect.models.reranker import local_reranker

        local_reranker()
    return rerank


def filter_as_of(where: Filter, then: datetime) -> Filter:
    """The filter as it would have been at that time. Which memories were live then is told from each of them."""
    end = moved(then, timedelta(microseconds=1))
    return msgspec.structs.replace(where, now=then, until=end if where.until is None else min(where.until, end))
