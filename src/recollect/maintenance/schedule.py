"""Maintenance: each job plans what it would do, then does that in a transaction, as one entry of the audit log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

import msgspec

from recollect.maintenance import leases
from recollect.maintenance.jobs import EVERY, Job, JobName
from recollect.maintenance.leases import Lease
from recollect.maintenance.steps import JobPlan, Step
from recollect.stores.port import Place
from recollect.values import validation
from recollect.values.errors import AccessError, InputError, ModelError
from recollect.verbs.remember.quota import make_room
from recollect.view import View

Outcome = Literal["done", "planned", "held", "busy"]


class JobReport(msgspec.Struct, frozen=True):
    """What a job did in one workspace, or in what a tenant's accounts share; or would do."""

    job: JobName
    workspace: str | None
    outcome: Outcome
    """`held` where a part waits for somebody to force it, `busy` where another process has the job."""
    steps: tuple[Step, ...] = ()
    held: tuple[Step, ...] = ()
    """What was not done, because it would be too much of a scope at once."""
    count: int = 0
    """Of what is no change of a memory: vectors made, changes that can no longer be undone, bytes freed."""
    note: str = ""


class Maintained(msgspec.Struct, frozen=True):
    """What was done, or would be, by job."""

    jobs: tuple[JobReport, ...] = ()

    @property
    def decayed(self) -> tuple[str, ...]:
        return self._ids("decay")

    @property
    def unimportant(self) -> tuple[str, ...]:
        return self._ids("early")

    @property
    def undo_dropped(self) -> int:
        return sum(report.count for report in self.jobs if report.job == "undo")

    def _ids(self, job: JobName) -> tuple[str, ...]:
        return tuple([step.id for report in self.jobs if report.job == job for step in report.steps])


class MaintenanceRequest(NamedTuple):
    """What a caller of `maintain` wants."""

    early: bool = False
    dry_run: bool = False
    force: bool = False
    jobs: Iterable[str] | None = None
    only: Iterable[str] | None = None
    stopping: Callable[[], bool] | None = None


def maintain(view: View, request: MaintenanceRequest) -> Maintained:
    """Run what is due, or the jobs that were named. What another process is doing, or has just done, is left to it."""
    with view.logging_refusals("maintain"):
        wanted, only = _chosen(view, request)
    reports: list[JobReport] = []
    gone: set[str] = set()
    for job in wanted:
        for place in _places(view, job):
            if request.stopping is not None and request.stopping():
                return Maintained(tuple(reports))
            if request.jobs is None and not leases.due(view, place, job.name, job.hours(view)):
                continue
            report = (
                _planned(view, job, place, request, only, gone)
                if request.dry_run
                else _done(view, job, place, request, only)
            )
            if report is not None:
                gone.update(step.id for step in report.steps if step.change != "promote")
                reports.append(report)
    return Maintained(tuple(reports))


def _chosen(view: View, request: MaintenanceRequest) -> tuple[list[Job], frozenset[str] | None]:
    only = None
    if request.only is not None:  # nothing but these
        only = frozenset(validation.memory_id(ident, "only") for ident in validation.sequence(request.only, "only"))
    if request.jobs is None:
        return [job for job in EVERY if job.enabled(view) and (request.early or job.name != "early")], only
    names = [validation.choice(name, "jobs", JobName) for name in validation.sequence(request.jobs, "jobs")]
    return [job for job in EVERY if job.enabled(view) and job.name in names], only


def _places(view: View, job: Job) -> Iterator[Place]:
    """Where there is something: looking after nothing leaves nothing behind."""
    stored_places = view.store.places(view.address.tenant)
    return (
        place for place in view.places if place in stored_places and (job.in_account or place.workspace is not None)
    )


def _planned(
    view: View, job: Job, place: Place, request: MaintenanceRequest, only: frozenset[str] | None, gone: Iterable[str]
) -> JobReport | None:
    plan = _narrowed(job.plan(view, place), request, only)
    # In earnest these would be gone by now, and no other job would find them.
    before = frozenset(gone)
    plan = plan.only(frozenset(step.id for step in (*plan.steps, *plan.held)) - before)
    return _report(job, place, plan, "planned") if plan else None


def _done(
    view: View, job: Job, place: Place, request: MaintenanceRequest, only: frozenset[str] | None
) -> JobReport | None:
    plan = None
    if not job.hours(view):
        plan = job.plan(view, place)
        if not plan:
            return None  # without a trace in the store
    lease = leases.take(view, place, job.name)
    if lease is None:
        return _report(job, place, JobPlan(note="another process is doing it"), "busy")
    finished = False
    try:
        if request.jobs is None and not leases.due(view, place, job.name, job.hours(view)):
            return None  # another process has done it since this one looked
        plan = _narrowed(job.plan(view, place) if plan is None else plan, request, only)
        done = _run(view, job, place, plan, lease)
        finished = True
    except leases.LeaseLostError as error:
        return _report(job, place, JobPlan(note=str(error)), "busy")
    finally:
        leases.give_back(view, lease, done=finished and only is None)
    return _report(job, place, done, "held" if done.held else "done") if done else None


def _run(view: View, job: Job, place: Place, plan: JobPlan, lease: Lease) -> JobPlan:
    if not job.locked:
        return job.run(view, place, plan)
    with view.store.transaction(place):
        lease.check(view)
        return job.run(view, place, plan)


def _narrowed(plan: JobPlan, request: MaintenanceRequest, only: frozenset[str] | None) -> JobPlan:
    plan = plan if only is None else plan.only(only)
    return plan.forced() if request.force else plan


def _report(job: Job, place: Place, plan: JobPlan, outcome: Outcome) -> JobReport:
    note = "; ".join(filter(None, (plan.too_much, plan.note)))
    return JobReport(job.name, place.workspace, outcome, plan.steps, plan.held, plan.count, note)


def embed(view: View, wait: bool, progress: Callable[[int], object] | None) -> int:
    """Have the vectors made that are missing in the view's workspace, and in the knowledge of its tenant."""
    embedding = view.embedding
    if embedding is None:
        if not view.preset.recall.embed:
            raise InputError("preset", f"{view.preset.name} compares words only; use another preset")
        raise ModelError("there is no model; run `recollect models pull`, or give an embedder")
    places = [view.place, *_reserved(view)]
    if not wait:
        missing = sum(map(embedding.missing, places))  # before the worker makes some of them
        view.new_in(*places)
        return missing
    made = 0
    for place in places:
        made += embedding.finish(place, lambda number, before=made: progress and progress(before + number))
    return made


def compact(view: View) -> int:
    """Remove what was forgotten, and what has faded beyond the preset's limit, from the disk."""
    if not view.whole:
        raise AccessError("compact: only a view of the whole workspace can compact it, not one bound inside it")
    places = [*view.places, *_reserved(view)]
    for place in places:
        view.store.purge(place, seqs=None)
    return sum(make_room(view, place) for place in places)


def _reserved(view: View) -> list[Place]:
    """Places of the engine's own, which no view of a workspace has among its own."""
    return [place for place in view.store.places(view.address.tenant) if place.reserved]
