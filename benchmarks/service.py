"""A service that asks while vectors are made: recalls right after a bulk load, against the same when all is quiet.

    python benchmarks/service.py [SECONDS] [MEMORIES] [BULK]

Eight tasks of one AsyncMemory ask one question after the other, with the local model. The floor is the same load on the
same store once every memory has its vector.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time

import numpy as np
from corpus import questions, sentences

from recollect import AsyncMemory

_TASKS = 8


async def load(memory: AsyncMemory, texts: list[str], seconds: float) -> tuple[list[float], int]:
    """The time that each recall took, and how many were answered with memories that had no vector yet."""
    times: list[float] = []
    pending = 0
    until = time.perf_counter() + seconds

    async def ask(number: int) -> None:
        nonlocal pending
        asked = iter(questions(20_000, texts, seed=number))
        while time.perf_counter() < until:
            text = next(asked)
            begun = time.perf_counter()
            hits = await memory.recall(text, touch=False)
            times.append(time.perf_counter() - begun)
            pending += bool(hits.pending)

    await asyncio.gather(*(ask(number) for number in range(_TASKS)))
    return times, pending


def told(name: str, times: list[float], pending: int, seconds: float) -> float:
    p50, p95, p99 = np.percentile(np.array(times) * 1000, [50, 95, 99])
    print(
        f"{name}: {len(times) / seconds:.0f} recalls a second, p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms, "
        f"{pending:,} of {len(times):,} while vectors were missing"
    )
    return float(p95)


async def main() -> None:
    seconds, number, bulk = (int(word) for word in (*sys.argv[1:], "10", "2000", "5000")[:3])
    texts = sentences(number + bulk)
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncMemory(folder, embedder="local") as memory:
            await memory.remember_many(texts[:number])
            await memory.embed()
            await load(memory, texts[:number], 2)
            quiet = told("quiet", *await load(memory, texts[:number], seconds), seconds)
            await memory.remember_many(texts[number:])
            busy = told("after a bulk load", *await load(memory, texts, seconds), seconds)
            await memory.embed()
            calm = told("all of it, quiet", *await load(memory, texts, seconds), seconds)
    print(f"p95 after the load is {busy / calm:.2f} × that of the same store at rest ({busy / quiet:.2f} × before it)")


if __name__ == "__main__":
    asyncio.run(main())
