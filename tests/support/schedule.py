"""The order of the tests, for workers that are dealt a part of the list each and steal from the ends of others."""

from __future__ import annotations

from itertools import groupby

import pytest

_LARGE = 40
"""Tests of a module beyond which it counts no more: where there are hundreds, each takes a tenth of a second."""


def arranged(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """The tests in an order in which every worker begins with its share of the slow ones.

    `--dist worksteal` deals the list in as many equal parts as there are workers. With all slow tests at its beginning
    one worker would have them all, and would still be at them when the others have nothing left. Slow tests of one
    module stay together, because they share servers and browsers.
    """
    slow = [item for item in items if item.get_closest_marker("slow")]
    quick = [item for item in items if not item.get_closest_marker("slow")]
    modules = [list(group) for _, group in groupby(slow, key=lambda item: item.nodeid.partition("::")[0])]
    hands: list[list[pytest.Item]] = [[] for _ in range(workers)]
    loads = [0] * workers
    for module in sorted(modules, key=len, reverse=True):
        lightest = loads.index(min(loads))
        hands[lightest] += module
        loads[lightest] += min(len(module), _LARGE)
    order: list[pytest.Item] = []
    for number, hand in enumerate(hands):
        size = (len(items) - len(order)) // (workers - number)  # as the scheduler counts
        room = max(0, size - len(hand))
        order += hand + quick[:room]
        del quick[:room]
    return order + quick
