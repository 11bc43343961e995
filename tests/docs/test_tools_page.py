"""docs/tools.md lists every tool, with the arguments that it has and which of them may be left out."""

from __future__ import annotations

import re
from pathlib import Path

from recollect import tools

_PAGE = Path(__file__).parents[2] / "docs" / "tools.md"
_ROW = re.compile(r"^\| `(\w+)` \|([^|]*)\| (.*) \|$", re.MULTILINE)


def rows() -> list[tuple[str, str, str]]:
    return _ROW.findall(_PAGE.read_text("utf-8").partition("## The list")[2])


def test_every_tool_is_listed_with_its_arguments() -> None:
    listed = {name: sorted(filter(None, arguments.strip().split(", "))) for name, arguments, _ in rows()}
    real = {
        tool.name: sorted(
            name if name in tool.parameters.get("required", ()) else f"{name}?"
            for name in tool.parameters["properties"]
        )
        for tool in tools.all()
    }
    assert listed == real


def test_what_writing_and_asking_give_is_told() -> None:
    results = {name: result for name, _, result in rows()}
    for tool in tools.all():
        if tool.name in ("recall", "remember", "revise", "forget", "undo", "observe", "start_conversation"):
            properties = set((tool.output or {})["properties"]) - {"error", "not_saved_yet"}
            assert {name for name in properties if f'"{name}"' not in results[tool.name]} == set()
