"""Which requirements have a test: `make clauses`. Looks through the files it is given, else through all tests."""

from __future__ import annotations

import io
import sys
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent


def load_clauses() -> dict[str, str]:
    """The requirements by id."""
    return tomllib.loads((TESTS / "clauses.toml").read_text())


def pending() -> dict[str, str]:
    """Those that are yet to be built, with what is missing."""
    return tomllib.loads((TESTS / "pending.toml").read_text())


class Collector:
    """Which tests carry which id, as pytest collects them."""

    def __init__(self) -> None:
        self.tests: dict[str, list[str]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for mark in item.iter_markers("clause"):
                for ident in mark.args:
                    self.tests.setdefault(ident, []).append(item.nodeid)


def main() -> None:
    collector, printed = Collector(), io.StringIO()
    with redirect_stdout(printed):
        failed = pytest.main(["--collect-only", "-qq", *(sys.argv[1:] or [str(TESTS)])], plugins=[collector])
    if failed:
        sys.exit(printed.getvalue())
    clauses = load_clauses()
    for ident, text in clauses.items():
        count = len(collector.tests.get(ident, []))
        print(f"{ident}  {f'{count:3} tests' if count else '    none '}  {text[:90]}")
    covered = sum(ident in collector.tests for ident in clauses)
    print(f"\n{covered} of {len(clauses)} have a test")


if __name__ == "__main__":
    main()
