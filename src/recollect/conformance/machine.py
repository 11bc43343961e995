"""A random walk through a store's operations, compared at every step with a dict of records."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec.structs import replace

from recollect.conformance.samples import NOW, TICK, failing, sample
from recollect.errors import ConflictError
from recollect.filters import Filter, visible
from recollect.record import LIFETIMES, ROLES, STATES, TIERS, Address, Record, pack
from recollect.stores.port import JournaledStore, Match, Place
from recollect.text.query import TextQuery
from recollect.text.segment import fold

# Few names and times, so that memories meet in them.
TENANTS = ("default", "default", "default", "acme")
WORKSPACES = ("default", "default", "default", "Default")
PEOPLE = (None, "alice", "Alice")
CHANNELS = (None, "ops", "dev")
CONVERSATIONS = (None, "c-1", "c-2")
KINDS = ("fact", "task")
SOURCES = (None, "import", "chat")
TAGS = ("a", "a.b", "ab", "a.b.c", "ä", "c")
SUCCESSORS = (None, "e" * 32, "f" * 32)
WORDS = ("heron", "Fox", "北京市", "Krankenversicherung", "naïve", "NOT", '"', "*", "x\x00y", "\n")

EMBEDDINGS = ((pack([1.0]), None), (pack([1.0]), "m"), (pack([0.5]), "m"), (pack([1.0, 2.0]), "m"), (pack([1.0]), "n"))
"""Vectors and the models that made them."""

TICKS = tuple(n * TICK for n in range(-3, 4))
IMPORTANCES = (0.0, 0.25, 0.3, 1.0)

times = st.sampled_from([NOW + tick for tick in TICKS])
contents: st.SearchStrategy[Any] = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
    st.text(min_size=1, max_size=20),
    st.dictionaries(st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.text(max_size=5), min_size=1),
)
limits = st.none() | st.integers(0, 5)
tags = st.lists(st.sampled_from(TAGS), max_size=3, unique=True).map(tuple)
vectors = st.none() | st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=3).map(pack)
changeable: dict[str, st.SearchStrategy[Any]] = {
    "importance": st.sampled_from(IMPORTANCES),
    "accessed_at": times,
    "access_count": st.integers(0, 3),
    "tags": tags,
    "lifetime": st.sampled_from(LIFETIMES),
    "references": st.lists(st.sampled_from(("x", "y")), max_size=2).map(tuple),
    "metadata": st.dictionaries(st.sampled_from("kl"), st.integers() | st.text(max_size=3), max_size=2),
    "expires_at": st.none() | times,
    "archived_at": st.none() | times,
    "superseded_by": st.sampled_from(SUCCESSORS),
}
embeddings = st.one_of(
    st.just((None, None)),
    st.tuples(vectors.filter(lambda vector: vector is not None), st.sampled_from((None, "m", "n"))),
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    tier = draw(st.sampled_from(TIERS))
    return sample(
        draw(contents),
        tier=tier,
        tenant=draw(st.sampled_from(TENANTS)),
        workspace=draw(st.sampled_from(WORKSPACES)),
        account=draw(st.sampled_from(PEOPLE)),
        agent=draw(st.sampled_from(PEOPLE)),
        channel=draw(st.sampled_from(CHANNELS[1:] if tier == "channel" else CHANNELS)),
        conversation=draw(st.sampled_from(CONVERSATIONS[1:] if tier == "conversation" else CONVERSATIONS)),
        kind=draw(st.sampled_from(KINDS)),
        role=draw(st.sampled_from((None, *ROLES))),
        source=draw(st.sampled_from(SOURCES)),
        created_at=draw(times),
        **dict(zip(("embedding", "embedding_model"), draw(embeddings), strict=True)),
        **{field: draw(values) for field, values in changeable.items()},
    )


def made(seed: int) -> Record:
    """A record like those above, at far less cost: a store must be well filled for a filter to make a difference."""
    pick = random.Random(seed).choice
    tier = pick(TIERS)
    return sample(
        " ".join(pick(WORDS) for _ in range(3)),
        tier=tier,
        tenant=pick(TENANTS),
        workspace=pick(WORKSPACES),
        account=pick(PEOPLE),
        agent=pick(PEOPLE),
        channel=pick(CHANNELS[1:] if tier == "channel" else CHANNELS),
        conversation=pick(CONVERSATIONS[1:] if tier == "conversation" else CONVERSATIONS),
        kind=pick(KINDS),
        role=pick((None, *ROLES)),
        source=pick(SOURCES),
        created_at=NOW + pick(TICKS),
        importance=pick(IMPORTANCES),
        tags=tuple({pick(TAGS): 1, pick(TAGS): 1}) if pick((True, False)) else (),
        lifetime=pick(LIFETIMES),
        expires_at=pick((None, None, NOW + pick(TICKS))),
        archived_at=pick((None, None, None, NOW)),
        superseded_by=pick((None, None, *SUCCESSORS)),
        **dict(zip(("embedding", "embedding_model"), pick(((None, None), *EMBEDDINGS)), strict=True)),
    )


def one_or_two(values: tuple[Any, ...]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.sampled_from([value for value in values if value is not None]), min_size=1, max_size=2).map(
        tuple
    )


def mostly_open(values: tuple[str | None, ...]) -> st.SearchStrategy[str | None]:
    return st.sampled_from((None, None, None, *values))


conditions: dict[str, st.SearchStrategy[Any]] = {
    "tiers": one_or_two(TIERS),
    "kinds": one_or_two(KINDS),
    "without_kinds": one_or_two(KINDS),
    "roles": one_or_two(ROLES),
    "sources": one_or_two(SOURCES),
    "lifetimes": one_or_two(LIFETIMES),
    "tags": one_or_two(TAGS),
    "any_tags": one_or_two(TAGS),
    "without_tags": one_or_two(TAGS),
    "since": times,
    "until": times,
    "min_importance": changeable["importance"],
    "conversation": st.sampled_from(CONVERSATIONS[1:]),
    "channel": st.sampled_from(CHANNELS[1:]),
    "agent": st.sampled_from(PEOPLE[1:]),
    "superseded_by": one_or_two(SUCCESSORS),
}


def addresses() -> st.SearchStrategy[Address]:
    """Views, of a workspace or of none."""
    return st.builds(
        Address,
        tenant=st.sampled_from(TENANTS),
        workspace=st.sampled_from((*WORKSPACES, None)),
        account=mostly_open(PEOPLE),
        channel=mostly_open(CHANNELS),
        conversation=mostly_open(CONVERSATIONS),
        agent=mostly_open(PEOPLE),
    )


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    """With few conditions: of many at once, all would be met by no memory at all."""
    chosen = draw(st.lists(st.sampled_from(sorted(conditions)), max_size=2, unique=True))
    given = {name: draw(conditions[name]) for name in chosen}
    return Filter(view=draw(addresses()), now=draw(times), state=draw(st.sampled_from((None, None, *STATES))), **given)


class StoreMachine(RuleBasedStateMachine):
    """Subclass it with `fresh`, and with `reopen` where the store outlives its object."""

    def fresh(self) -> JournaledStore:
        """A new, empty store."""
        raise NotImplementedError

    def reopen(self, store: JournaledStore) -> JournaledStore:
        """The same data in a new store object, after the old one was closed."""
        return store

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[Key, Record] = {}

    @initialize(seeds=st.lists(st.integers(0, 2**16), min_size=10, max_size=40, unique=True))
    def begin(self, seeds: list[int]) -> None:
        self.store = self.fresh()
        self.keep(list(self.store.put([made(seed) for seed in seeds])))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()

    def keep(self, kept: list[Record]) -> None:
        self.model.update((key(record), record) for record in kept)

    def pick(self, data: st.DataObject, most: int = 3) -> list[Record]:
        keys = data.draw(st.lists(st.sampled_from(sorted(self.model)), min_size=1, max_size=most, unique=True))
        return [self.model[one] for one in keys]

    @rule(new=st.lists(records(), min_size=1, max_size=4))
    def put(self, new: list[Record]) -> None:
        self.keep(list(self.store.put(new)))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def put_what_exists(self, data: st.DataObject) -> None:
        (old,) = self.pick(data, most=1)
        fellow = replace(sample("beside it"), address=old.address, tier=old.tier)
        with pytest.raises(ConflictError):
            self.store.put([fellow, old])

    @precondition(lambda self: self.model)
    @rule(data=st.data(), changes=st.fixed_dictionaries({}, optional=changeable), vector=st.none() | embeddings)
    def update(
        self, data: st.DataObject, changes: dict[str, Any], vector: tuple[bytes | None, str | None] | None
    ) -> None:
        if vector is not None:
            changes = {**changes, "embedding": vector[0], "embedding_model": vector[1]}
        changed = [replace(record, **changes) for record in self.pick(data)]
        self.store.update(changed)
        self.keep(changed)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        gone = self.pick(data, most=2)
        self.store.delete(gone)
        for record in gone:
            del self.model[key(record)]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), ats=st.lists(times, min_size=1, max_size=3))
    def touch(self, data: st.DataObject, ats: list[datetime]) -> None:
        touched = self.pick(data)
        for at in ats:
            self.store.touch(touched, at)
        latest, count = max(ats), len(ats)
        self.keep(
            [replace(r, access_count=r.access_count + count, accessed_at=max(r.accessed_at, latest)) for r in touched]
        )

    @precondition(lambda self: self.model)
    @rule(data=st.data(), new=records())
    def change_and_take_back(self, data: st.DataObject, new: Record) -> None:
        (old,) = self.pick(data, most=1)
        place = Place.of(old)
        with failing(self.store, place):
            self.store.put([replace(new, address=old.address, tier=old.tier)])
            self.store.delete([old])

    @rule(tenant=st.sampled_from(TENANTS), workspace=st.sampled_from(WORKSPACES))
    def drop(self, tenant: str, workspace: str) -> None:
        self.store.drop(tenant, workspace)
        gone = Place(tenant, workspace)
        self.model = {one: record for one, record in self.model.items() if Place.of(record) != gone}

    @rule()
    def open_again(self) -> None:
        if type(self).reopen is not StoreMachine.reopen:
            self.store.close()
            self.store = self.reopen(self.store)

    @rule(wishes=st.lists(filters(), min_size=1, max_size=8), newest_first=st.booleans(), limit=limits)
    def ask(self, wishes: list[Filter], newest_first: bool, limit: int | None) -> None:
        for wish in wishes:
            wanted = [record for record in self.model.values() if wish.matches(record)]
            self.get(wish.view)
            self.scan(wish, wanted, newest_first, limit)
            self.stats(wish, wanted)
            self.search(wish, wanted)
            self.columns(wish, wanted)

    def get(self, view: Address) -> None:
        ids = [record.id for record in self.model.values()]
        asked = [*ids, "no-such-id", *ids]
        assert by_key(self.store.get(asked, view)) == by_key(r for r in self.model.values() if visible(view, r))

    def scan(self, wish: Filter, wanted: list[Record], newest_first: bool, limit: int | None) -> None:
        got = list(self.store.scan(wish, newest_first=newest_first, limit=limit))
        stamps = sorted((record.created_at for record in wanted), reverse=newest_first)
        assert [record.created_at for record in got] == stamps[:limit]
        assert all(self.model[key(record)] == record and wish.matches(record) for record in got)
        assert len({key(record) for record in got}) == len(got)

    def stats(self, wish: Filter, wanted: list[Record]) -> None:
        stats = self.store.stats(wish)
        assert stats.total == len(wanted)
        assert stats.states == Counter(record.state(wish.now) for record in wanted)
        assert stats.kinds == Counter(record.kind for record in wanted)
        assert stats.tiers == Counter(record.tier for record in wanted)
        assert stats.agents == Counter(record.address.agent or "" for record in wanted)
        assert stats.embedded == sum(record.embedding is not None for record in wanted)

    def search(self, wish: Filter, wanted: list[Record]) -> None:
        """A word of letters is found wherever it stands alone between spaces."""
        matches = self.store.search_text(TextQuery(words=("heron",)), wish, 1000)
        assert {key(match.record) for match in matches} >= {key(r) for r in wanted if "heron" in r.text.split(" ")}
        assert all("heron" in fold(match.record.text) for match in matches)
        self.check(wish, matches)

    def columns(self, wish: Filter, wanted: list[Record]) -> None:
        """The copy in columns sees the same, finds the same word, and has the same vectors."""
        if wish.superseded_by:
            return  # a condition for histories, which nobody ranks
        for workspace in {wish.view.workspace, None}:
            place = Place(wish.view.tenant, workspace)
            here = {r.id: r for r in wanted if Place.of(r) == place}
            with self.store.corpus(place, "m") as corpus:
                columns = corpus.columns
                seen = columns.mask(wish).nonzero()[0].tolist()
                assert {columns.ids[at] for at in seen} == here.keys()
                found: set[str] = {columns.ids[at] for at in corpus.postings('"heron"').tolist()}
                assert found >= {ident for ident, r in here.items() if "heron" in r.text.split(" ")}
                texts = corpus.texts(seen)
                assert {columns.ids[at]: text for at, text in texts.items()} == {i: r.text for i, r in here.items()}
                vectors = columns.vectors
                has: set[str] = set() if vectors is None else {columns.ids[at] for at in seen if vectors.has[at]}
                assert has == {i for i, r in here.items() if _size(r) and vectors and _size(r) == vectors.dimensions}

    @rule(wish=filters(), texts=st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=2), loose=st.booleans())
    def search_for_anything(self, wish: Filter, texts: list[str], loose: bool) -> None:
        for query in (TextQuery(words=tuple(texts), loose=loose), TextQuery(phrases=tuple(texts), patterns=("?*",))):
            self.check(wish, self.store.search_text(query, wish, 10))

    def check(self, wish: Filter, matches: list[Match]) -> None:
        for record, _ in matches:
            assert record == replace(self.model[key(record)], embedding=None, embedding_model=None)
            assert wish.matches(record)


def _size(record: Record) -> int:
    """Dimensions of a vector of the model "m"."""
    return len(record.embedding) // 4 if record.embedding is not None and record.embedding_model == "m" else 0


Key = tuple[str, str, str]


def key(record: Record) -> Key:
    """An id is unique in its place only."""
    tenant, workspace = Place.of(record)
    return record.id, tenant, workspace or ""


def by_key(records: Iterable[Record]) -> list[Record]:
    return sorted(records, key=key)
