"""The ledger's figures are measured by a benchmark, never by a test: this only sees that it still measures them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parent.parent.parent / "benchmarks" / "ledger.py"


@pytest.mark.clause("LED-24")
def test_the_benchmark_measures_writing_querying_rebuilding_and_contention() -> None:
    done = subprocess.run([sys.executable, BENCHMARK, "--quick"], capture_output=True, encoding="utf-8", timeout=120)

    assert done.returncode == 0, done.stderr
    for figure in ("append, p95", "query: text of two words, p95", "rebuild the index", "waits for the lock"):
        (line,) = (line for line in done.stdout.splitlines() if line.startswith(figure))
        assert "goal" in line
