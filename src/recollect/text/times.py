"""Times as people say them, relative to a given now."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from recollect.values.errors import InputError
from recollect.values.record import parse_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DAY = timedelta(days=1)
_UNITS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": _DAY,
    "week": timedelta(weeks=1),
    "month": timedelta(days=30),
    "year": timedelta(days=365),
}
_LAST = re.compile(rf"(?:the )?(?:last|past)(?: (\d{{1,6}}))? ({'|'.join(_UNITS)})s?")

_CALENDAR = {name: _UNITS[name] for name in ("day", "week", "month", "year")} | {
    "night": _DAY,
    "weekend": _UNITS["week"],
}
"""Units that a question is asked in. "Last minute" is mostly not a time."""
_MONTHS: Sequence[str] = "january february march april may june july august september october november december".split()
_WEEKDAYS: Sequence[str] = "monday tuesday wednesday thursday friday saturday sunday".split()
CALENDAR_NAMES = frozenset((*_MONTHS, *_WEEKDAYS))
_NUMBERS = {"a": 1, "an": 1, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3, "several": 4} | {
    word: n for n, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
_TIMELY = re.compile("|".join([r"\d", "day", "week", "month", "year", "night", *_MONTHS]), re.IGNORECASE)
"""Every reader below needs one of these. Most questions have none, and need no reader."""
_ASKS_WHEN = re.compile(
    r"\W*(?:when|how long|(?:on |in |at |since |until )?(?:what|which) (?:date|day|month|year|time))\b", re.I
)
_NAMES_TIME = re.compile(
    rf"\b(?:{'|'.join(_MONTHS)}|{'|'.join(_WEEKDAYS)}|today|tonight|yesterday|tomorrow|ago|"
    r"(?:last|next|this|past) (?:night|weekend|week|month|year|spring|summer|autumn|fall|winter)|"
    r"(?:19|20)\d\d|\d{1,2}:\d\d|\d{1,2} ?[ap]m|(?:days?|weeks?|months?|years?))\b",
    re.IGNORECASE,
)
_DAYS_AGO = {"today": 0, "tonight": 0, "yesterday": 1, "the day before yesterday": 2}


def asks_when(question: str) -> bool:
    """Whether an English question asks for a time: "When …", "How long …", "What year …"."""
    return _ASKS_WHEN.match(question) is not None


def names_time(text: str) -> bool:
    """Whether an English text names a time: a date, a day, "last week", "two years"."""
    return _NAMES_TIME.search(text) is not None


def span(text: str, now: datetime, field: str = "time_range") -> tuple[datetime, datetime | None]:
    """From when, and until when if that is not now: `last hour`, `last 3 days`, `today`, `yesterday`."""
    words = " ".join(text.split()).lower()
    midnight = _midnight(now)
    if words == "today":
        return midnight, None
    if words == "yesterday":
        return midnight - _DAY, midnight
    if match := _LAST.fullmatch(words):
        try:
            return now - int(match[1] or 1) * _UNITS[match[2]], None
        except OverflowError:
            raise InputError(field, f"{text[:40]!r} lies before the year 1") from None
    raise InputError(field, f"{text[:40]!r} is not a time such as 'last hour', 'last 3 days', 'today' or 'yesterday'")


_SHORT = {"m": "minute", "min": "minute", "h": "hour", "d": "day", "w": "week"}
_FORMS = "2026-03-01, 2026-03-01T14:00:00+01:00, 30m, 12h, 7d, 2w, '2 weeks ago', 'yesterday' or 'last Monday'"


def point(value: datetime | str, field: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """The moment that somebody means, in UTC: when it begins, of what lasts longer, such as `yesterday`.

    Takes ISO 8601, a distance before now such as `7d` or `2 weeks ago`, and days, weeks, months and years as questions
    name them. What names no zone is in `zone`, which is UTC unless it is given.
    """
    if not isinstance(value, str):
        return parse_time(value, field)
    words = " ".join(value.split())
    here = now.astimezone(zone or UTC)
    try:
        when = datetime.fromisoformat(words)
        return parse_time(when if when.tzinfo is not None else when.replace(tzinfo=zone or UTC), field)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
    if words.lower() == "now":
        return parse_time(now, field)
    try:
        if match := _distance().fullmatch(words.lower()):
            return parse_time(here - _count(match[1]) * _UNITS[match[3] or _SHORT[match[2]]], field)
        if match := _LAST.fullmatch(words.lower()):
            return parse_time(here - int(match[1] or 1) * _UNITS[match[2]], field)
    except OverflowError:
        raise InputError(field, f"{value[:40]!r} lies before the year 1") from None
    asked = asked_time(words, here)
    if asked is None or len(asked.words) != len(words):
        raise InputError(field, f"{value[:40]!r} is not a time (ISO 8601, or as people write it) such as {_FORMS}")
    return parse_time(asked.since, field)


@cache
def _distance() -> re.Pattern[str]:
    number = r"\d{1,6}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True))
    words, letters = "|".join(_UNITS), "|".join(_SHORT)
    return re.compile(rf"({number}) ?(?:({letters})|({words})s?)(?: ago)?")


class QuestionTime(msgspec.Struct, frozen=True):
    """The time that a question speaks of."""

    since: datetime
    until: datetime
    slack_days: float
    """By how much it may be missed: people are a day off about a day, a week about a month."""
    words: str
    """The words of the question that name the time."""


def asked_time(query: str, now: datetime, zone: tzinfo | None = None) -> QuestionTime | None:
    """The first time that a question names, the most exact kind first. `now` must know its zone.

    Days begin at midnight in `zone`, which is that of `now` unless it is given.
    """
    words = " ".join(query.split())
    if not _TIMELY.search(words):
        return None
    for pattern, read in _readers():
        for match in pattern.finditer(words):
            try:
                here = now if zone is None else now.astimezone(zone)
                since, until, slack = read([(group or "").lower() for group in match.groups()], here)
            except (ValueError, OverflowError, LookupError):
                continue  # the 31st of June, the year 0, or Auguſt, which matches without regard to case
            return QuestionTime(since, until, slack, match[0].strip(" ,"))
    return None


def closeness(asked: QuestionTime, created: NDArray[np.float64]) -> NDArray[np.float32]:
    """1 inside the time that was asked for, falling off around it. `created` is in seconds since 1970."""
    import numpy as np

    since, until = asked.since.timestamp(), asked.until.timestamp()
    distance = np.maximum(0.0, np.maximum(since - created, created - until))
    return np.exp(-distance / (asked.slack_days * _DAY.total_seconds())).astype(np.float32)


_Read = tuple[datetime, datetime, float]
_Reader = Callable[[Sequence[str], datetime], _Read]


@cache
def _readers() -> tuple[tuple[re.Pattern[str], _Reader], ...]:
    """What is said, and how it is read: dates before months before words, which are often only part of a date."""
    month, weekday, unit = "|".join(_MONTHS), "|".join(_WEEKDAYS), "|".join(sorted(_CALENDAR, key=len, reverse=True))
    count = r"\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True))
    table: tuple[tuple[str, _Reader], ...] = (
        (r"\b(\d{4})[-/](\d{1,2})[-/](\d{1,2})\b", lambda g, now: _date(now, g[0], int(g[1]), g[2])),
        (
            rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({month})\b,?(?: of)? ?(\d{{4}})?",
            lambda g, now: _date(now, g[2], _month_of(g[1]), g[0]),
        ),
        (
            rf"\b({month}) (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? ?(\d{{4}}))?",
            lambda g, now: _date(now, g[2], _month_of(g[0]), g[1]),
        ),
        (rf"\b({month}),? (?:of )?(\d{{4}})\b", lambda g, now: _month(now, int(g[1]), _month_of(g[0]))),
        (rf"\b(in|during|since|early|mid|late|last|this)[ -]({month})\b", _latest_month),
        (rf"\b({count}) ({unit})s? (?:ago|back|earlier)\b", _ago),
        (rf"\b(?:past|last|previous) ({count}) ({unit})s?\b", _past),
        (rf"\b(?:last|this|past) ({weekday})\b", _weekday),
        (rf"\b(last|this|past) ({unit})\b", _last),
        (
            rf"\b({'|'.join(sorted(_DAYS_AGO, key=len, reverse=True))})\b",
            lambda g, now: _day(now - _DAYS_AGO[g[0]] * _DAY),
        ),
        (r"\b(in|during|of|by|since) ((?:19|20)\d\d)\b", _year),
    )
    return tuple((re.compile(pattern, re.IGNORECASE), reader) for pattern, reader in table)


def _midnight(when: datetime) -> datetime:
    """The first midnight of the day: where clocks are set back at one, there are two."""
    return when.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def _day(when: datetime) -> _Read:
    start = _midnight(when)
    return start, start + _DAY, 1.0


def _date(now: datetime, year: str, month: int, day: str) -> _Read:
    return _day(now.replace(year=int(year or now.year), month=month, day=int(day)))


def _month_of(name: str) -> int:
    return _MONTHS.index(name) + 1


def _month(now: datetime, year: int, month: int) -> _Read:
    start = _midnight(now.replace(year=year, month=month, day=1))
    return start, start.replace(year=year + (month == 12), month=month % 12 + 1), 7.0


def _latest_month(g: Sequence[str], now: datetime) -> _Read:
    """The last such month that has begun."""
    month = _month_of(g[1])
    return _open(g[0], _month(now, now.year - (month > now.month), month), now)


def _year(g: Sequence[str], now: datetime) -> _Read:
    return _open(g[0], (_month(now, int(g[1]), 1)[0], _month(now, int(g[1]), 12)[1], 7.0), now)


def _open(preposition: str, read: _Read, now: datetime) -> _Read:
    """What has been since then goes on."""
    return (read[0], max(read[1], now), read[2]) if preposition == "since" else read


def _ago(g: Sequence[str], now: datetime) -> _Read:
    """Half a unit around it: "two weeks ago" is said of anything from ten to seventeen days."""
    count, unit = _count(g[0]), _CALENDAR[g[1]]
    return now - (count + 0.5) * unit, now - (count - 0.5) * unit, max(1.0, unit / _DAY / 4)


def _past(g: Sequence[str], now: datetime) -> _Read:
    return now - _count(g[0]) * _CALENDAR[g[1]], now, 1.0


def _weekday(g: Sequence[str], now: datetime) -> _Read:
    return _day(now - ((now.weekday() - _WEEKDAYS.index(g[0])) % 7 or 7) * _DAY)


def _last(g: Sequence[str], now: datetime) -> _Read:
    """The calendar's last year; but "last week" is said of the past seven days as well as of the seven before them."""
    if g[1] == "night":
        return _day(now - _DAY)
    if g[1] == "year" and g[0] == "last":
        return _month(now, now.year - 1, 1)[0], _month(now, now.year, 1)[0], 30.0
    return now - _CALENDAR[g[1]] * (1 if g[0] == "this" else 2), now, 1.0


def _count(word: str) -> int:
    return _NUMBERS[word] if word in _NUMBERS else int(word)
