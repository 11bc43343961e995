"""The ledger's figures are measured by a benchmark, never by a test: this only sees that it still measures them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parent.parent.parent / "benchmarks" / "ledger.py"

_NUMBER = r"([\d,]+(?:\.\d+)?)"
_TIME = rf"\s+{_NUMBER} (?:ms|µs)\b"
_GOAL = r".*\bgoal "
QUERIES = [
    "text of two words",
    "a wildcard at the end",
    "a wildcard at the beginning",
    "a wildcard in the middle",
    "one tag",
    "one type",
    "a time range",
    "types, tags, time and importance",
    "words, a wildcard, type and tag",
    "everything by relevance",
]
FIGURES: dict[str, tuple[str, int]] = {
    "append, p50": (_TIME + _GOAL, 1),
    "append, p95": (_TIME + _GOAL + "< 50 ms", 1),
    "filling it, in batches of 100": (rf"\s+{_NUMBER} entries/s", 1),
    "rebuild the index": (_TIME + _GOAL + "< 1 s", 2),
    **{
        f"query: {what}, p50/p95/p99": (rf"\s+{_NUMBER} / {_NUMBER} / {_NUMBER} ms{_GOAL}p95 < 100 ms", 2)
        for what in QUERIES
    },
    "search_by_topic, all of them, p50/p95/p99": (rf"\s+{_NUMBER} / {_NUMBER} / {_NUMBER} ms{_GOAL}p95 < 100 ms", 2),
    "memory of a process, before and after text and tag queries": (rf"\s+{_NUMBER} / {_NUMBER} MB", 1),
    "compaction": (_TIME, 1),
    "waits for the lock, one writer and one reader": (rf"\s+{_NUMBER} %{_GOAL}< 1 %", 1),
}
"""What each line says after its name, and how often it comes: some on a full session and again on a worn one."""
_MAY_BE_NOTHING = {"waits for the lock, one writer and one reader"}


def figures(printed: str) -> dict[str, list[tuple[float, ...]]]:
    """The numbers of each figure, each time that it was measured. AssertionError if one is missing or is no number."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for name, (says, times) in FIGURES.items():
        lines = re.findall(rf"^{re.escape(name)}{says}", printed, re.MULTILINE)
        assert len(lines) == times, f"{name}: measured {len(lines)} times and not {times}"
        numbers = [(one,) if isinstance(one, str) else one for one in lines]
        found[name] = [tuple(float(number.replace(",", "")) for number in one) for one in numbers]
    return found


@pytest.fixture(scope="module")
def printed() -> str:
    done = subprocess.run([sys.executable, BENCHMARK, "--quick"], capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.clause("LED-24", "LED-28")
def test_the_benchmark_measures_writing_querying_rebuilding_and_contention(printed: str) -> None:
    for name, measured in figures(printed).items():
        for numbers in measured:
            assert min(numbers) > 0 or name in _MAY_BE_NOTHING, f"{name}: {numbers}"
            assert list(numbers) == sorted(numbers), f"{name}: {numbers}"  # p50 ≤ p95 ≤ p99
    (share,) = figures(printed)["waits for the lock, one writer and one reader"]
    assert 0 <= share[0] <= 100
    assert re.search(rf"^full session: {_NUMBER} entries, .*\bmemory\.jsonl {_NUMBER} MB", printed, re.MULTILINE)
    assert re.search(rf"^worn session: {_NUMBER} entries .*{_NUMBER} MB of changes", printed, re.MULTILINE)


@pytest.mark.clause("LED-28")
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_that_is_missing_or_no_number_is_noticed(printed: str, name: str) -> None:
    without = "\n".join(line for line in printed.splitlines() if not line.startswith(name))
    blank = "\n".join(
        re.sub(r"[\d,.]+(?= (/|ms|µs|MB|%|entries))", "—", line) if line.startswith(name) else line
        for line in printed.splitlines()
    )
    for damaged in (without, blank):
        with pytest.raises(AssertionError, match=re.escape(name)):
            figures(damaged)
