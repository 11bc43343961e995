"""The scratchpad as tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from recollect.facets.scratchpad import Note
from recollect.tools.base import ANY, COUNT, TEXT, TIME, YES, Result, ToolCall, fields, many, returns, tool

_LONGEST = 2000
"""Bytes of a value that a list shows; a longer one can be read by its key."""

_Key = Annotated[str, Meta(min_length=1, max_length=100, description="The name of the note.")]


@tool(
    "write_scratchpad",
    "scratchpad.write",
    "Write a working note",
    "Write a working note of this conversation under a key, in place of what is there. Use it for partial results, "
    "findings to collect over several tool calls, and the state of a task; it is kept out of your context until "
    "you read it. What should be known in later conversations belongs into memory instead. Never write secrets.",
    offer={"key": _Key, "value": Annotated[Any, Meta(description="Any JSON value.")]},
    output=returns(key=TEXT, written_at=TIME),
    prepare=lambda arguments, memory: {"value": None, **arguments},
)
def _written(note: Note, call: ToolCall) -> Result:
    return {"key": note.key, "written_at": note.updated_at}


@tool(
    "read_scratchpad",
    "scratchpad.note",
    "Read a working note",
    "Read one working note of this conversation by its key.",
    offer={"key": _Key},
    output=returns(key=TEXT, value=ANY, written_at=TIME),
)
def _read(note: Note, call: ToolCall) -> Result:
    return {"key": note.key, "value": note.value, "written_at": note.updated_at}


@tool(
    "list_scratchpad",
    "scratchpad.list",
    "List working notes",
    "List the working notes of this conversation, by key. Use it to see where you stand when you come back to a "
    "task. Values that are very long are left out; read those by their key.",
    offer={},
    output=returns(
        count=COUNT,
        entries=many(fields(("value", "truncated"), key=TEXT, value=ANY, truncated=YES, written_at=TIME)),
    ),
)
def _listed(notes: Sequence[Note], call: ToolCall) -> Result:
    entries: list[dict[str, Any]] = []
    for note in notes:
        long = len(msgspec.json.encode(note.value)) > _LONGEST
        shown: dict[str, Any] = {"truncated": True} if long else {"value": note.value}
        entries.append({"key": note.key, **shown, "written_at": note.updated_at})
    return {"count": len(entries), "entries": entries}


@tool(
    "clear_scratchpad",
    "scratchpad.clear",
    "Clear working notes",
    "Clear one working note of this conversation, or all of them. Use it at the start of a session or when the "
    "slate should be clean.",
    offer={"key": Annotated[_Key | None, Meta(description="The name of the note; without it, all are cleared.")]},
    output=returns(cleared=COUNT),
)
def _cleared(number: int, call: ToolCall) -> Result:
    return {"cleared": number}
