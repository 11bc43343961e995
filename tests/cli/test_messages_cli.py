"""What commands say when something is not there, not possible or not agreed to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import ANSI, called, recollect, store, terminal

TALK = ("--conversation", "talk")


def refusal(*words: str, code: int = 1, input: str = "") -> str:
    """The one line on stderr, which is the message of the error document, too."""
    done = called(*words, "--json", input=input)
    message = json.loads(done.stdout)["error"]["message"]
    assert (done.returncode, done.stderr) == (code, f"recollect: {message}\n")
    return message


def test_removing_what_is_not_there_is_an_error() -> None:
    store("tea")
    called("scratchpad", "write", "plan", "first the tests", *TALK)

    assert refusal("cases", "remove", "nope", "--yes").startswith("there is no case with the question 'nope'")
    assert refusal("cases", "remove", "nope").startswith("there is no case")
    assert (
        refusal("scratchpad", "clear", "nope", *TALK) == "the scratchpad of this conversation has nothing under 'nope'"
    )
    assert json.loads(called("scratchpad", "clear", "--json", *TALK).stdout) == {"removed": 1}
    assert json.loads(called("scratchpad", "clear", "--json", *TALK).stdout) == {"removed": 0}


def test_a_scratchpad_needs_a_conversation_and_says_how_to_name_it() -> None:
    store("tea")

    assert "--conversation NAME" in refusal("scratchpad", "list")
    result = json.loads(called("tools", "call", "list_scratchpad").stdout)
    assert "--conversation" not in result["error"]["message"]
    assert "memory.at" not in result["error"]["message"]
    assert "you are not in a conversation" in result["error"]["message"]


def test_a_conversation_that_has_ended_says_so() -> None:
    ref = json.loads(called("conversations", "start", "trip", "--json").stdout)["ref_code"]
    called("conversations", "end", ref)

    assert refusal("conversations", "end", ref).endswith(" has ended already")
    called("conversations", "archive", ref)
    assert refusal("conversations", "archive", ref).endswith(" is archived already")
    assert refusal("conversations", "end", ref).endswith(
        "is archived and cannot become idle; it can become nothing else"
    )


def test_a_missing_document_is_a_missing_file_or_folder(here: Path) -> None:
    assert refusal("knowledge", "add", "missing.md") == f"path: there is no such file or folder: {here}/missing.md"


def test_what_a_package_logs_about_a_damaged_file_is_not_shown(here: Path) -> None:
    (here / "a.pdf").write_bytes(b"%PDF-1.4\nnothing of the kind\ntrailer\n<< >>\n%%EOF\n")

    done = recollect("knowledge", "add", "a.pdf")

    assert done.returncode == 1
    shown = [line for line in done.stderr.splitlines() if not line.startswith("Started ")]
    assert len(shown) == 1, done.stderr
    assert shown[0].startswith(f"recollect: {here}/a.pdf: ")


def test_an_empty_entry_is_refused_as_everywhere() -> None:
    for words in (["journal", "add", ""], ["remember", ""], ["journal", "add", " ", "--board"]):
        assert refusal(*words) == "content: must not be empty or blank"


def test_without_a_terminal_a_question_is_a_refusal() -> None:
    store("tea")
    called("cases", "save", "what?", "--text", "tea")

    message = "Remove the case what? for good? There is no terminal to ask on; give --yes to go on."
    assert refusal("cases", "remove", "what?") == message


@pytest.mark.parametrize("as_json", [True, False])
def test_a_no_is_a_refusal(as_json: bool) -> None:
    store("tea")
    called("cases", "save", "what?", "--text", "tea")

    shown, code = terminal("cases", "remove", "what?", *["--json"] * as_json, answer=b"n\n")

    plain = ANSI.sub("", shown)
    assert code == 1
    assert "recollect: nothing was removed" in plain
    assert ('"DeclinedError"' in plain) is as_json
    assert len(json.loads(called("cases", "--json").stdout)) == 1


@pytest.mark.parametrize("words", [["--agent"], ["--json", "--agent"], ["--store", "./memory", "--agent"]])
def test_a_shared_option_without_its_value_is_an_error(words: list[str]) -> None:
    done = called(*words)

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "Error: Option '--agent' requires an argument."
    if "--json" in words:
        assert json.loads(done.stdout)["error"]["message"] == "Option '--agent' requires an argument."


def test_options_without_a_command_are_an_error() -> None:
    assert called("--agent", "atlas").stderr.splitlines()[-1] == "Error: Missing command."


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("remember", "TEXT"),
        ("revise", "TEXT"),
        ("recall", "QUERY"),
        ("query", "TEXT"),
        ("journal add", "TEXT"),
        ("ledger add", "TEXT"),
        ("conversations say", "TEXT"),
        ("scratchpad write", "KEY or VALUE"),
        ("tools call", "JSON"),
    ],
)
def test_help_says_which_texts_are_read_from_stdin(command: str, words: str) -> None:
    shown = called(*command.split(), "--help").stdout
    assert f"\n  {words} may be - for stdin.\n" in shown
    assert shown.count("- for stdin") == 1


def test_help_of_all_commands_does_not_point_to_itself() -> None:
    assert "More commands" in called("help").stdout
    assert "More commands" not in called("help", "--all").stdout
