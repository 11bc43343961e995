"""How a memory fades: the curves as functions of numbers, and as values that a preset can name."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Annotated, Literal

import msgspec

from recollect.values.record import Record, Tier

INK_BUILTIN: dict[Tier, float] = {"account": 0.999, "workspace": 0.998, "channel": 0.995, "conversation": 0.99}
"""Rates per hour that the Inklings document calls built-in."""

INK_TABLE: dict[Tier, float] = {"account": 0.998, "workspace": 0.995, "channel": 0.990, "conversation": 1.0}
"""The same document's table: 71, 43 and 17 % are left after 7 days, and a conversation does not fade."""

_NAMED = {"builtin": INK_BUILTIN, "table": INK_TABLE}

Rate = Annotated[float, msgspec.Meta(gt=0.0, le=1.0)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Hours = Annotated[float, msgspec.Meta(gt=0.0, le=1e9)]


def weekly(importance: float, weeks: float, rate: float = 0.95) -> float:
    return importance * rate ** max(weeks, 0.0)


def hourly(importance: float, rate: float, hours: float, access_count: int) -> float:
    """Fades by the hour; having been recalled often works against it and can lift the result above 1."""
    return importance * rate ** max(hours, 0.0) * (1.0 + math.log1p(access_count))


def half_life(hours: float, half_life_hours: float | None, floor: float = 0.1) -> float:
    """What is left of 1.0, never less than `floor`. No half-life means no fading."""
    if half_life_hours is None:
        return 1.0
    return max(floor, math.exp(-math.log(2.0) / half_life_hours * max(hours, 0.0)))


def window(age: timedelta, window: timedelta) -> bool:
    """Whether something of this age is still inside the window; exactly at its end it still is."""
    return age <= window


def hours_between(since: datetime, now: datetime) -> float:
    """Never negative: a clock that went back, or a time in the future, counts as no time at all."""
    seconds = (now - since).total_seconds()
    return seconds / 3600.0 if seconds > 0.0 else 0.0


class NoDecay(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="curve", tag="none"):
    """A memory stays as strong as it was stored."""

    def factor(self, record: Record, now: datetime) -> float:
        return 1.0


class Weekly(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="curve", tag="weekly"):
    """Loses a share for every week in which it was not recalled."""

    rate: Rate = 0.95

    def factor(self, record: Record, now: datetime) -> float:
        return weekly(1.0, hours_between(record.accessed_at, now) / 168.0, self.rate)


class PerTier(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="curve", tag="per_tier"):
    """Fades by the hour since the last recall, at the rate of its tier. A tier left out has its built-in rate."""

    rates: dict[Tier, Rate] | Literal["builtin", "table"] = "builtin"

    def factor(self, record: Record, now: datetime) -> float:
        rates = _NAMED[self.rates] if isinstance(self.rates, str) else self.rates
        rate = rates[record.tier] if record.tier in rates else INK_BUILTIN[record.tier]
        return hourly(1.0, rate, hours_between(record.accessed_at, now), record.access_count)


class HalfLife(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="curve", tag="half_life"):
    """Halves every so many hours since it was made, by kind, down to a floor. Kinds in `never` stay whole."""

    hours: dict[str, Hours] = {}
    default: Hours = 168.0
    never: tuple[str, ...] = ()
    floor: Share = 0.1

    def factor(self, record: Record, now: datetime) -> float:
        if record.kind in self.never:
            return 1.0
        return half_life(hours_between(record.created_at, now), self.hours.get(record.kind, self.default), self.floor)


Decay = NoDecay | Weekly | PerTier | HalfLife


def strength(record: Record, decay: Decay, now: datetime) -> float:
    """What the memory's importance has become by `now`."""
    return record.importance * decay.factor(record, now)
