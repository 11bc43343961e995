"""What is so no longer: older memories that a newer statement replaces or ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from recollect.facets.proposals import propose
from recollect.maintenance.steps import Step, apply
from recollect.recall.question import Question
from recollect.recall.run import RecallRun
from recollect.stores.port import Place
from recollect.text.statements.changes import StatementChange, asks, change
from recollect.text.statements.tasks import may_close, task_effect
from recollect.values.record import Record, storing_order
from recollect.view import View

_MOST_PROPOSED = 10
"""So many possible changes are proposed at the end of a conversation."""
_LOOKED_AT = 40
"""So many of the older memories with the same words are compared."""
_TASKS = 200
"""So many open tasks, the newest, are asked about."""
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
    tasks = _tasks(view, records)
    for new in sorted(records, key=lambda record: storing_order(record.id)):
        if new.role == "assistant" or not view.preset.conversations.supersede:
            continue
        steps: list[Step] = []
        for ident, result in {**_closed(tasks, new), **_changed(view, new)}.items():
            if result.effect == "possible":
                settled.possible.append((ident, new.id, result.why))
            else:
                steps.append(Step(ident, "supersede", result.why, new.id))
        if len(steps) > _MOST:
            settled.possible += [(step.id, new.id, step.why) for step in steps]
        elif steps:
            place = Place.of(new)
            with view.store.transaction(place):
                settled.replaced += apply(view, place, steps, "supersede", "{} by what was said since")
    for old, new, why in settled.possible[:_MOST_PROPOSED]:
        propose(view, "replace", why, [old, new], "")
    return settled


def close_tasks(view: View, spoken: Sequence[str]) -> None:
    """Put tasks away that the user says are done, in sentences that are no facts themselves: "got it renewed!"."""
    spoken = [sentence for sentence in spoken if may_close(sentence)]
    tasks = _open_tasks(view) if spoken and view.preset.conversations.supersede else []
    done: dict[Place, list[Step]] = defaultdict(list)
    for task in tasks:
        if owned_by(view, task) and any(task_effect(task.text, sentence) == "closes" for sentence in spoken):
            done[Place.of(task)].append(Step(task.id, "archive", "the task is done"))
    for place, steps in done.items():
        with view.store.transaction(place):
            apply(view, place, steps, "supersede", "{} as done")


def owned_by(view: View, record: Record) -> bool:
    """Whether a memory belongs to whom the view is bound to."""
    return (record.address.account, record.address.agent) == (view.address.account, view.address.agent)


def _changed(view: View, new: Record) -> dict[str, StatementChange]:
    """By the id of an older memory: what the newer one does to it."""
    changes = {old.id: change(old.text, new.text) for old in _older(view, new)}
    return {ident: result for ident, result in changes.items() if result is not None}


def _tasks(view: View, records: Sequence[Record]) -> list[Record]:
    """The newest open tasks, where something is said that may close one."""
    if not any(record.kind != "task" and may_close(record.text) for record in records):
        return []
    return _open_tasks(view)


def _open_tasks(view: View) -> list[Record]:
    return list(view.scan(view.where(state="live", kinds=("task",)), order="newest", limit=_TASKS))


def _closed(tasks: Sequence[Record], new: Record) -> dict[str, StatementChange]:
    """Open tasks that it says are done, or due at another time."""
    closed: dict[str, StatementChange] = {}
    for task in tasks:
        if new.kind != "task" and _is_older(task, new) and (effect := task_effect(task.text, new.text)):
            why = "the task is done" if effect == "closes" else "perhaps due at another time"
            closed[task.id] = StatementChange("ends" if effect == "closes" else "possible", why)
    return closed


def _is_older(old: Record, new: Record) -> bool:
    """Whether it is of the same owner, and was stored before."""
    return _owner(old) == _owner(new) and storing_order(old.id) < storing_order(new.id)


def _owner(record: Record) -> tuple[object, ...]:
    """A channel counts only for what stays in it."""
    address = replace(record.address, conversation=None)
    return record.tier, address if record.tier == "channel" else replace(address, channel=None)


def _older(view: View, new: Record) -> list[Record]:
    """Older memories of the same owner that may be about the same, by their words."""
    words = asks(new.text)
    if not words:
        return []
    where = view.where(state="live", tiers=(new.tier,))
    question = Question(words, [where], _LOOKED_AT, min_relevance=0.0, exact=True)
    hits = RecallRun(replace(view, embedding=None), question).hits()
    return [hit.memory for hit in hits if _is_older(hit.memory, new)]
