"""Claims about transactions: all or nothing, one writer at a time, unseen until they end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing, suppress

from msgspec.structs import replace

from recollect.conformance.samples import NOW, PLACE, SECOND, SHARED, failing, found, ids, keep, sample, where
from recollect.errors import ConflictError
from recollect.stores.port import JournaledStore, Place
from recollect.text.query import TextQuery

PATIENCE = 60.0
"""Seconds to wait for another thread. Never waited for in full unless a claim is broken."""


class TransactionClaims:
    """`transaction` makes one change out of many."""

    def test_a_transaction_that_ends_well_is_kept(
        self, store: JournaledStore, reopen: Callable[[], JournaledStore]
    ) -> None:
        (old,) = keep(store, sample("old"))
        with store.transaction(PLACE):
            (new,) = keep(store, sample("new"))
            store.update([replace(old, superseded_by=new.id)])
        with closing(reopen()) as other:
            assert found(other, old.id) == replace(old, superseded_by=new.id)
            assert found(other, new.id) == new

    def test_an_exception_takes_everything_back_and_passes_on(self, store: JournaledStore) -> None:
        changed, deleted = keep(store, sample("a heron"), sample("a fox", embedding=b"\x00\x00\x80?"))
        with failing(store, PLACE):
            keep(store, sample("a lynx"))
            store.update([replace(changed, tags=("forged",))])
            store.delete([deleted])
        assert sorted(ids(store.scan(where()))) == sorted([changed.id, deleted.id])
        assert (found(store, changed.id), found(store, deleted.id)) == (changed, deleted)
        matches = store.search_text(TextQuery(words=("heron", "fox", "lynx")), where(), 10)
        assert sorted(match.record.content for match in matches) == ["a fox", "a heron"]

    def test_a_store_works_on_after_a_transaction_failed(self, store: JournaledStore) -> None:
        with failing(store, PLACE):
            pass
        (kept,) = keep(store, sample("afterwards"))
        assert list(store.scan(where())) == [kept]

    def test_a_transaction_sees_its_own_writes(self, store: JournaledStore) -> None:
        with store.transaction(PLACE):
            (kept,) = keep(store, sample("new"))
            assert found(store, kept.id) == kept
            assert list(store.scan(where())) == [kept]
            assert store.stats(where()).total == 1

    def test_an_inner_transaction_ends_with_the_outer_one(self, store: JournaledStore) -> None:
        with failing(store, PLACE):
            with store.transaction(PLACE):
                keep(store, sample("inner"))
            keep(store, sample("outer"))
        assert list(store.scan(where())) == []

    def test_an_inner_transaction_that_fails_leaves_the_outer_one_as_it_was(self, store: JournaledStore) -> None:
        with store.transaction(PLACE):
            (outer,) = keep(store, sample("outer"))
            with failing(store, PLACE):
                keep(store, sample("inner"))
        assert list(store.scan(where())) == [outer]

    def test_a_refused_batch_leaves_nothing_in_the_transaction_around_it(self, store: JournaledStore) -> None:
        (old,) = keep(store, sample("old"))
        with store.transaction(PLACE):
            with suppress(ConflictError):
                store.put([sample("new"), old])
            (later,) = keep(store, sample("later", created_at=NOW + SECOND))
        assert list(store.scan(where())) == [old, later]

    def test_transactions_of_two_places_may_be_open_at_once(self, store: JournaledStore) -> None:
        with store.transaction(PLACE), store.transaction(SHARED):
            keep(store, sample("here"), sample("everywhere", tier="account"))
        with failing(store, PLACE, SHARED):
            keep(store, sample("not here"), sample("nowhere", tier="account"))
        assert sorted(record.content for record in store.scan(where())) == ["everywhere", "here"]

    def test_others_see_a_transaction_only_once_it_has_ended(
        self, store: JournaledStore, reopen: Callable[[], JournaledStore]
    ) -> None:
        (old,) = keep(store, sample("old"))
        with closing(reopen()) as other:
            assert list(other.scan(where())) == [old]
            with store.transaction(PLACE):
                keep(store, sample("new"))
                store.update([replace(old, importance=1.0)])
                assert list(other.scan(where())) == [old]
            assert {record.content for record in other.scan(where())} == {"old", "new"}
            assert found(other, old.id) == replace(old, importance=1.0)

    def test_nobody_else_writes_during_a_transaction(
        self, store: JournaledStore, reopen: Callable[[], JournaledStore]
    ) -> None:
        keep(store, sample("before"))
        with closing(reopen()) as other:
            _waits_its_turn(store, lambda: keep(other, sample("the other")))

    def test_no_other_thread_writes_during_a_transaction(self, store: JournaledStore) -> None:
        keep(store, sample("before"))
        _waits_its_turn(store, lambda: keep(store, sample("the other")))

    def test_threads_share_a_store(self, store: JournaledStore) -> None:
        problems: list[BaseException] = []

        def work(name: str) -> None:
            try:
                for n in range(5):
                    (kept,) = keep(store, sample(f"{name} {n}"), sample(f"{name} elsewhere", workspace=name))[:1]
                    assert found(store, kept.id) == kept
                    store.touch([kept], NOW + SECOND)
                    assert store.search_text(TextQuery(words=(name,)), where(), 10)
            except BaseException as problem:
                problems.append(problem)

        threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert problems == []
        assert store.stats(where()).total == 20
        assert sorted(record.access_count for record in store.scan(where())) == [1] * 20

    def test_a_transaction_on_an_empty_place_may_do_nothing(self, store: JournaledStore) -> None:
        with store.transaction(Place("default", "empty")):
            pass
        assert list(store.scan(where())) == []


def _waits_its_turn(store: JournaledStore, write: Callable[[], object]) -> None:
    """The write, from another thread, comes after everything in this thread's transaction."""
    order: list[str] = []
    started = threading.Event()

    def second() -> None:
        started.set()
        write()
        order.append("second")

    thread = threading.Thread(target=second)
    with store.transaction(PLACE):
        thread.start()
        assert started.wait(PATIENCE)
        thread.join(0.05)
        keep(store, sample("mine"))
        order.append("first")
    thread.join(PATIENCE)
    assert order == ["first", "second"]
    assert sorted(record.content for record in store.scan(where())) == ["before", "mine", "the other"]
