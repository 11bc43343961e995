"""The scratchpad as tools."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from recollect.memory import Memory
from recollect.tools.base import ANY, COUNT, TEXT, TIME, YES, Arguments, Result, fields, many, returns

_LONGEST = 2000
"""Letters of a value that a list shows; who wants a longer one reads it."""

_Key = Annotated[str, Meta(min_length=1, max_length=100, description="The name of the note.")]


class WriteScratchpad(Arguments, frozen=True):
    name: ClassVar[str] = "write_scratchpad"
    title: ClassVar[str] = "Write a working note"
    output: ClassVar[Result] = returns(key=TEXT, written_at=TIME)
    destructive: ClassVar[bool] = True
    description: ClassVar[str] = (
        "Write a working note of this conversation under a key, in place of what is there. Use it for partial results, "
        "findings to collect over several tool calls, and the state of a task; it is kept out of your context until "
        "you read it. What should be known in later conversations belongs into memory instead. Never write secrets."
    )
    writes: ClassVar[bool] = True

    key: _Key
    value: Annotated[Any, Meta(description="Any JSON value.")]

    def run(self, memory: Memory) -> Result:
        note = memory.scratchpad.write(self.key, self.value)
        return {"key": note.key, "written_at": note.updated_at}


class ReadScratchpad(Arguments, frozen=True):
    name: ClassVar[str] = "read_scratchpad"
    title: ClassVar[str] = "Read a working note"
    output: ClassVar[Result] = returns(key=TEXT, value=ANY, written_at=TIME)
    description: ClassVar[str] = "Read one working note of this conversation by its key."

    key: _Key

    def run(self, memory: Memory) -> Result:
        note = memory.scratchpad.note(self.key)
        return {"key": note.key, "value": note.value, "written_at": note.updated_at}


class ListScratchpad(Arguments, frozen=True):
    name: ClassVar[str] = "list_scratchpad"
    title: ClassVar[str] = "List working notes"
    output: ClassVar[Result] = returns(
        count=COUNT,
        entries=many(fields(("value", "truncated"), key=TEXT, value=ANY, truncated=YES, written_at=TIME)),
    )
    description: ClassVar[str] = (
        "List the working notes of this conversation, by key. Use it to see where you stand when you come back to a "
        "task. Values that are very long are left out; read those by their key."
    )

    def run(self, memory: Memory) -> Result:
        notes: list[dict[str, Any]] = []
        for note in memory.scratchpad.list():
            long = len(msgspec.json.encode(note.value)) > _LONGEST
            shown: dict[str, Any] = {"truncated": True} if long else {"value": note.value}
            notes.append({"key": note.key, **shown, "written_at": note.updated_at})
        return {"count": len(notes), "entries": notes}


class ClearScratchpad(Arguments, frozen=True):
    name: ClassVar[str] = "clear_scratchpad"
    title: ClassVar[str] = "Clear working notes"
    output: ClassVar[Result] = returns(cleared=COUNT)
    destructive: ClassVar[bool] = True
    description: ClassVar[str] = (
        "Clear one working note of this conversation, or all of them. Use it at the start of a session or when the "
        "slate should be clean."
    )
    writes: ClassVar[bool] = True

    key: Annotated[_Key | None, Meta(description="The name of the note; without it, all are cleared.")] = None

    def run(self, memory: Memory) -> Result:
        return {"cleared": memory.scratchpad.clear(self.key)}
