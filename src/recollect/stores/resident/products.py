"""The product of many vectors of bytes with one. The one place that knows what computes it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1024
"""Rows that are turned into float32 at a time: as many as stay in the processor's cache."""


@cache
def _simsimd() -> Any:
    """The library of the extra `fast`, or None. Its author works on another one now, so nothing else depends on it."""
    try:
        import simsimd
    except ImportError:
        return None
    return simsimd


def products(rows: NDArray[np.int8], question: NDArray[np.int8], out: NDArray[np.float32]) -> None:
    """Write the product of each row with the question into `out`. Other threads run meanwhile.

    Both ways give the same: sums of up to a thousand products of bytes are exact in float32.
    """
    if not len(rows):
        return
    library = _simsimd()
    if library is not None:
        library.cdist(question[None], rows, metric="dot", out=out[None])
        return
    numbers, buffer = question.astype(np.float32), np.empty((min(_BLOCK, len(rows)), rows.shape[1]), np.float32)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        np.copyto(buffer[: len(block)], block)
        np.dot(buffer[: len(block)], numbers, out=out[start : start + len(block)])
