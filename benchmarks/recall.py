"""Recall against the least work that could do it: a matrix product, a bare FTS5 query, and reading the rows.

The question's vector is given, so that the model has no part in it. Ours and the floor take turns. What a process takes
in time and memory before it is warm is measured in processes of its own.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_BEGUN = time.perf_counter()
import numpy as np  # noqa: E402

_NUMPY = time.perf_counter() - _BEGUN

import apsw  # noqa: E402
from corpus import answered, sentences  # noqa: E402

from recollect import Memory  # noqa: E402
from recollect.stores import open_store  # noqa: E402
from recollect.stores.port import Place  # noqa: E402
from recollect.stores.sqlite.match import match_expression as expression  # noqa: E402
from recollect.text.query_parser import parse_query  # noqa: E402
from recollect.values.filters import Filter  # noqa: E402
from recollect.values.record import Address, utc_now  # noqa: E402

_DIMENSIONS = 384
_QUESTIONS = 200
_COLD = 5
_BLOCK = 5000
_RANKED = "SELECT rowid FROM memories_text WHERE memories_text MATCH ? ORDER BY rank LIMIT 20"
_RAW_MB = 4 * _DIMENSIONS / 1e6


class Given:
    """Vectors out of thin air, the same for the same text."""

    model, dimensions = "given", _DIMENSIONS

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Any:
        vector = np.random.default_rng(zlib.crc32(text.encode())).normal(size=_DIMENSIONS).astype(np.float32)
        return vector / np.linalg.norm(vector)

    def close(self) -> None:
        pass


def store(root: Path, texts: Sequence[str]) -> Any:
    """Twenty turns to a conversation. Returns the vectors, as the floor needs them."""
    matrix = np.zeros((len(texts), _DIMENSIONS), np.float32)
    with Memory(root, embedder="none") as memory:
        for start in range(0, len(texts), _BLOCK):
            some = texts[start : start + _BLOCK]
            matrix[start : start + len(some)] = Given().embed_documents(some)
            memory.remember_many(
                [
                    {
                        "content": text,
                        "conversation": f"c{number // 20}",
                        "embedding": matrix[number].tolist(),
                        "embedding_model": Given.model,
                    }
                    for number, text in enumerate(some, start)
                ]
            )
    return matrix


class Floor:
    def __init__(self, path: Path, matrix: Any) -> None:
        self._db: Any = apsw.Connection(str(path))
        self._matrix = matrix

    def text(self, question: str) -> list[int]:
        return [row for (row,) in self._db.execute(_RANKED, (expression(parse_query(question)),))]

    def recall(self, question: str, vector: Any) -> None:
        scores = self._matrix @ vector
        best = np.argpartition(-scores, 20)[:20]
        for row in {*self.text(question), *(best + 1).tolist()}:
            self._db.execute("SELECT * FROM memories WHERE seq = ?", (row,)).fetchone()


def seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = action()
    return time.perf_counter() - started, result


def warm(root: Path, floor: Floor, asked: Sequence[str], count: int) -> None:
    given, ours, least = Given(), list[float](), list[float]()
    with Memory(root, embedder=given) as memory:
        for question in asked:
            memory.recall(question, touch=False)  # so that its vector is known
            vector = given.embed_query(question)
            least.append(seconds(lambda question=question, vector=vector: floor.recall(question, vector))[0])
            ours.append(seconds(lambda question=question: memory.recall(question, touch=False))[0])
    middle, bottom, tail = statistics.median(ours), statistics.median(least), statistics.quantiles(ours, n=20)[-1]
    print(
        f"recall of {count:,}: p50 {1000 * middle:.2f} ms, floor {1000 * bottom:.2f} ms, {middle / bottom:.2f}× (≤ 1.3)"
    )
    print(f"p95 {1000 * tail:.2f} ms, {tail / middle:.2f}× the median (≤ 3)")


def by_text(root: Path, floor: Floor, asked: Sequence[tuple[str, int]], count: int) -> None:
    """The best by words alone. A sentence's row is its number plus one, and its position its number."""
    from recollect.recall.pool import Pool
    from recollect.stores.shortlist import Ask

    where = Filter(seen_from=Address(), now=utc_now())
    folder = open_store(f"sqlite:{root}")

    def ours(question: str) -> list[int]:
        wish = parse_query(question)
        pool = Pool(folder.search(Ask(where, wish, enough=20)))

        def texts(positions: Sequence[int]) -> dict[int, str]:
            place = Place("default", "default")
            ids = {pool.owner(at)[1]: at for at in positions}
            return {ids[record.id]: record.text for record in folder.get(place, list(ids))}

        scores = pool.text(wish, texts)
        best = np.argpartition(-scores, 20)[:20]
        return (best[np.argsort(-scores[best])] + 1).tolist()

    ours(asked[0][0])
    times: dict[str, list[float]] = {"ours": [], "bare": []}
    right = {"ours": 0, "bare": 0}
    for question, number in asked:
        for name, way in (("bare", floor.text), ("ours", ours)):
            took, found = seconds(lambda question=question, way=way: way(question))
            times[name].append(took)
            right[name] += number + 1 in found[:10]
    folder.close()
    goal = " (≤ 0.3)" if count == 100_000 else ""
    mine, bare = (statistics.median(times[name]) for name in ("ours", "bare"))
    print(
        f"text candidates of {count:,}: {1000 * mine:.2f} ms, bare FTS5 query {1000 * bare:.2f} ms, {mine / bare:.2f}×"
        f"{goal}; R@10 {right['ours'] / len(asked):.3f} and {right['bare'] / len(asked):.3f}"
    )


def child(root: str, question: str) -> None:
    """One process from nothing to its first answer."""
    given = Given()
    given.embed_query(question)  # imports numpy.random, which a real model does not need
    memory = Memory(root, embedder=given)
    memory.get(memory.list(limit=1)[0].id)
    used = time.process_time()
    took, _ = seconds(lambda: memory.recall(question, touch=False))
    used = time.process_time() - used
    for number in range(20):
        memory.recall(f"{question} {number}", touch=False)
    lines = [line.split() for line in Path("/proc/self/status").read_text().splitlines()]
    sizes = {line[0]: int(line[1]) / 1000 for line in lines if line[0] in ("VmRSS:", "VmHWM:")}
    found = {"ms": 1000 * took, "cpu": 1000 * used, "numpy": 1000 * _NUMPY}
    print(json.dumps(found | {"mb": sizes["VmRSS:"], "peak": sizes["VmHWM:"]}))
    memory.close()


def cold(root: Path, question: str, count: int) -> None:
    command = [sys.executable, __file__, "--child", str(root), question]
    runs = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(_COLD)]
    of = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    goal = " (≤ 120)" if count == 10_000 else ""
    print(
        f"first recall after opening {count:,}, in a process that has imported numpy: {of['ms']:.0f} ms{goal},"
        f" {of['cpu']:.0f} ms of processor time; importing numpy before: {of['numpy']:.0f} ms"
    )
    print(
        f"resident after 21 recalls: {of['mb']:.0f} MB, at most {of['peak']:.0f} MB; vectors alone"
        f" {_RAW_MB * count:.0f} MB (≤ {1.25 * _RAW_MB * count + 60:.0f} MB)"
    )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        texts, root = sentences(count), Path(folder) / "memory"
        matrix = store(root, texts)
        asked = answered(_QUESTIONS, texts)
        cold(root, asked[0][0], count)
        floor = Floor(root / "default/workspaces/default/memory.db", matrix)
        warm(root, floor, [question for question, _ in asked], count)
        by_text(root, floor, asked, count)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
