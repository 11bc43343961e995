"""The jobs: what each would do in a place, and how that is done."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec.structs import replace

from recollect.maintenance.steps import JobPlan, Step, apply, hold_back
from recollect.policies.decay import strength
from recollect.policies.retention import decayed, early
from recollect.stores.answers import drop, outdated
from recollect.stores.port import Place
from recollect.values.record import Record
from recollect.verbs.remember import quota
from recollect.view import View

JobName = Literal["decay", "early", "quota", "consolidate", "supersede", "embed", "undo", "answers", "compact"]
_EMBED_MOST, _EMBED_SECONDS = 50, 5.0
"""Vectors that a run waits for, and no longer than this: the rest is made in the background, or the next time."""


class Job:
    """One line of work. Its plan changes nothing."""

    name: ClassVar[JobName]
    in_account: ClassVar[bool] = True
    """Whether it looks at what a tenant's accounts share, too."""
    locked: ClassVar[bool] = True
    """Whether it runs in one transaction of its place. Slow jobs, and those of several places, open their own."""
    message: ClassVar[str] = "{}"
    """What the audit log says of the steps."""

    def enabled(self, view: View) -> bool:
        """Whether the preset wants the job, and the view can do it."""
        return True

    def hours(self, view: View) -> float:
        """How often; 0 is whenever maintenance runs."""
        return 0.0

    def plan(self, view: View, place: Place) -> JobPlan:
        raise NotImplementedError(f"the job {self.name} has no `plan`")

    def run(self, view: View, place: Place, plan: JobPlan) -> JobPlan:
        """Run the job and return a report."""
        return replace(plan, steps=apply(view, place, plan.steps, self.name, self.message))


def live(view: View, place: Place) -> list[Record]:
    """What a view sees in one place."""
    tiers = ("account",) if place.workspace is None else ("workspace", "channel", "conversation")
    return list(view.scan(view.where(tiers=tiers)))


class DecayJob(Job):
    name = "decay"
    message = "{} that had decayed"

    def enabled(self, view: View) -> bool:
        return view.preset.retention.archive_below is not None

    def plan(self, view: View, place: Place) -> JobPlan:
        now, rules, decay = view.now(), view.preset.retention, view.decay
        why = f"its importance has decayed to {{:.3g}}, below {rules.archive_below or 0.0:g}"
        faded = [record for record in live(view, place) if decayed(rules, record, decay, now)]
        return JobPlan(tuple([Step(old.id, "archive", why.format(strength(old, decay, now))) for old in faded]))


class EarlyJob(Job):
    name = "early"
    message = "{} of little importance"

    def enabled(self, view: View) -> bool:
        return view.preset.retention.early_cleanup_below is not None

    def plan(self, view: View, place: Place) -> JobPlan:
        rules = view.preset.retention
        why = f"its importance was {{:g}} from the start, below {rules.early_cleanup_below or 0.0:g}"
        trivial = [record for record in live(view, place) if early(rules, record)]
        return JobPlan(tuple([Step(record.id, "archive", why.format(record.importance)) for record in trivial]))


class QuotaJob(Job):
    """What an agent has in all workspaces of the tenant."""

    name = "quota"
    in_account = False
    locked = False

    def enabled(self, view: View) -> bool:
        return view.quota is not None

    def plan(self, view: View, place: Place) -> JobPlan:
        change = view.preset.retention.quota_action
        why = f"over the quota of {view.quota or 0:,}"
        return JobPlan(tuple([Step(record.id, change, why) for record in quota.over(view)]))

    def run(self, view: View, place: Place, plan: JobPlan) -> JobPlan:
        settled = {record.id for record in quota.settle(view, {step.id for step in plan.steps})}
        return JobPlan(tuple([step for step in plan.steps if step.id in settled]))


class ConsolidateJob(Job):
    name = "consolidate"
    message = "consolidated: {}"

    def enabled(self, view: View) -> bool:
        return view.preset.consolidation.enabled

    def hours(self, view: View) -> float:
        return view.preset.maintenance.consolidate_hours

    def plan(self, view: View, place: Place) -> JobPlan:
        from recollect.maintenance.consolidation import plan

        records, rules = live(view, place), view.preset.maintenance
        planned = plan(records, view.preset.consolidation, view.decay, view.now())
        return hold_back(planned, records, rules.ask_share, rules.ask_least)


class SupersedeJob(Job):
    name = "supersede"
    message = "{} by newer ones that say otherwise"

    def enabled(self, view: View) -> bool:
        return view.preset.maintenance.supersede

    def hours(self, view: View) -> float:
        return view.preset.maintenance.supersede_hours

    def plan(self, view: View, place: Place) -> JobPlan:
        from recollect.maintenance.superseding import plan

        records, rules = live(view, place), view.preset.maintenance
        return hold_back(plan(records), records, rules.ask_share, rules.ask_least)


class EmbedJob(Job):
    """What a background thread does anyway where a memory stays open; here for those that are opened for a moment."""

    name = "embed"
    in_account = False
    locked = False

    def enabled(self, view: View) -> bool:
        return view.embedding is not None

    def hours(self, view: View) -> float:
        return view.preset.maintenance.embed_hours

    def plan(self, view: View, place: Place) -> JobPlan:
        return JobPlan() if view.embedding is None else JobPlan(count=min(view.embedding.missing(place), _EMBED_MOST))

    def run(self, view: View, place: Place, plan: JobPlan) -> JobPlan:
        made = 0 if view.embedding is None else view.embedding.some(place, _EMBED_MOST, _EMBED_SECONDS)
        return JobPlan(count=made)


class UndoJob(Job):
    """Drops undo data that is too old or too large."""

    name = "undo"

    def enabled(self, view: View) -> bool:
        return view.whole

    def hours(self, view: View) -> float:
        return 24.0

    def plan(self, view: View, place: Place) -> JobPlan:
        return JobPlan(count=len(view.expired_undo(place)))

    def run(self, view: View, place: Place, plan: JobPlan) -> JobPlan:
        return JobPlan(count=view.drop_expired_undo(place))


class AnswersJob(Job):
    """Drops what is known of answers that are too old or too many."""

    name = "answers"
    in_account = False

    def enabled(self, view: View) -> bool:
        return view.whole

    def plan(self, view: View, place: Place) -> JobPlan:
        view.settle_answers()
        return JobPlan(count=len(outdated(view.store, place, view.oldest_answer())))

    def run(self, view: View, place: Place, plan: JobPlan) -> JobPlan:
        return JobPlan(count=drop(view.store, place, view.oldest_answer()))


class CompactJob(Job):
    name = "compact"
    locked = False

    def enabled(self, view: View) -> bool:
        return view.whole and view.on_disk is not None

    def plan(self, view: View, place: Place) -> JobPlan:
        crowded = view.on_disk is not None and view.on_disk.crowded(place)
        return JobPlan(note="the place is so full that it is time to compact it") if crowded else JobPlan()

    def run(self, view: View, place: Place, plan: JobPlan) -> JobPlan:
        return replace(plan, count=max(quota.make_room(view, place), 0))


EVERY: tuple[Job, ...] = (
    DecayJob(),
    EarlyJob(),
    QuotaJob(),
    ConsolidateJob(),
    SupersedeJob(),
    EmbedJob(),
    UndoJob(),
    AnswersJob(),
    CompactJob(),
)
"""In the order in which they run."""
