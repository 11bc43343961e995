"""Jobs: what maintenance would do now, when each job ran, what it has done, and doing it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_args

from recollect.maintenance import leases
from recollect.maintenance.jobs import EVERY, JobName
from recollect.maintenance.schedule import JobReport, Maintained
from recollect.memory import view_of
from recollect.server.pages.site import Done, Visit, action, page
from recollect.stores.audit import Entry
from recollect.values.errors import InputError
from recollect.values.record import parse_time

WORD = "run"
NAMES: tuple[str, ...] = get_args(JobName)
_WHAT: dict[str, str] = {
    "decay": "Archives what has faded below the preset's limit",
    "early": "Archives what was of little importance from the start; only where it is asked for",
    "quota": "Keeps each agent within its quota",
    "consolidate": "Promotes what is used, merges what says the same, archives what has faded",
    "supersede": "Lets newer memories take the place of those that they contradict",
    "embed": "Makes the vectors that are missing",
    "undo": "Drops what it takes to undo changes that are long ago",
    "answers": "Drops what is known of answers that are long ago or too many",
    "compact": "Gives unused space back to the disk",
}
_COUNTED = {
    "embed": "vectors",
    "undo": "changes that can no longer be undone",
    "answers": "answers",
    "compact": "bytes",
}
_PAST = 20


@page("/jobs", "Jobs", rank="admin", template="jobs.html", nav="Jobs", group="Care")
def jobs(visit: Visit) -> dict[str, Any]:
    memory = visit.memory
    view = view_of(memory)
    plan = memory.maintain(dry_run=True, jobs=NAMES)
    shelves = [item for place in view.places for item in view.store.shelf(place, leases.SHELF)]
    rows: list[dict[str, Any]] = []
    for job in sorted(EVERY, key=lambda job: not job.enabled(view)):
        own_leases = [item.body for item in shelves if item.body.get("job") == job.name]
        enabled = job.enabled(view)
        reports = [report for report in plan.jobs if report.job == job.name]
        rows.append(
            {
                "name": job.name,
                "what": _WHAT[job.name],
                "asked": enabled,
                "hours": job.hours(view) if enabled else 0.0,
                "last_run": max(filter(None, (_time(body, "last_run") for body in own_leases)), default=None),
                "until": max(filter(None, (_time(body, "until") for body in own_leases)), default=None),
                "plan": summarize_reports(reports),
                "held": sum(len(report.held) for report in reports),
                "notes": [report.note for report in reports if report.note],
            }
        )
    return {
        "jobs": rows,
        "waiting": any(row["plan"] for row in rows),
        "past": _past(visit),
        "watch": view.preset.maintenance.watch_minutes,
        "word": WORD,
        "chosen": visit.fields("job") if visit.refused else [row["name"] for row in rows if row["plan"]],
    }


def summarize_reports(reports: list[JobReport]) -> str:
    """What a job did or would do, in a few words; empty for nothing."""
    changes: dict[str, int] = {}
    for report in reports:
        for step in report.steps:
            changes[step.change] = changes.get(step.change, 0) + 1
    parts = [f"{change} {number:,}" for change, number in changes.items()]
    number = sum(report.count for report in reports)
    if number:
        parts.append(f"{number:,} {_COUNTED.get(reports[0].job, '')}".strip())
    if held := sum(len(report.held) for report in reports):
        parts.append(f"{held:,} held back")
    return ", ".join(parts)


def _time(body: dict[str, Any], name: str) -> datetime | None:
    try:
        return parse_time(body[name], name)
    except (KeyError, InputError):
        return None


def _past(visit: Visit) -> list[Entry]:
    """What the audit log has of jobs that changed memories; the others leave their last time only."""
    entries = [past for name in NAMES if name != "undo" for past in visit.memory.audit.search(action=name, limit=_PAST)]
    entries.sort(key=lambda entry: entry.id, reverse=True)
    return entries[:_PAST]


@action("/jobs/run", rank="admin", again="/jobs")
def run(visit: Visit) -> Done:
    names = visit.fields("job")
    if not names:
        raise InputError("job", "choose at least one first")
    visit.confirm(WORD)
    done: Maintained = visit.memory.maintain(jobs=names, force=bool(visit.field("force")))
    lines: list[str] = []
    for name in dict.fromkeys(report.job for report in done.jobs):
        reports = [report for report in done.jobs if report.job == name]
        busy = next((report.note for report in reports if report.outcome == "busy"), "")
        lines.append(f"{name}: {busy or summarize_reports(reports) or 'done'}")
    return Done(visit.link("/jobs"), "; ".join(lines) or "There was nothing to do.")
