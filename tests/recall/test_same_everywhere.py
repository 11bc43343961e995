"""What a store keeps and how it searches makes no difference to what is recalled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.stores import DATABASES, located

from recollect import Memory, NotFoundError


class Drawn:
    """Vectors by the letters of a text, of a model whose cosines mean nothing to anybody."""

    model, dimensions = "drawn", 4

    def embed_query(self, text: str) -> Sequence[float]:
        return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:4]]

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [self.embed_query(text) for text in texts]

    def close(self) -> None:
        pass


def answers(tmp_path: Path, embedder: Any, ask: Callable[[Memory], object]) -> list[object]:
    found: list[object] = []
    for kind in DATABASES:
        with Memory(located(kind, tmp_path / kind), embedder=embedder) as memory:
            found.append(ask(memory))
    return found


@pytest.mark.parametrize("least", [None, 0.1, 0.9])
def test_relevance_goes_by_the_vectors_that_can_be_seen(tmp_path: Path, least: float | None) -> None:
    def ask(memory: Memory) -> object:
        agreed = memory.remember("we always agree", tier="account", kind="preference")
        memory.at(channel="other").remember("something else")
        memory.embed()
        hits = memory.recall("always", kind="preference", min_relevance=least)
        found = [(hit.memory.text, hit.relevance and round(hit.relevance, 6)) for hit in hits]
        return found, hits.answered, hits.report.replace(agreed.id, "it")

    first, *rest = answers(tmp_path, Drawn(), ask)
    assert all(one == first for one in rest)


@pytest.mark.parametrize("content", ["front \0 zebra", {"k\0y": "zebra one"}, "\0", "zebra \0"])
def test_a_text_with_a_nul_weighs_the_same(tmp_path: Path, content: Any) -> None:
    def ask(memory: Memory) -> object:
        memory.remember_many(["filler alpha beta zebra gamma", "other text of delta here", {"content": content}])
        return [(hit.memory.text, round(hit.score, 6)) for hit in memory.recall("zebra alpha")]

    first, *rest = answers(tmp_path, "none", ask)
    assert all(one == first for one in rest)


UNKNOWN = "f" * 32
NOTHING: dict[str, Callable[[Memory], object]] = {
    "step": lambda memory: memory.workflows.step(UNKNOWN, "one"),
    "complete": lambda memory: memory.workflows.complete(UNKNOWN),
    "fail": lambda memory: memory.workflows.fail(UNKNOWN, error="x"),
    "finish": lambda memory: memory.workflows.finish(UNKNOWN),
    "remove a workflow": lambda memory: memory.workflows.remove(UNKNOWN),
    "remove a document": lambda memory: memory.knowledge.remove(UNKNOWN),
    "compact": lambda memory: memory.compact(),
}


@pytest.mark.parametrize("verb", NOTHING)
@pytest.mark.parametrize("kind", DATABASES)
def test_what_is_about_nothing_begins_no_place(tmp_path: Path, kind: str, verb: str) -> None:
    with Memory(located(kind, tmp_path / "m"), embedder="none", preset="atlas") as memory:
        view = memory.at(tenant="nobody", workspace="nowhere")
        if verb == "compact":
            view.compact()
        else:
            with pytest.raises(NotFoundError):
                NOTHING[verb](view)
        assert view._view.store.places("nobody") == []
        if kind != "postgresql":
            assert not (tmp_path / "m" / "nobody").exists()
