"""Every marker names a requirement that exists, and every requirement has a test or is known to have none yet."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.clause_report import TESTS, load_clauses, pending

_MARK = re.compile(r"mark\.clause\(([^)]*)\)")


@pytest.fixture(scope="module")
def marked() -> dict[str, Path]:
    """The ids that tests carry, here and in the suite that is shipped, each with one of its files."""
    files = [*TESTS.rglob("test_*.py"), *(TESTS.parent / "src/recollect/conformance").rglob("*.py")]
    return {
        ident: path
        for path in files
        for arguments in _MARK.findall(path.read_text())
        for ident in re.findall(r"[\"']([^\"']+)[\"']", arguments)
    }


def test_no_test_names_an_unknown_clause(marked: dict[str, Path]) -> None:
    assert len(marked) > 20
    assert {ident: path.name for ident, path in marked.items() if ident not in load_clauses()} == {}


def test_every_clause_has_a_test_or_is_pending(marked: dict[str, Path]) -> None:
    assert load_clauses().keys() - marked.keys() - pending().keys() == set()


def test_what_is_pending_exists_and_has_no_test_yet(marked: dict[str, Path]) -> None:
    assert pending().keys() - load_clauses().keys() == set()
    assert {ident: path.name for ident, path in marked.items() if ident in pending()} == {}


def test_the_list_of_clauses_is_the_one_that_was_asked_for() -> None:
    assert Counter(ident[:3] for ident in load_clauses()) == {"ATL": 23, "AEG": 16, "INK": 25, "LED": 31, "JRN": 12}


def test_the_report_counts_the_tests_of_each_clause() -> None:
    """Of those in a few files; `make clauses` collects them all."""
    command = [sys.executable, TESTS / "support" / "clause_report.py", TESTS / "test_isolation.py"]
    report = subprocess.run(command, capture_output=True, text=True)
    assert report.returncode == 0, report.stdout + report.stderr
    assert re.search(r"^ATL-18 +[1-9]\d* tests", report.stdout, re.MULTILINE)
