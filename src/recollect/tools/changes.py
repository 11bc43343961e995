"""The verbs that change something as tools: remember, revise, forget, undo."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from recollect.facets.scratchpad import SHELF
from recollect.memory import Memory
from recollect.text import short_ids
from recollect.tools.base import (
    COUNT,
    NUMBER,
    TEXT,
    TIME,
    YES,
    Arguments,
    Id,
    Kind,
    Result,
    Tag,
    many,
    perhaps,
    returns,
)
from recollect.tools.verbs import listing_kinds
from recollect.values.errors import InputError

_Content = Annotated[str, Meta(min_length=1, max_length=10_000, description="What to remember: one fact.")]
_Tags = Annotated[
    Annotated[list[Tag], Meta(max_length=5)] | None,
    Meta(description="Words to find it by: letters, digits, '-' and '_', without spaces."),
]
_Importance = Annotated[
    Annotated[float, Meta(ge=0.0, le=1.0)] | None,
    Meta(description="How much it matters, from 0 to 1. Leave it out to have it judged from the words."),
]
_STORED = returns(id=TEXT, kind=TEXT, importance=NUMBER, expires_at=perhaps(TIME), known_already=YES)


class RememberTool(Arguments, frozen=True):
    name: ClassVar[str] = "remember"
    title: ClassVar[str] = "Remember"
    description: ClassVar[str] = (
        "Store one thing in your long-term memory, so that you know it in later conversations. Use it when the user "
        "asks you to remember something, and for stable facts, preferences, decisions and what you learned from "
        "mistakes. Write a full sentence that makes sense on its own, with names and dates instead of 'he' and "
        "'tomorrow'. Never store passwords, keys, tokens or other secrets, passing remarks, or what is in files anyway."
    )
    output: ClassVar[Result] = _STORED
    writes: ClassVar[bool] = True

    content: _Content
    kind: Annotated[Kind | None, Meta(description="fact, preference, decision, task, finding, procedure, error, …")] = (
        None
    )
    tags: _Tags = None
    importance: _Importance = None
    shared: Annotated[
        bool | None, Meta(description="true for what every assistant should know; otherwise it is yours alone.")
    ] = None

    def run(self, memory: Memory) -> Result:
        if self.kind == SHELF:
            raise InputError("kind", f"a {self.kind} is no memory; use write_scratchpad")
        with listing_kinds(memory):
            stored = memory.remember(
                self.content,
                kind=self.kind,
                tags=self.tags,
                importance=self.importance,
                shared=bool(self.shared),
            )
        return {
            "id": stored.id,
            "kind": stored.kind,
            "importance": round(stored.importance, 4),
            "expires_at": stored.expires_at,
            "known_already": stored.access_count > 0,
        }


class ReviseTool(Arguments, frozen=True):
    name: ClassVar[str] = "revise"
    title: ClassVar[str] = "Revise a memory"
    description: ClassVar[str] = (
        "Put a new version in place of a memory that has changed or was not quite right. What you leave out stays as "
        "it was; the old version is recalled no more, but is kept. Recall the memory first to learn its id."
    )
    output: ClassVar[Result] = returns(id=TEXT, kind=TEXT, importance=NUMBER, replaces=TEXT)
    writes: ClassVar[bool] = True
    destructive: ClassVar[bool] = True

    id: Id
    content: Annotated[_Content | None, Meta(description="What it should say.")] = None
    kind: Annotated[Kind | None, Meta(description="Another kind.")] = None
    tags: Annotated[
        Annotated[list[Tag], Meta(max_length=5)] | None, Meta(description="Tags in place of the old ones.")
    ] = None
    importance: _Importance = None

    def run(self, memory: Memory) -> Result:
        old = short_ids.resolve(memory, self.id)
        with listing_kinds(memory):
            new = memory.revise(old, content=self.content, kind=self.kind, tags=self.tags, importance=self.importance)
        return {"id": new.id, "kind": new.kind, "importance": round(new.importance, 4), "replaces": old}


class ForgetTool(Arguments, frozen=True):
    name: ClassVar[str] = "forget"
    title: ClassVar[str] = "Forget a memory"
    description: ClassVar[str] = (
        "Forget one memory by its id. Use it when the user asks you to forget something, or when a memory is wrong or "
        "outdated; recall it first to learn its id."
    )
    output: ClassVar[Result] = returns(count=COUNT, ids=many(TEXT))
    writes: ClassVar[bool] = True
    destructive: ClassVar[bool] = True

    id: Id
    reason: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        Meta(description="Why, in a few words, for the audit log. Never repeat in it what is to be forgotten."),
    ] = None

    def run(self, memory: Memory) -> Result:
        receipt = memory.forget(short_ids.resolve(memory, self.id), reason=self.reason)
        return {"count": receipt.count, "ids": receipt.ids}


class UndoTool(Arguments, frozen=True):
    name: ClassVar[str] = "undo"
    title: ClassVar[str] = "Undo a change"
    description: ClassVar[str] = (
        "Take back your last change to the memory: what you stored, revised or forgot. Use it when the user says that "
        "it was a mistake."
    )
    output: ClassVar[Result] = returns(id=TEXT, message=TEXT)
    writes: ClassVar[bool] = True
    destructive: ClassVar[bool] = True

    change: Annotated[
        Annotated[str, Meta(min_length=1, max_length=36)] | None,
        Meta(description="The id of an older change in the audit log; without it, the last."),
    ] = None

    def run(self, memory: Memory) -> Result:
        entry = memory.undo(None if self.change is None else short_ids.resolve_change(memory, self.change))
        return {"id": entry.id, "message": entry.message}
