"""Scans in pages: where they begin, how they are ordered, and where they go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from recollect.stores.port import After, Order, Place
from recollect.stores.tables.conditions import condition, marks
from recollect.stores.tables.engine import PAGE, Rows, Tables, rendered
from recollect.values.filters import Filter
from recollect.values.record import Record, to_micros

_ORDERS: dict[Order, tuple[tuple[str, ...], str, str]] = {
    "oldest": (("created_at", "seq"), ">", ""),
    "newest": (("created_at", "seq"), "<", " DESC"),
    "importance": (("importance", "created_at", "seq"), ">", ""),
}
"""The columns that a scan is ordered by, how it compares them with where it stands, and the direction."""
_KEYS: dict[Order, Callable[[Record], Any]] = {
    "oldest": lambda record: record.created_at,
    "newest": lambda record: record.created_at,
    "importance": lambda record: (record.importance, record.created_at),
}
_SEQ = "SELECT seq FROM {t}memories WHERE {here} AND id = ?"
_BEYOND = 1 << 62
_LEAN_PAGE = 4000
"""Rows without content that are read at a time."""


class Edge(NamedTuple):
    """Where the scan of one place goes on."""

    after: After
    seq: int | None = None
    """The number of that memory, if it is here."""
    behind: bool = False
    """Whether memories that are equal to it in the order were given before."""


class Scan(NamedTuple):
    """What is read, in which order, and how rows become records."""

    where: Filter
    order: Order
    limit: int | None
    whole: bool
    records: Callable[[Place, Rows], list[Record]]
    contains: str | None = None


def scan(tables: Tables, asked: Scan, after: After | None) -> Iterator[Record]:
    """All places that the filter sees, merged into one order. Of equals, those of the first place come first."""
    places = Place.seen_by(asked.where)
    streams = [_scan(tables, place, asked, edge) for place, edge in _edges(tables, places, after)]
    if len(streams) == 1:
        return streams[0]
    return islice(merge(*streams, key=_KEYS[asked.order], reverse=asked.order == "newest"), asked.limit)


def _edges(tables: Tables, places: Sequence[Place], after: After | None) -> list[tuple[Place, Edge | None]]:
    """Where to go on in each place. Of equals, those of an earlier place were given before."""
    if after is None:
        return [(place, None) for place in places]
    dialect = tables.dialect
    sql = rendered(dialect, _SEQ)
    rows = [tables.rows(place, sql, (*dialect.here_values(place), after.id)) for place in places]
    seqs = [row[0][0] if row else None for row in rows]
    holder = next((number for number, seq in enumerate(seqs) if seq is not None), -1)
    return [
        (place, Edge(after, seq, number < holder)) for number, (place, seq) in enumerate(zip(places, seqs, strict=True))
    ]


def _scan(tables: Tables, place: Place, asked: Scan, edge: Edge | None) -> Iterator[Record]:
    """Page by page, so that no transaction stays open while the caller works."""
    dialect = tables.dialect
    clause, values = condition(asked.where, dialect)
    if asked.contains is not None:
        clause, values = f"{clause} AND {dialect.text_may_have}", (*values, dialect.to_text(asked.contains))
    fields, beyond, way = _ORDERS[asked.order]
    key = ", ".join(f"m.{field}" for field in fields)
    ordered = ", ".join(f"m.{field}{way}" for field in fields)
    columns = (dialect.whole if asked.whole else dialect.lean).removeprefix("SELECT ")
    sql = rendered(
        dialect,
        f"SELECT {key}, {columns} WHERE {{here_m}} AND ({key}) {beyond} ({marks(fields)}) AND {clause} "
        f"ORDER BY {ordered} LIMIT ?",
    )
    begin: Sequence[Any] = _begin(fields, asked.order, edge)
    left, most = asked.limit, PAGE if asked.whole else _LEAN_PAGE
    while left is None or left > 0:
        size = min(most, left or most)
        page = tables.rows(place, sql, (*dialect.here_values(place), *begin, *values, size))
        yield from asked.records(place, [row[len(fields) :] for row in page])
        if len(page) < size:
            return
        begin = page[-1][: len(fields)]
        left = left and left - len(page)


def _begin(fields: Sequence[str], order: Order, edge: Edge | None) -> list[Any]:
    """The values that a scan begins behind."""
    first, last = (_BEYOND, -_BEYOND) if order == "newest" else (-_BEYOND, _BEYOND)
    if edge is None:
        return [first] * len(fields)
    seq = edge.seq if edge.seq is not None else last if edge.behind else first
    values = {"importance": edge.after.importance, "created_at": to_micros(edge.after.created_at), "seq": seq}
    return [values[field] for field in fields]
