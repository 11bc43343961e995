"""Claims about shelves: things under keys, with versions, in the transactions of their place."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from msgspec.structs import replace

from recollect.conformance.samples import NOW, OTHER, PLACE, SECOND, SHARED, TICK, failing, keep, sample, where
from recollect.stores.port import OnDisk, Place, Store
from recollect.stores.shelves import ShelfItem
from recollect.values.errors import ConflictError

FULL = ShelfItem(
    "steps",
    "s-1",
    {"title": "Größe \x00 👩‍👧", "nested": {"list": [1, 2.5, None, True, ""], "": {}}, "large": 10**40},
    parent="w-1",
    account="alice",
    agent="atlas",
    created_at=NOW - SECOND + TICK,
    changed_at=NOW + TICK,
)
"""A value other than the default for every field that a thing has."""


def thing(key: str, shelf: str = "steps", **fields: Any) -> ShelfItem:
    return ShelfItem(shelf, key, fields.pop("body", {"key": key}), **fields)


def keys(store: Store, shelf: str | None = "steps", place: Place = PLACE, **options: Any) -> list[str]:
    return [item.key for item in store.shelf(place, shelf, **options)]


class ShelfClaims:
    """What is kept under a key is there, as it was kept last, until it is removed."""

    def test_every_field_comes_back_as_it_was_kept(self, store: Store, reopen: Callable[[], Store]) -> None:
        stored = store.keep(PLACE, FULL)
        assert stored == replace(FULL, version=1)
        assert store.find(PLACE, "steps", ["s-1"]) == [stored]
        store.close()
        with closing(reopen()) as other:
            (back,) = other.shelf(PLACE)
            assert back == stored
            assert repr(back.body) == repr(FULL.body)

    def test_fields_left_empty_come_back_empty(self, store: Store) -> None:
        stored = store.keep(PLACE, ShelfItem("steps", "s-1", {}))
        assert stored == ShelfItem("steps", "s-1", {}, version=1)
        assert store.find(PLACE, "steps", ["s-1"]) == [stored]

    def test_the_last_one_kept_under_a_key_is_there(self, store: Store, reopen: Callable[[], Store]) -> None:
        store.keep(PLACE, FULL)
        new = ShelfItem(
            "steps", "s-1", {"other": 1}, parent="w-2", created_at=NOW + SECOND, changed_at=NOW + 2 * SECOND
        )
        stored = store.keep(PLACE, new)
        assert stored == replace(new, version=2, created_at=FULL.created_at)
        assert store.find(PLACE, "steps", ["s-1"]) == [stored]
        with closing(reopen()) as other:
            assert list(other.shelf(PLACE)) == [stored]

    def test_versions_count_from_one_and_anew_after_a_removal(self, store: Store) -> None:
        assert [store.keep(PLACE, thing("s-1", version=40)).version for _ in range(3)] == [1, 2, 3]
        assert store.remove(PLACE, "steps", ["s-1"]) == 1
        again = store.keep(PLACE, thing("s-1", created_at=NOW))
        assert (again.version, again.created_at) == (1, NOW)

    def test_keep_expects_the_version_that_is_there(self, store: Store) -> None:
        first = store.keep(PLACE, thing("s-1"), expect=0)
        second = store.keep(PLACE, thing("s-1", body={"n": 2}), expect=1)
        for expected in (0, 1, 3):
            with pytest.raises(ConflictError):
                store.keep(PLACE, thing("s-1", body={"n": 3}), expect=expected)
        with pytest.raises(ConflictError):
            store.keep(PLACE, thing("s-2"), expect=1)
        assert first.version == 1
        assert list(store.shelf(PLACE)) == [second]
        store.remove(PLACE, "steps", ["s-1"])
        with pytest.raises(ConflictError):
            store.keep(PLACE, thing("s-1"), expect=2)
        assert store.keep(PLACE, thing("s-1"), expect=0).version == 1

    def test_an_exact_one_has_the_version_and_times_that_it_is_given(
        self, store: Store, reopen: Callable[[], Store]
    ) -> None:
        copied = replace(FULL, version=41)
        assert store.keep(PLACE, copied, expect=0, exact=True) == copied
        assert store.find(PLACE, "steps", ["s-1"]) == [copied]
        other = replace(copied, version=3, created_at=NOW - 2 * SECOND, changed_at=NOW - SECOND, body={"n": 1})
        with pytest.raises(ConflictError):
            store.keep(PLACE, other, expect=3, exact=True)
        store.keep(PLACE, thing("behind"))
        assert store.keep(PLACE, other, exact=True) == other
        store.close()
        with closing(reopen()) as again:
            assert next(again.shelf(PLACE)) == other
            changed = again.keep(PLACE, replace(other, created_at=NOW), expect=3)
            assert (changed.version, changed.created_at) == (4, other.created_at)

    def test_a_version_written_by_another_process_is_expected(self, store: Store, reopen: Callable[[], Store]) -> None:
        with closing(reopen()) as other:
            store.keep(PLACE, thing("s-1"), expect=0)
            other.keep(PLACE, thing("s-1"), expect=1)
            with pytest.raises(ConflictError):
                store.keep(PLACE, thing("s-1"), expect=1)
            store.keep(PLACE, thing("s-1"), expect=2)
            assert [item.version for item in other.shelf(PLACE)] == [3]

    def test_find_gives_those_that_are_there_in_the_order_of_the_keys(self, store: Store) -> None:
        for key in ("a", "b", "c"):
            store.keep(PLACE, thing(key))
        assert [item.key for item in store.find(PLACE, "steps", ["c", "nowhere", "a", "c"])] == ["c", "a"]
        assert store.find(PLACE, "steps", []) == store.find(PLACE, "pages", ["a"]) == []

    def test_the_same_key_may_be_on_two_shelves(self, store: Store) -> None:
        step, page = store.keep(PLACE, thing("a")), store.keep(PLACE, thing("a", "pages"))
        assert (step.version, page.version) == (1, 1)
        assert list(store.shelf(PLACE, "pages")) == [page]
        assert list(store.shelf(PLACE)) == [step, page]
        store.remove(PLACE, "steps", ["a"])
        assert list(store.shelf(PLACE)) == [page]

    def test_a_shelf_is_in_the_order_in_which_things_were_first_kept(
        self, store: Store, reopen: Callable[[], Store]
    ) -> None:
        for key in ("c", "a", "b"):
            store.keep(PLACE, thing(key, created_at=NOW - len(keys(store)) * SECOND))
        store.keep(PLACE, thing("c", body={"changed": True}))
        assert keys(store) == ["c", "a", "b"]
        assert keys(store, newest_first=True) == ["b", "a", "c"]
        store.remove(PLACE, "steps", ["a"])
        store.keep(PLACE, thing("a"))
        with closing(reopen()) as other:
            for opened in (store, other):
                assert keys(opened) == ["c", "b", "a"]
                assert keys(opened, newest_first=True) == ["a", "b", "c"]

    def test_a_shelf_is_read_in_pages(self, store: Store) -> None:
        for key in "abcde":
            store.keep(PLACE, thing(key))
        store.keep(PLACE, thing("c", "pages"))
        assert keys(store, limit=2) == ["a", "b"]
        assert keys(store, after="b", limit=2) == ["c", "d"]
        assert keys(store, after="e") == keys(store, limit=0) == []
        assert keys(store, newest_first=True, after="d", limit=2) == ["c", "b"]

    def test_a_shelf_is_narrowed_by_parent_and_by_text(self, store: Store) -> None:
        store.keep(PLACE, thing("a", parent="w-1", body={"title": "The Blue STRASSE", "n": 41}))
        store.keep(PLACE, thing("b", parent="w-2", body={"title": "a blue heron", "nested": [{"deep": "Größe"}]}))
        store.keep(PLACE, thing("c", body={"title": "100% _done_"}))
        assert keys(store, parent="w-1") == ["a"]
        assert keys(store, parent="w") == []
        assert keys(store, contains="BLUE") == ["a", "b"]
        assert keys(store, contains="straße") == ["a"]
        assert keys(store, contains="GRÖSSE") == ["b"]
        assert keys(store, contains="0% _D") == ["c"]
        assert keys(store, contains="%e%") == []
        assert keys(store, contains="blue", parent="w-2") == ["b"]
        assert keys(store, contains="blue", limit=1) == ["a"]
        assert keys(store, contains="blue", after="a", limit=1) == ["b"]
        store.keep(PLACE, thing("a", parent="w-3", body={"title": "moved"}))
        assert keys(store, parent="w-1") == keys(store, contains="strasse") == []

    def test_remove_tells_how_many_were_there(self, store: Store, reopen: Callable[[], Store]) -> None:
        for key in ("a", "b", "c"):
            store.keep(PLACE, thing(key))
        assert store.remove(PLACE, "steps", ["a", "nowhere", "c", "a"]) == 2
        assert store.remove(PLACE, "steps", ["a"]) == store.remove(PLACE, "pages", ["b"]) == 0
        assert keys(store) == ["b"]
        with closing(reopen()) as other:
            assert keys(other) == ["b"]

    def test_removing_where_nothing_was_kept_creates_nothing(self, store: Store) -> None:
        assert store.remove(OTHER, "steps", ["a"]) == 0
        assert store.places("default") == []

    def test_each_place_has_shelves_of_its_own(self, store: Store) -> None:
        places = [PLACE, SHARED, OTHER, Place("acme", "default"), Place("acme", None)]
        for place in places:
            store.keep(place, thing("a", body={"place": list(place)}))
        for place in places:
            assert [item.body for item in store.shelf(place)] == [{"place": list(place)}]
        assert store.places("default") == [PLACE, OTHER, SHARED]

    def test_things_go_with_the_transaction(self, store: Store) -> None:
        remaining, gone = store.keep(PLACE, thing("kept")), store.keep(PLACE, thing("gone"))
        with failing(store, PLACE):
            changed = store.keep(PLACE, replace(remaining, body={"changed": True}), expect=1)
            store.remove(PLACE, "steps", ["gone"])
            keep(store, sample("a heron"))
            new = store.keep(PLACE, thing("new"))
            assert list(store.shelf(PLACE)) == [changed, new]
            assert store.find(PLACE, "steps", ["gone", "new"]) == [new]
            with pytest.raises(ConflictError):
                store.keep(PLACE, remaining, expect=1)
        assert list(store.shelf(PLACE)) == [remaining, gone]
        assert list(store.scan(where())) == []
        with store.transaction(PLACE):
            store.keep(PLACE, thing("first"))
            with failing(store, PLACE):
                store.keep(PLACE, thing("second"))
                store.remove(PLACE, "steps", ["first", "kept"])
            assert keys(store) == ["kept", "gone", "first"]
        assert keys(store) == ["kept", "gone", "first"]
        assert store.keep(PLACE, remaining, expect=1).version == 2

    def test_things_go_with_their_place(self, store: Store) -> None:
        store.keep(OTHER, thing("a"))
        store.keep(PLACE, thing("b"))
        store.drop(OTHER)
        assert keys(store, place=OTHER) == store.find(OTHER, "steps", ["a"]) == []
        assert keys(store) == ["b"]
        assert store.keep(OTHER, thing("a"), expect=0).version == 1

    def test_things_survive_compaction(self, store: Store, reopen: Callable[[], Store]) -> None:
        if not isinstance(store, OnDisk):
            pytest.skip("nothing is compacted")
        for key in ("c", "a", "b", "gone"):
            store.keep(PLACE, thing(key))
        changed = store.keep(PLACE, thing("c", body={"changed": True}))
        store.remove(PLACE, "steps", ["gone"])
        for clean in (store.scrub, store.compact):
            clean(PLACE)
            assert keys(store) == ["c", "a", "b"]
        assert store.keep(PLACE, changed, expect=2).version == 3
        with closing(reopen()) as other:
            assert keys(other) == ["c", "a", "b"]

    def test_hundreds_of_things_come_once_each(self, store: Store) -> None:
        names = [f"k{n}" for n in range(1100)]
        with store.transaction(PLACE):
            for name in names:
                store.keep(PLACE, thing(name))
        assert keys(store) == names
        assert keys(store, newest_first=True) == names[::-1]
        assert keys(store, after="k999") == names[1000:]
