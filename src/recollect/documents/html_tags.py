"""HTML with bare tags only, made in one pass.

Python's HTMLParser takes time in the square of the text for tags, quotes and comments that nobody closes. So it is
given only closed tags without attributes. Line breaks stay where they were, so that line numbers do.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"/?([A-Za-z][^\s/>]*)")
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9:_-]{0,31}")
_STOP = re.compile("[>\"']")
_RAW_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style")}
"""Where text that is no HTML ends."""


def bare_tags(text: str) -> str:
    """The text with every tag closed and without attributes, without comments, scripts and what is never closed."""
    return "".join(_Scanner(text).pieces())


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._unclosed: set[str] = set()
        """Quotes that occur no more, so that nobody looks for them to the end of the text again."""

    def pieces(self) -> list[str]:
        text, done, pieces = self._text, 0, list[str]()
        while (start := text.find("<", done)) >= 0:
            pieces.append(text[done:start])
            piece, done = self._markup(start)
            pieces.append(piece)
        pieces.append(text[done:])
        return pieces

    def _markup(self, start: int) -> tuple[str, int]:
        """What stands for the markup at a position, and where the text goes on."""
        text = self._text
        if text.startswith(("!", "?"), start + 1):
            ending = "-->" if text.startswith("!--", start + 1) else ">"
            end = text.find(ending, start + 2)
            return self._dropped(start, len(text) if end < 0 else end + len(ending))
        name = _NAME.match(text, start + 1)
        if name is None:
            return "&lt;", start + 1
        end = self._tag_end(name.end(), quotes=name[0][0] != "/")
        if end < 0:  # a browser drops a tag that the file ends in
            return "", len(text)
        if (raw_end := _RAW_END.get(name[1].lower())) is not None and name[0][0] != "/":
            close = raw_end.search(text, end)
            return self._dropped(start, len(text) if close is None else close.start())
        if _PLAIN_NAME.fullmatch(name[1]) is None:
            return self._dropped(start, end + 1)
        slash = "/" if text[end - 1] == "/" and name[0][0] != "/" else ""
        return f"<{name[0]}{self._lines(start, end)}{slash}>", end + 1

    def _tag_end(self, at: int, *, quotes: bool) -> int:
        """Where the `>` of a tag is; -1 if nowhere. One inside quotes belongs to an attribute."""
        while (stop := _STOP.search(self._text, at)) is not None:
            mark, at = stop[0], stop.end()
            if mark == ">":
                return stop.start()
            if quotes and mark not in self._unclosed:
                closing = self._text.find(mark, at)
                if closing < 0:
                    self._unclosed.add(mark)
                else:
                    at = closing + 1
        return -1

    def _dropped(self, start: int, end: int) -> tuple[str, int]:
        lines = self._lines(start, end)
        return (f"<!--{lines}-->" if lines else ""), end

    def _lines(self, start: int, end: int) -> str:
        return "\n" * self._text.count("\n", start, end)
