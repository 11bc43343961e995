"""Which language a text is in, by its common words and letters."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, lru_cache

from recollect.text.languages import Language, codes, language

UNKNOWN = "unknown"
_WORD = re.compile(r"[^\W\d_]+'?")
_SHORT_WORDS = re.compile(r"\b[^\W\d_]+'(?:m|ve|ll|d|re|s|t)\b")
"""English ones, in which the apostrophe stands inside a word."""
_MOST_WORDS = 60
"""Words that are looked at. More would say the same."""
_ENOUGH = 0.6
"""Points of the best language: a common word that no other has gives one."""
_OF_ITS_FIELD = 0.6
"""Points of a word that is in other tables of a language, and not common in talk."""
_PLAIN_WORD = re.compile(r"(?<![\w\\)\]?*])[^\W\d_]+(?![\w\\(\[?*+{])")
"""A word in a pattern that is there as a whole."""
_SHORTEST = 3
_AHEAD = 1.25
"""Times the points of the second."""


@lru_cache(maxsize=4096)
def language_of(text: str, enough: float = _ENOUGH) -> str:
    """The code of a text's language, such as "de", or "unknown" where it is not sure."""
    points: defaultdict[str, float] = defaultdict(float)
    by_word, by_letter = _tables()
    low = text[:1000].lower().replace("’", "'")
    for word in set(_words(low)[:_MOST_WORDS]):
        for code, worth in by_word.get(word) or by_word.get(_plain(word), ()):
            points[code] += worth
    for letter in set(low) & by_letter.keys():
        for code, worth in by_letter[letter]:
            points[code] += worth
    if not points:
        return UNKNOWN
    (best, most), *others = sorted(points.items(), key=lambda item: -item[1])
    return best if most >= enough and (not others or most >= _AHEAD * others[0][1]) else UNKNOWN


def _words(low: str) -> list[str]:
    short = _SHORT_WORDS.findall(low)
    return [*short, *_WORD.findall(_SHORT_WORDS.sub(" ", low) if short else low)]


_Table = dict[str, tuple[tuple[str, float], ...]]


@cache
def _tables() -> tuple[_Table, _Table]:
    """What each word and each letter says for which language: less where several have it."""
    words: defaultdict[str, set[str]] = defaultdict(set)
    others: defaultdict[str, set[str]] = defaultdict(set)
    letters: defaultdict[str, set[str]] = defaultdict(set)
    for code in codes():
        spec = language(code)
        for word in spec.words.common.split():
            words[word].add(code)
            words[_plain(word)].add(code)
        for word in _other_words(spec):
            others[word].add(code)
            others[_plain(word)].add(code)
        for letter in spec.words.letters.replace(" ", ""):
            letters[letter].add(code)
    for word in words.keys() & others.keys():
        words[word] |= others[word]
    return {**_worth(others, _OF_ITS_FIELD), **_worth(words, 1.0)}, _worth(letters, 0.8)


def _other_words(spec: Language) -> Iterator[str]:
    """Whole words of what else is told of a language: names of fields, relations, events."""
    statements = spec.statements
    tables = (
        statements.first_person,
        statements.verbs,
        statements.relations,
        statements.fields,
        statements.events,
        statements.dates,
        spec.talk.remember,
    )
    patterns = [pattern for table in tables for pattern in table]
    patterns += [noun for slot in spec.slots.values() for noun in (*slot.noun, slot.words)]
    # Without its question marks, "mardis?" is a word.
    for text in (" ".join(patterns), spec.talk.small_talk, spec.events.noun):
        yield from (word for word in _PLAIN_WORD.findall(text.replace("?", "")) if len(word) > _SHORTEST)


def _worth(table: dict[str, set[str]], most: float) -> _Table:
    return {key: tuple((code, most / len(languages)) for code in sorted(languages)) for key, languages in table.items()}


def _plain(word: str) -> str:
    """A word without its accents, as many type it."""
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
