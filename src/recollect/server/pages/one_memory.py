"""A memory: all that is known of it, its versions, why it is recalled or not, and what was done to it."""

from __future__ import annotations

import contextlib
import difflib
import re
from typing import Any, cast
from urllib.parse import quote

import msgspec

from recollect.memory import view_of
from recollect.server.pages.memories import change, fields_of, removed
from recollect.server.pages.rows import explained, row, scale
from recollect.server.pages.site import Done, Visit, action, page
from recollect.values.errors import InputError, NotFoundError, RecollectError
from recollect.values.record import Record

_AROUND = 3
_ENTRIES = 20
_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_LONGEST = 20_000
"""Letters of two versions that are compared; beyond it that would take too long."""
_VALIDITY = ("valid_from", "valid_until")
_WHOLE = (
    "lifetime",
    "references",
    "metadata",
    "accessed_at",
    "expires_at",
    "archived_at",
    "embedding_model",
    *_VALIDITY,
)
_FIELDS = ("kind", "tier", "importance", "role", "source", "tags", "references", "metadata", "expires_at", *_VALIDITY)


@page("/memories/{id}", "Memory", template="memory.html")
def memory(visit: Visit) -> dict[str, Any]:
    view, ident = visit.memory, visit.parts["id"]
    diagnosis = view.diagnose(ident)
    data: dict[str, Any] = {
        "id": ident,
        "diagnosis": diagnosis,
        "entries": view.audit.search(about=ident, limit=_ENTRIES),
        "may_change": visit.caller.may("member"),
    }
    if diagnosis.status == "unknown":
        raise NotFoundError(f"memory {ident}: {diagnosis.reason}")
    if diagnosis.status == "forgotten":
        return {**data, "memory": None}
    record = view.get(ident)
    versions = view.history(ident)
    return {
        **data,
        "memory": _whole(record, view_of(view).now()),
        "versions": _versions(versions, view_of(view).now()),
        "referred": _referred(visit, record),
        "around": _around(visit, record),
        "related": _related(visit, record) if visit.query("related") else None,
        "asked": _try_question(visit, record),
    }


def _referred(visit: Visit, record: Record) -> list[dict[str, str]]:
    """What it refers to: memories, and the conversation that it was kept from."""
    view = visit.memory
    existing = {referred.id for referred in view_of(view).get(list(record.references))}
    return [
        {"id": ident, "name": ident[-8:], "address": visit.link(f"/memories/{quote(ident, safe='')}")}
        if ident in existing
        else _talk(visit, ident)
        for ident in record.references
    ]


def _talk(visit: Visit, ident: str) -> dict[str, str]:
    """A conversation, which may never have been started: then it is what its memories say."""
    address = visit.link("/memories", conversation=ident)
    with contextlib.suppress(RecollectError):
        talk = visit.memory.conversations.get(ident)
        title = talk.title or "untitled"
        page = visit.link(f"/conversations/{quote(talk.id, safe='')}")
        return {"id": ident, "name": f"the conversation {title}", "address": page}
    if visit.memory.list(conversation=ident, state=None, limit=1):
        return {"id": ident, "name": f"the conversation {ident}", "address": address}
    return {"id": ident, "name": ident[-8:], "address": visit.link(f"/memories/{quote(ident, safe='')}")}


def _whole(record: Record, now: Any) -> dict[str, Any]:
    """With what a list leaves out. The vector is told by its size: nobody reads its numbers."""
    values = record.floats
    return {
        **row(record, now),
        "text": record.text,
        "content": record.content,
        "editable": record.content if isinstance(record.content, str) else _pretty(record.content),
        "json": not isinstance(record.content, str),
        "tenant": record.address.tenant,
        "workspace": record.address.workspace,
        **{name: getattr(record, name) for name in _WHOLE},
        "metadata_text": _pretty(record.metadata) if record.metadata else "",
        "dimensions": len(values) if values is not None else 0,
        "intact": record.digest() == record.checksum,
    }


