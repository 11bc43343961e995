"""Words of a question that no memory has, and that one letter makes into a word that some have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from recollect.text.mentions import begins_sentence
from recollect.text.query import LETTER
from recollect.text.segment import spaceless

SHORTEST = 5
"""Letters. A shorter word is one letter away from too many others."""
_LONGEST = 24
"""Nobody types a longer word by heart, and it is one letter away from thousands."""
_LONG = 7
_ENDING = 3
"""Letters that an index may leave out."""
_ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґ", "αβγδεζηθικλμνξοπρσςτυφχψω")
_VOWELS = "aeiou"
_WORD = re.compile(f"{LETTER}+")
_KEYS = "qwertyuiop", "asdfghjkl", "zxcvbnm"


def may_be_misspelled(word: str) -> bool:
    return SHORTEST <= len(word) <= _LONGEST and word.isalpha() and not spaceless(word)


def slips(word: str) -> list[str]:
    """What the word was to be if the hand has slipped, as happens in a name as well: two letters have changed places,
    or one is doubled or not. The first letter is mostly right."""
    changed = [word[:at] + word[at : at + 2][::-1] + word[at + 2 :] for at in range(1, len(word))]
    single = [word[:at] + word[at + 1 :] for at in range(1, len(word)) if word[at] == word[at - 1]]
    double = [word[:at] + letter + word[at:] for at, letter in enumerate(word)]
    return [other for other in dict.fromkeys((*changed, *single, *double)) if other != word]


def neighbours(word: str) -> list[str]:
    """The words that lack a letter, or have one more, one beside it on the keyboard, or in a long word another vowel.
    Another name may be so, too."""
    alphabet = next((letters for letters in _ALPHABETS if word[0] in letters), "")
    others: dict[str, None] = {}
    for at in range(1, len(word)):
        others[word[:at] + word[at + 1 :]] = None
        for letter in _beside(word[at]) + (_VOWELS if len(word) >= _LONG and word[at] in _VOWELS else ""):
            others[word[:at] + letter + word[at + 1 :]] = None
    for at in range(1, len(word) + 1):
        others |= dict.fromkeys(word[:at] + letter + word[at:] for letter in alphabet)
    return [other for other in others if other != word]


@cache
def _beside(letter: str) -> str:
    """The letters around it on a keyboard."""
    rows = [(row, keys.index(letter)) for row, keys in enumerate(_KEYS) if letter in keys]
    return "".join(
        keys[column]
        for row, at in rows
        for other, keys in enumerate(_KEYS)
        for column in range(len(keys))
        if keys[column] != letter and _near(other - row, column - at)
    )


def _near(down: int, right: int) -> bool:
    """Each row is set off to the right of the one above."""
    return (down == 0 and abs(right) == 1) or (down == 1 and right in (-1, 0)) or (down == -1 and right in (0, 1))


def as_written(word: str, texts: Iterable[str]) -> str | None:
    """A word as the texts have it, perhaps with another ending. An index also has parts of long words."""
    written = [other for text in texts for other in _WORD.findall(text.lower())]
    root = word[: max(len(word) - _ENDING, SHORTEST - 1)]
    near = (other for other in written if other.startswith(root) and abs(len(other) - len(word)) <= _ENDING)
    return word if word in written else next(near, None)


def is_name(word: str, texts: Iterable[str], *, asked_as_name: bool) -> bool:
    """Whether texts write it with a capital wherever it is. At the beginning of a sentence that says nothing."""
    inside = asked_as_name
    for text in texts:
        for match in re.finditer(rf"\b{re.escape(word)}\b", text, re.IGNORECASE):
            if not match[0][0].isupper():
                return False
            inside = inside or not begins_sentence(text, match.start())
    return inside
