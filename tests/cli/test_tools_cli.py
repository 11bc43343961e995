"""`recollect tools` and `recollect call`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from recollect import Memory, tools
from recollect.cli.app import cli
from recollect.presets import load, names

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "RECOLLECT_STORE", "RECOLLECT_PRESET", "RECOLLECT_AGENT", "RECOLLECT_CONVERSATION"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def run() -> Run:
    def run(*words: str, input: str | None = None, code: int = 0) -> Result:
        result = CliRunner().invoke(cli, words, input=input)
        assert result.exit_code == code, (words, result.stdout, result.stderr, result.exception)
        return result

    return run


@pytest.fixture
def call(run: Run) -> Callable[..., dict[str, Any]]:
    return lambda *words, **options: json.loads(run("call", *words, **options).stdout)


Call = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("preset", names())
def test_tools_are_listed_for_people_and_for_programs(run: Run, preset: str) -> None:
    rows = run("tools", "--preset", preset).stdout.splitlines()
    assert [row.split()[0] for row in rows] == ["tool", *load(preset).tools]
    listed = json.loads(run("tools", "--preset", preset, "--json").stdout)
    assert [tool["name"] for tool in listed] == list(load(preset).tools)
    for form in ("openai", "anthropic", "mcp"):
        printed = json.loads(run("tools", "--preset", preset, "--format", form).stdout)
        assert printed == getattr(tools, form)(load(preset))


def test_every_tool_can_be_listed(run: Run) -> None:
    assert len(json.loads(run("tools", "--all", "--json").stdout)) == len(tools.all())
    assert len(json.loads(run("tools", "--all", "--format", "mcp").stdout)) == len(tools.all())
    assert "query [limit]" in run("tools", "--all").stdout


def test_listing_needs_no_memory(run: Run, here: Path) -> None:
    run("tools")
    assert list(here.iterdir()) == []


def test_a_preset_with_a_tool_that_is_none_is_refused(run: Run, here: Path) -> None:
    (here / "mine.toml").write_text('tools = ["recall", "recal"]')
    assert "there is no tool `recal`" in run("tools", "--preset", "mine.toml", code=1).stderr


def test_a_tool_is_called_as_a_model_would(call: Call) -> None:
    stored = call("remember", '{"content": "Alice prefers tabs", "kind": "preference"}')
    found = call("recall", '{"query": "tabs"}')
    assert [one["id"] for one in found["memories"]] == [stored["id"]]
    assert call("recall", "-", input='{"query": "tabs"}')["count"] == 1
    assert call("forget", json.dumps({"id": stored["id"]}))["count"] == 1
    with Memory("./memory") as memory:
        assert memory.list() == []


def test_where_a_tool_works_is_as_for_every_command(call: Call) -> None:
    assert call("save_to_core", '{"content": "I am Gaia"}', "--agent", "gaia", "--preset", "journal")["success"]
    assert call("memory_store", '{"text": "a note"}', "--store", "notebook:./notes")["id"] == "m-1"
    call("write_scratchpad", '{"key": "a", "value": [1]}', "--conversation", "c1")
    assert call("list_scratchpad", "--conversation", "c1")["count"] == 1
    assert call("list_scratchpad", "--conversation", "c2")["count"] == 0


@pytest.mark.parametrize(
    "words",
    [
        ("remember", '{"content": 5}'),
        ("remember", "not JSON"),
        ("remember",),
        ("rember", "{}"),
        ("memory_store", '{"text": "my key is sk-abc123def456"}'),
        ("save_to_core", '{"content": "nobody"}'),
    ],
)
def test_a_refusal_is_a_result_and_the_exit_code_1(call: Call, here: Path, words: tuple[str, ...]) -> None:
    call("remember", '{"content": "a heron"}')
    assert "error" in call(*words, code=1)
    with Memory("./memory") as memory:
        assert memory.stats().total == 1


def test_reading_where_there_is_no_memory_is_an_error(run: Run, here: Path) -> None:
    assert "there is no memory at ./memory" in run("call", "recall", '{"query": "a"}', code=1).stderr
    run("call", "remember", '{"content": 5}', code=1)
    assert list(here.iterdir()) == []
