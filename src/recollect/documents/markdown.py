"""Markdown as blocks: headings, paragraphs, lists, code fences and tables, each with the line on which it begins.

Only what parts a document is read. What is inside a paragraph stays as it was written, for people and models alike.
"""

from __future__ import annotations

import re

from recollect.documents.blocks import Kind, Read, TextBlock

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
_RULE_OF_TABLE = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_LINK = re.compile(r"!?\[([^\]]{0,500})\]\([^)]{0,2000}\)")
"""Bounded, because brackets that nobody closes would be looked for to the end of the line, each of them."""
_FRONT = re.compile(r"title[ \t]*+:[ \t]*+(.+)")


def read(text: str) -> Read:
    lines = text.splitlines()
    title, first = _front_matter(lines)
    reader = _Reader(lines, first)
    reader.run()
    if not title:
        title = next((block.text for block in reader.blocks if block.kind == "heading" and block.level == 1), "")
    return Read(title, reader.blocks)


def _front_matter(lines: list[str]) -> tuple[str, int]:
    """Its title, and the line behind it: what else is there is about the file and not in it."""
    if not lines or lines[0].strip() != "---":
        return "", 0
    end = next((at for at, line in enumerate(lines[1:200], 1) if line.strip() in ("---", "...")), None)
    if end is None:
        return "", 0
    match = next(filter(None, map(_FRONT.fullmatch, lines[1:end])), None)
    return _unquoted(match[1].rstrip(" \t")) if match else "", end + 1


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 2 and value[0] == value[-1] and value[0] in "'\"" else value


def _without_closing_marks(heading: str) -> str:
    """Without the `#` that may end a heading as they begin it. Not by the expression: it would try every space."""
    heading = heading.rstrip(" \t")
    bare = heading.rstrip("#")
    return bare if not bare or bare[-1] in " \t" else heading


def heading_text(text: str) -> str:
    """Without the marks of links, code and emphasis."""
    return " ".join(_LINK.sub(r"\1", text).replace("`", "").replace("**", "").split())


class _Reader:
    def __init__(self, lines: list[str], at: int) -> None:
        self._lines, self._at = lines, at
        self._gathered: list[str] = []
        self.blocks: list[TextBlock] = []

    def run(self) -> None:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.strip():
                self._paragraph()
                self._at += 1
            elif not (self._fence(line) or self._heading(line) or self._table(line)):
                self._gathered.append(line.rstrip())
                self._at += 1
        self._paragraph()

    def _add(self, kind: Kind, text: str, line: int, level: int = 0) -> None:
        self.blocks.append(TextBlock(kind, text, f"line {line + 1}", level))

    def _paragraph(self) -> None:
        if self._gathered:
            kind: Kind = "list" if _ITEM.match(self._gathered[0]) else "text"
            self._add(kind, "\n".join(self._gathered), self._at - len(self._gathered))
            self._gathered = []

    def _fence(self, line: str) -> bool:
        opened = _FENCE.fullmatch(line)
        if opened is None or (opened[1][0] == "`" and "`" in opened[2]):
            return False
        self._paragraph()
        mark, begin = opened[1], self._at
        self._at += 1
        while self._at < len(self._lines):
            closed = self._lines[self._at].strip()
            self._at += 1
            if len(closed) >= len(mark) and not closed.strip(mark[0]):
                break
        self._add("code", "\n".join(self._lines[begin : self._at]), begin)
        return True

    def _heading(self, line: str) -> bool:
        if match := _ATX.fullmatch(line):
            self._paragraph()
            if text := heading_text(_without_closing_marks(match[2] or "")):
                self._add("heading", text, self._at, len(match[1]))
            self._at += 1
            return True
        if self._gathered and (match := _UNDERLINE.fullmatch(line)) and not _ITEM.match(self._gathered[0]):
            text, begin = heading_text(" ".join(self._gathered)), self._at - len(self._gathered)
            self._gathered = []
            self._add("heading", text, begin, 1 if match[1][0] == "=" else 2)
            self._at += 1
            return True
        return False

    def _table(self, line: str) -> bool:
        below = self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""
        if "|" not in line or "|" not in below or not _RULE_OF_TABLE.fullmatch(below):
            return False
        self._paragraph()
        begin = self._at
        while self._at < len(self._lines) and "|" in self._lines[self._at]:
            self._at += 1
        self._add("table", "\n".join(row.rstrip() for row in self._lines[begin : self._at]), begin)
        return True
