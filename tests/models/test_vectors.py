"""Vectors that a caller brings, and those that are made afterwards: each once, newest first, however many there are."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support.concepts import Concepts, Floats, texts
from support.stores import STORES, located

from recollect import InputError, Memory, ModelError
from recollect.conformance.samples import sample
from recollect.memory import view_of
from recollect.models import vectors
from recollect.stores import open_store
from recollect.stores.port import Place

PLACE = Place("default", "default")


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


class Unreachable(Concepts):
    """Does not even say how long its vectors are."""

    def __init__(self) -> None:
        self.model = "far away"

    @property
    def dimensions(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise ModelError("nobody answers")


class Counting(Concepts):
    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        self.sizes.append(len(texts))
        return super().embed_documents(texts)


def made(memory: Memory) -> int:
    embedding = view_of(memory).embedding
    assert embedding is not None
    return embedding.finish(PLACE, lambda _: None)


def test_vectors_that_the_caller_has_are_not_made_again(url: str) -> None:
    concepts = Concepts()
    with Memory(url, embedder=concepts) as memory:
        words = ["a hound barks", "some tea", "a dwelling"]
        rows = concepts.embed_documents(words)
        concepts.embedded.clear()
        memory.remember_many([{"content": text, "embedding": row} for text, row in zip(words, rows, strict=True)])
        assert made(memory) == 0
        assert concepts.embedded == []
        assert texts(memory.recall("puppy"))[0] == "a hound barks"
        assert {record.embedding_model for record in memory.list()} == {concepts.model}


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, ">f4", np.int32])
def test_an_array_is_as_good_as_a_list(tmp_path: Path, kind: str) -> None:
    with Memory(tmp_path, embedder="none") as memory:
        stored = memory.remember("an owl", embedding=np.array([1, 0, 3], kind), embedding_model="mini")
        assert memory.get(stored.id).floats == (1.0, 0.0, 3.0)


@pytest.mark.parametrize(
    ("vector", "problem"),
    [
        (np.zeros((2, 2)), "must be a sequence of numbers that fit float32"),
        (np.array(["a"]), "must be a sequence of numbers that fit float32"),
        (np.array([1e39, 1.0]), "must be a sequence of numbers that fit float32"),
        (np.array([1.0, math.nan]), "must not contain NaN or infinity"),
        (np.array([]), "0 dimensions are outside"),
    ],
)
def test_an_array_that_is_no_vector_is_refused(tmp_path: Path, vector: Floats, problem: str) -> None:
    with Memory(tmp_path, embedder="none") as memory:
        with pytest.raises(InputError, match=problem):
            memory.remember_many(["an owl", {"content": "a lynx", "embedding": vector}])
        assert memory.list() == []


def test_a_vector_of_another_size_than_the_model_makes_is_refused(tmp_path: Path) -> None:
    with Memory(tmp_path, embedder=Concepts()) as memory:
        kept = memory.remember("a lynx")
        for name in (None, "concepts"):
            with pytest.raises(InputError, match="3 dimensions, but concepts makes vectors of 8"):
                memory.remember("an owl", embedding=[1.0, 0.0, 0.0], embedding_model=name)
            with pytest.raises(InputError, match="3 dimensions, but concepts makes vectors of 8"):
                memory.revise(kept.id, embedding=[1.0, 0.0, 0.0], embedding_model=name)
        other = memory.remember("an owl", embedding=[1.0, 0.0, 0.0], embedding_model="another")
        assert other.embedding_model == "another"
        assert made(memory) >= 1
        assert memory.get(other.id).embedding_model == "concepts"


def test_a_memory_with_a_vector_is_stored_while_nobody_can_ask_the_model(tmp_path: Path) -> None:
    with Memory(tmp_path, embedder=Unreachable()) as memory:
        assert memory.remember("an owl", embedding=[1.0, 0.0]).embedding_model == "far away"


def test_a_revision_keeps_the_vector_of_another_model_that_it_has(tmp_path: Path) -> None:
    with Memory(tmp_path, embedder="none") as memory:
        old = memory.remember("an owl", embedding=[1.0, 0.0])
    with Memory(tmp_path, embedder=Unreachable()) as memory:
        assert memory.revise(old.id, importance=0.9).floats == (1.0, 0.0)


def test_batches_grow_while_the_embedder_is_quick(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_QUICK", 1e6)
    monkeypatch.setattr(vectors, "_SLOW", 2e6)
    counting = Counting()
    with Memory(url, embedder="none") as memory:
        memory.remember_many([f"memory {number}" for number in range(1500)])
    with Memory(url, embedder=counting) as memory:
        assert made(memory) == 1500
        assert counting.sizes[:3] == [32, 64, 128]
        assert sum(counting.sizes) == 1500
        assert made(memory) == 0


def test_of_many_models_the_newest_without_the_wanted_vector_come_first(url: str) -> None:
    """Whatever the vectors are of that they have."""
    store = open_store(url)
    of = [("wanted", 2), ("old", 2), (None, 0), ("wanted", 3), ("older", 2), ("wanted", 2), ("old", 2), (None, 0)]
    records = [
        sample(
            f"memory {number}",
            embedding=np.ones(size, "<f4").tobytes() if model else None,
            embedding_model=model,
        )
        for number, (model, size) in enumerate(of)
    ]
    stored = [record.id for record in store.put(PLACE, records)]
    lacking = [stored[at] for at in (7, 6, 4, 3, 2, 1)]
    for most in range(8):
        assert store.lacking(PLACE, "wanted", 2, most) == lacking[:most]
    assert store.lacking(PLACE, "old", 2, 100) == [stored[at] for at in (7, 5, 4, 3, 2, 0)]
    store.close()
