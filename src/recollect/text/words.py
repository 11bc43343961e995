"""Words of a text as they are compared: one form for each, in English."""

from __future__ import annotations

import re
from functools import cache, lru_cache

WORD = re.compile(r"\d[\d.,:/-]*\d|[^\W_]+(?:['’][^\W_]+)*")

_PERSONS = {
    "@me": "i me my mine i'm i've",
    "@you": "you your yours",
    "@he": "he him his",
    "@she": "she her hers",
    "@we": "we us our ours",
    "@they": "they them their",
}
"""One word for a person in every case: "my" car and the car "I" drive have the same owner."""

_ENDINGS = ("ing", "ied", "ies", "ed", "es", "s", "e")
"""Taken off, so that "sits" and "sitting" are one word. Longer ones first."""

_CAPITALISED = re.compile(r"(?<!\S)([A-Z])(?=[a-z]{2,}(?![\w./:#@-]))")
"""The first letter of a plain word. Other capitals matter: MW is not mW, and a link is not another."""


def stems(text: str) -> list[str]:
    """Every word of a text in its one form, in order."""
    return list(map(stem, WORD.findall(text.lower())))


def normal(text: str) -> str:
    """A text without what changes nothing: spaces, capitals that begin a plain word, and how the sentence ends."""
    return _CAPITALISED.sub(lambda letter: letter[0].lower(), " ".join(text.split())).rstrip(" .!") or text


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A word in lower case without its ending, or one sign for all forms of a person."""
    word = word.replace("’", "'")
    if person := _persons().get(word):
        return person
    word = word.removesuffix("'s")
    for end in _ENDINGS:
        if word.endswith(end) and len(word) - len(end) >= 3:
            return word[: -len(end)]
    return word


@cache
def _persons() -> dict[str, str]:
    return {word: person for person, words in _PERSONS.items() for word in words.split()}
