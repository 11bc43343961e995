"""Times as people type them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from recollect.text.times import point
from recollect.values.errors import InputError
from recollect.values.record import parse_time, utc_now

_DISTANCE = re.compile(r"(\d{1,6})\s*([mhdw])", re.IGNORECASE)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

WHEN = "as in 2026-03-01, 7d, 12h, '2 weeks ago' or yesterday"


def past(value: str | None, field: str, now: datetime | None = None) -> datetime | None:
    """`7d` is seven days ago."""
    return None if value is None else point(value, field, now or utc_now())


def future(value: str | None, field: str, now: datetime | None = None) -> datetime | None:
    """`7d` is seven days from now."""
    if value is None:
        return None
    if (distance := _DISTANCE.fullmatch(value.strip())) is None:
        try:
            return parse_time(value, field)
        except InputError as error:
            raise InputError(field, f"{error.problem}, nor a distance such as 30m, 12h, 7d or 2w") from None
    number, unit = distance.groups()
    try:
        return (now or utc_now()) + timedelta(**{_UNITS[unit.lower()]: int(number)})
    except OverflowError:
        raise InputError(field, f"{value!r} lies outside the years 1 to 9999") from None
