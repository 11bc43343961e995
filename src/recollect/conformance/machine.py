"""A random walk through a store's operations, compared at every step with a model of plain lists and dicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from datetime import datetime
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec.structs import replace

from recollect.conformance.draws import (
    SHELVES,
    WORDS,
    bys,
    changeable,
    filters,
    limits,
    made,
    places,
    records,
    things,
    times,
    vectors,
)
from recollect.conformance.samples import (
    ask,
    delete,
    failing,
    keep,
    matching_ids,
    sample,
    seen_ids,
    touch,
    update,
    words,
)
from recollect.conformance.scanning import ORDERS, in_order
from recollect.stores.port import After, By, OnDisk, Order, Place, Store
from recollect.stores.shelves import ShelfItem
from recollect.text.query import TextQuery
from recollect.text.segment import fold
from recollect.values.errors import ConflictError
from recollect.values.filters import Filter
from recollect.values.record import Record, pack


class StoreMachine(RuleBasedStateMachine):
    """Subclass it with `fresh`, and with `reopen` where the store outlives its object."""

    def fresh(self) -> Store:
        """A new, empty store."""
        raise NotImplementedError("a subclass must have a method `fresh` that gives a new, empty store")

    def reopen(self, store: Store) -> Store:
        """The same data in a new store object, after the old one was closed."""
        return store

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[Key, Record] = {}
        """In the order of storing."""
        self.things: dict[tuple[Place, str, str], ShelfItem] = {}
        """In the order in which they were first kept."""

    @initialize(seeds=st.lists(st.integers(0, 2**16), min_size=10, max_size=40, unique=True))
    def begin(self, seeds: list[int]) -> None:
        self.store = self.fresh()
        self.note(keep(self.store, *map(made, seeds)))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()

    def note(self, records: Iterable[Record]) -> None:
        self.model.update((key(record), record) for record in records)

    def pick(self, data: st.DataObject, most: int = 3) -> list[Record]:
        keys = data.draw(st.lists(st.sampled_from(sorted(self.model)), min_size=1, max_size=most, unique=True))
        return [self.model[ident] for ident in keys]

    # What is written

    @rule(new=st.lists(records(), min_size=1, max_size=4))
    def put(self, new: list[Record]) -> None:
        self.note(keep(self.store, *new))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def put_what_exists(self, data: st.DataObject) -> None:
        (old,) = self.pick(data, most=1)
        fellow = replace(sample("beside it"), address=old.address, tier=old.tier)
        with pytest.raises(ConflictError):
            self.store.put(Place.of(old), [fellow, old])

    @precondition(lambda self: self.model)
    @rule(data=st.data(), changes=st.fixed_dictionaries({}, optional=changeable))
    def update(self, data: st.DataObject, changes: dict[str, Any]) -> None:
        changed = [replace(record, **changes) for record in self.pick(data)]
        # The vector is not an update's to change, whatever it says.
        update(self.store, *(replace(record, embedding=pack([9.0]), embedding_model="x") for record in changed))
        self.note(changed)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), vector=vectors, model=st.sampled_from(("m", "n")))
    def embed(self, data: st.DataObject, vector: bytes, model: str) -> None:
        for record in self.pick(data):
            self.store.embed(Place.of(record), model, {record.id: vector, "no-such-id": vector})
            self.note([replace(record, embedding=vector, embedding_model=model)])

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        gone = self.pick(data, most=2)
        delete(self.store, *gone)
        for record in gone:
            del self.model[key(record)]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), ats=st.lists(times, min_size=1, max_size=3))
    def touch(self, data: st.DataObject, ats: list[datetime]) -> None:
        touched = self.pick(data)
        for at in ats:
            touch(self.store, at, *touched)
        latest, count = max(ats), len(ats)
        self.note(
            replace(r, access_count=r.access_count + count, accessed_at=max(r.accessed_at, latest)) for r in touched
        )

    @rule(place=places, item=things(), check=st.booleans())
    def keep_thing(self, place: Place, item: ShelfItem, check: bool) -> None:
        path = place, item.shelf, item.key
        before = self.things.get(path)
        version = before.version if before else 0
        with pytest.raises(ConflictError):
            self.store.keep(place, item, expect=version + 1)
        stored = self.store.keep(place, item, expect=version if check else None)
        created = before.created_at if before else item.created_at
        assert stored == replace(item, version=version + 1, created_at=created)
        self.things[path] = stored

    @rule(place=places, shelf=st.sampled_from(SHELVES), keys=st.lists(st.sampled_from("abcd"), max_size=3))
    def remove_things(self, place: Place, shelf: str, keys: list[str]) -> None:
        gone = {(place, shelf, name) for name in keys} & self.things.keys()
        assert self.store.remove(place, shelf, keys) == len(gone)
        for path in gone:
            del self.things[path]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), new=records(), item=things(), inner=st.booleans())
    def change_and_take_back(self, data: st.DataObject, new: Record, item: ShelfItem, inner: bool) -> None:
        gone = self.pick(data, most=2)
        around = dict.fromkeys((Place.of(new), *map(Place.of, gone)))
        with failing(self.store, *around):
            if inner:
                with self.store.transaction(*reversed(around)):
                    self.change_all(gone, new, item)
            else:
                self.change_all(gone, new, item)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), new=records(), item=things())
    def change_several_places(self, data: st.DataObject, new: Record, item: ShelfItem) -> None:
        gone = self.pick(data, most=2)
        around = dict.fromkeys((*map(Place.of, gone), Place.of(new)))
        with self.store.transaction(*around):
            with failing(self.store, Place.of(new)):
                keep(self.store, new)
            stored, shelved = self.change_all(gone, new, item)
            self.get(Place.of(new), [*(r for r in self.of(Place.of(new)) if r not in gone), *stored])
        for record in gone:
            del self.model[key(record)]
        self.note(stored)
        self.things[Place.of(new), shelved.shelf, shelved.key] = shelved

    def change_all(self, gone: list[Record], new: Record, item: ShelfItem) -> tuple[list[Record], ShelfItem]:
        delete(self.store, *gone)
        return keep(self.store, new), self.store.keep(Place.of(new), item)

    @rule(place=places)
    def drop(self, place: Place) -> None:
        if place.workspace is None:
            return
        self.store.drop(place)
        self.model = {path: record for path, record in self.model.items() if Place.of(record) != place}
        self.things = {path: item for path, item in self.things.items() if path[0] != place}

    @rule(place=places)
    def compact(self, place: Place) -> None:
        if isinstance(self.store, OnDisk):
            self.store.compact(place)

    @rule()
    def open_again(self) -> None:
        if type(self).reopen is not StoreMachine.reopen:
            self.store.close()
            self.store = self.reopen(self.store)

    # What is asked

    @rule(
        wishes=st.lists(filters(), min_size=1, max_size=4),
        order=st.sampled_from(ORDERS),
        limit=limits,
        by=bys,
        data=st.data(),
    )
    def ask(self, wishes: list[Filter], order: Order, limit: int | None, by: list[By], data: st.DataObject) -> None:
        for filter in wishes:
            wanted = [record for record in self.model.values() if filter.matches(record)]
            place = Place(filter.seen_from.tenant, filter.seen_from.workspace)
            self.get(place, self.of(place))
            self.scan(filter, wanted, order, limit, data)
            self.count(filter, wanted, by)
            self.search(filter, wanted)

    def of(self, place: Place) -> list[Record]:
        return [record for record in self.model.values() if Place.of(record) == place]

    def get(self, place: Place, wanted: list[Record]) -> None:
        idents = [record.id for record in self.model.values()] + [record.id for record in wanted]
        assert by_key(self.store.get(place, [*idents, "no-such-id", *idents])) == by_key(wanted)

    def scan(self, filter: Filter, wanted: list[Record], order: Order, limit: int | None, data: st.DataObject) -> None:
        """In its order in each place, all of it or behind some memory."""
        every = list(self.store.scan(filter, order=order))
        for place in Place.seen_by(filter):
            here = [record for record in wanted if Place.of(record) == place]
            assert [record for record in every if Place.of(record) == place] == in_order(here, order)
        assert sorted(map(key, every)) == sorted(map(key, wanted))
        assert every == _sorted(every, order)
        assert list(self.store.scan(filter, order=order, limit=limit)) == every[:limit]
        if every:
            at = data.draw(st.integers(0, len(every) - 1))
            rest = list(self.store.scan(filter, order=order, after=After.of(every[at]), limit=limit))
            if sum(record.id == every[at].id for record in every) == 1:
                assert rest == every[at + 1 :][:limit]
            elif limit is None:  # two places have the same id: some may come again, but none is left out
                assert rest[len(rest) - len(every[at + 1 :]) :] == every[at + 1 :]

    def count(self, filter: Filter, wanted: list[Record], by: list[By]) -> None:
        values = [tuple(_value(record, filter, name) for name in by) for record in wanted]
        counts = self.store.count(filter, by)
        assert {value: count for value, count in counts.items() if by or count} == Counter(values)
        assert sum(self.store.count(filter, ["speaker"]).values()) == len(wanted)

    def search(self, filter: Filter, wanted: list[Record]) -> None:
        """A word of letters is found wherever it stands alone between spaces, and each vector of the model is there."""
        for dimensions in (1, 2):
            question = ask(words("heron"), filter, vector=pack([1.0] + [0.0] * (dimensions - 1)), model="m")
            for place in Place.seen_by(filter):
                here = {record.id: record for record in wanted if Place.of(record) == place}
                shortlists = [shortlist for shortlist in self.store.search(question) if shortlist.place == place]
                assert len(shortlists) == 1 or (not here and not shortlists)
                for shortlist in shortlists:
                    assert sorted(seen_ids(shortlist)) == sorted(here)
                    matching = matching_ids(shortlist, question.words)
                    assert matching >= {ident for ident, r in here.items() if "heron" in r.text.split(" ")}
                    assert all("heron" in fold(here[ident].text) for ident in matching)
                    cosine = shortlist.cosine
                    has: set[str] = {
                        shortlist.block.ids[at]
                        for at in shortlist.seen.mask.nonzero()[0].tolist()
                        if cosine is not None and cosine[at] == cosine[at]
                    }
                    assert has == {ident for ident, r in here.items() if _size(r) == dimensions}

    @rule(
        filter=filters(), texts=st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=2), loose=st.booleans()
    )
    def search_for_anything(self, filter: Filter, texts: list[str], loose: bool) -> None:
        for query in (TextQuery(words=tuple(texts), loose=loose), TextQuery(phrases=tuple(texts), patterns=("?*",))):
            for shortlist in self.store.search(ask(query, filter)):
                for ident in matching_ids(shortlist, query):
                    (record,) = (r for r in self.of(shortlist.place) if r.id == ident)
                    assert filter.matches(record)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), inside=st.booleans())
    def with_texts(self, data: st.DataObject, inside: bool) -> None:
        texts = [record.text for record in self.pick(data)]
        for place in {Place.of(record) for record in self.model.values()}:
            wanted = [
                record
                for record in self.of(place)
                if record.text in texts and record.address.conversation is None
                if record.archived_at is None and record.superseded_by is None
            ]
            with self.store.transaction(place) if inside else nullcontext():
                assert self.store.with_texts(place, [*texts, "a text that nobody has", *texts]) == wanted

    @rule(place=places, model=st.sampled_from("mn"), dimensions=st.integers(1, 2), most=st.integers(0, 4))
    def lacking(self, place: Place, model: str, dimensions: int, most: int) -> None:
        """The newest first. Stores may differ in what is newer of what was created at the same time."""
        here = [record for record in self.of(place) if record.superseded_by is None]
        lacks = {
            r.id for r in here if r.embedding_model != model or r.embedding is None or _size(r, model) != dimensions
        }
        every = self.store.lacking(place, model, dimensions, len(here) + 1)
        assert sorted(every) == sorted(lacks)
        assert self.store.lacking(place, model, dimensions, most) == every[:most]

    @rule(
        place=places,
        shelf=st.none() | st.sampled_from(SHELVES),
        parent=st.sampled_from((None, None, "p")),
        contains=st.sampled_from(("", "", "Heron", "GRÖSSE")),
        newest_first=st.booleans(),
        limit=limits,
    )
    def shelf(
        self,
        place: Place,
        shelf: str | None,
        parent: str | None,
        contains: str,
        newest_first: bool,
        limit: int | None,
    ) -> None:
        wanted = [
            item
            for (at, *_), item in self.things.items()
            if at == place
            and shelf in (None, item.shelf)
            and parent in (None, item.parent)
            and (not contains or contains.casefold() in repr(item.body).casefold())
        ][:: -1 if newest_first else 1]
        options: dict[str, Any] = {"parent": parent, "contains": contains, "newest_first": newest_first}
        assert list(self.store.shelf(place, shelf, **options, limit=limit)) == wanted[:limit]
        if shelf is not None:
            assert self.store.find(place, shelf, [item.key for item in wanted]) == wanted
            for at, item in enumerate(wanted):
                assert list(self.store.shelf(place, shelf, **options, after=item.key)) == wanted[at + 1 :]


def _value(record: Record, filter: Filter, by: By) -> str:
    match by:
        case "state":
            return record.state(filter.now)
        case "agent":
            return record.address.agent or ""
        case "embedded":
            return "no" if record.embedding is None else "yes"
        case _:
            return getattr(record, by)


def _sorted(records: list[Record], order: Order) -> list[Record]:
    """By what the order goes by, where ties stay as they are."""
    if order == "importance":
        return sorted(records, key=lambda record: (record.importance, record.created_at))
    return sorted(records, key=lambda record: record.created_at, reverse=order == "newest")


def _size(record: Record, model: str = "m") -> int:
    """Dimensions of a vector of the model."""
    return len(record.embedding) // 4 if record.embedding is not None and record.embedding_model == model else 0


Key = tuple[str, str, str]


def key(record: Record) -> Key:
    """An id is unique in its place only."""
    tenant, workspace = Place.of(record)
    return record.id, tenant, workspace or ""


def by_key(records: Iterable[Record]) -> list[Record]:
    return sorted(records, key=key)
