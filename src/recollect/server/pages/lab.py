"""The recall lab: a question, what it brings up, why, and what another preset would have made of it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from recollect import presets
from recollect.evaluation import cases as evaluating
from recollect.memory import Memory, view_of
from recollect.server.pages.rows import explained, row, scale, seen_as
from recollect.server.pages.site import Done, Visit, action, page
from recollect.server.web import Answer
from recollect.values.errors import InputError

_FURTHER = 5
"""How many of those that just missed are shown."""


def judged_by(memory: Memory, name: str) -> Memory:
    """The same memories on the same store, ranked as another preset would. For reading only."""
    if name == memory.preset.name:
        return memory
    view, preset = view_of(memory), presets.load(name)
    embedding = view.embedding if preset.recall.embed else None
    return seen_as(memory, replace(view, preset=preset, embedding=embedding, caches={}, counts=False))


@page("/lab", "Recall lab", template="lab.html", nav="Recall lab")
def lab(visit: Visit) -> dict[str, Any]:
    own = visit.memory.preset.name
    names = list(dict.fromkeys([own, *presets.names()]))
    chosen = [visit.query("preset") or own, visit.query("against")]
    for name in filter(None, chosen):
        if name not in names:
            raise InputError("preset", f"must be one of {', '.join(names)}")
    question, limit = visit.query("q"), visit.number("limit", 8, high=50)
    why = visit.query("why_not")
    problem = ""
    sides: list[dict[str, Any]] = []
    try:
        sides = [_side(visit, name, question, limit, why) for name in chosen if name and question]
    except InputError as error:
        problem = str(error)
    seen: list[set[str]] = [{hit["memory"]["id"] for hit in side["hits"]} for side in sides]
    for at, side in enumerate(sides):
        others = {ident for other, ids in enumerate(seen) if other != at for ident in ids}
        for hit in side["hits"]:
            hit["only"] = len(sides) > 1 and hit["memory"]["id"] not in others
    return {
        "q": question,
        "limit": limit,
        "presets": names,
        "preset": chosen[0],
        "against": chosen[1],
        "why_not": why,
        "sides": sides,
        "problem": problem,
        "cases": visit.memory.cases.list(),
        "may_change": visit.caller.may("member"),
    }


def _side(visit: Visit, name: str, question: str, limit: int, why: str) -> dict[str, Any]:
    memory = judged_by(visit.memory, name)
    now = view_of(memory).now()
    hits = memory.recall(question, limit=limit, touch=False, why_not=why or None)
    more = memory.recall(question, limit=limit + _FURTHER, touch=False, min_relevance=0.0)
    hit_ids = {hit.memory.id for hit in hits}
    rows = [{"rank": at, "memory": row(hit.memory, now), **explained(hit)} for at, hit in enumerate(hits, 1)]
    missed = [row(hit.memory, now) | {"score": hit.score} for hit in more if hit.memory.id not in hit_ids]
    low, high = scale(rows)
    return {
        "preset": name,
        "hits": rows,
        "low": low,
        "high": high,
        "report": hits.report,
        "absence": hits.absence,
        "missed": missed[:_FURTHER],
    }


@page("/lab/cases", "Saved cases", template="lab.html")
def cases(visit: Visit) -> Answer:
    """A file for `recollect eval cases`."""
    content = evaluating.dump(visit.memory.cases.list())
    headers = {"content-disposition": 'attachment; filename="cases.jsonl"'}
    return Answer(content, media_type="application/x-ndjson", headers=headers)


@action("/lab/save", again="/lab")
def save(visit: Visit) -> Done:
    texts = [line for part in visit.field("texts").splitlines() if (line := part.strip())]
    typed = visit.field("limit", "10")
    limit = int(typed) if typed.isdecimal() and len(typed) < 5 else 0
    case = visit.memory.cases.save(visit.query("q"), ids=visit.fields("id"), texts=texts, limit=limit)
    query = {name: visit.query(name) for name in ("limit", "preset", "against")}
    number = len(visit.memory.cases.list())
    return Done(visit.link("/lab", q=case.question, **query), f"Saved. {number} in the file of cases.")


@action("/lab/remove", again="/lab")
def remove(visit: Visit) -> Done:
    visit.memory.cases.remove(visit.field("question"))
    return Done(visit.link("/lab"), "Removed from the cases.")
