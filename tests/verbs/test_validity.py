"""When what a memory says is so: valid_from and valid_until, what supersedes sets them, and what asks for them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import Clock
from support.stores import STORES, located

from recollect import InputError, Memory, Record

MARCH, JULY, NOW = (datetime(2026, month, 1, 12, tzinfo=UTC) for month in (3, 7, 11))
MOMENT = timedelta(microseconds=1)


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


@pytest.fixture
def clock() -> Clock:
    return Clock(MARCH)


@pytest.fixture
def memory(store_url: str, clock: Clock) -> Iterator[Memory]:
    with Memory(store_url, clock=clock, embedder="none") as memory:
        yield memory


def texts(hits: Any) -> list[str]:
    return [hit.memory.text for hit in hits]


def validity(record: Record) -> tuple[datetime | None, datetime | None]:
    return record.valid_from, record.valid_until


@pytest.fixture
def moved(memory: Memory, clock: Clock) -> tuple[Record, Record]:
    """Two homes: the older one as it was stored, and the newer one. It is November now."""
    memory.remember_many(["The office is closed on Mondays.", "Ann has a dog called Rex.", "Tea is at four."])
    old = memory.remember("I live in Lyon.")
    clock.now = JULY
    new = memory.revise(old.id, content="I live in Berlin.")
    clock.now = NOW
    return old, new


# What is stored


def test_nobody_knows_it_unless_it_is_said(memory: Memory, store_url: str) -> None:
    assert validity(memory.remember("tea at four")) == (None, None)
    given = memory.remember("I live in Lyon.", valid_from="2020-01-01", valid_until=JULY)
    assert validity(given) == (datetime(2020, 1, 1, tzinfo=UTC), JULY)
    memory.close()
    with Memory(store_url, embedder="none") as later:
        assert validity(later.get(given.id)) == validity(given)


def test_many_and_observed_ones_have_it_too(memory: Memory) -> None:
    one, other = memory.remember_many([{"content": "I live in Lyon.", "valid_from": MARCH}, "tea at four"])
    observed = memory.conversations.observe("Ann works at Acme.", valid_from=MARCH, valid_until=JULY)
    assert [validity(record) for record in (one, other, observed)] == [(MARCH, None), (None, None), (MARCH, JULY)]


@pytest.mark.parametrize("until", [MARCH, MARCH - MOMENT])
def test_what_ends_before_it_begins_is_refused(memory: Memory, until: datetime) -> None:
    with pytest.raises(InputError, match=r"^valid_until: must be later than valid_from"):
        memory.remember("I live in Lyon.", valid_from=MARCH, valid_until=until)
    known = memory.remember("I live in Lyon.", valid_from=MARCH)
    with pytest.raises(InputError, match=r"^valid_until: "):
        memory.revise(known.id, valid_until=until)
    with pytest.raises(InputError, match=r"^valid_from: "):
        memory.remember("I live in Lyon.", valid_from="lately")
    assert memory.list() == [known]


def test_the_same_words_of_another_time_are_another_memory(memory: Memory, clock: Clock) -> None:
    first = memory.remember("I live in Lyon.", valid_from="2010-01-01", valid_until="2012-01-01")
    again = memory.remember("I live in Lyon.", valid_from="2020-01-01")
    assert again.id != first.id
    clock.now = JULY
    assert memory.remember("I live in Lyon.", valid_from="2020-01-01").id == again.id
    assert memory.remember("I live in Lyon.").id == again.id, "and not the one that was over"
    assert memory.deduplicate() == []
    memory.forget(again.id)
    assert memory.remember("I live in Lyon.").id != first.id


def test_an_export_has_it_and_an_older_one_can_be_read(memory: Memory, tmp_path: Path) -> None:
    given = memory.remember("I live in Lyon.", valid_from=MARCH, valid_until=JULY)
    out = io.BytesIO()
    memory.export(out)
    document = json.loads(out.getvalue())
    with Memory(tmp_path / "other", embedder="none") as other:
        other.import_(io.BytesIO(out.getvalue()))
        assert validity(other.get(given.id)) == (MARCH, JULY)
    for field in ("valid_from", "valid_until"):
        document["memories"][0].pop(field)
    with Memory(tmp_path / "third", embedder="none") as third:
        third.import_(io.BytesIO(json.dumps(document).encode()))
        assert validity(third.get(given.id)) == (None, None)


def test_a_forged_one_does_not_come_in(memory: Memory, tmp_path: Path) -> None:
    memory.remember("I live in Lyon.", valid_from=MARCH, valid_until=JULY)
    out = io.BytesIO()
    memory.export(out)
    for value in ("2026-07-01T14:00:00+02:00", "2026-01-01T00:00:00Z"):
        document = json.loads(out.getvalue())
        document["memories"][0]["valid_until"] = value
        with Memory(tmp_path / "other", embedder="none") as other:
            with pytest.raises(InputError, match="valid_until"):
                other.import_(io.BytesIO(json.dumps(document).encode()))
            assert other.stats().total == 0


# What supersedes


def test_a_new_version_ends_the_old_one_and_inherits(memory: Memory, clock: Clock) -> None:
    old = memory.remember("I live in Lyon.")
    clock.now = JULY
    new = memory.revise(old.id, content="I live in Berlin.")
    assert validity(memory.get(old.id)) == (None, JULY)
    third = memory.revise(new.id, content="I live in Oslo.", valid_from=NOW)
    assert validity(memory.get(new.id)) == (None, NOW), "since the newer one is so, and not since it was stored"
    fourth = memory.revise(third.id, importance=1.0, valid_until=NOW + MOMENT)
    assert validity(fourth) == (NOW, NOW + MOMENT)
    assert validity(memory.revise(fourth.id, valid_from="2030-01-01")) == (datetime(2030, 1, 1, tzinfo=UTC), None)


def test_an_end_that_is_known_or_makes_no_sense_is_left(memory: Memory, clock: Clock) -> None:
    ended = memory.remember("I live in Lyon.", valid_until="2026-05-01")
    begun = memory.remember("I work at Acme.", valid_from=MARCH)
    clock.now = JULY
    memory.revise(ended.id, content="I live in Berlin.", valid_from="2026-06-01")
    memory.revise(begun.id, content="I work at Acme Ltd.")
    assert validity(memory.get(ended.id)) == (None, datetime(2026, 5, 1, tzinfo=UTC))
    assert validity(memory.get(begun.id)) == (MARCH, None), "a version of the same time says when nothing ended"


def test_a_statement_ends_what_it_supersedes(memory: Memory, clock: Clock) -> None:
    old = memory.conversations.observe("I live in Lyon.")
    clock.now = JULY
    new = memory.conversations.observe("I moved to Berlin.", valid_from="2026-06-15")
    ended = memory.get(old.id)
    assert ended.superseded_by == new.id
    assert ended.valid_until == new.valid_from


def test_undo_gives_the_end_back(memory: Memory, moved: tuple[Record, Record]) -> None:
    old, _ = moved
    assert memory.get(old.id).valid_until == JULY
    memory.undo()
    assert memory.get(old.id) == old


# What asks


def test_a_time_chooses_what_is_valid_then(memory: Memory) -> None:
    memory.remember("The fox is at home.")
    memory.remember("The fox is in Lyon.", valid_from=MARCH, valid_until=JULY)
    memory.remember("The fox is in Berlin.", valid_from=JULY)
    for when, where in ((MARCH - MOMENT, set[str]()), (MARCH, {"Lyon"}), (JULY - MOMENT, {"Lyon"}), (JULY, {"Berlin"})):
        expected = {"The fox is at home.", *(f"The fox is in {city}." for city in where)}
        assert {record.text for record in memory.list(valid_at=when)} == expected
        assert set(texts(memory.recall("fox", valid_at=when.isoformat(), min_relevance=0.0))) == expected
    assert len(memory.list()) == 3


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_the_command_line_tells_it(memory: Memory, store_url: str, moved: tuple[Record, Record]) -> None:
    def printed(*arguments: str) -> str:
        command = [sys.executable, "-m", "recollect", *arguments, "--store", store_url]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    old, _ = moved
    assert "valid until    2026-07-01" in printed("show", old.id)
    assert "until 2026-07-01" in printed("history", old.id)
    made = json.loads(printed("remember", "Ann works at Acme", "--valid-from", "2020-01-01", "--json"))
    assert made["valid_from"] == "2020-01-01T00:00:00Z"
    assert [one["id"] for one in json.loads(printed("list", "--json", "--valid-at", "2019-01-01"))] == [
        record.id for record in memory.list() if record.id != made["id"]
    ]


def test_recall_as_at_a_time_leaves_out_what_was_over(memory: Memory, clock: Clock) -> None:
    memory.remember("The fox is in Lyon.", valid_until=JULY)
    clock.now = NOW
    assert texts(memory.recall("fox", as_of=JULY - MOMENT)) == ["The fox is in Lyon."]
    assert texts(memory.recall("fox", as_of=JULY)) == []


def test_a_question_about_a_past_time_finds_what_was_so(memory: Memory, moved: tuple[Record, Record]) -> None:
    assert texts(memory.recall("Where do I live?")) == ["I live in Berlin."]
    assert texts(memory.recall("Where did I live in May?"))[:2] == ["I live in Lyon.", "I live in Berlin."]
    for question in ("Where did I live in August?", "Where did I live in 2025?", "Where did I live last week?"):
        assert texts(memory.recall(question)) == ["I live in Berlin."], question


def test_of_several_homes_the_one_of_that_time_comes_first(memory: Memory, clock: Clock) -> None:
    memory.remember_many(["The office is closed on Mondays.", "Ann has a dog called Rex.", "Tea is at four."])
    home = memory.remember("I live in Lyon.", valid_from="2024-02-01")
    for city, since in (("Berlin", "2024-09-01"), ("Oslo", "2025-03-01"), ("Rome", "2025-10-01")):
        home = memory.revise(home.id, content=f"I live in {city}.", valid_from=since)
    clock.now = NOW
    homes = {"May 2024": "Lyon", "November 2024": "Berlin", "April 2025": "Oslo", "May 2026": "Rome"}
    for month, city in homes.items():
        found = texts(memory.recall(f"Where did I live in {month}?"))
        assert found[0] == f"I live in {city}.", month
        assert set(found) <= {f"I live in {city}.", "I live in Rome."}, month


def test_the_parts_of_such_a_score_add_up(memory: Memory, moved: tuple[Record, Record]) -> None:
    for hit in memory.recall("Where did I live in May?"):
        assert sum(part.share for part in hit.explain().parts) == pytest.approx(hit.score)


def test_what_was_archived_or_forgotten_stays_so(memory: Memory, moved: tuple[Record, Record]) -> None:
    old, _ = moved
    memory.archive(memory.remember("I live in a tent.", created_at="2026-04-01").id)
    assert texts(memory.recall("Where did I live in May?")) == ["I live in Lyon.", "I live in Berlin."]
    memory.forget(old.id)
    assert texts(memory.recall("Where did I live in May?")) == ["I live in Berlin."]


def test_what_expired_since_is_no_answer(memory: Memory, clock: Clock) -> None:
    memory.remember("Tea is at four.")
    old = memory.remember("I live in Lyon.", expires_at="2026-09-01")
    clock.now = JULY
    memory.revise(old.id, content="I live in Berlin.")
    clock.now = datetime(2026, 8, 1, tzinfo=UTC)
    assert texts(memory.recall("Where did I live in May?")) == ["I live in Lyon.", "I live in Berlin."]
    clock.now = NOW
    assert texts(memory.recall("Where did I live in May?")) == ["I live in Berlin."]


def test_without_superseded_memories_nothing_changes(
    memory: Memory, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.remember("I lived in Lyon in May.")
    memory.remember("I live in Berlin.", valid_from=JULY)
    clock.now = NOW
    asked = [(hit.memory.id, hit.score, hit.relevance) for hit in memory.recall("Where did I live in May?")]
    monkeypatch.setattr("recollect.recall.run.about_past", lambda view, question: question)
    assert [(hit.memory.id, hit.score, hit.relevance) for hit in memory.recall("Where did I live in May?")] == asked


def test_only_questions_about_a_past_time_ask_the_store_more(
    memory: Memory, moved: tuple[Record, Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[Any] = []
    store, count = memory._view.store, memory._view.store.count
    monkeypatch.setattr(store, "count", lambda *given: [counted.append(given), count(*given)][1])
    memory.recall("Where do I live?")
    memory.recall("Where will I live since 2025?")
    assert counted == []
    memory.recall("Where did I live in May?")
    assert len(counted) == 1


@pytest.mark.parametrize("preset", ["aegis", "inklings", "ledger"])
def test_every_ranking_puts_what_was_valid_then_first(store_url: str, clock: Clock, preset: str) -> None:
    with Memory(store_url, preset=preset, clock=clock, embedder="none") as memory:
        memory.remember_many(["The office is closed on Mondays.", "Ann has a dog called Rex.", "Tea is at four."])
        old = memory.remember("I live in Lyon.")
        clock.now = JULY
        memory.revise(old.id, content="I live and live in Berlin.")
        clock.now = NOW
        assert texts(memory.recall("live in May 2026"))[:2] == ["I live in Lyon.", "I live and live in Berlin."]
