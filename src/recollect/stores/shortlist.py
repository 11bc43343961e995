"""What a question asks of a store, and the answer: plain arrays that belong to nobody.

A store that holds a place in memory gives all of it; another gives the best by words and by meaning, and their
neighbours. Either way `whole` tells of all that the filter sees, so that one formula ranks both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from recollect.filters import Filter
from recollect.stores.block import Block, Seen
from recollect.stores.columns import Columns
from recollect.stores.fts import word_terms
from recollect.stores.port import Place
from recollect.text.query import TextQuery

Positions = NDArray[np.int64]
Floats = NDArray[np.float32]

_THREADED = 16_000_000
"""Numbers from which a second thread pays. For fewer, waking it takes longer than the product."""


class Ask(msgspec.Struct, frozen=True):
    """What a question needs, whatever the formula."""

    where: Filter
    words: TextQuery
    vector: bytes | None = None
    """Of the question: normalised, little-endian float32."""
    model: str | None = None
    enough: int = 0
    """Where fewer memories have one of the words, they are also looked for inside longer words."""
    each: int = 200
    """So many of the best by words, and of the best by meaning, where a store does not give all."""
    around: int = 2
    """So many neighbours in the conversation on either side of each."""


class Whole(NamedTuple):
    """Of all that the filter sees."""

    memories: int
    length: float
    """The mean number of characters."""
    frequency: Mapping[str, int]
    """How many have each word of the answer."""
    compared: int = 0
    """How many have a vector."""
    cosine: float = 0.0
    """The mean."""
    spread: float = 0.0
    """The standard deviation of the cosine."""


class Shortlist(NamedTuple):
    """Memories of one place, by position. Only those that are `seen` may be shown."""

    place: Place
    seen: Seen
    words: Mapping[str, Positions]
    """Plain words, and where they occur among what is seen; with a star at the end, all that begin so."""
    loose: Mapping[str, Positions]
    """The same for parts of words, where the words alone did not find enough."""
    cosine: Floats | None
    """NaN for a memory without a vector; None where none has one."""
    whole: Whole

    @property
    def block(self) -> Block:
        return self.seen.block


Postings = Callable[[str], NDArray[np.int64]]
"""The keys of the memories that an expression of the word index finds."""
Required = Callable[[TextQuery], NDArray[np.int64] | None]
"""The keys of those that have every phrase and pattern; None if there are neither."""


def resident_shortlist(place: Place, columns: Columns, ask: Ask, postings: Postings, required: Required) -> Shortlist:
    """The answer from a copy of the whole place. Whoever calls holds the lock of the columns."""
    seen = columns.seen(ask.where)
    if (keys := required(ask.words)) is not None:
        seen = seen.only(columns.positions(keys))

    def found(query: TextQuery) -> dict[str, Positions]:
        rows = {word: columns.positions(postings(term)) for word, term in word_terms(query).items()}
        return {word: row for word, at in rows.items() if len(row := at[seen.mask[at]])}

    words = found(ask.words)
    loose: dict[str, Positions] = {}
    if ask.words.words and _covered(words, len(seen.mask)) < ask.enough:
        loose = found(msgspec.structs.replace(ask.words, loose=True))
    cosine = _cosines(columns, ask)
    return Shortlist(place, seen, words, loose, cosine, _whole(seen, {**loose, **words}, cosine))


def _covered(words: Mapping[str, Positions], size: int) -> int:
    """How many have one of the words at least."""
    if not words:
        return 0
    has = np.zeros(size, np.bool_)
    for at in words.values():
        has[at] = True
    return int(np.count_nonzero(has))


def _whole(seen: Seen, words: Mapping[str, Positions], cosine: Floats | None) -> Whole:
    count, length = seen.once("whole", lambda: _counted(seen))
    frequency = {word: len(at) for word, at in words.items()}
    if cosine is None:
        return Whole(count, length, frequency)
    compared = cosine[seen.mask & ~np.isnan(cosine)].astype(np.float64)
    if not compared.size:
        return Whole(count, length, frequency)
    return Whole(count, length, frequency, len(compared), float(compared.mean()), float(compared.std()))


def _counted(seen: Seen) -> tuple[int, float]:
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
