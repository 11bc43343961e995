"""Isolation: whoever stands elsewhere reads, changes, deletes and counts nothing, whatever it calls things."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from support.stores import DATABASES, located

from recollect import AccessError, Address, ConflictError, InputError, Memory, NotFoundError, RecollectError, Record

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET = "Euterpe"

PAIRS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "agent": ({"agent": "alice"}, {"agent": "mallory"}),
    "account": ({"account": "alice"}, {"account": "mallory"}),
    "agent and account": ({"agent": "alice", "account": "x"}, {"agent": "mallory", "account": "x"}),
    "tenant": ({"tenant": "acme"}, {"tenant": "evil"}),
    "tenant, same names": ({"tenant": "acme", "agent": "a"}, {"tenant": "evil", "agent": "a"}),
    "workspace": ({"workspace": "shop"}, {"workspace": "other"}),
    "workspace, other case": ({"workspace": "shop"}, {"workspace": "Shop"}),
    "channel": ({"channel": "ops"}, {"channel": "sales"}),
    "conversation": ({"conversation": "c1"}, {"conversation": "c2"}),
}


class World:
    """Everything alice has, and mallory, who stands elsewhere."""

    def __init__(self, url: str, pair: str) -> None:
        self.memory = Memory(url, clock=lambda: NOW)
        mine, others = PAIRS[pair]
        self.alice, self.mallory = self.memory.at(**mine), self.memory.at(**others)
        tier: Any = pair if pair in ("channel", "conversation") else None
        self.owl = self.keep(f"an owl called {SECRET}", tier, tags=["bird"], conversation="c1", importance=0.0)
        fox = self.keep(f"a fox called {SECRET}", tier)
        self.fox, self.newer = fox, self.alice.revise(fox.id, content=f"a newer fox called {SECRET}")
        self.dodo = self.keep(f"a dodo called {SECRET}", tier)
        self.alice.archive(self.dodo.id)
        self.lost = self.keep(f"a lost bee called {SECRET}", tier)
        self.alice.forget(self.lost.id)
        self.export = io.BytesIO()
        self.alice.export(self.export)
        self.before = self.all()
        self.log = self.alice.audit.search(limit=1000)

    def keep(self, text: str, tier: Any, **fields: Any) -> Record:
        return self.alice.remember(text, tier=tier, expires_at=NOW + timedelta(days=1), **fields)

    @property
    def ids(self) -> list[str]:
        return [self.owl.id, self.fox.id, self.newer.id, self.dodo.id, self.lost.id]

    def all(self) -> list[Record]:
        return sorted(self.alice.list(state=None, limit=1000), key=lambda one: one.id)


@pytest.fixture(scope="module", params=DATABASES)
def store(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def url(store: str, tmp_path: Path) -> str:
    return located(store, tmp_path / "memory")


@pytest.fixture(params=PAIRS)
def world(request: pytest.FixtureRequest, url: str) -> Iterator[World]:
    world = World(url, request.param)
    yield world
    world.memory.close()


READS: dict[str, Callable[[Memory], object]] = {
    "list": lambda m: m.list(limit=1000),
    "list every state": lambda m: m.list(state=None, limit=1000),
    "list archived": lambda m: m.list(state="archived"),
    "list a conversation": lambda m: m.list(conversation="c1"),
    "list a tag": lambda m: m.list(tags=["bird"]),
    "recall": lambda m: m.recall(f"owl fox dodo {SECRET}"),
    "recall a phrase": lambda m: m.recall('"an owl called"'),
    "recall a wildcard": lambda m: m.recall("Eut*"),
    "recall inside words": lambda m: m.recall("uterpe"),
    "stats": lambda m: m.stats().total,
    "doctor": lambda m: m.doctor(),
    "maintain": lambda m: m.maintain(early=True),
    "simulate": lambda m: m.simulate(days=400).events,
    "maintain, dry": lambda m: m.maintain(early=True, dry_run=True),
}

WRITES: dict[str, Callable[[Memory], object]] = {
    "forget by tag": lambda m: m.forget(tag="bird").count,
    "forget by time": lambda m: m.forget(since=NOW - timedelta(days=1)).count,
    "forget by time, erasing": lambda m: m.forget(until=NOW + timedelta(days=1), erase=True).count,
    "forget by conversation": lambda m: m.forget(conversation="c1").count,
    "forget nothing": lambda m: m.forget([]).count,
}

BY_ID: dict[str, Callable[[Memory, str], object]] = {
    "get": lambda m, one: m.get(one),
    "history": lambda m, one: m.history(one),
    "revise": lambda m, one: m.revise(one, content="mine"),
    "forget": lambda m, one: m.forget(one),
    "erase": lambda m, one: m.forget([one], erase=True),
    "archive": lambda m, one: m.archive(one),
    "restore": lambda m, one: m.restore([one]),
    "undo": lambda m, one: m.undo(one),
}


@pytest.mark.clause("ATL-18")
def test_reading_from_elsewhere_finds_nothing(world: World) -> None:
    for verb, read in READS.items():
        found = repr(read(world.mallory))
        assert SECRET not in found, verb
        assert not any(ident in found for ident in world.ids), verb
        assert world.all() == world.before, verb
        assert read(world.alice) or verb.startswith(("maintain", "simulate", "recall inside")), verb
        world.before = world.all()


@pytest.mark.clause("ATL-18")
def test_forgetting_from_elsewhere_forgets_nothing(world: World) -> None:
    for verb, forget in WRITES.items():
        assert forget(world.mallory) == 0, verb
        assert world.all() == world.before, verb
    world.alice.undo()
    assert world.alice.get(world.lost.id) == world.lost


@pytest.mark.clause("ATL-18")
def test_an_id_is_no_key(world: World) -> None:
    for verb, ident in product(BY_ID, world.ids):
        with pytest.raises(NotFoundError) as caught:
            BY_ID[verb](world.mallory, ident)
        assert SECRET not in str(caught.value), verb
        assert world.all() == world.before, verb


@pytest.mark.clause("ATL-18")
def test_a_diagnosis_from_elsewhere_knows_nothing(world: World) -> None:
    for ident in world.ids[:4]:
        assert world.mallory.diagnose(ident).status == "unknown"
    if world.mallory.address.agent:
        assert world.mallory.diagnose(world.lost.id).status == "unknown"


@pytest.mark.clause("ATL-18")
def test_an_export_from_elsewhere_holds_nothing(world: World) -> None:
    out = io.BytesIO()
    assert world.mallory.export(out) == 0
    assert SECRET.encode() not in out.getvalue()
    assert SECRET.encode() in world.export.getvalue()


@pytest.mark.clause("ATL-18")
def test_a_change_of_another_cannot_be_undone(world: World) -> None:
    for entry in world.log:
        with pytest.raises((NotFoundError, ConflictError)):
            world.mallory.undo(entry.id)
    with pytest.raises(NotFoundError):
        world.mallory.undo()
    assert world.all() == world.before


@pytest.mark.clause("ATL-18")
def test_an_import_from_elsewhere_changes_nothing_here(world: World) -> None:
    if world.mallory.address.tenant == world.alice.address.tenant and (
        world.mallory.address.workspace == world.alice.address.workspace
    ):
        with pytest.raises(AccessError, match="belongs to another agent, account, channel or conversation"):
            world.mallory.import_(io.BytesIO(world.export.getvalue()))
        forged = json.loads(world.export.getvalue())
        for one in forged["memories"]:
            one["address"] |= {
                part: getattr(world.mallory.address, part) for part in ("agent", "account", "channel", "conversation")
            }
        with pytest.raises((ConflictError, AccessError)):
            world.mallory.import_(io.BytesIO(json.dumps(forged).encode()))
    else:
        world.mallory.import_(io.BytesIO(world.export.getvalue()))
        world.mallory.forget(since=NOW - timedelta(days=1), erase=True)
    assert world.all() == world.before


@pytest.mark.clause("ATL-18")
def test_compacting_from_elsewhere_takes_no_undo_away(world: World) -> None:
    inside = {"agent", "account", "channel", "conversation"} & {
        part for part in Address.__struct_fields__ if getattr(world.mallory.address, part) is not None
    }
    if inside:
        with pytest.raises(AccessError, match="only a view of the whole workspace"):
            world.mallory.compact()
    else:
        world.mallory.compact()
    world.alice.undo()
    assert world.alice.get(world.lost.id) == world.lost


@pytest.mark.clause("ATL-18")
def test_a_workspace_is_not_forgotten_from_elsewhere(world: World) -> None:
    for name in (world.alice.address.workspace, world.mallory.address.workspace):
        try:
            world.mallory.forget(workspace=name)
        except AccessError:
            continue
        assert name == world.mallory.address.workspace
    assert world.all() == world.before


@pytest.mark.clause("ATL-18")
def test_the_log_of_another_can_be_read_in_the_tenant_but_holds_no_content(world: World) -> None:
    read = world.mallory.audit.search(limit=1000)
    assert SECRET not in repr(read)
    if world.mallory.address.tenant != world.alice.address.tenant:
        assert read == []
        assert world.mallory.audit.verify() == []
    world.mallory.audit.record("note", "mallory was here")
    assert world.alice.audit.search(limit=1000)[-len(world.log) :] == world.log
    assert all(one.ok for one in world.alice.audit.verify())


@pytest.mark.clause("ATL-18")
def test_writing_into_another_place_is_denied(world: World) -> None:
    for part in ("channel", "conversation"):
        here, there = getattr(world.mallory.address, part), getattr(world.alice.address, part)
        if here and there:
            with pytest.raises(AccessError, match=f"{part}: this view is bound to {here}"):
                world.mallory.remember("mine", **{part: there})
    stored = world.mallory.remember("mine")
    assert stored.address == world.mallory.address
    assert [one for one in world.all() if one != stored] == world.before


def test_agents_share_what_belongs_to_no_agent(url: str) -> None:
    with Memory(url) as memory:
        shared = memory.remember("the office is in Bern")
        for name in ("alice", "mallory"):
            assert memory.at(agent=name).list() == [shared]
        assert {one.text for one in memory.list()} == {"the office is in Bern"}


# No way up: every view that can be made of another sees no more than it

PARTS: dict[str, tuple[str, str]] = {
    "tenant": ("default", "t2"),
    "workspace": ("default", "w2"),
    "account": ("u1", "u2"),
    "channel": ("c1", "c2"),
    "conversation": ("x1", "x2"),
    "agent": ("a1", "a2"),
}
INSIDE = {"account", "channel", "conversation", "agent"}


@pytest.fixture(scope="module")
def crowd(store: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """Memories of every tier for every combination of owners and places."""
    with Memory(located(store, tmp_path_factory.mktemp("crowd") / "memory"), clock=lambda: NOW) as memory:
        for tenant, workspace, account, agent in product(
            PARTS["tenant"], PARTS["workspace"], (None, *PARTS["account"]), (None, *PARTS["agent"])
        ):
            view = memory.at(tenant=tenant, workspace=workspace, account=account, agent=agent)
            items: list[Any] = ["for the workspace", {"content": "for the account", "tier": "account"}]
            items += [{"content": "for a channel", "channel": channel} for channel in PARTS["channel"]]
            items += [
                {"content": "for a conversation", "conversation": conversation, "tier": "conversation"}
                for conversation in PARTS["conversation"]
            ]
            view.remember_many(items)
        yield memory


class Sight:
    """What a view sees, looked up once for each address, and what its owner could choose to see."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.seen: dict[Address, dict[str, Record]] = {}

    def of(self, view: Memory) -> dict[str, Record]:
        if view.address not in self.seen:
            self.seen[view.address] = {one.id: one for one in view.list(state=None, limit=100_000)}
        return self.seen[view.address]

    def reach(self, view: Memory, bound: frozenset[str]) -> set[str]:
        if bound & INSIDE or {"tenant", "workspace"} <= bound:
            return set(self.of(view))
        tenants = [view.address.tenant] if "tenant" in bound or "workspace" in bound else PARTS["tenant"]
        workspaces = [view.address.workspace or ""] if "workspace" in bound else PARTS["workspace"]
        places = product(tenants, workspaces)
        return {ident for tenant, name in places for ident in self.of(self.memory.at(tenant=tenant, workspace=name))}


