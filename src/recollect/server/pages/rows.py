"""Memories as pages show them, in values that JSON has too."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from copy import copy
from datetime import datetime
from typing import Any

from recollect.memory import Memory, view_of
from recollect.recall.hits import Hit
from recollect.stores.shelves import ShelfItem
from recollect.values.errors import NotFoundError
from recollect.values.record import Record
from recollect.view import View

_LONGEST = 1200
"""Letters of a memory in a list; its own page has all of them."""


def seen_as(memory: Memory, view: View) -> Memory:
    """The same memory, seen otherwise. For reading only."""
    other = copy(memory)
    other._view = view  # pyright: ignore[reportPrivateUsage]
    return other


def find_record(memory: Memory, ident: str | None) -> Record | None:
    """A memory that may be gone."""
    try:
        return memory.get(ident) if ident else None
    except NotFoundError:
        return None


def row(record: Record, now: datetime) -> dict[str, Any]:
    text, address = record.text, record.address
    return {
        "id": record.id,
        "text": text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…",
        "kind": record.kind,
        "tier": record.tier,
        "state": record.state(now),
        "tags": record.tags,
        "role": record.role,
        "source": record.source,
        "agent": address.agent,
        "account": address.account,
        "channel": address.channel,
        "conversation": address.conversation,
        "importance": record.importance,
        "created_at": record.created_at,
        "access_count": record.access_count,
        "superseded_by": record.superseded_by,
    }


def note_row(item: ShelfItem) -> dict[str, Any]:
    """A note of a scratchpad. A text is shown as it is, any other value as indented JSON."""
    value = item.body["value"]
    return {
        "key": item.body["key"],
        "text": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2),
        "json": not isinstance(value, str),
        "conversation": item.parent,
        "agent": item.agent,
        "updated_at": item.changed_at,
        "version": item.version,
    }


def hit_row(hit: Hit, now: datetime) -> dict[str, Any]:
    return {**row(hit.memory, now), "score": hit.score, "relevance": hit.relevance}


def explained(hit: Hit) -> dict[str, Any]:
    """The parts of a score as steps that go from nothing to it. Factors are steps of their own, each from nothing."""
    explanation = hit.explain()
    steps: list[dict[str, Any]] = []
    at = 0.0
    for part in explanation.parts:
        start = at if explanation.how == "sum" else 0.0
        at = start + part.share
        step = {"name": part.name, "value": part.value, "weight": part.weight, "share": part.share}
        steps.append({**step, "start": start, "end": at})
    return {
        "score": explanation.score,
        "how": explanation.how,
        "relevance": explanation.relevance,
        "parts": steps,
        "told": str(explanation),
    }


def scale(explanations: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """The least and the most that any step reaches, so that all bars can be compared."""
    ends = [step[edge] for explanation in explanations for step in explanation["parts"] for edge in ("start", "end")]
    return min([0.0, *ends]), max([0.0, *ends]) or 1.0


def cached(memory: Memory, name: str, make: Callable[[], Any]) -> tuple[Any, datetime]:
    """What takes long to find out, and when it was: found out anew only after a while that is long beside it."""
    view = view_of(memory)
    memo = view.cache("pages")
    key, now = (name, view.address, view.bound), time.monotonic()
    last = memo.get(key)
    if last is not None and now < last[2]:
        return last[0], last[1]
    value, at = make(), view.now()
    took = time.monotonic() - now
    if took > _QUICK:
        memo[key] = value, at, time.monotonic() + min(took * _WORTH, _OLDEST)
    return value, at


_QUICK, _WORTH, _OLDEST = 0.02, 30, 600
"""Seconds that are not worth keeping anything for; how many times as long it is kept; and for how long at most."""
