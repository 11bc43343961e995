"""Claims about places: tenants and workspaces, dropping them, and what is left on disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from recollect.conformance.audit import entry
from recollect.conformance.samples import HERE, NOW, PLACE, SECOND, SHARED, found, ids, keep, sample, where
from recollect.record import Address
from recollect.stores.port import JournaledStore, Place
from recollect.text.query import TextQuery


class PlaceClaims:
    """Workspaces are apart from each other, and go as a whole."""

    def test_tenants_and_workspaces_are_those_that_hold_something(self, store: JournaledStore) -> None:
        assert store.tenants() == []
        assert store.workspaces("acme") == []
        keep(
            store,
            sample(tenant="acme", workspace="shop"),
            sample(tenant="acme", workspace="lab"),
            sample(tier="account"),
        )
        assert sorted(store.tenants()) == ["acme", "default"]
        assert sorted(store.workspaces("acme")) == ["lab", "shop"]
        assert store.workspaces("default") == []
        assert store.workspaces("nobody") == []

    def test_asking_creates_nothing(self, store: JournaledStore) -> None:
        view = Address(tenant="acme", workspace="shop")
        list(store.scan(where(view)))
        store.get(["x"], view)
        store.search_text(TextQuery(words=("x",)), where(view), 10)
        store.stats(where(view))
        store.touch([sample(tenant="acme")], NOW)
        store.scrub(Place("acme", "shop"))
        assert store.compact(Place("acme", "shop")) == 0
        assert store.damage(Place("acme", "shop")) == []
        assert store.tenants() == []

    def test_names_that_differ_in_case_only_are_apart(self, store: JournaledStore) -> None:
        names = ["shop", "Shop", "SHOP", "s.h-o_p", "s@h+op", "0"]
        for name in names:
            keep(store, sample(f"in workspace {name}", workspace=name), sample(f"of tenant {name}", tenant=name))
        assert sorted(store.workspaces("default")) == sorted(names)
        assert sorted(store.tenants()) == sorted(["default", *names])
        for name in names:
            assert [r.content for r in store.scan(where(Address(workspace=name)))] == [f"in workspace {name}"]
            assert [r.content for r in store.scan(where(Address(tenant=name)))] == [f"of tenant {name}"]

    def test_the_same_id_may_live_in_two_workspaces(self, store: JournaledStore) -> None:
        (here,) = keep(store, sample("here"))
        (there,) = keep(store, replace(here, address=Address(workspace="other")))
        assert here.id == there.id
        store.update([replace(there, importance=1.0)])
        assert found(store, here.id) == here
        assert found(store, here.id, there.address) == replace(there, importance=1.0)

    def test_drop_removes_a_workspace_with_everything_in_it(self, store: JournaledStore) -> None:
        view = Address(workspace="shop")
        gone, stays, shared = keep(store, sample("a heron", workspace="shop"), sample("b"), sample("c", tier="account"))
        store.append(Place("default", "shop"), entry("in the shop"), before=[gone])
        store.append(SHARED, entry("for all"))
        store.drop("default", "shop")
        assert store.workspaces("default") == ["default"]
        assert list(store.scan(where(view))) == [shared]
        assert store.search_text(TextQuery(words=("heron",)), where(view), 10) == []
        assert list(store.entries(Place("default", "shop"))) == []
        assert store.written(Place("default", "shop")) == 0
        assert store.before(Place("default", "shop"), 1) is None
        assert sorted(ids(store.scan(where()))) == sorted([stays.id, shared.id])
        assert [one.message for one in store.entries(SHARED)] == ["for all"]

    def test_a_dropped_workspace_may_begin_anew(self, store: JournaledStore) -> None:
        view, place = Address(workspace="shop"), Place("default", "shop")
        keep(store, sample("old", workspace="shop"))
        store.append(place, entry("old"))
        store.drop("default", "shop")
        (new,) = keep(store, sample("new", workspace="shop"))
        assert list(store.scan(where(view))) == [new]
        assert store.append(place, entry("new")).seq == 1

    def test_dropping_what_is_not_there_is_no_error(self, store: JournaledStore) -> None:
        keep(store, sample("here"))
        store.drop("default", "nowhere")
        assert store.workspaces("default") == ["default"]

    def test_others_lose_sight_of_a_dropped_workspace_at_once(
        self, store: JournaledStore, reopen: Callable[[], JournaledStore]
    ) -> None:
        (old,) = keep(store, sample("a heron"))
        with closing(reopen()) as other:
            assert list(other.scan(where())) == [old]
            other.touch([old], NOW + SECOND)
            store.drop("default", "default")
            assert list(other.scan(where())) == []
            assert other.get([old.id], HERE) == []
            assert other.search_text(TextQuery(words=("heron",)), where(), 10) == []
            assert other.stats(where()).total == 0
            assert other.workspaces("default") == []
            (new,) = keep(other, sample("new"))
            assert list(store.scan(where())) == [new]
        assert list(store.scan(where())) == [new]

    def test_a_store_closes_well_after_its_workspace_was_dropped_elsewhere(
        self, store: JournaledStore, reopen: Callable[[], JournaledStore]
    ) -> None:
        (old,) = keep(store, sample("old"))
        other = reopen()
        assert list(other.scan(where())) == [old]
        other.touch([old], NOW + SECOND)
        store.drop("default", "default")
        other.close()
        assert store.workspaces("default") == []

    def test_scrub_and_compact_keep_all_that_is_not_deleted(self, store: JournaledStore) -> None:
        kept, gone = keep(store, sample("a heron", embedding=b"\x00\x00\x80?"), sample("a fox " * 1000))
        sealed = store.append(PLACE, entry(), before=[kept])
        store.touch([kept], NOW + SECOND)
        store.delete([gone])
        touched = replace(kept, access_count=1, accessed_at=NOW + SECOND)
        for clean in (store.scrub, store.compact, store.scrub):
            clean(PLACE)
            assert list(store.scan(where())) == [touched]
            assert len(store.search_text(TextQuery(words=("heron", "fox")), where(), 10)) == 1
            assert list(store.entries(PLACE)) == [sealed]
            assert store.before(PLACE, sealed.seq) == [kept]

    def test_compact_gives_space_back(self, store: JournaledStore) -> None:
        many = keep(store, *(sample(f"number {n} " * 200) for n in range(200)))
        store.scrub(PLACE)
        full = store.stats(where()).size_bytes
        store.delete(many)
        deleted = store.stats(where()).size_bytes
        freed = store.compact(PLACE)
        compacted = store.stats(where()).size_bytes
        assert freed > 0 or deleted < full / 2
        assert compacted < full / 2

    def test_a_healthy_store_has_no_damage(self, store: JournaledStore) -> None:
        kept, gone = keep(store, sample("a heron"), sample({"json": "北京"}, tags=("x",)))
        store.update([replace(kept, tags=("y",), access_count=3)])
        store.delete([gone])
        assert store.damage(PLACE) == []

    def test_after_scrub_or_compact_no_trace_of_the_deleted_is_on_disk(
        self, store: JournaledStore, folder: Path
    ) -> None:
        for clean, word in ((store.scrub, "zugunruhe"), (store.compact, "quetzalcoatl")):
            kept, *gone = keep(
                store,
                sample("stays"),
                sample(f"the {word} of herons"),
                sample({word: [word]}, tags=(word,), source=word, metadata={"also": word}),
                *(sample(f"number {n} has {word}{n} in it") for n in range(50)),
            )
            store.update([replace(record, tags=(word, "more")) for record in gone])
            assert word.encode() in _bytes(folder)
            store.delete(gone)
            clean(PLACE)
            assert word.encode() not in _bytes(folder)
            assert found(store, kept.id) == kept

    def test_dropping_leaves_no_trace_on_disk(self, store: JournaledStore, folder: Path) -> None:
        keep(store, sample("stays"), sample("the zugunruhe of herons", workspace="shop"))
        assert b"zugunruhe" in _bytes(folder)
        store.drop("default", "shop")
        assert b"zugunruhe" not in _bytes(folder)


def _bytes(folder: Path) -> bytes:
    """Everything on disk, names included, in one piece and in small letters."""
    pieces: list[bytes] = []
    for path, _, names in os.walk(folder):
        for name in names:
            file = Path(path, name)
            pieces += os.fsencode(file), file.read_bytes()
    return b"\n".join(pieces).lower()