@pytest.mark.clause("ATL-18")
def test_no_view_can_be_widened_in_any_order(crowd: Memory) -> None:
    sight = Sight(crowd)
    choices = [(None, *values) for values in PARTS.values()]
    asked = [{p: v for p, v in zip(PARTS, values, strict=True) if v} for values in product(*choices)]
    denied = made = 0
    for first in ({part: PARTS[part][0] for part in chosen if part} for chosen in product(*((None, p) for p in PARTS))):
        view = crowd.at(**first)
        reach = sight.reach(view, frozenset(first))
        for then in asked:
            try:
                narrower = view.at(**then)
            except AccessError:
                denied += 1
                continue
            made += 1
            assert sight.of(narrower).keys() <= reach, (first, then)
            assert all(getattr(narrower.address, part) == value for part, value in (first | then).items())
    assert denied > 10_000
    assert made > 5_000


@pytest.mark.clause("ATL-18")
def test_a_view_sees_its_own_and_what_is_shared_and_nothing_else(crowd: Memory) -> None:
    for values in product(*((None, first) for first, _ in PARTS.values())):
        chosen = {part: value for part, value in zip(PARTS, values, strict=True) if value}
        view = crowd.at(**chosen)
        seen = view.list(state=None, limit=100_000)
        assert seen
        for one in seen:
            address = one.address
            assert address.tenant == "default"
            assert address.workspace == (None if one.tier == "account" else "default")
            assert address.agent in (None, chosen.get("agent", address.agent))
            assert address.account in (None, chosen.get("account", address.account))
            if one.tier in ("channel", "conversation") and one.tier in chosen:
                assert getattr(address, one.tier) == chosen[one.tier]
        assert view.stats().total == len(seen)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_bound_cannot_be_chosen_again(crowd: Memory, part: str) -> None:
    here, there = PARTS[part]
    view = crowd.at(**{part: here})
    assert view.at(**{part: here}).address == view.address
    with pytest.raises(AccessError, match=f"^{part}: this view is bound to {here}"):
        view.at(**{part: there})


