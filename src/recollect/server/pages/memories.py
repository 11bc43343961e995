"""Memories: look through them, search, store, and change many at once."""

from __future__ import annotations

from typing import Any

from recollect.facets.scratchpad import seen_notes
from recollect.memory import Memory, view_of
from recollect.recall.hits import Hits
from recollect.server.pages.rows import cached, hit_row, note_row, row
from recollect.server.pages.site import Done, Visit, action, page
from recollect.values.errors import InputError, NotFoundError
from recollect.values.record import ROLES, STATES, TIERS

_SIZE = 50
_FILTERS = ("tier", "kind", "source", "tag", "role", "since", "until")
_WORDS = 60
"""Letters that are looked for inside texts where recall does not look: in what is not live."""


@page("/memories", "Memories", template="memories.html", nav="Memories")
def memories(visit: Visit) -> dict[str, Any]:
    data = _search_form(visit)
    try:
        results = _search_results(visit, data)
    except (InputError, NotFoundError) as error:  # beside the form, which is still there to be corrected
        nothing: list[Any] = []
        results = {"memories": nothing, "next": None, "report": "", "problem": str(error)}
    return {**data, **results}


def _search_form(visit: Visit) -> dict[str, Any]:
    state = visit.query("state", "live") or "live"
    filters = {name: value for name in _FILTERS if (value := visit.query(name))}
    if state != "live":
        filters["state"] = state
    if visit.query("order") == "oldest":
        filters["order"] = "oldest"
    return {
        "q": visit.query("q"),
        "filters": filters,
        "chosen": visit.chosen,
        "after": visit.query("after"),
        "new": bool(visit.query("new")) or visit.refused == "/memories/new",
        "tiers": TIERS,
        "states": STATES,
        "roles": ROLES,
        "may_change": visit.caller.may("member"),
        "notes": _notes(visit, visit.query("q"), filters),
    }


def _search_results(visit: Visit, data: dict[str, Any]) -> dict[str, Any]:
    memory, query = visit.memory, data["q"]
    now = view_of(memory).now()
    conditions: dict[str, Any] = {name: data["filters"].get(name) for name in _FILTERS}
    conditions["conversation"] = visit.chosen.get("conversation")
    state = data["filters"].get("state", "live")
    results = {"next": None, "report": "", "problem": ""}
    if query and state == "live":
        hits, report = _searched(memory, query, conditions)
        return {**results, "memories": [hit_row(hit, now) for hit in hits], "report": report}
    records = memory.list(
        state=None if state == "all" else state,  # type: ignore[arg-type]
        newest_first="order" not in data["filters"],
        limit=_SIZE + 1,
        contains=query[:_WORDS] or None,
        after=data["after"] or None,
        **conditions,  # type: ignore[arg-type]
    )
    following = records[_SIZE - 1].id if len(records) > _SIZE else None
    return {**results, "memories": [row(record, now) for record in records[:_SIZE]], "next": following}


def _searched(memory: Memory, query: str, conditions: dict[str, Any]) -> tuple[Hits, str]:
    """By recall. Whoever is still typing means words that begin like the last one."""
    hits = memory.recall(query, limit=_SIZE, touch=False, min_relevance=0.0, **conditions)
    if hits or not query[-1:].isalnum():
        return hits, hits.report
    begun = memory.recall(f"{query}*", limit=_SIZE, touch=False, min_relevance=0.0, **conditions)
    return begun, f"with words that begin like “{query.split()[-1]}”" if begun else hits.report


def _notes(visit: Visit, query: str, filters: dict[str, str]) -> list[dict[str, Any]]:
    """Notes of the conversation that was chosen, or of all where its tier is: to be read here, changed by agents only.

    A note has no kind, tag or source, so that it meets no other filter.
    """
    conversation = visit.chosen.get("conversation")
    tier = filters.get("tier", "conversation" if conversation else "")
    if tier != "conversation" or filters.keys() - {"tier", "order"} or visit.query("after"):
        return []
    notes = [note_row(item) for item in seen_notes(view_of(visit.memory), conversation)]
    meant = [note for note in notes if query.casefold() in f"{note['key']}\n{note['text']}".casefold()]
    return meant[:_SIZE]


