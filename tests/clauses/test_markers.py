"""Every marker names a requirement that exists."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

from support.clause_report import TESTS, known

_MARK = re.compile(r"mark\.clause\(([^)]*)\)")


def test_no_test_names_an_unknown_clause() -> None:
    marked = {
        ident: path.name
        for path in [*TESTS.rglob("test_*.py"), *(TESTS.parent / "src/recollect/conformance").rglob("*.py")]
        for arguments in _MARK.findall(path.read_text())
        for ident in re.findall(r"[\"']([^\"']+)[\"']", arguments)
    }
    assert len(marked) > 20
    assert {ident: path for ident, path in marked.items() if ident not in known()} == {}


def test_the_list_of_clauses_is_the_one_that_was_asked_for() -> None:
    assert Counter(ident[:3] for ident in known()) == {"ATL": 21, "AEG": 14, "INK": 22, "LED": 24, "JRN": 10}


def test_the_report_counts_the_tests_of_each_clause() -> None:
    report = subprocess.run([sys.executable, TESTS / "support" / "clause_report.py"], capture_output=True, text=True)
    assert report.returncode == 0, report.stdout + report.stderr
    assert re.search(r"^ATL-18 +[1-9]\d* tests", report.stdout, re.MULTILINE)
