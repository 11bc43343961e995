"""HTML as blocks, without scripts, styles and navigation."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

from recollect.documents.blocks import Kind, Read, TextBlock
from recollect.documents.html_tags import bare_tags

_UNSEEN = frozenset("script style template noscript svg nav iframe object select".split())
_PARTING = frozenset(
    "address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer "
    "form header hgroup hr li main menu ol p section summary ul".split()
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


def read(text: str) -> Read:
    parser = _Parser()
    parser.feed(bare_tags(text))
    parser.close()
    parser.part()
    title = " ".join("".join(parser.title).split())
    first = next((block.text for block in parser.blocks if block.kind == "heading" and block.level == 1), "")
    return Read(title or first, parser.blocks)


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[TextBlock] = []
        self.title: list[str] = []
        self._words: list[str] = []
        self._line = 1
        self._unseen: list[str] = []
        self._open: Counter[str] = Counter()
        """How often each is in `_unseen`, where looking for it takes long."""
        self._titled = False
        self._level = 0
        self._code = False
        self._listing = False
        self._rows: list[list[str]] | None = None
        self._tables = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSEEN:
            self._unseen.append(tag)
            self._open[tag] += 1
        elif self._unseen:
            return
        elif tag == "title":
            self._titled = True
        elif tag == "table":
            self._begin_table()
        elif self._rows is not None:
            self._in_table(tag)
        elif tag in _HEADINGS or tag == "pre":
            self.part()
            self._level, self._code = _HEADINGS.get(tag, 0), tag == "pre"
        elif tag == "br":
            self._words.append("\n")
        elif tag in _PARTING:
            self._begin_item() if tag == "li" else self.part()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _UNSEEN:  # such as an empty <svg/>, which nothing ends
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._open[tag]:
            inner = None
            while inner != tag:
                inner = self._unseen.pop()
                self._open[inner] -= 1
        elif self._unseen:
            return
        elif tag == "title":
            self._titled = False
        elif tag == "table":
            self._end_table()
        elif self._rows is None and (tag in _HEADINGS or tag == "pre" or (tag in _PARTING and tag != "li")):
            self.part()

    def handle_data(self, data: str) -> None:
        if self._unseen:
            return
        if self._titled:
            self.title.append(data)
        elif self._rows is not None:
            if self._rows and self._rows[-1]:
                self._rows[-1][-1] += data
        else:
            if not self._words:
                self._line = self.getpos()[0]
            self._words.append(data if self._code else " ".join(data.replace("\n", " ").split(" ")))

    def part(self) -> None:
        """End the current block and begin another one."""
        text = "".join(self._words)
        text = text.strip("\n") if self._code else _trimmed(text)
        if text.strip():
            kind: Kind = "heading" if self._level else "code" if self._code else "text"
            if kind == "text" and text.startswith("- "):
                kind = "list"
            shown = f"```\n{text}\n```" if kind == "code" else " ".join(text.split()) if kind == "heading" else text
            self.blocks.append(TextBlock(kind, shown, f"line {self._line}", self._level))
        self._words, self._level, self._code, self._listing = [], 0, False, False

    def _begin_item(self) -> None:
        """Items of a list stay together."""
        if not self._listing:
            self.part()
            self._line, self._listing = self.getpos()[0], True
        self._words.append("\n- ")

    def _begin_table(self) -> None:
        self._tables += 1
        if self._rows is None:
            self.part()
            self._line, self._rows = self.getpos()[0], []

    def _in_table(self, tag: str) -> None:
        rows = self._rows or []
        if tag == "tr" and self._tables == 1:
            rows.append([])
        elif tag in ("td", "th") and rows and self._tables == 1:
            rows[-1].append("")
        elif rows and rows[-1]:
            rows[-1][-1] += " "
        self._rows = rows

    def _end_table(self) -> None:
        self._tables = max(self._tables - 1, 0)
        if self._rows is None or self._tables:
            return
        rows = [[" ".join(cell.split()) for cell in row] for row in self._rows if any(map(str.strip, row))]
        self._rows = None
        if rows:
            lines = [f"| {' | '.join(row)} |" for row in rows]
            lines.insert(1, f"|{'---|' * len(rows[0])}")
            self.blocks.append(TextBlock("table", "\n".join(lines), f"line {self._line}"))


def _trimmed(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)
