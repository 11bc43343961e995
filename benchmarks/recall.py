"""Recall against the least work that could do it: a matrix product, a bare FTS5 query, and reading the rows.

The question's vector is given, so that the model has no part in it. Ours and the floor take turns.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from corpus import questions, sentences

from recollect import Memory
from recollect.retrieval.query import read
from recollect.stores.sqlite.match import expression

_DIMENSIONS = 384


class Given:
    """Vectors out of thin air, the same for the same text."""

    model, dimensions = "given", _DIMENSIONS

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Any:
        vector = np.random.default_rng(abs(hash(text)) % 2**32).normal(size=_DIMENSIONS).astype(np.float32)
        return vector / np.linalg.norm(vector)

    def close(self) -> None:
        pass


class Floor:
    def __init__(self, path: Path, matrix: Any) -> None:
        self._db: Any = apsw.Connection(str(path))
        self._matrix = matrix

    def recall(self, match: str, vector: Any) -> None:
        scores = self._matrix @ vector
        best = np.argpartition(-scores, 20)[:20]
        sql = "SELECT rowid FROM memories_text WHERE memories_text MATCH ? ORDER BY rank LIMIT 20"
        found = [row for (row,) in self._db.execute(sql, (match,))]
        for row in {*found, *(best + 1).tolist()}:
            self._db.execute("SELECT * FROM memories WHERE seq = ?", (row,)).fetchone()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        texts, given = sentences(count), Given()
        root = Path(folder) / "memory"
        memory = Memory(root, embedder="none")
        memory.remember_many(
            [
                {
                    "content": text,
                    "conversation": f"c{number // 20}",
                    "embedding": given.embed_query(text).tolist(),
                    "embedding_model": given.model,
                }
                for number, text in enumerate(texts)
            ]
        )
        memory.close()
        memory = Memory(root, embedder=given)
        asked = questions(200, texts)
        memory.get(memory.list(limit=1)[0].id)
        vectors = {question: given.embed_query(question) for question in asked}
        started = time.perf_counter()
        memory.recall(asked[0], touch=False)
        print(f"first recall after opening {count:,}: {1000 * (time.perf_counter() - started):.0f} ms")
        matrix = np.stack([given.embed_query(text) for text in texts])
        floor = Floor(root / "default/workspaces/default/memory.db", matrix)
        ours: list[float] = []
        least: list[float] = []
        for question in asked:
            memory.recall(question, touch=False)  # so that its vector is known
            match = expression(read(question))
            started = time.perf_counter()
            floor.recall(match, vectors[question])
            least.append(time.perf_counter() - started)
            started = time.perf_counter()
            memory.recall(question, touch=False)
            ours.append(time.perf_counter() - started)
        ours.sort()
        middle, bottom = statistics.median(ours), statistics.median(least)
        print(f"recall of {count:,}: p50 {1000 * middle:.2f} ms, floor {1000 * bottom:.2f} ms, {middle / bottom:.2f}×")
        print(f"p95 {1000 * ours[190]:.2f} ms, {ours[190] / middle:.2f}× the median")
        memory.close()


if __name__ == "__main__":
    main()
