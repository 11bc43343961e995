"""Words of a question that no memory has, and that one letter makes into a word that some have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from recollect.text.query import LETTER

SHORTEST = 5
"""Letters. A shorter word is one letter away from too many others."""
_LONG = 7
_WORD = re.compile(f"{LETTER}+")


def beginning(word: str) -> str | None:
    """What a word that was meant begins with, if the word can be a misspelling: the first letters are mostly right."""
    if len(word) < SHORTEST or not word.isalpha():
        return None
    return word[: 3 if len(word) >= _LONG else 2]


def meant(word: str, texts: Iterable[str]) -> str | None:
    """The word of the texts that is one letter away: one more, one less, another, or two that changed places.

    Of several the one that most texts have.
    """
    frequency = Counter(
        other for text in texts for other in set(_WORD.findall(text.lower())) if differ_by_one(word, other)
    )
    return min(frequency, key=lambda other: (-frequency[other], other)) if frequency else None


def differ_by_one(word: str, other: str) -> bool:
    shorter, longer = sorted((word, other), key=len)
    if len(longer) - len(shorter) > 1 or word == other or word[0] != other[0]:
        return False
    at = next((place for place, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    if len(shorter) < len(longer):
        return shorter[at:] == longer[at + 1 :]
    swapped = shorter[at + 1 : at + 2] + shorter[at : at + 1] + shorter[at + 2 :]
    return shorter[at + 1 :] == longer[at + 1 :] or swapped == longer[at:]
