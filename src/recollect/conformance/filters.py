"""Claims about filters: what a store finds is what `Filter.matches` says, for every condition."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from recollect.conformance.samples import NOW, TICK, ids, keep, sample, search, seen, total, where, words
from recollect.stores.port import Place, Store
from recollect.values.filters import Filter
from recollect.values.record import Address, Record

Fields = dict[str, Any]

_F, _E = "f" * 32, "e" * 32

CONDITIONS: dict[str, tuple[Fields, list[Fields], list[Fields]]] = {
    "live": (
        {"state": "live"},
        [{}, {"expires_at": NOW + TICK}],
        [{"expires_at": NOW}, {"archived_at": NOW}, {"superseded_by": _F}],
    ),
    "expired, at the very moment": (
        {"state": "expired"},
        [{"expires_at": NOW}, {"expires_at": NOW - TICK}],
        [{}, {"expires_at": NOW + TICK}, {"expires_at": NOW, "archived_at": NOW}],
    ),
    "archived, expired or not": (
        {"state": "archived"},
        [{"archived_at": NOW}, {"archived_at": NOW, "expires_at": NOW}],
        [{}, {"expires_at": NOW}, {"archived_at": NOW, "superseded_by": _F}],
    ),
    "superseded, whatever else": (
        {"state": "superseded"},
        [{"superseded_by": _F}, {"superseded_by": _F, "archived_at": NOW, "expires_at": NOW}],
        [{}, {"archived_at": NOW}],
    ),
    "every state": (
        {"state": None},
        [{}, {"expires_at": NOW}, {"archived_at": NOW}, {"superseded_by": _F}],
        [],
    ),
    "one tier": (
        {"tiers": ("channel",)},
        [{"tier": "channel", "channel": "ops"}],
        [{}, {"tier": "account"}, {"tier": "conversation", "conversation": "c-1", "channel": "ops"}],
    ),
    "the account's tier": ({"tiers": ("account",)}, [{"tier": "account"}], [{}, {"tier": "channel", "channel": "ops"}]),
    "several tiers": (
        {"tiers": ("account", "conversation")},
        [{"tier": "account"}, {"tier": "conversation", "conversation": "c-1"}],
        [{}, {"tier": "channel", "channel": "ops"}],
    ),
    "kinds": ({"kinds": ("task", "fact")}, [{"kind": "task"}, {"kind": "fact"}], [{"kind": "facts"}, {"kind": "tas"}]),
    "roles": ({"roles": ("user", "system")}, [{"role": "user"}, {"role": "system"}], [{}, {"role": "assistant"}]),
    "sources": ({"sources": ("import",)}, [{"source": "import"}], [{}, {"source": "Import"}, {"source": "imported"}]),
    "lifetimes": (
        {"lifetimes": ("short_term",)},
        [{"lifetime": "short_term"}],
        [{}, {"lifetime": "conversation"}],
    ),
    "a tag": (
        {"tags": ("style",)},
        [{"tags": ("style",)}, {"tags": ("other", "style")}],
        [{}, {"tags": ("other",)}, {"tags": ("Style",)}],
    ),
    "a tag and those below it": (
        {"tags": ("security",)},
        [{"tags": ("security",)}, {"tags": ("security.authentication",)}, {"tags": ("security.a.b",)}],
        [{"tags": ("securityx",)}, {"tags": ("it.security",)}, {"tags": ("securit",)}, {"tags": ("security-x",)}],
    ),
    "a tag below another": (
        {"tags": ("security.authentication",)},
        [{"tags": ("security.authentication",)}, {"tags": ("security.authentication.oauth",)}],
        [{"tags": ("security",)}, {"tags": ("security.authenticationx",)}],
    ),
    "all of the tags": (
        {"tags": ("a", "b")},
        [{"tags": ("b", "c", "a")}, {"tags": ("a.x", "b.y")}],
        [{"tags": ("a",)}, {"tags": ("b",)}, {"tags": ("ab",)}],
    ),
    "any of the tags": (
        {"any_tags": ("a", "b")},
        [{"tags": ("a",)}, {"tags": ("x", "b.y")}],
        [{}, {"tags": ("x",)}, {"tags": ("ab",)}],
    ),
    "without the tags": (
        {"without_tags": ("a", "b")},
        [{}, {"tags": ("x",)}, {"tags": ("ab",)}],
        [{"tags": ("a",)}, {"tags": ("x", "b")}, {"tags": ("b.y",)}],
    ),
    "tags of every sort together": (
        {"tags": ("a",), "any_tags": ("b", "c"), "without_tags": ("d",)},
        [{"tags": ("a", "c")}],
        [{"tags": ("a",)}, {"tags": ("b", "c")}, {"tags": ("a", "b", "d.e")}],
    ),
    "a tag in another script": ({"tags": ("größe",)}, [{"tags": ("größe.höhe",)}], [{"tags": ("grösse",)}]),
    "since, that moment included": (
        {"since": NOW},
        [{"created_at": NOW}, {"created_at": NOW + TICK}],
        [{"created_at": NOW - TICK}],
    ),
    "until, that moment excluded": (
        {"until": NOW},
        [{"created_at": NOW - TICK}],
        [{"created_at": NOW}, {"created_at": NOW + TICK}],
    ),
    "valid then, from that moment on and until just before": (
        {"valid_at": NOW},
        [
            {},
            {"valid_from": NOW},
            {"valid_from": NOW - TICK, "valid_until": NOW + TICK},
            {"valid_until": NOW + TICK},
            {"created_at": NOW + TICK, "valid_from": NOW - TICK},
        ],
        [
            {"valid_from": NOW + TICK},
            {"valid_until": NOW},
            {"valid_from": NOW - 2 * TICK, "valid_until": NOW - TICK},
            {"created_at": NOW - TICK, "valid_from": NOW + TICK, "valid_until": NOW + 2 * TICK},
        ],
    ),
    "importance, the limit included": (
        {"min_importance": 0.3},
        [{"importance": 0.3}, {"importance": 1.0}],
        [{"importance": 0.29999999999999999 - 1e-9}, {"importance": 0.0}],
    ),
    "importance of at least nothing": ({"min_importance": 0.0}, [{"importance": 0.0}], []),
    "a conversation, whatever the tier": (
        {"conversation": "c-1"},
        [{"conversation": "c-1"}, {"conversation": "c-1", "tier": "conversation"}],
        [{}, {"conversation": "c-11"}],
    ),
    "a channel, whatever the tier": (
        {"channel": "ops"},
        [{"channel": "ops"}, {"channel": "ops", "tier": "channel"}],
        [{}, {"channel": "Ops"}],
    ),
    "an agent, its own only": ({"agent": "atlas"}, [{"agent": "atlas"}], [{}, {"agent": "argus"}]),
    "agents' journals and core memories left out": (
        {"hides_private": True},
        [{}, {"agent": "atlas"}, {"kind": "core"}, {"kind": "journal"}],
        [{"kind": "core", "agent": "atlas"}, {"kind": "journal", "agent": "atlas"}],
    ),
    "an account, its own only": ({"account": "ann"}, [{"account": "ann"}], [{}, {"account": "bob"}]),
    "what these superseded": (
        {"superseded_by": (_F,)},
        [{"superseded_by": _F}],
        [{}, {"superseded_by": _E}],
    ),
}
"""Name → the condition, memories that meet it, and memories that do not."""

VIEWS: dict[str, tuple[Fields, list[Fields], list[Fields]]] = {
    "the owner of a workspace sees all of it": (
        {},
        [
            {},
            {"agent": "atlas"},
            {"account": "alice"},
            {"tier": "channel", "channel": "ops"},
            {"tier": "conversation", "conversation": "c-1"},
            {"tier": "account", "account": "alice", "agent": "atlas"},
        ],
        [],
    ),
    "a tenant sees its own only": (
        {"tenant": "acme"},
        [{"tenant": "acme"}, {"tenant": "acme", "tier": "account"}],
        [{"tenant": name, "tier": tier} for name in ("default", "acme2", "Acme") for tier in ("workspace", "account")],
    ),
    "a workspace sees its own and what the tenant's accounts share": (
        {"workspace": "shop"},
        [{"workspace": "shop"}, {"tier": "account"}],
        [{"workspace": "default"}, {"workspace": "shop2"}, {"workspace": "Shop"}],
    ),
    "an agent sees its own and what is shared": (
        {"agent": "atlas"},
        [{"agent": "atlas"}, {}, {"tier": "account"}, {"tier": "account", "agent": "atlas"}],
        [{"agent": "argus"}, {"agent": "Atlas"}, {"tier": "account", "agent": "argus"}],
    ),
    "an account sees its own and what is shared": (
        {"account": "alice"},
        [{"account": "alice"}, {}, {"tier": "account", "account": "alice"}],
        [{"account": "bob"}, {"tier": "account", "account": "bob"}],
    ),
    "a channel sees its own channel and conversation tiers, and what is wider": (
        {"channel": "ops"},
        [
            {"tier": "channel", "channel": "ops"},
            {},
            {"channel": "dev"},
            {"tier": "account"},
            {"tier": "conversation", "conversation": "c-1", "channel": "ops"},
        ],
        [
            {"tier": "channel", "channel": "dev"},
            {"tier": "conversation", "conversation": "c-1", "channel": "dev"},
            {"tier": "conversation", "conversation": "c-1"},
        ],
    ),
    "a conversation sees its own conversation tier and all of the other tiers": (
        {"conversation": "c-1"},
        [
            {"tier": "conversation", "conversation": "c-1"},
            {},
            {"conversation": "c-2"},
            {"tier": "channel", "channel": "dev", "conversation": "c-2"},
        ],
        [{"tier": "conversation", "conversation": "c-2"}],
    ),
    "every part of the address must allow it": (
        {"agent": "atlas", "account": "alice", "channel": "ops", "conversation": "c-1"},
        [{"agent": "atlas", "account": "alice", "tier": "channel", "channel": "ops"}],
        [
            {"agent": "atlas", "account": "bob"},
            {"agent": "argus", "account": "alice"},
            {"agent": "atlas", "tier": "channel", "channel": "dev"},
            {"agent": "atlas", "tier": "conversation", "channel": "ops", "conversation": "c-2"},
        ],
    ),
    "a view of no workspace sees what the accounts share, once": (
        {"workspace": None},
        [{"tier": "account"}, {"tier": "account", "agent": "atlas"}],
        [{}, {"agent": "atlas"}],
    ),
}
"""Name → the address that asks, memories that it sees, and memories that it does not."""


class FilterClaims:
    """A filter means the same whichever way a store is asked."""

    @pytest.mark.parametrize(("condition", "inside", "outside"), CONDITIONS.values(), ids=CONDITIONS)
    def test_a_condition_tells_memories_apart(
        self, store: Store, condition: Fields, inside: list[Fields], outside: list[Fields]
    ) -> None:
        _tells_apart(store, where(**condition), inside, outside)

    def test_every_condition_has_its_case(self) -> None:
        tried = {name for condition, _, _ in CONDITIONS.values() for name in condition}
        assert tried == set(Filter.__struct_fields__) - {"seen_from", "now"}

    @pytest.mark.parametrize(("view", "inside", "outside"), VIEWS.values(), ids=VIEWS)
    def test_a_view_sees_what_it_may_and_nothing_else(
        self, store: Store, view: Fields, inside: list[Fields], outside: list[Fields]
    ) -> None:
        _tells_apart(store, where(Address(**view)), inside, outside)

    def test_no_condition_widens_a_view(self, store: Store) -> None:
        keep(store, sample("heron", agent="argus", tags=("a",), superseded_by=_F))
        view = Address(agent="atlas")
        for conditions in ({"agent": "argus"}, {"tags": ("a",)}, {"any_tags": ("a", "b")}, {"superseded_by": (_F,)}):
            narrowed = where(view, **conditions)
            assert list(store.scan(narrowed)) == []
            assert search(store, words("heron"), narrowed) == []
            assert seen(store, narrowed) == []
            assert total(store, narrowed) == 0

    def test_conditions_must_all_hold(self, store: Store) -> None:
        both, *_ = keep(
            store, sample("heron", kind="task", tags=("a",)), sample("heron", kind="task"), sample("heron", tags=("a",))
        )
        assert list(store.scan(where(kinds=("task",), tags=("a",)))) == [both]
        assert seen(store, where(kinds=("task",), tags=("a",))) == [both.id]

    def test_what_changes_or_expires_is_seen_as_it_is_now(self, store: Store) -> None:
        (record,) = keep(store, sample("heron", expires_at=NOW + TICK))
        for moment, visible in ((NOW, [record.id]), (NOW + TICK, []), (NOW, [record.id])):
            assert seen(store, where(state="live", now=moment)) == visible
        for changes in ({"archived_at": NOW}, {"superseded_by": _F}, {"expires_at": NOW}):
            store.update(Place.of(record), [replace(record, **changes)])
            assert seen(store, where(state="live")) == []
        store.update(Place.of(record), [record])
        assert seen(store, where(state="live")) == [record.id]

    def test_what_becomes_valid_or_ends_is_seen_as_it_is_now(self, store: Store) -> None:
        (record,) = keep(store, sample("heron"))
        then = where(valid_at=NOW)
        for changes in ({"valid_until": NOW}, {"valid_from": NOW + TICK}):
            assert seen(store, then) == [record.id]
            store.update(Place.of(record), [replace(record, **changes)])
            assert seen(store, then) == []
            assert seen(store, where(valid_at=NOW - TICK)) == ([record.id] if "valid_until" in changes else [])
            store.update(Place.of(record), [record])

    def test_names_that_try_to_leave_the_query_are_just_names(self, store: Store) -> None:
        keep(store, sample("heron", agent="atlas", source="x", conversation="c-1"))
        hostile = "' OR 1=1 --"
        single: list[Fields] = [{field: hostile} for field in ("agent", "conversation", "channel")]
        several = ("kinds", "sources", "tags", "any_tags", "superseded_by")
        for condition in single + [{field: (hostile, '"', "%", "*")} for field in several]:
            assert list(store.scan(where(**condition))) == []
            assert seen(store, where(**condition)) == []
        assert list(store.scan(where(Address(agent=hostile)))) == []


def _tells_apart(store: Store, filter: Filter, inside: list[Fields], outside: list[Fields]) -> None:
    """Each way of asking finds those inside and none of the others."""
    view = {part: getattr(filter.seen_from, part) for part in ("tenant", "workspace")}
    address = {part: value for part, value in view.items() if value is not None}
    # A memory stands at the tenant and workspace that ask, unless the case is about just these.
    wanted = keep(store, *(sample("a heron", **_at(address, fields)) for fields in inside))
    others = keep(store, *(sample("a heron", **_at(address, fields, outside=True)) for fields in outside))
    assert all(filter.matches(record) for record in wanted), "the case itself is wrong"
    assert not any(filter.matches(record) for record in others), "the case itself is wrong"
    keys = sorted(_key(record) for record in wanted)
    assert sorted(_key(record) for record in store.scan(filter)) == keys
    assert sorted(seen(store, filter)) == sorted(ids(wanted))
    assert sorted(_key(record) for record in search(store, words("heron"), filter)) == keys
    assert total(store, filter) == len(wanted)
    for by in ("state", "kind", "tier", "agent", "embedded", "speaker"):
        assert sum(store.count(filter, [by]).values()) == len(wanted)


def _key(record: Record) -> tuple[str, str, str]:
    tenant, workspace = Place.of(record)
    return tenant, workspace or "", record.id


def _at(address: Fields, fields: Fields, outside: bool = False) -> Fields:
    return dict(fields) if outside and {"tenant", "workspace"} & fields.keys() else {**address, **fields}
