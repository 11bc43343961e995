"""Which memories newer ones supersede: those that they contradict, as text.statements reads them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from recollect.maintenance.steps import JobPlan, Step
from recollect.text.statements import contradicts, keys, plain
from recollect.values.record import Record, storing_order

_CROWDED = 12
"""More statements of the same form are a series, such as readings, and do not supersede each other."""


def plan(records: Sequence[Record]) -> JobPlan:
    """What newer memories of the same address, tier and kind supersede. Turns of a conversation are left alone."""
    groups: dict[tuple[object, ...], list[Record]] = defaultdict(list)
    for record in records:
        if record.role is None and (statement := plain(record.text)) is not None:
            for key in dict.fromkeys(keys(statement)):
                groups[record.address, record.tier, record.kind, key].append(record)
    gone: dict[str, Step] = {}
    for members in groups.values():
        if not 1 < len(members) <= _CROWDED:
            continue
        members.sort(key=lambda record: (record.created_at, storing_order(record.id)), reverse=True)
        for at, new in enumerate(members):
            for old in members[at + 1 :]:
                if new.id in gone or old.id in gone or old.created_at >= new.created_at:
                    continue
                if contradicts(old.text, new.text):
                    gone[old.id] = Step(old.id, "supersede", "a newer memory says otherwise of the same", new.id)
    stays = gone.keys()
    return JobPlan(tuple([step for step in gone.values() if step.by not in stays]))
