"""What needs processes that are killed, run side by side or timed: crash, together, speed."""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from process import PeerError, Process, servers, store_folder
from workloads import BENCHMARKS

sys.path.append(str(BENCHMARKS))

import corpus

Start = Callable[[Path], Process]
TIME = "2026-01-01T00:00:00+00:00"


def item(number: int, text: str, writer: str = "m") -> dict[str, Any]:
    return {"id": f"{writer}{number}", "text": f"Note {writer}{number}: {text}", "time": TIME, "session": "stream"}


def crash(start: Start, options: argparse.Namespace) -> dict[str, Any]:
    """Kill the process while it writes one memory after the other, as often as was asked; then count what is missing.

    Missing: acknowledged, and the product does not have it. Not found: it has it, but a search for the very text does
    not have it among the first ten.
    """
    rng, texts = random.Random(1), corpus.sentences(4000)
    rounds = min(options.rounds, 3) if options.sample else options.rounds
    acknowledged: list[str] = []
    lasts: list[str] = []
    """The last one acknowledged before each kill."""
    number, failures = 0, list[str]()
    with store_folder() as folder:
        for _ in range(rounds):
            process = start(folder)
            try:
                process.open()
                for _ in range(rng.randint(3, 25)):
                    process.call("add", items=[item(number, texts[number])])
                    acknowledged.append(f"m{number}")
                    number += 1
                process.send("add", items=[item(number, texts[number])])
                time.sleep(rng.random() * 0.03)
            except PeerError as error:
                failures.append(str(error))
            process.kill()
            number += 1
            lasts += acknowledged[-1:]
        with start(folder) as process:
            present = {*process.call("present", ids=acknowledged)["ids"]}
            process.call("settle")
            asked = [(id, item(int(id[1:]), texts[int(id[1:])])["text"]) for id in lasts]
            unfound = [id for id, text in asked if id not in process.call("search", query=text, k=10)["ids"]]
    return {
        "rounds": rounds,
        "acknowledged": len(acknowledged),
        "missing": len(acknowledged) - len(present),
        "asked": len(lasts),
        "unfound": len(unfound),
        "failures": failures,
    }


def together(start: Start, options: argparse.Namespace) -> dict[str, Any]:
    """Two processes write to one store at once, one memory after the other; then count what is missing."""
    number = 10 if options.sample else 200
    texts = corpus.sentences(number)
    acknowledged: list[str] = []
    errors: list[str] = []
    with store_folder() as folder:
        with start(folder) as first:
            first.call("add", items=[item(0, "the first", "x")])
            acknowledged.append("x0")
        processes = {writer: start(folder) for writer in "ab"}
        alive = dict(processes)
        for writer, process in processes.items():
            try:
                process.open()
            except PeerError as error:
                errors.append(f"cannot open: {error}")
                del alive[writer]
        for at, text in enumerate(texts):
            for writer, process in alive.items():
                process.send("add", items=[item(at, text, writer)])
            for writer, process in [*alive.items()]:
                try:
                    process.receive(patience=120.0)
                    acknowledged.append(f"{writer}{at}")
                except PeerError as error:
                    errors.append(str(error))
                    if "has ended" in str(error) or "no answer" in str(error):
                        del alive[writer]
        for process in processes.values():
            process.kill() if process not in alive.values() else process.__exit__(None, None, None)
        with start(folder) as process:
            present = process.call("present", ids=acknowledged)["ids"]
    return {
        "writes": 2 * number + 1,
        "acknowledged": len(acknowledged),
        "missing": len(acknowledged) - len(present),
        "errors": len(errors),
        "error_texts": sorted({*errors})[:5],
    }


def speed(start: Start, options: argparse.Namespace) -> dict[str, Any]:
    """Single and batch writes, recalls among 10,000, disk, memory and cold start. Only on a quiet machine."""
    singles, size, asks = (20, 100, 10) if options.sample else (1000, 10_000, 200)
    texts = corpus.sentences(size)
    questions = corpus.questions(asks, texts)
    items = [item(number, text) for number, text in enumerate(texts)]
    with store_folder() as folder:
        with start(folder) as process:
            single = [process.call("add", items=[each])["seconds"] for each in items[:singles]]
            settling = process.call("settle")["seconds"]
            batch = process.call("add", items=items[singles : 2 * singles])["seconds"]
            batch_settling = process.call("settle")["seconds"]
            for begin in range(2 * singles, size, 500):
                process.call("add", items=items[begin : begin + 500])
            process.call("settle")
            recalls = [process.call("search", query=each, k=10)["seconds"] for each in questions]
            resident = sum(map(resident_kb, [process.process.pid, *servers(folder)]))
        disk = sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
        cold = [cold_start(start, folder, question) for question in questions[:5]]
    return {
        "singles": singles,
        "singles_a_second": singles / sum(single),
        "singles_settled_a_second": singles / (sum(single) + settling),
        "batch_a_second": singles / batch,
        "batch_settled_a_second": singles / (batch + batch_settling),
        "stored": size,
        "recalls_a_second": len(recalls) / sum(recalls),
        "recall_p50_ms": 1000 * statistics.median(recalls),
        "resident_mb": resident / 1000,
        "disk_mb": disk / 1e6,
        "cold_start_s": statistics.median(cold),
    }


def cold_start(start: Start, folder: Path, question: str) -> float:
    begun = time.perf_counter()
    with start(folder) as process:
        process.call("search", query=question, k=10)
        return time.perf_counter() - begun


def resident_kb(pid: int) -> int:
    """Of the process and of those that it started."""
    status = Path(f"/proc/{pid}/status").read_text()
    own = int(status.split("VmRSS:")[1].split()[0])
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(resident_kb(int(child)) for child in children)
