"""Forgetting: what goes, what stays, what can be brought back, and what is gone from the disk."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import Clock
from support.stores import FILES, located

from recollect import AccessError, DiskFullError, InputError, Memory, NotFoundError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def left(memory: Memory) -> list[str]:
    return sorted(one.text for one in memory.list(state=None))


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.fixture
def zoo(memory: Memory, clock: Clock) -> Memory:
    memory.remember("lynx", tags=["cat.wild"])
    clock.now += DAY
    memory.remember("tomcat", tags=["cat", "pet"], conversation="c1")
    clock.now += DAY
    memory.remember("category", tags=["category"], tier="account", conversation="c1")
    clock.now += DAY
    memory.archive(memory.remember("dodo", tags=["bird"]).id)
    memory.remember("owl", tags=["bird.night"], expires_at=clock.now + timedelta(hours=1))
    clock.now += DAY
    return memory


@pytest.mark.parametrize(
    ("conditions", "gone"),
    [
        ({"tag": "cat"}, ["lynx", "tomcat"]),
        ({"tag": "cat.wild"}, ["lynx"]),
        ({"tag": "bird"}, ["dodo", "owl"]),
        ({"tag": "ca"}, []),
        ({"since": NOW + DAY}, ["category", "dodo", "owl", "tomcat"]),
        ({"until": NOW + DAY}, ["lynx"]),
        ({"since": NOW + DAY, "until": NOW + 2 * DAY}, ["tomcat"]),
        ({"since": "2026-03-03"}, ["category", "dodo", "owl"]),
        ({"conversation": "c1"}, ["category", "tomcat"]),
        ({"conversation": "c1", "tag": "cat"}, ["tomcat"]),
        ({"tag": "cat", "until": NOW + DAY}, ["lynx"]),
        ({"conversation": "c2"}, []),
    ],
)
def test_what_meets_all_conditions_is_forgotten_in_every_state(
    zoo: Memory, conditions: dict[str, Any], gone: list[str]
) -> None:
    before = {one.text: one.id for one in zoo.list(state=None)}
    receipt = zoo.forget(**conditions)
    assert left(zoo) == sorted(set(before) - set(gone))
    assert sorted(receipt.ids) == sorted(before[text] for text in gone)
    assert receipt.count == len(gone)


def test_one_and_several_are_forgotten_by_id(memory: Memory) -> None:
    a, b, c, d = (one.id for one in memory.remember_many(["owl", "fox", {"content": "elk", "tier": "account"}, "bee"]))
    assert memory.forget(a).ids == (a,)
    assert sorted(memory.forget([b, c, b]).ids) == sorted([b, c])
    assert left(memory) == ["bee"]
    with pytest.raises(NotFoundError):
        memory.forget([d, a])
    assert left(memory) == ["bee"]
    assert memory.forget([]).count == 0


def test_the_receipt_says_what_when_why_and_where_to_look(memory: Memory, clock: Clock) -> None:
    owl, elk = memory.remember_many(["owl", {"content": "elk", "tier": "account"}])
    clock.now += DAY
    receipt = memory.forget([owl.id, elk.id], reason="the user asked")
    assert (receipt.at, receipt.count, receipt.reason, receipt.erased, receipt.note) == (
        NOW + DAY,
        2,
        "the user asked",
        False,
        None,
    )
    assert set(receipt.ids) == {owl.id, elk.id}
    entries = {entry.id: entry for entry in memory.audit.search("the user asked")}
    assert set(receipt.entries) == set(entries)
    assert sorted(ident for entry in entries.values() for ident in entry.meta["deleted"]) == sorted(receipt.ids)
    assert {entry.action for entry in entries.values()} == {"forget"}


def test_earlier_versions_go_with_the_one_that_is_named(memory: Memory) -> None:
    first = memory.remember("lives in Bern", tags=["home"])
    second = memory.revise(first.id, content="lives in Basel", tags=["city"])
    third = memory.revise(second.id, content="lives in Chur")
    other = memory.remember("likes tea", tags=["city"])
    assert set(memory.forget(third.id).ids) == {first.id, second.id, third.id}
    assert left(memory) == ["likes tea"]
    assert memory.get(other.id) == other


def test_earlier_versions_go_with_what_a_tag_names(memory: Memory) -> None:
    first = memory.remember("lives in Bern")
    memory.revise(first.id, content="lives in Basel", tags=["city"])
    assert memory.forget(tag="city").count == 2
    assert left(memory) == []


def test_a_forgotten_memory_is_not_found_by_any_verb(memory: Memory) -> None:
    owl = memory.remember("an owl")
    memory.forget(owl.id)
    assert memory.recall("owl") == []
    assert memory.list(state=None) == []
    for verb in (memory.get, memory.history, memory.archive, memory.restore, memory.forget):
        with pytest.raises(NotFoundError):
            verb(owl.id)
    with pytest.raises(NotFoundError):
        memory.revise(owl.id, content="a robin")


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({}, "id"),
        ({"reason": "because"}, "id"),
        ({"erase": True}, "id"),
        ({"id": "a", "tag": "cat"}, "id"),
        ({"id": "a", "since": NOW}, "id"),
        ({"id": "a", "conversation": "c1"}, "id"),
        ({"tag": "no tag"}, "tag"),
        ({"tag": ["cat"]}, "tag"),
        ({"since": "whenever"}, "since"),
        ({"until": 5}, "until"),
        ({"conversation": "c1\n"}, "conversation"),
        ({"tag": "cat", "reason": "two\nlines"}, "reason"),
        ({"tag": "cat", "reason": "x" * 201}, "reason"),
        ({"tag": "cat", "reason": ""}, "reason"),
        ({"id": 5}, "id"),
        ({"id": ["../x"]}, "id"),
        ({"workspace": "default", "tag": "cat"}, "workspace"),
        ({"workspace": "default", "id": "a"}, "workspace"),
    ],
)
def test_a_wish_that_is_not_clear_is_refused(zoo: Memory, wish: dict[str, Any], field: str) -> None:
    before = left(zoo)
    with pytest.raises(InputError) as caught:
        zoo.forget(**wish)
    assert caught.value.field == field
    assert left(zoo) == before
    (entry,) = zoo.audit.search(limit=1)
    assert (entry.action, entry.meta["verb"], entry.meta["field"]) == ("refuse", "forget", field)


@pytest.mark.clause("AEG-03")
@pytest.mark.parametrize("verb", ["forget", "archive"])
def test_a_secret_in_the_reason_does_not_get_into_the_log(tmp_path: Path, memory: Memory, verb: str) -> None:
    owl, secret = memory.remember("an owl"), "gh" + "p_a1B2c3D4e5F6g7H8"
    with pytest.raises(InputError, match="reason: text appears to contain a secret") as caught:
        getattr(memory, verb)(owl.id, reason=f"leaked {secret}")
    assert secret not in repr(caught.value)
    assert memory.list() == [owl]
    memory.close()
    assert secret.encode() not in everything(tmp_path)


def test_forgetting_keeps_the_text_for_undo_until_it_is_compacted(tmp_path: Path, memory: Memory) -> None:
    owl = memory.remember("an owl called Euterpe")
    memory.forget(owl.id)
    assert b"Euterpe" in everything(tmp_path)
    assert isinstance(memory.compact(), int)
    assert b"Euterpe" not in everything(tmp_path)
    assert owl.id in memory.audit.search("forgot")[0].meta["deleted"]


def test_erasing_removes_the_text_from_the_disk_at_once(tmp_path: Path, memory: Memory) -> None:
    vector = [float(number) for number in range(50)]
    first = memory.remember("an owl called Euterpe", metadata={"nick": "Terpi"}, embedding=vector)
    second = memory.revise(first.id, content="an owl called Kalliope", embedding=vector)
    memory.archive(second.id)
    memory.restore(second.id)
    memory.recall("Kalliope")
    memory.remember("something else")
    assert b"Euterpe" in everything(tmp_path)
    receipt = memory.forget(second.id, erase=True)
    assert receipt.erased
    assert set(receipt.ids) == {first.id, second.id}
    found = everything(tmp_path)
    for trace in (b"Euterpe", b"Kalliope", b"Terpi", b"euterpe", b"kalliope", first.embedding):
        assert trace is not None
        assert trace not in found
    assert left(memory) == ["something else"]


@pytest.mark.clause("INK-09")
def test_a_workspace_is_forgotten_as_a_whole(tmp_path: Path, memory: Memory) -> None:
    shop, office = memory.at(workspace="shop"), memory.at(workspace="office")
    shop.remember_many(["an owl called Euterpe", "a fox"])
    shop.forget(tag="nothing")
    office.remember("an elk")
    mine = shop.remember("I like tabs", tier="account")
    assert memory.workspaces() == ["office", "shop"]
    assert (shop.workspaces(), memory.at(workspace="attic").workspaces()) == (["shop"], [])
    receipt = shop.forget(workspace="shop", reason="closed down")
    assert (receipt.count, receipt.erased, receipt.reason) == (2, True, "closed down")
    assert memory.workspaces() == ["office"]
    assert not [path for path in tmp_path.rglob("*") if "shop" in path.name or ".trash" in path.name]
    assert b"Euterpe" not in everything(tmp_path)
    assert shop.list() == [mine]
    assert left(office) == ["I like tabs", "an elk"]
    (entry,) = memory.audit.search("closed down")
    assert (entry.action, entry.meta["workspace"], entry.meta["memories"]) == ("forget_workspace", "shop", 2)
    assert entry.id in receipt.entries


def test_a_forgotten_workspace_can_be_begun_again(memory: Memory) -> None:
    shop = memory.at(workspace="shop")
    shop.remember("an owl")
    shop.forget(workspace="shop")
    assert shop.list(state=None) == []
    shop.remember("a fox")
    assert left(shop) == ["a fox"]
    assert [entry.message for entry in shop.audit.search("remembered")] == ["remembered a fact"]


def test_a_workspace_is_forgotten_only_from_a_view_of_it(memory: Memory) -> None:
    shop = memory.at(workspace="shop")
    shop.remember("an owl")
    for view in (
        memory,
        memory.at(workspace="office"),
        shop.at(agent="atlas"),
        shop.at(account="ada"),
        shop.at(channel="ops"),
        shop.at(conversation="c1"),
    ):
        with pytest.raises(AccessError, match="workspace"):
            view.forget(workspace="shop")
    for wrong in ("Shop", "shop/", "../shop", "", "*"):
        with pytest.raises(AccessError):
            shop.forget(workspace=wrong)
    assert left(shop) == ["an owl"]


@pytest.mark.parametrize("store", FILES)
def test_erasing_on_a_full_disk_says_that_it_is_forgotten_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    with Memory(located(store, tmp_path / "m"), embedder="none") as memory:
        ident = memory.remember("the heron nests at the north pier").id
        disk = memory._view.on_disk
        assert disk is not None

        def full(place: object, erased: object) -> None:
            raise DiskFullError("no space left on device. Free some space")

        with monkeypatch.context() as patch:
            patch.setattr(disk, "scrub", full)
            with pytest.raises(DiskFullError, match=r"forgotten.* not erased .*Free some space\. Then run compact"):
                memory.forget(ident, erase=True)
        assert left(memory) == []
        memory.compact()
    assert b"north pier" not in everything(tmp_path)
