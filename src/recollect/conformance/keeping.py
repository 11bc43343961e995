"""Claims about keeping: put, get, update, embed, delete and touch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from recollect.conformance.samples import (
    HERE,
    NOW,
    OTHER,
    PLACE,
    SECOND,
    SHARED,
    TICK,
    contents,
    delete,
    failing,
    ids,
    keep,
    sample,
    search,
    seen,
    stored,
    touch,
    update,
    where,
    words,
)
from recollect.stores.port import HasLimits, Place, Store
from recollect.values.errors import ConflictError, NotFoundError
from recollect.values.record import Address, pack

FULL: dict[str, Any] = {
    "account": "alice",
    "channel": "ops",
    "conversation": "c-1",
    "agent": "atlas",
    "tier": "channel",
    "kind": "decision",
    "importance": 0.7300000000000001,
    "created_at": NOW - timedelta(days=3) + TICK,
    "accessed_at": NOW - TICK,
    "tags": ("security.authentication", "größe"),
    "role": "tool_result",
    "source": "a source, with 'quotes'",
    "lifetime": "short_term",
    "references": ("a-1", "b-2"),
    "metadata": {"nested": {"list": [1, 2.5, None, True, ""]}},
    "access_count": 7,
    "expires_at": NOW + timedelta(days=3650),
    "archived_at": NOW - SECOND,
    "valid_from": NOW - timedelta(days=400) - TICK,
    "valid_until": NOW + timedelta(days=400) + TICK,
    "superseded_by": "f" * 32,
    "embedding": b"\x00\x00\x80?\x00\x00\x00\xc0",
    "embedding_model": "test-2",
}
"""A value other than the default for every field that a memory has."""

CHANGES: dict[str, Any] = {
    "importance": 0.125,
    "accessed_at": NOW + SECOND,
    "tags": ("changed",),
    "lifetime": "conversation",
    "references": ("c-3",),
    "metadata": {"changed": True},
    "access_count": 41,
    "expires_at": NOW + TICK,
    "archived_at": NOW,
    "valid_from": NOW - TICK,
    "valid_until": NOW + SECOND,
    "superseded_by": "e" * 32,
}
"""Everything about a memory that `update` may change."""


class KeepingClaims:
    """What is put is there, exactly as it was, until it is deleted."""

    def test_what_would_come_back_otherwise_is_known_before(self, store: Store) -> None:
        records = [sample("plain"), sample("full", **FULL), sample({"z": [1, 2.5], "a": None})]
        short = store.shortfalls(PLACE, iter(records)) if isinstance(store, HasLimits) else []
        assert store.places(PLACE.tenant) == []
        assert all(shortfall.fields for shortfall in short), "three memories are not too much for any store"
        changed = {field for shortfall in short for field in shortfall.fields}
        with store.transaction(PLACE):
            stored = store.put(PLACE, records)
        read_back = {record.id: record for record in store.get(PLACE, [record.id for record in stored])}
        for record, ident in zip(records, (record.id for record in stored), strict=True):
            assert replace(record, **{field: getattr(read_back[ident], field) for field in changed}) == read_back[ident]
        if isinstance(store, HasLimits):
            assert store.shortfalls(PLACE, iter(read_back.values())) == []

    def test_every_field_comes_back_as_it_was_put(self, store: Store) -> None:
        (record,) = keep(store, sample("ship it", **FULL))
        assert stored(store, record.id) == record
        assert list(store.scan(where())) == [record]

    def test_fields_left_empty_come_back_empty(self, store: Store) -> None:
        (record,) = keep(store, sample("plain"))
        assert stored(store, record.id) == record

    def test_what_was_put_is_there_for_another_process(self, store: Store, reopen: Callable[[], Store]) -> None:
        here, shared = keep(store, sample("ship it", **FULL), sample("shared", tier="account"))
        with closing(reopen()) as other:
            assert other.get(PLACE, [here.id]) == [here]
            assert other.get(SHARED, [shared.id]) == [shared]

    def test_put_returns_the_records_in_the_order_given(self, store: Store) -> None:
        texts = [f"number {n}" for n in (3, 1, 2)]
        records = store.put(PLACE, [sample(text, created_at=NOW - n * SECOND) for n, text in enumerate(texts)])
        assert [record.content for record in records] == texts

    def test_each_place_keeps_its_own(self, store: Store) -> None:
        keep(store, sample("here"), sample("there", workspace="other"), sample("everywhere", tier="account"))
        assert contents(store.scan(where())) == ["everywhere", "here"]
        assert contents(store.scan(where(Address(workspace="other")))) == ["everywhere", "there"]

    def test_put_of_nothing_is_nothing(self, store: Store) -> None:
        assert list(store.put(PLACE, [])) == []
        assert list(store.scan(where())) == []

    def test_an_id_that_exists_is_a_conflict_and_none_of_the_batch_is_stored(self, store: Store) -> None:
        (old,) = keep(store, sample("the first"))
        twin = sample("an impostor", id=old.id)
        with pytest.raises(ConflictError):
            store.put(PLACE, [sample("before it"), twin, sample("after it")])
        assert list(store.scan(where())) == [old]
        assert search(store, words("impostor", "before", "after")) == []

    def test_an_id_given_twice_in_one_batch_is_a_conflict(self, store: Store) -> None:
        record = sample("one")
        with pytest.raises(ConflictError):
            store.put(PLACE, [record, sample("two", id=record.id)])
        assert list(store.scan(where())) == []

    def test_texts_are_found_to_the_letter_unless_they_are_of_a_conversation_or_out_of_use(self, store: Store) -> None:
        same = ["tea at four", "Tea at four", "tea at four ", "tea", "a\x00b", "größe", {"tea": [1, 2]}]
        records = keep(store, *map(sample, same), sample("tea at four"), sample("tea at four", workspace="other"))
        keep(store, sample("tea at four", conversation="c"), sample("tea at four", archived_at=NOW))
        keep(store, sample("tea at four", superseded_by="f" * 32))
        (expired,) = keep(store, sample("tea at four", expires_at=NOW - SECOND))
        assert store.with_texts(PLACE, ["tea at four"]) == [records[0], records[7], expired]
        for record in records[1:7]:
            assert store.with_texts(PLACE, ["nothing", record.text]) == [record]
        assert store.with_texts(PLACE, []) == []
        assert store.with_texts(OTHER, ["tea at four"]) == [records[8]]
        delete(store, records[0])
        update(store, replace(records[7], archived_at=NOW))
        assert store.with_texts(PLACE, ["tea at four"]) == [expired]

    def test_a_transaction_finds_its_own_texts_until_it_is_taken_back(self, store: Store) -> None:
        (old,) = keep(store, sample("tea"))
        with failing(store, PLACE):
            (new,) = store.put(PLACE, [sample("tea")])
            assert store.with_texts(PLACE, ["tea"]) == [old, new]
            store.delete(PLACE, [old.id])
            assert store.with_texts(PLACE, ["tea"]) == [new]
        assert store.with_texts(PLACE, ["tea"]) == [old]

    def test_get_gives_those_that_exist_in_whatever_state(self, store: Store) -> None:
        states = [{}, {"expires_at": NOW - SECOND}, {"archived_at": NOW}, {"superseded_by": "f" * 32}]
        records = keep(store, *(sample("a", **state) for state in states), sample("not asked for"))[:-1]
        assert sorted(ids(store.get(PLACE, ["no-such-id", *ids(records)]))) == sorted(ids(records))
        assert store.get(PLACE, []) == []

    def test_get_looks_in_one_place(self, store: Store) -> None:
        (record,) = keep(store, sample("here"))
        assert [store.get(place, [record.id]) for place in (SHARED, OTHER, Place("acme", "default"))] == [[], [], []]

    def test_get_gives_each_once_however_often_it_is_asked_for(self, store: Store) -> None:
        (record,) = keep(store, sample("once"))
        assert store.get(PLACE, [record.id, record.id]) == [record]

    def test_get_takes_thousands_of_ids(self, store: Store) -> None:
        records = keep(store, *(sample(f"number {n}") for n in range(1200)))
        assert set(ids(store.get(PLACE, ids(records)))) == set(ids(records))

    def test_update_replaces_what_may_change(self, store: Store) -> None:
        (old,) = keep(store, sample("ship it", **FULL))
        update(store, replace(old, **CHANGES))
        assert stored(store, old.id) == replace(old, **CHANGES)

    def test_update_can_empty_what_may_be_empty(self, store: Store) -> None:
        (old,) = keep(store, sample("ship it", **FULL))
        emptied = replace(
            old, tags=(), references=(), metadata={}, expires_at=None, archived_at=None, superseded_by=None
        )
        update(store, emptied)
        assert stored(store, old.id) == emptied

    def test_update_leaves_all_that_never_changes(self, store: Store) -> None:
        (old,) = keep(store, sample("original words", embedding=pack([1.0]), embedding_model="test"))
        update(
            store,
            replace(
                old,
                content="forged words",
                address=replace(old.address, agent="mallory"),
                created_at=NOW - SECOND,
                embedding=pack([2.0]),
                embedding_model="other",
            ),
        )
        assert stored(store, old.id) == old
        assert search(store, words("forged")) == []

    def test_update_needs_no_vector_and_takes_none_away(self, store: Store) -> None:
        (old,) = keep(store, sample("a heron", embedding=pack([1.0]), embedding_model="test"))
        update(store, replace(old, importance=1.0, embedding=None, embedding_model=None))
        assert stored(store, old.id) == replace(old, importance=1.0)

    def test_update_of_one_that_is_not_there_changes_none(self, store: Store) -> None:
        (old,) = keep(store, sample("here"))
        with pytest.raises(NotFoundError):
            store.update(PLACE, [replace(old, importance=1.0), sample("never put")])
        assert list(store.scan(where())) == [old]

    def test_embed_gives_vectors_and_changes_them(self, store: Store, reopen: Callable[[], Store]) -> None:
        bare, full = keep(store, sample("bare"), sample("full", embedding=pack([1.0]), embedding_model="test"))
        store.embed(PLACE, "test-2", {bare.id: pack([1.0, 2.0]), full.id: pack([3.0, 4.0]), "no-such-id": pack([5.0])})
        both = [
            replace(bare, embedding=pack([1.0, 2.0]), embedding_model="test-2"),
            replace(full, embedding=pack([3.0, 4.0]), embedding_model="test-2"),
        ]
        assert list(store.scan(where())) == both
        store.close()
        with closing(reopen()) as other:
            assert list(other.scan(where())) == both

    def test_embed_joins_the_open_transaction(self, store: Store) -> None:
        (record,) = keep(store, sample("bare"))
        with failing(store, PLACE):
            store.embed(PLACE, "test", {record.id: pack([1.0])})
            assert stored(store, record.id) == replace(record, embedding=pack([1.0]), embedding_model="test")
        assert stored(store, record.id) == record
        with store.transaction(PLACE):
            (new,) = keep(store, sample("new"))
            store.embed(PLACE, "test", {new.id: pack([2.0]), record.id: pack([1.0])})
            update(store, replace(record, importance=1.0))
        assert stored(store, new.id) == replace(new, embedding=pack([2.0]), embedding_model="test")
        assert stored(store, record.id) == replace(
            record, importance=1.0, embedding=pack([1.0]), embedding_model="test"
        )

    def test_lacking_names_those_without_a_vector_of_the_model_the_newest_first(self, store: Store) -> None:
        fields: list[dict[str, Any]] = [
            {},
            {"embedding": pack([1.0, 2.0]), "embedding_model": "test"},
            {"embedding": pack([1.0]), "embedding_model": "test"},
            {"embedding": pack([1.0, 2.0]), "embedding_model": "other"},
            {"superseded_by": "f" * 32},
            {"archived_at": NOW, "expires_at": NOW},
        ]
        records = keep(store, *(sample(f"{n}", created_at=NOW + n * SECOND, **more) for n, more in enumerate(fields)))
        wanted = [records[n].id for n in (5, 3, 2, 0)]
        assert store.lacking(PLACE, "test", 2, 10) == wanted
        assert store.lacking(PLACE, "test", 2, 3) == wanted[:3]
        assert store.lacking(PLACE, "nobody's", 2, 10) == [records[n].id for n in (5, 3, 2, 1, 0)]
        store.embed(PLACE, "test", {ident: pack([1.0, 2.0]) for ident in wanted[:2]})
        assert store.lacking(PLACE, "test", 2, 10) == wanted[2:]
        assert store.lacking(OTHER, "test", 2, 10) == []

    def test_delete_removes_it_from_reading_and_from_search(self, store: Store) -> None:
        gone, remaining = keep(store, sample("the heron flew"), sample("the heron stayed"))
        delete(store, gone)
        assert stored(store, gone.id) is None
        assert list(store.scan(where())) == [remaining]
        assert search(store, words("heron")) == [remaining]
        assert seen(store, where()) == [remaining.id]

    def test_the_words_of_the_deleted_do_not_find_what_comes_after(self, store: Store) -> None:
        (gone,) = keep(store, sample("the heron flew"))
        delete(store, gone)
        keep(store, sample("a fox in its place"))
        assert search(store, words("heron", "flew")) == []

    def test_delete_of_one_that_is_not_there_deletes_none(self, store: Store) -> None:
        (record,) = keep(store, sample("here"))
        with pytest.raises(NotFoundError):
            store.delete(PLACE, [record.id, "never put"])
        assert list(store.scan(where())) == [record]

    def test_a_deleted_id_may_be_put_again(self, store: Store) -> None:
        (record,) = keep(store, sample("back again", **FULL))
        delete(store, record)
        store.put(PLACE, [record])
        assert stored(store, record.id) == record

    def test_touch_counts_retrievals_and_is_seen_at_once(self, store: Store) -> None:
        first, second = keep(store, sample("one"), sample("two"))
        touch(store, NOW + SECOND, first, second)
        touch(store, NOW + 2 * SECOND, first)
        assert stored(store, first.id) == replace(first, access_count=2, accessed_at=NOW + 2 * SECOND)
        assert stored(store, second.id) == replace(second, access_count=1, accessed_at=NOW + SECOND)
        assert [record.access_count for record in store.scan(where())] == [2, 1]

    def test_touch_never_moves_the_last_retrieval_back(self, store: Store) -> None:
        (record,) = keep(store, sample("one"))
        for offset in (2 * SECOND, SECOND, -SECOND):
            touch(store, NOW + offset, record)
        assert stored(store, record.id) == replace(record, access_count=3, accessed_at=NOW + 2 * SECOND)

    def test_touch_of_one_that_is_gone_is_no_error(self, store: Store) -> None:
        gone, other = keep(store, sample("one"), sample("other"))
        delete(store, gone)
        touch(store, NOW, gone, other)
        update(store, replace(other, importance=1.0))
        assert stored(store, gone.id) is None

    def test_retrievals_of_the_deleted_are_not_counted_for_whoever_gets_the_id(self, store: Store) -> None:
        (old,) = keep(store, sample("old"))
        touch(store, NOW + SECOND, old)
        delete(store, old)
        touch(store, NOW + SECOND, old)
        store.put(PLACE, [old])
        assert stored(store, old.id) == old

    def test_touch_is_durable_with_the_next_write(self, store: Store, reopen: Callable[[], Store]) -> None:
        (record,) = keep(store, sample("one"))
        touch(store, NOW + SECOND, record)
        keep(store, sample("the next write"))
        with closing(reopen()) as other:
            assert stored(other, record.id) == replace(record, access_count=1, accessed_at=NOW + SECOND)

    def test_touch_survives_a_write_that_fails(self, store: Store, reopen: Callable[[], Store]) -> None:
        (record,) = keep(store, sample("one"))
        touch(store, NOW + SECOND, record)
        with pytest.raises(ConflictError):
            store.put(PLACE, [record])
        touched = replace(record, access_count=1, accessed_at=NOW + SECOND)
        assert stored(store, record.id) == touched
        store.close()
        with closing(reopen()) as other:
            assert stored(other, record.id) == touched

    def test_touch_is_durable_after_close(self, store: Store, reopen: Callable[[], Store]) -> None:
        (record,) = keep(store, sample("one"))
        with closing(reopen()) as other:
            touch(other, NOW + SECOND, record)
        assert stored(store, record.id) == replace(record, access_count=1, accessed_at=NOW + SECOND)

    def test_retrievals_counted_by_two_processes_add_up(self, store: Store, reopen: Callable[[], Store]) -> None:
        (record,) = keep(store, sample("one"))
        with closing(reopen()) as other:
            touch(other, NOW + SECOND, record)
            touch(store, NOW + 2 * SECOND, record)
        keep(store, sample("the next write"))
        assert stored(store, record.id) == replace(record, access_count=2, accessed_at=NOW + 2 * SECOND)

    def test_a_closed_store_opens_what_it_needs_again(self, store: Store) -> None:
        (record,) = keep(store, sample("a heron"))
        store.close()
        assert stored(store, record.id) == record
        store.close()
        store.close()
        (new,) = keep(store, sample("a fox"))
        assert list(store.scan(where())) == [record, new]

    def test_asking_an_empty_store_finds_nothing(self, store: Store) -> None:
        assert store.get(PLACE, ["f" * 32]) == []
        assert list(store.scan(where(HERE))) == []
        assert search(store, words("anything")) == []
        assert store.lacking(PLACE, "test", 2, 10) == []
        assert list(store.shelf(PLACE)) == []
