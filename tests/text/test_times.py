"""Times in questions: which one is meant, and how close a memory is to it."""

import math
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.text.times import QuestionTime, asked_time, closeness, point, span
from recollect.values.errors import InputError

NOW = datetime(2026, 3, 11, 15, 30, tzinfo=UTC)  # a Wednesday


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ago(**parts: float) -> datetime:
    return NOW - timedelta(**parts)


@pytest.mark.parametrize(
    ("query", "date", "words"),
    [
        ("What happened on 2025-07-04?", "2025-07-04", "2025-07-04"),
        ("notes of 2025/7/4", "2025-07-04", "2025/7/4"),
        ("What did Ann buy on 4 July 2025?", "2025-07-04", "4 July 2025"),
        ("on the 21st of July, 2025", "2025-07-21", "21st of July, 2025"),
        ("on the 3rd of February", "2026-02-03", "3rd of February"),
        ("on July 4, 2025, at noon", "2025-07-04", "July 4, 2025"),
        ("on February 3rd", "2026-02-03", "February 3rd"),
        ("on 3 February, I think", "2026-02-03", "3 February"),
        ("on JULY 4 2025", "2025-07-04", "JULY 4 2025"),
        ("What did I eat yesterday?", "2026-03-10", "yesterday"),
        ("the day before yesterday I said something", "2026-03-09", "the day before yesterday"),
        ("What is on today?", "2026-03-11", "today"),
        ("dinner tonight", "2026-03-11", "tonight"),
        ("where was I last night", "2026-03-10", "last night"),
        ("who called last Monday?", "2026-03-09", "last Monday"),
        ("who called last wednesday?", "2026-03-04", "last wednesday"),
        ("who called this Thursday?", "2026-03-05", "this Thursday"),
        ("who called  last \n friday?", "2026-03-06", "last friday"),
    ],
)
def test_a_day_is_from_midnight_to_midnight(query: str, date: str, words: str) -> None:
    assert asked_time(query, NOW) == QuestionTime(day(date), day(date) + timedelta(days=1), 1.0, words)


@pytest.mark.parametrize(
    ("query", "since", "until", "slack"),
    [
        ("the trip of May 2023", "2023-05-01", "2023-06-01", 7.0),
        ("the trip in December, 2023", "2023-12-01", "2024-01-01", 7.0),
        ("what did we do in January?", "2026-01-01", "2026-02-01", 7.0),
        ("what did we do in mid-March?", "2026-03-01", "2026-04-01", 7.0),
        ("what did we do last June?", "2025-06-01", "2025-07-01", 7.0),  # June 2026 has not begun
        ("who joined in 2024?", "2024-01-01", "2025-01-01", 7.0),
        ("the goals of 2025", "2025-01-01", "2026-01-01", 7.0),
        ("what did I read last year?", "2025-01-01", "2026-01-01", 30.0),
    ],
)
def test_months_and_years_are_the_calendars(query: str, since: str, until: str, slack: float) -> None:
    asked = asked_time(query, NOW)
    assert asked is not None
    assert (asked.since, asked.until, asked.slack_days) == (day(since), day(until), slack)


@pytest.mark.parametrize(
    ("query", "since", "until", "slack"),
    [
        ("what did I do 3 days ago?", ago(days=3.5), ago(days=2.5), 1.0),
        ("two weeks ago", ago(days=17.5), ago(days=10.5), 1.75),
        ("a month back", ago(days=45), ago(days=15), 7.5),
        ("a couple of months earlier", ago(days=75), ago(days=45), 7.5),
        ("a few nights ago", ago(days=3.5), ago(days=2.5), 1.0),
        ("several weekends ago", ago(days=31.5), ago(days=24.5), 1.75),
        ("an year ago", ago(days=547.5), ago(days=182.5), 91.25),
        ("in the last 3 days", ago(days=3), NOW, 1.0),
        ("over the past few weeks", ago(days=21), NOW, 1.0),
        ("in the previous twelve months", ago(days=360), NOW, 1.0),
        ("this week", ago(days=7), NOW, 1.0),
        ("last week", ago(days=14), NOW, 1.0),
        ("last weekend", ago(days=14), NOW, 1.0),
        ("this month", ago(days=30), NOW, 1.0),
        ("past year", ago(days=730), NOW, 1.0),
    ],
)
def test_what_is_said_of_now_is_counted_from_now(query: str, since: datetime, until: datetime, slack: float) -> None:
    asked = asked_time(query, NOW)
    assert asked is not None
    assert (asked.since, asked.until, asked.slack_days) == (since, until, slack)


