"""The knowledge base on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.command_line import SECRET, terminal

from recollect import Memory
from recollect.cli.app import cli

pytestmark = pytest.mark.usefixtures("here")


def run(*words: str, code: int = 0, **env: str) -> str:
    done = CliRunner().invoke(cli, ["kb", *words], env=env)
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stdout + done.stderr


def ask(*words: str, code: int = 0, **env: str) -> Any:
    done = CliRunner().invoke(cli, ["kb", *words, "--json"], env=env)
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


@pytest.fixture
def docs(here: Path) -> Path:
    (here / "docs").mkdir()
    (here / "docs" / "guide.md").write_text("# Guide\n\n## Feeding\n\nA lynx eats twice a day.\n")
    (here / "docs" / "tea.txt").write_text("Tea is at four.")
    return here / "docs"


def test_a_folder_is_added_published_and_searched(docs: Path) -> None:
    assert ask("add", "docs", "-c", "zoo", "--publish") == {
        "added": 2,
        "changed": 0,
        "unchanged": 0,
        "chunks": 2,
        "refused": [],
        "left_out": [],
    }
    assert "0 new, 0 changed, 2 unchanged" in run("add", "docs")
    (docs / "tea.txt").write_text("Tea is at five.")
    assert ask("add", "docs/tea.txt", "docs/guide.md")["changed"] == 1
    (found,) = ask("search", "when", "is", "tea?", "-n", "1")
    assert found["passage"]["text"] == "tea.txt\n\nTea is at five."
    assert found["score"] > 0
    shown = run("search", "lynx eats", "-x", "-n", "1")
    assert "Guide › Feeding" in shown
    assert "guide.md, line 5" in shown
    assert "A lynx eats twice a day." in shown
    assert run("search", "zzz") == "Nothing matched.\n"
    assert [one["title"] for one in ask("list", "--category", "zoo", "--contains", "gui")] == ["Guide"]
    assert "published" in run()
    assert run("list", "--status", "draft") == "There are no such documents.\n"


def test_bad_files_are_named_and_the_others_go_on(docs: Path) -> None:
    (docs / "secret.md").write_text(f"# x\n\n{SECRET}\n")
    (docs / "mostly.md").write_text(f"Tea is at four.\n{SECRET}\n")
    (docs / "bad.txt").write_bytes(b"\xff\xfe\x00")
    told = run("add", "docs", code=1)
    assert "3 new" in told
    assert "mostly.md, line 2 was left out: it looks like a secret (" in told
    assert "secret.md, line 3: text appears to contain a secret" in told
    assert "bad.txt" in told
    assert SECRET not in told
    assert len(ask("add", "docs", code=1)["refused"]) == 2
    assert "there is no such file or folder" in run("add", "nowhere", code=1)
    assert "no known format" in run("add", __file__, code=1)


def test_documents_are_shown_published_withdrawn_and_removed(docs: Path) -> None:
    run("add", "docs", "--name", "handbook")
    guide = ask("show", "Guide")
    assert (guide["source"], guide["status"]) == ("handbook/guide.md", "draft")
    assert ask("show", guide["id"]) == ask("show", guide["id"][-8:]) == ask("show", "handbook/guide.md") == guide
    assert "handbook/guide.md" in run("show", "Guide")
    assert run("publish", "Guide", "tea.txt").count("Published") == 2
    assert [one["status"] for one in ask("withdraw", "Guide")] == ["draft"]
    assert "there is no document Nothing" in run("show", "Nothing", code=1)
    receipt = ask("remove", "Guide", "--yes", "--reason", "old")
    assert (receipt["count"], receipt["erased"], receipt["reason"]) == (1, True, "old")
    assert [one["title"] for one in ask()] == ["tea.txt"]
    shown, code = terminal("kb", "remove", "tea.txt", answer=b"n\n")
    assert "Remove tea.txt and its 1 passage for good?" in shown
    assert code != 0
    assert "Removed the document and 1 passage for good." in run("remove", "tea.txt", "-y")


def test_two_documents_of_one_title_are_told_apart_by_id(docs: Path) -> None:
    (docs / "other.md").write_text("# Guide\nx")
    run("add", "docs")
    assert "2 documents are called Guide; give an id:" in run("show", "Guide", code=1)


def test_an_agent_searches_what_it_is_allowed(docs: Path) -> None:
    run("add", "docs", "--publish", "-c", "zoo")
    assert run("allow", "ada") == "ada may search all categories.\n"
    assert ask("allow", "ada", "hr", "it") == {"agent": "ada", "categories": ["hr", "it"]}
    assert ask("search", "lynx", "--agent", "ada") == []
    assert run("allow", "ada", "--none") == "ada may search nothing.\n"
    assert run("allow", "ada", "--all") == "ada may search all categories.\n"
    assert len(ask("search", "lynx", RECOLLECT_AGENT="ada")) == 1
    assert "one of them" in run("allow", "ada", "hr", "--all", code=2)
    assert "only the owner's view writes" in run("add", "docs", code=1, RECOLLECT_AGENT="ada")


def test_the_agent_that_the_store_is_for_does_not_stop_its_owner(docs: Path, here: Path) -> None:
    CliRunner().invoke(cli, ["init", "--agent", "ada"])
    run("add", "docs", "--publish")
    with Memory(here / "memory") as memory:
        assert len(memory.knowledge.search("lynx")) == 1
