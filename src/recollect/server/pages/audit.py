"""The audit log: every change and every refusal, searched, checked and taken along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.server.access.caller import Caller
from recollect.server.pages.site import Done, Visit, action, page
from recollect.server.web import Answer
from recollect.stores.audit import Entry
from recollect.values.errors import AccessError, InputError

_SIZE = 50
_PAGES = 200
"""How far back one can leaf; a search goes further."""
_EXPORTED = 1_000_000
_CHANGES = ("created", "changed", "deleted", "things_changed")


def sees_server(caller: Caller) -> bool:
    """Keys and people of all tenants are in one log: it is for whoever has all of them."""
    return caller.may("owner") and "tenant" not in caller.bound


@page("/audit", "Audit log", template="audit.html", nav="Audit log", group="Care")
def audit(visit: Visit) -> dict[str, Any]:
    filters = _filters(visit)
    number = visit.number("page", 1, high=_PAGES)
    data: dict[str, Any] = {
        "filters": filters,
        "page": number,
        "entries": [],
        "more": False,
        "problem": visit.refusal if visit.refused == "/audit/undo" else "",
        "logs": None,
        "sees_server": sees_server(visit.caller),
        "may_verify": visit.caller.may("admin"),
        "may_undo": visit.caller.may("member"),
    }
    try:
        entries = _matching(visit, filters, number * _SIZE + 1)
    except InputError as error:
        return {**data, "problem": str(error)}
    shown = entries[(number - 1) * _SIZE : number * _SIZE]
    data |= {"entries": [_entry_row(visit, entry) for entry in shown], "more": len(entries) > number * _SIZE}
    if visit.query("verify"):
        visit.caller.check("admin", "audit.verify")
        data["logs"] = visit.memory.audit.verify()
    return data


def _filters(visit: Visit) -> dict[str, str]:
    return {name: value for name in ("text", "action", "about", "entry") if (value := visit.query(name))}


def _matching(visit: Visit, filters: dict[str, str], limit: int) -> list[Entry]:
    log = visit.memory.audit
    conditions = {name: value for name, value in filters.items() if name != "entry"}
    log.search(**conditions, limit=1)  # which checks what was typed
    texts = (conditions["text"],) if "text" in conditions else ()
    if "entry" not in filters:
        return log.matching(texts, conditions.get("about", ""), limit, conditions.get("action", ""))
    entries = log.matching(texts, conditions.get("about", ""), _EXPORTED, conditions.get("action", ""))
    return [entry for entry in entries if entry.id == filters["entry"]]


def _entry_row(visit: Visit, entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "seq": entry.seq,
        "at": entry.at,
        "action": entry.action,
        "message": entry.message,
        "actor": entry.actor,
        "memories": [{"id": ident, "words": words} for ident, words in _few(visit.memory.audit.named(entry))],
        "undo": entry.action != "undo" and any(entry.meta.get(change) for change in _CHANGES),
        "hash": entry.hash,
    }


def _few(named: dict[str, str]) -> Sequence[tuple[str, str]]:
    return list(named.items())[:5]


@page("/audit/export", "Audit log", template="audit.html")
def export(visit: Visit) -> Answer:
    """All that was searched for, the newest first."""
    entries = _matching(visit, _filters(visit), _EXPORTED)
    if visit.query("kind", "ndjson") == "json":
        content, media, name = msgspec.json.encode(entries), "application/json", "audit.json"
    else:
        content = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
        media, name = "application/x-ndjson", "audit.ndjson"
    return Answer(content, media_type=media, headers={"content-disposition": f'attachment; filename="{name}"'})


@page("/audit/server", "The server's log", rank="owner", template="audit_server.html")
def server(visit: Visit) -> dict[str, Any]:
    if not sees_server(visit.caller):
        raise AccessError(f"tenant: you are bound to {visit.caller.bound['tenant']}, and this is of all tenants")
    number = visit.number("page", 1, high=_PAGES)
    text = visit.query("text").casefold()
    entries = [
        entry
        for entry in visit.serving.accounts.entries(_EXPORTED)
        if text in f"{entry.action} {entry.message} {entry.meta.get('about', '')}".casefold()
    ]
    return {
        "text": visit.query("text"),
        "page": number,
        "entries": entries[(number - 1) * _SIZE : number * _SIZE],
        "more": len(entries) > number * _SIZE,
    }


@action("/audit/undo", again="/audit")
def undo(visit: Visit) -> Done:
    done = visit.memory.undo(visit.field("change") or None)
    return Done(visit.back(visit.link("/audit")), "Taken back.", done.id)
