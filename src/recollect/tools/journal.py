"""The tools of the journal document: save_to_journal and save_to_core."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, ClassVar

from msgspec import Meta

from recollect.facets.journal import MAX_CHARS, Journal
from recollect.memory import Memory
from recollect.tools.base import TEXT, YES, Arguments, Fault, Result, returns
from recollect.values.errors import AccessError
from recollect.values.record import moved

_WEEK = 7.0
# What is too long is refused in the document's own words, and after blanks at the ends were taken off.
_SIZE = {"minLength": 1, "maxLength": MAX_CHARS}


class _Saving(Arguments, frozen=True):
    writes: ClassVar[bool] = True

    @staticmethod
    def refused(fault: Fault) -> Result:
        documented = fault.type == "AccessError" or fault.message.startswith("Content ")
        return {"error": fault.message if documented else f"Failed to save: {fault}"}


def _journal(memory: Memory) -> Journal:
    if memory.address.agent is None:
        raise AccessError("This tool only works in group conversations")
    return memory.journal


class SaveToJournal(_Saving, frozen=True):
    name: ClassVar[str] = "save_to_journal"
    title: ClassVar[str] = "Save to the journal"
    output: ClassVar[Result] = returns(error=TEXT, success=YES, memory_type=TEXT, content=TEXT, expires_around=TEXT)
    description: ClassVar[str] = (
        "Save a memory to your personal journal. Journal entries are temporary and will fade after about a week. "
        "Use this for observations, insights, or things you want to remember in the short term."
    )

    content: Annotated[
        str,
        Meta(description="The memory to save (keep it concise, under a paragraph)", extra_json_schema=_SIZE),
    ]

    def run(self, memory: Memory) -> Result:
        saved = _journal(memory).save(self.content)
        window = timedelta(days=memory.preset.retention.window_days.get("journal", _WEEK))
        return {
            "success": True,
            "memory_type": "journal",
            "content": saved.content,
            "expires_around": f"{moved(saved.created_at, window):%Y-%m-%d}",
        }


class SaveToCore(_Saving, frozen=True):
    name: ClassVar[str] = "save_to_core"
    title: ClassVar[str] = "Save to the core memories"
    output: ClassVar[Result] = returns(error=TEXT, success=YES, memory_type=TEXT, content=TEXT, note=TEXT)
    description: ClassVar[str] = (
        "Save a memory to your core identity. Core memories are permanent and define who you are. Use sparingly for "
        "fundamental beliefs, key learnings, or essential information about yourself."
    )

    content: Annotated[
        str, Meta(description="The core memory to save (keep it concise and meaningful)", extra_json_schema=_SIZE)
    ]

    def run(self, memory: Memory) -> Result:
        saved = _journal(memory).save_core(self.content)
        return {
            "success": True,
            "memory_type": "core",
            "content": saved.content,
            "note": "This memory is now part of your permanent identity",
        }
