"""Which of many vectors are almost equal, without comparing each with each.

Vectors of a cosine above a limit lie on the same side of most planes. So they are hashed by the sides of some random
planes, in several tables, and only those with the same hash in a table are multiplied with each other. The planes go
through the mean of the vectors, because many models put everything into one corner. How many tables it takes to find a
pair at the very limit in 995 of 1000 cases follows from the angle between such a pair, seen from the mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

_EXACT = 4096
"""So many are simply multiplied with each other."""
_BUCKET = 128
"""Vectors that should share a hash."""
_BLOCK = 2048
"""Rows that are multiplied at once: more need more memory than they save time."""
_MISSED = 0.005
_MOST_TABLES = 48
_MOST_PAIRS = 4_000_000
"""More pairs than this are no duplicates, but vectors that say nothing."""
_SAMPLE, _ALIKE = 2000, 0.25


def usable(vectors: Floats) -> NDArray[np.bool_]:
    """Which rows have a direction."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    return (lengths > 1e-6) & (lengths < 1e30)


def unit(vectors: Floats) -> Floats:
    return vectors / np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))[:, None].astype(np.float32)


def tells_nothing(units: Floats, above: float) -> bool:
    """Whether so many of these differ so little that being alike means nothing: a broken model, or a hostile one."""
    count = len(units)
    if count < 8:
        return False
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, count, _SAMPLE), rng.integers(0, count, _SAMPLE)
    other = first != second
    alike = np.einsum("ij,ij->i", units[first[other]], units[second[other]]) > above
    return bool(alike.mean() > _ALIKE)


def pairs(units: Floats, above: float) -> Rows | None:
    """Pairs of rows with a higher cosine, as two columns; None if there are too many to mean anything."""
    blocks: list[Any] = []
    number = 0
    for some in _all_pairs(units, above):
        blocks.append(some)
        number += len(some)
        if number > _MOST_PAIRS:
            return None
    if not blocks:
        return np.empty((0, 2), np.int64)
    both = np.concatenate(blocks)
    keys = np.unique(both[:, 0] * len(units) + both[:, 1])
    return np.stack((keys // len(units), keys % len(units)), axis=1)


def _all_pairs(units: Floats, above: float) -> Iterator[Rows]:
    count = len(units)
    every = np.arange(count)
    bits = max(1, round(math.log2(max(count / _BUCKET, 2.0))))
    mean = units.mean(axis=0)
    tables = _tables(units - mean, above, bits) if count > _EXACT else 0
    if not 0 < tables <= _MOST_TABLES:
        yield from _within(units, every, above)
        return
    rng = np.random.default_rng(0)
    for _ in range(tables):
        planes = rng.standard_normal((units.shape[1], bits)).astype(np.float32)
        sides = (units @ planes) > (mean @ planes)
        hashes = sides @ (1 << np.arange(bits))
        order = np.argsort(hashes, kind="stable")
        edges = np.flatnonzero(np.diff(hashes[order])) + 1
        for rows in np.split(order, edges):
            if len(rows) > 1:
                yield from _within(units, np.sort(rows), above)


def _tables(centred: Floats, above: float, bits: int) -> int:
    """How many it takes; more than there may be where everything lies in too narrow a corner."""
    lengths = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    near = float(np.quantile(lengths, 0.02))
    apart = math.sqrt(max(2.0 - 2.0 * above, 0.0))
    if near <= apart:
        return _MOST_TABLES + 1
    same = (1.0 - 2.0 * math.asin(apart / (2.0 * near)) / math.pi) ** bits
    return math.ceil(math.log(_MISSED) / math.log(1.0 - same)) if same < 1.0 else 1


def _within(units: Floats, rows: Rows, above: float) -> Iterator[Rows]:
    """All pairs among some rows, which are in ascending order."""
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        here = units[block]
        for begin in range(start, len(rows), _BLOCK):
            others = rows[begin : begin + _BLOCK]
            left, right = np.nonzero(here @ (here if begin == start else units[others]).T > above)
            a, b = block[left], others[right]
            keep = a < b
            if keep.any():
                yield np.stack((a[keep], b[keep]), axis=1)
