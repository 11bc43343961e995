"""Review: what could be put in order, each accepted or turned down by somebody who has looked at it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from recollect.memory import Memory, view_of
from recollect.server.pages.memories import change
from recollect.server.pages.one_memory import compared
from recollect.server.pages.rows import row, seen_as
from recollect.server.pages.site import Done, Visit, action, page
from recollect.server.reviews import Reviews
from recollect.values.errors import ConflictError, InputError
from recollect.verbs.deduplicate import Duplicates
from recollect.verbs.diagnose import secret_of

_MOST = 50
"""Suggestions of a kind that are shown at once."""
JOBS = ("decay", "early", "quota", "consolidate", "supersede")
"""Those that change memories; the others are nothing to look at one by one."""
_ELSEWHERE = ("duplicates", "secrets", "decayed", "unimportant", "possible changes")
"""What `doctor` counts and other parts of the page list."""
ERASE = "erase"
PROPOSAL = "proposal"
"""How the key of a possible change begins."""


def judging(memory: Memory) -> Memory:
    """The same memory, looked through for contradictions too: where somebody judges them, no preset need ask for it."""
    view = view_of(memory)
    rules = replace(view.preset.maintenance, supersede=True)
    return seen_as(memory, replace(view, preset=replace(view.preset, maintenance=rules)))


@page("/review", "Review", rank="admin", template="review.html", nav="Review", group="Care")
def review(visit: Visit) -> dict[str, Any]:
    memory = visit.memory
    rejected = Reviews(view_of(memory)).list()
    hidden = {rejection.key for rejection in rejected}
    suggested = suggestions(memory).items()
    shown = {
        name: [suggestion for suggestion in section if suggestion["key"] not in hidden] for name, section in suggested
    }
    return {
        **{name: section[:_MOST] for name, section in shown.items()},
        "numbers": {name: len(section) for name, section in shown.items()},
        "most": _MOST,
        "word": ERASE,
        "rejected": rejected if visit.query("hidden") else [],
        "hidden": len(rejected),
        "nothing": not any(shown.values()),
    }


def group_key(group: Duplicates) -> str:
    ids = sorted(record.id for record in (group.keep, *group.others))
    return f"double:{hashlib.blake2b(' '.join(ids).encode(), digest_size=8).hexdigest()}"


def _doubles(memory: Memory) -> list[dict[str, Any]]:
    now = view_of(memory).now()
    return [
        {
            "key": group_key(group),
            "told": f"{len(group.others) + 1} that say the same",
            "alike": group.alike,
            "keep": row(group.keep, now),
            "others": [row(other, now) for other in group.others],
        }
        for group in memory.deduplicate(dry_run=True)
    ]


def _secrets(memory: Memory) -> list[dict[str, Any]]:
    """Their keys do not say `secret:`, since an import would take what stands behind that for one."""
    view = view_of(memory)
    now, rows = view.now(), list[dict[str, Any]]()
    for record in view.scan(view.where(state=None)):
        rule = secret_of(view.preset, record)
        if rule:
            rows.append({"key": f"found:{record.id}", "told": "no secret", "rule": rule, "memory": row(record, now)})
    return rows


def _findings(memory: Memory) -> list[dict[str, Any]]:
    """Hidden only as long as there are as many: what grows is told again."""
    return [
        {
            "key": f"finding:{finding.problem}:{finding.count}",
            "told": f"{finding.problem}: {finding.count:,}",
            "problem": finding.problem,
            "severity": finding.severity,
            "count": finding.count,
            "advice": finding.advice,
            "examples": finding.examples,
            "memories": finding.problem in ("expired", "never recalled"),
        }
        for finding in memory.doctor().findings
        if finding.problem not in _ELSEWHERE
    ]


def planned(memory: Memory) -> list[dict[str, Any]]:
    """What the jobs would do, step by step, with the memories that it is about."""
    done = judging(memory).maintain(dry_run=True, jobs=JOBS)
    steps = [(report.job, step, step in report.held) for report in done.jobs for step in (*report.steps, *report.held)]
    ids = list(dict.fromkeys(ident for _, step, _ in steps for ident in (step.id, step.by) if ident))
    records = {record.id: record for record in view_of(memory).get(ids)} if ids else {}
    now = view_of(memory).now()

    def record_row(ident: str | None) -> dict[str, Any] | None:
        return row(records[ident], now) if ident in records else None

    return [
        {
            "key": f"{job}:{step.id}",
            "told": f"{job}: {step.change}, {step.why}",
            "job": job,
            "change": step.change,
            "why": step.why,
            "held": held,
            "memory": record_row(step.id),
            "by": record_row(step.by),
        }
        for job, step, held in steps
        if step.id in records
    ]


def _possible(memory: Memory) -> list[dict[str, Any]]:
    """Older memories that newer ones may have changed, as conversations told."""
    waiting = [proposal for proposal in memory.proposals() if proposal.act == "replace"]
    records = {record.id: record for record in view_of(memory).get([i for each in waiting for i in each.ids])}
    now = view_of(memory).now()
    changes: list[dict[str, Any]] = []
    for proposal in waiting:
        old, new = (row(records[ident], now) for ident in proposal.ids)
        before, after = compared(old["text"], new["text"])
        key = f"{PROPOSAL}:{proposal.id}"
        changes.append(
            {
                "key": key,
                "told": proposal.asked,
                "memory": old,
                "by": new,
                "before": before,
                "after": after,
                "perhaps": proposal.asked,
            }
        )
    return changes


def suggestions(memory: Memory) -> dict[str, list[dict[str, Any]]]:
    steps = planned(memory)
    contradictions = [step for step in steps if step["job"] == "supersede" and step["by"]]
    for step in contradictions:
        step["before"], step["after"] = compared(step["memory"]["text"], step["by"]["text"])
        step["perhaps"] = ""
    return {
        "secrets": _secrets(memory),
        "contradictions": [*contradictions, *_possible(memory)],
        "doubles": _doubles(memory),
        "steps": [step for step in steps if step["job"] != "supersede"],
        "findings": _findings(memory),
    }


def _here(visit: Visit) -> str:
    return visit.link("/review")


@action("/review/merge", rank="admin", again="/review")
def merge(visit: Visit) -> Done:
    """Found anew: the page may be old, and what it showed no longer so."""
    key = visit.field("key")
    groups = [group for group in visit.memory.deduplicate(dry_run=True) if group_key(group) == key]
    if not groups:
        raise ConflictError("these were changed meanwhile; look at the page again")
    visit.memory.deduplicate(groups=groups)
    return Done(_here(visit), f"Merged {len(groups[0].others) + 1} into one.", change(visit, groups[0].keep.id))


@action("/review/apply", rank="admin", again="/review")
def apply(visit: Visit) -> Done:
    """Some steps of the plan. Whoever chose them has seen them, so nothing is held back."""
    keys = visit.fields("key")
    if not keys:
        raise InputError("key", "choose at least one first")
    if visit.field("do") == "reject":
        return _rejected(visit, keys)
    chosen: dict[str, list[str]] = {}
    proposed = [key.partition(":")[2] for key in keys if key.startswith(f"{PROPOSAL}:")]
    for ident in proposed:
        visit.memory.confirm(ident)
    for key in keys:
        job, _, ident = key.partition(":")
        if job == PROPOSAL:
            continue
        if job not in JOBS:
            raise InputError("key", "is none of the plan")
        chosen.setdefault(job, []).append(ident)
    done = len(proposed)
    for job, ids in chosen.items():
        reports = judging(visit.memory).maintain(jobs=[job], only=ids, force=True).jobs
        busy = [report.note for report in reports if report.outcome == "busy"]
        if busy:
            raise ConflictError(f"{job}: {busy[0]}; try again")
        done += sum(len(report.steps) for report in reports)
    if not done:
        raise ConflictError("these were changed meanwhile; look at the page again")
    last = next(reversed(chosen.values()), ())
    undo = change(visit, last[0]) if last and len(chosen) == 1 and not proposed else None
    return Done(_here(visit), f"Done: {done:,} of {len(keys):,}.", undo)


@action("/review/erase", rank="admin", again="/review")
def erase(visit: Visit) -> Done:
    visit.confirm(ERASE)
    ident = visit.field("key").removeprefix("found:")
    receipt = visit.memory.forget(ident, reason="a secret", erase=True)
    data = {"receipt": receipt, "next": _here(visit)}
    return Done(_here(visit), "Erased", show=data, template="receipt.html")


@action("/review/reject", rank="admin", again="/review")
def reject(visit: Visit) -> Done:
    return _rejected(visit, visit.fields("key"))


def _rejected(visit: Visit, keys: Iterable[str]) -> Done:
    wanted = set(keys)
    for key in wanted:
        if key.startswith(f"{PROPOSAL}:"):
            visit.memory.dismiss(key.partition(":")[2])
    others = {key for key in wanted if not key.startswith(f"{PROPOSAL}:")}
    if wanted and not others:
        return Done(_here(visit), "Both stay as they are.")
    rejected = [
        suggestion
        for section in suggestions(visit.memory).values()
        for suggestion in section
        if suggestion["key"] in others
    ]
    if not rejected:
        raise ConflictError("there is no such suggestion any more; look at the page again")
    entry = Reviews(view_of(visit.memory)).reject((suggestion["key"], suggestion["told"]) for suggestion in rejected)
    number = "It is" if len(rejected) == 1 else f"{len(rejected):,} are"
    return Done(_here(visit), f"{number} left as it is, and not shown again.", entry.id if entry else None)


@action("/review/again", rank="admin", again="/review")
def again(visit: Visit) -> Done:
    entry = Reviews(view_of(visit.memory)).accept_again(visit.field("key"))
    return Done(_here(visit), "Shown again.", entry.id if entry else None)
