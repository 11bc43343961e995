"""What of a memory is put before a model, and in which form."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=1)]
Maybe = Annotated[int, msgspec.Meta(ge=0)]
Days = Annotated[float, msgspec.Meta(gt=0.0, le=1e6)]
Keeping = Literal["all", "ids", "nothing"]
"""What is kept of an answer besides the ids of its memories: the question, its hash only, or not even the ids."""
Placing = Literal["system", "before_last", "last_user"]
"""Where memories go: to the system prompt, before the user's last message, or into it."""
SystemMessages = Literal["many", "joined", "one"]
"""What is put in has system messages of its own, or is joined to the caller's last, or to all of the caller's."""


class Turns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is done with the conversation when all of it does not fit."""

    keep: Count = 20
    """So many of the latest turns stay as they are; the others become one condensed message."""
    summary_tokens: Count = 400
    from_question: bool = True
    """Whether the turns that stay begin with what the user asked, which may be one turn more."""


class _Style(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    turns: Turns = Turns()
    audit: bool = False
    """Whether the audit log is told of what was left out to fit."""
    place: Placing = "system"
    system_messages: SystemMessages = "many"
    keep: Keeping = "all"
    """What `Memory.sources` can tell later of an answer."""
    keep_days: Days = 30.0
    """How long it can."""
    without_tags: tuple[str, ...] = ()
    """Memories with one of these tags, or one below it, are not shown unless the caller says otherwise."""
    profile: bool = False
    """Whether what the user has told of themselves stands before the memories, in the system prompt."""


class Block(_Style, frozen=True, tag_field="style", tag="block"):
    """One fenced block of what the last message brings to mind, each memory with its id and day."""

    place: Placing = "last_user"
    """Late, because providers keep what they have read of a prompt up to where it first differs; and in the user's
    message, because some models take neither a second system message nor two messages of the user in a row."""
    system_messages: SystemMessages = "joined"
    tokens: Count = 1000
    """How long the block may be, where no budget is given for the whole."""
    most_tokens: Count = 4000
    """How long it may be of a budget, where the conversation leaves so much."""
    memories: Count | None = None
    """None for as many as have room."""
    profile: bool = True


class Notes(_Style, frozen=True, tag_field="style", tag="notes"):
    """A `[Memories]` block of the notes that share words with the last message, else of the latest."""

    inject_mode: Literal["relevant", "recent_only", "off"] = "relevant"
    max_inject_chars: Maybe = 2000
    max_inject_count: Maybe = 10
    recent: Maybe = 5
    """So many of the latest where no note shares a word."""
    guidance: bool = True
    """Whether the system prompt tells when to store and what never to store."""


class Diary(_Style, frozen=True, tag_field="style", tag="diary"):
    """`# Your Private Memory`: core memories and the journal of the retention window, oldest first."""


class Working(_Style, frozen=True, tag_field="style", tag="working"):
    """Each memory a system message, then knowledge, the conversation and its tool results; truncation is audited."""

    memories: Count = 5
    fewer_memories: Count = 3
    chunks: Count = 5
    fewer_chunks: Count = 2


class NoInjection(_Style, frozen=True, tag_field="style", tag="none"):
    """Nothing unless asked for with a tool."""


Injection = Block | Notes | Diary | Working | NoInjection
