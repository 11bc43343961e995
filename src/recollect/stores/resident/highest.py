"""The highest of very many values, without looking at each more than once or twice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SAMPLED, _SAMPLE = 50_000, 4096
"""Of so many values, the edge of the highest is guessed from a sample of this size."""

Floats = NDArray[np.float32]
Positions = NDArray[np.int64]


def edge(values: Floats, most: int) -> float:
    """A value that at least so many reach, and few more; minus infinity if there are not so many. NaN reaches none."""
    if len(values) > _SAMPLED:
        sample = values[:: len(values) // _SAMPLE]
        sample = sample[~np.isnan(sample)]
        share = most * len(sample) / len(values)
        behind = int(share + 4.0 * np.sqrt(share) + 8.0)
        if behind < len(sample):
            guess = float(np.partition(sample, -behind)[-behind])
            if np.count_nonzero(values >= guess) >= most:
                return guess
    numbers = values[~np.isnan(values)]
    return float(np.partition(numbers, -most)[-most]) if 0 < most <= len(numbers) else -np.inf


def highest(values: Floats, most: int) -> Positions:
    """The positions of so many of the highest, the highest first; NaN is none of them."""
    rows = np.flatnonzero(values >= np.float32(edge(values, most)))
    if len(rows) > most:
        rows = rows[np.argpartition(values[rows], -most)[-most:]]
    return rows[np.argsort(-values[rows], kind="stable")]
