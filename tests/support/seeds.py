"""The seed of a test run: which interrupt and kill points are tried, and what else tests draw from `random`.

A run that is given no seed draws a new one, so that many runs together meet every point. The process that starts the
run writes it to the environment, from which the workers of pytest-xdist and all child processes inherit it.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Sequence
from typing import TypeVar

from support.common import LONG

Point = TypeVar("Point")
VARIABLE = "RECOLLECT_TEST_SEED"
"""The environment variable that repeats a run: `RECOLLECT_TEST_SEED=123456 make test`."""


def begin() -> None:
    """Draw a seed for this run, unless the environment names one."""
    os.environ.setdefault(VARIABLE, str(secrets.randbelow(1_000_000)))


def reseed(test_id: str) -> None:
    """Seed `random` for one test, so that it draws the same alone, in any order and on any worker."""
    random.seed(f"{os.environ[VARIABLE]} {test_id}")


def drawn(name: str) -> random.Random:
    """A generator for choices that are made while tests are collected, where every worker must choose the same."""
    return random.Random(f"{os.environ[VARIABLE]} {name}")


def some_of(points: Sequence[Point], share: float = 0.1) -> list[Point]:
    """A tenth of the points (or another share), at least one, drawn by the seed; all of them in `make test-long`."""
    if LONG:
        return list(points)
    count = max(1, round(len(points) * share))
    return [points[index] for index in sorted(random.sample(range(len(points)), count))]


def banner() -> str:
    """The line that tells how to repeat this run."""
    return f"{VARIABLE}={os.environ[VARIABLE]} repeats the interrupt and kill points of this run"
