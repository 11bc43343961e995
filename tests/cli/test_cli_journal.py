"""An agent's journal on the command line."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner

from recollect import Memory
from recollect.cli.app import cli

pytestmark = pytest.mark.usefixtures("here")


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, ["journal", *words], env={"RECOLLECT_AGENT": "gaia"})
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def ask(*words: str) -> Any:
    return json.loads(run(*words, "--json"))


def test_what_is_added_is_listed_and_in_the_prompt() -> None:
    assert ask("add", "met Alice")["kind"] == "journal"
    assert ask("add", "I am Gaia", "--core")["address"]["agent"] == "gaia"
    assert ask("add", "standup at 9", "--board")["address"]["agent"] is None
    assert [one["memory"]["content"] for one in ask()] == ["I am Gaia", "met Alice"]
    assert [one["memory"]["content"] for one in ask("list", "--board")] == ["standup at 9"]
    assert [one["memory"]["content"] for one in ask("list", "-n", "1")] == ["I am Gaia"]
    assert "met Alice" in run()
    assert run("prompt").startswith("# Your Private Memory\n\n## Core Memories (permanent)\n- I am Gaia\n\n## Recent")
    assert ask("prompt")["context"].endswith("] met Alice")


def test_old_entries_are_marked_and_condensed_once() -> None:
    long_ago = datetime.now(UTC) - timedelta(days=8)
    with Memory("./memory", preset="journal", clock=lambda: long_ago) as memory:
        memory.at(agent="gaia").journal.save("met Alice")
    assert [one["expired"] for one in ask()] == [True]
    assert "journal, old" in run("list")
    assert run("prompt") == ""
    (core,) = ask("consolidate")
    assert core["content"] == f"From my journal, {long_ago.date()}:\nmet Alice"
    assert ask("consolidate") == []
    assert run("consolidate") == "Nothing to summarise.\n"


def test_where_there_is_nothing_it_says_so() -> None:
    run("add", "standup at 9", "--board")
    assert run() == "gaia has no memories here yet.\n"
    assert ask() == []
    assert ask("prompt") == {"context": None}


def test_what_cannot_be_added() -> None:
    assert "content: must not be empty or blank" in run("add", " ", code=1)
    assert "one or the other" in run("add", "x", "--core", "--board", code=2)
