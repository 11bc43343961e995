"""Which language a text is in, by its common words and letters."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from functools import cache, lru_cache

from recollect.text.languages import codes, language

UNKNOWN = "unknown"
_WORD = re.compile(r"[^\W\d_]+")
_MOST_WORDS = 60
"""Words that are looked at. More would say the same."""
_ENOUGH = 0.9
"""Points of the best language: a word that no other has gives one."""
_AHEAD = 1.25
"""Times the points of the second."""


@lru_cache(maxsize=4096)
def language_of(text: str) -> str:
    """The code of a text's language, such as "de", or "unknown" where it is not sure."""
    points: defaultdict[str, float] = defaultdict(float)
    by_word, by_letter = _tables()
    for word in _WORD.findall(text[:1000].lower())[:_MOST_WORDS]:
        for code, worth in by_word.get(word) or by_word.get(_plain(word), ()):
            points[code] += worth
    for letter in set(text[:1000].lower()) & by_letter.keys():
        for code, worth in by_letter[letter]:
            points[code] += worth
    if not points:
        return UNKNOWN
    (best, most), *others = sorted(points.items(), key=lambda item: -item[1])
    return best if most >= _ENOUGH and (not others or most >= _AHEAD * others[0][1]) else UNKNOWN


_Table = dict[str, tuple[tuple[str, float], ...]]


@cache
def _tables() -> tuple[_Table, _Table]:
    """What each word and each letter says for which language: less where several have it."""
    words: defaultdict[str, set[str]] = defaultdict(set)
    letters: defaultdict[str, set[str]] = defaultdict(set)
    for code in codes():
        spec = language(code).words
        for word in spec.common.split():
            words[word].add(code)
            if (plain := _plain(word)) != word:
                words[plain].add(code)
        for letter in spec.letters.replace(" ", ""):
            letters[letter].add(code)
    return _worth(words, 1.0), _worth(letters, 0.8)


def _worth(table: dict[str, set[str]], most: float) -> _Table:
    return {
        key: tuple((code, most if len(found) == 1 else most / (2 * len(found) - 1)) for code in sorted(found))
        for key, found in table.items()
    }


def _plain(word: str) -> str:
    """A word without its accents, as many type it."""
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
