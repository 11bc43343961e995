"""Questions by conditions: what kind, which tags, when, how important, and what refers to what."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Literal, cast

import msgspec

from recollect.policies.decay import Decay
from recollect.policies.ranking import Evidence, Score
from recollect.recall.hits import Hit, Hits
from recollect.recall.question import Question
from recollect.recall.run import RecallRun
from recollect.stores.integrity import intact
from recollect.stores.port import After, Order, Place, by_place
from recollect.text.times import point, span
from recollect.values import validation
from recollect.values.errors import InputError
from recollect.values.filters import Filter
from recollect.values.record import Record, storing_order
from recollect.view import View

SortBy = Literal["relevance", "newest", "oldest", "importance"]
_ALL = 1_000_000
_DEEPEST = 16


class Query(msgspec.Struct, frozen=True):
    """A structured query. All conditions must hold; one that is left out always does."""

    text: str | None = None
    """Words, `"phrases"` and `wild*cards` in the content."""
    types: Sequence[str] = ()
    """Any of these kinds."""
    tags: Sequence[str] = ()
    """All of these. A tag stands for those below it too."""
    any_tags: Sequence[str] = ()
    without_tags: Sequence[str] = ()
    time_range: str | Sequence[datetime | str | None] | None = None
    """`last 3 days` and the like, or from (included) and until (not included)."""
    min_importance: float | None = None
    references: Sequence[str] = ()
    """Memories that these refer to or that refer to them, directly or through others."""
    max_depth: int = 1
    """How many references away."""
    sort_by: SortBy = "relevance"
    limit: int | None = None


def listed(
    view: View, where: Filter, *, newest_first: bool, limit: int, contains: str | None, after: str | None
) -> list[Record]:
    """By creation time; nothing is read beyond the last that is wanted, nor before the one to go on behind."""
    order: Order = "newest" if newest_first else "oldest"
    behind = None if after is None else After.of(view.find_one(after, "after"))
    if contains is None:
        return list(view.scan(where, order=order, after=behind, limit=limit))
    wanted = validation.query(contains, "contains").casefold()
    records = view.scan(where, order=order, after=behind, contains=wanted)
    return list(islice((record for record in records if wanted in record.text.casefold()), limit))


def query_from(value: Query | Mapping[str, Any]) -> Query:
    if isinstance(value, Query):
        return value
    if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("query", f"must be a Query or a dict, not {type(value).__name__}")
    fields = Query.__struct_fields__
    for name in value:
        if name not in fields:
            raise InputError(str(name)[:48], f"is not part of a query; known: {', '.join(fields)}")
    return Query(**value)


def query(views: Sequence[View], request: Query) -> Hits:
    """What the views see that meets the conditions, in the order asked for."""
    limit = _ALL if request.limit is None else validation.count(request.limit, "limit", high=_ALL)
    order: SortBy = validation.choice(request.sort_by, "sort_by", SortBy)
    wheres = [_filter(view, request) for view in views]
    related = _related(views, request) if request.references else None
    if request.text is not None and validation.query(request.text, "text").strip():
        hits = _by_text(views, request.text, wheres, related, limit if order == "relevance" else _ALL)
        if order in ("newest", "oldest"):
            hits = _as_stored(hits, views, wheres, order)
    else:
        hits = _by_conditions(views, wheres, related, order, limit)
    # What accounts share is seen from every view; an id alone may stand for other memories elsewhere.
    hits = list({(hit.memory.address.workspace, hit.memory.id): hit for hit in hits}.values())
    hits.sort(key=_KEYS[order])
    return Hits(hits[:limit])


_KEYS: dict[SortBy, Callable[[Hit], Any]] = {
    "relevance": lambda hit: (-hit.score, storing_order(hit.memory.id)),
    # Of one moment they are as the store has them, in the order of storing or its reverse.
    "newest": lambda hit: -hit.memory.created_at.timestamp(),
    "oldest": lambda hit: hit.memory.created_at,
    "importance": lambda hit: (-hit.memory.importance, storing_order(hit.memory.id)),
}


def _filter(view: View, request: Query) -> Filter:
    conditions: dict[str, Any] = {
        "kinds": tuple(validation.kind(kind, "types") for kind in validation.sequence(request.types, "types")),
        "tags": view.tags(request.tags),
        "any_tags": view.tags(request.any_tags),
        "without_tags": view.tags(request.without_tags),
    }
    where = view.where(**conditions)
    since, until = _range(request.time_range, where.now)
    min_importance = request.min_importance
    importance = None if min_importance is None else validation.importance(min_importance, "min_importance")
    return msgspec.structs.replace(where, since=since, until=until, min_importance=importance)


def _range(value: Any, now: datetime) -> tuple[datetime | None, datetime | None]:
    if value is None:
        return None, None
    if isinstance(value, str):
        return span(value, now)
    if isinstance(value, Mapping) or len(ends := list(validation.sequence(value, "time_range"))) != 2:
        raise InputError("time_range", "must be two times, or words such as 'last 3 days'")
    since, until = (None if end is None else point(end, "time_range", now) for end in ends)
    if since is not None and until is not None and since > until:
        raise InputError("time_range", "begins after it ends")
    return since, until


def _by_text(
    views: Sequence[View], text: str, wheres: Sequence[Filter], related: set[str] | None, limit: int
) -> list[Hit]:
    view = views[0]
    fetch = limit if related is None else _ALL
    decay = None if len(views) == 1 else cast("Decay", _Decays(views))
    # With conditions, every memory that meets them is a hit, even an empty one.
    text = validation.query(text, "text")
    question = Question(text, wheres, fetch, doubles=True, decay=decay, min_relevance=0.0, exact=True)
    hits = RecallRun(view, question).hits()
    return [hit for hit in hits if related is None or hit.memory.id in related]


def _as_stored(hits: list[Hit], views: Sequence[View], wheres: Sequence[Filter], order: Order) -> list[Hit]:
    """In the order of a scan, where only that can tell which of them was stored first."""
    if len({hit.memory.created_at for hit in hits}) == len(hits):
        return hits
    position: dict[tuple[str | None, str], int] = {}
    for view, where in zip(views, wheres, strict=True):
        for record in view.store.scan(where, order=order, whole=False):
            position.setdefault((record.address.workspace, record.id), len(position))
    return sorted(hits, key=lambda hit: position.get((hit.memory.address.workspace, hit.memory.id), len(position)))


class _Decays:
    """A memory fades as is set where it is."""

    def __init__(self, views: Sequence[View]) -> None:
        self._own = {view.address.workspace: view.decay for view in views}
        self._other = views[0].preset.decay

    def factor(self, record: Record, now: datetime) -> float:
        return self._own.get(record.address.workspace, self._other).factor(record, now)


def _by_conditions(
    views: Sequence[View], wheres: Sequence[Filter], related: set[str] | None, order: SortBy, limit: int
) -> list[Hit]:
    """Ranked without content, which is then read of the best only, unless all are asked for."""
    every = limit == _ALL
    hits: list[Hit] = []
    for view, where in zip(views, wheres, strict=True):
        score, decay, now = view.preset.ranking.score, view.decay, where.now
        stored: Order = "newest" if order == "newest" else "oldest"
        records = [r for r in view.store.scan(where, order=stored, whole=every) if related is None or r.id in related]
        if len(records) > limit:
            records = heapq.nsmallest(limit, records, key=_bare_key(order, view, now))
        whole = records if every else _with_content(view, records)
        hits += [Hit(record, score(Evidence(record, ""), decay, now)) for record in intact(whole)]
    return hits


def _with_content(view: View, records: Sequence[Record]) -> list[Record]:
    """The same memories, but for those that were deleted meanwhile."""
    groups = by_place(records).items()
    whole = {(p, r.id): r for p, group in groups for r in view.store.get(p, [bare.id for bare in group])}
    return [whole[key] for bare in records if (key := (Place.of(bare), bare.id)) in whole]


def _bare_key(order: SortBy, view: View, now: datetime) -> Callable[[Record], Any]:
    if order == "relevance":
        score, decay = view.preset.ranking.score, view.decay
        return lambda record: (-score(Evidence(record, ""), decay, now).value, storing_order(record.id))
    placeholder = Score(0.0, "sum", ())
    return lambda record: _KEYS[order](Hit(record, placeholder))


def _related(views: Sequence[View], request: Query) -> set[str]:
    """Ids within so many references, in either direction. Each is visited once, so a circle ends."""
    start = validation.memory_ids(request.references)
    depth = validation.count(request.max_depth, "max_depth", high=_DEEPEST)
    links: dict[str, set[str]] = {}
    for record in _all(views):
        for other in record.references:
            links.setdefault(record.id, set()).add(other)
            links.setdefault(other, set()).add(record.id)
    seen, edge = set(start), set(start)
    for _ in range(depth):
        edge = {other for ident in edge for other in links.get(ident, ())} - seen
        seen |= edge
    return seen - set(start)


def _all(views: Sequence[View]) -> Iterable[Record]:
    for view in views:
        yield from view.store.scan(view.where(), whole=False)
