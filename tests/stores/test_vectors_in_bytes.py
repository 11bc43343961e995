"""Vectors are compared a byte a number, and what may come first is compared exactly: the answer is that of float32."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recollect.conformance.samples import NOW, sample
from recollect.policies.ranking import Calibrated
from recollect.recall.calibrated import score
from recollect.recall.pool import Pool
from recollect.stores.port import Place
from recollect.stores.resident import highest as highests
from recollect.stores.resident import products as counted
from recollect.stores.resident import shortlist as shortlists
from recollect.stores.resident.highest import highest
from recollect.stores.resident.products import products
from recollect.stores.resident.vectors import Vectors, encoded
from recollect.stores.shortlist import Ask, Shortlist
from recollect.stores.sqlite.store import SqliteStore
from recollect.text.query import TextQuery
from recollect.values.filters import Filter
from recollect.values.record import Address

Floats = NDArray[np.float32]
PLACE = Place("default", "default")
COUNT, DIMENSIONS = 3000, 384
WORDS = "owl lynx hare heron fox stork wren".split()


@pytest.fixture(params=["simsimd", "numpy"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(counted, "_simsimd", lambda: None)
    else:
        pytest.importorskip("simsimd")


def spread_out(rng: np.random.Generator) -> Floats:
    return rng.normal(size=(COUNT, DIMENSIONS)).astype(np.float32)


def clustered(rng: np.random.Generator) -> Floats:
    """Around a few centres, and all of them on one side, as the vectors of texts are."""
    centres = rng.normal(size=(12, DIMENSIONS)) + 1.0
    return (centres[rng.integers(12, size=COUNT)] + 0.3 * rng.normal(size=(COUNT, DIMENSIONS))).astype(np.float32)


def nearly_alike(rng: np.random.Generator) -> Floats:
    return (np.ones(DIMENSIONS) + 0.05 * rng.normal(size=(COUNT, DIMENSIONS))).astype(np.float32)


KINDS = {each.__name__: each for each in (spread_out, clustered, nearly_alike)}


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[SqliteStore, Floats]]:
    rng = np.random.default_rng(3)
    vectors = KINDS[request.param](rng)
    vectors *= rng.uniform(0.1, 5.0, size=(COUNT, 1)).astype(np.float32)  # whoever makes them may not normalise them
    store = SqliteStore(tmp_path)
    store.put(
        PLACE,
        [
            sample(
                f"{' '.join(rng.choice(WORDS, rng.integers(1, 3)))} number {number}",
                conversation=f"c{number // 20}" if number % 3 else None,
                embedding=vector.tobytes() if number % 50 else None,
                embedding_model="m" if number % 50 else None,
            )
            for number, vector in enumerate(vectors)
        ],
    )
    yield store, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    store.close()


def asked(store: SqliteStore, question: Floats) -> Shortlist:
    where = Filter(seen_from=Address(), now=NOW, tiers=("workspace",))
    (answer,) = store.search(Ask(where, TextQuery(words=("owl", "heron")), question.tobytes(), "m"))
    return answer


def questions(vectors: Floats) -> Iterator[Floats]:
    rng = np.random.default_rng(8)
    for number in range(12):
        near = vectors[rng.integers(COUNT)] + (0.05 if number % 2 else 0.2) * rng.normal(size=DIMENSIONS)
        yield (near / np.linalg.norm(near)).astype(np.float32)


def best(scores: Floats, most: int = 10) -> list[int]:
    return np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")[:most].tolist()


@pytest.mark.usefixtures("library")
def test_the_first_ten_are_those_of_float32(place: tuple[SqliteStore, Floats], monkeypatch: pytest.MonkeyPatch) -> None:
    store, vectors = place
    weights = Calibrated()

    def total(shortlist: Shortlist) -> Floats:
        pool = Pool([shortlist])
        text = pool.text(TextQuery(words=("owl", "heron")), None)
        return score(text, pool.cosines(), pool.columns(), visible=pool.shown, weights=weights).total

    for sampled in (1 << 40, 500):
        monkeypatch.setattr(highests, "_SAMPLED", sampled)
        monkeypatch.setattr(highests, "_SAMPLE", 200)
        for question in questions(vectors):
            answer = asked(store, question)
            exact = (vectors @ question).astype(np.float32)
            exact[::50] = np.nan
            assert answer.cosine is not None
            assert np.allclose(answer.cosine, exact, atol=0.003, equal_nan=True)
            first = best(exact)
            assert best(answer.cosine) == first
            assert np.allclose(answer.cosine[first], exact[first], atol=1e-6)
            ours, right = total(answer), total(answer._replace(cosine=exact))
            for mine, theirs in zip(best(ours), best(right), strict=True):
                assert mine == theirs or right[mine] == pytest.approx(float(right[theirs]), abs=1e-3)


@pytest.mark.usefixtures("library")
def test_of_a_few_all_are_exact(place: tuple[SqliteStore, Floats], monkeypatch: pytest.MonkeyPatch) -> None:
    store, vectors = place
    monkeypatch.setattr(shortlists, "_FEW", COUNT)
    for question in questions(vectors):
        exact = vectors @ question
        exact[::50] = np.nan
        assert np.allclose(asked(store, question).cosine, exact, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("dimensions", [1, 7, 384, 1024])
@pytest.mark.parametrize("rows", [0, 1, 1023, 1024, 1025, 5000])
def test_with_and_without_the_library_the_products_are_the_same(
    rows: int, dimensions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("simsimd")
    rng = np.random.default_rng(rows + dimensions)
    matrix = rng.integers(-127, 128, (rows, dimensions), np.int8)
    question = rng.integers(-127, 128, dimensions, np.int8)
    expected = matrix.astype(np.int64) @ question.astype(np.int64)
    results: list[Any] = []
    for library in (counted._simsimd, lambda: None):
        monkeypatch.setattr(counted, "_simsimd", library)
        out = np.empty(rows, np.float32)
        products(matrix, question, out)
        results.append(out.tolist())
    assert results == [expected.tolist()] * 2


def test_without_the_library_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "simsimd", None)
    counted._simsimd.cache_clear()
    try:
        assert counted._simsimd() is None
        out = np.empty(2, np.float32)
        products(np.array([[1, 2], [3, -4]], np.int8), np.array([5, 6], np.int8), out)
        assert out.tolist() == [17.0, -9.0]
    finally:
        counted._simsimd.cache_clear()


def test_odd_vectors_harm_nobody() -> None:
    """Zeros, numbers near the end of float32, and what only damage can bring."""
    odd = np.array([[0, 0], [3e38, 3e38], [1e-38, 0], [np.nan, 1], [np.inf, 1], [3, 4]], np.float32)
    vectors = Vectors("m", 2, 6)
    with np.errstate(over="ignore"):
        vectors.fill(np.arange(6), [row.tobytes() for row in odd])
        cosines = vectors.cosines(np.array([0.6, 0.8], np.float32), 6)
    assert cosines[5] == pytest.approx(1.0, abs=0.01)
    assert np.isnan(cosines[3])
    assert cosines[0] == 0.0
    codes, scale = encoded(np.zeros((0, 5), np.float32))
    assert (codes.shape, scale.shape) == ((0, 5), (0,))


@pytest.mark.parametrize("size", [0, 1, 10, 3000])
@pytest.mark.parametrize("most", [1, 7, 3000, 5000])
def test_the_highest_come_first_and_nan_never(size: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(size)
    for sampled in (1 << 40, 100):
        monkeypatch.setattr(highests, "_SAMPLED", sampled)
        monkeypatch.setattr(highests, "_SAMPLE", 50)
        for values in (rng.normal(size=size), rng.integers(3, size=size), np.full(size, np.nan), np.zeros(size)):
            values = values.astype(np.float32)
            values[::3] = np.nan
            expected = sorted(-value for value in values.tolist() if value == value)[:most]
            assert (-values[highest(values, most)]).tolist() == expected
