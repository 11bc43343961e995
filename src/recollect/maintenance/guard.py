"""What two memories must have in common before their vectors may make one of them.

A model finds "the limit is 5" and "the limit is 50" almost equal, and a statement and its denial too. Numbers, names
and negations are compared as they are written.
"""

from __future__ import annotations

import re

from recollect.text.words import WORD

_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot|"
    r"nicht|kein\w*|nie|niemals|ohne|niemand|nichts|weder|"
    r"nunca|sin|jamás|nadie|nada|tampoco|ni|"
    r"ne|pas|jamais|sans|aucune?|personne|rien)\b|n['’]t\b|\bn['’](?=\w)",
    re.IGNORECASE,
)
_NUMBERS = frozenset(
    """zero one two three four five six seven eight nine ten eleven twelve hundred thousand million first second third
    monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
    october november december""".split()
)
"""Words that are as exact as digits."""
_SIGNS = re.compile(r"[?#%&@*\\+=<>€$£¥°²³-]")
"""Signs that tell C from C#, 5 from 5 % and a question from a statement."""


def guard(text: str) -> tuple[object, ...]:
    """Equal for texts whose vectors may be trusted. Different only says that they are not."""
    words = WORD.findall(text)
    exact = sorted(word.casefold() for word in words if any(map(str.isdigit, word)) or word.casefold() in _NUMBERS)
    # The first word of a sentence is written with a capital whatever it is, so only a name tells by one elsewhere.
    names = frozenset(word.casefold() for word in _inner(text) if not word.islower())
    denials = sorted(found.casefold() for found in _NEGATION.findall(text))
    return tuple(exact), names, len(denials), "".join(sorted(_SIGNS.findall(text)))


_STARTS = re.compile(r"(?:^|[.!?:]\s+)\W*\w[\w'’]*")


def _inner(text: str) -> list[str]:
    """Words that do not begin a sentence, and those that do but have a capital inside as well."""
    rest = _STARTS.sub(lambda start: start[0] if _odd(start[0]) else " ", text)
    return [word for word in WORD.findall(rest) if word[0].isalpha()]


def _odd(start: str) -> bool:
    word = start.strip(".!?: \"'(")
    return any(map(str.isupper, word[1:]))
