"""Patterns of a language's file, made into regular expressions: an accent in them may be left out in a text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_GERMAN = {"ä": "(?:ä|ae|a)", "ö": "(?:ö|oe|o)", "ü": "(?:ü|ue|u)", "ß": "(?:ß|ss)", "œ": "(?:œ|oe)"}
NEVER = re.compile(r"(?!)")


def compiled(patterns: Sequence[str], before: str = r"(?<!\w)", after: str = r"(?!\w)") -> re.Pattern[str]:
    """One expression that matches where any of them does, at the edges of words."""
    if not patterns:
        return NEVER
    return re.compile(f"{before}(?:{loose('|'.join(patterns))}){after}", re.IGNORECASE)


def loose(pattern: str) -> str:
    return "".join(map(_letter, pattern))


def _letter(letter: str) -> str:
    if letter in _GERMAN:
        return _GERMAN[letter]
    plain = unicodedata.normalize("NFD", letter)[0]
    return letter if plain == letter or not plain.isalpha() else f"[{letter}{plain}]"
