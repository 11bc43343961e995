"""The ledger against the least file work that could do the same, in one run.

The floor of writing is `os.write` and `os.fsync` of the very bytes that we write to the log; the floor of reading is
one pass over the lines with msgspec. Ours and the floor take turns, so that a noisy machine disturbs both alike.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from corpus import sentences

from recollect import Memory, SizeLimitError
from recollect.stores.files.ledger import Ledger

_KINDS = ("conversation", "decision", "finding", "preference")
_TOPICS = ("security", "security.auth", "style", "infra", "deploy", "people", "money", "travel")
_MEGABYTE = 1 << 20
_QUICK = 20 if "--quick" in sys.argv else 0
"""A few rounds on little data, to see that it runs: the figures mean nothing then."""


def entries(size: int, seed: int = 7) -> list[dict[str, Any]]:
    """About so many bytes of log, in entries of half to two kilobytes."""
    rng = random.Random(seed)
    pool = sentences(4000, seed)
    made: list[dict[str, Any]] = []
    left = size
    while left > 0:
        text = " ".join(rng.choices(pool, k=rng.randint(2, 12)))
        made.append(
            {
                "content": text,
                "kind": rng.choice(_KINDS),
                "importance": rng.random(),
                "tags": rng.sample(_TOPICS, rng.randint(0, 3)),
            }
        )
        left -= len(text) + 420
    return made


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def turns(ours: Callable[[], object], floor: Callable[[], object], rounds: int) -> tuple[list[float], list[float]]:
    mine, least = [], []
    for _ in range(rounds):
        least.append(seconds(floor))
        mine.append(seconds(ours))
    return sorted(mine), sorted(least)


def show(what: str, ours: float, floor: float | None, goal: str) -> None:
    scale, unit = (1e6, "µs") if ours < 0.001 else (1e3, "ms")
    ratio = "" if floor is None else f"{floor * scale:10.1f} {unit}   {ours / floor:5.2f}×"
    print(f"{what:<58} {ours * scale:10.1f} {unit} {ratio:<24} goal {goal}", flush=True)


def appending(folder: Path) -> None:
    memory = Memory(f"ledger:{folder}/a", preset="ledger")
    texts = iter(sentences(5000))
    memory.remember(next(texts))
    log = folder / "a/sessions/default/memory.jsonl"
    line = log.read_bytes()
    fd = os.open(folder / "floor", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def least() -> None:
        os.write(fd, line)
        os.fsync(fd)

    ours, floor = turns(lambda: memory.remember(next(texts)), least, _QUICK or 1500)
    show("append, p50", statistics.median(ours), statistics.median(floor), "≤ 1.3×")
    show("append, p95", ours[len(ours) * 95 // 100], floor[len(floor) * 95 // 100], "< 50 ms")
    store = memory._view.store  # pyright: ignore[reportPrivateUsage]
    from recollect.verbs.remember.draft import draft_record

    view = memory._view  # pyright: ignore[reportPrivateUsage]
    made = iter([draft_record({"content": text}, view.address, view.preset, view.now()) for text in sentences(1500, 3)])
    ours, floor = turns(lambda: store.put(view.place, [next(made)]), least, _QUICK or 1000)
    show("append of a finished record to the store, p50", statistics.median(ours), statistics.median(floor), "")
    batches = iter([sentences(1000, seed) for seed in range(10, 18)])

    def least_batch() -> None:
        os.write(fd, line * 1000)
        os.fsync(fd)

    ours, floor = turns(lambda: memory.remember_many(next(batches)), least_batch, 6)
    show("batch of 1,000, median", statistics.median(ours), statistics.median(floor), "≤ 2× (rate ≥ 0.5×)")
    memory.close()


def full_session(folder: Path) -> Path:
    """A session as full as it may be. Nothing is compacted while we measure, and so there is no room for an index."""
    root = folder / "full"
    size = 0.2 if _QUICK else 10.0
    settings = {"storage": {"auto_compact": False, "max_session_size_mb": size}}
    made = entries(int(1.2 * size * _MEGABYTE))
    stored, started = 0, time.perf_counter()
    with Memory(Ledger(root, settings=settings), preset="ledger") as memory:
        batch = 100
        while batch:
            try:
                stored += len(memory.remember_many(made[stored : stored + batch]))
            except SizeLimitError:
                batch //= 10
    taken = time.perf_counter() - started
    log = root / "sessions/default"
    sizes = {path.name: path.stat().st_size / _MEGABYTE for path in sorted(log.glob("*.json*"))}
    print(f"full session: {stored:,} entries, " + ", ".join(f"{name} {size:.1f} MB" for name, size in sizes.items()))
    print(f"{'filling it, in batches of 100':<58} {stored / taken:10,.0f} entries/s")
    return root


def opening(root: Path) -> None:
    log = root / "sessions/default/memory.jsonl"

    def scan() -> None:
        decode = msgspec.json.Decoder().decode
        for line in log.read_bytes().splitlines():
            decode(line)

    def open_() -> None:
        memory = Memory(f"ledger:{root}", preset="ledger")
        assert memory.stats().total

    ours, floor = turns(open_, scan, 9)
    show("open, and count", statistics.median(ours), statistics.median(floor), "≤ 3×")
    memory = Memory(f"ledger:{root}", preset="ledger")
    ours = sorted(seconds(lambda: memory.sessions.rebuild_index("default")) for _ in range(5))
    show("rebuild the index", statistics.median(ours), statistics.median(floor), "< 1 s")


def querying(root: Path, which: str) -> None:
    memory = Memory(f"ledger:{root}", preset="ledger")
    rng = random.Random(5)
    words = [word for text in sentences(300, 7) for word in text.rstrip(".").split() if len(word) > 4]
    wishes: dict[str, Callable[[], dict[str, Any]]] = {
        "text of two words": lambda: {"text": " ".join(rng.sample(words, 2)), "limit": 10},
        "a wildcard at the end": lambda: {"text": rng.choice(words)[:4] + "*", "limit": 10},
        "a wildcard at the beginning": lambda: {"text": "*" + rng.choice(words)[-4:], "limit": 10},
        "a wildcard in the middle": lambda: {"text": (word := rng.choice(words))[:2] + "*" + word[-2:], "limit": 10},
        "one tag": lambda: {"tags": [rng.choice(_TOPICS)], "limit": 10},
        "one type": lambda: {"types": [rng.choice(_KINDS)], "limit": 10},
        "a time range": lambda: {"time_range": "last hour", "limit": 10},
        "types, tags, time and importance": lambda: {
            "types": ["decision", "finding"],
            "tags": {"include": ["security"], "exclude": ["money"]},
            "time_range": "last week",
            "min_importance": 0.7,
            "limit": 10,
        },
        "words, a wildcard, type and tag": lambda: {
            "text": f"{rng.choice(words)} {rng.choice(words)[:4]}*",
            "types": ["decision", "finding"],
            "tags": ["security"],
            "limit": 10,
        },
        "everything by relevance": lambda: {"limit": 10},
    }
    first = seconds(lambda: memory.sessions.query("default", {"text": "ball", "limit": 10}))
    show(f"{which}: the first text query, which makes the word index", first, None, "")
    for what, wish in wishes.items():
        taken = sorted(seconds(lambda: memory.sessions.query("default", wish())) for _ in range(_QUICK or 200))  # noqa: B023
        figures = " / ".join(f"{1000 * taken[len(taken) * share // 100]:.1f}" for share in (50, 95, 99))
        print(f"{f'query: {what}, p50/p95/p99':<58} {figures:>24} ms{'':<11} goal p95 < 100 ms", flush=True)
    taken = sorted(
        seconds(lambda: memory.sessions.search_by_topic("default", rng.choice(_TOPICS))) for _ in range(_QUICK or 40)
    )
    figures = " / ".join(f"{1000 * taken[len(taken) * share // 100]:.1f}" for share in (50, 95, 99))
    print(f"{'search_by_topic, all of them, p50/p95/p99':<58} {figures:>24} ms{'':<11} goal p95 < 100 ms", flush=True)


_LOADED = """
import resource, sys
from recollect import Memory
def used(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
memory, before = Memory(sys.argv[1], preset="ledger"), used()
memory.sessions.query("default", {"text": "ball"}), memory.sessions.query("default", {"tags": ["security"]})
print(f"{before:.0f} {used():.0f}")
"""


def memory_used(root: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _LOADED, f"ledger:{root}"], capture_output=True, text=True, check=True)
    before, after = done.stdout.split()
    print(f"{'memory of a process, before and after text and tag queries':<58} {before:>10} / {after} MB")


def worn(root: Path) -> None:
    """As many changes as entries, and then some: each query counts what it found."""
    size = (0.2 if _QUICK else 10.0) * _MEGABYTE
    with Memory(f"ledger:{root}", preset="ledger") as memory:
        ids = [record.id for record in memory.list(limit=1_000_000)]
        changes = root / "sessions/default/changes.jsonl"
        gone = memory.forget(ids[::2]).count
        memory.compact()
        left = [record.id for record in memory.list(limit=1_000_000)]
        while not changes.exists() or changes.stat().st_size < size / 2 - 100_000:
            before = changes.stat().st_size if changes.exists() else 0
            memory.archive(left)
            memory.restore(left)
            if changes.stat().st_size <= before:
                break
    size = changes.stat().st_size / _MEGABYTE
    print(f"worn session: {len(left):,} entries after {gone:,} deletions, {size:.1f} MB of changes")


def compacting(root: Path) -> None:
    with Memory(f"ledger:{root}", preset="ledger") as memory:
        show("compaction", seconds(lambda: memory.sessions.compact("default")), None, "")


_WRITER = """
import sys
from recollect import Memory
memory = Memory(sys.argv[1], preset="ledger")
memory.remember("ready")
print("ready", flush=True); sys.stdin.readline()
for n in range(int(sys.argv[2])): memory.remember(f"number {n} of writer {sys.argv[3]} is about the harbour")
print("done", flush=True); sys.stdin.readline()
"""


def together(folder: Path, processes: int, each: int) -> float:
    """Appends a second of so many processes on one session."""
    root = folder / f"together{processes}"
    command = [sys.executable, "-c", _WRITER, f"ledger:{root}", str(each)]
    running = [
        subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(processes)
    ]
    for one in running:
        _expect(one, "ready\n")
    started = time.perf_counter()
    for one in running:
        assert one.stdin
        one.stdin.write("\n")
        one.stdin.flush()
    for one in running:
        _expect(one, "done\n")
    taken = time.perf_counter() - started
    for one in running:
        one.communicate("\n")
    with Memory(f"ledger:{root}", preset="ledger") as memory:
        assert memory.stats().total == processes * (each + 1), "something was lost"
    return processes * each / taken


def contention(root: Path) -> None:
    """One agent writes to a session while another one reads it."""
    writer, reader = Memory(f"ledger:{root}", preset="ledger"), Memory(f"ledger:{root}", preset="ledger")
    writes = _QUICK or 200
    for number in range(writes):
        writer.remember(f"number {number} is about the harbour")
        reader.recall("harbour")
    waits = sum(one.sessions.metrics()["memory.locks.contention.count"] for one in (writer, reader))
    print(
        f"{'waits for the lock, one writer and one reader':<58} {100 * waits / (2 * writes):10.1f} %{'':<27} goal < 1 %"
    )


def _expect(process: subprocess.Popen[str], line: str) -> None:
    if process.stdout is None or process.stdout.readline() != line:
        raise RuntimeError("a writer failed")


def crossing(folder: Path) -> None:
    root = folder / "many"
    memory = Memory(f"ledger:{root}", preset="ledger")
    for n in range(100):
        made = memory.sessions.create(f"user{n}", session_id=f"s{n}")
        memory.at(workspace=made.session_id).remember_many(entries(int(0.7 * _MEGABYTE), n))
    size = sum(file.stat().st_size for file in root.rglob("memory.jsonl")) / _MEGABYTE
    print(f"100 sessions, {size:.0f} MB of log")
    show("the first search across them", seconds(lambda: memory.sessions.search("ball")), None, "")
    rng = random.Random(6)
    words = [word for text in sentences(300, 7) for word in text.rstrip(".").split() if len(word) > 4]
    taken = sorted(seconds(lambda: memory.sessions.search(" ".join(rng.sample(words, 2)))) for _ in range(30))
    show("search across them, median", statistics.median(taken), None, "≤ 150 ms")
    show("search across them, p95", taken[28], None, "")
    memory.close()


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        appending(folder)
        root = full_session(folder)
        opening(root)
        querying(root, "full")
        memory_used(root)
        worn(root)
        opening(root)
        querying(root, "worn")
        compacting(root)
        contention(root)
        if _QUICK:
            return
        alone, eight = together(folder, 1, 1000), together(folder, 8, 250)
        print(f"appends a second: one process {alone:,.0f}, eight {eight:,.0f} ({eight / alone:.2f}×, goal ≥ 0.5×)")
        if "--all" in sys.argv:
            crossing(folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
