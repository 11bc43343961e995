"""How often a place was asked, day by day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support import plain
from support.common import Clock
from support.page_data import page_data
from support.served import Served, served
from support.stores import STORES, located

from recollect import Memory
from recollect.memory import view_of
from recollect.server.recalls import Recalls
from recollect.stores import open_store
from recollect.stores.port import Place
from recollect.values.record import utc_now

HERE = Place("default", "default")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with Memory(tmp_path / "m") as memory, served(memory) as server:
        memory.remember("Ada likes tea")
        yield server


def _today(server: Served, place: Place = HERE) -> int:
    return server.serving.recalls.daily(place, 1)[f"{utc_now():%Y-%m-%d}"]


def test_what_programs_and_agents_ask_is_counted_and_shown(server: Served) -> None:
    headers = server.headers()

    def post(path: str, body: object, **more: str) -> None:
        assert plain.post(server.url + path, json=body, headers={**headers, **more}).status_code == 200

    shown = plain.get(f"{server.url}/", headers=headers).text
    assert "Nobody has asked by way of a server yet" in shown
    post("/v1/recall", {"query": "tea"})
    post("/v1/context", {"messages": [{"role": "user", "content": "tea?"}]})
    post("/v1/tools/recall", {"query": "tea"})
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "recall", "arguments": {"query": "t"}},
    }
    post("/mcp", call, accept="application/json, text/event-stream")
    post("/v1/recall", {"query": "tea"}, **{"recollect-workspace": "other"})
    plain.get(f"{server.url}/v1/memories", headers=headers)
    plain.get(f"{server.url}/memories?q=tea", headers=headers)  # a person who looks is no agent that asks
    assert _today(server) == 4
    assert _today(server, Place("default", "other")) == 1
    shown = plain.get(f"{server.url}/", headers=headers).text
    assert "4 in 30 days" in shown
    assert page_data(plain, f"{server.url}/", headers=headers)["recalled"] == 4


@pytest.mark.parametrize("kind", STORES)
def test_several_processes_count_together_and_nothing_is_lost_at_the_end(tmp_path: Path, kind: str) -> None:
    location, clock = located(kind, tmp_path / "m"), Clock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    one, other = open_store(location), open_store(location)
    first, second = Recalls(one, clock), Recalls(other, clock)
    for _ in range(3):
        first.count(HERE)
        second.count(HERE)
    first.write()
    second.write()
    clock.now += timedelta(days=1)
    second.count(HERE)
    assert first.daily(HERE, 2) == {"2026-03-01": 6, "2026-03-02": 0}, "what nobody has written is not known elsewhere"
    assert second.daily(HERE, 2) == {"2026-03-01": 6, "2026-03-02": 1}
    clock.now += timedelta(days=500)
    second.count(HERE)
    second.write()
    assert sum(first.daily(HERE, 600).values()) == 1, "what is older than a year is forgotten"
    one.close()
    other.close()


@pytest.mark.parametrize("kind", STORES)
def test_who_is_overtaken_counts_on_from_there(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    location, clock = located(kind, tmp_path / "m"), Clock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    one, other = open_store(location), open_store(location)
    first, second = Recalls(one, clock), Recalls(other, clock)
    find = first._things
    for _ in range(2):  # nobody has counted yet, and then somebody has
        first.count(HERE)
        second.count(HERE)

        def overtaken(place: Place) -> object:
            known = find(place)
            second.write()  # what was just read is old now
            return known

        monkeypatch.setattr(first, "_things", overtaken)
        first.write()
        monkeypatch.undo()
    assert first.daily(HERE, 1) == {"2026-03-01": 4}
    one.close()
    other.close()


def test_what_was_counted_outlasts_the_process(tmp_path: Path) -> None:
    for _ in range(2):
        with Memory(tmp_path / "m") as memory, served(memory) as server, server.memory() as there:
            there.recall("tea")
    with Memory(tmp_path / "m") as memory:
        assert sum(Recalls(view_of(memory).store, utc_now).daily(HERE, 2).values()) == 2
