"""Claims about places: where something is, dropping it, and what is left on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from recollect.conformance.audit import entry
from recollect.conformance.samples import (
    NOW,
    PLACE,
    SECOND,
    SHARED,
    contents,
    delete,
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
from recollect.stores.port import Administered, OnDisk, Place, Store
from recollect.stores.shelves import ShelfItem
from recollect.stores.undo import Undo
from recollect.values.record import Address, pack

SHOP = Place("default", "shop")


class PlaceClaims:
    """Workspaces are apart from each other, and go as a whole."""

    def test_places_are_those_where_something_was_stored_workspaces_first(self, store: Store) -> None:
        assert store.places("acme") == []
        keep(
            store,
            sample(tenant="acme", tier="account"),
            sample(tenant="acme", workspace="shop"),
            sample(tenant="acme", workspace="lab"),
            sample(tier="account"),
        )
        *workspaces, last = store.places("acme")
        assert sorted(workspaces) == [Place("acme", "lab"), Place("acme", "shop")]
        assert last == Place("acme", None)
        assert store.places("default") == [SHARED]
        assert store.places("nobody") == []

    def test_tenants_are_those_that_have_a_place(self, store: Store) -> None:
        if not isinstance(store, Administered):
            pytest.skip("the store does not know its tenants")
        assert store.tenants() == []
        keep(store, sample(tenant="acme"), sample(tier="account"))
        assert sorted(store.tenants()) == ["acme", "default"]

    def test_asking_creates_nothing(self, store: Store) -> None:
        view, place = Address(tenant="acme", workspace="shop"), Place("acme", "shop")
        list(store.scan(where(view)))
        store.get(place, ["x"])
        search(store, words("x"), where(view))
        total(store, where(view))
        store.touch(place, ["x"], NOW)
        store.embed(place, "test", {"x": pack([1.0])})
        store.lacking(place, "test", 1, 10)
        store.find(place, "steps", ["x"])
        list(store.shelf(place))
        list(store.entries(place))
        if isinstance(store, OnDisk):
            store.settings(place)
            store.scrub(place)
            assert store.compact(place) == store.size(place) == 0
            assert not store.crowded(place)
            assert store.damage(place) == []
        assert store.places("acme") == []
        if isinstance(store, Administered):
            assert store.tenants() == []

    def test_a_place_is_copied_to_where_a_store_like_this_one_finds_it(self, store: Store) -> None:
        if not isinstance(store, OnDisk):
            pytest.skip("the store is not one of files")
        records = keep(store, sample("here"), sample("there", workspace="shop"), sample("all", tier="account"))
        with tempfile.TemporaryDirectory() as folder:
            store.check_apart(folder)
            for place in store.places("default"):
                store.copy(place, folder)
            keep(store, sample("later"))
            copy = store.elsewhere(folder)
            try:
                assert copy.places("default") == store.places("default")
                for record in records:
                    assert copy.get(Place.of(record), [record.id]) == [record]
                assert sorted(contents(copy.scan(where()))) == ["all", "here"]
            finally:
                copy.close()

    def test_names_that_differ_in_case_only_are_apart(self, store: Store) -> None:
        names = ["shop", "Shop", "SHOP", "s.h-o_p", "s@h+op", "0"]
        for name in names:
            keep(store, sample(f"in workspace {name}", workspace=name), sample(f"of tenant {name}", tenant=name))
        assert sorted(store.places("default")) == sorted(Place("default", name) for name in names)
        if isinstance(store, Administered):
            assert sorted(store.tenants()) == sorted(["default", *names])
        for name in names:
            assert contents(store.scan(where(Address(workspace=name)))) == [f"in workspace {name}"]
            assert contents(store.scan(where(Address(tenant=name)))) == [f"of tenant {name}"]

    def test_a_name_that_begins_with_a_space_is_kept_apart(self, store: Store) -> None:
        """Nobody can choose one: such workspaces are the engine's own."""
        keep(store, sample("the engine's", workspace=" shop"), sample("somebody's", workspace="shop"))
        assert {place: place.reserved for place in store.places("default")} == {
            Place("default", " shop"): True,
            Place("default", "shop"): False,
        }
        assert contents(store.scan(where(Address(workspace=" shop")))) == ["the engine's"]
        assert contents(store.scan(where(Address(workspace="shop")))) == ["somebody's"]

    def test_the_same_id_may_live_in_two_places(self, store: Store) -> None:
        (here,) = keep(store, sample("here"))
        (elsewhere,) = keep(store, replace(here, address=Address(workspace="other")))
        assert here.id == elsewhere.id
        update(store, replace(elsewhere, importance=1.0))
        store.touch(Place("default", "other"), [elsewhere.id], NOW + SECOND)
        assert stored(store, here.id) == here
        (back,) = store.get(Place("default", "other"), [here.id])
        assert back == replace(elsewhere, importance=1.0, access_count=1, accessed_at=NOW + SECOND)

    def test_drop_removes_a_workspace_with_everything_in_it(self, store: Store) -> None:
        view = Address(workspace="shop")
        gone, stays, shared = keep(store, sample("a heron", workspace="shop"), sample("b"), sample("c", tier="account"))
        store.append(SHOP, entry("in the shop"), Undo([gone]))
        store.append(SHARED, entry("for all"))
        store.drop(SHOP)
        assert store.places("default") == [PLACE, SHARED]
        assert list(store.scan(where(view))) == [shared]
        assert search(store, words("heron"), where(view)) == []
        assert list(store.entries(SHOP)) == []
        assert store.written(SHOP) == 0
        assert store.undo_of(SHOP, 1) is None
        assert sorted(ids(store.scan(where()))) == sorted([stays.id, shared.id])
        assert [line.message for line in store.entries(SHARED)] == ["for all"]

    def test_a_dropped_workspace_may_begin_anew(self, store: Store) -> None:
        keep(store, sample("old", workspace="shop"))
        store.append(SHOP, entry("old"))
        store.drop(SHOP)
        (new,) = keep(store, sample("new", workspace="shop"))
        assert list(store.scan(where(Address(workspace="shop")))) == [new]
        assert store.append(SHOP, entry("new")).seq == 1

    def test_dropping_what_is_not_there_is_no_error(self, store: Store) -> None:
        keep(store, sample("here"))
        store.drop(Place("default", "nowhere"))
        assert store.places("default") == [PLACE]

    def test_others_lose_sight_of_a_dropped_workspace_at_once(self, store: Store, reopen: Callable[[], Store]) -> None:
        (old,) = keep(store, sample("a heron"))
        store.keep(PLACE, ShelfItem("steps", "s-1", {}))
        with closing(reopen()) as other:
            assert list(other.scan(where())) == [old]
            assert seen(other, where()) == [old.id]
            touch(other, NOW + SECOND, old)
            store.drop(PLACE)
            assert list(other.scan(where())) == []
            assert other.get(PLACE, [old.id]) == []
            assert search(other, words("heron")) == seen(other, where()) == []
            assert total(other, where()) == 0
            assert list(other.shelf(PLACE)) == list(other.entries(PLACE)) == []
            assert other.places("default") == []
            (new,) = keep(other, sample("new"))
            assert list(store.scan(where())) == [new]
        assert list(store.scan(where())) == [new]

    def test_a_store_closes_well_after_its_workspace_was_dropped_elsewhere(
        self, store: Store, reopen: Callable[[], Store]
    ) -> None:
        (old,) = keep(store, sample("old"))
        other = reopen()
        assert list(other.scan(where())) == [old]
        touch(other, NOW + SECOND, old)
        store.drop(PLACE)
        other.close()
        assert store.places("default") == []


