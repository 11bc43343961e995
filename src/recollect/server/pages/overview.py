"""The first page: how much there is, how it grows, whether all is well, and what needs attention."""

from __future__ import annotations

from typing import Any

from recollect.memory import view_of
from recollect.server.pages.rows import cached, row
from recollect.server.pages.site import Done, Visit, action, page
from recollect.values.record import TIERS

_DAYS = 30


@page("/", "Overview", template="overview.html", nav="Overview")
def overview(visit: Visit) -> dict[str, Any]:
    memory = visit.memory
    now = view_of(memory).now()
    stats, at = cached(memory, "stats", lambda: memory.stats(days=_DAYS))
    recalled = visit.serving.recalls.daily(view_of(memory).place, _DAYS)
    growth: list[dict[str, Any]] = [{"label": f"{day.on:%Y-%m-%d}", "stored": day.total} for day in stats.daily]
    return {
        "total": stats.total,
        "live": stats.states.get("live", 0),
        "states": dict(stats.states),
        "kinds": dict(sorted(stats.kinds.items(), key=lambda pair: -pair[1])),
        "tiers": {tier: stats.tiers[tier] for tier in TIERS if stats.tiers.get(tier)},
        "agents": {name: number for name, number in sorted(stats.agents.items(), key=lambda pair: -pair[1]) if name},
        "shared": stats.agents.get("", 0),
        "embedded": stats.embedded,
        "bytes": stats.size_bytes,
        "unsaved": stats.unsaved,
        "growth": growth,
        "stored": sum(day["stored"] for day in growth),
        "most": max((day["stored"] for day in growth), default=0),
        "recalls": [{"label": day, "recalls": number} for day, number in recalled.items()],
        "recalled": sum(recalled.values()),
        "most_recalled": max(recalled.values()),
        "counted_at": at,
        "latest": [row(record, now) for record in memory.list(limit=6)],
        "workspaces": visit.workspaces,
        "workspace": memory.address.workspace,
        "preset": memory.preset.name,
    }


@page("/health", "Health", template="health.html")
def health(visit: Visit) -> dict[str, Any]:
    """Apart from the overview, because it reads everything: that comes after what is there at once."""
    memory = visit.memory
    report, at = cached(memory, "doctor", memory.doctor)
    findings = [
        {
            "problem": finding.problem,
            "severity": finding.severity,
            "count": finding.count,
            "advice": finding.advice,
            "examples": finding.examples,
            "memories": finding.problem not in ("corrupt", "audit log broken", "set-up", "not saved yet"),
            "all": visit.link("/memories", state="expired") if finding.problem == "expired" else "",
        }
        for finding in report.findings
    ]
    return {"memories": report.memories, "ok": report.ok, "findings": findings, "at": at}


@action("/undo", again="/memories")
def undo(visit: Visit) -> Done:
    """Of the toast after a change."""
    visit.memory.undo(visit.field("change") or None)
    return Done(visit.back(visit.link("/memories")), "Taken back.")
