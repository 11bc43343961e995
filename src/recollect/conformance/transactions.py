"""Claims about transactions: all or nothing, one writer at a time, unseen until they end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from recollect.conformance.audit import entry
from recollect.conformance.samples import (
    NOW,
    OTHER,
    PLACE,
    SECOND,
    SHARED,
    ask,
    contents,
    delete,
    failing,
    ids,
    keep,
    sample,
    search,
    seen,
    stored,
    total,
    touch,
    update,
    where,
    words,
)
from recollect.stores.port import OnDisk, Place, Store
from recollect.stores.shelves import ShelfItem
from recollect.stores.undo import Undo
from recollect.values.errors import ConflictError, StoreError
from recollect.values.record import Record, pack

PATIENCE = 60.0
"""Seconds to wait for another thread. Never waited for in full unless a claim is broken."""


class TransactionClaims:
    """`transaction` makes one change out of many."""

    def test_a_transaction_that_ends_well_is_kept(self, store: Store, reopen: Callable[[], Store]) -> None:
        (old,) = keep(store, sample("old"))
        with store.transaction(PLACE):
            (new,) = keep(store, sample("new"))
            update(store, replace(old, superseded_by=new.id))
        with closing(reopen()) as other:
            assert stored(other, old.id) == replace(old, superseded_by=new.id)
            assert stored(other, new.id) == new

    def test_an_exception_takes_everything_back_and_passes_on(self, store: Store) -> None:
        changed, deleted = keep(store, sample("a heron"), sample("a fox", embedding=pack([1.0])))
        with failing(store, PLACE):
            keep(store, sample("a lynx"))
            update(store, replace(changed, tags=("forged",)))
            delete(store, deleted)
        assert list(store.scan(where())) == [changed, deleted]
        assert contents(search(store, words("heron", "fox", "lynx"))) == ["a fox", "a heron"]

    def test_what_was_taken_back_does_not_come_again_after_compaction(self, store: Store) -> None:
        records = keep(store, *(sample(f"heron number {n}") for n in range(5)))
        delete(store, records[0])
        with failing(store, PLACE):
            update(store, *(replace(record, importance=1.0) for record in records[1:]))
            keep(store, sample("never kept"))
        if isinstance(store, OnDisk):
            store.compact(PLACE)
        assert list(store.scan(where())) == records[1:]

    def test_a_store_works_on_after_a_transaction_failed(self, store: Store) -> None:
        with failing(store, PLACE):
            pass
        (record,) = keep(store, sample("afterwards"))
        assert list(store.scan(where())) == [record]

    def test_a_transaction_sees_its_own_writes(self, store: Store) -> None:
        with store.transaction(PLACE):
            (record,) = keep(store, sample("new"))
            assert stored(store, record.id) == record
            assert list(store.scan(where())) == [record]
            assert [record.id for record in store.scan(where(), whole=False)] == [record.id]
            assert total(store, where()) == 1
            assert seen(store, where()) == [record.id]
            assert store.lacking(PLACE, "test", 2, 10) == [record.id]
            changed = replace(record, importance=1.0)
            update(store, changed)
            assert list(store.scan(where(), order="newest")) == [changed]
            delete(store, record)
            assert list(store.scan(where())) == []

    def test_an_inner_transaction_ends_with_the_outer_one(self, store: Store) -> None:
        with failing(store, PLACE):
            with store.transaction(PLACE):
                keep(store, sample("inner"))
            keep(store, sample("outer"))
        assert list(store.scan(where())) == []

    def test_an_inner_transaction_that_fails_leaves_the_outer_one_as_it_was(self, store: Store) -> None:
        (old,) = keep(store, sample("old", created_at=NOW - SECOND))
        with store.transaction(PLACE):
            (outer,) = keep(store, sample("outer"))
            update(store, replace(old, importance=0.75))
            with failing(store, PLACE):
                keep(store, sample("inner"))
                update(store, replace(old, importance=1.0))
                delete(store, outer)
        assert list(store.scan(where())) == [replace(old, importance=0.75), outer]

    def test_a_refused_batch_leaves_nothing_in_the_transaction_around_it(self, store: Store) -> None:
        (old,) = keep(store, sample("old"))
        with store.transaction(PLACE):
            with suppress(ConflictError):
                store.put(PLACE, [sample("new"), old])
            (later,) = keep(store, sample("later", created_at=NOW + SECOND))
        assert list(store.scan(where())) == [old, later]

    @pytest.mark.parametrize("places", [(PLACE, SHARED), (SHARED, PLACE), (PLACE, SHARED, PLACE)])
    def test_a_transaction_may_be_of_several_places(
        self, store: Store, reopen: Callable[[], Store], places: tuple[Place, ...]
    ) -> None:
        with store.transaction(*places):
            records = [*store.put(PLACE, [sample("here")]), *store.put(SHARED, [sample("everywhere", tier="account")])]
        with failing(store, *places):
            keep(store, sample("not here"), sample("nowhere", tier="account"))
            delete(store, *records)
            store.append(PLACE, entry("lost"))
            store.keep(SHARED, ShelfItem("steps", "lost", {}))
        with closing(reopen()) as other:
            for opened in (store, other):
                assert contents(opened.scan(where())) == ["everywhere", "here"]
                assert list(opened.entries(PLACE)) == []
                assert list(opened.shelf(SHARED)) == []

    def test_a_transaction_of_no_place_is_nothing(self, store: Store) -> None:
        with store.transaction():
            pass
        assert list(store.scan(where())) == []

    def test_an_inner_transaction_may_open_no_place_that_is_not_open(self, store: Store) -> None:
        with store.transaction(PLACE, SHARED):
            with store.transaction(SHARED), store.transaction(PLACE, SHARED):
                keep(store, sample("here"))
            with pytest.raises(StoreError), store.transaction(PLACE, OTHER):
                pytest.fail("it was opened")
            with pytest.raises(StoreError):
                store.put(OTHER, [sample("there", workspace="other")])
            keep(store, sample("here as well"))
        assert contents(store.scan(where())) == ["here", "here as well"]
        assert OTHER not in store.places("default")

    def test_transactions_of_the_same_places_in_any_order_do_not_wait_for_each_other_for_ever(
        self, store: Store
    ) -> None:
        def work(*places: Place) -> None:
            for n in range(10):
                with store.transaction(*places):
                    keep(store, *(_at(place, f"{places[0]} {n}") for place in places))

        _together(*(partial(work, *places) for places in ((PLACE, SHARED), (SHARED, PLACE)) * 2))
        assert total(store, where()) == 80

    def test_others_see_a_transaction_only_once_it_has_ended(self, store: Store, reopen: Callable[[], Store]) -> None:
        (old,) = keep(store, sample("old"))
        with closing(reopen()) as other:
            assert list(other.scan(where())) == [old]
            with store.transaction(PLACE):
                keep(store, sample("new"))
                update(store, replace(old, importance=1.0))
                assert list(other.scan(where())) == [old]
            assert {record.content for record in other.scan(where())} == {"old", "new"}
            assert stored(other, old.id) == replace(old, importance=1.0)

    def test_readers_of_another_process_do_not_wait(self, store: Store, reopen: Callable[[], Store]) -> None:
        with closing(reopen()) as other:
            _reads_meanwhile(store, other)

    def test_readers_in_other_threads_do_not_wait_nor_see_what_is_not_done(self, store: Store) -> None:
        _reads_meanwhile(store, store)

    def test_touch_waits_for_nobody(self, store: Store, reopen: Callable[[], Store]) -> None:
        (record,) = keep(store, sample("old"))
        with closing(reopen()) as other:
            with store.transaction(PLACE):
                keep(store, sample("new", created_at=NOW + SECOND))
                _together(*(partial(touch, opened, NOW + SECOND, record) for opened in (store, other)))
            for opened in (store, other):  # either may have been written by now, for the other to see
                assert [r.access_count for r in opened.get(PLACE, [record.id])] in ([1], [2])
        keep(store, sample("and again", created_at=NOW + SECOND))
        assert stored(store, record.id) == replace(record, access_count=2, accessed_at=NOW + SECOND)

    def test_nobody_else_writes_during_a_transaction(self, store: Store, reopen: Callable[[], Store]) -> None:
        keep(store, sample("before"))
        with closing(reopen()) as other:
            _waits_its_turn(store, lambda: keep(other, sample("the other")))

    def test_no_other_thread_writes_during_a_transaction(self, store: Store) -> None:
        keep(store, sample("before"))
        _waits_its_turn(store, lambda: keep(store, sample("the other")))

    def test_threads_share_a_store(self, store: Store) -> None:
        def work(name: str) -> None:
            for n in range(5):
                record, _ = keep(store, sample(f"{name} {n}"), sample(f"{name} elsewhere", workspace=name))
                assert stored(store, record.id) == record
                touch(store, NOW + SECOND, record)
                assert search(store, words(name))
                store.keep(PLACE, ShelfItem("counts", name, {"n": n}), expect=n)

        _together(*(partial(work, f"w{n}") for n in range(4)))
        assert total(store, where()) == 20
        assert sorted(record.access_count for record in store.scan(where())) == [1] * 20
        assert [item.version for item in store.shelf(PLACE, "counts")] == [5] * 4

    def test_a_transaction_on_an_empty_place_may_do_nothing(self, store: Store) -> None:
        with store.transaction(Place("default", "empty")):
            pass
        assert list(store.scan(where())) == []


def _at(place: Place, text: str) -> Record:
    return sample(text, tier="workspace" if place.workspace else "account")


def _reads_meanwhile(store: Store, reader: Store) -> None:
    """Every way of reading, from another thread, in the middle of a transaction of this one."""
    remaining, gone = keep(
        store, sample("a heron", embedding=pack([1.0, 0.0]), embedding_model="test"), sample("a fox")
    )
    item = store.keep(PLACE, ShelfItem("steps", "s-1", {"n": 1}))
    sealed = store.append(PLACE, entry("first"), Undo([remaining]))
    answers: dict[str, Any] = {}

    def read() -> None:
        answers["get"] = reader.get(PLACE, [remaining.id])
        answers["scan"] = list(reader.scan(where()))
        answers["count"] = total(reader, where())
        answers["search"] = {
            ident for shortlist in reader.search(ask(words("heron", "fox", "lynx"))) for ident in shortlist.block.ids
        }
        answers["lacking"] = reader.lacking(PLACE, "test", 2, 10)
        answers["entries"] = list(reader.entries(PLACE))
        answers["written"] = reader.written(PLACE)
        answers["undo"] = reader.undo_of(PLACE, sealed.seq)
        answers["find"] = reader.find(PLACE, "steps", ["s-1", "s-2"])
        answers["shelf"] = list(reader.shelf(PLACE))
        answers["places"] = reader.places("default")
        if isinstance(reader, OnDisk):
            reader.settings(PLACE)
            reader.size(PLACE)
            reader.crowded(PLACE)
            answers["damage"] = reader.damage(PLACE)

    with store.transaction(PLACE):
        keep(store, sample("a lynx"))
        update(store, replace(remaining, importance=1.0))
        delete(store, gone)
        store.append(PLACE, entry("second"))
        store.keep(PLACE, replace(item, body={"n": 2}))
        store.keep(PLACE, ShelfItem("steps", "s-2", {}))
        store.purge(PLACE, seqs=None)
        _together(read)
    assert answers.pop("undo").deleted == [remaining]
    assert answers.pop("search") == {remaining.id, gone.id}
    assert answers.pop("damage", []) == []
    assert answers == {
        "get": [remaining],
        "scan": [remaining, gone],
        "count": 2,
        "lacking": [gone.id],
        "entries": [sealed],
        "written": 1,
        "find": [item],
        "shelf": [item],
        "places": [PLACE],
    }
    assert ids(reader.get(PLACE, [gone.id])) == []
    assert reader.undo_of(PLACE, sealed.seq) is None


def _together(*tasks: Callable[[], object]) -> None:
    """In threads of their own, all at once. What goes wrong in one of them goes wrong here."""
    problems: list[BaseException] = []

    def run(task: Callable[[], object]) -> None:
        try:
            task()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert problems == []
    assert not any(thread.is_alive() for thread in threads), "somebody still waits"


def _waits_its_turn(store: Store, write: Callable[[], object]) -> None:
    """The write, from another thread, comes after everything in this thread's transaction."""
    order: list[str] = []
    started = threading.Event()

    def second() -> None:
        started.set()
        write()
        order.append("second")

    thread = threading.Thread(target=second, daemon=True)
    with store.transaction(PLACE):
        thread.start()
        assert started.wait(PATIENCE)
        thread.join(0.05)
        keep(store, sample("mine"))
        order.append("first")
    thread.join(PATIENCE)
    assert order == ["first", "second"]
    assert contents(store.scan(where())) == ["before", "mine", "the other"]
