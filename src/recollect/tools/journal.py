"""The tools of the journal document: save_to_journal and save_to_core."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from msgspec import Meta

from recollect.facets.journal import MAX_CHARS
from recollect.memory import Memory
from recollect.tools.base import TEXT, YES, Fault, Result, ToolCall, returns, tool
from recollect.values.errors import AccessError
from recollect.values.record import Record, moved

_WEEK = 7.0
# A text that is too long is refused in the document's own words, after blanks at its ends were removed.
_SIZE = {"minLength": 1, "maxLength": MAX_CHARS}


def _refused(fault: Fault) -> Result:
    documented = fault.type == "AccessError" or fault.message.startswith("Content ")
    return {"error": fault.message if documented else f"Failed to save: {fault}"}


def _by_agent(arguments: dict[str, Any], memory: Memory) -> dict[str, Any]:
    if memory.address.agent is None:
        raise AccessError("This tool only works in group conversations")
    return arguments


@tool(
    "save_to_journal",
    "journal.save",
    "Save to the journal",
    "Save a memory to your personal journal. Journal entries are temporary and will fade after about a week. "
    "Use this for observations, insights, or things you want to remember in the short term.",
    offer={
        "content": Annotated[
            str, Meta(description="The memory to save (keep it concise, under a paragraph)", extra_json_schema=_SIZE)
        ]
    },
    output=returns(error=TEXT, success=YES, memory_type=TEXT, content=TEXT, expires_around=TEXT),
    prepare=_by_agent,
    refused=_refused,
)
def _saved(record: Record, call: ToolCall) -> Result:
    window = timedelta(days=call.memory.preset.retention.window_days.get("journal", _WEEK))
    return {
        "success": True,
        "memory_type": "journal",
        "content": record.content,
        "expires_around": f"{moved(record.created_at, window):%Y-%m-%d}",
    }


@tool(
    "save_to_core",
    "journal.save_core",
    "Save to the core memories",
    "Save a memory to your core identity. Core memories are permanent and define who you are. Use sparingly for "
    "fundamental beliefs, key learnings, or essential information about yourself.",
    offer={
        "content": Annotated[
            str, Meta(description="The core memory to save (keep it concise and meaningful)", extra_json_schema=_SIZE)
        ]
    },
    output=returns(error=TEXT, success=YES, memory_type=TEXT, content=TEXT, note=TEXT),
    prepare=_by_agent,
    refused=_refused,
)
def _saved_to_core(record: Record, call: ToolCall) -> Result:
    return {
        "success": True,
        "memory_type": "core",
        "content": record.content,
        "note": "This memory is now part of your permanent identity",
    }
