"""The shortlist of a question, from a copy in memory of the whole place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from recollect.stores.port import Place
from recollect.stores.resident.columns import Columns
from recollect.stores.resident.highest import highest
from recollect.stores.resident.snapshot import Mask
from recollect.stores.resident.vectors import exact_cosines
from recollect.stores.shortlist import Ask, Floats, Positions, Shortlist, Whole
from recollect.text.query import TextQuery
from recollect.text.terms import index_entries

_FEW, _MOST = 400, 4096
"""Among so few, all cosines are exact; among the second number where they differ by little, which bytes do not tell.
It is also the largest number of exact cosines in any place."""
_UNCLEAR = 0.05
"""The share of the spread of the cosines from which on their error is too large."""
_SURE = 8.0
"""So many times the error a memory must be behind to be passed over."""
_BY_MEANING, _BY_WORDS, _AROUND = 128, 64, 32
"""How many of the best get their exact cosine, and with how many of those the neighbours in the conversation."""
_WITH_WORDS = 8000
"""So many memories with the rarest words are looked at for the best by words."""
_TEXT_WORTH = 4.0
"""What the best match of words is worth in standard deviations of meaning, as the default ranking has it."""

Postings = Callable[[str], NDArray[np.int64]]
"""The keys of the memories that an entry of the word index finds."""
Required = Callable[[TextQuery], NDArray[np.int64] | None]
"""The keys of those that have every phrase and pattern; None if there are neither."""
StoredVectors = Callable[[Sequence[int]], Mapping[int, bytes]]
"""The vectors of the question's model that memories have, by their keys."""


def resident_shortlist(
    place: Place, columns: Columns, ask: Ask, postings: Postings, required: Required, stored: StoredVectors
) -> Shortlist:
    """The answer from a copy of the whole place. Whoever calls holds the lock of the columns."""
    seen = columns.seen(ask.where)
    speakers = seen.speakers().keys()
    if (keys := required(ask.words)) is not None:
        seen = seen.only(columns.positions(keys))

    def matching_positions(query: TextQuery) -> dict[str, Positions]:
        rows = {word: columns.positions(postings(word)) for word in index_entries(query)}
        return {word: row for word, at in rows.items() if len(row := at[seen.mask[at]])}

    words = matching_positions(ask.words)
    loose: dict[str, Positions] = {}
    if ask.words.words and _covered(words, len(seen.mask)) < ask.enough:
        loose = matching_positions(msgspec.structs.replace(ask.words, loose=True))
    cosine = _cosines(columns, ask)
    whole = _whole(seen, {**loose, **words}, columns, cosine)
    if cosine is not None and whole.compared:
        error = _error(columns, ask)
        is_all = whole.memories <= (_FEW if error < _UNCLEAR * whole.spread else _MOST)
        rows = np.flatnonzero(seen.mask) if is_all else _contenders(seen, cosine, words, whole, error)
        _refine(columns, ask, cosine, rows, stored)
        if is_all:
            whole = _whole(seen, {**loose, **words}, columns, cosine)
    whole = whole._replace(speakers=speakers, lacking=_lacking(columns, ask))
    return Shortlist(place, seen, words, loose, cosine, whole)


