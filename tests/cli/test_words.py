"""The words of the command line: the same everywhere, old ones still work, and the help shows what is of use."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from recollect import Memory
from recollect.cli.app import cli

Run = Callable[..., str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "none")
    return tmp_path


@pytest.fixture
def run() -> Run:
    def run(*words: str, code: int = 0, input: str | None = None) -> str:
        result = CliRunner().invoke(cli, words, input=input)
        assert result.exit_code == code, (words, result.output, result.exception)
        return result.stdout

    return run


OLD_WORDS = {
    "kb list": "knowledge list",
    "why --help": "diagnose --help",
    "call --help": "tools call --help",
    "sessions --help": "ledger --help",
    "sessions drop --help": "ledger remove --help",
    "sessions delete-topic --help": "ledger forget-topic --help",
    "rebuild --help": "ledger rebuild --help",
    "migrate --help": "ledger migrate --help",
    "conversations idle --help": "conversations end --help",
    "workspaces forget --help": "workspaces remove --help",
    "keys revoke --help": "keys remove --help",
}


def test_old_words_do_what_the_new_ones_do_and_are_not_listed(run: Run) -> None:
    Memory("./memory").remember("tea")
    for old, new in OLD_WORDS.items():
        assert run(*old.split()) == run(*new.split()), old
    shown = run("help", "--all")
    assert not [name for name in ("kb", "why", "call", "sessions", "rebuild", "migrate") if f"\n  {name} " in shown]


def test_old_options_still_work_where_a_command_has_the_new_one(run: Run) -> None:
    run("channels", "create", "travel")
    ref = json.loads(run("conversations", "start", "the trip", "--in", "travel", "--json"))
    assert ref["channel"] == "travel"
    turn = json.loads(run("conversations", "say", ref["ref_code"], "by train", "--as=assistant", "--json"))
    assert (turn["role"], turn["content"]) == ("assistant", "by train")
    run("remember", "we go by train", "--kind", "decision")
    assert "by train" in run("query", "train", "--type", "decision")
    step = json.loads(run("workflows", "start", "lease", "--json"))["id"]
    step = json.loads(run("workflows", "step", step, "sign", "--json"))["id"]
    done = json.loads(run("workflows", "complete", step, '{"years": 5}', "--json-output", "--json"))
    assert done["output"] == {"years": 5}


def test_what_follows_two_dashes_is_no_old_option(run: Run) -> None:
    assert json.loads(run("remember", "--json", "--", "--in", "Porto"))["content"] == "--in Porto"


def test_the_first_help_is_short_and_says_where_the_rest_is(run: Run) -> None:
    first, every = run("--help"), run("help", "--all")
    shown = re.findall(r"^  ([a-z]+)  ", first.partition("Begin:")[2], re.MULTILINE)
    assert 18 <= len(shown) <= 25
    assert "recollect help --all" in first
    assert {"remember", "recall", "forget", "undo", "doctor", "serve"} <= set(shown)
    assert not {"ledger", "db", "prove", "tenants"} & set(shown)
    assert all(f"\n  {name} " in every for name in (*shown, "ledger", "db", "orient", "scratchpad", "cases"))


@pytest.mark.parametrize(
    ("command", "uses", "not_used"),
    [
        ("help", "", "--store --tenant --agent"),
        ("completion show", "", "--store --conversation"),
        ("verify", "--store --tenant --workspace", "--agent --conversation --embedder"),
        ("knowledge list", "--store --tenant", "--channel --conversation --workspace"),
        ("recall", "--store --agent --embedder --conversation", ""),
    ],
)
def test_a_command_shows_the_shared_options_that_it_uses(run: Run, command: str, uses: str, not_used: str) -> None:
    shown = run(*command.split(), "--help")
    assert [option for option in uses.split() if f"  {option} " not in shown] == []
    assert [option for option in not_used.split() if f"  {option} " in shown] == []


def test_a_shared_option_that_is_not_shown_is_accepted(run: Run) -> None:
    Memory("./memory").remember("tea")
    run("knowledge", "list", "--channel", "travel", "--json")


def test_a_conversation_is_shown_with_its_turns(run: Run) -> None:
    with Memory("./memory") as memory:
        talk = memory.conversations.start("the trip")
        memory.conversations.say(talk.id, "user", "where do we go?")
        memory.conversations.say(talk.id, "assistant", "to Porto")
        other = memory.conversations.start("another")
        memory.conversations.say(other.id, "user", "nothing to do with it")
    shown = run("conversations", "show", talk.ref_code)
    assert shown.index("where do we go?") < shown.index("to Porto")
    assert "nothing to do" not in shown
    document = json.loads(run("conversations", "show", talk.id, "--json"))
    assert [(turn["role"], turn["content"]) for turn in document["turns"]] == [
        ("user", "where do we go?"),
        ("assistant", "to Porto"),
    ]


def test_init_keeps_the_memory_out_of_git_and_leaves_a_file_that_is_there_alone(run: Run, here: Path) -> None:
    run("init")
    assert (here / "memory" / ".gitignore").read_text().splitlines()[-1] == "*"
    (here / "memory" / ".gitignore").write_text("mine\n")
    run("init")
    assert (here / "memory" / ".gitignore").read_text() == "mine\n"
    run("remember", "tea")
    run("verify")
    run("backup", "copy")
    assert "tea" in run("recall", "tea", "--store", "copy")
    run("init", "notebook:./notes/n.jsonl")
    assert not (here / "notes" / ".gitignore").exists()


def test_tenants_of_a_folder_are_listed(run: Run) -> None:
    run("remember", "tea")
    run("remember", "mate", "--tenant", "acme", "--workspace", "shop")
    run("remember", "coffee", "--tenant", "acme", "--workspace", "bar")
    assert json.loads(run("tenants", "--json")) == [
        {"tenant": "acme", "workspaces": 2, "memories": 2},
        {"tenant": "default", "workspaces": 1, "memories": 1},
    ]
    assert "acme" in run("tenants")


def test_doctor_looks_at_other_workspaces_with_deep_only(run: Run, here: Path) -> None:
    run("remember", "tea")
    run("remember", "a fox in the yard", "--workspace", "shop")
    for file in (here / "memory").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes().replace(b"a fox", b"a dog"))
    run("doctor")
    assert "shop is damaged" in run("doctor", "--deep", code=1)
    document = json.loads(run("doctor", "--deep", "--json", code=1))
    assert (document["ok"], list(document["damaged"])) == (False, ["shop"])


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("recall --kind ", ["decision", "preference"]),
        ("recall --kind de", ["decision"]),
        ("list --workspace ", ["default", "shop"]),
        ("list --preset at", ["atlas"]),
        ("conversations start --channel tr", ["travel"]),
        ("remember --role us", ["user"]),
        ("knowledge search --category ", ["guides"]),
        ("recall --store /nowhere --workspace ", []),
    ],
)
def test_values_are_completed(here: Path, words: str, offered: list[str]) -> None:
    with Memory("./memory") as memory:
        memory.remember("tabs", kind="preference")
        memory.remember("trains", kind="decision")
        memory.at(workspace="shop").remember("tills")
        memory.channels.create("travel")
        memory.knowledge.add("How to install it.", title="Guide", category="guides")
    asked = ["recollect", *words.split(), *([""] if words.endswith(" ") else [])]
    variables = {
        "_RECOLLECT_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(asked),
        "COMP_CWORD": str(len(asked) - 1),
    }
    result = CliRunner().invoke(cli, env={**os.environ, **variables})
    values = [line.partition(",")[2] for line in result.stdout.splitlines()]
    assert [value for value in values if value not in ("", "fact")] == offered


def test_scratchpad_and_cases_on_the_command_line(run: Run) -> None:
    run("scratchpad", "write", "plan", "first the tests", "--conversation", "release")
    run("scratchpad", "write", "owner", '{"name": "Ada"}', "--content-json", "--conversation", "release")
    assert "first the tests" in run("scratchpad", "--conversation", "release")
    assert run("scratchpad", "read", "owner", "--conversation", "release") == "name: Ada\n"
    assert run("scratchpad", "clear", "plan", "--conversation", "release") == "Removed 1 note.\n"
    run("remember", "Ada drinks tea")
    run("cases", "save", "what does Ada drink?", "--text", "tea", "-n", "3")
    assert [case["texts"] for case in json.loads(run("cases", "--json"))] == [["tea"]]
    assert "tea" in run("cases")
    refused = run("cases", "remove", "what does Ada drink?", code=1)
    assert refused == ""
    assert run("cases", "remove", "what does Ada drink?", "--yes") == "Removed 1 case.\n"


def test_orient_consult_and_query(run: Run) -> None:
    run("remember", "we deploy on Fridays", "--kind", "decision", "--tag", "ops.deploy")
    run("remember", "the canteen opens at noon")
    assert "Fridays" in run("orient", "deploy")
    assert "Fridays" in run("consult", "when do we deploy?")
    assert "Fridays" in run("query", "--kind", "decision")
    assert "noon" not in run("query", "--tag", "ops")
    hits = json.loads(run("query", "--sort", "newest", "--json"))
    assert [hit["memory"]["content"] for hit in hits] == ["the canteen opens at noon", "we deploy on Fridays"]


def test_an_empty_condition_is_refused_and_not_left_out(run: Run) -> None:
    run("remember", "tea", "--tag", "drinks")
    run("forget", "--tag", "", "--since", "7d", "--yes", code=1)
    run("recall", "tea", "--kind", "", code=1)
    run("list", "--source", "", code=1)
    assert "tea" in run("list")
