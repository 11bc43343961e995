"""What `pip install '.[…]'` brings."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_all_is_every_extra_for_users_and_no_tool_for_tests() -> None:
    assert _reached("all") == {
        name for name in EXTRAS if name not in ("all", "conformance", "dev", "docs", "release", "test")
    }


def test_documents_install_extras_that_there_are_from_a_clone() -> None:
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = document.read_text()
        assert "'recollect[" not in text, f"{document.name}: it is not on a package index"
        for named in re.findall(r"pip install '\.\[([a-z,]+)\]'", text):
            assert set(named.split(",")) <= EXTRAS.keys(), document.name


def _reached(extra: str) -> set[str]:
    (others,) = re.findall(r"recollect\[([a-z,]+)\]", " ".join(EXTRAS[extra]))
    return set(others.split(","))
