"""Text made ready for a word index that splits on spaces and punctuation.

Scripts written without spaces become overlapping pairs of letters; long words also stand under their endings, so that
the last part of a compound is found. The same function reads memories and queries, so they always meet.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

from recollect.text.query import LETTER

_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"  # CJK
)
_RUN = re.compile(f"[{_SPACELESS}]+")
_LONG_FROM, _LONG_TO = 12, 80
"""A run of more letters is no compound, and splitting it would cost the square of its length."""
_LONG = re.compile(rf"[^\W\d_]{{{_LONG_FROM},}}")
_SHORT_WORDS = re.compile(rf"(?:\S{{0,{_LONG_FROM - 1}}}+\s++)*+\S{{0,{_LONG_FROM - 1}}}+").fullmatch
_WORD = re.compile(f"{LETTER}+")
_MARKS = re.compile("[\u0300-\u036f]+")

_HEAD, _TAIL = 3, 5
"""The shortest beginning and ending that a long word is split into."""


def normalize(text: str) -> str:
    """One spelling for what reads the same: full-width letters, ligatures, ß."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def fold(text: str) -> str:
    """One spelling for what may be spelt either way: no capitals, and no marks on letters that can stand without."""
    if text.isascii():
        return text.lower()
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", bare)


def segment(text: str) -> str:
    """What goes into the index for a text."""
    text = normalize(text)
    extra: list[str] = []
    if not text.isascii() and _RUN.search(text):
        text = _RUN.sub(lambda run: f" {' '.join(_pairs(run.group(), extra))} ", text)
    if not _SHORT_WORDS(text):
        for word in _LONG.findall(text):
            extra += _endings(word)
    # Endings go behind the text, where they cannot come between the words of a phrase.
    return f"{text}\n{' '.join(extra)}" if extra else text


def _pairs(run: str, singles: list[str]) -> list[str]:
    """Pairs of neighbouring letters; the last letter also alone, so that every letter begins some entry."""
    letters = _letters(run)
    singles.append(letters[-1])
    return [a + b for a, b in pairwise(letters)] or letters


def _letters(run: str) -> list[str]:
    """Letters with the marks that belong to them: a Thai vowel sign is not a letter of its own."""
    letters: list[str] = []
    for char in run:
        if letters and unicodedata.category(char)[0] == "M":
            letters[-1] += char
        else:
            letters.append(char)
    return letters


def terms(text: str) -> list[str]:
    """The index entries that stand for a text in a query, in order. A lone letter ends in `*`: it may begin a pair."""
    text = normalize(text)
    if text.isascii():
        return _WORD.findall(text)
    words: list[str] = []
    at = 0
    for run in _RUN.finditer(text):
        words += _WORD.findall(text[at : run.start()])
        letters = _letters(run.group())
        words += [a + b for a, b in pairwise(letters)] or [letters[0] + "*"]
        at = run.end()
    return words + _WORD.findall(text[at:])


def parts(word: str) -> list[str]:
    """Beginnings and endings of a long word: what a compound may be made of."""
    if len(word) > _LONG_TO or not _LONG.fullmatch(word):
        return []
    return _endings(word) + [word[:at] for at in range(_TAIL, len(word) - _HEAD + 1)]


def _endings(word: str) -> list[str]:
    return [word[at:] for at in range(_HEAD, len(word) - _TAIL + 1)] if len(word) <= _LONG_TO else []


def spaceless(word: str) -> bool:
    return not word.isascii() and _RUN.search(word) is not None
