"""Claims about keeping: put, get, update, delete, touch, scan and stats."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from recollect.conformance.samples import HERE, NOW, SECOND, TICK, found, ids, keep, sample, where
from recollect.errors import ConflictError, NotFoundError
from recollect.record import Address
from recollect.stores.port import JournaledStore
from recollect.text.query import TextQuery

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
    "superseded_by": "e" * 32,
    "embedding": b"\x00\x00\x00@",
    "embedding_model": "test-3",
}
"""Everything about a memory that may change after it was stored."""


class KeepingClaims:
    """What is put is there, exactly as it was, until it is deleted."""

    def test_every_field_comes_back_as_it_was_put(self, store: JournaledStore) -> None:
        (kept,) = keep(store, sample("ship it", **FULL))
        assert found(store, kept.id) == kept
        assert list(store.scan(where())) == [kept]

    def test_fields_left_empty_come_back_empty(self, store: JournaledStore) -> None:
        (kept,) = keep(store, sample("plain"))
        assert found(store, kept.id) == kept

    def test_what_was_put_is_there_for_another_process(
        self, store: JournaledStore, reopen: Callable[[], JournaledStore]
    ) -> None:
        kept = keep(store, sample("ship it", **FULL), sample("shared", tier="account"))
        with closing(reopen()) as other:
            assert sorted(other.scan(where()), key=lambda record: record.id) == sorted(
                kept, key=lambda record: record.id
            )

    def test_put_returns_the_records_in_the_order_given(self, store: JournaledStore) -> None:
        texts = [f"number {n}" for n in (3, 1, 2)]
        kept = keep(store, *(sample(text, created_at=NOW - n * SECOND) for n, text in enumerate(texts)))
        assert [record.content for record in kept] == texts

    def test_put_takes_records_of_several_places_at_once(self, store: JournaledStore) -> None:
        keep(store, sample("here"), sample("there", workspace="other"), sample("everywhere", tier="account"))
        assert {record.content for record in store.scan(where())} == {"here", "everywhere"}
        assert {record.content for record in store.scan(where(Address(workspace="other")))} == {"there", "everywhere"}

    def test_put_of_nothing_is_nothing(self, store: JournaledStore) -> None:
        assert list(store.put([])) == []
        assert store.stats(where()).total == 0

    def test_an_id_that_exists_is_a_conflict_and_none_of_the_batch_is_stored(self, store: JournaledStore) -> None:
        (old,) = keep(store, sample("the first"))
        twin = sample("an impostor", id=old.id)
        with pytest.raises(ConflictError):
            store.put([sample("before it"), twin, sample("after it")])
        assert list(store.scan(where())) == [old]
        assert store.search_text(TextQuery(words=("impostor", "before", "after")), where(), 10) == []

    def test_an_id_given_twice_in_one_batch_is_a_conflict(self, store: JournaledStore) -> None:
        one = sample("one")
        with pytest.raises(ConflictError):
            store.put([one, sample("two", id=one.id)])
        assert list(store.scan(where())) == []

    def test_get_finds_those_that_exist_in_whatever_state(self, store: JournaledStore) -> None:
        states = [{}, {"expires_at": NOW - SECOND}, {"archived_at": NOW}, {"superseded_by": "f" * 32}]
        kept = keep(store, *(sample("a", **state) for state in states), sample("not asked for"))[:-1]
        assert sorted(ids(store.get(["no-such-id", *ids(kept)], HERE))) == sorted(ids(kept))
        assert store.get([], HERE) == []

    def test_get_gives_each_once_however_often_it_is_asked_for(self, store: JournaledStore) -> None:
        (kept,) = keep(store, sample("once"))
        assert store.get([kept.id, kept.id], HERE) == [kept]

    def test_get_takes_thousands_of_ids(self, store: JournaledStore) -> None:
        kept = keep(store, *(sample(f"number {n}") for n in range(1200)))
        assert set(ids(store.get(ids(kept), HERE))) == set(ids(kept))

    def test_update_replaces_what_may_change(self, store: JournaledStore) -> None:
        (old,) = keep(store, sample("ship it", **FULL))
        store.update([replace(old, **CHANGES)])
        assert found(store, old.id) == replace(old, **CHANGES)

    def test_update_can_empty_what_may_be_empty(self, store: JournaledStore) -> None:
        (old,) = keep(store, sample("ship it", **FULL))
        optional = ("expires_at", "archived_at", "superseded_by", "embedding", "embedding_model")
        emptied = replace(old, tags=(), references=(), metadata={}, **dict.fromkeys(optional))
        store.update([emptied])
        assert found(store, old.id) == emptied

    def test_update_leaves_content_address_and_creation_time(self, store: JournaledStore) -> None:
        (old,) = keep(store, sample("original words"))
        store.update(
            [
                replace(
                    old, content="forged words", address=replace(old.address, agent="mallory"), created_at=NOW - SECOND
                )
            ]
        )
        assert found(store, old.id) == old
        assert store.search_text(TextQuery(words=("forged",)), where(), 10) == []

    def test_update_of_one_that_is_not_there_changes_none(self, store: JournaledStore) -> None:
        (old,) = keep(store, sample("here"))
        with pytest.raises(NotFoundError):
            store.update([replace(old, importance=1.0), sample("never put")])
        assert list(store.scan(where())) == [old]

    def test_delete_removes_it_from_reading_and_from_search(self, store: JournaledStore) -> None:
        gone, kept = keep(store, sample("the heron flew"), sample("the heron stayed"))
        store.delete([gone])
        assert found(store, gone.id) is None
        assert list(store.scan(where())) == [kept]
        assert [match.record for match in store.search_text(TextQuery(words=("heron",)), where(), 10)] == [kept]

    def test_the_words_of_the_deleted_do_not_find_what_comes_after(self, store: JournaledStore) -> None:
        (gone,) = keep(store, sample("the heron flew"))
        store.delete([gone])
        keep(store, sample("a fox in its place"))
        assert store.search_text(TextQuery(words=("heron", "flew")), where(), 10) == []

    def test_delete_of_one_that_is_not_there_deletes_none(self, store: JournaledStore) -> None:
        (kept,) = keep(store, sample("here"))
        with pytest.raises(NotFoundError):
            store.delete([kept, sample("never put")])
        assert list(store.scan(where())) == [kept]

    def test_a_deleted_id_may_be_put_again(self, store: JournaledStore) -> None:
        (kept,) = keep(store, sample("back again", **FULL))
        store.delete([kept])
        store.put([kept])
        assert found(store, kept.id) == kept

    def test_touch_counts_retrievals_and_is_seen_at_once(self, store: JournaledStore) -> None:
        one, two = keep(store, sample("one"), sample("two"))
        store.touch([one, two], NOW + SECOND)
        store.touch([one], NOW + 2 * SECOND)
        assert found(store, one.id) == replace(one, access_count=2, accessed_at=NOW + 2 * SECOND)
        assert found(store, two.id) == replace(two, access_count=1, accessed_at=NOW + SECOND)
        assert [record.access_count for record in store.scan(where())] == [2, 1]

    def test_touch_never_moves_the_last_retrieval_back(self, store: JournaledStore) -> None:
        (one,) = keep(store, sample("one"))
        store.touch([one], NOW + 2 * SECOND)
        store.touch([one], NOW + SECOND)
        store.touch([one], NOW - SECOND)
        assert found(store, one.id) == replace(one, access_count=3, accessed_at=NOW + 2 * SECOND)

    def test_touch_of_one_that_is_gone_is_no_error(self, store: JournaledStore) -> None:
        one, other = keep(store, sample("one"), sample("other"))
        store.delete([one])
        store.touch([one, other], NOW)
        store.update([replace(other, importance=1.0)])
        assert found(store, one.id) is None

    def test_touch_is_durable_with_the_next_write(
        self, store: JournaledStore, reopen: Callable[[], JournaledStore]
    ) -> None:
        (one,) = keep(store, sample("one"))
        store.touch([one], NOW + SECOND)
        keep(store, sample("the next write"))
        with closing(reopen()) as other:
            assert found(other, one.id) == replace(one, access_count=1, accessed_at=NOW + SECOND)

    def test_touch_survives_a_write_that_fails(
        self, store: JournaledStore, reopen: Callable[[], JournaledStore]
    ) -> None:
        (one,) = keep(store, sample("one"))
        store.touch([one], NOW + SECOND)
        with pytest.raises(ConflictError):
            store.put([one])
        touched = replace(one, access_count=1, accessed_at=NOW + SECOND)
        assert found(store, one.id) == touched
        store.close()
        with closing(reopen()) as other:
            assert found(other, one.id) == touched

    def test_touch_is_durable_after_close(self, store: JournaledStore, reopen: Callable[[], JournaledStore]) -> None:
        (one,) = keep(store, sample("one"))
        with closing(reopen()) as other:
            other.touch([one], NOW + SECOND)
        assert found(store, one.id) == replace(one, access_count=1, accessed_at=NOW + SECOND)

    def test_retrievals_counted_by_two_processes_add_up(
        self, store: JournaledStore, reopen: Callable[[], JournaledStore]
    ) -> None:
        (one,) = keep(store, sample("one"))
        with closing(reopen()) as other:
            other.touch([one], NOW + SECOND)
            store.touch([one], NOW + 2 * SECOND)
        keep(store, sample("the next write"))
        assert found(store, one.id) == replace(one, access_count=2, accessed_at=NOW + 2 * SECOND)

    def test_scan_goes_by_creation_time_whatever_the_order_of_writing(self, store: JournaledStore) -> None:
        offsets = (5, 1, 4, 2, 3, 0)
        kept = keep(store, *(sample(f"{n}", created_at=NOW + n * TICK, tier=_tier(n)) for n in offsets))
        oldest_first = sorted(kept, key=lambda record: record.created_at)
        assert list(store.scan(where())) == oldest_first
        assert list(store.scan(where(), newest_first=True)) == oldest_first[::-1]

    def test_scan_keeps_to_its_limit(self, store: JournaledStore) -> None:
        kept = keep(store, *(sample(f"{n}", created_at=NOW + n * SECOND, tier=_tier(n)) for n in range(6)))
        assert list(store.scan(where(), limit=4)) == kept[:4]
        assert list(store.scan(where(), newest_first=True, limit=4)) == kept[:1:-1]
        assert list(store.scan(where(), limit=0)) == []

    def test_scan_gives_thousands_once_each(self, store: JournaledStore) -> None:
        kept = keep(store, *(sample(f"number {n}", created_at=NOW + n // 7 * SECOND) for n in range(1500)))
        times = [record.created_at for record in kept]
        for limit in (None, 1000, 1001):
            forth = list(store.scan(where(), limit=limit))
            back = list(store.scan(where(), newest_first=True, limit=limit))
            assert [record.created_at for record in forth] == times[:limit]
            assert [record.created_at for record in back] == times[::-1][:limit]
            assert len(set(ids(forth))) == len(set(ids(back))) == len(forth)

    def test_others_may_write_while_a_scan_goes_on(
        self, store: JournaledStore, reopen: Callable[[], JournaledStore]
    ) -> None:
        kept = keep(store, *(sample(f"number {n}", created_at=NOW + n * SECOND) for n in range(1200)))
        seen: list[str] = []
        with closing(reopen()) as other:
            for record in store.scan(where()):
                seen.append(record.id)
                if len(seen) % 400 == 1:
                    store.update([replace(record, importance=1.0)])
                    keep(other, sample("written meanwhile", created_at=NOW - SECOND))
                    other.delete([record])
        assert seen == ids(kept)

    def test_stats_count_what_the_filter_sees(self, store: JournaledStore) -> None:
        keep(
            store,
            sample("live", agent="atlas", embedding=b"\x00\x00\x80?"),
            sample("expired", kind="task", expires_at=NOW),
            sample("archived", archived_at=NOW, tier="account", agent="atlas", embedding=b"\x00\x00\x80?"),
            sample("superseded", superseded_by="f" * 32, tier="conversation", conversation="c-1"),
            sample("elsewhere", workspace="other"),
        )
        stats = store.stats(where())
        assert (stats.total, stats.embedded) == (4, 2)
        assert stats.states == {"live": 1, "expired": 1, "archived": 1, "superseded": 1}
        assert stats.kinds == {"fact": 3, "task": 1}
        assert stats.tiers == {"workspace": 2, "account": 1, "conversation": 1}
        assert stats.agents == {"atlas": 2, "": 2}
        assert stats.size_bytes > 0
        assert store.stats(where(kinds=("task",))).total == 1

    def test_stats_of_nothing_are_zero(self, store: JournaledStore) -> None:
        stats = store.stats(where())
        assert (stats.total, stats.embedded, stats.size_bytes) == (0, 0, 0)
        assert {**stats.states, **stats.kinds, **stats.tiers, **stats.agents} == {}

    def test_asking_an_empty_store_finds_nothing(self, store: JournaledStore) -> None:
        assert store.get(["f" * 32], HERE) == []
        assert list(store.scan(where())) == []
        assert store.search_text(TextQuery(words=("anything",)), where(), 10) == []


def _tier(number: int) -> str:
    """Memories of the workspace and of the account by turns: what is scanned may be kept in two places."""
    return "account" if number % 2 else "workspace"
