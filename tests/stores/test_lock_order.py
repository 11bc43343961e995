"""The order in which locks are taken: places in one order, and in each its log before its index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.stores import FILES, located

from recollect import Memory
from recollect.stores.files.log import Log
from recollect.stores.port import Place
from recollect.stores.sqlite.database import Database
from recollect.values.errors import StoreError

WORKSPACE, ACCOUNT = Place("default", "default"), Place("default", None)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Place]]:
    """Each lock that is taken, and of which place."""
    locks: list[tuple[str, Place]] = []
    lock_log: Any = Log.lock
    begin: Any = Database._begin  # pyright: ignore[reportPrivateUsage]

    def locking(log: Log, seconds: float) -> Any:
        locks.append(("log", log.place))
        return lock_log(log, seconds)

    def beginning(database: Any, seconds: float, durable: bool) -> None:
        locks.append(("file", database.place))
        begin(database, seconds, durable)

    monkeypatch.setattr(Log, "lock", locking)
    monkeypatch.setattr(Database, "_begin", beginning)
    return locks


@pytest.mark.parametrize("kind", FILES)
def test_places_are_locked_in_one_order_however_they_are_named(
    kind: str, tmp_path: Path, taken: list[tuple[str, Place]]
) -> None:
    with Memory(located(kind, tmp_path / "memory"), embedder="none") as memory:
        memory.remember_many([{"content": "here"}, {"content": "shared", "tier": "account"}])
        store = memory._view.store
        each = ["file"] if kind == "sqlite" else ["log", "file"]
        for places in ((WORKSPACE, ACCOUNT), (ACCOUNT, WORKSPACE), (ACCOUNT, WORKSPACE, ACCOUNT)):
            taken.clear()
            with store.transaction(*places):
                assert taken == [(lock, place) for place in (ACCOUNT, WORKSPACE) for lock in each]
                with store.transaction(WORKSPACE):
                    pass  # joins
                assert len(taken) == 2 * len(each)


@pytest.mark.parametrize("kind", FILES)
def test_a_place_that_is_not_held_cannot_be_joined(kind: str, tmp_path: Path) -> None:
    with Memory(located(kind, tmp_path / "memory"), embedder="none") as memory:
        memory.remember_many([{"content": "here"}, {"content": "shared", "tier": "account"}])
        store = memory._view.store
        refused = pytest.raises(StoreError, match="name all at once")
        with store.transaction(WORKSPACE), refused, store.transaction(ACCOUNT):
            pass
        memory.remember("goes on")
        assert len(memory.list()) == 3


@pytest.mark.parametrize("kind", ["ledger", "notebook"])
def test_whoever_only_reads_takes_no_lock_of_the_log(kind: str, tmp_path: Path, taken: list[tuple[str, Place]]) -> None:
    url = located(kind, tmp_path / "memory")
    with Memory(url, embedder="none") as memory:
        memory.remember("a heron")
    for index in tmp_path.rglob("index.db"):
        index.unlink()
    memory = Memory(url, embedder="none")
    taken.clear()
    assert memory.list()[0].content == "a heron"
    assert {lock for lock, _ in taken} == {"file"}
    memory.close()
