"""The vectors of one model, a byte for each number: what every recall compares with.

A quarter of the size and an eighth of the time of float32. The cosines are off by a thousandth or so: whoever needs
them exactly computes them again from the stored vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.stores.resident.products import products

_LARGEST = 127
_GROWTH = 1.125

Bytes = NDArray[np.int8]
Floats = NDArray[np.float32]


class Vectors:
    """By position. A memory without a vector has zeros, and NaN as its scale."""

    def __init__(self, model: str, dimensions: int, size: int, base: Bytes | None = None) -> None:
        self.model = model
        self.dimensions = dimensions
        self.base: Bytes = np.zeros((0, dimensions), np.int8) if base is None else base
        """The first rows, which may be mapped from a file: they are never moved."""
        self.tail: Bytes = np.zeros((max(size - len(self.base), 0), dimensions), np.int8)
        """The rows behind them."""
        self.scale: Floats = np.full(max(size, len(self.base)), np.nan, np.float32)
        """What one step of a row's numbers is worth in the vector of length one."""

    @property
    def bytes(self) -> int:
        return self.base.nbytes + self.tail.nbytes + self.scale.nbytes

    def shared(self, size: int) -> Vectors:
        """The first of them as others: the same rows, with scales of their own."""
        self.reserve(size)
        first = Vectors(self.model, self.dimensions, 0, self.base[:size])
        first.tail = self.tail[: max(size - len(self.base), 0)]
        first.scale = self.scale[:size].copy()
        return first

    def has(self, size: int) -> NDArray[np.bool_]:
        """Which of the first memories have a vector."""
        self.reserve(size)
        return ~np.isnan(self.scale[:size])

    def reserve(self, size: int) -> None:
        if size > len(self.scale):
            wanted = max(size, int(len(self.scale) * _GROWTH) + 64)
            scale = np.full(wanted, np.nan, np.float32)
            scale[: len(self.scale)] = self.scale
            tail = np.zeros((wanted - len(self.base), self.dimensions), np.int8)
            tail[: len(self.tail)] = self.tail
            self.scale, self.tail = scale, tail

    def put(self, at: int, blob: bytes | None) -> None:
        """A vector of another dimension is none of this model's."""
        if blob is not None and len(blob) == 4 * self.dimensions:
            self.fill(np.array([at]), [blob])
        else:
            self.clear(at)

    def fill(self, positions: NDArray[np.int64], blobs: Sequence[bytes]) -> None:
        """Vectors of this dimension."""
        if not len(positions):
            return
        self.reserve(int(positions.max()) + 1)
        codes, scale = encoded(np.frombuffer(b"".join(blobs), "<f4").reshape(len(blobs), self.dimensions))
        self.scale[positions] = scale
        mapped = len(self.base)
        first, count = int(positions[0]) - mapped, len(positions)
        if first >= 0 and int(positions[-1]) - mapped - first == count - 1 and bool((np.diff(positions) == 1).all()):
            self.tail[first : first + count] = codes
            return
        early = positions < mapped
        self.base[positions[early]] = codes[early]
        self.tail[positions[~early] - mapped] = codes[~early]

    def clear(self, at: int) -> None:
        self.reserve(at + 1)
        self.scale[at] = np.nan
        if at < len(self.base):
            self.base[at] = 0
        else:
            self.tail[at - len(self.base)] = 0

    def cosines(self, question: Floats, size: int) -> Floats:
        """With each of the first memories, nearly; NaN for one without a vector."""
        self.reserve(size)
        codes, scale = encoded(question[None])
        cosine, mapped = np.empty(size, np.float32), min(len(self.base), size)
        products(self.base[:mapped], codes[0], cosine[:mapped])
        products(self.tail[: size - mapped], codes[0], cosine[mapped:])
        cosine *= self.scale[:size]
        cosine *= scale[0]
        return cosine

    def error(self, question: Floats) -> float:
        """By how much a cosine with the question is off: the standard deviation, of a row with large steps."""
        _, scale = encoded(question[None])
        steps = self.scale[:: max(len(self.scale) // 1000, 1)]
        largest = float(steps[~np.isnan(steps)].max(initial=0.0))
        return float(np.hypot(largest, scale[0]) / np.sqrt(12.0))


def encoded(vectors: Floats) -> tuple[Bytes, Floats]:
    """Vectors in bytes, and what one step is worth in each once it has length one."""
    units = _units(vectors)
    largest = np.abs(units).max(axis=1, initial=0.0)
    steps = np.divide(_LARGEST, largest, out=np.zeros_like(largest), where=largest > 0.0)
    with np.errstate(invalid="ignore"):  # a damaged vector has NaN: as its scale too, so it counts as none
        codes = np.rint(units * steps[:, None]).astype(np.int8)
    return codes, (largest / np.float32(_LARGEST)).astype(np.float32)


def _units(vectors: Floats) -> Floats:
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    norms[norms == 0.0] = 1.0
    with np.errstate(invalid="ignore"):
        return vectors / norms[:, None]


def exact_cosines(question: Floats, blobs: Sequence[bytes]) -> Floats:
    """With stored vectors of the same dimension."""
    rows = np.frombuffer(b"".join(blobs), "<f4").reshape(len(blobs), len(question))
    return np.einsum("ij,j->i", _units(rows), question)
