"""What every format is read into: headings, and what stands below them."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["heading", "text", "list", "code", "table"]


class TextBlock(NamedTuple):
    kind: Kind
    text: str
    at: str = ""
    """Where it begins: `line 12`, `page 3`."""
    level: int = 0
    """Of a heading, from 1."""


class Read(NamedTuple):
    """A document as it was read."""

    title: str
    """As the document itself says; empty where it says none."""
    blocks: list[TextBlock]


def plain(text: str) -> Read:
    """Paragraphs, which blank lines part."""
    blocks: list[TextBlock] = []
    lines: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.strip():
            lines.append(line.rstrip())
        elif lines:
            blocks.append(TextBlock("text", "\n".join(lines), f"line {number - len(lines)}"))
            lines = []
    return Read("", blocks)
