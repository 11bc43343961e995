"""What a memory on a server sends: no more than it needs, nothing twice, and nothing from an event loop."""

from __future__ import annotations

import asyncio
import functools
import io
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.concepts import Concepts
from support.served import Served, served

from recollect import AsyncMemory, Hits, InputError, Memory, UnavailableError, tools
from recollect.values.errors import StoreError


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """Method, path and thread of each request."""
    seen: list[tuple[str, str, str]] = []
    request = httpx.Client.request

    def noted(self: httpx.Client, method: str, url: Any, **more: Any) -> httpx.Response:
        seen.append((method, httpx.URL(url).path, threading.current_thread().name))
        return request(self, method, url, **more)

    monkeypatch.setattr(httpx.Client, "request", noted)
    return seen


def test_a_slow_reading_is_not_sent_again(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server works on it once, and writes are sent again under their key."""
    verified, held = list[int](), threading.Event()

    @functools.wraps(Memory.verify)
    def slow(self: Memory) -> list[Any]:
        verified.append(1)
        held.wait(60)
        return []

    with server.memory() as memory:
        monkeypatch.setattr(Memory, "verify", slow)
        memory._client._http().timeout = httpx.Timeout(0.2)  # type: ignore[attr-defined]
        with pytest.raises(UnavailableError, match="may still be at work"):
            memory.verify()
        assert len(verified) == 1
        held.set()


def test_an_export_and_an_import_may_take_longer_than_other_calls(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server makes all of an export before its first byte, and reads all of an import before it answers."""
    patience: list[float] = []

    def never(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        patience.append(request.extensions["timeout"]["read"])
        raise httpx.ReadTimeout("too long", request=request)

    with server.memory() as memory:
        monkeypatch.setattr(httpx.HTTPTransport, "handle_request", never)
        for slow in (lambda: memory.export(tmp_path / "e.json"), lambda: memory.import_(io.BytesIO(b"{}"))):
            with pytest.raises(UnavailableError, match="no answer within 600 s; it may still be at work"):
                slow()
    assert patience == [600.0, 600.0]


def test_a_slow_write_is_sent_again_and_done_once(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    tries, remember = list[int](), Memory.remember

    @functools.wraps(remember)
    def slow(self: Memory, *given: Any, **more: Any) -> Any:
        tries.append(1)
        threading.Event().wait(1.0)
        return remember(self, *given, **more)

    with server.memory() as memory:
        monkeypatch.setattr(Memory, "remember", slow)
        memory._client._http().timeout = httpx.Timeout(0.4)  # type: ignore[attr-defined]
        assert memory.remember("Ada likes tea").text == "Ada likes tea"
    assert len(tries) == 1


def test_vectors_are_sent_with_one_memory_and_not_with_lists(tmp_path: Path) -> None:
    with Memory(tmp_path / "m", embedder=Concepts()) as here, served(here) as server, server.memory() as memory:
        ident = memory.remember("Ute sold her automobile").id
        here.embed()
        assert memory.get(ident).embedding is not None
        assert [one.embedding for one in memory.list()] == [None]
        assert [hit.memory.embedding for hit in memory.recall("car")] == [None]


def test_a_writing_tool_asks_for_nothing_more(server: Served, sent: list[tuple[str, str, str]]) -> None:
    with server.memory() as memory:
        sent.clear()
        assert "error" not in tools.call(memory, "remember", {"content": "Ada likes tea"})
        assert [(method, path) for method, path, _ in sent] == [("POST", "/v1/memories")]


def test_the_server_says_how_many_writes_wait_for_its_disk(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.view import View

    with server.memory() as memory:
        monkeypatch.setattr(View, "unsaved", property(lambda view: 3))
        result = tools.call(memory, "remember", {"content": "Ada likes tea"})
        assert "not_saved_yet" in result
        assert memory.unsaved == 3
        monkeypatch.setattr(View, "unsaved", property(lambda view: 0))
        memory.list()
        assert memory.unsaved == 0


def test_nothing_is_sent_from_the_event_loop(server: Served, sent: list[tuple[str, str, str]]) -> None:
    async def use() -> None:
        memory = AsyncMemory(server.url, key=server.key())
        with pytest.raises(StoreError, match="async with"):
            _ = memory.address
        there = memory.at(workspace="notes")
        assert memory.unsaved == 0
        assert sent == []
        await there.remember("Ada likes tea")
        assert [one.text for one in await there.list()] == ["Ada likes tea"]
        assert await there.workflows.list() == []
        assert there.address.workspace == "notes"
        assert await memory.list() == []
        await memory.close()
        async with AsyncMemory(server.url, key=server.key()) as other:
            assert other.address.tenant == "default"
            assert other.preset.name
            assert other.unsaved == 0

    asyncio.run(use())
    assert sent
    assert all(thread.startswith("recollect-") for _, _, thread in sent)


def test_any_is_a_word_like_others_but_for_what_has_a_default(server: Served) -> None:
    with server.memory() as memory:
        memory.remember("any colour will do", kind="any", source="any")
        for conditions in ({"contains": "any"}, {"kind": "any"}, {"source": "any"}):
            assert len(memory.list(**conditions)) == 1, conditions
        with pytest.raises(InputError, match="state"):
            memory.list(state="any")  # pyright: ignore[reportArgumentType]


def test_what_is_told_of_hits_is_told_from_afar_too(tmp_path: Path) -> None:
    with (
        Memory(tmp_path / "m", embedder="none") as here,
        served(here) as server,
        server.memory(tenant="default") as afar,
    ):
        here.remember_many(["The recycling is collected on Tuesdays", "Rent is due on Fridays"])
        for question in ("when is the recylcing collected?", "when is Zorba's wedding?", "what is due?"):
            near, far = here.recall(question), afar.recall(question)
            assert _told(near) == _told(far)


def _told(hits: Hits) -> Any:
    return [(hit.memory.id, hit.scored, hit.relevance) for hit in hits], hits.answered, hits.report
