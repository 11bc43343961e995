"""Two statements of the same form that differ in one value: "our backend runs on Flask", "our backend runs on Go"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from recollect.text.late_pattern import LatePattern
from recollect.text.statements.claims import spelled
from recollect.text.statements.contradicting import BROAD, EMPTY

_TOKEN = LatePattern(r"\d[\d.,:/-]*\d|\w[\w'-]*(?:\.\w+)*|[:=–—-](?=\s)|[€$£%]")
_FRAME = LatePattern(
    r"(?:is|are|am|runs? on|lives? in|works? (?:at|for)|goes to|go to|ends? (?:on|at)|leaves? at|costs?|takes?|"
    r"starts? (?:at|on)|opens? at|"
    r"closes? at|begins? at|owes?|weighs?|trains? (?:at|with)|needs?|studies at|reports? to|plays? for|pays?|earns?|"
    r"answer (?:me|us) in|reply in|due(?: on)?|owns?|have|has|got|[:=–—-])"
)
"""What stands before a value that there is one of. Behind some of them that is so for numbers only."""
_NUMBERS_ONLY = LatePattern(r"(?:owns?|have|has|got|takes?|needs?|owes?|pays?|earns?|costs?|weighs?)")
_TIME_WORD = LatePattern(
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august|september|october|"
    r"november|december|daily|weekly|monthly|once|twice|three|two|four|five|six|seven|eight|nine|ten|morning|afternoon|"
    r"evening|noon",
    re.IGNORECASE,
)
_PLAIN_WORDS = 2
"""Words of meaning that both must have besides the value."""
_MOST_VALUE, _MOST_WORDS = 4, 24


def other_value(old: str, new: str) -> str | Literal[False]:
    """Why the newer replaces the older; False where it does not."""
    a, b = _TOKEN.findall(spelled(old)), _TOKEN.findall(spelled(new))
    if not (3 <= len(a) <= _MOST_WORDS and 3 <= len(b) <= _MOST_WORDS):
        return False
    start, end = _shared_ends(a, b)
    was, becomes = a[start : len(a) - end], b[start : len(b) - end]
    shared = [word for word in (*a[:start], *a[len(a) - end :]) if word[0].isalnum() and word.lower() not in EMPTY]
    if not was or not becomes or len(shared) < _PLAIN_WORDS or max(len(was), len(becomes)) > _MOST_VALUE:
        return False
    sort = _sort(was)
    if sort != _sort(becomes) or _mixed(was) or {word.lower() for word in (*was, *becomes)} & BROAD:
        return False
    frame = _frame(a)
    if frame is None:
        return "another time of the same" if sort == "time" and start and not _VERBAL.search(" ".join(a)) else False
    at, words = frame
    if start <= at or (_NUMBERS_ONLY.fullmatch(words) and sort != "number"):
        return False
    if words in ("is", "are", "am") and (sort != "number" or start > at + 2):
        return False  # text.statements.contradicting knows which of these can be one only
    return f"another {sort} of the same"


def has_frame(text: str) -> bool:
    """Whether another text of the same form could have another value."""
    words = _TOKEN.findall(spelled(text))
    return 3 <= len(words) <= _MOST_WORDS and _frame(words) is not None


def _mixed(words: Sequence[str]) -> bool:
    """Whether it is a time of day on a day: another of both may be another occasion."""
    return any(":" in word for word in words) and any(_TIME_WORD.fullmatch(word) for word in words)


_VERBAL = LatePattern(r"\b(?:was|were|met|saw|had|went|did|ran|\w+ed)\b", re.IGNORECASE)


def _frame(words: Sequence[str]) -> tuple[int, str] | None:
    """Where the first frame ends, and its words."""
    lower = [word.lower() for word in words]
    for at in range(1, len(lower)):
        for long in (2, 1):
            text = " ".join(lower[at : at + long])
            if _FRAME.fullmatch(text):
                return at + long - 1, text
    return None


def _shared_ends(a: Sequence[str], b: Sequence[str]) -> tuple[int, int]:
    start, end = 0, 0
    while start < min(len(a), len(b)) and a[start].lower() == b[start].lower():
        start += 1
    while end < min(len(a), len(b)) - start and a[-1 - end].lower() == b[-1 - end].lower():
        end += 1
    return start, end


def _sort(words: Sequence[str]) -> Literal["number", "time", "name", "plain"]:
    if all(_TIME_WORD.fullmatch(word) or word[0].isdigit() or word.lower() in EMPTY for word in words):
        return "number" if all(word[0].isdigit() for word in words) else "time"
    return "name" if any(word[0].isupper() for word in words) else "plain"
