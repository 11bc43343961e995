"""Who said a memory, and of whom a question asks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence, Set
from functools import lru_cache

import msgspec

from recollect.stores.segment import spaceless
from recollect.textquery import LETTER

_WORD = rf"(?=[^\W\d_])(?:{LETTER}|[.'’-])+"
_PREFIX = re.compile(rf"({_WORD}(?: {_WORD}){{0,2}})(?:: |：)")
_QUERY_WORD = re.compile(rf"{LETTER}(?:{LETTER}|['’-])*")
_QUERY_PART = re.compile(rf"(?:(?!_){LETTER})+")
_POSSESSIVE = re.compile(r"['’]s?$")
_ME = re.compile(r"\b(i|me|my|mine|myself)\b", re.IGNORECASE)
_YOU = re.compile(r"\b(you|your|yours)\b", re.IGNORECASE)
_ROLES = frozenset({"user", "assistant"})

HEAD = 200
"""So much of a text is enough to see who speaks."""


class Voice(msgspec.Struct, frozen=True):
    """What one memory tells of who said it."""

    name: str
    """In lower case; empty if there is none."""
    certain: bool
    """Whether it was given. A name before a colon may as well be a heading."""
    role: str


def speaker(text_head: str, role: str | None = None, metadata: Mapping[str, object] | None = None) -> Voice:
    """The name in `metadata["speaker"]`, or else the name that the text begins with."""
    given = metadata.get("speaker") if metadata else None
    if isinstance(given, str) and given.strip():
        return Voice(" ".join(given.lower().split()), True, role or "")
    found = prefix(text_head)
    return Voice(found[0].lower() if found else "", False, role or "")


def prefix(text: str) -> tuple[str, int] | None:
    """The name before a colon, as it is written, and where what was said begins."""
    found = _PREFIX.match(text)
    # Regular expressions do not know capitals of every script, and many scripts have none.
    if not found or any(word[0].islower() for word in found[1].split(" ")):
        return None
    return found[1], found.end()


def settle(voices: Sequence[Voice], conversations: Iterable[Hashable]) -> list[str]:
    """Who said each: the name if it was given or begins two turns of its conversation, else the role, else nobody."""
    turns = list(zip(voices, conversations, strict=True))
    often = Counter((voice.name, conversation) for voice, conversation in turns)
    return [
        voice.name if voice.name and (voice.certain or often[voice.name, conversation] > 1) else voice.role
        for voice, conversation in turns
    ]


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
