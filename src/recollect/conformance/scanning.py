"""Claims about scan and count: every order, continued from anywhere, and what is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from msgspec.structs import replace

from recollect.conformance.samples import (
    NOW,
    PLACE,
    SECOND,
    TICK,
    delete,
    ids,
    keep,
    sample,
    total,
    touch,
    update,
    where,
)
from recollect.stores.port import After, Order, Place, Store
from recollect.values.record import Record, pack

ORDERS: tuple[Order, ...] = ("oldest", "newest", "importance")
TIMES = (2, 0, 1, 0, 2, 1, 0, 2)
IMPORTANCES = (0.5, 0.25, 0.5, 0.25, 0.25, 0.5, 0.5, 0.25)


class ScanClaims:
    """A scan gives all that match, in its order, page by page or at once."""

    def test_ids_are_found_by_their_beginning_or_end_the_whole_one_first(self, store: Store) -> None:
        names = [f"{'0' * 8}{letter * 20}{end}" for letter, end in (("a", "beef"), ("b", "beef"), ("c", "cafe"))]
        records = keep(store, *(replace(sample("x"), id=name) for name in (*names, "beef")))
        assert store.ids_like(PLACE, "beef", 10) == ["beef", *names[:2]]
        assert store.ids_like(PLACE, "beef", 2) == ["beef", names[0]]
        assert store.ids_like(PLACE, "00000000", 10) == names
        assert store.ids_like(PLACE, "cafe", 10) == [names[2]]
        assert store.ids_like(PLACE, "aaaa", 10) == store.ids_like(PLACE, "%", 10) == []
        assert store.ids_like(Place("nobody", "nowhere"), "beef", 10) == []
        delete(store, records[-1])
        assert store.ids_like(PLACE, "beef", 10) == names[:2]

    def test_scan_goes_by_creation_time_whatever_the_order_of_writing(self, store: Store) -> None:
        offsets = (5, 1, 4, 2, 3, 0)
        records = keep(store, *(sample(f"{n}", created_at=NOW + n * TICK, tier=_tier(n)) for n in offsets))
        oldest_first = sorted(records, key=lambda record: record.created_at)
        assert list(store.scan(where())) == oldest_first
        assert list(store.scan(where(), order="newest")) == oldest_first[::-1]

    @pytest.mark.parametrize(
        ("texts", "wanted"),
        [
            (["the Blue Heron", "BLUE HERON", "blueheron"], "blue heron"),
            (["STRASSE", "Straße", "a street"], "strasse"),
            (["ΟΔΥΣΣΕΥΣ", "οδυσσευς", "nobody"], "οδυσσευς".casefold()),
            (["ﬁsh", "fish", "FISH", "foul"], "fish"),
            (["\u212a2", "k2", "everest"], "k2"),
            (["100 %_", "100 %", "100"], "%_"),
            (["a\nb", "a b"], "a\nb"),
            ([{"Colour": "Blue"}, {"colour": "red"}], "blue"),
            (["漢字とかな", "漢 字"], "漢字"),
            (["x" * 50_000 + "Y", "x" * 50_000], "xy"),
        ],
        ids=lambda value: ascii(value)[:30],
    )
    def test_a_scan_for_a_text_leaves_out_nothing_that_has_it(
        self, store: Store, texts: list[Any], wanted: str
    ) -> None:
        records = keep(store, *map(sample, texts))
        having = [record.id for record in records if wanted in record.text.casefold()]
        scanned = [record for record in store.scan(where(), contains=wanted) if wanted in record.text.casefold()]
        assert having
        assert ids(scanned) == having
        assert list(store.scan(where(), contains=wanted, limit=1)) != []

    def test_scan_by_importance_gives_the_least_important_first_and_of_those_the_oldest(self, store: Store) -> None:
        records = keep(store, *_varied())
        assert list(store.scan(where(), order="importance")) == in_order(records, "importance")

    @pytest.mark.parametrize("order", ORDERS)
    def test_ties_are_in_the_order_of_storing(self, store: Store, reopen: Callable[[], Store], order: Order) -> None:
        records = [
            *keep(store, *(sample(f"{n}") for n in range(4))),
            *keep(store, *(sample(f"{n}") for n in range(4, 8))),
        ]
        update(store, replace(records[2], tags=("changed",)))
        touch(store, NOW, records[1])
        store.embed(PLACE, "test", {records[3].id: pack([1.0])})
        wanted = ids(in_order(records, order))
        assert ids(store.scan(where(), order=order)) == wanted
        store.close()
        with closing(reopen()) as other:
            assert ids(other.scan(where(), order=order)) == wanted

    @pytest.mark.parametrize("order", ORDERS)
    def test_scan_keeps_to_its_limit(self, store: Store, order: Order) -> None:
        records = keep(store, *(sample(f"{n}", created_at=NOW + n * SECOND, tier=_tier(n)) for n in range(6)))
        wanted = in_order(records, order)
        for limit in (0, 1, 4, 6, 7, None):
            assert list(store.scan(where(), order=order, limit=limit)) == wanted[:limit]

    @pytest.mark.parametrize("order", ORDERS)
    def test_a_scan_goes_on_behind_any_memory(self, store: Store, order: Order) -> None:
        records = keep(store, *_varied())
        wanted = in_order(records, order)
        for at, record in enumerate(wanted):
            for limit in (None, 2):
                rest = list(store.scan(where(), order=order, after=After.of(record), limit=limit))
                assert rest == wanted[at + 1 :][:limit]

    @pytest.mark.parametrize("order", ORDERS)
    def test_pages_of_two_places_give_each_memory_once(self, store: Store, order: Order) -> None:
        records = keep(store, *_varied(shared=True))
        every = list(store.scan(where(), order=order))
        assert sorted(ids(every)) == sorted(ids(records))
        for size in (1, 3):
            assert ids(_pages(store, order, size)) == ids(every)

    @pytest.mark.parametrize("order", ORDERS)
    def test_nothing_is_skipped_where_the_last_memory_of_a_page_is_gone(self, store: Store, order: Order) -> None:
        records = keep(store, *_varied())
        wanted = in_order(records, order)
        for at, record in enumerate(wanted[:-1]):
            delete(store, record)
            rest = list(store.scan(where(), order=order, after=After.of(record)))
            assert rest[-len(wanted[at + 1 :]) :] == wanted[at + 1 :]

    def test_nothing_is_skipped_where_the_last_memory_of_a_page_has_changed(self, store: Store) -> None:
        records = in_order(keep(store, *_varied()), "importance")
        update(store, replace(records[2], importance=1.0))
        rest = ids(store.scan(where(), order="importance", after=After.of(records[2])))
        assert [ident for ident in rest if ident in ids(records[3:])] == ids(records[3:])

    def test_scan_gives_thousands_once_each(self, store: Store) -> None:
        records = keep(store, *(sample(f"number {n}", created_at=NOW + n // 7 * SECOND) for n in range(1500)))
        for limit in (None, 1000, 1001):
            assert ids(store.scan(where(), limit=limit)) == ids(records)[:limit]
            assert ids(store.scan(where(), order="newest", limit=limit)) == ids(records)[::-1][:limit]
            assert ids(store.scan(where(), order="importance", limit=limit)) == ids(records)[:limit]

    def test_others_may_write_while_a_scan_goes_on(self, store: Store, reopen: Callable[[], Store]) -> None:
        records = keep(store, *(sample(f"number {n}", created_at=NOW + n * SECOND) for n in range(1200)))
        passed: list[str] = []
        with closing(reopen()) as other:
            for record in store.scan(where()):
                passed.append(record.id)
                if len(passed) % 400 == 1:
                    update(store, replace(record, importance=1.0))
                    keep(other, sample("written meanwhile", created_at=NOW - SECOND))
                    delete(other, record)
        assert passed == ids(records)

    def test_a_scan_that_is_not_whole_may_leave_out_content_and_vector_only(self, store: Store) -> None:
        (record,) = keep(store, sample("a heron", tags=("a",), embedding=pack([1.0]), embedding_model="test"))
        (bare,) = store.scan(where(), whole=False)
        assert bare.content in (None, "a heron")
        left_out: dict[str, Any] = dict.fromkeys(("content", "embedding", "embedding_model"))
        assert replace(bare, **left_out, checksum="") == replace(record, **left_out, checksum="")

    def test_count_is_of_what_the_filter_sees(self, store: Store) -> None:
        keep(
            store,
            sample("live", agent="atlas", embedding=pack([1.0])),
            sample("expired", kind="task", expires_at=NOW),
            sample("archived", archived_at=NOW, tier="account", agent="atlas", embedding=pack([1.0])),
            sample("superseded", superseded_by="f" * 32, tier="conversation", conversation="c-1"),
            sample("elsewhere", workspace="other"),
        )
        assert store.count(where()) == {(): 4}
        assert store.count(where(), ["state"]) == {(s,): 1 for s in ("live", "expired", "archived", "superseded")}
        assert store.count(where(), ["kind"]) == {("fact",): 3, ("task",): 1}
        assert store.count(where(), ["tier"]) == {("workspace",): 2, ("account",): 1, ("conversation",): 1}
        assert store.count(where(), ["agent"]) == {("atlas",): 2, ("",): 2}
        assert store.count(where(), ["embedded"]) == {("yes",): 2, ("no",): 2}
        assert store.count(where(), ["kind", "embedded"]) == {("fact", "yes"): 2, ("fact", "no"): 1, ("task", "no"): 1}
        assert store.count(where(), ["agent", "tier"]) == {
            ("atlas", "workspace"): 1,
            ("atlas", "account"): 1,
            ("", "workspace"): 1,
            ("", "conversation"): 1,
        }
        assert total(store, where(kinds=("task",))) == 1

    def test_speakers_are_counted_by_what_is_said_of_them(self, store: Store) -> None:
        keep(
            store,
            sample("Ann: hello", role="user", conversation="c-1"),
            sample("Ann: are you there?", role="user", conversation="c-1"),
            sample("I am", role="assistant", conversation="c-1"),
            sample("good", metadata={"speaker": "Bob  Brown"}),
            sample("nobody said this"),
            sample("nor this", tier="account"),
        )
        assert store.count(where(), ["speaker"]) == {("ann",): 2, ("assistant",): 1, ("bob brown",): 1, ("",): 2}
        assert store.count(where(roles=("assistant",)), ["speaker"]) == {("assistant",): 1}

    def test_a_name_is_a_speakers_only_as_long_as_two_turns_begin_with_it(self, store: Store) -> None:
        turns = [sample(f"Ann: turn {n}", role="user", conversation="c-1") for n in range(3)]
        records = keep(store, *turns, sample("Ben: hello", conversation="c-1"), sample("Ben: bye", conversation="c-1"))
        place = Place.of(records[0])
        assert store.count(where(), ["speaker"]) == {("ann",): 3, ("ben",): 2}
        store.delete(place, [records[0].id], "")
        assert store.count(where(), ["speaker"]) == {("ann",): 2, ("ben",): 2}
        store.delete(place, [records[1].id, records[3].id], "")
        assert store.count(where(), ["speaker"]) == {("user",): 1, ("",): 1}
        keep(store, sample("Ann: again", role="user", conversation="c-1"))
        assert store.count(where(), ["speaker"]) == {("ann",): 2, ("",): 1}

    def test_nothing_is_counted_where_nothing_is_seen(self, store: Store) -> None:
        assert total(store, where()) == 0
        keep(store, sample("a heron"))
        assert total(store, where(kinds=("task",))) == 0
        for by in ("state", "kind", "tier", "agent", "embedded", "speaker"):
            assert store.count(where(kinds=("task",)), [by]) == {}


def in_order(stored: list[Record], order: Order) -> list[Record]:
    """Memories of one place that stand in the order of storing, as a scan gives them."""
    if order == "importance":
        return sorted(stored, key=lambda record: (record.importance, record.created_at))
    forth = sorted(stored, key=lambda record: record.created_at)
    return forth[::-1] if order == "newest" else forth


def _varied(shared: bool = False) -> Iterator[Record]:
    """Memories that meet in their times and importances; every other one for the account if some are `shared`."""
    for n, (time, importance) in enumerate(zip(TIMES, IMPORTANCES, strict=True)):
        tier = _tier(n) if shared else "workspace"
        yield sample(f"number {n}", created_at=NOW + time * SECOND, importance=importance, tier=tier)


def _pages(store: Store, order: Order, size: int) -> Iterator[Record]:
    after: After | None = None
    for _ in range(2 * len(TIMES)):
        page = list(store.scan(where(), order=order, after=after, limit=size))
        yield from page
        if len(page) < size:
            return
        after = After.of(page[-1])


def _tier(number: int) -> Any:
    """Memories of the workspace and of the account by turns: what is scanned may be kept in two places."""
    return "account" if number % 2 else "workspace"
