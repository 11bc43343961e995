"""One workspace of many memories: loading it, its vectors, the first recall of a process, and those after it.

Vectors come out of thin air, so no model has a part in it, except in the whole command where one is installed. Times of
the processor are given beside those of the clock, because they depend less on what else a machine does.

    python benchmarks/million.py [COUNT] [FOLDER]    FOLDER is kept, and used again if it has a memory already
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from corpus import answered, sentences

from recollect import Memory
from recollect.memory import view_of
from recollect.models.embedders import Scale
from recollect.stores.port import Place

_DIMENSIONS = 384
_BLOCK = 5000
_PLACE = Place("default", "default")
_RUNS = 5
_QUESTIONS = 40
_MOST_EMBEDDED = 100_000
"""Vectors that are made afterwards: from here on the rate stays the same, or the claim is broken."""


class Given:
    """An embedder that takes no time: the same vector for the same question, and any for a memory."""

    model, dimensions = "given", _DIMENSIONS
    scale = Scale(0.12, 30.0)  # as a real model has one: what follows from it takes time, too

    def __init__(self) -> None:
        self._some = vectors(0, 4096)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return self._some[: len(texts)]

    def embed_query(self, text: str) -> Any:
        vector = np.random.default_rng(zlib.crc32(text.encode())).normal(size=_DIMENSIONS).astype(np.float32)
        return vector / np.linalg.norm(vector)

    def close(self) -> None:
        pass


def vectors(start: int, count: int) -> Any:
    block = np.random.default_rng(start).normal(size=(count, _DIMENSIONS)).astype(np.float32)
    return block / np.linalg.norm(block, axis=1, keepdims=True)


def taken(action: Callable[[], Any]) -> tuple[float, float]:
    """Seconds by the clock, and of the processor."""
    clock, used = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - clock, time.process_time() - used


def store(root: Path, texts: Sequence[str], embedded: bool) -> tuple[float, float]:
    """Twenty turns to a conversation. What it took without making the vectors."""
    clock = used = 0.0
    with Memory(root, embedder="none") as memory:
        for start in range(0, len(texts), _BLOCK):
            some = texts[start : start + _BLOCK]
            items: list[dict[str, Any]] = [
                {"content": text, "conversation": f"c{number // 20}"} for number, text in enumerate(some, start)
            ]
            if embedded:
                for item, vector in zip(items, vectors(start, len(some)), strict=True):
                    item |= {"embedding": vector, "embedding_model": Given.model}
            took = taken(lambda items=items: memory.remember_many(items))
            clock, used = clock + took[0], used + took[1]
    return clock, used


def told(what: str, took: tuple[float, float], goal: str = "") -> None:
    clock, used = (f"{1000 * part:.{0 if part > 0.01 else 1}f} ms" for part in took)
    print(f"{what}: {clock}, {used} of processor time{goal}", flush=True)


def backfill(texts: Sequence[str]) -> None:
    for count in (len(texts) // 10, len(texts)):
        with tempfile.TemporaryDirectory() as folder:
            store(Path(folder), texts[:count], embedded=False)
            with Memory(folder, embedder=Given()) as memory:
                embedding = view_of(memory).embedding
                assert embedding is not None
                took, used = taken(lambda embedding=embedding: embedding.finish(_PLACE, lambda _: None))
            print(
                f"vectors for {count:,} memories that have none: {count / took:,.0f} a second,"
                f" {count / used:,.0f} a second of processor time (≥ 20,000)",
                flush=True,
            )


def child(root: str, question: str) -> None:
    """One process from nothing to its first answer, and then warm."""
    given = Given()
    given.embed_query(question)  # imports numpy.random, which a real model does not need
    memory = Memory(root, embedder=given)
    memory.get(memory.list(limit=1)[0].id)
    first = taken(lambda: memory.recall(question, touch=False))
    asked = [f"{question} {number}" for number in range(_QUESTIONS)]
    took = [taken(lambda words=words: memory.recall(words, touch=False)) for words in asked]
    lines = [line.split() for line in Path("/proc/self/status").read_text().splitlines()]
    sizes = {line[0]: int(line[1]) / 1000 for line in lines if line[0] in ("VmRSS:", "RssAnon:", "VmHWM:")}
    warm = [statistics.median(run[part] for run in took[5:]) for part in (0, 1)]
    print(json.dumps({"first": first, "warm": warm, "sizes": sizes}))
    memory.close()


def processes(root: Path, question: str, count: int) -> None:
    command = [sys.executable, __file__, "--child", str(root), question]
    runs = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(_RUNS)]
    goals = {10_000: " (≤ 120)", 100_000: " (≤ 300)", 1_000_000: " (≤ 1000)"}
    of_a_million = count == 1_000_000
    told(f"the very first recall of {count:,}", runs[0]["first"])
    later = [run["first"] for run in runs[1:]]
    told("first recall of a later process", _middle(later), goals.get(count, ""))
    told("warm recall", _middle([run["warm"] for run in runs]), " (≤ 60 of processor time)" if of_a_million else "")
    sizes = {name: statistics.median(run["sizes"].get(name, 0.0) for run in runs[1:]) for name in runs[0]["sizes"]}
    goal = " (≤ 600 resident)" if of_a_million else ""
    print("  ".join(f"{name} {size:.0f} MB" for name, size in sizes.items()) + goal, flush=True)


def _middle(runs: Sequence[Sequence[float]]) -> tuple[float, float]:
    return statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)


def floor(root: Path, count: int) -> None:
    """What comparing with every vector takes at least, and reading the best of them."""
    matrix = np.random.default_rng(1).integers(-127, 128, (count, _DIMENSIONS), np.int8)
    question = matrix[:1].copy()
    try:
        import simsimd
    except ImportError:
        print("floor: simsimd is not installed")
    else:
        runs = [taken(lambda: simsimd.cdist(question, matrix, metric="dot", out_dtype="float32")) for _ in range(9)]
        told("floor: int8 products by simsimd", _middle(runs))
    whole, numbers = matrix[: min(count, 200_000)].astype(np.float32), question[0].astype(np.float32)
    runs = [taken(lambda: whole @ numbers) for _ in range(5)]
    clock, used = (count / len(whole) * part for part in _middle(runs))
    told("floor: float32 products by numpy", (clock, used))
    db: Any = apsw.Connection(str(root / "default/workspaces/default/memory.db"))
    rows = np.random.default_rng(2).integers(1, count + 1, 256).tolist()
    sql = f"SELECT vector FROM embeddings WHERE seq IN ({','.join(map(str, rows))})"
    told("floor: 256 vectors from SQLite", _middle([taken(lambda: db.execute(sql).fetchall()) for _ in range(9)]))


def command(root: Path, question: str) -> None:
    """`recollect recall …` from the shell, as a whole."""
    called = [sys.executable, "-m", "recollect", "recall", question, "--store", str(root)]
    for name, goal in (("none", " (≤ 250 of 10,000)"), ("", " (≤ 450 of 10,000)")):
        runs: list[tuple[float, float]] = []
        environment = os.environ | {"RECOLLECT_EMBEDDER": name}
        for _ in range(_RUNS):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            started = time.perf_counter()
            subprocess.run(called, check=True, capture_output=True, env=environment)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            runs.append((time.perf_counter() - started, used))
        told(f"the command `recollect recall`, {'without' if name else 'with'} a model", _middle(runs[1:]), goal)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    texts = sentences(count)
    question = answered(1, texts)[0][0]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(sys.argv[2] if len(sys.argv) > 2 else folder)
        if not (root / "default").exists():
            clock, used = store(root, texts, embedded=True)
            print(f"{count:,} memories stored with vectors: {clock:.1f} s, {used:.1f} s of processor time", flush=True)
        processes(root, question, count)
        floor(root, count)
        command(root, question)
    backfill(texts[:_MOST_EMBEDDED])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