@pytest.mark.parametrize(("query", "since"), [("since January", "2026-01-01"), ("since 2024", "2024-01-01")])
def test_since_goes_on_until_now(query: str, since: str) -> None:
    asked = asked_time(f"what has changed {query}?", NOW)
    assert asked is not None
    assert (asked.since, asked.until, asked.words) == (day(since), NOW, query)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "What is Ann's favourite tea?",
        "How many days ago did we meet?",  # asks for the number
        "a last minute change",
        "May I ask something?",
        "the march of time",
        "on the 31st of June",
        "2026-13-01",
        "0000-01-01",
        "9999-12-31",
        "route 2024",
        "laſt Frıday",
        "in Auguſt",
    ],
)
def test_what_is_no_time_or_no_day_is_not_asked_for(query: str) -> None:
    assert asked_time(query, NOW) is None


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("last week, I mean on 5 March 2026", "5 March 2026"),
        ("in 2024 or in May 2025", "May 2025"),
        ("31 June or 30 June", "30 June"),
        ("2026-02-30, two days ago", "two days ago"),
        ("last year, 2 days ago", "2 days ago"),
    ],
)
def test_the_most_exact_time_that_exists_is_taken(query: str, words: str) -> None:
    asked = asked_time(query, NOW)
    assert asked is not None
    assert asked.words == words


def test_days_begin_at_midnight_in_the_zone() -> None:
    late = datetime(2026, 3, 11, 23, 30, tzinfo=UTC)  # the 12th in Kolkata, the 11th in New York
    for zone, date in ((ZoneInfo("Asia/Kolkata"), 12), (ZoneInfo("America/New_York"), 11), (None, 11)):
        asked = asked_time("today", late, zone)
        assert asked is not None
        assert asked.since == datetime(2026, 3, date, tzinfo=zone or UTC)
    fixed = timezone(timedelta(hours=14))
    assert asked_time("today", late.astimezone(fixed)) == asked_time("today", late, fixed)


@pytest.mark.parametrize(
    ("zone", "now", "hours"),
    [
        ("Europe/Berlin", datetime(2026, 3, 29, 12, tzinfo=UTC), 23),
        ("Europe/Berlin", datetime(2026, 10, 25, 12, tzinfo=UTC), 25),
        ("America/Havana", datetime(2026, 11, 1, 5, 30, tzinfo=UTC), 25),  # in the second of two first hours
    ],
)
def test_a_day_on_which_clocks_change_is_a_whole_day(zone: str, now: datetime, hours: int) -> None:
    for query in ("today", f"on {now:%Y-%m-%d}"):
        asked = asked_time(query, now, ZoneInfo(zone))
        assert asked is not None
        assert asked.until.timestamp() - asked.since.timestamp() == hours * 3600


def test_closeness_is_one_inside_and_falls_by_the_slack() -> None:
    asked = QuestionTime(day("2026-03-01"), day("2026-03-08"), 2.0, "then")
    at = [day(f"2026-{date}").timestamp() for date in ("02-23", "02-27", "03-01", "03-04", "03-08", "03-10", "03-16")]
    near = closeness(asked, np.array(at))
    assert near.dtype == np.float32
    e = math.e
    assert near.tolist() == pytest.approx([e**-3, e**-1, 1, 1, 1, e**-1, e**-4])


def test_closeness_of_no_memories() -> None:
    assert closeness(QuestionTime(NOW, NOW, 1.0, ""), np.zeros(0)).tolist() == []


pieces = st.sampled_from(
    """last this past in since on the of a few several 3 31 999 99 0000 9999 2024 january may february december
    years weeks months ago back yesterday today friday weekend 9999-12-31 0001-01-01 2024-02-30 31st
    auguſt Frıday , -""".split()
)
moments = st.datetimes(timezones=st.sampled_from([UTC, ZoneInfo("Asia/Tokyo"), ZoneInfo("America/Havana")]))
zones = st.none() | st.sampled_from([ZoneInfo("Pacific/Kiritimati"), ZoneInfo("America/Los_Angeles"), UTC])


