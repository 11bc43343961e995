"""Scans of several places at once: merged into one order, and gone on with behind the last memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Literal, NamedTuple

from recollect.stores.port import After, Order, Place
from recollect.values.record import Record

_KEYS: dict[Order, Callable[[Record], Any]] = {
    "oldest": lambda record: record.created_at,
    "newest": lambda record: record.created_at,
    "importance": lambda record: (record.importance, record.created_at),
}


def merged(streams: Sequence[Iterator[Record]], order: Order, limit: int | None) -> Iterator[Record]:
    """Several scans in one order. Of equals those of the first place come first."""
    if len(streams) == 1:
        return streams[0]
    return islice(merge(*streams, key=_KEYS[order], reverse=order == "newest"), limit)


class Resume(NamedTuple):
    """Where the scan of one place goes on."""

    after: After
    ties: Literal["all", "none", "behind"]
    """Of what stands where the last memory stood: all of it, nothing, or what comes behind that memory."""


def resumed(
    places: Sequence[Place], after: After | None, holds: Callable[[Place], bool]
) -> list[tuple[Place, Resume | None]]:
    """Where the scan of each place goes on. `holds` tells whether the last memory is in a place, where it stood."""
    if after is None:
        return [(place, None) for place in places]
    holder = next((at for at, place in enumerate(places) if holds(place)), None)
    if holder is None:  # it is gone: some may come again, but none is left out
        return [(place, Resume(after, "all")) for place in places]
    return [
        (place, Resume(after, "none" if at < holder else "behind" if at == holder else "all"))
        for at, place in enumerate(places)
    ]


def resumed_at(records: Sequence[Record], order: Order, resume: Resume) -> int:
    """How many memories of one place, in the order of the scan, were given before."""
    after, key = resume.after, _KEYS[order]
    edge = (after.importance, after.created_at) if order == "importance" else after.created_at
    count = len(records)
    reached: Callable[[Any], bool] = edge.__ge__ if order == "newest" else edge.__le__
    first = next((at for at in range(count) if reached(key(records[at]))), count)
    beyond = next((at for at in range(first, count) if key(records[at]) != edge), count)
    if resume.ties == "behind":
        return next((at + 1 for at in range(first, beyond) if records[at].id == after.id), first)
    return beyond if resume.ties == "none" else first
