"""Documents cut into passages: by their headings first, then by paragraphs, and only then inside of one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from recollect.documents.blocks import TextBlock
from recollect.text.tokens import estimate
from recollect.values.errors import InputError

SIZE = 400
"""Tokens that a passage has at most, where it can be parted well."""
WHOLE = 800
"""Tokens of code or of a table that stay together all the same."""
MOST = 5_000
"""Passages of one document."""
_MAX_HEADING = 200
TRAIL = " › "
_CUTS = (re.compile(r"\n(?=\s*(?:[-*+]|\d{1,9}[.)])\s)"), re.compile(r"(?<=[.!?…。！？])\s+"))
"""Where a text is parted, best first: between items, between sentences."""


class Chunk(NamedTuple):
    trail: tuple[str, ...]
    """The title of the document, and the headings that lead to the passage."""
    body: str
    at: str
    """Where it begins: `line 12`, `page 3`."""

    @property
    def text(self) -> str:
        """The text that is searched and shown: the passage after its headings, which give it context."""
        return "\n\n".join(filter(None, (TRAIL.join(self.trail), self.body)))


def cut(title: str, blocks: Sequence[TextBlock]) -> list[Chunk]:
    """InputError where there is nothing, or too much."""
    chunks: list[Chunk] = []
    for chunk in _sections(title, blocks):
        chunks.append(chunk)
        if len(chunks) > MOST:
            raise InputError("text", f"has more than the limit of {MOST:,} passages; part it into several documents")
    if not chunks:
        raise InputError("text", "has no text that could be searched")
    return chunks


def _sections(title: str, blocks: Sequence[TextBlock]) -> Iterator[Chunk]:
    heads: list[tuple[int, str]] = []
    gathered: list[TextBlock] = []
    opened: TextBlock | None = None
    for block in [*blocks, None]:
        if block is not None and block.kind != "heading":
            gathered.append(block)
            continue
        trail = _trail(title, heads)
        if gathered:
            yield from _passages(trail, gathered)
        elif opened is not None and (block is None or block.level <= opened.level):
            yield Chunk(trail, "", opened.at)  # a heading may be all that there is
        gathered, opened = [], block
        if block is not None:
            heads = [head for head in heads if head[0] < block.level]
            heads.append((block.level, block.text[:_MAX_HEADING]))


def _trail(title: str, heads: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    names = [text for _, text in heads]
    return tuple(names if names[:1] == [title] else [title, *names])


def _passages(trail: tuple[str, ...], blocks: Sequence[TextBlock]) -> Iterator[Chunk]:
    """As many blocks together as fit."""
    texts: list[str] = []
    size, at = 0, ""
    for block in blocks:
        for text in _parted(block):
            tokens = estimate(text)
            if texts and size + tokens > SIZE:
                yield Chunk(trail, "\n\n".join(texts), at)
                texts, size = [], 0
            at = at if texts else block.at
            texts.append(text)
            size += tokens
    if texts:
        yield Chunk(trail, "\n\n".join(texts), at)


def _parted(block: TextBlock) -> list[str]:
    if block.kind in ("code", "table"):
        return [block.text] if estimate(block.text) <= WHOLE else _by_lines(block)
    return [block.text] if estimate(block.text) <= SIZE else _split(block.text, _CUTS)


def _by_lines(block: TextBlock) -> list[str]:
    """Each piece is code or a table again: with its fences, or the head of the table."""
    lines = block.text.split("\n")
    if block.kind == "table":
        head, last, rows = lines[:2], [], lines[2:]
    else:
        fence = lines[0].strip()[:3]
        closed = len(lines) > 1 and lines[-1].strip().startswith(fence)
        head, last, rows = lines[:1], [fence], lines[1 : -1 if closed else None]
    parts = [part for row in rows for part in ([row] if estimate(row) <= SIZE else _split(row, _CUTS))]
    return ["\n".join([*head, *group, *last]) for group in _grouped(parts)]


def _grouped(parts: Sequence[str]) -> Iterator[list[str]]:
    group: list[str] = []
    size = 0
    for part in parts:
        tokens = estimate(part) + 1
        if group and size + tokens > SIZE:
            yield group
            group, size = [], 0
        group.append(part)
        size += tokens
    if group:
        yield group


def _split(text: str, cuts: Sequence[re.Pattern[str]]) -> list[str]:
    """Pieces that fit, parted where that hurts least."""
    if estimate(text) <= SIZE:
        return [text]
    if not cuts:
        return _by_words(text)
    marks = [0, *(match.end() for match in cuts[0].finditer(text)), len(text)]
    pieces: list[str] = []
    size = SIZE
    for begin, end in pairwise(marks):
        part = text[begin:end]
        tokens = estimate(part)
        if tokens > SIZE:
            pieces += _split(part, cuts[1:])
            size = SIZE
        elif size + tokens <= SIZE:
            pieces[-1] += part
            size += tokens
        else:
            pieces.append(part)
            size = tokens
    return [piece.strip() for piece in pieces if piece.strip()]


def _by_words(text: str) -> list[str]:
    """By as many letters as have so many tokens here, back to the last space where there is one."""
    most = max(int(0.9 * SIZE * len(text) / estimate(text)), 1)
    pieces: list[str] = []
    at = 0
    while at < len(text):
        end = at + most
        space = text.rfind(" ", at + most // 2, end) if end < len(text) else -1
        end = end if space < 0 else space
        pieces.append(text[at:end].strip())
        at = end
    return [piece for piece in pieces if piece]
