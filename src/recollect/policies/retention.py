"""How long a memory stays: time to live, prompt window, archiving, early cleanup and quota."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Annotated, Literal

import msgspec

from recollect.policies.decay import Decay, strength, window
from recollect.values.record import Record

Days = Annotated[float, msgspec.Meta(gt=0.0, le=36_525.0)]
Limit = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
QuotaOrder = Literal["importance", "oldest"]
QuotaAction = Literal["archive", "forget"]


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ttl_days: dict[str, Days] = {}
    """Kind → days until it expires, written into the memory. A kind that is not listed never expires."""
    explicit_is_permanent: bool = False
    """Whether what the user asked to remember is exempt from `ttl_days`."""
    window_days: dict[str, Days] = {}
    """Kind → days in the prompt. Only a question of reading: the memory itself stays."""
    archive_below: Limit | None = None
    """A memory weaker than this, after decay, is archived."""
    early_cleanup_below: Limit | None = None
    """A memory stored with less importance than this may go first."""
    quota: Count | None = None
    quota_order: QuotaOrder = "importance"
    quota_action: QuotaAction = "archive"
    compact_below: Limit | None = None
    """Compaction removes a memory whose relevance, by the preset's ranking and without a query, is less than this."""


def expiry(retention: Retention, kind: str, created_at: datetime, explicit: bool) -> datetime | None:
    """When a new memory expires; None if never."""
    days = retention.ttl_days.get(kind)
    if days is None or (explicit and retention.explicit_is_permanent):
        return None
    try:
        return created_at + timedelta(days=days)
    except OverflowError:
        return None  # after the last date there is


def in_window(retention: Retention, record: Record, now: datetime) -> bool:
    """Whether the memory still belongs in the prompt."""
    days = retention.window_days.get(record.kind)
    return days is None or window(now - record.created_at, timedelta(days=days))


def decayed(retention: Retention, record: Record, decay: Decay, now: datetime) -> bool:
    """Whether the memory has become weak enough to be archived."""
    return retention.archive_below is not None and strength(record, decay, now) < retention.archive_below


def early(retention: Retention, record: Record) -> bool:
    """Whether the memory was of so little importance that it may go before its time."""
    return retention.early_cleanup_below is not None and record.importance < retention.early_cleanup_below


def over_quota(records: Collection[Record], quota: int | None, order: QuotaOrder = "importance") -> list[Record]:
    """The memories to archive so that `quota` are left, in the order in which they should go; equals as they come."""
    surplus = 0 if quota is None else len(records) - quota
    if surplus <= 0:
        return []
    return heapq.nsmallest(surplus, records, key=_least_important if order == "importance" else _oldest)


def _least_important(record: Record) -> tuple[float, datetime]:
    return record.importance, record.created_at


def _oldest(record: Record) -> datetime:
    return record.created_at