@pytest.mark.parametrize("inside", sorted(INSIDE))
@pytest.mark.parametrize("part", ["tenant", "workspace"])
def test_whoever_is_bound_inside_cannot_walk_into_another_place(crowd: Memory, part: str, inside: str) -> None:
    view = crowd.at(**{inside: PARTS[inside][0]})
    with pytest.raises(AccessError, match=f"bound to {inside} already; choose the {part} first, or with it"):
        view.at(**{part: PARTS[part][1]})
    assert crowd.at(**{part: PARTS[part][1], inside: PARTS[inside][0]}).address != view.address


# Hostile names

HOSTILE: list[Any] = [
    "", ".", "..", "../x", "../../etc/passwd", "/etc/passwd", "/", "\\", "a/b", "a\\..\\b", "~", "$HOME", "a\x00b",
    "\x00", "a\nb", "x\n", "\r", "%", "%s", "%2e%2e", "' or 1=1 --", '"; drop table memories; --', "*", "{}", "a b",
    "ａｄｍｉｎ", "аdmin", "\u202eadmin", "\ud800", "x" * 1_000_000, "-rf", ".hidden", 5, 1.5, True,
    b"bytes", [], {}, ["a"],
]  # fmt: skip

NAMED: dict[str, Callable[[Memory, Any], object]] = {
    **{f"at {part}": lambda m, x, part=part: m.at(**{part: x}) for part in PARTS},
    "remember conversation": lambda m, x: m.remember("a", conversation=x),
    "remember channel": lambda m, x: m.remember("a", channel=x),
    "remember kind": lambda m, x: m.remember("a", kind=x),
    "remember tier": lambda m, x: m.remember("a", tier=x),
    "remember tag": lambda m, x: m.remember("a", tags=[x]),
    "remember reference": lambda m, x: m.remember("a", references=[x]),
    "get": lambda m, x: m.get(x),
    "history": lambda m, x: m.history(x),
    "diagnose": lambda m, x: m.diagnose(x),
    "undo": lambda m, x: m.undo(x),
    "revise": lambda m, x: m.revise(x, content="a"),
    "forget in a list": lambda m, x: m.forget([x]),
    "forget tag": lambda m, x: m.forget(tag=x),
    "forget conversation": lambda m, x: m.forget(conversation=x),
    "forget workspace": lambda m, x: m.forget(workspace=x),
    "archive in a list": lambda m, x: m.archive([x]),
    "restore in a list": lambda m, x: m.restore([x]),
    "list conversation": lambda m, x: m.list(conversation=x),
    "list kind": lambda m, x: m.list(kind=x),
    "list tag": lambda m, x: m.list(tags=[x]),
    "recall conversation": lambda m, x: m.recall("owl", conversation=x),
    "audit action": lambda m, x: m.audit.record(x, "a"),
}


