"""The record: its id, its checksum, its text, its times, and the state it is in."""

import hashlib
import json
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from recollect import Address, InputError, Record
from recollect.values.record import from_micros, new_id, pack, parse_time, render, to_micros, unpack

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def record(**fields: Any) -> Record:
    made = Record(
        **{
            "id": "0" * 32,
            "address": Address(),
            "tier": "workspace",
            "kind": "fact",
            "content": "the build is green",
            "importance": 0.5,
            "created_at": NOW,
            "accessed_at": NOW,
            **fields,
        }
    )
    return replace(made, checksum=made.digest())


def test_an_id_is_a_uuid_of_version_7_in_32_hex_digits() -> None:
    for ident in (new_id() for _ in range(1000)):
        assert re.fullmatch("[0-9a-f]{32}", ident)
        parsed = uuid.UUID(hex=ident)
        assert parsed.version == 7
        assert parsed.variant == uuid.RFC_4122


def test_ids_sort_in_the_order_they_were_made() -> None:
    ids = [new_id() for _ in range(10_000)]
    assert ids == sorted(ids)


def test_an_id_holds_the_milliseconds_it_was_made_at_and_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    last = int(new_id()[:12], 16)
    monkeypatch.setattr("recollect.values.record.time.time_ns", lambda: (last + 5000) * 1_000_000)
    ahead = new_id()
    assert int(ahead[:12], 16) == last + 5000
    monkeypatch.setattr("recollect.values.record.time.time_ns", lambda: (last - 5000) * 1_000_000)
    assert new_id() > ahead


def test_ten_thousand_ids_from_many_threads_are_all_different() -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: [new_id() for _ in range(1250)], range(8)))
    assert len({ident for ids in made for ident in ids}) == 10_000
    assert all(ids == sorted(ids) for ids in made)


def test_the_checksum_is_sha256_over_canonical_json() -> None:
    one = record(content={"b": [1, 2.5, None, True], "a": "näher"}, role="user")
    body = ["0" * 32, "workspace", "fact", "user", {"a": "näher", "b": [1, 2.5, None, True]}, "2026-03-01T12:00:00Z"]
    canonical = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    assert one.checksum == "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        {"id": "1" * 32},
        {"content": "the build is red"},
        {"content": {"build": "green"}},
        {"kind": "finding"},
        {"role": "user"},
        {"tier": "account"},
        {"created_at": NOW + timedelta(microseconds=1)},
    ],
)
def test_a_change_of_what_never_changes_is_seen_in_the_checksum(change: dict[str, Any]) -> None:
    assert record(**change).checksum != record().checksum


@pytest.mark.parametrize(
    "change",
    [
        {"address": Address("other", "folder", "copied")},
        {"tags": ("a",)},
        {"access_count": 3, "accessed_at": NOW + HOUR},
        {"archived_at": NOW},
        {"superseded_by": "2" * 32},
        {"importance": 0.9},
    ],
)
def test_what_may_change_or_move_is_not_in_the_checksum(change: dict[str, Any]) -> None:
    assert record(**change).checksum == record().checksum


def test_the_order_of_keys_is_not_in_the_checksum() -> None:
    assert record(content={"a": 1, "b": 2}).checksum == record(content={"b": 2, "a": 1}).checksum


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("as it is", "as it is"),
        ({"city": "Bern"}, "city: Bern"),
        ({"user": {"name": "Ada", "langs": ["de", "en"]}}, "user.name: Ada\nuser.langs: de\nuser.langs: en"),
        (["one", 2, None, True, 1.5], "one\n2\nnull\ntrue\n1.5"),
        ({"a": {}, "b": []}, '{"a":{},"b":[]}'),
        ([""], '[""]'),
        (42, "42"),
    ],
)
def test_json_content_reads_as_lines_of_keys_and_values(content: Any, text: str) -> None:
    assert render(content) == text
    assert record(content=content).text == text


def test_an_embedding_is_packed_as_little_endian_float32() -> None:
    assert pack([1.0, -2.0]) == b"\x00\x00\x80\x3f\x00\x00\x00\xc0"
    assert unpack(pack([0.5, -0.25])) == (0.5, -0.25)
    assert record(embedding=pack([0.5])).floats == (0.5,)
    assert record().floats is None


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_are_kept_to_the_microsecond(when: datetime) -> None:
    assert from_micros(to_micros(when)) == when


@pytest.mark.parametrize(
    ("given", "means"),
    [
        (datetime(2026, 3, 1, 12, tzinfo=UTC), NOW),
        (datetime(2026, 3, 1, 12), NOW),
        (datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2))), NOW),
        ("2026-03-01T12:00:00Z", NOW),
        ("2026-03-01T12:00:00", NOW),
        ("2026-03-01T07:00:00-05:00", NOW),
        ("2026-03-01 12:00", NOW),
        ("2026-03-01", NOW.replace(hour=0)),
        ("2026-03-01T12:00:00.000001+00:00", NOW + timedelta(microseconds=1)),
    ],
)
def test_a_time_is_taken_as_utc_unless_it_has_a_zone(given: Any, means: datetime) -> None:
    parsed = parse_time(given, "since")
    assert parsed == means
    assert parsed.tzinfo is UTC


@pytest.mark.parametrize("wrong", ["", "yesterday", "2026-13-01", "2026-02-30T00:00:00", "1e9", "\ud800", "x" * 10_000])
def test_text_that_is_no_time_is_refused_by_the_name_of_its_field(wrong: str) -> None:
    with pytest.raises(InputError, match=r"^since: .*ISO 8601") as caught:
        parse_time(wrong, "since")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("wrong", [1700000000, 1.5, None, NOW.date(), [NOW]])
def test_what_is_neither_time_nor_text_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"^until: must be a datetime or ISO 8601 text"):
        parse_time(wrong, "until")


@pytest.mark.parametrize("edge", [datetime.min, datetime.max])
def test_a_time_that_utc_cannot_express_is_refused(edge: datetime) -> None:
    beyond = edge.replace(tzinfo=timezone(timedelta(hours=14 if edge.year == 1 else -14)))
    with pytest.raises(InputError, match=r"^created_at: .*years 1 to 9999"):
        parse_time(beyond, "created_at")


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "live"),
        ({"expires_at": NOW + timedelta(microseconds=1)}, "live"),
        ({"expires_at": NOW}, "expired"),
        ({"archived_at": NOW}, "archived"),
        ({"archived_at": NOW, "expires_at": NOW}, "archived"),
        ({"superseded_by": "1" * 32}, "superseded"),
        ({"superseded_by": "1" * 32, "archived_at": NOW, "expires_at": NOW}, "superseded"),
    ],
)
def test_a_record_is_in_one_state(fields: dict[str, Any], state: str) -> None:
    assert record(**fields).state(NOW) == state


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        record().content = "something else"  # type: ignore[misc]
