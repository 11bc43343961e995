"""The tools of the notebook document: memory_store, memory_search, memory_delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from recollect.memory import Memory
from recollect.tools.base import COUNT, TEXT, TIME, YES, Fault, Result, Tag, ToolCall, fields, many, returns, tool
from recollect.values.record import Record
from recollect.verbs.forget import Receipt

_MOST = 20


def _refused(fault: Fault) -> Result:
    return {"ok": False, "error": str(fault)}


def _note(arguments: dict[str, Any], memory: Memory) -> dict[str, Any]:
    """A note about the workspace needs no scope: its address says so already."""
    scope = arguments.get("scope", "workspace")
    metadata = {} if scope == "workspace" else {"scope": scope}
    return {"content": arguments["text"], "tags": arguments.get("tags"), "metadata": metadata}


@tool(
    "memory_store",
    "remember",
    "Store a memory",
    "Store a new memory that lasts across sessions. Use it when the user explicitly asks you to remember "
    "something, or when you learn a stable fact about the user or project that will be useful across sessions. "
    "Do NOT store transient task context, secrets or tokens, or information already in files. To correct a memory, "
    "delete the old one and store a new one.",
    offer={
        "text": Annotated[
            str, Meta(min_length=1, max_length=500, description="The fact or note to remember (max 500 chars).")
        ],
        "tags": Annotated[
            Annotated[list[Tag], Meta(max_length=5)] | None,
            Meta(description="Up to 5 classification tags, each any text of up to 32 characters: infra, c++, ci/cd."),
        ],
        "scope": (
            Annotated[Literal["user", "workspace", "session"] | None, Meta(description="What it is about.")],
            "workspace",
        ),
    },
    output=returns(error=TEXT, ok=YES, id=TEXT),
    prepare=_note,
    refused=_refused,
)
def _stored(record: Record, call: ToolCall) -> Result:
    return {"ok": True, "id": record.id}


def _conditions(arguments: dict[str, Any], memory: Memory) -> dict[str, Any]:
    tag = arguments.get("tag")
    return {"limit": _MOST, "contains": arguments.get("query") or None, "tags": [tag] if tag else None}


@tool(
    "memory_search",
    "list",
    "Search memories",
    "Search stored memories by keyword or tag. Returns up to 20 matches, newest first. The keyword may be any part "
    "of the text, in upper or lower case. If both are given, both must match; without either, the 20 most recent "
    "memories are returned.",
    offer={
        "query": Annotated[str | None, Meta(description="Keyword search across memory text.")],
        "tag": Annotated[str | None, Meta(description="Filter by tag.")],
    },
    output=returns(error=TEXT, count=COUNT, memories=many(fields(id=TEXT, text=TEXT, tags=many(TEXT), ts=TIME))),
    prepare=_conditions,
    refused=_refused,
    is_search=True,
)
def _matches(records: Sequence[Record], call: ToolCall) -> Result:
    memories = [
        {"id": record.id, "text": record.text, "tags": record.tags, "ts": record.created_at} for record in records
    ]
    return {"count": len(memories), "memories": memories}


@tool(
    "memory_delete",
    "forget",
    "Delete a memory",
    "Delete a memory by ID. Use it to remove outdated memories, or before you store a corrected one.",
    offer={"id": Annotated[str, Meta(min_length=1, max_length=32, description="Memory ID to delete.")]},
    output=returns(error=TEXT, ok=YES),
    refused=_refused,
    takes_short_ids=False,
)
def _deleted(receipt: Receipt, call: ToolCall) -> Result:
    return {"ok": True}