@given(st.text() | st.lists(pieces, max_size=8).map(" ".join), moments, zones)
@example("999 years ago", datetime(500, 1, 1, tzinfo=UTC), None)
@example("today", datetime.max.replace(tzinfo=UTC), ZoneInfo("Pacific/Kiritimati"))
@example("today", datetime.min.replace(tzinfo=UTC), ZoneInfo("America/Los_Angeles"))
@example("last year", datetime.min.replace(tzinfo=UTC), None)
@example("0001-01-01", NOW, ZoneInfo("Asia/Tokyo"))
def test_any_text_can_be_asked_at_any_time(query: str, now: datetime, zone: ZoneInfo | None) -> None:
    asked = asked_time(query, now, zone)
    if asked is not None:
        assert asked.since <= asked.until
        assert asked.words in " ".join(query.split())
        assert np.isfinite(closeness(asked, np.array([0.0, now.timestamp()]))).all()


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("today", day("2026-03-11"), None),
        (" Yesterday ", day("2026-03-10"), day("2026-03-11")),
        ("last hour", ago(hours=1), None),
        ("the last 90 minutes", ago(minutes=90), None),
        ("Past  3 days", ago(days=3), None),
        ("last month", ago(days=30), None),
        ("last 2 years", ago(days=730), None),
    ],
)
def test_a_span_is_said_exactly(text: str, since: datetime, until: datetime | None) -> None:
    assert span(text, NOW) == (since, until)


@pytest.mark.parametrize("text", ["", "next week", "in the last 3 days", "last mınute", "last 999999 years", "2024"])
def test_a_span_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^when: "):
        span(text, NOW, "when")


@pytest.mark.parametrize(
    ("said", "when"),
    [
        ("2026-03-01", day("2026-03-01")),
        ("2026-03-01T14:00:00+01:00", datetime(2026, 3, 1, 13, tzinfo=UTC)),
        ("2026/3/1", day("2026-03-01")),
        ("now", NOW),
        ("7d", ago(days=7)),
        (" 12 H ", ago(hours=12)),
        ("30m", ago(minutes=30)),
        ("2w", ago(weeks=2)),
        ("2 weeks ago", ago(weeks=2)),
        ("2 weeks", ago(weeks=2)),
        ("a week ago", ago(weeks=1)),
        ("three days ago", ago(days=3)),
        ("90 minutes ago", ago(minutes=90)),
        ("last 3 days", ago(days=3)),
        ("past hour", ago(hours=1)),
        ("last week", ago(weeks=1)),
        ("today", day("2026-03-11")),
        ("Yesterday", day("2026-03-10")),
        ("the day before yesterday", day("2026-03-09")),
        ("last Monday", day("2026-03-09")),
        ("4 July 2025", day("2025-07-04")),
        ("July 4, 2025", day("2025-07-04")),
        ("May 2023", day("2023-05-01")),
    ],
)
def test_a_point_in_time_as_people_write_it(said: str, when: datetime) -> None:
    assert point(said, "since", NOW) == when


@pytest.mark.parametrize("said", ["", "soon", "7", "-7d", "met yesterday", "31 June 2025", "2026-99-01", "9" * 99])
def test_what_is_no_point_in_time_is_refused_with_what_is(said: str) -> None:
    with pytest.raises(InputError, match=r"^until: .* such as 2026-03-01.*7d.*yesterday") as caught:
        point(said, "until", NOW)
    assert len(str(caught.value)) < 300


def test_a_point_before_the_calendar_is_refused() -> None:
    with pytest.raises(InputError, match=r"^since: .*year 1"):
        point("999999 weeks ago", "since", NOW)


def test_a_point_is_in_utc_unless_a_zone_is_given() -> None:
    zone = timezone(timedelta(hours=9))
    assert point("yesterday", "since", NOW, zone) == datetime(2026, 3, 11, tzinfo=zone)
    assert point("2026-03-01", "since", NOW, zone) == datetime(2026, 3, 1, tzinfo=zone)
    assert point("yesterday", "since", NOW).utcoffset() == timedelta(0)


@given(st.text(max_size=40))
def test_any_text_is_a_point_or_refused(said: str) -> None:
    with suppress(InputError):
        assert point(said, "since", NOW).tzinfo is UTC
