"""JSON that is typed, piped in or read from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import called, store

DEEP = "[" * 5000
COMMANDS = [
    "remember --content-json -",
    "remember --jsonl",
    "revise ID --content-json -",
    "scratchpad write plan - --content-json --conversation talk",
    "workflows complete STEP - --content-json",
    "context --messages -",
    "ledger add s --from - --store ledger:./log",
    "ledger add s --content-json - --store ledger:./log",
    "tools call remember -",
    "eval cases deep.json",
    "eval cases lines.jsonl",
    "eval locomo questions.json",
    "import deep.json",
]


@pytest.fixture
def names() -> dict[str, str]:
    Path("deep.json").write_text(DEEP)
    Path("lines.jsonl").write_text(f'{{"note": {DEEP}')
    Path("questions.json").write_text(f'[{{"note": {DEEP}')
    called("ledger", "create", "alice", "--id", "s", "--store", "ledger:./log")
    memory = store("tea")[0].id
    flow = json.loads(called("workflows", "start", "sign", "--json").stdout)["id"]
    step = json.loads(called("workflows", "step", flow, "one", "--json").stdout)["id"]
    return {"ID": memory, "STEP": step}


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("5", 5),
        ("-0.5", -0.5),
        ("true", True),
        ("null", None),
        ('"5"', "5"),
        ('{"a": [1, "b"]}', {"a": [1, "b"]}),
        ("", ""),
        ("tabs", "tabs"),
        ("007", "007"),
        ("NaN", "NaN"),
        ("True", "True"),
        ("[1, 2", "[1, 2"),
        ("a=b", "a=b"),
    ],
)
def test_a_value_that_is_json_is_stored_as_json_and_any_other_as_text(typed: str, value: object) -> None:
    record = json.loads(called("remember", "tea", "--meta", f"n={typed}", "--json").stdout)
    assert record["metadata"] == {"n": value}

    words = ["ledger", "create", "ann", "--custom", f"n={typed}", "--store", "ledger:./log"]
    assert json.loads(called(*words, "--json").stdout)["preferences"]["custom"] == {"n": value}


@pytest.mark.parametrize("words", [["remember", "tea", "--meta"], ["ledger", "create", "ann", "--custom"]])
def test_a_key_is_given_once(words: list[str]) -> None:
    done = called(*words, "n=1", words[-1], "n=2", RECOLLECT_STORE="ledger:./log")
    assert done.returncode == 2
    assert f"Invalid value for {words[-1]}: the key 'n' is given twice." in done.stderr
    assert "is stored as JSON" in " ".join(called(*words[:2], "--help").stdout.split())


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    done = called("remember", "tea", "--meta", f"n={DEEP}")
    assert (done.returncode, done.stderr) == (1, "recollect: meta: is nested too deeply\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_json_that_is_nested_too_deeply_is_refused(names: dict[str, str], command: str) -> None:
    done = called(*(names.get(word, word) for word in command.split()), "--json", input=DEEP)

    error = json.loads(done.stdout)["error"]
    assert done.returncode == 1
    assert error["type"] in ("InputError", "DatasetError")
    assert "nested too deeply" in error["message"] or error["message"].startswith("source: ")