class DiskClaims:
    """What a store of files promises of them."""

    @pytest.fixture
    def disk(self, store: Store) -> OnDisk:
        if not isinstance(store, OnDisk):
            pytest.skip("the store keeps no files")
        return store

    def test_scrub_and_compact_keep_all_that_is_not_deleted(self, store: Store, disk: OnDisk) -> None:
        remaining, gone = keep(store, sample("a heron", embedding=pack([1.0])), sample("a fox " * 1000))
        sealed = store.append(PLACE, entry(), Undo([remaining]))
        touch(store, NOW + SECOND, remaining)
        delete(store, gone)
        touched = replace(remaining, access_count=1, accessed_at=NOW + SECOND)
        for clean in (disk.scrub, disk.compact, disk.scrub):
            clean(PLACE)
            assert list(store.scan(where())) == [touched]
            assert search(store, words("heron", "fox")) == [touched]
            assert list(store.entries(PLACE)) == [sealed]
            assert store.undo_of(PLACE, sealed.seq) == Undo([remaining], [], [])

    def test_compaction_keeps_the_order_of_storing(self, store: Store, disk: OnDisk) -> None:
        records = keep(store, *(sample(f"number {n}") for n in range(6)))
        update(store, replace(records[1], tags=("changed",)))
        delete(store, records[3])
        disk.compact(PLACE)
        assert ids(store.scan(where())) == [record.id for record in records if record is not records[3]]

    def test_compact_gives_space_back(self, store: Store, disk: OnDisk) -> None:
        many = keep(store, *(sample(f"number {n} " * 200) for n in range(200)))
        disk.scrub(PLACE)
        full = disk.size(PLACE)
        delete(store, *many)
        deleted = disk.size(PLACE)
        freed = disk.compact(PLACE)
        assert freed > 0 or deleted < full / 2
        assert disk.size(PLACE) < full / 2

    def test_a_place_is_as_large_as_what_is_in_it(self, store: Store, disk: OnDisk) -> None:
        assert disk.size(PLACE) == 0
        keep(store, sample("a heron " * 1000))
        assert disk.size(PLACE) > 8000
        assert disk.size(SHARED) == 0

    def test_a_healthy_store_has_no_damage(self, store: Store, disk: OnDisk) -> None:
        remaining, gone = keep(store, sample("a heron"), sample({"json": "北京"}, tags=("x",)))
        update(store, replace(remaining, tags=("y",), access_count=3))
        store.keep(PLACE, ShelfItem("steps", "s-1", {}))
        store.remove(PLACE, "steps", ["s-1"])
        delete(store, gone)
        assert disk.damage(PLACE) == []

    def test_after_scrub_or_compact_no_trace_of_the_deleted_is_on_disk(
        self, store: Store, disk: OnDisk, folder: Path
    ) -> None:
        for clean, word in ((disk.scrub, "zugunruhe"), (disk.compact, "quetzalcoatl")):
            remaining, *gone = keep(
                store,
                sample("stays"),
                sample(f"the {word} of herons"),
                sample({word: [word]}, tags=(word,), source=word, metadata={"also": word}),
                *(sample(f"number {n} has {word}{n} in it") for n in range(50)),
            )
            update(store, *(replace(record, tags=(word, "more")) for record in gone))
            store.keep(PLACE, ShelfItem("steps", word, {"title": word}))
            store.keep(PLACE, ShelfItem("steps", "stays", {"title": word}))
            store.keep(PLACE, ShelfItem("steps", "stays", {"title": "changed"}))
            assert word.encode() in _bytes(folder)
            delete(store, *gone)
            store.remove(PLACE, "steps", [word])
            clean(PLACE)
            assert word.encode() not in _bytes(folder)
            assert stored(store, remaining.id) == remaining

    def test_purged_undo_data_leaves_no_trace_and_other_undo_data_stays(
        self, store: Store, disk: OnDisk, folder: Path
    ) -> None:
        for clean, word in ((disk.scrub, "zugunruhe"), (disk.compact, "quetzalcoatl")):
            gone, other = keep(store, sample(f"the {word} of herons", tags=(word,)), sample(f"undo me {word[:4]}"))
            item = ShelfItem("steps", word, {"title": word}, version=1)
            for record in (gone, other):
                with store.transaction(PLACE):
                    delete(store, record)
                    sealed = store.append(PLACE, entry(deleted=[record.id]), Undo([record]))
            store.append(PLACE, entry(), Undo.of([gone], ()))
            documents = store.append(PLACE, entry(), Undo(things=[item]))
            assert word.encode() in _bytes(folder)
            assert store.purge(PLACE, ids=[gone.id], seqs=[documents.seq]) == 3
            clean(PLACE)
            assert word.encode() not in _bytes(folder)
            assert list(store.undos(PLACE)) == [(sealed.seq, Undo([other], [], []))]
            store.put(PLACE, [other])
            store.purge(PLACE, seqs=None)

    def test_dropping_leaves_no_trace_on_disk(self, store: Store, folder: Path) -> None:
        keep(store, sample("stays"), sample("the zugunruhe of herons", workspace="shop"))
        assert b"zugunruhe" in _bytes(folder)
        store.drop(SHOP)
        assert b"zugunruhe" not in _bytes(folder)


def _bytes(folder: Path) -> bytes:
    """Everything on disk, names included, in one piece and in small letters."""
    pieces: list[bytes] = []
    for path, _, names in os.walk(folder):
        for name in names:
            file = Path(path, name)
            pieces += os.fsencode(file), file.read_bytes()
    return b"\n".join(pieces).lower()
