"""A large place that is asked by words is not read whole, and answers as if it were."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from support.stores import fresh_location, give_back

from recollect.conformance.samples import NOW, sample
from recollect.stores import open_store
from recollect.stores.port import Place
from recollect.stores.postgres import search, search_sql
from recollect.stores.postgres.store import Postgres
from recollect.stores.shortlist import Ask, Shortlist
from recollect.text.query_parser import parse_query
from recollect.values.filters import Filter
from recollect.values.record import Address

HERE = Place("acme", "w")
COUNT = 1200


@pytest.fixture(scope="module")
def location() -> Iterator[str]:
    location = fresh_location()
    with closing(open_store(location)) as store:
        # Every memory is of a group, one in three is green, one in 150 has a number of its own.
        records = [
            sample(
                f"memory of group{n % 5} {'green' if n % 3 == 0 else 'red'} {f'number{n}' if n % 150 == 0 else ''}",
                tenant="acme",
                workspace="w",
                kind="task" if n % 2 else "fact",
                conversation=f"c{n // 20}",
                role="user" if n % 4 else "assistant",
            )
            for n in range(COUNT)
        ]
        for start in range(0, COUNT, 400):
            store.put(HERE, records[start : start + 400])
    yield location
    give_back(location)


@pytest.fixture
def store(location: str) -> Iterator[Postgres]:
    with closing(open_store(location)) as store:
        assert isinstance(store, Postgres)
        yield store


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """From how many memories on a place is large, and from how many on a word is common."""

    def set(common: int) -> None:
        monkeypatch.setattr(search, "LARGE", 1000)
        monkeypatch.setattr(search_sql, "COMMON_IN_LARGE", common)

    return set


def ask(store: Postgres, text: str, **conditions: object) -> Shortlist | None:
    where = Filter(seen_from=Address("acme", "w"), now=NOW, **conditions)  # type: ignore[arg-type]
    return next(iter(store.search(Ask(where, parse_query(text), each=50, enough=10))), None)


def shown(shortlist: Shortlist | None) -> dict[str, set[str]]:
    """By word: the ids of those that have it."""
    assert shortlist is not None
    return {word: {shortlist.block.ids[at] for at in rows} for word, rows in shortlist.words.items()}


@pytest.mark.parametrize("text", ["number150 green", "group3 number300", "number0 number900 number1050 red"])
@pytest.mark.parametrize("conditions", [{}, {"kinds": ("fact",)}, {"conversation": "c15"}])
def test_rare_words_find_what_reading_everything_finds(
    store: Postgres, large: Callable[[int], None], text: str, conditions: dict[str, object]
) -> None:
    exact = ask(store, text, **conditions)
    large(100_000)
    for _ in range(2):  # met for the first time, and known to be large
        sampled = ask(store, text, **conditions)
        if exact is None:
            assert sampled is None
            continue
        assert sampled is not None
        assert sampled.block.ids == exact.block.ids
        assert shown(sampled) == shown(exact)
        assert sampled.whole.frequency == exact.whole.frequency
        assert set(sampled.whole.speakers) == set(exact.whole.speakers)
        assert sampled.whole.memories == pytest.approx(exact.whole.memories, rel=0.1, abs=15)
    # Under a filter all that it sees is read: a sample, and rare words, might miss all of it.
    assert ((HERE, "words") in store.server.hints.large) is (not conditions)


def test_a_common_word_is_looked_for_only_where_a_rarer_one_is(store: Postgres, large: Callable[[int], None]) -> None:
    exact = ask(store, "green memory")
    assert exact is not None
    large(450)
    sampled = ask(store, "green memory")
    assert sampled is not None
    assert sampled.whole.frequency["green"] == exact.whole.frequency["green"] == COUNT / 3  # rare enough to be counted
    assert shown(sampled)["green"] == shown(exact)["green"]
    assert shown(sampled)["memory"] == shown(exact)["green"] < shown(exact)["memory"]
    assert sampled.whole.frequency["memory"] == pytest.approx(COUNT, rel=0.05)


def test_where_all_words_are_common_the_rarest_is_looked_for_everywhere(
    store: Postgres, large: Callable[[int], None]
) -> None:
    large(50)
    sampled = ask(store, "group3 memory")
    assert sampled is not None
    assert sampled.whole.frequency["group3"] == COUNT // 5
    assert len(shown(sampled)["group3"]) == 50  # as many of the best as were asked for
    assert shown(sampled)["group3"] == shown(sampled)["memory"]


def test_where_all_words_are_common_those_that_have_several_of_them_are_looked_at(
    store: Postgres, large: Callable[[int], None]
) -> None:
    large(50)
    sampled = ask(store, "green memory of")
    assert sampled is not None
    assert len(shown(sampled)["green"]) == 50
    assert shown(sampled)["green"] == shown(sampled)["memory"]
    assert sampled.whole.frequency["green"] == pytest.approx(COUNT / 3, rel=0.25)
    assert sampled.whole.frequency["memory"] == pytest.approx(COUNT, rel=0.05)


@pytest.mark.parametrize("text", ["green qwertyuiop", "memory qwertyuiop", "green number150", "memory of number150"])
@pytest.mark.parametrize("conditions", [{}, {"conversation": "c3"}])
def test_a_common_word_is_found_where_a_rare_one_is_not(
    store: Postgres, large: Callable[[int], None], text: str, conditions: dict[str, object]
) -> None:
    exact = ask(store, text, **conditions)
    large(50)
    sampled = ask(store, text, **conditions)
    assert exact is not None
    assert sampled is not None
    assert len(sampled.block.ids) == len(exact.block.ids)
    word = text.split()[0]
    assert len(shown(sampled)[word]) == len(shown(exact)[word]) > 0


def test_parts_of_words_are_looked_for_where_words_find_too_few(store: Postgres, large: Callable[[int], None]) -> None:
    exact = ask(store, "umber150 numb")
    large(50)
    sampled = ask(store, "umber150 numb")
    assert exact is not None
    assert sampled is not None
    assert sampled.loose.keys() == exact.loose.keys() != set()


def test_what_an_open_transaction_has_written_is_found_in_a_large_place(
    location: str, store: Postgres, large: Callable[[int], None]
) -> None:
    large(50)
    assert ask(store, "zebra") is None
    with store.transaction(HERE):
        (zebra,) = store.put(HERE, [sample("a zebra", tenant="acme", workspace="w")])
        assert shown(ask(store, "zebra")) == {"zebra": {zebra.id}}
        with closing(open_store(location)) as other:
            assert isinstance(other, Postgres)
            assert ask(other, "zebra") is None
    store.delete(HERE, [zebra.id])
    assert ask(store, "zebra") is None


def test_a_place_that_was_empty_is_asked_once_something_is_there(location: str, store: Postgres) -> None:
    shared = Place("acme", None)
    where = Filter(seen_from=Address("acme", "w", account="ann"), now=NOW)
    asked = Ask(where, parse_query("giraffe"))
    assert [answer.place for answer in store.search(asked)] == []
    assert shared in store.server.hints.empty
    giraffe = sample("a giraffe", tenant="acme", workspace="w", account="ann", tier="account")
    with closing(open_store(location)) as other:
        other.put(shared, [giraffe])
    (answer,) = store.search(asked)
    assert (answer.place, answer.block.ids) == (shared, [giraffe.id])
    store.delete(shared, [giraffe.id])
    assert store.search(asked) == []


def test_a_search_in_a_transaction_leaves_the_planner_as_it_was(store: Postgres) -> None:
    with store.transaction(HERE) as transaction:
        assert ask(store, "green") is not None
        assert transaction.execute("SHOW enable_nestloop").fetchall() == [("on",)]
