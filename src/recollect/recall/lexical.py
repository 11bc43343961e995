"""How well the words of a question match every memory: BM25 over posting lists.

A store finds the memories that have a word much faster than it ranks them, so the ranking is done here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.text.query import LETTER

Floats = NDArray[np.float32]
Texts = Callable[[Sequence[int]], Mapping[int, str]]

_K1, _B = 1.2, 0.75
"""SQLite's own."""
_LEAST_IDF = 1e-6
"""A word that most memories have still counts for something, where nothing else does."""
_SHARPEN = 30
_REPEATED = 0.25
"""The share that counts of what BM25 gives for saying a word again. Measured: all of it costs the first ranks."""
_WORD = re.compile(f"{LETTER}+")


def brake_of(lengths: Floats, mean: float) -> Floats:
    """What BM25 takes off for length. Characters do as well as words."""
    return (_K1 * (1.0 - _B + _B * lengths / max(mean, 1.0))).astype(np.float32)


def text_scores(
    words: Mapping[str, NDArray[np.integer[Any]]],
    count: int,
    frequency: Mapping[str, int],
    brake: Floats,
    texts: Texts | None = None,
    *,
    selected: bool = False,
) -> Floats:
    """The score of every memory, each word counted once in it; 0 where none is found.

    `words` has the positions of those that have each word, `count` and `frequency` tell of all that can be seen. With
    `texts` the best thirty are read to see how often they say it. `selected` means that only memories with a phrase or
    pattern can be seen: most of those may have the word, and it must still count, so its rarity never falls to zero.
    """
    scores = np.zeros(len(brake), np.float32)
    rarity_of = word_weight if selected else _rarity
    rarity: dict[str, float] = {}
    for word, at in words.items():
        if len(at):
            rarity[word] = rarity_of(frequency[word], count)
            scores[at] += rarity[word] * (_K1 + 1.0) / (1.0 + brake[at])
    if texts is not None:
        _sharpen(scores, rarity, brake, texts)
    return scores


def _rarity(frequency: int, count: int) -> float:
    """BM25's idf, which is below zero for a word that most memories have."""
    return max(_LEAST_IDF, float(np.log((count - frequency + 0.5) / (frequency + 0.5))))


def word_weight(frequency: int, count: int) -> float:
    """The weight of a word in a question, always above 0; a word that no memory has weighs most, unlike in a score."""
    return float(np.log(1.0 + (count - frequency + 0.5) / (frequency + 0.5)))


def _sharpen(scores: Floats, rarity: Mapping[str, float], brake: Floats, texts: Texts) -> None:
    stems = [(" " + _stem(word), idf) for word, idf in rarity.items()]
    for at, text in texts(_best(scores, _SHARPEN)).items():
        words = " " + " ".join(_WORD.findall(text.lower()))
        held = float(brake[at])
        counts = ((words.count(stem), idf) for stem, idf in stems)
        exact = sum(idf * times * (_K1 + 1.0) / (times + held) for times, idf in counts)
        # What the index finds by its own rules (stems, endings) may not be seen here: it never loses by that.
        scores[at] += _REPEATED * max(0.0, exact - float(scores[at]))


def _best(scores: Floats, limit: int) -> list[int]:
    """The positions of the highest scores above zero; of equals the first, so that the same are always read."""
    rows = np.flatnonzero(scores > 0)
    if len(rows) > limit:
        values = scores[rows]
        edge = np.partition(values, len(rows) - limit)[len(rows) - limit]
        above = rows[values > edge]
        rows = np.concatenate([above, rows[values == edge][: limit - len(above)]])
    return rows.tolist()


def _stem(word: str) -> str:
    """Enough of a word to count its other forms with it."""
    word = word.rstrip("*")
    return word if len(word) < 5 else word[: max(4, len(word) - 2)]
