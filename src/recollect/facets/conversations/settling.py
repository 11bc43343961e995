"""What is so no longer: older memories that a newer statement replaces or ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from recollect.maintenance.steps import Step, apply
from recollect.recall.question import Question
from recollect.recall.run import RecallRun
from recollect.stores.port import Place
from recollect.text.statements.changes import asks, change
from recollect.values.record import Record, storing_order
from recollect.view import View

_LOOKED_AT = 40
"""So many of the older memories with the same words are compared."""
_MOST = 3
"""More than so many that one statement would replace are a series, such as readings, and stay."""


@dataclass
class Settled:
    """What newer statements did."""

    replaced: list[Step] = field(default_factory=list[Step])
    possible: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """The older memory, the newer one, and why it may be a change."""


def settle(view: View, records: Sequence[Record]) -> Settled:
    """Let these memories supersede what they say is over. What only may be a change stays, and is told."""
    settled = Settled()
    for new in sorted(records, key=lambda record: storing_order(record.id)):
        if new.access_count or new.role == "assistant" or not view.preset.conversations.supersede:
            continue  # it was known already, or nobody but the assistant says so
        steps: list[Step] = []
        for old in _older(view, new):
            found = change(old.text, new.text)
            if found is None:
                continue
            if found.effect == "possible":
                settled.possible.append((old.id, new.id, found.why))
            else:
                steps.append(Step(old.id, "supersede", found.why, new.id))
        if len(steps) > _MOST:
            settled.possible += [(step.id, new.id, step.why) for step in steps]
        elif steps:
            place = Place.of(new)
            with view.store.transaction(place):
                settled.replaced += apply(view, place, steps, "supersede", "{} by what was said since")
    return settled


def _older(view: View, new: Record) -> list[Record]:
    """Older memories of the same owner that may be about the same, by their words."""
    words = asks(new.text)
    if not words:
        return []
    where = view.where(state="live", tiers=(new.tier,))
    question = Question(words, [where], _LOOKED_AT, min_relevance=0.0, exact=True)
    hits = RecallRun(replace(view, embedding=None), question).hits()
    order = storing_order(new.id)
    return [
        hit.memory
        for hit in hits
        if hit.memory.address == new.address and hit.memory.id != new.id and storing_order(hit.memory.id) < order
    ]
