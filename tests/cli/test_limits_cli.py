"""The limits of commands that list or search."""

from __future__ import annotations

import json

import pytest
from support.command_line import called, store

LEDGER = ["--store", "ledger:./log"]
COMMANDS = [
    ["list"],
    ["recall", "tea"],
    ["query", "tea"],
    ["consult", "tea"],
    ["context", "tea"],
    ["journal", "list"],
    ["journal", "list", "--board"],
    ["audit", "search"],
    ["conversations", "list"],
    ["workflows", "list"],
    ["workflows", "search", "tea"],
    ["knowledge", "search", "tea"],
    ["ledger", "query", "s", "tea", *LEDGER],
    ["ledger", "search", "tea", *LEDGER],
]


@pytest.fixture(autouse=True)
def stored() -> None:
    store("tea")
    called("ledger", "create", "ann", "--id", "s", *LEDGER)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_limit_that_is_too_high_is_refused_by_the_operation(words: list[str]) -> None:
    done = called(*words, "--limit", "1000001", "--json")

    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["type"], error["field"]) == (1, "InputError", "limit")
    assert error["message"].startswith("limit: 1000001 must be a whole number from 1 to 1")
    assert called(*words, "--limit", "1000").returncode == 0
    assert called(*words, "--limit", "0").returncode == 2


def test_the_highest_limit_of_a_list_is_taken() -> None:
    (record,) = json.loads(called("list", "-n", "1000000", "--json").stdout)
    assert record["content"] == "tea"


@pytest.mark.parametrize("words", [["query", "tea"], ["list"]])
def test_tables_call_a_kind_a_kind(words: list[str]) -> None:
    assert " kind " in called(*words).stdout.splitlines()[0]
