"""Questions to a ledger: words, tags, times, references, and what counts how much."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import Clock, eventually
from support.ledger_files import NOW, Files, entry

from recollect import InputError, Memory
from recollect.recall.query import Query


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "memory")


@pytest.fixture
def memory(files: Files, clock: Clock) -> Iterator[Memory]:
    with files.open(clock) as memory:
        memory.sessions.create("user123", session_id="s")
        yield memory


@pytest.fixture
def project(memory: Memory) -> Memory:
    """Entries by the hour, the last one now."""
    told: list[tuple[str, str, list[str], float]] = [
        ("The OAuth2 flow was chosen", "decision", ["security.authentication", "oauth2"], 0.9),
        ("Passwords are hashed with argon2", "decision", ["security.storage"], 0.8),
        ("OAUTH1 is deprecated", "finding", ["security.authentication", "deprecated"], 0.6),
        ("Colour of the logo is teal", "preference", ["design"], 0.4),
        ("The color palette came up", "conversation", ["design", "oauth2"], 0.2),
    ]
    for age, (content, type, tags, importance) in enumerate(reversed(told)):
        when = NOW - timedelta(hours=age)
        memory.sessions.add("s", entry(content, type, tags=tags, importance=importance, timestamp=when))
    return memory


def found(memory: Memory, **query: Any) -> set[str]:
    """The first words of what is found."""
    return {" ".join(hit.memory.content.split()[:2]) for hit in memory.sessions.query("s", query)}


OAUTH, HASHES, OAUTH1, LOGO, PALETTE = "The OAuth2", "Passwords are", "OAUTH1 is", "Colour of", "The color"


@pytest.mark.clause("LED-07")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("oauth2", {OAUTH}),
        ("OAuth2 FLOW", {OAUTH}),
        ("oauth*", {OAUTH, OAUTH1}),
        ("*AUTH1", {OAUTH1}),
        ("colo*r", {LOGO, PALETTE}),
        ("colo?r", {LOGO}),
        ("*a*h*", {OAUTH, OAUTH1, HASHES}),
        ('"palette came"', {PALETTE}),
        ('"came palette"', set()),
        ("nothing-like-it", set()),
    ],
)
def test_text_is_found_in_any_case_and_by_wildcards(project: Memory, text: str, expected: set[str]) -> None:
    assert found(project, text=text) == expected


@pytest.mark.clause("LED-07")
@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ({"include": ["design"]}, {LOGO, PALETTE}),
        ({"include": ["design", "oauth2"]}, {PALETTE}),
        ({"any": ["design", "oauth2"]}, {LOGO, PALETTE, OAUTH}),
        ({"include": ["security"]}, {OAUTH, HASHES, OAUTH1}),
        ({"include": ["security.authentication"]}, {OAUTH, OAUTH1}),
        ({"include": ["secur"]}, set()),
        ({"include": ["security"], "exclude": ["deprecated"]}, {OAUTH, HASHES}),
        ({"exclude": ["security"]}, {LOGO, PALETTE}),
        ({"include": ["security"], "any": ["oauth2", "deprecated"], "exclude": ["design"]}, {OAUTH, OAUTH1}),
        (["security.storage"], {HASHES}),
    ],
)
def test_tags_are_combined_and_stand_for_those_below_them(project: Memory, tags: Any, expected: set[str]) -> None:
    assert found(project, tags=tags) == expected


@pytest.mark.clause("LED-07")
@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ({"start": "2026-03-01T09:00:00Z", "end": "2026-03-01T11:00:00Z"}, {HASHES, OAUTH1}),
        ({"start": NOW - timedelta(hours=1), "end": None}, {LOGO, PALETTE}),
        ({"end": NOW - timedelta(hours=3)}, {OAUTH}),
        ("last hour", {LOGO, PALETTE}),
        ("last 3 hours", {HASHES, OAUTH1, LOGO, PALETTE}),
        ("last day", {OAUTH, HASHES, OAUTH1, LOGO, PALETTE}),
        ("last week", {OAUTH, HASHES, OAUTH1, LOGO, PALETTE}),
        ("today", {OAUTH, HASHES, OAUTH1, LOGO, PALETTE}),
        ("yesterday", set()),
    ],
)
def test_time_is_a_range_or_as_people_say_it(project: Memory, period: Any, expected: set[str]) -> None:
    assert found(project, time_range=period) == expected


@pytest.mark.clause("LED-07")
def test_conditions_of_all_kinds_are_combined(project: Memory) -> None:
    assert found(project, text="oauth*", tags=["security"], time_range="last 3 hours") == {OAUTH1}
    assert found(project, text="oauth*", types=["decision"], min_importance=0.9) == {OAUTH}
    assert found(project, types=["decision", "finding"], tags={"exclude": ["deprecated"]}, min_importance=0.85) == {
        OAUTH
    }
    assert found(project, text="oauth*", tags=["design"]) == set()


@pytest.mark.clause("LED-08")
@pytest.mark.parametrize(
    ("type", "hours", "used", "expected"),
    [
        ("conversation", 168, False, 0.8 * 0.5 * 1.0),
        ("decision", 1440, False, 0.8 * 0.25 * 1.0),
        ("finding", 336, True, 0.8 * 0.5 * 1.5),
        ("finding", 20, False, 0.8 * 0.5 ** (20 / 336) * 1.5),
        ("preference", 9999, False, 0.8),
        ("conversation", 9999, False, 0.8 * 0.1),
    ],
)
def test_relevance_is_the_documents_product(
    memory: Memory, clock: Clock, type: str, hours: float, used: bool, expected: float
) -> None:
    memory.sessions.add("s", entry("a lone owl", type, importance=0.8, timestamp=NOW - timedelta(hours=hours)))
    if used:
        memory.sessions.query("s", {})
    (by_condition,) = memory.at(workspace="s").query({})
    assert by_condition.score == pytest.approx(expected)
    (by_text,) = memory.at(workspace="s").query({"text": "owl"})  # the best match is a match of 1.0
    assert by_text.score == pytest.approx(expected)
    factors = [part.value for part in by_text.explain().parts]
    assert [part.name for part in by_text.explain().parts] == ["importance", "decay", "recency_boost", "match_quality"]
    assert factors[0] * factors[1] * factors[2] * factors[3] == pytest.approx(by_text.score)


@pytest.mark.clause("LED-08")
def test_results_are_in_the_order_of_the_product(memory: Memory) -> None:
    for content, type, importance, days in [
        ("owl fresh", "conversation", 0.4, 0),  # 0.4 * 1.5
        ("owl decided", "decision", 0.9, 30),  # 0.9 * 0.5
        ("owl liked", "preference", 0.5, 300),  # 0.5
        ("owl said", "conversation", 1.0, 7 * 20),  # 0.1
    ]:
        memory.sessions.add("s", entry(content, type, importance=importance, timestamp=NOW - timedelta(days=days)))
    expected = ["owl fresh", "owl liked", "owl decided", "owl said"]
    assert [hit.memory.content for hit in memory.at(workspace="s").query({})] == expected
    assert [hit.memory.content for hit in memory.at(workspace="s").query({"text": "owl"})] == expected


def factor(memory: Memory, session: str = "s") -> dict[str, float]:
    """How far each type has decayed."""
    hits = memory.at(workspace=session).query({})
    return {hit.memory.kind: hit.explain().parts[1].value for hit in hits}


def one_of_each(memory: Memory, hours: float, session: str = "s", **settings: Any) -> None:
    memory.sessions.create("u", session_id=session, **settings)
    for type in ("conversation", "decision", "finding", "preference"):
        memory.sessions.add(session, entry(f"{type} {session}", type, timestamp=NOW - timedelta(hours=hours)))


@pytest.mark.clause("LED-09")
@pytest.mark.parametrize("hours", [0, 24, 168, 336, 720, 100_000, -5])
def test_each_type_halves_at_its_own_rate_down_to_a_tenth(memory: Memory, hours: float) -> None:
    one_of_each(memory, hours, "t")
    age = max(hours, 0)
    assert factor(memory, "t") == pytest.approx(
        {
            "conversation": max(0.1, 0.5 ** (age / 168)),
            "decision": max(0.1, 0.5 ** (age / 720)),
            "finding": max(0.1, 0.5 ** (age / 336)),
            "preference": 1.0,
        }
    )


@pytest.mark.clause("LED-09", "LED-16")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"half_life_hours": 336, "min_decay_factor": 0.2}, (0.5, 0.5, 0.5, 1.0)),
        ({"half_life_hours": 24}, (0.1, 0.1, 0.1, 1.0)),
        ({"min_decay_factor": 0.6}, (0.6, 0.5 ** (336 / 720), 0.6, 1.0)),
        ({"enabled": False}, (1.0, 1.0, 1.0, 1.0)),
        ({}, (0.25, 0.5 ** (336 / 720), 0.5, 1.0)),
    ],
)
def test_a_session_has_its_own_decay(files: Files, clock: Clock, settings: Any, expected: tuple[float, ...]) -> None:
    names = ("conversation", "decision", "finding", "preference")
    with files.open(clock) as memory:
        one_of_each(memory, 336, "own", decay=settings)
        one_of_each(memory, 336, "usual")
        assert factor(memory, "own") == pytest.approx(dict(zip(names, expected, strict=True)))
        assert factor(memory, "usual") == pytest.approx(
            {"conversation": 0.25, "decision": 0.5 ** (336 / 720), "finding": 0.5, "preference": 1.0}
        )
        both = {hit.memory.address.workspace: hit for hit in memory.sessions.search("conversation")}
        assert both["own"].explain().parts[1].value == pytest.approx(expected[0])
        assert both["usual"].explain().parts[1].value == pytest.approx(0.25)
    with files.open(clock) as memory:
        assert factor(memory, "own") == pytest.approx(dict(zip(names, expected, strict=True)))


@pytest.mark.clause("LED-09", "LED-16")
@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        ({"type_specific": {"decision": {"half_life_hours": 24}}}, (0.5, 0.5**7, 0.5**0.5, 1.0)),
        ({"type_specific": {"preference": {"half_life_hours": 84}}}, (0.5, 0.5 ** (168 / 720), 0.5**0.5, 0.25)),
        ({"type_specific": {"finding": {"decay_enabled": False}}}, (0.5, 0.5 ** (168 / 720), 1.0, 1.0)),
        ({"min_decay_factor": 0.7}, (0.7, 0.5 ** (168 / 720), 0.5**0.5, 1.0)),
        ({"enabled": False}, (1.0, 1.0, 1.0, 1.0)),
    ],
)
def test_config_json_sets_the_decay_of_all_sessions(
    files: Files, clock: Clock, decay: Any, expected: tuple[float, ...]
) -> None:
    files.configure(decay={"min_decay_factor": 0.001, **decay})
    with files.open(clock) as memory:
        one_of_each(memory, 168)
        names = ("conversation", "decision", "finding", "preference")
        assert factor(memory) == pytest.approx(dict(zip(names, expected, strict=True)))


@pytest.mark.clause("LED-09")
@pytest.mark.parametrize(("minutes", "refreshed"), [(0.000001, True), (60, False)])
def test_relevance_in_the_index_is_refreshed_at_an_interval_where_no_entry_changes(
    files: Files, clock: Clock, minutes: float, refreshed: bool
) -> None:
    files.configure(decay={"update_interval_minutes": minutes}, performance={"batch_write_interval_ms": 1})
    with files.open(clock) as memory:
        memory.sessions.create("u", session_id="s")
        memory.sessions.add("s", entry())
        assert eventually(lambda: (files.session() / "index.json").exists())
        clock.forward(hours=168)
        with pytest.raises(InputError):  # which the audit log tells of, and nothing else
            memory.sessions.add("s", entry(importance=7))

        now = clock.now.isoformat().replace("+00:00", "Z")

        def decayed() -> bool:
            at = files.json("sessions", "s", "metadata.json")["last_decay_update"]
            return files.json("sessions", "s", "index.json")["last_updated"] == at == now

        if refreshed:
            assert eventually(decayed)
    assert decayed() is refreshed


@pytest.mark.clause("LED-15")
def test_the_documents_query_object_works(memory: Memory) -> None:
    for day, importance in ((1, 0.6), (3, 0.95), (5, 0.7), (9, 0.8), (12, 0.99)):
        when, tags = f"2026-01-{day:02}T12:00:00Z", ["security", *(["deprecated"] if day == 5 else [])]
        memory.sessions.add("s", entry(f"day {day}", "decision", importance=importance, tags=tags, timestamp=when))
    memory.sessions.add("s", entry("said", "conversation", importance=1.0, tags=["security"], timestamp="2026-01-04"))
    wish: dict[str, Any] = {
        "types": ["decision", "finding"],
        "tags": {"include": ["security"], "exclude": ["deprecated"]},
        "time_range": {"start": "2026-01-01", "end": "2026-01-10"},
        "min_importance": 0.7,
        "sort_by": "relevance",
        "limit": 10,
    }
    assert [hit.memory.content for hit in memory.sessions.query("s", wish)] == ["day 3", "day 9"]
    assert [hit.memory.content for hit in memory.sessions.query("s", {**wish, "sort_by": "newest"})] == [
        "day 9",
        "day 3",
    ]
    assert [hit.memory.content for hit in memory.sessions.query("s", {**wish, "limit": 1})] == ["day 3"]
    assert len(memory.sessions.query("s", Query())) == 6
    by = {
        sort: memory.sessions.query("s", {"sort_by": sort, "limit": 1})[0].memory.content
        for sort in ("oldest", "importance")
    }
    assert by == {"oldest": "day 1", "importance": "said"}


@pytest.mark.clause("LED-15")
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"typos": 1}, "^typos: is not part of a query; known: text, types, tags"),
        ("owl", r"^query: must be a Query or a dict, not str"),
        ({"text": 5}, r"^text: must be text, not int"),
        ({"types": "decision"}, "^types: must be a list"),
        ({"tags": {"some": ["a"]}}, "^tags: may have include, any and exclude"),
        ({"time_range": {"begin": "2026-02-01"}}, "^time_range: may have start and end"),
        ({"time_range": "next week"}, "^time_range: 'next week' is not a time such as 'last hour'"),
        ({"time_range": {"start": "2026-02-01", "end": "2026-01-01"}}, "^time_range: begins after it ends"),
        ({"min_importance": 2}, "^min_importance: 2 must be a number from 0 to 1"),
        ({"sort_by": "mood"}, "^sort_by: 'mood' must be one of relevance, newest, oldest, importance"),
        ({"limit": 0}, "^limit: 0 must be a whole number from 1"),
        ({"references": ["mem_1"], "max_depth": 0}, "^max_depth: 0 must be a whole number from 1 to 16"),
    ],
)
def test_a_query_that_makes_no_sense_says_where(memory: Memory, query: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        memory.sessions.query("s", query)


@pytest.mark.clause("LED-15")
def test_references_are_followed_in_both_directions_to_a_depth(memory: Memory) -> None:
    last = memory.sessions.add("s", entry("0"))
    chain = [last]
    for n in range(1, 6):
        last = memory.sessions.add("s", entry(str(n), references=[last]))
        chain.append(last)
    memory.sessions.add("s", entry("apart", references=["mem_elsewhere"]))

    def near(ident: str, depth: int, **more: Any) -> set[str]:
        wish = {"references": [ident], "max_depth": depth, **more}
        return {hit.memory.content for hit in memory.sessions.query("s", wish)}

    assert near(chain[0], 1) == {"1"}
    assert near(chain[2], 1) == {"1", "3"}
    assert near(chain[2], 2) == {"0", "1", "3", "4"}
    assert near(chain[2], 16) == {"0", "1", "3", "4", "5"}
    assert near(chain[2], 2, text="4") == {"4"}
    assert near("mem_elsewhere", 3) == {"apart"}
    assert near("mem_unknown", 3) == set()


@pytest.mark.clause("LED-15")
@pytest.mark.parametrize("text", [None, "owl"])
@pytest.mark.parametrize("limit", [None, 12])
def test_entries_of_one_moment_are_sorted_in_the_order_of_storing(
    tmp_path: Path, clock: Clock, text: str | None, limit: int | None
) -> None:
    with Files(tmp_path / "memory").open(clock) as memory:
        memory.sessions.create("u", session_id="s")
        ids = memory.sessions.add_many("s", [entry(f"n{n} owl") for n in range(30)])
        ids += [memory.sessions.add("s", entry(f"n{n} owl")) for n in range(30, 40)]
        for order, stored in (("newest", ids[::-1]), ("oldest", ids)):
            wish = {"sort_by": order, "limit": limit, **({"text": text} if text else {})}
            assert [hit.memory.id for hit in memory.sessions.query("s", wish)] == stored[:limit]
