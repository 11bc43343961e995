"""A recall asks the store once for candidates, and once for the memories that it shows.

Once more for each of three words that no memory has, in case they are misspelled.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.concepts import Concepts, texts
from support.stores import DATABASES, STORES, located

from recollect import Memory
from recollect.stores import open_store

TALK = [
    ("Ann: My dog is a hound", "user"),
    ("Bob: I prefer tea", "user"),
    ("Ann: The puppy sleeps", "user"),
    ("Bob: Tea is a fine drink", "user"),
]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return open_store(located(request.param, tmp_path / "m"))


class Calls(Counter[str]):
    """The outermost calls of a store, by name."""

    def __init__(self, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._inside = False
        for name in ("count", "get", "lacking", "scan", "search"):
            monkeypatch.setattr(store, name, partial(self._call, name, getattr(store, name)))

    def _call(self, name: str, method: Any, *args: Any, **options: Any) -> Any:
        if self._inside:  # a store may call itself
            return method(*args, **options)
        self[name] += 1
        self._inside = True
        try:
            return method(*args, **options)
        finally:
            self._inside = False


def filled(memory: Memory) -> Memory:
    memory.remember_many({"content": text, "role": role, "conversation": "c"} for text, role in TALK)
    return memory


@pytest.mark.parametrize("embedder", ["none", "concepts"])
def test_a_recall_searches_once_and_counts_nothing(store: Any, embedder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(store, embedder=Concepts() if embedder == "concepts" else "none") as memory:
        filled(memory)
        if embedder == "concepts":
            memory.embed()
        memory.recall("what does Ann say of her dog?")  # from now on the speakers are known
        calls = Calls(store, monkeypatch)
        hits = memory.recall("what does Ann say of the hound?")
        assert texts(hits)[0] == "Ann: My dog is a hound"
        assert any(part.name == "speaker (ann)" for part in hits[0].scored.parts)
        assert (calls["search"], calls["count"], calls["lacking"], calls["scan"]) == (1, 0, 0, 0)
        assert calls["get"] <= (1 if embedder == "concepts" else 2)


def test_a_speaker_who_was_not_known_is_searched_for_again_with_the_right_vector(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    concepts = Concepts()
    asked: list[str] = []
    monkeypatch.setattr(concepts, "embed_query", lambda text: asked.append(text) or concepts._vector(text))
    with Memory(store, embedder=concepts) as memory:
        filled(memory)
        memory.embed()
        calls = Calls(store, monkeypatch)
        memory.recall("what does Ann say of the hound?")
        assert calls["search"] == 2
        assert asked == ["what does Ann say of the hound?", "what does say of the hound?"]
        memory.recall("what does Bob say of the hound?")
        assert (calls["search"], asked[2:]) == (3, ["what does say of the hound?"][1:])
        memory.remember_many(
            {"content": f"Cleo: I {verb} chess", "role": "user", "conversation": "d"} for verb in ("play", "love")
        )
        memory.embed()
        calls.clear()
        hits = memory.recall("what does Cleo say of sport?")
        # Twice, and for "sport", which no memory has: whether any that was not asked has it, then other spellings.
        assert calls["search"] == 2 + 1 + 1 + 3
        assert any(part.name == "speaker (cleo)" for part in hits[0].scored.parts)


def test_what_has_no_vector_yet_is_waited_for_and_searched_again(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(store, embedder=Concepts()) as memory:
        memory.remember("Ute sold her automobile")
        assert texts(memory.recall("car")) == ["Ute sold her automobile"]
        memory.embed()
        calls = Calls(store, monkeypatch)
        assert texts(memory.recall("car")) == ["Ute sold her automobile"]
        assert (calls["search"], calls["lacking"]) == (1, 0)


@pytest.mark.parametrize("kind", [kind for kind in DATABASES if kind == "postgresql"])
@pytest.mark.parametrize(("embedder", "trips"), [("concepts", 2), ("none", 3)])
def test_on_postgresql_a_recall_is_few_round_trips_and_groups_nothing(
    kind: str, embedder: str, trips: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = open_store(located(kind, tmp_path / "m"))
    with Memory(store, embedder=Concepts() if embedder == "concepts" else "none") as memory:
        filled(memory)
        if embedder == "concepts":
            memory.embed()
        memory.recall("what does Ann say of her dog?")
        read, pipelines = store.server.ask, list[list[str]]()

        def noted(tenant: str, statements: Any, *args: Any, **options: Any) -> Any:
            pipelines.append([statement.sql for statement in statements])
            return read(tenant, statements, *args, **options)

        monkeypatch.setattr(store.server, "ask", noted)
        assert memory.recall("what does Ann say of the hound?", touch=False)
        assert len(pipelines) <= trips
        workspace = [sql for pipeline in pipelines for sql in pipeline if "memories m" in sql]
        assert workspace
        assert not any("GROUP BY 1" in sql or "count(*), m.speaker" in sql for sql in workspace)
