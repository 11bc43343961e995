"""The ledger's figures are measured by a benchmark, never by a test: this only sees that it still measures them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parent.parent.parent / "benchmarks" / "ledger.py"


FIGURES = [
    "append, p95",
    "rebuild the index",
    "waits for the lock",
    "compaction",
    "search_by_topic",
    "query: text of two words, p50/p95/p99",
    "query: a wildcard at the end, p50/p95/p99",
    "query: one tag, p50/p95/p99",
    "query: one type, p50/p95/p99",
    "query: a time range, p50/p95/p99",
    "query: types, tags, time and importance, p50/p95/p99",
]


@pytest.mark.clause("LED-24", "LED-28")
def test_the_benchmark_measures_writing_querying_rebuilding_and_contention() -> None:
    done = subprocess.run([sys.executable, BENCHMARK, "--quick"], capture_output=True, encoding="utf-8", timeout=120)

    assert done.returncode == 0, done.stderr
    for figure in FIGURES:
        lines = [line for line in done.stdout.splitlines() if line.startswith(figure)]
        assert lines, figure
        assert all("goal" in line for line in lines)
    for told in ("entries/s", "memory of a process", "MB of changes"):
        assert told in done.stdout
