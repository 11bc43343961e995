"""All memories of a place at once, for scores that compare each with all: columns, words and vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.stores.columns import Columns
from recollect.text.query import TextQuery

Positions = NDArray[np.int64]

_THREADED = 16_000_000
"""Numbers from which a second thread pays. For fewer, waking it takes longer than the product."""


class Corpus:
    """What a store lends to whoever ranks. Valid until it is given back."""

    def __init__(
        self,
        columns: Columns,
        postings: Callable[[str], NDArray[np.int64]],
        required: Callable[[TextQuery], NDArray[np.int64] | None],
        terms: Callable[[TextQuery], Sequence[str]],
        texts: Callable[[Sequence[int]], dict[int, str]],
    ) -> None:
        self.columns = columns
        self._postings = postings
        self._required = required
        self._texts = texts
        self.terms = terms
        """The entries of the word index that a query's words stand for."""

    def postings(self, term: str) -> Positions:
        """The positions of the memories that have the term."""
        return self.columns.positions(self._postings(term))

    def required(self, query: TextQuery) -> Positions | None:
        """The positions of those that have every phrase and pattern; None if the query has neither."""
        keys = self._required(query)
        return None if keys is None else self.columns.positions(keys)

    def texts(self, positions: Sequence[int]) -> dict[int, str]:
        """The texts at some positions."""
        keys = {int(self.columns.column("key")[at]): at for at in positions}
        return {keys[key]: text for key, text in self._texts(list(keys)).items()}

    def cosines(self, query: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """With a normalised query; NaN for a memory without a vector. None if there are no vectors of its size."""
        vectors = self.columns.vectors
        if vectors is None or vectors.dimensions != len(query) or not vectors.has.any():
            return None
        size = self.columns.size
        vectors.reserve(size)
        matrix = vectors.matrix[:size]
        found = np.einsum("ij,j->i", matrix, query) if matrix.size < _THREADED else matrix @ query
        found[~vectors.has[:size]] = np.nan
        return found


def empty() -> Corpus:
    """Of a place that holds nothing."""
    none = np.zeros(0, np.int64)
    return Corpus(Columns(), lambda term: none, lambda query: none, lambda query: [], lambda keys: {})
