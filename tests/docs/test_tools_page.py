"""docs/tools.md lists every tool, with the arguments that it has and which of them may be left out."""

from __future__ import annotations

import json
import re
from pathlib import Path

from recollect import Memory, tools

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


def test_the_errors_are_those_that_are_given(tmp_path: Path) -> None:
    page = _PAGE.read_text("utf-8")
    with Memory(tmp_path, embedder="none") as memory:
        unknown = tools.call(memory, "nothing_like_that")["error"]
        missing = tools.call(memory, "remember", {})["error"]
    (row,) = re.findall(r"^\| one that does not exist \| `(.*)` \|$", page, re.MULTILINE)
    assert unknown["message"].startswith("there is no such tool; known: ")
    assert json.loads(row)["error"] == {**unknown, "message": "there is no such tool; known: …"}
    assert f"`{json.dumps({'error': missing})}`" in page
