"""The verb simulate: what time will do to memories, played through on a copy. Nothing is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from recollect.maintenance.jobs import JobName, live
from recollect.maintenance.steps import JobPlan, Step, changed, hold_back
from recollect.policies.decay import strength
from recollect.policies.ranking import Evidence
from recollect.policies.retention import decayed
from recollect.values import validation
from recollect.values.record import Record, Tier, moved
from recollect.verbs.remember import quota
from recollect.view import View

_MOST_DAYS = 3650


class Event(msgspec.Struct, frozen=True):
    """Something that will happen to a memory."""

    day: int
    at: datetime
    job: JobName | Literal["expire"]
    change: Literal["expire", "archive", "promote", "merge", "supersede", "forget"]
    id: str
    kind: str
    tier: Tier
    why: str
    by: str | None = None
    held: bool = False
    """Whether it is held back until somebody forces it, so that the memory stays."""


class Retained(msgspec.Struct, frozen=True):
    """How many memories of a kind and tier are live on each day, beginning with today."""

    kind: str
    tier: Tier
    live: tuple[int, ...]


class Simulation(msgspec.Struct, frozen=True):
    """What will happen if nothing is stored or recalled, and maintenance runs every day."""

    start: datetime
    days: int
    events: tuple[Event, ...]
    retained: tuple[Retained, ...]

    @property
    def live(self) -> tuple[int, ...]:
        """Of all kinds and tiers together."""
        return tuple([sum(line.live[day] for line in self.retained) for day in range(self.days + 1)])

    def svg(self) -> str:
        """A plot of the share that is left, by kind and tier."""
        from recollect.maintenance.plot import svg

        return svg(self)


def simulate(view: View, days: int) -> Simulation:
    days = validation.count(days, "days", high=_MOST_DAYS)
    start = view.now()
    places = view.store.places(view.address.tenant)
    state = _State(view, [record for place in view.places if place in places for record in live(view, place)])
    for day in range(days + 1):
        state.pass_day(day, moved(start, timedelta(days=day)))
    return Simulation(start, days, tuple(state.events), state.lines())


class _State:
    """A copy of the live memories, changed day by day."""

    def __init__(self, view: View, records: Sequence[Record]) -> None:
        self._view = view
        self._all = records
        self._live = {record.id: record for record in records}
        self._over = [record.id for record in quota.over(view)] if view.quota is not None else []
        self._consolidate_at: datetime | None = None
        self._held: set[str] = set()
        self._counts: list[dict[tuple[str, Tier], int]] = []
        self.events: list[Event] = []

    def lines(self) -> tuple[Retained, ...]:
        groups: list[tuple[str, Tier]] = sorted({(record.kind, record.tier) for record in self._all})
        return tuple([Retained(*group, tuple([day.get(group, 0) for day in self._counts])) for group in groups])

    def pass_day(self, day: int, now: datetime) -> None:
        expired = [record for record in self._live.values() if record.state(now) == "expired"]
        for record in sorted(expired, key=lambda record: record.expires_at or now):
            self._tell(day, record.expires_at or now, "expire", Step(record.id, "archive", "its time to live is over"))
            del self._live[record.id]
        for job, plan in self._plans(now):
            self._apply(day, now, job, plan)
        counts: dict[tuple[str, Tier], int] = defaultdict(int)
        for record in self._live.values():
            counts[record.kind, record.tier] += 1
        self._counts.append(counts)

    def _plans(self, now: datetime) -> Iterator[tuple[JobName, JobPlan]]:
        """Each is made when those before it are done."""
        retention, decay = self._view.preset.retention, self._view.decay
        if retention.archive_below is not None:
            why = f"its importance has decayed to {{:.3g}}, below {retention.archive_below:g}"
            faded = [record for record in self._live.values() if decayed(retention, record, decay, now)]
            yield "decay", JobPlan(tuple([Step(r.id, "archive", why.format(strength(r, decay, now))) for r in faded]))
        if self._over:
            why = f"over the quota of {self._view.quota or 0:,}"
            yield "quota", JobPlan(tuple([Step(ident, retention.quota_action, why) for ident in self._over]))
            self._over = []
        if self._view.preset.consolidation.enabled and (self._consolidate_at is None or now >= self._consolidate_at):
            yield "consolidate", self._consolidation(now)
        if self._view.preset.maintenance.supersede and not self._counts:  # texts do not change with time
            from recollect.maintenance.superseding import plan

            yield "supersede", self._held_back(plan(list(self._live.values())))
        if retention.compact_below is not None:
            yield "compact", self._compaction(now, retention.compact_below)

    def _consolidation(self, now: datetime) -> JobPlan:
        from recollect.maintenance.consolidation import plan

        preset, records = self._view.preset, list(self._live.values())
        # Vectors do not change with time, so merging by meaning is simulated once.
        first = self._consolidate_at is None
        planned = plan(records, preset.consolidation, self._view.decay, now, merging=first)
        self._consolidate_at = moved(now, timedelta(hours=preset.maintenance.consolidate_hours))
        return self._held_back(planned)

    def _held_back(self, plan: JobPlan) -> JobPlan:
        rules = self._view.preset.maintenance
        return hold_back(plan, self._live.values(), rules.ask_share, rules.ask_least)

    def _compaction(self, now: datetime, limit: float) -> JobPlan:
        """Memories that the next `compact` would remove. They are reported, and stay."""
        rank, decay = self._view.preset.ranking.score, self._view.decay
        why = f"relevance {{:.3g}} is below {limit:g}: the next `compact` removes it for good"
        scores = [(record.id, rank(Evidence(record, ""), decay, now).value) for record in self._live.values()]
        return JobPlan(
            held=tuple([Step(ident, "forget", why.format(score)) for ident, score in scores if score < limit])
        )

    def _apply(self, day: int, now: datetime, job: JobName, plan: JobPlan) -> None:
        steps = [step for step in plan.steps if step.id in self._live]
        for step in steps:
            self._tell(day, now, job, step)
        for step in plan.held:
            if step.id not in self._held:
                self._held.add(step.id)
                self._tell(day, now, job, step, held=True)
        for ident, record in changed(self._live, steps, now).items():
            self._live[ident] = record
        gone = {step.id for step in steps if step.change != "promote"}
        self._live = {ident: record for ident, record in self._live.items() if ident not in gone}

    def _tell(self, day: int, at: datetime, job: JobName | Literal["expire"], step: Step, held: bool = False) -> None:
        record = self._live[step.id]
        change = "expire" if job == "expire" else step.change
        self.events.append(Event(day, at, job, change, step.id, record.kind, record.tier, step.why, step.by, held))
