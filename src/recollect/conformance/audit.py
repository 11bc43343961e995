"""Claims about the audit log: sealed, in order, searchable, and able to take a change back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from recollect.conformance.keeping import FULL
from recollect.conformance.samples import NOW, PLACE, SECOND, SHARED, TICK, failing, keep, sample, update
from recollect.stores.audit import Entry, check
from recollect.stores.port import Before, Place, Store
from recollect.stores.shelves import Thing
from recollect.values.record import new_id


def entry(message: str = "did something", *, at: datetime = NOW, actor: str | None = "atlas", **meta: Any) -> Entry:
    return Entry(0, new_id(), at, "test", message, actor, meta)


class AuditClaims:
    """Each place has a log of its own, which only grows."""

    def test_entries_come_back_as_they_were_with_their_number_and_hash(self, store: Store) -> None:
        plain = entry("first", actor=None)
        full = entry("second: 北京 ß \x00 👩‍👧", at=NOW + TICK, created=["a"], nested={"n": [1, 2.5, None, {"": ""}]})
        sealed = [store.append(PLACE, plain), store.append(PLACE, full)]
        assert [replace(line, seq=0, hash="") for line in sealed] == [plain, full]
        assert [line.seq for line in sealed] == [1, 2]
        assert list(store.entries(PLACE)) == sealed

    def test_the_log_is_an_unbroken_chain(self, store: Store) -> None:
        for n in range(5):
            store.append(PLACE, entry(f"number {n}", ids=[n]))
        assert check(store.entries(PLACE), store.written(PLACE)) == []

    def test_the_chain_goes_on_in_another_process(self, store: Store, reopen: Callable[[], Store]) -> None:
        store.append(PLACE, entry("here"))
        with closing(reopen()) as other:
            other.append(PLACE, entry("there"))
            store.append(PLACE, entry("here again"))
            assert [line.message for line in other.entries(PLACE)] == ["here", "there", "here again"]
            assert check(other.entries(PLACE), other.written(PLACE)) == []

    def test_the_order_is_that_of_writing_whatever_the_clock_says(self, store: Store) -> None:
        for n in (2, 3, 1):
            store.append(PLACE, entry(f"{n}", at=NOW - n * SECOND))
        assert [line.message for line in store.entries(PLACE)] == ["2", "3", "1"]
        assert [line.message for line in store.entries(PLACE, newest_first=True)] == ["1", "3", "2"]

    def test_entries_keep_to_their_limit(self, store: Store) -> None:
        for n in range(4):
            store.append(PLACE, entry(f"{n}"))
        assert [line.message for line in store.entries(PLACE, limit=3)] == ["0", "1", "2"]
        assert [line.message for line in store.entries(PLACE, newest_first=True, limit=2)] == ["3", "2"]
        assert list(store.entries(PLACE, limit=0)) == []

    def test_thousands_of_entries_come_once_each(self, store: Store) -> None:
        with store.transaction(PLACE):
            for n in range(1100):
                store.append(PLACE, entry(f"{n}"))
        forth = [line.seq for line in store.entries(PLACE)]
        assert forth == list(range(1, 1101))
        assert [line.seq for line in store.entries(PLACE, newest_first=True)] == forth[::-1]
        assert [line.seq for line in store.entries(PLACE, limit=1000)] == forth[:1000]
        assert store.written(PLACE) == 1100

    def test_messages_are_searched_whatever_their_case(self, store: Store) -> None:
        for message in ("Deployed the SHOP", "deployed nothing", "Über die STRASSE", "100% _done_"):
            store.append(PLACE, entry(message))

        def having(*texts: str) -> list[str]:
            return [line.message for line in store.entries(PLACE, contains=texts)]

        assert having("deployed") == ["Deployed the SHOP", "deployed nothing"]
        assert having("the shop") == ["Deployed the SHOP"]
        assert having("ÜBER") == having("straße") == ["Über die STRASSE"]
        assert having("0% _D") == ["100% _done_"]
        assert having("%e%") == having("'") == []
        assert having("straße", "SHOP", "nowhere") == ["Deployed the SHOP", "Über die STRASSE"]
        assert len(having()) == len(having("")) == 4

    def test_entries_about_a_memory_are_those_that_name_its_id(self, store: Store) -> None:
        one, two = new_id(), new_id()
        store.append(PLACE, entry("made both", created=[one, two]))
        store.append(PLACE, entry("changed one", changed=[one]))
        store.append(PLACE, entry(f"only mentions {two}"))

        def about(ident: str, **wish: Any) -> list[str]:
            return [line.message for line in store.entries(PLACE, about=ident, **wish)]

        assert about(one) == ["made both", "changed one"]
        assert about(two) == ["made both"]
        assert about(one[:-1]) == about(one[1:]) == []
        assert about(one, contains=("CHANGED", "nothing")) == ["changed one"]
        assert about(one, newest_first=True, limit=1) == ["changed one"]

    def test_written_counts_every_entry_of_the_place(self, store: Store) -> None:
        assert store.written(PLACE) == 0
        store.append(PLACE, entry())
        store.append(PLACE, entry())
        store.append(SHARED, entry())
        assert (store.written(PLACE), store.written(SHARED)) == (2, 1)

    def test_each_place_has_a_log_of_its_own(self, store: Store) -> None:
        places = [PLACE, SHARED, Place("default", "other"), Place("acme", "default"), Place("acme", None)]
        for place in places:
            store.append(place, entry(f"in {place}"))
        for place in places:
            assert [line.message for line in store.entries(place)] == [f"in {place}"]

    def test_nothing_is_logged_where_nothing_was_written(self, store: Store) -> None:
        nowhere = Place("nobody", "nowhere")
        assert list(store.entries(nowhere)) == []
        assert store.written(nowhere) == 0
        assert store.before(nowhere, 1) is None
        assert store.forget_before(nowhere) == 0
        assert store.places("nobody") == []

    def test_before_gives_the_records_as_they_were(self, store: Store) -> None:
        records = keep(store, sample("ship it", **FULL), sample({"json": [1, 2.5]}), sample("NUL \x00", tier="account"))
        sealed = store.append(PLACE, entry("about to change"), before=records)
        update(store, replace(records[0], importance=0.0))
        assert store.before(PLACE, sealed.seq) == Before(records, [])

    def test_before_gives_the_things_as_they_were(self, store: Store, reopen: Callable[[], Store]) -> None:
        thing = store.keep(PLACE, Thing("steps", "s-1", {"done": False}, parent="w-1"))
        absent = Thing("steps", "s-2", {})
        records = keep(store, sample("beside them"))
        things = store.append(PLACE, entry("about to change"), things=[thing, absent])
        both = store.append(PLACE, entry("about to change more"), before=records, things=[thing])
        store.keep(PLACE, replace(thing, body={"done": True}))
        store.close()
        with closing(reopen()) as other:
            assert other.before(PLACE, things.seq) == Before([], [thing, absent])
            assert other.before(PLACE, both.seq) == Before(records, [thing])
            assert other.forget_before(PLACE) == 2
            assert other.before(PLACE, things.seq) is None

    def test_before_is_none_where_nothing_was_kept(self, store: Store) -> None:
        sealed = store.append(PLACE, entry())
        assert store.before(PLACE, sealed.seq) is None
        assert store.before(PLACE, sealed.seq + 1) is None

    def test_forget_before_drops_all_and_leaves_the_log(self, store: Store) -> None:
        seqs = [store.append(PLACE, entry(f"{n}"), before=[sample()]).seq for n in range(3)]
        assert store.forget_before(PLACE) == 3
        assert [store.before(PLACE, seq) for seq in seqs] == [None] * 3
        assert len(list(store.entries(PLACE))) == 3
        assert check(store.entries(PLACE), store.written(PLACE)) == []
        assert store.forget_before(PLACE) == 0

    def test_undo_sizes_name_every_entry_that_can_be_undone_the_oldest_first(self, store: Store) -> None:
        long = sample("heron " * 1000)
        old = store.append(PLACE, entry(at=NOW - TICK), before=[sample()])
        store.append(PLACE, entry(at=NOW))
        new = store.append(PLACE, entry(at=NOW), before=[long], things=[Thing("steps", "s-1", {"done": False})])
        sizes = store.undo_sizes(PLACE)
        assert [(size.seq, size.at) for size in sizes] == [(old.seq, NOW - TICK), (new.seq, NOW)]
        assert 0 < sizes[0].bytes < 6000 < sizes[1].bytes
        store.forget_before(PLACE, seqs=[old.seq])
        assert [size.seq for size in store.undo_sizes(PLACE)] == [new.seq]
        assert store.undo_sizes(Place("nobody", "nowhere")) == []

    def test_forget_before_of_some_entries_leaves_the_others(self, store: Store) -> None:
        erased, other = sample("erased"), sample("other")
        groups = [erased], [other, erased], [other]
        seqs = [store.append(PLACE, entry(), before=records).seq for records in groups]
        assert list(store.undos(PLACE)) == [(seq, Before(group, [])) for seq, group in zip(seqs, groups, strict=True)]
        assert store.forget_before(PLACE, seqs=seqs[:2]) == 2
        assert [store.before(PLACE, seq) for seq in seqs] == [None, None, Before([other], [])]
        assert [seq for seq, _ in store.undos(PLACE)] == seqs[2:]
        assert store.forget_before(PLACE, seqs=[]) == 0
        assert list(store.undos(Place("nobody", "nowhere"))) == []

    def test_forget_before_is_of_one_place_only(self, store: Store) -> None:
        here, there = (store.append(place, entry(), before=[sample()]).seq for place in (PLACE, SHARED))
        assert store.forget_before(PLACE) == 1
        assert store.before(PLACE, here) is None
        assert store.before(SHARED, there) is not None

    def test_the_log_joins_the_open_transaction(self, store: Store) -> None:
        kept = store.append(PLACE, entry("kept"), before=[sample()])
        with failing(store, PLACE):
            lost = store.append(PLACE, entry("lost"), before=[sample()])
            assert [line.message for line in store.entries(PLACE)] == ["kept", "lost"]
            assert store.before(PLACE, lost.seq) is not None
            store.forget_before(PLACE)
        assert list(store.entries(PLACE)) == [kept]
        assert store.written(PLACE) == 1
        assert store.before(PLACE, kept.seq) is not None
        store.append(PLACE, entry("next"))
        assert check(store.entries(PLACE), store.written(PLACE)) == []
