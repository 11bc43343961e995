"""The shortlist of a question, from a copy in memory of the whole place."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from recollect.stores.port import Place
from recollect.stores.resident.columns import Columns
from recollect.stores.resident.snapshot import Mask
from recollect.stores.shortlist import Ask, Floats, Positions, Shortlist, Whole
from recollect.text.query import TextQuery
from recollect.text.terms import index_entries

_THREADED = 16_000_000
"""Numbers from which a second thread pays. For fewer, waking it takes longer than the product."""

Postings = Callable[[str], NDArray[np.int64]]
"""The keys of the memories that an entry of the word index finds."""
Required = Callable[[TextQuery], NDArray[np.int64] | None]
"""The keys of those that have every phrase and pattern; None if there are neither."""


def resident_shortlist(place: Place, columns: Columns, ask: Ask, postings: Postings, required: Required) -> Shortlist:
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
    whole = _whole(seen, {**loose, **words}, cosine)._replace(speakers=speakers, lacking=_lacking(columns, ask))
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


def _whole(seen: Mask, words: Mapping[str, Positions], cosine: Floats | None) -> Whole:
    count, length = seen.once("whole", lambda: _counted(seen))
    frequency = {word: len(at) for word, at in words.items()}
    if cosine is None:
        return Whole(count, length, frequency)
    compared = cosine[seen.mask & ~np.isnan(cosine)].astype(np.float64)
    if not compared.size:
        return Whole(count, length, frequency)
    return Whole(count, length, frequency, len(compared), float(compared.mean()), float(compared.std()))


def _counted(seen: Mask) -> tuple[int, float]:
    lengths = seen.block.length[seen.mask].astype(np.float32)
    return len(lengths), float(lengths.mean(dtype=np.float64)) if len(lengths) else 0.0


def _cosines(columns: Columns, ask: Ask) -> Floats | None:
    if ask.vector is None or ask.model is None:
        return None
    query, vectors, size = np.frombuffer(ask.vector, "<f4"), columns.vectors, columns.size
    if vectors is None or vectors.model != ask.model or vectors.dimensions != len(query) or not vectors.has.any():
        return None
    vectors.reserve(size)
    matrix = vectors.matrix[:size]
    cosine = np.einsum("ij,j->i", matrix, query) if matrix.size < _THREADED else matrix @ query
    cosine[~vectors.has[:size]] = np.nan
    return cosine
