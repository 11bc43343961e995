"""Which speakers a question mentions."""

from __future__ import annotations

import re
from collections.abc import Collection, Set
from functools import lru_cache

from recollect.text.query import LETTER
from recollect.text.segment import spaceless
from recollect.text.times import CALENDAR_NAMES
from recollect.text.words import stem

_QUERY_WORD = re.compile(rf"{LETTER}(?:{LETTER}|['’-])*")
_QUERY_PART = re.compile(rf"(?:(?!_){LETTER})+")
_POSSESSIVE = re.compile(r"['’]s?$")
_ME = re.compile(r"\b(i|me|my|mine|myself)\b", re.IGNORECASE)
_YOU = re.compile(r"\b(you|your|yours)\b", re.IGNORECASE)
_ENGLISH = re.compile(r"\b(?:the|what|when|where|which|who|whose|why|how|does|did|is|are|has|of)\b", re.IGNORECASE)
_BEGINS = re.compile(r"(?:^|[.!?…:\n])[^\w]*$")
"""What stands before the first word of a sentence."""
_NEAR = 16
"""Characters. More signs do not stand between two sentences."""
_ROLES = frozenset({"user", "assistant"})


def mentioned_speakers(query: str, speakers: Collection[str]) -> set[str]:
    """The speakers that a question is about. "I" is the user, "you" the assistant.

    If a question names every speaker, the set is empty: there is nobody to filter out.
    """
    everyone = set(speakers) - {""}
    words = _words(query)
    named = {name for name in everyone - _ROLES if not words.isdisjoint(_name_words(name)) or _within(name, query)}
    if not named and (me := bool(_ME.search(query))) != bool(_YOU.search(query)):
        named = {"user" if me else "assistant"} & everyone
    return named if named != everyone else set()


def without_names(query: str, named: Set[str]) -> str:
    """The query as it is embedded. A name would pull its vector toward turns that address the person."""
    names = sorted(word for name in named - _ROLES for word in _name_words(name))
    if not names:
        return query
    either = "|".join(
        re.escape(name) if spaceless(name) else rf"(?<!{LETTER}){re.escape(name)}(?!{LETTER})" for name in names
    )
    bare = re.sub(rf"(?:{either})(?:['’]s)?\s*", "", query, flags=re.IGNORECASE)
    return bare if re.search(r"\w", bare) else query


def names_in(query: str) -> dict[str, str]:
    """The names in an English question, by their lower-case spelling: what is written with a capital, and does not
    begin a sentence. German writes every noun so, hence none in a question of another language."""
    if query.isupper() or not _ENGLISH.search(query):
        return {}
    words = [(match[0], match.start()) for match in _QUERY_PART.finditer(query)]
    inside = [word for word, at in words if word[:1].isupper() and not begins_sentence(query, at)]
    return {word.lower(): word for word in inside if word.lower() not in CALENDAR_NAMES}


def is_named(text: str, name: str) -> bool:
    return re.search(rf"(?<!{LETTER}){re.escape(name)}(?!{LETTER})", text, re.IGNORECASE) is not None


def has_another_name(text: str, name: str) -> bool:
    """Whether somebody is named whose name an index takes for this one, Simone for Simon, and not this one."""
    like = _root(name)
    return any(word[0].isupper() and _root(word) == like for word in _QUERY_WORD.findall(text)) and not is_named(
        text, name
    )


def _root(name: str) -> str:
    return re.sub("y$", "i", stem(name.lower()))


def begins_sentence(text: str, at: int) -> bool:
    return bool(_BEGINS.search(text[max(at - _NEAR, 0) : at]))


@lru_cache(maxsize=4096)
def _name_words(name: str) -> frozenset[str]:
    """The words that stand for a name: each of its words except titles, for many people are a "Dr."."""
    words = name.split()
    return frozenset(word.rstrip(".") for word in words if not word.endswith(".")) or frozenset(words)


def _words(query: str) -> set[str]:
    """The words of a query, whole and in parts: "O'Brien's" gives "o'brien", and "Alice-related" gives "alice", too."""
    text = query.lower()
    return {_POSSESSIVE.sub("", word) for word in _QUERY_WORD.findall(text)} | set(_QUERY_PART.findall(text))


def _within(name: str, query: str) -> bool:
    """Whether a query contains the name. Only for scripts that put no spaces between words."""
    return spaceless(name) and any(word in query.lower() for word in _name_words(name))
