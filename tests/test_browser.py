"""What happens to tests in a browser where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TEST = "tests/server/pages/test_reference.py::test_it_fits[360]"


@pytest.mark.slow
@pytest.mark.parametrize(("ci", "code", "told"), [("", 0, "1 skipped"), ("true", 1, "1 error")])
def test_without_a_browser_it_is_told_and_in_ci_it_fails(tmp_path: Path, ci: str, code: int, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", TEST],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "PATH": str(tmp_path), "CI": ci},  # where nothing can be found
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert told in done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith("CHROMIUM IS NOT INSTALLED")]
    assert len(lines) == (0 if ci else 1)
    assert "CHROMIUM IS NOT INSTALLED" in done.stdout