def _pretty(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _versions(records: list[Record], now: Any) -> list[dict[str, Any]]:
    """The newest first, each with how it differs from the one before."""
    rows: list[dict[str, Any]] = []
    for at, record in enumerate(records):
        entry: dict[str, Any] = {**row(record, now), "number": at + 1, "before": [], "after": [], "changes": []}
        if at:
            before = records[at - 1]
            entry["before"], entry["after"] = compared(before.text, record.text)
            entry["changes"] = [
                {"field": name, "before": _shown(old), "after": _shown(new)}
                for name in _FIELDS
                if (old := getattr(before, name)) != (new := getattr(record, name))
            ]
        rows.append(entry)
    return rows[::-1]


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, cast("tuple[Any, ...]", value))) or "none"
    return "none" if value in (None, {}) else str(value)


def compared(before: str, after: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both texts in pieces, each with whether it is only on that side."""
    if len(before) + len(after) > _LONGEST:
        return [(before, False)], [(after, False)]
    old, new = _WORD.findall(before), _WORD.findall(after)
    sides: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = ([], [])
    for what, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for side, words in zip(sides, (old[a:b], new[c:d]), strict=True):
            if words:
                side.append(("".join(words), what != "equal"))
    return sides


def _around(visit: Visit, record: Record) -> dict[str, Any] | None:
    """What was stored before and after it in its conversation."""
    talk = record.address.conversation
    if talk is None:
        return None
    now = view_of(visit.memory).now()
    before, after = (
        visit.memory.list(conversation=talk, state=None, after=record.id, newest_first=newest, limit=_AROUND)
        for newest in (True, False)
    )
    return {
        "conversation": talk,
        "before": [row(neighbour, now) for neighbour in before[::-1]],
        "after": [row(neighbour, now) for neighbour in after],
    }


def _related(visit: Visit, record: Record) -> list[dict[str, Any]]:
    now = view_of(visit.memory).now()
    hits = visit.memory.query({"references": [record.id], "sort_by": "newest", "limit": 50})
    return [row(hit.memory, now) for hit in hits]


def _try_question(visit: Visit, record: Record) -> dict[str, Any] | None:
    """What a question that somebody tries makes of this memory."""
    question = visit.query("q")
    if not question:
        return None
    hits = visit.memory.recall(question, touch=False, why_not=record.id)
    rank = next((at for at, hit in enumerate(hits) if hit.memory.id == record.id), None)
    explanation = explained(hits[rank]) if rank is not None else None
    return {
        "q": question,
        "rank": None if rank is None else rank + 1,
        "of": len(hits),
        "explained": explanation,
        "scale": scale([explanation]) if explanation else None,
        "reason": hits.absence.reason if hits.absence else "",
    }


def _here(visit: Visit, ident: str) -> str:
    return visit.link(f"/memories/{ident}")


@action("/memories/{id}/revise", again="/memories/{id}")
def revise(visit: Visit) -> Done:
    """Only what is not as it was: a field that stays need not be checked again."""
    record = visit.memory.get(visit.parts["id"])
    content: Any = visit.field("content")
    if not isinstance(record.content, str):
        try:
            content = msgspec.json.decode(content)
        except msgspec.DecodeError as error:
            raise InputError("content", f"must be JSON, as it was: {error}") from None
    fields = fields_of(visit)
    wanted: dict[str, Any] = {"content": content, **fields}
    changed = {
        name: value
        for name, value in wanted.items()
        if value is not None and value != (list(record.tags) if name == "tags" else getattr(record, name))
    }
    if not changed:
        raise InputError("content", "nothing was changed")
    version = visit.memory.revise(record.id, **changed)
    return Done(_here(visit, version.id), "Saved as a new version.", change(visit, version.id))


@action("/memories/{id}/archive", again="/memories/{id}")
def archive(visit: Visit) -> Done:
    ident = visit.parts["id"]
    visit.memory.archive(ident, reason=visit.field("reason").strip() or None)
    return Done(_here(visit, ident), "Archived: it is kept, and not recalled any more.", change(visit, ident))


@action("/memories/{id}/restore", again="/memories/{id}")
def restore(visit: Visit) -> Done:
    ident = visit.parts["id"]
    visit.memory.restore(ident)
    return Done(_here(visit, ident), "Restored.", change(visit, ident))


@action("/memories/{id}/forget", again="/memories/{id}")
def forget(visit: Visit) -> Done:
    erase = visit.field("do") == "erase"
    if erase:
        visit.confirm("erase")
    return removed(visit, [visit.parts["id"]], erase=erase, after=visit.back(visit.link("/memories")))
