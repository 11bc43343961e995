"""Knowledge: the tenant's documents, who may search them, and what they answer."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from recollect.facets.knowledge.documents import inside, place_of, thing_of
from recollect.facets.knowledge.searching import ALLOWED
from recollect.memory import Memory, view_of
from recollect.server.pages.site import Done, Visit, action, page
from recollect.values.errors import InputError

_MOST = 500
_PASSAGES = 200
_STATUSES = ("published", "draft")
_FORMATS = ("md", "txt", "html")
_LONGEST_NAME = 200
WORD = "remove"


@page("/knowledge", "Knowledge", template="knowledge.html", nav="Knowledge", group="Places")
def knowledge(visit: Visit) -> dict[str, Any]:
    base = visit.memory.knowledge
    everything = base.list()
    filters = {name: value for name in ("category", "status", "contains") if (value := visit.query(name))}
    data: dict[str, Any] = {
        "q": visit.query("q"),
        "filters": filters,
        "statuses": _STATUSES,
        "formats": _FORMATS,
        "categories": sorted({doc.category for doc in everything}),
        "total": len(everything),
        "documents": [],
        "passages": [],
        "problem": "",
        "new": bool(visit.query("new")) or visit.refused == "/knowledge/add",
        "may_change": visit.caller.may("admin") and view_of(visit.memory).whole,
        "access": _access(visit.memory) if visit.caller.may("admin") else [],
    }
    try:
        documents = base.list(**filters)  # type: ignore[arg-type]
        data["documents"] = documents[-_MOST:][::-1]
        if data["q"]:
            wanted = [filters["category"]] if "category" in filters else None
            data["passages"] = base.search(data["q"], categories=wanted, limit=10)
    except InputError as error:
        data["problem"] = str(error)
    return data


def _access(memory: Memory) -> list[dict[str, Any]]:
    """What each agent may search: those that have memories here, and those that were given a rule."""
    view = view_of(memory)
    ruled = {item.key for item in view.store.shelf(place_of(view), ALLOWED)}
    names = sorted(ruled | {name for name in memory.stats().agents if name})
    return [{"agent": name, "categories": memory.knowledge.allowed(name)} for name in names]


@page("/knowledge/{id}", "Document", template="document.html")
def document(visit: Visit) -> dict[str, Any]:
    doc = visit.memory.knowledge.get(visit.parts["id"])
    view, place = inside(view_of(visit.memory)), place_of(view_of(visit.memory))
    ids = thing_of(view, place, doc.id).body["chunks"]
    records = {record.id: record for record in view.store.get(place, ids[:_PASSAGES])}
    passages = [
        {
            "id": record.id,
            "text": record.text,
            "trail": record.metadata.get("trail", ()),
            "where": record.metadata.get("where", ""),
        }
        for ident in ids[:_PASSAGES]
        if (record := records.get(ident))
    ]
    return {
        "document": doc,
        "passages": passages,
        "word": WORD,
        "may_change": visit.caller.may("admin") and view_of(visit.memory).whole,
    }


@action("/knowledge/add", rank="admin", again="/knowledge")
def add(visit: Visit) -> Done:
    file, text = visit.file("file"), visit.field("text")
    fields: dict[str, Any] = {
        "title": visit.field("title").strip() or None,
        "category": visit.field("category").strip() or None,
        "status": "published" if visit.field("publish") else None,
    }
    if file is not None and text.strip():
        raise InputError("file", "or a text must be given, and not both")
    base = visit.memory.knowledge
    if file is None:
        if not text.strip():
            raise InputError("text", "is empty: choose a file, or paste a text")
        added = base.add(text, format=visit.field("format", "md"), **fields)  # type: ignore[arg-type]
    else:
        # Only the last part of the name: it comes from another machine, and must not lead anywhere on this one.
        name = Path(file.filename.replace("\\", "/")).name
        if not name or name.startswith(".") or "\0" in name or len(name.encode()) > _LONGEST_NAME:
            raise InputError("file", f"must have a name of at most {_LONGEST_NAME} bytes, such as guide.pdf")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_bytes(file.content)
            added = base.add(path=path, source=name, **fields)
    return Done(visit.link(f"/knowledge/{added.id}"), f"Added “{added.title}”, in {added.chunks} passages.")


@action("/knowledge/{id}/publish", rank="admin", again="/knowledge/{id}")
def publish(visit: Visit) -> Done:
    done = visit.memory.knowledge.publish(visit.parts["id"])
    return Done(visit.link(f"/knowledge/{done.id}"), "Published: agents find it from now on.")


@action("/knowledge/{id}/withdraw", rank="admin", again="/knowledge/{id}")
def withdraw(visit: Visit) -> Done:
    done = visit.memory.knowledge.withdraw(visit.parts["id"])
    return Done(visit.link(f"/knowledge/{done.id}"), "Withdrawn: it is a draft again, and nobody finds it.")


@action("/knowledge/{id}/remove", rank="admin", again="/knowledge/{id}")
def remove(visit: Visit) -> Done:
    visit.confirm(WORD)
    receipt = visit.memory.knowledge.remove(visit.parts["id"], reason=visit.field("reason").strip() or None)
    message = "Removed for good" if receipt.erased else f"Removed, but not from the whole disk yet: {receipt.note}"
    return Done(visit.link("/knowledge"), f"{message}, with {receipt.count} passages.")


@action("/knowledge/allow", rank="admin", again="/knowledge")
def allow(visit: Visit) -> Done:
    agent, how = visit.field("agent").strip(), visit.field("how")
    if how not in ("all", "some"):
        raise InputError("how", "must be all or some")
    chosen = [category for part in visit.field("categories").split(",") if (category := part.strip())]
    visit.memory.knowledge.allow(agent, None if how == "all" else chosen)
    if how == "all":
        return Done(visit.link("/knowledge"), f"{agent} may search every category.")
    return Done(visit.link("/knowledge"), f"{agent} may search {', '.join(chosen) or 'nothing'}.")
