"""Claims about the audit log: sealed, in order, searchable, and able to take a change back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from recollect.conformance.keeping import FULL
from recollect.conformance.samples import NOW, PLACE, SECOND, SHARED, TICK, failing, keep, sample, update
from recollect.stores.audit import Entry, check
from recollect.stores.port import Place, Store
from recollect.stores.shelves import ShelfItem
from recollect.stores.undo import NO_UNDO, OldValues, Undo
from recollect.values.record import new_id, pack


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
        first, second = new_id(), new_id()
        store.append(PLACE, entry("made both", created=[first, second]))
        store.append(PLACE, entry("changed one", changed=[first]))
        store.append(PLACE, entry(f"only mentions {second}"))

        def about(ident: str, **options: Any) -> list[str]:
            return [line.message for line in store.entries(PLACE, about=ident, **options)]

        assert about(first) == ["made both", "changed one"]
        assert about(second) == ["made both"]
        assert about(first[:-1]) == about(first[1:]) == []
        assert about(first, contains=("CHANGED", "nothing")) == ["changed one"]
        assert about(first, newest_first=True, limit=1) == ["changed one"]

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
        assert store.undo_of(nowhere, 1) is None
        assert store.purge(nowhere, seqs=None) == store.purge(nowhere, ids=["a"]) == 0
        assert store.places("nobody") == []

    def test_undo_data_holds_the_old_values_of_what_changed_and_no_content(self, store: Store) -> None:
        records = keep(store, sample("ship it", **FULL), sample({"json": [1, 2.5]}), sample("NUL \x00"))
        sealed = store.append(PLACE, entry("about to change"), Undo.of(records, ()))
        changed = [replace(record, importance=0.0, tags=("new",), archived_at=NOW) for record in records]
        update(store, *changed)
        undo = store.undo_of(PLACE, sealed.seq) or NO_UNDO
        assert undo == Undo([], [OldValues.of(record) for record in records], [])
        assert [values.fields.onto(record) for values, record in zip(undo.changed, changed, strict=True)] == records
        assert all(values.fields.content is UNSET for values in undo.changed)

    def test_undo_data_holds_what_was_deleted_whole(self, store: Store, reopen: Callable[[], Store]) -> None:
        vector = {"embedding": pack([0.25, -1.0]), "embedding_model": "m"}
        records = keep(store, sample("ship it", **FULL), sample({"json": [1, 2.5]}), sample("NUL \x00", **vector))
        with store.transaction(PLACE):
            store.delete(PLACE, [record.id for record in records])
            sealed = store.append(PLACE, entry("deleted"), Undo.of(records, [record.id for record in records]))
        store.close()
        with closing(reopen()) as other:
            assert other.undo_of(PLACE, sealed.seq) == Undo(records, [], [])
            assert other.put(PLACE, records) == records
            assert other.get(PLACE, [records[2].id])[0].embedding == vector["embedding"]

    def test_undo_data_holds_documents_as_they_were(self, store: Store, reopen: Callable[[], Store]) -> None:
        item = store.keep(PLACE, ShelfItem("steps", "s-1", {"done": False}, parent="w-1"))
        absent = ShelfItem("steps", "s-2", {})
        records = keep(store, sample("beside them"))
        items = store.append(PLACE, entry("about to change"), Undo(things=[item, absent]))
        both = store.append(PLACE, entry("about to change more"), Undo.of(records, (), [item]))
        store.keep(PLACE, replace(item, body={"done": True}))
        store.close()
        with closing(reopen()) as other:
            assert other.undo_of(PLACE, items.seq) == Undo([], [], [item, absent])
            assert other.undo_of(PLACE, both.seq) == Undo.of(records, (), [item])
            assert other.purge(PLACE, seqs=None) == 2
            assert other.undo_of(PLACE, items.seq) is None

    def test_many_deleted_at_once_come_back_in_their_order(self, store: Store) -> None:
        records = keep(store, *(sample(f"number {n}") for n in range(130)))
        items = [store.keep(PLACE, ShelfItem("steps", f"s-{n}", {"n": n})) for n in range(3)]
        sealed = store.append(PLACE, entry(), Undo(records, [], items))
        assert store.undo_of(PLACE, sealed.seq) == Undo(records, [], items)
        assert list(store.undos(PLACE)) == [(sealed.seq, Undo(records, [], items))]

    def test_there_is_no_undo_data_where_nothing_was_replaced(self, store: Store) -> None:
        sealed = store.append(PLACE, entry())
        assert store.undo_of(PLACE, sealed.seq) is None
        assert store.undo_of(PLACE, sealed.seq + 1) is None

    def test_purge_of_all_leaves_the_log(self, store: Store) -> None:
        seqs = [store.append(PLACE, entry(f"{n}"), Undo([sample()])).seq for n in range(3)]
        assert store.purge(PLACE) == 0
        assert store.purge(PLACE, seqs=None) == 3
        assert [store.undo_of(PLACE, seq) for seq in seqs] == [None] * 3
        assert len(list(store.entries(PLACE))) == 3
        assert check(store.entries(PLACE), store.written(PLACE)) == []
        assert store.purge(PLACE, seqs=None) == 0

    def test_undo_sizes_name_every_entry_that_can_be_undone_the_oldest_first(self, store: Store) -> None:
        long = sample("heron " * 1000)
        old = store.append(PLACE, entry(at=NOW - TICK), Undo([sample()]))
        store.append(PLACE, entry(at=NOW))
        new = store.append(PLACE, entry(at=NOW), Undo([long], [], [ShelfItem("steps", "s-1", {"done": False})]))
        sizes = store.undo_sizes(PLACE)
        assert [(size.seq, size.at) for size in sizes] == [(old.seq, NOW - TICK), (new.seq, NOW)]
        assert 0 < sizes[0].bytes < 6000 < sizes[1].bytes
        store.purge(PLACE, seqs=[old.seq])
        assert [size.seq for size in store.undo_sizes(PLACE)] == [new.seq]
        assert store.undo_sizes(Place("nobody", "nowhere")) == []

    def test_purge_of_some_entries_leaves_the_others(self, store: Store) -> None:
        groups = [[sample("first")], [sample("second"), sample("third")], [sample("fourth")]]
        seqs = [store.append(PLACE, entry(), Undo(records, [], [])).seq for records in groups]
        assert list(store.undos(PLACE)) == [(seq, Undo(group, [], [])) for seq, group in zip(seqs, groups, strict=True)]
        assert store.purge(PLACE, seqs=[*seqs[:2], 1000]) == 2
        assert [store.undo_of(PLACE, seq) for seq in seqs] == [None, None, Undo(groups[2], [], [])]
        assert [seq for seq, _ in store.undos(PLACE)] == seqs[2:]
        assert store.purge(PLACE, seqs=[]) == 0
        assert list(store.undos(Place("nobody", "nowhere"))) == []

    def test_purge_by_ids_and_documents_leaves_what_else_an_entry_has(self, store: Store) -> None:
        erased, other = sample("erased"), sample("other")
        named, note = (
            ShelfItem("steps", erased.id, {"id": erased.id}, version=1),
            ShelfItem("notes", "a", {}, version=2),
        )
        kinds = [
            Undo([erased]),
            Undo([other, erased], [], [named]),
            Undo.of([erased], ()),
            Undo([], [OldValues.of(other)], [note]),
            Undo([], [], [named]),
        ]
        seqs = [store.append(PLACE, entry(), undo).seq for undo in kinds]
        assert store.purge(PLACE, ids=[]) == 0
        assert store.purge(PLACE, ids=["nobody"], documents=[("steps", "nobody")]) == 0
        assert store.purge(PLACE, ids=["nobody", erased.id], seqs=[seqs[0]]) == 3
        assert dict(store.undos(PLACE)) == {
            seqs[1]: Undo([other], [], [named]),
            seqs[3]: Undo([], [OldValues.of(other)], [note]),
            seqs[4]: Undo([], [], [named]),
        }
        assert store.purge(PLACE, documents=[("steps", erased.id), ("notes", "b")]) == 2
        assert dict(store.undos(PLACE)) == {
            seqs[1]: Undo([other], [], []),
            seqs[3]: Undo([], [OldValues.of(other)], [note]),
        }

    def test_purge_is_of_one_place_only(self, store: Store) -> None:
        record = sample()
        here, elsewhere = (store.append(place, entry(), Undo([record])).seq for place in (PLACE, SHARED))
        assert store.purge(PLACE, seqs=None) == 1
        assert store.purge(PLACE, ids=[record.id]) == 0
        assert store.undo_of(PLACE, here) is None
        assert store.undo_of(SHARED, elsewhere) is not None

    def test_the_log_joins_the_open_transaction(self, store: Store) -> None:
        sealed = store.append(PLACE, entry("kept"), Undo([sample()]))
        with failing(store, PLACE):
            lost = store.append(PLACE, entry("lost"), Undo([sample()]))
            assert [line.message for line in store.entries(PLACE)] == ["kept", "lost"]
            assert store.undo_of(PLACE, lost.seq) is not None
            store.purge(PLACE, seqs=None)
        assert list(store.entries(PLACE)) == [sealed]
        assert store.written(PLACE) == 1
        assert store.undo_of(PLACE, sealed.seq) is not None
        store.append(PLACE, entry("next"))
        assert check(store.entries(PLACE), store.written(PLACE)) == []
