"""Questions about a past time: what was so then is an answer, although it was superseded since."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from recollect.policies.ranking import Part, Score
from recollect.recall.hits import Hit
from recollect.recall.question import Question
from recollect.stores.port import Place
from recollect.text.times import QuestionTime, asked_time
from recollect.values.record import Record
from recollect.view import View


def about_past(view: View, question: Question) -> Question:
    """The question with the time that it is about, where that is over and something was superseded since."""
    if question.exact or question.as_of is not None or any(where.state != "live" for where in question.wheres):
        return question
    asked = asked_time(question.text, question.now, question.zone)
    if asked is None or asked.until >= question.now:
        return question
    if not any(view.store.count(replace(where, state="superseded")) for where in question.wheres):
        return question
    return replace(question, past=asked, wheres=[replace(where, state=None) for where in question.wheres])


def could_answer(record: Record, past: QuestionTime, now: datetime) -> bool:
    """Whether it is live, or was valid at some moment of that time and is superseded. When it ended must be known."""
    if record.superseded_by is None:
        return record.state(now) == "live"
    valid = record.valid_until is not None and record.valid_until > past.since and _begins(record) < past.until
    return valid and replace(record, superseded_by=None).state(now) == "live"


def _begins(record: Record) -> datetime:
    return record.valid_from or record.created_at


def past_first(
    view: View, hits: Sequence[Hit], superseded: Sequence[Hit], past: QuestionTime
) -> tuple[list[Hit], dict[str, str]]:
    """All hits by score, but the superseded ones before what took their place after that time, if it is a hit.

    Also returns the ids of those that were moved, each with the id of the memory that it was put before.
    """
    by_id = {(Place.of(hit.memory), hit.memory.id): hit for hit in hits}
    order, moved = list(hits), dict[str, str]()
    for hit in superseded:
        heirs = (by_id.get((Place.of(heir), heir.id)) for heir in view.successors(hit.memory))
        later = [heir for heir in heirs if heir is not None and _begins(heir.memory) >= past.until]
        if not later:
            order.append(hit)
            continue
        best = max(later, key=lambda heir: heir.score)
        moved[hit.memory.id] = best.memory.id
        order.append(hit if hit.score > best.score else _above(hit, best))
    return sorted(order, key=lambda hit: -hit.score), moved


def _above(hit: Hit, other: Hit) -> Hit:
    """The hit with a score that is just above the other's."""
    value, scored = math.nextafter(other.score, math.inf), hit.scored
    gain = value - scored.value if scored.how == "sum" else value / (scored.value or value)
    part = Part(f"valid then, unlike {other.memory.id[:8]}", gain, 1.0, gain)
    return Hit(hit.memory, Score(value, scored.how, (*scored.parts, part)), hit.relevance)
