"""What a question asks of a store, and the answer: plain arrays that belong to nobody.

A store that holds a place in memory gives all of it; another gives the best by words and by meaning, and their
neighbours. Either way `whole` tells of all that the filter sees, so that one formula ranks both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from recollect.stores.port import Place
from recollect.stores.resident.snapshot import Mask, Snapshot
from recollect.stores.shelves import ShelfItem
from recollect.text.query import TextQuery
from recollect.values.filters import Filter

Positions = NDArray[np.int64]
Floats = NDArray[np.float32]


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
    lacking: int = 0
    """Memories of the place without a vector of the model are counted up to this number."""
    around: int = 2
    """So many neighbours in the conversation on either side of each."""
    beside: str | None = None
    """A shelf whose documents come with the answer of a place that has memories to search."""


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
    speakers: Collection[str] = ()
    """Who speaks in them, whatever phrases and patterns they have. A store may sample a large place."""
    lacking: int = 0
    """How many memories of the place have no vector, at most as many as were to be counted."""


class Shortlist(NamedTuple):
    """Memories of one place, by position. Only those that are `seen` may be shown."""

    place: Place
    seen: Mask
    words: Mapping[str, Positions]
    """Plain words, and where they occur among what is seen; with a star at the end, all that begin so."""
    loose: Mapping[str, Positions]
    """The same for parts of words, where the words alone did not find enough."""
    cosine: Floats | None
    """NaN for a memory without a vector; None where none has one."""
    whole: Whole
    beside: Sequence[ShelfItem] = ()
    """All documents of the shelf that was named, in the order of storing, whoever may see them."""

    @property
    def block(self) -> Snapshot:
        return self.seen.block
