"""Times as people say them, relative to a given now."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from recollect.errors import InputError

_UNITS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
    "month": timedelta(days=30),
    "year": timedelta(days=365),
}
_LAST = re.compile(rf"(?:the )?(?:last|past)(?: (\d{{1,6}}))? ({'|'.join(_UNITS)})s?", re.IGNORECASE)


def span(text: str, now: datetime, field: str = "time_range") -> tuple[datetime, datetime | None]:
    """From when, and until when if that is not now: `last hour`, `last 3 days`, `today`, `yesterday`."""
    said = " ".join(text.split()).lower()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if said == "today":
        return midnight, None
    if said == "yesterday":
        return midnight - timedelta(days=1), midnight
    if found := _LAST.fullmatch(said):
        try:
            return now - int(found[1] or 1) * _UNITS[found[2]], None
        except OverflowError:
            raise InputError(field, f"{text[:40]!r} lies before the year 1") from None
    raise InputError(field, f"{text[:40]!r} is not a time such as 'last hour', 'last 3 days', 'today' or 'yesterday'")
