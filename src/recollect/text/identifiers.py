"""What names one thing exactly: `INV-2024-0118`, `v2.14.9`, `LH1234`. One with another digit is another thing."""

from __future__ import annotations

import re
from collections.abc import Collection

_TOKEN = re.compile(r"\w+(?:[-./:_#]\w+)*")
_QUANTITY = re.compile(
    r"\d+[a-z%]{1,3}"  # 7pm, 20th, 5kg
    r"|\d+(?:[.,:/]\d+)?"  # 12, 1.5, 9:15, 24/7
    r"|\d{1,3}(?:[.,]\d{3})+"
    r"|\d{4}-\d{1,2}(?:-\d{1,2})?(?:t.*)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}"  # dates
    r"|\d+-(?:[a-z]+|\d{1,2})|\d{4}s?[-/]\d{2,4}s?|[a-z]+-?\d",  # 3-day, 5-10, 2024-25, covid-1
    re.IGNORECASE,
)
_CAMEL = re.compile(r"[a-z]{2,}(?:[A-Z][a-z0-9]+)+")
_RUNS = re.compile(r"\d+|[^\W\d_]+")
_LONG_NUMBER = 5
"""Digits. A shorter number may be an amount, a year or a door."""
_LETTERED = re.compile(r"\b[a-z]{3,} [A-HJ-Z]\b(?!['’.])")
"""Drug A and not drug B."""
_NUMBERED = re.compile(
    r"\b(?:port|room|extension|code|number|no\.?|nr\.?|order|ticket|invoice|case|issue|gate|flight|line|pin|id)\s+#?(\d{3,})"
    r"|#(\d{2,})",
    re.IGNORECASE,
)


def identifiers(text: str) -> set[str]:
    """In lower case."""
    tokens = {match[0].lower() for match in _TOKEN.finditer(text) if _is_one(match[0])}
    tokens |= {match[0].lower() for match in _LETTERED.finditer(text)}
    return tokens | {a or b for a, b in _NUMBERED.findall(text)}


def _is_one(token: str) -> bool:
    if token.isalpha() and token.islower():  # nearly all words
        return False
    if "_" in token.strip("_") or _CAMEL.fullmatch(token):
        return True
    if token.isdecimal():
        return len(token) >= _LONG_NUMBER
    return any(map(str.isdigit, token)) and not _QUANTITY.fullmatch(token)


def of_another(text: str, asked: Collection[str]) -> bool:
    """Whether a text names, of what is asked for, only another of the same kind."""
    here = identifiers(text)
    shapes = {_shape(identifier) for identifier in here}
    return here.isdisjoint(asked) and any(_shape(identifier) in shapes for identifier in asked)


def _shape(identifier: str) -> str:
    """Equal for identifiers that differ in letters and digits only."""
    return _RUNS.sub(lambda run: "9" if run[0][0].isdigit() else "a", identifier)
