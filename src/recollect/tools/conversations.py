"""Conversations as tools."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from recollect.facets.conversations import Conversation, Status
from recollect.memory import Memory
from recollect.tools.base import (
    COUNT,
    NUMBER,
    TEXT,
    TIME,
    YES,
    Arguments,
    Kind,
    Result,
    Tag,
    fields,
    many,
    perhaps,
    returns,
)
from recollect.values.record import Tier

_Id = Annotated[str, Meta(min_length=1, max_length=64, description="The conversation's id or its ref code.")]
_SHAPE: dict[str, dict[str, Any]] = {
    "id": TEXT,
    "ref_code": TEXT,
    "channel": TEXT,
    "title": TEXT,
    "status": TEXT,
    "started_at": TIME,
    "ended_at": perhaps(TIME),
}
_RETURNED = returns((), **_SHAPE)


def _fields(conversation: Conversation) -> dict[str, Any]:
    return {name: getattr(conversation, name) for name in _SHAPE}


class StartConversation(Arguments, frozen=True):
    name: ClassVar[str] = "start_conversation"
    title: ClassVar[str] = "Start a conversation"
    description: ClassVar[str] = "Start a conversation in a channel. It is active until it is made idle or archived."
    output: ClassVar[Result] = _RETURNED
    writes: ClassVar[bool] = True

    subject: Annotated[str, Meta(max_length=200, description="What it is about.")] = ""
    channel: Annotated[str | None, Meta(description="The name of the channel; the default one if left out.")] = None

    def run(self, memory: Memory) -> Result:
        return _fields(memory.conversations.start(self.subject, channel=self.channel))


class ListConversations(Arguments, frozen=True):
    name: ClassVar[str] = "list_conversations"
    title: ClassVar[str] = "List conversations"
    description: ClassVar[str] = "List conversations, the newest first. Archived ones are left out unless asked for."
    output: ClassVar[Result] = returns(count=COUNT, conversations=many(fields((), **_SHAPE)))

    status: Annotated[Status | None, Meta(description="Only those that are active, idle or archived.")] = None
    channel: Annotated[str | None, Meta(description="Only those of this channel.")] = None
    contains: Annotated[str, Meta(max_length=200, description="A text in the title.")] = ""
    limit: Annotated[int, Meta(ge=1, le=100, description="At most so many.")] = 20

    def run(self, memory: Memory) -> Result:
        conversations = memory.conversations.list(
            status=self.status, channel=self.channel, contains=self.contains, limit=self.limit
        )
        return {"count": len(conversations), "conversations": [_fields(conversation) for conversation in conversations]}


class GetConversation(Arguments, frozen=True):
    name: ClassVar[str] = "get_conversation"
    title: ClassVar[str] = "Get a conversation"
    description: ClassVar[str] = "Look a conversation up by its id or ref code."
    output: ClassVar[Result] = _RETURNED

    id: _Id

    def run(self, memory: Memory) -> Result:
        return _fields(memory.conversations.get(self.id))


class IdleConversation(Arguments, frozen=True):
    name: ClassVar[str] = "idle_conversation"
    title: ClassVar[str] = "End a conversation"
    description: ClassVar[str] = (
        "End a conversation that is active. What matters of it is kept as memories; what was for it alone is cleared."
    )
    output: ClassVar[Result] = _RETURNED
    writes: ClassVar[bool] = True
    destructive: ClassVar[bool] = True

    id: _Id

    def run(self, memory: Memory) -> Result:
        return _fields(memory.conversations.idle(self.id))


class ArchiveConversation(Arguments, frozen=True):
    name: ClassVar[str] = "archive_conversation"
    title: ClassVar[str] = "Archive a conversation"
    description: ClassVar[str] = (
        "Put a conversation away, so that lists leave it out. One that is active is ended first."
    )
    output: ClassVar[Result] = _RETURNED
    writes: ClassVar[bool] = True
    destructive: ClassVar[bool] = True

    id: _Id

    def run(self, memory: Memory) -> Result:
        return _fields(memory.conversations.archive(self.id))


class Observe(Arguments, frozen=True):
    name: ClassVar[str] = "observe"
    title: ClassVar[str] = "Note an observation"
    description: ClassVar[str] = (
        "Keep something that you have learnt while working, beside your answer: a fact, preference, decision, task or "
        "failure, as one full sentence with names and dates. What is known already is not stored again. Never secrets."
    )
    output: ClassVar[Result] = returns(id=TEXT, kind=TEXT, importance=NUMBER, tier=TEXT, known_already=YES)
    writes: ClassVar[bool] = True

    content: Annotated[str, Meta(min_length=1, max_length=10_000, description="One statement.")]
    kind: Annotated[Kind, Meta(description="fact, preference, procedure, decision, task or error.")] = "fact"
    importance: Annotated[Annotated[float, Meta(ge=0.0, le=1.0)] | None, Meta(description="From 0 to 1.")] = None
    scope: Annotated[Tier | None, Meta(description="How far it is seen; by its kind if left out.")] = None
    tags: Annotated[Annotated[list[Tag], Meta(max_length=5)] | None, Meta(description="Words to find it by.")] = None

    def run(self, memory: Memory) -> Result:
        record = memory.conversations.observe(
            self.content, kind=self.kind, importance=self.importance, tier=self.scope, tags=self.tags
        )
        return {
            "id": record.id,
            "kind": record.kind,
            "importance": round(record.importance, 4),
            "tier": record.tier,
            "known_already": record.access_count > 0,
        }
