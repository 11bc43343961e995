"""Inklings, "Agent Memory System", through the public surface."""

import math
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from support.common import Clock

from recollect import InputError, Memory

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def inklings(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with Memory(tmp_path / "memory", preset="inklings", clock=clock) as memory:
        yield memory


def database(tmp_path: Path, name: str = "memory.db") -> apsw.Connection:
    return apsw.Connection(str(next(tmp_path.rglob(name))))


@pytest.mark.clause("INK-02")
def test_an_entry_has_every_field(inklings: Memory, clock: Clock) -> None:
    stored = inklings.remember(
        "likes short answers",
        tier="channel",
        channel="general",
        conversation="aB3dE6gH9jK",
        lifetime="long_term",
        source="observation",
        importance=0.4,
        tags=["style"],
        embedding=[0.5],
    )
    clock.now += timedelta(hours=1)
    inklings.recall("short answers")
    found = inklings.get(stored.id)
    assert (found.tier, found.lifetime, found.source, found.content) == (
        "channel",
        "long_term",
        "observation",
        "likes short answers",
    )
    assert (found.importance, found.tags, found.floats) == (0.4, ("style",), (0.5,))
    assert (found.access_count, found.created_at, found.accessed_at) == (1, NOW, NOW + timedelta(hours=1))
    assert (found.address.conversation, found.address.channel) == ("aB3dE6gH9jK", "general")


@pytest.mark.clause("INK-02")
@pytest.mark.parametrize("lifetime", ["long_term", "short_term", "conversation"])
def test_a_lifetime_is_one_of_three(inklings: Memory, lifetime: Any) -> None:
    assert inklings.at(conversation="c").remember("a lynx", lifetime=lifetime).lifetime == lifetime
    assert inklings.remember("a lynx").lifetime == "short_term"
    with pytest.raises(InputError, match="long_term, short_term, conversation"):
        inklings.remember("a lynx", lifetime=lifetime.upper())


@pytest.mark.clause("INK-02")
@pytest.mark.parametrize(
    "wrong", [{"importance": -0.1}, {"importance": 1.1}, {"importance": math.nan}, {"content": ""}, {"content": "  "}]
)
def test_importance_outside_0_to_1_and_empty_content_are_refused(inklings: Memory, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        inklings.remember_many([{"content": "a lynx", **wrong}])
    assert inklings.stats().total == 0


@pytest.mark.clause("INK-03")
def test_the_source_can_be_filtered_by_and_opens_or_closes_nothing(inklings: Memory) -> None:
    ada, bob = inklings.at(agent="ada"), inklings.at(agent="bob")
    ada.remember("of ada", source="bob")
    bob.remember("of bob", source="bob")
    shared = inklings.remember("of all", source="ada")
    assert {one.text for one in bob.list()} == {"of bob", "of all"}
    assert [one.text for one in bob.list(source="bob")] == ["of bob"]
    assert bob.list(source="ada") == [shared]
    assert [hit.memory.text for hit in ada.recall("of ada", source="ada")] == []
    assert {one.text for one in inklings.list(source="bob")} == {"of ada", "of bob"}


RATES = {"account": 0.999, "workspace": 0.998, "channel": 0.995, "conversation": 0.99}


@pytest.mark.clause("INK-05")
@pytest.mark.parametrize("tier", RATES)
@pytest.mark.parametrize(("hours", "recalls"), [(0, 0), (24, 0), (168, 0), (24, 1), (168, 5)])
def test_relevance_is_importance_times_decay_times_frequency(
    inklings: Memory, clock: Clock, tier: Any, hours: int, recalls: int
) -> None:
    inklings.remember("an owl", kind="preference", importance=0.6, tier=tier, channel="c", conversation="x")
    for _ in range(recalls):
        inklings.recall("owl")
    clock.now += timedelta(hours=hours)
    (hit,) = inklings.recall("owl", touch=False)
    told = hit.explain()
    ranks, importance, decay = (part.share for part in told.parts)
    assert [part.name for part in told.parts] == ["ranks", "importance", "decay"]
    assert ranks == pytest.approx(1 / 61)
    assert importance * decay == pytest.approx(0.6 * RATES[tier] ** hours * (1 + math.log(1 + recalls)))
    assert told.how == "product"
    assert hit.score == pytest.approx(ranks * importance * decay)


@pytest.mark.clause("INK-05", "INK-06")
def test_what_is_recalled_often_comes_before_what_is_not(inklings: Memory, clock: Clock) -> None:
    for text in ("owl one", "owl two"):
        inklings.remember(text, importance=0.5)
    for _ in range(3):
        clock.now += timedelta(hours=1)
        inklings.recall('"owl two"')
    clock.now += timedelta(hours=100)
    assert [hit.memory.text for hit in inklings.recall("owl")] == ["owl two", "owl one"]
    assert {one.text: one.access_count for one in inklings.list()} == {"owl two": 4, "owl one": 1}


@pytest.mark.clause("INK-09")
def test_the_account_and_each_workspace_are_separate_databases(tmp_path: Path, inklings: Memory) -> None:
    inklings.at(workspace="shop").remember("an owl in the shop")
    inklings.at(workspace="lab").remember("a fox in the lab")
    inklings.at(workspace="lab").remember("prefers tabs", kind="preference", tier="account")
    inklings.close()
    files = {path.relative_to(tmp_path / "memory").as_posix(): path for path in tmp_path.rglob("*.db")}
    assert set(files) == {
        "default/account.db",
        "default/workspaces/shop/memory.db",
        "default/workspaces/lab/memory.db",
    }
    for name, path in files.items():
        holds = {text for text in (b"an owl", b"a fox", b"prefers tabs") if text in path.read_bytes()}
        assert holds == {b"prefers tabs" if "account" in name else b"an owl" if "shop" in name else b"a fox"}


@pytest.mark.clause("INK-09")
def test_deleting_a_workspace_removes_its_folder_and_leaves_no_orphan(tmp_path: Path, inklings: Memory) -> None:
    shop = inklings.at(workspace="shop")
    shop.remember("an owl", embedding=[0.5] * 8)
    shop.forget(workspace="shop")
    inklings.close()
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert left == ["account.db"]
    with database(tmp_path, "account.db") as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        assert not connection.execute("SELECT * FROM memories").fetchall()
        assert not connection.execute("SELECT * FROM embeddings").fetchall()
        assert "memories" in tables
    assert b"an owl" not in (next(tmp_path.rglob("account.db"))).read_bytes()


@pytest.mark.clause("INK-10")
def test_an_embedding_is_a_blob_of_little_endian_float32(tmp_path: Path, inklings: Memory) -> None:
    vector = [number / 768 - 0.5 for number in range(768)]
    inklings.remember("an owl", embedding=vector)
    inklings.close()
    with database(tmp_path) as connection:
        ((kind, blob),) = connection.execute("SELECT typeof(vector), vector FROM embeddings").fetchall()
    assert (kind, len(blob)) == ("blob", 3072)
    assert blob == struct.pack("<768f", *vector)
