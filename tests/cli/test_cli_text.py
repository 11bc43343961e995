from datetime import UTC, datetime, timedelta

import pytest

from recollect.cli import text, times
from recollect.values.errors import InputError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("distance", "shown"),
    [
        (timedelta(), "just now"),
        (timedelta(seconds=44), "just now"),
        (timedelta(seconds=-20), "just now"),
        (timedelta(seconds=50), "1 min ago"),
        (timedelta(minutes=59), "59 min ago"),
        (timedelta(hours=1), "1 h ago"),
        (timedelta(hours=23), "23 h ago"),
        (timedelta(days=1), "1 day ago"),
        (timedelta(days=13), "13 days ago"),
        (timedelta(days=14), "2026-02-15"),
        (timedelta(days=-3), "in 3 days"),
    ],
)
def test_times_are_told_as_a_person_would(distance: timedelta, shown: str) -> None:
    assert text.ago(NOW - distance, NOW) == shown


def test_a_moment_is_exact_and_says_how_long_ago_where_that_helps() -> None:
    assert text.moment(NOW - timedelta(hours=2), NOW) == "2026-03-01 10:00:00 UTC (2 h ago)"
    assert text.moment(NOW - timedelta(days=400), NOW) == "2025-01-25 12:00:00 UTC"


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2, "1.0 MiB"),
        (5 * 1024**4, "5.0 TiB"),
        (1024**5, "1024.0 TiB"),
    ],
)
def test_sizes(number: int, shown: str) -> None:
    assert text.size(number) == shown


def test_text_cannot_drive_the_terminal() -> None:
    shown = text.printable("a\x1b[31mb\x07\x9b\r\u202ec\td\n")

    assert shown == "a\\x1b[31mb\\x07\\x9b\\x0d\\u202ec\td\n"
    assert text.printable("नमस्ते 👩‍💻 日本") == "नमस्ते 👩‍💻 日本"


def test_one_line_joins_and_shortens() -> None:
    assert text.one_line(" a\n\n b\tc ") == "a b c"
    assert text.one_line("abcdef", 4) == "abc…"
    assert text.one_line("abcd", 4) == "abcd"


@pytest.mark.parametrize(
    ("typed", "distance"),
    [
        ("30m", timedelta(minutes=30)),
        ("12h", timedelta(hours=12)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
        ("2W", timedelta(weeks=2)),
        (" 7 d ", timedelta(days=7)),
    ],
)
def test_distances_count_from_now(typed: str, distance: timedelta) -> None:
    assert times.past(typed, "since", NOW) == NOW - distance
    assert times.future(typed, "expires", NOW) == NOW + distance


def test_iso_times_are_taken_as_they_are() -> None:
    assert times.past("2026-01-10T14:23:45Z", "since", NOW) == datetime(2026, 1, 10, 14, 23, 45, tzinfo=UTC)
    assert times.past("2026-01-10", "since", NOW) == datetime(2026, 1, 10, tzinfo=UTC)
    assert times.past(None, "since", NOW) is None


@pytest.mark.parametrize("typed", ["soon", "7", "d", "-7d", "7y", "", "999999w", "1e3d"])
def test_what_is_no_time_is_refused_by_name(typed: str) -> None:
    with pytest.raises(InputError, match=r"^since: "):
        times.past(typed, "since", NOW)
