"""When maintenance runs, and by which numbers memories are consolidated."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Protocol

import msgspec

from recollect.policies.retention import Count, Days, Limit
from recollect.values.record import moved

Uses = Annotated[int, msgspec.Meta(ge=0)]
Every = Annotated[float, msgspec.Meta(ge=0.0, le=1e6)]


class UndoData(Protocol):
    """The undo data of one change."""

    @property
    def seq(self) -> int: ...

    @property
    def at(self) -> datetime: ...

    @property
    def bytes(self) -> int: ...


class Maintenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Schedules. A job without one runs whenever maintenance does."""

    watch_minutes: Annotated[float, msgspec.Meta(gt=0.0, le=1e6)] = 30.0
    """How often `maintain --watch`, and a server in its background, looks for what is due."""
    background: bool = True
    """Whether `recollect serve`, `ui` and `mcp` run what is due by themselves."""
    consolidate_hours: Every = 24.0
    supersede_hours: Every = 24.0
    embed_hours: Every = 0.5
    undo_days: Days = 30.0
    """How long what it takes to undo a change is kept."""
    undo_mb: Annotated[float, msgspec.Meta(gt=0.0, le=1e6)] = 32.0
    """How much of it a workspace keeps. The oldest goes first; the last change can always be undone."""
    supersede: bool = False
    """Whether a memory that contradicts an older one takes its place."""
    ask_share: Limit = 0.3
    """Of a scope no larger share is merged, superseded or pruned unless it is forced."""
    ask_least: Uses = 5
    """So few in a scope are never held back, whatever share they are."""


def expired_undo(rules: Maintenance, changes: Sequence[UndoData], now: datetime) -> list[int]:
    """The numbers of the changes whose undo data is too old or, the oldest first, too much. They come in order."""
    oldest = moved(now, -timedelta(days=rules.undo_days))
    left = rules.undo_mb * 1024 * 1024
    expired: list[int] = []
    for number, change in enumerate(reversed(changes)):
        left -= change.bytes
        if change.at < oldest or (left < 0 and number):
            expired.append(change.seq)
    return expired


class Consolidation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of memories that have been there for a while. Nothing is ever deleted."""

    enabled: bool = False
    promote_above: Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)] = 0.7
    """A short-term memory that is more relevant than this, and was recalled more often than `promote_uses`, stays."""
    promote_uses: Uses = 3
    prune_below: Limit = 0.01
    """A short-term memory that is less relevant than this is archived."""
    same_above: Limit = 0.95
    """Memories of a higher cosine become one, unless their numbers, names or negations differ."""
    cap: Count = 10_000
    """Live memories per scope; the least relevant beyond it are archived."""