@page("/memories/known", "What can be chosen", template="known.html")
def filter_choices(visit: Visit) -> dict[str, Any]:
    """Suggestions for the filters. Apart, because counting everything takes longer than showing a page of it."""
    stats, _ = cached(visit.memory, "facets", visit.memory.stats)
    sources, _ = cached(visit.memory, "sources", lambda: _sources(visit.memory))
    talks = visit.memory.conversations.list(limit=50)
    return {
        "kinds": sorted(stats.kinds),
        "sources": sources,
        "agents": sorted(name for name in stats.agents if name),
        "conversations": [{"id": talk.id, "title": talk.title} for talk in talks],
    }


def _sources(memory: Memory) -> list[str]:
    view = view_of(memory)
    return sorted({record.source for record in view.store.scan(view.where(state=None), whole=False) if record.source})


def fields_of(visit: Visit) -> dict[str, Any]:
    """What the form of a memory says, apart from its content."""
    typed = visit.field("importance").strip()
    try:
        importance = float(typed) if typed else None
    except ValueError:
        raise InputError("importance", "must be a number from 0 to 1, such as 0.5") from None
    tags = [tag for part in visit.field("tags").split(",") if (tag := part.strip())]
    return {
        "kind": visit.field("kind").strip() or None,
        "importance": importance,
        "tags": tags,
        "source": visit.field("source").strip() or None,
    }


@action("/memories/new", again="/memories")
def create(visit: Visit) -> Done:
    fields = fields_of(visit)
    stored = visit.memory.remember(
        visit.field("content"),
        kind=fields["kind"],
        importance=fields["importance"],
        tags=fields["tags"] or None,
        source=fields["source"],
        tier=visit.field("tier") or None,  # type: ignore[arg-type]
    )
    here = visit.link("/memories")
    if stored.access_count:  # of the first storing there is nothing to undo
        return Done(here, "This was remembered already; it counts as said once more.")
    return Done(
        here, "Remembered." if stored.saved else "Remembered, but not on the disk yet.", change(visit, stored.id)
    )


def change(visit: Visit, ident: str) -> str | None:
    """The audit entry of what was just done to a memory."""
    entries = visit.memory.audit.search(about=ident, limit=1)
    return entries[0].id if entries else None


def _several(number: int) -> str:
    return "1 memory" if number == 1 else f"{number:,} memories"


@action("/memories/bulk", again="/memories")
def bulk(visit: Visit) -> Done:
    ids, chosen, here = visit.fields("id"), visit.field("do"), visit.back(visit.link("/memories"))
    if not ids:
        raise InputError("id", "choose at least one memory first")
    if chosen == "archive":
        done = visit.memory.archive(ids, reason=visit.field("reason").strip() or None)
        return Done(here, f"Archived {_several(len(done))}.", change(visit, ids[0]))
    if chosen == "restore":
        done = visit.memory.restore(ids)
        return Done(here, f"Restored {_several(len(done))}.", change(visit, ids[0]))
    if chosen not in ("forget", "erase"):
        raise InputError("do", "must be archive, restore, forget or erase")
    visit.confirm(chosen)
    return removed(visit, ids, erase=chosen == "erase", after=here)


def removed(visit: Visit, ids: list[str], *, erase: bool, after: str) -> Done:
    receipt = visit.memory.forget(ids, reason=visit.field("reason").strip() or None, erase=erase)
    if erase:
        data = {"receipt": receipt, "next": after}
        return Done(after, "Erased", show=data, template="receipt.html")
    return Done(after, f"Forgot {_several(receipt.count)}.", receipt.entries[0] if receipt.entries else None)
