"""The command with a server as its store: the same commands, and a clear word where the store itself is needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from support.command_line import called, recollect
from support.served import Served, served

from recollect import Memory


class Command:
    """The command in this process, unless `run` is the one that starts a process."""

    def __init__(self, server: Served, run: Callable[..., CompletedProcess[str]] = called, **bound: Any) -> None:
        self.run = run
        self.env = {"RECOLLECT_STORE": server.url, "RECOLLECT_KEY": server.key(**bound)}

    def __call__(self, *words: str, **env: str) -> CompletedProcess[str]:
        return self.run(*words, **self.env | env)

    def json(self, *words: str) -> Any:
        done = self(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with Memory(tmp_path / "m") as memory, served(memory) as server:
        yield server


@pytest.fixture
def command(server: Served) -> Command:
    return Command(server)


def test_a_memory_is_kept_recalled_explained_and_taken_back(server: Served) -> None:
    command = Command(server, recollect)
    kept = command.json("remember", "Ada prefers tabs", "--tag", "style", "--workspace", "shop")
    assert server.serving.memory.at(workspace="shop").get(kept["id"]).text == "Ada prefers tabs"
    hits = command.json("recall", "what does Ada prefer?", "--workspace", "shop")
    assert [hit["memory"]["id"] for hit in hits] == [kept["id"]]
    assert command.json("list") == [], "elsewhere nothing is seen"
    assert "Undid" in command("undo", "--workspace", "shop").stdout
    assert command.json("list", "--workspace", "shop") == []


def test_what_goes_out_comes_back(command: Command, tmp_path: Path) -> None:
    command.json("remember", "Ada prefers tabs")
    file = str(tmp_path / "all.json")
    assert command.json("export", file)["exported"] == 1
    assert command.json("import", file, "--workspace", "other")["added"] == 1
    assert [one["content"] for one in command.json("list", "--workspace", "other")] == ["Ada prefers tabs"]


@pytest.mark.parametrize(
    "words",
    [
        ("init",),
        ("serve",),
        ("ui", "--no-browser"),
        ("keys", "list"),
        ("people", "list"),
        ("backup", "there"),
        ("verify",),
        ("maintain", "--all-tenants"),
        ("copy", "https://here", "there"),
    ],
)
def test_what_needs_the_store_itself_is_done_where_it_is(command: Command, words: tuple[str, ...]) -> None:
    done = command(*words, **({"RECOLLECT_STORE": ""} if words[0] == "copy" else {}))
    assert (done.returncode, done.stdout) == (1, "")
    assert "this is done where its store is" in done.stderr


def test_the_rules_are_those_of_the_server(server: Served, command: Command) -> None:
    done = command("list", "--preset", "atlas")
    assert (done.returncode, "preset: is the server's to say" in done.stderr) == (1, True)
    assert command("list", RECOLLECT_PRESET="atlas").returncode == 0, "what is set for every command is for others"
    assert [tool["name"] for tool in command.json("tools")] == list(server.serving.memory.preset.tools)


def test_without_a_key_that_is_known_nothing_is_told(command: Command) -> None:
    done = command("list", RECOLLECT_KEY="rk_no_no")
    assert (done.returncode, "the key is not known here" in done.stderr) == (1, True)


def test_a_key_of_a_ledger_opens_its_sessions(tmp_path: Path) -> None:
    with Memory(f"ledger:{tmp_path}/l", preset="ledger") as memory, served(memory) as server:
        command = Command(server, all_tenants=True)
        made = command.json("sessions", "create", "ada", "--id", "monday")
        assert made["session_id"] == "monday"
        assert [one["session_id"] for one in command.json("sessions", "list")] == ["monday"]