_IDS = {value for value in HOSTILE if isinstance(value, str) and value.isprintable() and 0 < len(value) <= 64}
LEGAL: dict[str, set[str]] = dict.fromkeys((*PARTS, "workspace", "conversation", "channel"), _IDS)
LEGAL |= {"tag": {"ａｄｍｉｎ", "аdmin", "-rf"}, "reference": {"-rf"}, "diagnose": {"-rf"}}
"""Odd, but nothing is wrong with them."""


@pytest.fixture(scope="module")
def target(store: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Memory]]:
    folder = tmp_path_factory.mktemp("hostile")
    with Memory(located(store, folder / "memory"), clock=lambda: NOW) as memory:
        memory.remember("an owl", tags=["bird"], conversation="c1")
        yield folder, memory


def names(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if not path.name.endswith(("-wal", "-shm"))}


@pytest.mark.clause("ATL-18", "LED-20")
@pytest.mark.parametrize("slot", NAMED)
def test_a_hostile_name_is_refused_and_leaves_no_trace(target: tuple[Path, Memory], slot: str) -> None:
    folder, memory = target
    before, files, around = memory.list(state=None), names(folder), names(folder.parent)
    legal = LEGAL.get(slot.split()[-1], set())
    for value in (value for value in HOSTILE if not isinstance(value, str) or value not in legal):
        with pytest.raises((InputError, NotFoundError, AccessError)) as caught:
            NAMED[slot](memory, value)
        assert len(str(caught.value)) < 300
        assert str(caught.value).isprintable()
    assert memory.list(state=None) == before
    assert names(folder) == files
    assert names(folder.parent) == around


