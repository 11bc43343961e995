"""Reading what was asked: quoted phrases, wildcards, and the words that carry meaning."""

from __future__ import annotations

import re

from recollect.textquery import TextQuery

_PHRASE = re.compile(r'"([^"]+)"|“([^”]+)”')
_WILD = re.compile(r"[\w*?]*\w[\w*?]*[*?][\w*?]*|[*?]+\w[\w*?]*")
_WORD = re.compile(r"\w+")

_UNSAID = frozenset(
    """a about an and are as at be been by can could did do does for from had has have how i if in into is it its me my
    of on or our please should so tell than that the their them then there these they this to us was we were what when
    where which who whom whose why will with would you your""".split()
)
"""English words that a question is asked with, not asked about. They only count when there is nothing else."""


def read(query: str) -> TextQuery:
    phrases: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    if '"' in query or "“" in query:
        phrases = tuple(a or b for a, b in _PHRASE.findall(query))
        query = _PHRASE.sub(" ", query)
    if "*" in query or "?" in query:
        patterns = tuple(pattern for pattern in _WILD.findall(query) if _is_wild(pattern))
        for pattern in patterns:
            query = query.replace(pattern, " ", 1)
    words = dict.fromkeys(_WORD.findall(query.lower()))
    telling = tuple(word for word in words if word not in _UNSAID and (len(word) > 1 or not word.isascii()))
    return TextQuery(telling or tuple(words), phrases, patterns)


def _is_wild(pattern: str) -> bool:
    """A question mark that ends a word ends a question."""
    return "*" in pattern or "?" in pattern.rstrip("?")
