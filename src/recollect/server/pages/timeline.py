"""The timeline: what was known at a time, how it came to be, and what the days to come will do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from recollect.memory import Memory, view_of
from recollect.server.pages.rows import cached, find_record, hit_row, row
from recollect.server.pages.site import Visit, page
from recollect.values.errors import InputError
from recollect.values.record import STATES, Record, moved

_BACK = 90
"""Days that the chart and the slider go back."""
_AHEAD = 30
_SIZE = 30
_MOST_EVENTS = 200
_AT_ONCE = 20_000
"""Memories up to which the days to come are looked at without being asked to: beyond it that takes seconds."""


@page("/timeline", "Timeline", template="timeline.html", nav="Timeline")
def timeline(visit: Visit) -> dict[str, Any]:
    memory = visit.memory
    now = view_of(memory).now()
    stats, _ = cached(memory, "timeline", lambda: memory.stats(days=_BACK))
    days: list[dict[str, Any]] = [
        {"label": f"{day.on:%Y-%m-%d}", **{s: day.states.get(s, 0) for s in STATES}} for day in stats.daily
    ]
    data: dict[str, Any] = {
        "days": days,
        "most": max(sum(day[state] for state in STATES) for day in days),
        "states": STATES,
        "back": 0,
        "most_back": _BACK,
        "q": visit.query("q"),
        "problem": "",
        "memories": [],
        "superseded": _superseded(memory, now),
        "total": stats.total,
    }
    try:
        then = _then(visit, now)
        data |= {"as_of": then, "day": f"{then:%Y-%m-%d}", "back": min(max((now - then).days, 0), _BACK)}
        data["memories"] = _live_then(memory, data["q"], then, now)
    except InputError as error:
        data |= {"as_of": now, "day": f"{now:%Y-%m-%d}", "problem": str(error)}
    data["ahead"] = _ahead(memory) if stats.total <= _AT_ONCE or visit.query("ahead") else None
    return data


def _then(visit: Visit, now: datetime) -> datetime:
    """The end of the day that was chosen: by its date, else by how many days ago it was."""
    typed = visit.query("as_of")
    if not typed:
        back = visit.number("back", 0, low=0, high=_BACK)
        return moved(now, -timedelta(days=back))
    try:
        day = datetime.fromisoformat(typed)
    except ValueError:
        raise InputError("as_of", "must be a date such as 2026-03-01") from None
    end = day.replace(tzinfo=day.tzinfo or UTC)
    return min(moved(end, timedelta(days=1)) if len(typed) == len("2026-03-01") else end, now)


def _live_then(memory: Memory, question: str, then: datetime, now: datetime) -> list[dict[str, Any]]:
    if question:
        return [hit_row(hit, now) for hit in memory.recall(question, as_of=then, limit=_SIZE, touch=False)]
    until = moved(then, timedelta(microseconds=1))
    records = memory.list(state=None, until=until, limit=2 * _SIZE)
    heirs = {record.superseded_by: _born(memory, record.superseded_by) for record in records if record.superseded_by}
    return [row(record, now) for record in records if _was_live(record, then, heirs)][:_SIZE]


def _born(memory: Memory, ident: str) -> datetime | None:
    heir = find_record(memory, ident)
    return heir.created_at if heir else None


def _was_live(record: Record, then: datetime, heirs: dict[str, datetime | None]) -> bool:
    if any(end is not None and end <= then for end in (record.archived_at, record.expires_at, record.valid_until)):
        return False
    if record.superseded_by is None:
        return True
    born = heirs[record.superseded_by]
    return born is not None and born > then


def _superseded(memory: Memory, now: datetime) -> list[dict[str, Any]]:
    """What was replaced lately, with what replaced it."""
    rows: list[dict[str, Any]] = []
    for record in memory.list(state="superseded", limit=10):
        heir = find_record(memory, record.superseded_by)
        rows.append({"before": row(record, now), "after": row(heir, now) if heir else None})
    return rows


def _ahead(memory: Memory) -> dict[str, Any]:
    simulation, _ = cached(memory, "ahead", lambda: memory.simulate(days=_AHEAD))
    return {
        "days": simulation.days,
        "live": simulation.live,
        "events": simulation.events[:_MOST_EVENTS],
        "number": len(simulation.events),
        "end": simulation.live[-1] if simulation.live else 0,
        "start": simulation.live[0] if simulation.live else 0,
    }
