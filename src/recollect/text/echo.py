"""Finds passages of a text that repeat an earlier one, however they are wrapped, bulleted, escaped or cut."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple
from unicodedata import normalize

SHORTEST = 24
"""Letters and digits: four or five words. Shorter quotations, and facts in other words, are the speaker's own."""
_GLUE = 4
"""Fewer letters and digits than that between two echoes are what held them together, such as a number."""
_SPEAKS = 10
"""Fewer letters than that beside an echo only lead to it, such as `You told me:`."""
_TOKEN = re.compile(r"\\u[0-9a-fA-F]{4}|\\[nrtbf\"\\/]|&#?\w{1,8};|.", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_FENCE = re.compile(r"(?:<|&lt;|\\u003c)/?memories(?:>|&gt;|\\u003e)|\[memories\]", re.IGNORECASE)
_ENTRY = re.compile(r"- [(\[]|#+ ")
"""How lines begin that are echoes as a whole, short as they may be: nobody else says their id or time."""
_SIGN = r"&(?:lt|gt|quot|amp);|\\u003[ce]|\\[nrt\"]"
_BEFORE = re.compile(rf"(?:[ \t\u00a0<>/*•–—|`\"'(\[{{#-]|(?<=[\s|])\d+[.)]|^\d+[.)]|{_SIGN})+\Z", re.MULTILINE)
_AFTER = re.compile(rf"(?:[>*|`\"')\]}}]|{_SIGN})+")
"""What belongs to an echo on either side, such as a bullet or a bracket."""
_NEAR = 64
"""Characters before an echo in which that is looked for: hostile answers may have a million dashes."""


class _Letters(NamedTuple):
    """The letters and digits of a text, folded, and where they are in it."""

    folded: str
    spans: list[tuple[int, int]]
    starts: list[bool]
    """Whether one begins a word."""
    lines: list[int]
    """The number of its line."""


def unechoed(text: str, injected: Iterable[str]) -> str:
    """Text without what echoes one that was given; nothing if too little is left to say something."""
    sources = [source for source in injected if source]
    letters = _letters(text)
    echoed = _echoed(text, letters, sources)
    if not any(echoed):
        return text
    rest, at = "", 0
    for begin, end in _spans(letters, echoed):
        near = max(at, begin - _NEAR)
        between = text[at:near] + _BEFORE.sub("", text[near:begin])
        after = _AFTER.match(text, end)
        at = after.end() if after else end
        gap = _gap(text, begin, at)
        rest = f"{rest}{between}{gap}"
        at += not gap and rest.endswith("\n") and text.startswith("\n", at)
    left = (rest + text[at:]).strip(" …\r\n\t")
    return left if sum(map(str.isalpha, left)) >= _SPEAKS else ""


def _gap(text: str, begin: int, end: int) -> str:
    """What stands for an echo: nothing on lines of its own, and a mark within a sentence."""
    whole = text[:begin].rpartition("\n")[2].strip(" \t>*-") == "" or text[end : end + 1] in ("", "\n", "\r")
    return "" if whole else " … "


def _letters(text: str) -> _Letters:
    letters, spans, starts, lines = list[str](), list[tuple[int, int]](), list[bool](), list[int]()
    inside, line = False, 0
    for token in _TOKEN.finditer(text):
        plain = _plain(token[0])
        line += plain == "\n"
        folded = "".join(filter(str.isalnum, normalize("NFKC", plain).casefold()))
        for letter in folded:
            letters.append(letter)
            spans.append(token.span())
            starts.append(not inside)
            lines.append(line)
            inside = True
        inside = bool(folded)
    return _Letters("".join(letters), spans, starts, lines)


def _plain(token: str) -> str:
    if len(token) == 1:
        return token
    if token[0] == "&":
        return html.unescape(token)
    return chr(int(token[2:], 16)) if token[1] == "u" else _ESCAPED.get(token[1], token[1])


def _echoed(text: str, letters: _Letters, sources: list[str]) -> list[bool]:
    """Of each letter."""
    folded, echoed = letters.folded, [False] * len(letters.folded)
    parts = {whole[at : at + SHORTEST] for source in sources for whole in [_fold(source)] for at in range(len(whole))}
    for at in range(len(folded) - SHORTEST + 1):
        if folded[at : at + SHORTEST] in parts:
            echoed[at : at + SHORTEST] = [True] * SHORTEST
    _keep_whole_words(letters, echoed)
    entries = {_fold(line) for source in sources for line in source.splitlines() if _ENTRY.match(line)} - {""}
    for entry in entries:
        at = -1
        while (at := folded.find(entry, at + 1)) >= 0:
            if letters.starts[at] and _ends(letters, at + len(entry)):
                echoed[at : at + len(entry)] = [True] * len(entry)
    if any(echoed):
        _add_fences(text, letters, echoed)
        _add_cut_lines(letters, echoed, {_fold(line) for source in sources for line in source.splitlines()})
        _add_glue(echoed)
    return echoed


def _fold(text: str) -> str:
    return _letters(text).folded


def _ends(letters: _Letters, at: int) -> bool:
    return at >= len(letters.starts) or letters.starts[at]


def _keep_whole_words(letters: _Letters, echoed: list[bool]) -> None:
    """A letter may be the same by chance where an echo begins or ends; and what is too short then is none."""
    for begin, end in _runs(echoed):
        first = next((at for at in range(begin, end) if letters.starts[at]), end)
        last = next((at for at in range(end, first, -1) if _ends(letters, at)), first)
        for at in range(begin, end):
            echoed[at] = first <= at < last and last - first >= SHORTEST


def _add_fences(text: str, letters: _Letters, echoed: list[bool]) -> None:
    for fence in _FENCE.finditer(text):
        for at, (begin, end) in enumerate(letters.spans):
            if fence.start() <= begin and end <= fence.end():
                echoed[at] = True


def _add_cut_lines(letters: _Letters, echoed: list[bool], source_lines: set[str]) -> None:
    """A line next to an echo that is the beginning or the end of one that was given, perhaps after a number."""
    ends = [at for at in range(1, len(echoed)) if letters.lines[at] != letters.lines[at - 1]]
    lines = list(zip([0, *ends], [*ends, len(echoed)], strict=True))
    for begin, end in [*lines, *reversed(lines)]:
        beside = echoed[max(0, begin - _GLUE + 1) : begin] + echoed[end : end + _GLUE]
        if not any(beside) or all(echoed[begin:end]):
            continue
        parts = [letters.folded[at:end] for at in range(begin, min(begin + _GLUE, end)) if letters.starts[at]]
        if any(line.startswith(part) or line.endswith(part) for part in parts for line in source_lines):
            echoed[begin:end] = [True] * (end - begin)


def _add_glue(echoed: list[bool]) -> None:
    runs = _runs(echoed)
    for (_, end), (begin, _) in pairwise(runs):
        if begin - end < _GLUE:
            echoed[end:begin] = [True] * (begin - end)


def _runs(echoed: list[bool]) -> list[tuple[int, int]]:
    """Where they begin and end."""
    runs: list[tuple[int, int]] = []
    begin = None
    for at, is_echo in enumerate([*echoed, False]):
        if is_echo and begin is None:
            begin = at
        elif not is_echo and begin is not None:
            runs.append((begin, at))
            begin = None
    return runs


def _spans(letters: _Letters, echoed: list[bool]) -> list[tuple[int, int]]:
    """Of the text."""
    return [(letters.spans[begin][0], letters.spans[end - 1][1]) for begin, end in _runs(echoed)]