def _lacking(columns: Columns, ask: Ask) -> int:
    if ask.vector is None or not ask.lacking:
        return 0
    return len(columns.missing(len(ask.vector) // 4, ask.lacking))


def _covered(words: Mapping[str, Positions], size: int) -> int:
    """How many have one of the words at least."""
    if not words:
        return 0
    has = np.zeros(size, np.bool_)
    for at in words.values():
        has[at] = True
    return int(np.count_nonzero(has))


def _whole(seen: Mask, words: Mapping[str, Positions], columns: Columns, cosine: Floats | None) -> Whole:
    count, length = seen.once("whole", lambda: _counted(seen))
    frequency = {word: len(at) for word, at in words.items()}
    if cosine is None:
        return Whole(count, length, frequency)
    compared = _compared(seen, columns)
    values = cosine if compared is None else cosine[compared]
    if not values.size:
        return Whole(count, length, frequency)
    mean = float(values.mean(dtype=np.float64))
    # The differences are small, so float32 adds them up exactly enough, and a temporary of float64 is not needed.
    differences = values - np.float32(mean)
    spread = float(np.sqrt(np.dot(differences, differences) / len(values)))
    return Whole(count, length, frequency, len(values), mean, spread)


def _compared(seen: Mask, columns: Columns) -> NDArray[np.bool_] | None:
    """Which of those that are seen have a vector; None if all memories are seen and have one."""
    vectors = columns.vectors
    assert vectors is not None

    def compared() -> NDArray[np.bool_] | None:
        both = seen.mask & vectors.has(columns.size)
        return None if both.all() else both

    return seen.once(("compared", vectors.model, vectors.dimensions), compared)


def _counted(seen: Mask) -> tuple[int, float]:
    lengths = seen.block.length[seen.mask].astype(np.float32)
    return len(lengths), float(lengths.mean(dtype=np.float64)) if len(lengths) else 0.0


def _cosines(columns: Columns, ask: Ask) -> Floats | None:
    if ask.vector is None or ask.model is None:
        return None
    query, vectors, size = np.frombuffer(ask.vector, "<f4"), columns.vectors, columns.size
    if vectors is None or vectors.model != ask.model or vectors.dimensions != len(query):
        return None
    cosine = vectors.cosines(query, size)
    return None if np.isnan(cosine).all() else cosine


def _refine(columns: Columns, ask: Ask, cosine: Floats, rows: Positions, stored: StoredVectors) -> None:
    """Put the exact cosines in place of those that bytes give."""
    assert ask.vector is not None
    query, keys = np.frombuffer(ask.vector, "<f4"), columns.column("key")[rows].tolist()
    blobs = stored(keys)
    has_vector = np.fromiter((key in blobs for key in keys), np.bool_, len(keys))
    if blobs:
        cosine[rows[has_vector]] = exact_cosines(query, [blobs[key] for key in keys if key in blobs])


def _error(columns: Columns, ask: Ask) -> float:
    assert columns.vectors is not None
    assert ask.vector is not None
    return columns.vectors.error(np.frombuffer(ask.vector, "<f4"))


def _contenders(seen: Mask, cosine: Floats, words: Mapping[str, Positions], whole: Whole, error: float) -> Positions:
    """Whatever may come first by any formula: the best by meaning, the best by rare words, and who stands next to them.

    The others are too far behind for the thousandth by which their cosine is off to matter.
    """
    visible = cosine if seen.once("all", lambda: bool(seen.mask.all())) else np.where(seen.mask, cosine, np.nan)
    by_meaning, by_words = highest(visible, _BY_MEANING), _best_by_words(cosine, words, whole)
    block, best = seen.block, np.concatenate([by_meaning[:_AROUND], by_words[:_AROUND]])
    edge = cosine[by_meaning[:_AROUND][-1]] - np.float32(_SURE * error)
    if len(by_meaning) == _BY_MEANING and cosine[by_meaning[-1]] > edge:  # so close that more may be as good
        close = np.flatnonzero(visible >= edge)
        by_meaning = close if len(close) <= _MOST else highest(visible, _MOST)
    around: list[NDArray[Any]] = []
    for step in (block.before, block.after):
        near = step[best]
        near = near[near >= 0]
        around += [near, (far := step[near])[far >= 0]]
    rows: Positions = np.unique(np.concatenate([by_meaning, by_words, *around])).astype(np.int64)
    return rows[~np.isnan(cosine[rows])]


def _best_by_words(cosine: Floats, words: Mapping[str, Positions], whole: Whole) -> Positions:
    some: list[Positions] = []
    weights: list[float] = []
    for at in sorted(words.values(), key=len):
        if some and sum(map(len, some)) + len(at) > _WITH_WORDS:
            break
        some.append(at[:_WITH_WORDS])
        weights.append(float(np.log(1.0 + whole.memories / max(len(at), 1))))
    if not some:
        return np.zeros(0, np.int64)
    rows, which = np.unique(np.concatenate(some), return_inverse=True)
    scores = np.bincount(which, np.repeat(weights, [len(at) for at in some]))
    meaning = np.nan_to_num(cosine[rows] - whole.cosine) / (whole.spread or 1.0)
    return rows[highest((_TEXT_WORTH * scores / scores.max() + meaning).astype(np.float32), _BY_WORDS)]
