"""The sections of a context, and the report about it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from recollect.text.fence import CLOSE, DATA, OPEN, harmless
from recollect.text.tokens import Count

Where = Literal["prompt", "block", "each"]
"""Joined to the system prompt, in a message of its own after it, or each item in one."""


class Item(NamedTuple):
    text: str
    id: str | None = None
    """Of the memory that it shows."""
    relevance: float | None = None
    """Of that memory for the question, where it was recalled by one."""


class Section(msgspec.Struct, frozen=True):
    """A part that comes before the conversation."""

    name: str
    items: tuple[Item, ...]
    head: str = ""
    tail: str = ""
    where: Where = "block"
    fewest: int | None = None
    """It may be cut to so many items, the last first; None where it may not."""
    step: int = 1
    """How many are cut at once."""
    oldest_first: bool = False
    """Whether the first are cut before the last."""
    stays: bool = False
    """In the system prompt wherever memories go: it is no memory."""
    late: bool = False
    """Not in the system prompt, but with the user's last message."""

    def texts(self) -> list[str]:
        """One for each message."""
        if self.where == "each":
            return [item.text for item in self.items]
        lines = [self.head, *(item.text for item in self.items), self.tail]
        return ["\n".join(filter(None, lines))] if self.items else []

    def tokens(self, count: Count) -> int:
        return sum(map(count, self.texts()))

    def moved(self) -> Section:
        """With the user's last message. It has a fence there, so that it is not taken for what the user says."""
        if self.where == "each" or self.tail == CLOSE:
            return msgspec.structs.replace(self, late=True)
        head = "\n".join(filter(None, (OPEN, DATA, self.head)))
        items = tuple(item._replace(text=harmless(item.text)) for item in self.items)
        return msgspec.structs.replace(self, late=True, head=head, tail=CLOSE, items=items)

    def cut(self, number: int) -> tuple[Section, tuple[Item, ...]]:
        """With so many items, and those that had to go."""
        split = len(self.items) - number if self.oldest_first else number
        parts = self.items[:split], self.items[split:]
        gone, staying = parts if self.oldest_first else parts[::-1]
        return msgspec.structs.replace(self, items=staying), gone


class LeftOut(msgspec.Struct, frozen=True):
    """Something that would have been there, were there more room."""

    section: str
    why: str
    tokens: int
    id: str | None = None


class Drafted(NamedTuple):
    """The sections that a style wants, in order, and what the style itself had no room for."""

    sections: tuple[Section, ...]
    left_out: tuple[LeftOut, ...] = ()
    prompt: str = ""
    """A system prompt for a conversation that has none."""


class Share(msgspec.Struct, frozen=True):
    """How much of a context one section is."""

    name: str
    tokens: int
    items: int


class Report(msgspec.Struct, frozen=True):
    """Where the tokens went."""

    budget: int | None
    tokens: int
    sections: tuple[Share, ...]
    left_out: tuple[LeftOut, ...]
    condensed_by: str | None = None
    """What made one message out of the older turns: a model's name, or `local`."""

    @property
    def over(self) -> int:
        """Tokens beyond the budget, where what may never be cut is larger than it."""
        return max(self.tokens - self.budget, 0) if self.budget is not None else 0

    @property
    def removed(self) -> int:
        """Tokens that were left out to fit."""
        return sum(item.tokens for item in self.left_out)

    def __str__(self) -> str:
        of = f" of {self.budget:,}" if self.budget is not None else ""
        lines = [f"{self.tokens:,}{of} tokens"]
        lines += [f"  {share.name}: {share.tokens:,} tokens, {share.items} items" for share in self.sections]
        lines += [f"  left out of {item.section}: {item.why}{_size(item)}" for item in self.left_out]
        return "\n".join(lines)


def _size(item: LeftOut) -> str:
    return f" ({item.tokens:,} tokens)" if item.tokens else ""


class Context(msgspec.Struct, frozen=True):
    """What to send to the model."""

    messages: list[dict[str, Any]]
    """With what is remembered, unless its place is Anthropic's `system`."""
    report: Report
    system: Any = None
    """Anthropic's `system`: text, or blocks if it was given as blocks. None for OpenAI's clients."""
    memories: tuple[str, ...] = ()
    """The ids of the memories that were put in."""
    text: str = ""
    """What was put in, for a prompt that is made by hand."""
    id: str = ""
    """By which `Memory.sources` tells later which memories were put in."""
