"""A server is ready for the first question before anybody asks it, and ends in order while it gets ready."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from support.served import PLENTY, listening

from recollect import Memory, StoreError
from recollect.memory import view_of
from recollect.server import warming
from recollect.server.running import built
from recollect.server.serving import Serving
from recollect.stores.shortlist import Ask, Shortlist
from recollect.stores.sqlite.store import SqliteStore


def wait(true: Any) -> None:
    until = time.monotonic() + 20
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


def warming_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "recollect-warming"]


def test_the_copies_are_made_before_the_first_question(store_url: str) -> None:
    with Memory(store_url) as memory:
        memory.remember("Ada likes tea")
        memory.at(workspace="shop").remember("the shop opens at nine")
        memory.at(tenant="other").remember("what another tenant knows")
    with Memory(store_url) as memory:
        store = view_of(memory).store
        assert isinstance(store, SqliteStore)
        with listening(built(Serving(memory, limits=PLENTY), warm=True)):
            wait(lambda: not warming_threads())
            assert len(store.residents) == 2  # both workspaces of this tenant, and nobody else's
        assert [hit.memory.text for hit in memory.recall("tea")] == ["Ada likes tea"]


def test_no_more_than_some_are_got_ready(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "_MOST", 2)
    with Memory(store_url) as memory:
        for number in range(5):
            memory.at(workspace=f"w{number}").remember("something")
    with Memory(store_url) as memory, listening(built(Serving(memory, limits=PLENTY), warm=True)):
        wait(lambda: not warming_threads())
        assert len(view_of(memory).store.residents) == 2  # type: ignore[attr-defined]


def test_an_end_waits_for_no_more_than_what_is_under_way(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, asked = threading.Event(), threading.Event(), list[Ask]()

    def search(self: SqliteStore, ask: Ask) -> list[Shortlist]:
        asked.append(ask)
        begun.set()
        go_on.wait(20)
        return []

    with Memory(store_url) as memory:
        for number in range(3):
            memory.at(workspace=f"w{number}").remember("something")
        monkeypatch.setattr(SqliteStore, "search", search)
        with listening(built(Serving(memory, limits=PLENTY), warm=True)):
            assert begun.wait(20)
            threading.Timer(0.3, go_on.set).start()
        assert not warming_threads()
        assert len(asked) == 1
        monkeypatch.undo()


def test_what_cannot_be_read_keeps_nobody_from_starting(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def places(self: SqliteStore, tenant: str) -> Any:
        raise StoreError("the disk is gone")

    with Memory(store_url) as memory:
        serving = Serving(memory, limits=PLENTY)
        monkeypatch.setattr(SqliteStore, "places", places)
        with listening(built(serving, warm=True)):
            wait(lambda: not warming_threads())
        monkeypatch.undo()
