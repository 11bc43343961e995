"""Of whom a question asks."""

from __future__ import annotations

import re
from collections.abc import Collection, Set
from functools import lru_cache

from recollect.text.query import LETTER
from recollect.text.segment import spaceless

_QUERY_WORD = re.compile(rf"{LETTER}(?:{LETTER}|['’-])*")
_QUERY_PART = re.compile(rf"(?:(?!_){LETTER})+")
_POSSESSIVE = re.compile(r"['’]s?$")
_ME = re.compile(r"\b(i|me|my|mine|myself)\b", re.IGNORECASE)
_YOU = re.compile(r"\b(you|your|yours)\b", re.IGNORECASE)
_ROLES = frozenset({"user", "assistant"})


def asked(query: str, speakers: Collection[str]) -> set[str]:
    """The speakers that a question is about. "I" is the user, "you" the assistant; all of them is none of them."""
    known = set(speakers) - {""}
    said = _words(query)
    named = {name for name in known - _ROLES if not said.isdisjoint(_called(name)) or _within(name, query)}
    if not named and (me := bool(_ME.search(query))) != bool(_YOU.search(query)):
        named = {"user" if me else "assistant"} & known
    return named if named != known else set()


def without_names(query: str, named: Set[str]) -> str:
    """What is embedded: names pull toward turns that address the person, not toward what was asked."""
    names = sorted(word for name in named - _ROLES for word in _called(name))
    if not names:
        return query
    either = "|".join(
        re.escape(name) if spaceless(name) else rf"(?<!{LETTER}){re.escape(name)}(?!{LETTER})" for name in names
    )
    bare = re.sub(rf"(?:{either})(?:['’]s)?\s*", "", query, flags=re.IGNORECASE)
    return bare if re.search(r"\w", bare) else query


@lru_cache(maxsize=4096)
def _called(name: str) -> frozenset[str]:
    """Any word of a name stands for it, but a title does not: there are many a Dr."""
    words = name.split()
    return frozenset(word.rstrip(".") for word in words if not word.endswith(".")) or frozenset(words)


def _words(query: str) -> set[str]:
    """Words whole and in parts: O'Brien's is O'Brien, but Alice-related is of Alice."""
    text = query.lower()
    return {_POSSESSIVE.sub("", word) for word in _QUERY_WORD.findall(text)} | set(_QUERY_PART.findall(text))


def _within(name: str, query: str) -> bool:
    """Scripts without spaces between words do not set a name apart."""
    return spaceless(name) and any(word in query.lower() for word in _called(name))
