"""A fence around what is only data: nothing inside can close it, and what we put in can be found again."""

from __future__ import annotations

import re
from unicodedata import category, normalize

OPEN, CLOSE = "<memories>", "</memories>"
_NAME = "memories"
_BRACKET = re.compile("[<\u02c2\u2039\u2329\u27e8\u3008\ufe64\uff1c]")
"""What reads as the beginning of a tag, to a model too."""
_CLOSED = re.compile(rf"\n{CLOSE}(?=\n|\Z)")
_UNSEEN = frozenset(("Cc", "Cf", "Mn", "Me", "Zs", "Zl", "Zp"))


def inside(text: str) -> str:
    """Text that cannot end its fence or begin another entry: further lines are indented."""
    harmless = _BRACKET.sub(lambda found: "&lt;" if _tag(text, found.end()) else found[0], text)
    lines = [line.rstrip() for line in harmless.splitlines()]
    return "\n  ".join(line for line in lines if line)


def _tag(text: str, at: int) -> bool:
    """Whether a bracket before `at` begins a fence, however it is spaced, cased or spelled."""
    name = ""
    for number in range(at, len(text)):
        letter = text[number]
        if letter in "/\u2044\u2215\uff0f" or category(letter) in _UNSEEN:
            continue
        name += normalize("NFKC", letter).casefold()
        if len(name) >= len(_NAME) or not _NAME.startswith(name):
            break
    return name.startswith(_NAME)


def without(text: str) -> str:
    """Text without what a context had put into it, so that it is never taken for something new."""
    kept: list[str] = []
    begun = searched = 0
    while (start := text.find(f"{OPEN}\n", searched)) >= 0:
        searched = start + 1
        if start and text[start - 1] != "\n":
            continue
        if (close := _CLOSED.search(text, start)) is None:
            break
        # With the empty line that parts it from what was before, or from what is after where it came first.
        before, searched = text[begun:start], close.end()
        if before or kept:
            kept.append(before.removesuffix("\n").removesuffix("\n"))
        else:
            searched += 2 if text.startswith("\n\n", searched) else text.startswith("\n", searched)
        begun = searched
    return "".join([*kept, text[begun:]])
