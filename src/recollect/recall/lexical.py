"""How well the words of a question match every memory: BM25 over posting lists.

A store finds the memories that have a word much faster than it ranks them, so the ranking is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Postings = Callable[[str], NDArray[np.integer[Any]]]
Texts = Callable[[Sequence[int]], Mapping[int, str]]
"""The positions of the memories that have a word, each once."""

_K1, _B = 1.2, 0.75
"""SQLite's own."""
_LEAST_IDF = 1e-6
"""A word that most memories have still counts for something, where nothing else does."""
_SHARPEN = 30


def brake_of(lengths: Floats, visible: Flags | None = None) -> Floats:
    """What BM25 takes off for length. Characters do as well as words."""
    counted = lengths if visible is None else lengths[visible]
    mean = float(counted.mean(dtype=np.float64)) if counted.size else 0.0
    return (_K1 * (1.0 - _B + _B * lengths / max(mean, 1.0))).astype(np.float32)


def text_scores(
    terms: Iterable[str],
    postings: Postings,
    brake: Floats,
    texts: Texts | None = None,
    visible: Flags | None = None,
) -> Floats:
    """The score of every memory, each word counted once in it; 0 where none is found.

    With `texts` the best thirty are read to see how often they say it. That helps where words are all there is.
    What is not `visible` does not score, and does not make a word less rare: nobody can tell that it is there.
    """
    count = len(brake) if visible is None else int(np.count_nonzero(visible))
    scores = np.zeros(len(brake), np.float32)
    found: list[tuple[str, float]] = []
    for term in dict.fromkeys(terms):
        rows = postings(term)
        if visible is not None:
            rows = rows[visible[rows]]
        if len(rows):
            idf = max(_LEAST_IDF, float(np.log((count - len(rows) + 0.5) / (len(rows) + 0.5))))
            scores[rows] += idf * (_K1 + 1.0) / (1.0 + brake[rows])
            found.append((_stem(term), idf))
    if texts is not None:
        _sharpen(scores, found, brake, texts)
    return scores


def _sharpen(scores: Floats, found: Sequence[tuple[str, float]], brake: Floats, texts: Texts) -> None:
    for row, read in texts(_best(scores, _SHARPEN)).items():
        text = " " + read.lower()
        held = float(brake[row])
        said = ((text.count(" " + stem), idf) for stem, idf in found)
        exact = sum(idf * times * (_K1 + 1.0) / (times + held) for times, idf in said)
        # What the index finds by its own rules (stems, endings) may not be seen here: it never loses by that.
        scores[row] = max(float(scores[row]), exact)


def _best(scores: Floats, limit: int) -> list[int]:
    """The positions of the highest scores above zero; of equals the first, so that the same are always read."""
    rows = np.flatnonzero(scores > 0)
    if len(rows) > limit:
        values = scores[rows]
        edge = np.partition(values, len(rows) - limit)[len(rows) - limit]
        above = rows[values > edge]
        rows = np.concatenate([above, rows[values == edge][: limit - len(above)]])
    return rows.tolist()


def _stem(term: str) -> str:
    """Enough of a word to count its other forms with it."""
    return term if len(term) < 5 else term[: max(4, len(term) - 2)]
