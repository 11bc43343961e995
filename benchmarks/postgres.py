"""PostgreSQL: ours beside the same SQL through bare psycopg, on the same server and in one run.

What a call sends is written down once and then sent again without us, in as many round trips: that is the floor. Ours
and the floor take turns. A server of our own is started from the wheel that the tests use, durable (fsync on), unless
`--url` names one. No model takes part: vectors are random, and a question's is given.

    python benchmarks/postgres.py [--rows 1000000] [--seconds 60] [--url postgresql://…] [--json]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import psycopg
from corpus import questions, sentences

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support import postgres as servers

from recollect import Memory
from recollect.stores.port import Place
from recollect.stores.postgres import words
from recollect.stores.rows import text_key

os.environ["RECOLLECT_EMBEDDER"] = "none"
DIMENSIONS, TENANT, SIZE = 384, "t0", 10_000
SETTINGS = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "2GB", "max_wal_size": "8GB"}


class Given:
    """An embedder whose vectors cost nothing: drawn by the text."""

    model, dimensions = "given", DIMENSIONS

    def _vector(self, text: str) -> Any:
        vector = np.random.default_rng(abs(hash(text)) % (1 << 32)).standard_normal(DIMENSIONS).astype(np.float32)
        return vector / np.linalg.norm(vector)

    def embed_query(self, text: str) -> Any:
        return self._vector(text)

    def embed_documents(self, texts: Any) -> Any:
        return [self._vector(text) for text in texts]

    def close(self) -> None:
        pass


class Tape:
    """What was sent, one round trip after the other, to be sent again."""

    def __init__(self) -> None:
        self.trips: list[list[tuple[str, Any, dict[str, Any]]]] = []

    @contextmanager
    def recording(self) -> Iterator[None]:
        execute, pipeline = psycopg.Connection.execute, psycopg.Connection.pipeline
        together = False

        def executed(connection: Any, query: Any, params: Any = None, **options: Any) -> Any:
            if not together:
                self.trips.append([])
            self.trips[-1].append((query, params, options))
            return execute(connection, query, params, **options)

        @contextmanager
        def piped(connection: Any) -> Iterator[Any]:
            nonlocal together
            together = True
            self.trips.append([])
            with pipeline(connection) as made:
                yield made
            together = False

        psycopg.Connection.execute, psycopg.Connection.pipeline = executed, piped  # type: ignore[method-assign]
        try:
            yield
        finally:
            psycopg.Connection.execute, psycopg.Connection.pipeline = execute, pipeline  # type: ignore[method-assign]

    def play(self, connection: Any, change: Callable[[Any], Any] = lambda value: value) -> None:
        for trip in self.trips:
            if len(trip) == 1:
                connection.execute(trip[0][0], change(trip[0][1]), **trip[0][2])
                continue
            with connection.pipeline():
                cursors = [connection.execute(query, change(params), **options) for query, params, options in trip]
            for cursor in cursors:
                if cursor.description:
                    cursor.fetchall()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--url")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with served(asked.url) as url:
        texts = sentences(SIZE)
        rows.append(singles(url))
        rows.append(bulk(url, texts))
        fill(url, texts)
        alone = recalls(url, texts, "recall 10 of 10,000 by words and meaning, alone in the database")
        rows.append(alone)
        neighbours(url, asked.rows)
        among = recalls(url, texts, f"the same among {asked.rows:,}")
        rows.append(among)
        rows.append({"what": "among the others beside alone", "ratio": among["ours_us"] / alone["ours_us"]})
        rows.append(cold(url))
        rows += crowd(url, asked.seconds)
    print(json.dumps(rows) if asked.json else "\n".join(map(shown, rows)))


def shown(row: dict[str, Any]) -> str:
    row = dict(row)
    what = row.pop("what")
    return f"{what}\n    " + "  ".join(f"{k} {v:,.2f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())


@contextmanager
def served(url: str | None) -> Iterator[str]:
    if url:
        yield url
        return
    os.environ["TMPDIR"] = os.environ.get("TMPDIR", "/var/tmp")
    servers.begin()
    try:
        with servers.Server(**SETTINGS) as server:
            yield server.url()
    finally:
        servers.end()


def compared(what: str, ours: Callable[[int], object], floor: Callable[[int], object], rounds: int) -> dict[str, Any]:
    mine, bare = list[float](), list[float]()
    for number in range(rounds):
        for action, seconds in ((ours, mine), (floor, bare)) if number % 2 else ((floor, bare), (ours, mine)):
            start = time.perf_counter()
            action(number)
            seconds.append(time.perf_counter() - start)
    ours_us, floor_us = statistics.median(mine) * 1e6, statistics.median(bare) * 1e6
    return {"what": what, "ours_us": ours_us, "floor_us": floor_us, "ratio": ours_us / floor_us}


def bare(url: str) -> Any:
    connection = psycopg.connect(url, autocommit=True)
    connection.execute("SELECT 1")
    return connection


def singles(url: str) -> dict[str, Any]:
    texts = sentences(1000, seed=11)
    floor_tape, connection = Tape(), bare(url)
    with Memory(url).at(tenant="single") as memory, Memory(url).at(tenant="floor") as other:
        memory.remember("warm")
        for n in range(9):
            other.remember(f"warm {n}")
        with floor_tape.recording():
            first = other.remember("the one that is written down")
        # What no two memories have in common: the number of the memory and of its audit entry, the ids, the text's key.
        apart = {10, text_key("the one that is written down")}

        def again(value: Any, n: int) -> Any:
            if isinstance(value, tuple | list):
                return [again(one, n) for one in value]
            if isinstance(value, int):
                return value + n + 1 if value in apart else value
            return f"{first.id[:-6]}{n:06x}" if value == first.id else value

        return compared(
            "remember, p50",
            lambda n: memory.remember(texts[n]),
            lambda n: floor_tape.play(connection, lambda params: again(params, n)),
            400,
        )


def bulk(url: str, texts: list[str]) -> dict[str, Any]:
    """Beside COPY of the very same rows, as a role that row-level security does not stop from copying."""
    mine, floor = list[float](), list[float]()
    tables = ("memories", "contents", "search")
    connection = bare(url)
    for number in range(4):
        tenant = f"bulk{number}"
        with Memory(url).at(tenant=tenant) as memory:
            memory.remember("warm")
            start = time.perf_counter()
            memory.remember_many(texts)
            mine.append(time.perf_counter() - start)
        kept = {name: _copied_out(connection, name, tenant, f"copy{number}") for name in tables}
        start = time.perf_counter()
        with connection.transaction():
            for name, data in kept.items():
                with connection.cursor().copy(f"COPY recollect.{name} FROM STDIN") as copy:
                    copy.write(data)
        floor.append(time.perf_counter() - start)
    ours, least = statistics.median(mine), statistics.median(floor)
    return {
        "what": "remember_many of 10,000 (floor: COPY)",
        "ours_us": ours * 1e6,
        "floor_us": least * 1e6,
        "ratio": ours / least,
        "rate": least / ours,
    }


def _copied_out(connection: Any, table: str, tenant: str, other: str) -> bytes:
    """The rows of one tenant as COPY has them, as those of another."""
    with connection.cursor().copy(
        f"COPY (SELECT * FROM recollect.{table} WHERE tenant = '{tenant}') TO STDOUT"
    ) as copy:
        data = b"".join(bytes(part) for part in copy)
    old, new = (words.place_key(Place(name, "default")) for name in (tenant, other))
    return data.replace(f"{tenant}\t".encode(), f"{other}\t".encode()).replace(old.encode(), new.encode())


def fill(url: str, texts: list[str]) -> None:
    embedder = Given()
    with Memory(url, embedder=embedder).at(tenant=TENANT) as memory:  # type: ignore[arg-type]
        for first in range(0, SIZE, 1000):
            memory.remember_many([{"content": t, "conversation": f"c{first}"} for t in texts[first : first + 1000]])
        memory.embed()
    bare(url).execute("VACUUM ANALYZE")


def neighbours(url: str, rows: int) -> None:
    """Other tenants of the same size, their rows between each other as if all wrote at once."""
    connection, count = bare(url), rows // SIZE - 1
    others = f"(SELECT n, 'n' || n AS tenant FROM generate_series(1, {count}) n) o"
    keys = {n: words.place_key(Place(f"n{n}", "default")) for n in range(1, count + 1)}
    own = words.place_key(Place(TENANT, "default"))
    connection.execute("CREATE TEMP TABLE keys (n int, key text)")
    with connection.cursor().copy("COPY keys FROM STDIN") as copy:
        for n, key in keys.items():
            copy.write_row((n, key))
    for table in ("places", "memories", "contents", "vectors", "search"):
        columns = [
            name
            for (name,) in connection.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = 'recollect' "
                "AND table_name = %s AND column_name <> 'tenant' ORDER BY ordinal_position",
                (table,),
            ).fetchall()
        ]
        taken = [
            f"replace(t.words::text, '{own}', k.key)::tsvector" if name == "words" else f"t.{name}" for name in columns
        ]
        order = "" if table == "places" else "ORDER BY t.seq, o.n"
        connection.execute(
            f"INSERT INTO recollect.{table} (tenant, {', '.join(columns)}) SELECT o.tenant, {', '.join(taken)} "
            f"FROM recollect.{table} t CROSS JOIN {others} JOIN keys k ON k.n = o.n WHERE t.tenant = '{TENANT}' {order}"
        )
    connection.execute("VACUUM ANALYZE")


def recalls(url: str, texts: list[str], what: str) -> dict[str, Any]:
    asked = questions(60, texts)
    connection = bare(url)
    with Memory(url, embedder=Given()).at(tenant=TENANT) as memory:  # type: ignore[arg-type]
        tapes: list[Tape] = []
        for question in asked:
            for _ in range(2):
                memory.recall(question, touch=False)
            tape = Tape()
            with tape.recording():
                memory.recall(question, touch=False)
            tapes.append(tape)
        return compared(what, lambda n: memory.recall(asked[n], touch=False), lambda n: tapes[n].play(connection), 60)


def cold(url: str) -> dict[str, Any]:
    """The first question to a tenant that this process has not asked before, beside the next ones."""
    first, warm = list[float](), list[float]()
    asked = questions(20, sentences(SIZE))
    with Memory(url, embedder=Given()) as memory:  # type: ignore[arg-type]
        memory.at(tenant="n1").recall("warm")
        for n, question in enumerate(asked, 2):
            tenant = memory.at(tenant=f"n{n}")
            for seconds, text in ((first, question), (warm, asked[n - 3]), (warm, asked[n - 4])):
                start = time.perf_counter()
                tenant.recall(text, touch=False)
                seconds.append(time.perf_counter() - start)
    ours, floor = statistics.median(first) * 1e6, statistics.median(warm) * 1e6
    return {
        "what": "first recall of a tenant (floor: the next ones)",
        "ours_us": ours,
        "floor_us": floor,
        "ratio": ours / floor,
    }


def crowd(url: str, seconds: float) -> list[dict[str, Any]]:
    """32 clients in 4 processes over 200 tenants: 7 recalls by words to 3 remembers, then the same without us."""
    return [_crowd(url, seconds, name, work) for name, work in (("ours", _client), ("bare SQL", _bare_client))]


def _crowd(url: str, seconds: float, name: str, work: Any) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    told: Any = context.Queue()
    processes = [context.Process(target=_worker, args=(url, seconds, work, n, told)) for n in range(4)]
    for process in processes:
        process.start()
    results = [told.get() for _ in processes]
    for process in processes:
        process.join()
    taken = sorted(one for result in results for one in result["taken"])
    cut = lambda share: taken[min(len(taken) - 1, int(share * len(taken)))] * 1e3  # noqa: E731
    return {
        "what": f"32 clients, 200 tenants, {seconds:g} s: {name}",
        "errors": sum(result["errors"] for result in results),
        "leaks": sum(result["leaks"] for result in results),
        "per_second": len(taken) / seconds,
        "p50_ms": cut(0.5),
        "p95_ms": cut(0.95),
        "p99_ms": cut(0.99),
        "client_mb_per_process": max(result["mb"] for result in results),
        "client_mb_before": max(result["before"] for result in results),
        "server_mb": _server_mb(),
    }


def _server_mb() -> float:
    """Private memory of all its processes: what they share is counted once, by the setting."""
    found = [p for p in psutil.process_iter(["name"]) if p.info["name"] == "postgres"]
    total = 0.0
    for process in found:
        try:
            total += process.memory_full_info().uss / 1e6
        except psutil.Error:
            continue
    return total


def _worker(url: str, seconds: float, work: Any, number: int, told: Any) -> None:
    memory = Memory(url)
    result: dict[str, Any] = {"taken": [], "errors": 0, "leaks": 0, "before": psutil.Process().memory_info().rss / 1e6}
    lock = threading.Lock()
    threads = [
        threading.Thread(
            target=work, args=(url, memory, time.monotonic() + seconds, random.Random(8 * number + n), result, lock)
        )
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result["mb"] = psutil.Process().memory_info().rss / 1e6
    told.put(result)


_ASKED = sentences(200, seed=21)


def _client(url: str, memory: Memory, until: float, rng: random.Random, result: Any, lock: Any) -> None:
    while time.monotonic() < until:
        name = f"crowd{rng.randrange(200)}"
        tenant, text = memory.at(tenant=name), rng.choice(_ASKED)
        start = time.perf_counter()
        try:
            if rng.random() < 0.3:
                tenant.remember(f"{name} says: {text}", again=True)
                leaked = 0
            else:
                leaked = sum(not hit.memory.text.startswith(f"{name} ") for hit in tenant.recall(text, limit=10))
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            with lock:
                result["errors"] += 1
            continue
        with lock:
            result["taken"].append(time.perf_counter() - start)
            result["leaks"] += leaked


def _bare_client(url: str, memory: Memory, until: float, rng: random.Random, result: Any, lock: Any) -> None:
    """What pgbench would do: the least SQL that reads ten texts of a tenant by their words, or writes one row."""
    connection = bare(url)
    while time.monotonic() < until:
        name, text = f"crowd{rng.randrange(200)}", rng.choice(_ASKED)
        key = words.place_key(Place(name, "default"))
        start = time.perf_counter()
        if rng.random() < 0.3:
            with connection.transaction():
                connection.execute(_WRITE, (name, rng.getrandbits(60), f"{name} says: {text}"))
        else:
            query = " | ".join(f"'{key}{word}'" for word in text.rstrip(".").lower().split()[:4])
            connection.execute(_READ, (name, query)).fetchall()
        with lock:
            result["taken"].append(time.perf_counter() - start)


_WRITE = """INSERT INTO recollect.contents (tenant, workspace, seq, text, checksum, schema_version)
    VALUES (%s, 'bare', %s, %s, '', 1)"""
_READ = """SELECT c.text FROM recollect.search s JOIN recollect.contents c USING (tenant, workspace, seq)
    WHERE s.tenant = %s AND s.workspace = 'default' AND s.words @@ %s::tsquery LIMIT 10"""


if __name__ == "__main__":
    main()
