"""Names that a conversation has brought up, so that a later "dejan" is read as a name, as "Dejan" is."""

from __future__ import annotations

import re

from recollect.text.late_pattern import LatePattern

_INSIDE = LatePattern(r"(?<=[a-z0-9,;] )[A-Z][a-zà-ÿ]{2,}\b(?! [A-Z])")
"""A word with a capital inside a sentence."""
_RELATED = LatePattern(
    r"\b(?:wife|husband|son|daughter|boy|girl|sister|brother|boss|niece|nephew|cousin|friend|colleague|partner|mother|"
    r"father|dog|cat|aunt|uncle),? (?:is |called |named )?(?P<name>[^\W\d_]{3,})(?=,|'s|\.|$| is\b| \d)|"
    r"\b(?P<told>[^\W\d_]{3,})(?:'s| is|,| \()? ?(?:(?<= )\d{1,2}\b(?! ?(?:am|pm|min|h|%|€|x|:|°))|(?<=[ (])"
    r"my (?:mil|wife|husband|son|"
    r"daughter|sister|brother|boss|niece|nephew|cousin|friend|partner|mother|father|mum|dad|dog|cat)\b)",
    re.IGNORECASE,
)
_NO_NAMES = LatePattern(
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august|\w+ember|"
    r"october|"
    r"(?:that|this|here|there|what|who|mine|yours|the|and|but|for|with|has|had|was|are|were|from|now|not|she|about|"
    r"only|till|until|since|after|before|around|over|under|next|last|just|than|like|will|mark|rose|grace|hope|faith|"
    r"bill|sue|pat|art|one|two|three|age|aged|home|house|flat|number|room|work|got|turns?|turned|him|her|them|you|"
    r"i'm|english|german|french|christmas|easter|god|today|who|someone|somebody|one|it|works?|lives?|because|when))",
    re.IGNORECASE,
)


def names_in(text: str, role: str) -> frozenset[str]:
    """Names in lower case: words with a capital inside a sentence, and words beside a relation or an age."""
    names = {match.group() for match in _INSIDE.finditer(text)}
    if role == "user":
        names.update(match["name"] or match["told"] for match in _RELATED.finditer(text))
    return frozenset(name.lower() for name in names if not _NO_NAMES.fullmatch(name))


def with_capitals(sentence: str, names: frozenset[str]) -> str:
    """The sentence, with a capital for each of the names."""
    if not names:
        return sentence
    return re.sub(
        r"\b[^\W\d_]{2,}", lambda word: word.group().capitalize() if word.group() in names else word.group(), sentence
    )
