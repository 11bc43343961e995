"""What maintenance would do to which memory, as values, and the one way in which that is done.

A plan changes nothing. What is applied is read again when nobody else can write, is one entry of the audit log, and can
be undone. Before it is committed, it is checked that nothing was lost.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec
from msgspec.structs import replace

from recollect.stores.port import Place
from recollect.values.errors import ConflictError
from recollect.values.record import Record, superseded
from recollect.verbs.deduplicate import joined
from recollect.view import View

Change = Literal["archive", "promote", "merge", "supersede", "forget"]


class Step(msgspec.Struct, frozen=True):
    """One change of one memory, done or planned."""

    id: str
    change: Change
    why: str
    by: str | None = None
    """The memory that takes its place."""


class JobPlan(msgspec.Struct, frozen=True):
    """What a job would do in one place."""

    steps: tuple[Step, ...] = ()
    held: tuple[Step, ...] = ()
    """Steps that are too many at once to be done without consent."""
    too_much: str = ""
    """Where, and how much."""
    count: int = 0
    """The count of a job that changes no memory: vectors, undo data, bytes."""
    note: str = ""

    def __bool__(self) -> bool:
        return bool(self.steps or self.held or self.count or self.note)

    def only(self, ids: frozenset[str]) -> JobPlan:
        """No more of it than what concerns these."""
        chosen = tuple([step for step in self.steps if step.id in ids])
        return replace(self, steps=chosen, held=tuple([step for step in self.held if step.id in ids]))

    def forced(self) -> JobPlan:
        return replace(self, steps=(*self.steps, *self.held), held=(), too_much="")


def scope(record: Record) -> tuple[str, str | None]:
    """Who shares a cap, and a share that may go at once: one account, workspace, channel or conversation."""
    address = record.address
    return record.tier, getattr(address, record.tier)


def hold_back(plan: JobPlan, records: Iterable[Record], share: float, minimum: int) -> JobPlan:
    """The plan, but for scopes that would lose more than a share of what is live there.

    Of what has faded there a portion is done that stays below the share, and the next run does the next: after a long
    absence all of it has. The rest is held back.
    """
    by_id = {record.id: record for record in records}
    live = Counter(scope(record) for record in by_id.values())
    going = Counter(scope(by_id[step.id]) for step in plan.steps if step.change != "promote")
    much = {home for home, number in going.items() if number > max(share * live[home], minimum)}
    if not much:
        return plan
    portion = {home: int(max(share * live[home], minimum)) for home in much}
    held: list[Step] = []
    for step in plan.steps:
        home = scope(by_id[step.id])
        if step.change == "promote" or home not in much:
            continue
        if step.change == "archive" and portion[home] > 0:
            portion[home] -= 1
        else:
            held.append(step)
    waiting = set(held)
    where = "; ".join(
        f"{going[home]:,} of {live[home]:,} in the {' '.join(filter(None, home))}" for home in sorted(much, key=repr)
    )
    note = f"held back: it would take {where}, more than {share:.0%} at once"
    steps = tuple([step for step in plan.steps if step not in waiting])
    return replace(plan, steps=steps, held=tuple(held), too_much=note)


def changed(records: Mapping[str, Record], steps: Iterable[Step], now: datetime) -> dict[str, Record]:
    """The memories that these steps change, as they are afterwards. Steps that no longer fit are left out."""
    after: dict[str, Record] = {}
    steps = [step for step in steps if step.id in records and records[step.id].state(now) == "live"]
    gone = {step.id for step in steps if step.change != "promote"}
    merged: dict[str, list[Record]] = defaultdict(list)
    for step in steps:
        record = records[step.id]
        if step.change == "promote":
            after[step.id] = replace(after.get(step.id, record), lifetime="long_term")
        elif step.change == "archive":
            after[step.id] = replace(record, archived_at=now)
        elif step.by is not None:
            stays = records.get(step.by)
            if stays is None or stays.state(now) != "live" or step.by in gone or stays.id == record.id:
                continue
            is_merged = step.change == "merge"
            after[step.id] = replace(record, superseded_by=step.by) if is_merged else superseded(record, stays)
            if is_merged:
                merged[step.by].append(record)
    for ident, others in merged.items():
        after[ident] = joined(after.get(ident, records[ident]), others)
    return after


def apply(view: View, place: Place, steps: Sequence[Step], action: str, message: str) -> tuple[Step, ...]:
    """Do it, inside a transaction of the caller's. Returns the steps that still fitted."""
    named = list(dict.fromkeys(ident for step in steps for ident in (step.id, step.by) if ident is not None))
    stored = {record.id: record for record in view.store.get(place, named)}
    now = view.now()
    after = changed(stored, steps, now)
    done = tuple([step for step in steps if step.id in after])
    if not done:
        return ()
    before = [stored[ident] for ident in after]
    view.store.update(place, list(after.values()))
    check_kept(before, {record.id: record for record in view.store.get(place, named)}, now)
    view.log(place, action, message.format(_count_changes(done)), before, changed=list(after))
    return done


def check_kept(before: Iterable[Record], after: Mapping[str, Record], now: datetime) -> None:
    """ConflictError if a live memory would be lost: it must stay live, be archived, or lead to its successor."""
    for record in before:
        if record.state(now) != "live":
            continue
        new, seen = after.get(record.id), {record.id}
        if new is not None and new.content != record.content:
            new = None
        while new is not None and new.superseded_by is not None:
            new = after.get(new.superseded_by) if new.superseded_by not in seen else None
            seen.add(new.id if new is not None else "")
        if new is None:
            raise ConflictError(f"memory {record.id} would be lost; nothing was changed")


def _count_changes(steps: Sequence[Step]) -> str:
    words = {"archive": "archived", "promote": "promoted", "merge": "merged", "supersede": "superseded"}
    counts = {word: sum(step.change == change for step in steps) for change, word in words.items()}
    return ", ".join(f"{word} {number:,}" for word, number in counts.items() if number)
