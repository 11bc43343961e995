"""Memories, filters and things drawn at random, from few names and times so that they meet."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from recollect.conformance.samples import NOW, TICK, sample
from recollect.stores.port import By, Place
from recollect.stores.shelves import ShelfItem
from recollect.values.filters import Filter
from recollect.values.record import LIFETIMES, ROLES, STATES, TIERS, Address, Record, pack

TENANTS = ("default", "default", "default", "acme")
WORKSPACES = ("default", "default", "default", "Default")
PEOPLE = (None, "alice", "Alice")
CHANNELS = (None, "ops", "dev")
CONVERSATIONS = (None, "c-1", "c-2")
KINDS = ("fact", "task")
SOURCES = (None, "import", "chat")
TAGS = ("a", "a.b", "ab", "a.b.c", "ä", "c")
SHELVES = ("steps", "pages")
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
vectors = st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=3).map(pack)
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
    "valid_from": st.none() | times,
    "valid_until": st.none() | times,
    "superseded_by": st.sampled_from(SUCCESSORS),
}
embeddings = st.one_of(
    st.just((None, None)),
    st.tuples(vectors, st.sampled_from((None, "m", "n"))),
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
        valid_from=pick((None, None, NOW + pick(TICKS))),
        valid_until=pick((None, None, NOW + pick(TICKS))),
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
    "roles": one_or_two(ROLES),
    "sources": one_or_two(SOURCES),
    "lifetimes": one_or_two(LIFETIMES),
    "tags": one_or_two(TAGS),
    "any_tags": one_or_two(TAGS),
    "without_tags": one_or_two(TAGS),
    "since": times,
    "until": times,
    "valid_at": times,
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
    values = {name: draw(conditions[name]) for name in chosen}
    return Filter(
        seen_from=draw(addresses()), now=draw(times), state=draw(st.sampled_from((None, None, *STATES))), **values
    )


@st.composite
def things(draw: st.DrawFn) -> ShelfItem:
    """Few keys, so that they meet."""
    return ShelfItem(
        draw(st.sampled_from(SHELVES)),
        draw(st.sampled_from("abcd")),
        draw(st.dictionaries(st.sampled_from(("x", "Größe")), st.sampled_from((1, "heron", "HERON", None)))),
        parent=draw(st.sampled_from((None, "p", "q"))),
        account=draw(st.sampled_from(PEOPLE)),
        agent=draw(st.sampled_from(PEOPLE)),
        created_at=draw(times),
        changed_at=draw(times),
    )


places = st.builds(Place, st.sampled_from(TENANTS), st.sampled_from((*WORKSPACES, None)))
bys: st.SearchStrategy[list[By]] = st.lists(
    st.sampled_from(("state", "kind", "tier", "agent", "embedded")), max_size=3, unique=True
)
