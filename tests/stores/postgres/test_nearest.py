"""Large places have an index of their own for their vectors, and answer nearly as if all were compared."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from support.command_line import recollect
from support.postgres import DSN, Server

from recollect.conformance.samples import NOW, sample
from recollect.stores import open_store
from recollect.stores.port import Place, Store
from recollect.stores.postgres.admin.nearest import IndexChange, Indexer
from recollect.stores.postgres.connections import Location
from recollect.stores.shortlist import Ask, Shortlist
from recollect.text.query_parser import parse_query
from recollect.values.filters import Filter
from recollect.values.record import Address

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(DSN), reason="needs a server of its own")]

COUNT, DIMENSIONS = 4000, 32
LARGE, SMALL = Place("acme", "large"), Place("acme", "small")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    # So few rows would be read one by one otherwise.
    with Server(enable_seqscan="off", enable_bitmapscan="off") as server:
        yield server


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    rng = np.random.default_rng(7)
    centres = rng.standard_normal((40, DIMENSIONS))
    made = centres[rng.integers(0, 40, COUNT)] + 0.4 * rng.standard_normal((COUNT, DIMENSIONS))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype("<f4")


@pytest.fixture(scope="module")
def url(server: Server, vectors: np.ndarray) -> str:
    store = open_store(server.url())
    for place, count in ((LARGE, COUNT), (SMALL, 50)):
        for first in range(0, count, 500):
            records = [
                sample(
                    f"memory {n} of group{n % 7}",
                    tenant="acme",
                    workspace=place.workspace,
                    conversation=f"c{n // 10}",
                    kind="fact" if n % 2 else "task",
                    embedding=vectors[n].tobytes(),
                    embedding_model="test",
                )
                for n in range(first, min(count, first + 500))
            ]
            store.put(place, records)
    store.close()
    server.psql("ANALYZE")  # as the server would in a minute: it takes the tables for empty until then
    return server.url()


def ask(store: Store, place: Place, vector: np.ndarray, **conditions: object) -> Shortlist:
    where = Filter(seen_from=Address(place.tenant, place.workspace), now=NOW, **conditions)  # type: ignore[arg-type]
    (found,) = store.search(Ask(where, parse_query("group3"), vector.tobytes(), "test", each=100))
    return found


def nearest(found: Shortlist, count: int = 10) -> list[str]:
    assert found.cosine is not None
    best = np.argsort(-np.nan_to_num(found.cosine, nan=-2.0), kind="stable")[:count]
    return [found.block.ids[at] for at in best.tolist()]


def test_an_index_is_built_used_kept_and_dropped(server: Server, url: str, vectors: np.ndarray) -> None:
    location = Location.of(url)
    exact = {n: ask(open_store(url), LARGE, vectors[n]) for n in range(0, COUNT, 400)}
    (planned,) = Indexer(location, above=1000).plan()
    assert planned == IndexChange("acme", "large", f"test:{DIMENSIONS}", COUNT, "build")
    (built,) = Indexer(location, above=1000).run()
    assert built.action == "build"
    assert (built.recall or 0.0) >= 0.9
    before = _scans(server, 20)  # by which it was tried itself
    by_index = {n: ask(open_store(url), LARGE, vectors[n]) for n in exact}
    assert _scans(server, before + len(exact)) >= before + len(exact), "the index was not used"
    shares = [len(set(nearest(by_index[n])) & set(nearest(exact[n]))) / 10 for n in exact]
    assert sum(shares) / len(shares) >= 0.9
    for n, found in by_index.items():
        assert found.whole.memories == pytest.approx(exact[n].whole.memories, rel=0.05)
        assert found.whole.cosine == pytest.approx(exact[n].whole.cosine, abs=0.05)
        assert found.whole.spread == pytest.approx(exact[n].whole.spread, rel=0.15)
        assert found.whole.frequency["group3"] == exact[n].whole.frequency["group3"]
    (kept,) = Indexer(location, above=1000).run()
    assert kept.action == "keep"
    (dropped,) = Indexer(location, above=1_000_000).run()
    assert dropped.action == "drop"
    assert _names(server) == []
    assert nearest(ask(open_store(url), LARGE, vectors[0])) == nearest(exact[0])


def test_filters_hold_by_the_index_too(url: str, vectors: np.ndarray) -> None:
    Indexer(Location.of(url), above=1000).run()
    store = open_store(url)
    found = ask(store, LARGE, vectors[3], kinds=("task",))
    kinds = {record.kind for record in store.get(LARGE, found.block.ids)}
    assert kinds == {"task"}
    assert ask(store, SMALL, vectors[3]).whole.memories == 50


def test_what_is_new_deleted_or_embedded_anew_is_found_by_the_index(url: str, vectors: np.ndarray) -> None:
    Indexer(Location.of(url), above=1000).run()
    store = open_store(url)
    fields = {"tenant": "acme", "workspace": "large", "embedding_model": "test"}
    new = sample("quite new", embedding=(-vectors[0]).tobytes(), **fields)
    store.put(LARGE, [new])
    assert nearest(ask(store, LARGE, -vectors[0]), 1) == [new.id]
    store.embed(LARGE, "test", {new.id: vectors[0].tobytes()})
    assert nearest(ask(store, LARGE, -vectors[0]), 1) != [new.id]
    store.delete(LARGE, [new.id])
    assert new.id not in ask(store, LARGE, vectors[0]).block.ids


def test_a_build_that_was_killed_is_begun_anew(server: Server, url: str) -> None:
    Indexer(Location.of(url), above=1000).run()
    (name,) = _names(server)
    server.psql(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'recollect.{name}'::regclass")
    server.psql("SET recollect.tenant = 'acme'; UPDATE recollect.places SET nearest = NULL")
    (again,) = Indexer(Location.of(url), above=1000).run()
    assert (again.action, again.recall) == ("build", pytest.approx(1.0, abs=0.1))
    assert server.psql(f"SELECT indisvalid FROM pg_index WHERE indexrelid = 'recollect.{name}'::regclass") == [(True,)]


def test_from_the_command_line(url: str) -> None:
    assert "4,000 vectors" in recollect("db", "index", "--store", url, "--above", "1000", "--dry-run").stdout
    assert "of the true ten" in recollect("db", "index", "--store", url, "--above", "1000").stdout
    assert "so large" in recollect("db", "index", "--store", f"{url}?schema=empty").stdout


def _names(server: Server) -> list[str]:
    return [name for (name,) in server.psql("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'nearest%'")]


def _scans(server: Server, least: int) -> int:
    """Sessions tell of what they did after a while."""
    until, scans = time.monotonic() + 5, 0
    while scans < least and time.monotonic() < until:
        sql = "SELECT sum(idx_scan)::int FROM pg_stat_user_indexes WHERE indexrelname LIKE 'nearest%'"
        scans = server.psql(sql)[0][0] or 0
        time.sleep(0.1)
    return scans
