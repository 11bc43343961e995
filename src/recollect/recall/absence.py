"""Why a memory was not recalled."""

from __future__ import annotations

import msgspec

from recollect.recall.distinct import saying
from recollect.recall.hits import Absence, Hits
from recollect.recall.question import Question
from recollect.recall.run import RecallRun
from recollect.recall.selection import best_alone, left_out
from recollect.values.filters import Filter
from recollect.values.record import Record
from recollect.view import View

_ALL = 1_000_000


def absence(view: View, question: Question, ident: str, hits: Hits) -> Absence:
    """Why a memory is not among the hits."""
    where = question.wheres[0]
    records = view.get([ident])
    if not records:
        return Absence(ident, "there is no such memory that this view can see")
    for place, hit in enumerate(hits, 1):
        if hit.memory.id == ident:
            return Absence(ident, f"it was recalled, as number {place}", place, hit.score)
    record = records[0]
    state = record.state(where.now)
    if where.state is not None and state != where.state:
        return Absence(ident, f"it is {state}")
    if failing := _unmet(where, record):
        return Absence(ident, f"it does not meet the condition: {failing}")
    return _outranked(view, question, record, hits)


def _outranked(view: View, question: Question, record: Record, hits: Hits) -> Absence:
    # With the settings of the recall that is explained: only the number of hits is another.
    everything = msgspec.structs.replace(question, limit=_ALL, wanted=question.limit, min_relevance=0.0)
    ranked = RecallRun(view, everything).hits()
    for place, hit in enumerate(ranked, 1):
        if hit.memory.id == record.id:
            reason = f"it comes {place} of {len(ranked)} with {hit.score:.3f}"
            if not hits:
                reason = f"{reason}; {hits.report}"
            elif place > question.limit:
                reason = f"{reason}; the last that was recalled has {hits[-1].score:.3f}"
            else:
                reason = (
                    f"{reason}, but {left_out(hit, best_alone(ranked), question.min_relevance, view.preset.recall)}"
                )
            return Absence(record.id, reason, place, hit.score)
    said_before = saying(record)
    for place, hit in enumerate(ranked, 1):
        if saying(hit.memory) == said_before:
            return Absence(record.id, f"it says the same as {hit.memory.id}", place, hit.score)
    unlimited = RecallRun(view, msgspec.structs.replace(everything, unlimited=True)).hits()
    if any(hit.memory.id == record.id for hit in unlimited):
        most = view.preset.recall.fetch(question.limit)
        return Absence(record.id, f"it is not among the {most} best by words or by meaning, which are ranked")
    if view.embedding is None:
        return Absence(record.id, "it has no word of the question, and there is no model to compare the meaning")
    return Absence(record.id, "it is too far from the question in words and meaning, or has no vector yet")


def _unmet(where: Filter, record: Record) -> str:
    """The first condition that a memory does not meet."""
    bare = Filter(seen_from=where.seen_from, now=where.now, state=None)
    for name in Filter.__struct_fields__:
        if name not in ("seen_from", "now", "state"):
            single = msgspec.structs.replace(bare, **{name: getattr(where, name)})
            if not single.matches(record):
                return name.replace("_", " ")
    return ""
