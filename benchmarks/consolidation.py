"""How long consolidating takes: 10,000 and 100,000 memories, a tenth of them almost equal to another.

python benchmarks/consolidation.py [COUNT ...]
"""

from __future__ import annotations

import sys
import tempfile
import time

import numpy as np
from msgspec.structs import replace

from recollect import Memory
from recollect.maintenance import similar
from recollect.presets import Preset, load

DIMENSIONS = 256
COUNTS = (10_000, 100_000)
_SYLLABLES = "ba de fi go lu ma ne pi ro su ta ve wi zo ka le mi no pu ra".split()


def main() -> None:
    counts = [int(word) for word in sys.argv[1:]] or COUNTS
    print("memories   plan     run    merged   pairs alone")
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            measure(count, folder)


def measure(count: int, folder: str) -> None:
    rng = np.random.default_rng(1)
    units = vectors(count, rng)
    began = time.perf_counter()
    similar.pairs(units, 0.95)
    alone = time.perf_counter() - began
    with Memory(folder, preset=roomy(), embedder="none") as memory:
        for start in range(0, count, 5000):
            memory.remember_many(
                {"content": words(rng), "embedding": units[at].tolist()}
                for at in range(start, min(start + 5000, count))
            )
        began = time.perf_counter()
        memory.maintain(jobs=["consolidate"], dry_run=True)
        planned = time.perf_counter() - began
        began = time.perf_counter()
        (report,) = memory.maintain(jobs=["consolidate"]).jobs
        taken = time.perf_counter() - began
    merged = sum(step.change == "merge" for step in report.steps)
    print(f"{count:8,}  {planned:5.2f} s  {taken:5.2f} s  {merged:6,}  {alone:5.2f} s", flush=True)


def roomy() -> Preset:
    """As in the Inklings document, but all of it in one scope."""
    usual = load("inklings")
    return replace(
        usual, retention=replace(usual.retention, quota=None), consolidation=replace(usual.consolidation, cap=10**9)
    )


def vectors(count: int, rng: np.random.Generator) -> similar.Floats:
    """Of length one, half of it in a common direction as with many models; every tenth is close to the one before."""
    rows = rng.standard_normal((count, DIMENSIONS)) / DIMENSIONS**0.5
    rows[:, 0] += 0.6
    rows[9::10] = rows[8::10][: len(rows[9::10])] + 0.15 * rng.standard_normal((len(rows[9::10]), DIMENSIONS)) / 16
    return similar.unit(rows.astype(np.float32))


def words(rng: np.random.Generator) -> str:
    return " ".join("".join(rng.choice(_SYLLABLES, 3)) for _ in range(8))


if __name__ == "__main__":
    main()
