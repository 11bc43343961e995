"""Conversations and the channels they are in: find one, start one, read it, end it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from recollect.facets.conversations import Conversation
from recollect.facets.conversations.persist import TURN
from recollect.facets.scratchpad import seen_notes
from recollect.memory import view_of
from recollect.server.pages.rows import note_row, row
from recollect.server.pages.site import Done, Visit, action, page
from recollect.values.errors import InputError, NotFoundError

_SIZE = 50
_TURNS = 500
STATUSES = ("active", "idle", "archived")
_LABELS = {"active": "good", "idle": "", "archived": "archived"}
"""How the badge of each status looks."""


@page("/conversations", "Conversations", template="conversations.html", nav="Conversations", group="Places")
def conversations(visit: Visit) -> dict[str, Any]:
    filters = {name: value for name in ("q", "status", "channel") if (value := visit.query(name))}
    data: dict[str, Any] = {
        "filters": filters,
        "statuses": STATUSES,
        "channels": [channel.name for channel in visit.memory.channels.list()],
        "after": visit.query("after"),
        "new": bool(visit.query("new")) or visit.refused == "/conversations/start",
        "may_change": visit.caller.may("member"),
        "conversations": [],
        "looks": _LABELS,
        "next": None,
        "problem": "",
    }
    try:
        talks = visit.memory.conversations.list(
            status=filters.get("status"),  # type: ignore[arg-type]
            channel=filters.get("channel"),
            contains=filters.get("q", ""),
            limit=_SIZE + 1,
            after=data["after"] or None,
        )
    except (InputError, NotFoundError) as error:  # beside the form, which is still there to be corrected
        return {**data, "problem": str(error)}
    following = talks[_SIZE - 1].ref_code if len(talks) > _SIZE else None
    return {**data, "conversations": talks[:_SIZE], "next": following}


@page("/conversations/{id}", "Conversation", template="conversation.html")
def conversation(visit: Visit) -> dict[str, Any]:
    talk = visit.memory.conversations.get(visit.parts["id"])
    inside = visit.memory.at(channel=talk.channel, conversation=talk.id)
    now = view_of(inside).now()
    records = inside.list(conversation=talk.id, state=None, newest_first=False, limit=_TURNS + 1)
    shown = records[:_TURNS]
    facts = visit.memory.query({"references": [talk.id], "sort_by": "newest", "limit": 50})
    return {
        "conversation": talk,
        "looks": _LABELS,
        "turns": [row(record, now) for record in shown if record.kind == TURN],
        "memories": [row(record, now) for record in shown if record.kind != TURN],
        "more": len(records) > _TURNS,
        "kept": [row(hit.memory, now) for hit in facts],
        "notes": _notes(visit, talk),
        "may_change": visit.caller.may("member"),
    }


def _notes(visit: Visit, talk: Conversation) -> list[dict[str, Any]]:
    """Of everybody whom the view sees: whoever looks on wants to know whose a note is."""
    view = view_of(visit.memory)
    return [note_row(item) for item in seen_notes(view, talk.id)]


@action("/conversations/start", again="/conversations")
def start(visit: Visit) -> Done:
    title, channel = visit.field("title").strip(), visit.field("channel").strip()
    made = visit.memory.conversations.start(title, channel=channel or None)
    return Done(visit.link(f"/conversations/{made.ref_code}"), "Started.", _change(visit))


@action("/conversations/{id}/idle", again="/conversations/{id}")
def idle(visit: Visit) -> Done:
    """Not to be undone by a button: what matters of it was kept, and the turns are cleared on purpose."""
    done = visit.memory.conversations.end(visit.parts["id"])
    return Done(visit.link(f"/conversations/{done.ref_code}"), "Ended. What matters of it was kept.")


@action("/conversations/{id}/archive", again="/conversations/{id}")
def archive(visit: Visit) -> Done:
    before = visit.memory.conversations.get(visit.parts["id"]).status
    done = visit.memory.conversations.archive(visit.parts["id"])
    undo = _change(visit) if before == "idle" else None
    return Done(visit.link(f"/conversations/{done.ref_code}"), "Archived: it is out of the lists.", undo)


def _change(visit: Visit) -> str | None:
    entries = visit.memory.audit.search(action="conversation", limit=1)
    return entries[0].id if entries else None


@page("/channels", "Channels", template="channels.html", nav="Channels", group="Places")
def channels(visit: Visit) -> dict[str, Any]:
    return {
        "channels": visit.memory.channels.list(),
        "counts": Counter(talk.channel for talk in visit.memory.conversations.list(limit=1000)),
        "may_change": visit.caller.may("member"),
    }


@action("/channels/create", again="/channels")
def create_channel(visit: Visit) -> Done:
    name = visit.field("name").strip()
    visit.memory.channels.create(name, visit.field("description").strip())
    entries = visit.memory.audit.search(action="channel", limit=1)
    return Done(visit.link("/channels"), f"There is a channel {name} now.", entries[0].id if entries else None)