LOOSE: dict[str, Callable[[Memory, Any], object]] = {
    "forget id": lambda m, x: m.forget(x),
    "archive id": lambda m, x: m.archive(x),
    "restore id": lambda m, x: m.restore(x),
    "forget reason": lambda m, x: m.forget("missing", reason=x),
    "archive reason": lambda m, x: m.archive("missing", reason=x),
    "recall query": lambda m, x: m.recall(x),
    "recall source": lambda m, x: m.recall("owl", source=x),
    "list source": lambda m, x: m.list(source=x),
    "list tags": lambda m, x: m.list(tags=x),
    "list since": lambda m, x: m.list(since=x),
    "audit search": lambda m, x: m.audit.search(x),
    "audit about": lambda m, x: m.audit.search(about=x),
    "forget since": lambda m, x: m.forget(since=x),
    "import": lambda m, x: m.import_(io.BytesIO(str(x).encode("utf-8", "replace"))),
}


@pytest.mark.clause("ATL-18")
@pytest.mark.parametrize("slot", LOOSE)
def test_a_hostile_value_is_data_or_a_typed_error(target: tuple[Path, Memory], slot: str) -> None:
    folder, memory = target
    before, files = [(one.id, one.content) for one in memory.list(state=None)], names(folder)
    for value in HOSTILE:
        with suppress(RecollectError):
            LOOSE[slot](memory, value)
    assert [(one.id, one.content) for one in memory.list(state=None)] == before
    assert names(folder) == files


@pytest.mark.clause("ATL-18")
def test_hostile_text_is_kept_as_text(url: str, tmp_path: Path) -> None:
    said = [value for value in HOSTILE if isinstance(value, str) and value.strip() and value != "\ud800"]
    with Memory(url) as memory:
        for value in said:
            kept = memory.remember({"said": value}, metadata={"said": value[:1000]})
            assert memory.get(kept.id) == kept
            assert memory.audit.record("said", value[:1000]).message == value[:1000]
        assert [one.content for one in memory.list(newest_first=False)] == [{"said": value} for value in said]
    assert {path.name for path in tmp_path.iterdir()} <= {"memory"}


def test_names_that_look_alike_are_different_places(url: str) -> None:
    with Memory(url) as memory:
        for name in ("shop", "Shop", "SHOP", "s.hop", "_shop", "shop_", "a@b", "a+b", "A-b"):
            memory.at(workspace=name).remember(f"in {name}")
        for name in memory.workspaces():
            assert [one.text for one in memory.at(workspace=name).list()] == [f"in {name}"]
        assert len(memory.workspaces()) == 9
