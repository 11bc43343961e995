"""The tools of the notebook document: memory_store, memory_search, memory_delete."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from recollect.memory import Memory
from recollect.tools.base import COUNT, TEXT, TIME, YES, Arguments, Fault, Result, Tag, fields, many, returns

_MOST = 20


class _Noting(Arguments, frozen=True):
    @staticmethod
    def refused(fault: Fault) -> Result:
        return {"ok": False, "error": str(fault)}


class MemoryStore(_Noting, frozen=True):
    name: ClassVar[str] = "memory_store"
    title: ClassVar[str] = "Store a memory"
    output: ClassVar[Result] = returns(error=TEXT, ok=YES, id=TEXT)
    description: ClassVar[str] = (
        "Store a new memory that lasts across sessions. Use it when the user explicitly asks you to remember "
        "something, or when you learn a stable fact about the user or project that will be useful across sessions. "
        "Do NOT store transient task context, secrets or tokens, or information already in files. To correct a memory, "
        "delete the old one and store a new one."
    )
    writes: ClassVar[bool] = True

    text: Annotated[
        str, Meta(min_length=1, max_length=500, description="The fact or note to remember (max 500 chars).")
    ]
    tags: Annotated[
        Annotated[list[Tag], Meta(max_length=5)] | None,
        Meta(description="Up to 5 classification tags, each any text of up to 32 characters: infra, c++, ci/cd."),
    ] = None
    scope: Annotated[
        Literal["user", "workspace", "session"] | None,
        Meta(description="What it is about."),
    ] = "workspace"

    def run(self, memory: Memory) -> Result:
        # Where a note about the workspace stands says so already.
        scope = {} if self.scope in (None, "workspace") else {"scope": self.scope}
        return {"ok": True, "id": memory.remember(self.text, tags=self.tags, metadata=scope).id}


class MemorySearch(_Noting, frozen=True):
    name: ClassVar[str] = "memory_search"
    title: ClassVar[str] = "Search memories"
    output: ClassVar[Result] = returns(
        error=TEXT, count=COUNT, memories=many(fields(id=TEXT, text=TEXT, tags=many(TEXT), ts=TIME))
    )
    description: ClassVar[str] = (
        "Search stored memories by keyword or tag. Returns up to 20 matches, newest first. The keyword may be any part "
        "of the text, in upper or lower case. If both are given, both must match; without either, the 20 most recent "
        "memories are returned."
    )

    query: Annotated[str | None, Meta(description="Keyword search across memory text.")] = None
    tag: Annotated[str | None, Meta(description="Filter by tag.")] = None

    def run(self, memory: Memory) -> Result:
        conditions: dict[str, Any] = {"contains": self.query or None, "tags": [self.tag] if self.tag else None}
        records = memory.list(limit=_MOST, **conditions)
        memories = [
            {"id": record.id, "text": record.text, "tags": record.tags, "ts": record.created_at} for record in records
        ]
        return {"count": len(memories), "memories": memories}


class MemoryDelete(_Noting, frozen=True):
    name: ClassVar[str] = "memory_delete"
    title: ClassVar[str] = "Delete a memory"
    output: ClassVar[Result] = returns(error=TEXT, ok=YES)
    destructive: ClassVar[bool] = True
    description: ClassVar[str] = (
        "Delete a memory by ID. Use it to remove outdated memories, or before you store a corrected one."
    )
    writes: ClassVar[bool] = True

    id: Annotated[str, Meta(min_length=1, max_length=32, description="Memory ID to delete.")]

    def run(self, memory: Memory) -> Result:
        memory.forget(self.id)
        return {"ok": True}
