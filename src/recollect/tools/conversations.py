"""Conversations as tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from recollect.facets.conversations import Conversation, Status
from recollect.memory import Memory
from recollect.tools.base import (
    COUNT,
    NUMBER,
    TEXT,
    TIME,
    YES,
    Kind,
    Result,
    Tag,
    ToolCall,
    fields,
    many,
    nullable,
    returns,
    tool,
)
from recollect.values.record import Record, Tier

_Id = Annotated[str, Meta(min_length=1, max_length=64, description="The conversation's id or its ref code.")]
_SHAPE: dict[str, dict[str, Any]] = {
    "id": TEXT,
    "ref_code": TEXT,
    "channel": TEXT,
    "title": TEXT,
    "status": TEXT,
    "started_at": TIME,
    "ended_at": nullable(TIME),
}
_RETURNED = returns((), **_SHAPE)


def _renamed(new: str, old: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The documents have other words for some arguments."""
    return {(new if name == old else name): value for name, value in arguments.items()}


def _with_title(arguments: dict[str, Any], memory: Memory) -> dict[str, Any]:
    return _renamed("title", "subject", arguments)


def _with_tier(arguments: dict[str, Any], memory: Memory) -> dict[str, Any]:
    return _renamed("tier", "scope", arguments)


def _conversation_fields(conversation: Conversation, call: ToolCall) -> Result:
    return {name: getattr(conversation, name) for name in _SHAPE}


tool(
    "start_conversation",
    "conversations.start",
    "Start a conversation",
    "Start a conversation in a channel. It is active until it is made idle or archived.",
    offer={
        "subject": (Annotated[str, Meta(max_length=200, description="What it is about.")], ""),
        "channel": Annotated[str | None, Meta(description="The name of the channel; the default one if left out.")],
    },
    output=_RETURNED,
    prepare=_with_title,
)(_conversation_fields)


@tool(
    "list_conversations",
    "conversations.list",
    "List conversations",
    "List conversations, the newest first. Archived ones are left out unless asked for.",
    offer={
        "status": Annotated[Status | None, Meta(description="Only those that are active, idle or archived.")],
        "channel": Annotated[str | None, Meta(description="Only those of this channel.")],
        "contains": (Annotated[str, Meta(max_length=200, description="A text in the title.")], ""),
        "limit": (Annotated[int, Meta(ge=1, le=100, description="At most so many.")], 20),
    },
    output=returns(count=COUNT, conversations=many(fields((), **_SHAPE))),
)
def _several(conversations: Sequence[Conversation], call: ToolCall) -> Result:
    return {"count": len(conversations), "conversations": [_conversation_fields(each, call) for each in conversations]}


tool(
    "get_conversation",
    "conversations.get",
    "Get a conversation",
    "Look a conversation up by its id or ref code.",
    offer={"id": _Id},
    output=_RETURNED,
)(_conversation_fields)
tool(
    "idle_conversation",
    "conversations.end",
    "End a conversation",
    "End a conversation that is active. What matters of it is kept as memories; what was for it alone is cleared.",
    offer={"id": _Id},
    output=_RETURNED,
)(_conversation_fields)
tool(
    "archive_conversation",
    "conversations.archive",
    "Archive a conversation",
    "Put a conversation away, so that lists leave it out. One that is active is ended first.",
    offer={"id": _Id},
    output=_RETURNED,
)(_conversation_fields)


@tool(
    "observe",
    "conversations.observe",
    "Note an observation",
    "Keep something that you have learnt while working, beside your answer: a fact, preference, decision, task or "
    "failure, as one full sentence with names and dates. What is known already is not stored again. Never secrets.",
    offer={
        "content": Annotated[str, Meta(min_length=1, max_length=10_000, description="One statement.")],
        "kind": (Annotated[Kind, Meta(description="fact, preference, procedure, decision, task or error.")], "fact"),
        "importance": Annotated[Annotated[float, Meta(ge=0.0, le=1.0)] | None, Meta(description="From 0 to 1.")],
        "scope": Annotated[Tier | None, Meta(description="How far it is seen; by its kind if left out.")],
        "tags": Annotated[Annotated[list[Tag], Meta(max_length=5)] | None, Meta(description="Words to find it by.")],
    },
    output=returns(id=TEXT, kind=TEXT, importance=NUMBER, tier=TEXT, known_already=YES),
    prepare=_with_tier,
)
def _observed(record: Record, call: ToolCall) -> Result:
    return {
        "id": record.id,
        "kind": record.kind,
        "importance": round(record.importance, 4),
        "tier": record.tier,
        "known_already": record.access_count > 0,
    }
