"""A command that is refused leaves nothing behind."""

from __future__ import annotations

import os

import pytest
from support.command_line import SECRET, called, recollect

REFUSED = [
    (["remember", ""], ""),
    (["remember", f"the key {SECRET}"], ""),
    (["remember", "tea", "--importance", "7"], ""),
    (["remember", "--content-json", "{"], ""),
    (["remember", "--jsonl"], '{"content": ""}'),
    (["remember", "--lines"], f"tea\n{SECRET}\n"),
    (["import"], '{"x'),
    (["import", "missing.json"], ""),
    (["knowledge", "add", "missing.md"], ""),
    (["journal", "add", ""], ""),
    (["journal", "add", " ", "--board"], ""),
    (["scratchpad", "write", "", "x", "--conversation", "talk"], ""),
    (["workflows", "start", ""], ""),
    (["conversations", "start", "x" * 2000], ""),
    (["channels", "create", ""], ""),
    (["tools", "call", "remember", '{"content": ""}'], ""),
]


@pytest.mark.parametrize("preset", ["recollect", "aegis", "ledger"])
@pytest.mark.parametrize(("words", "piped"), REFUSED)
def test_a_refused_command_makes_no_memory(words: list[str], piped: str, preset: str) -> None:
    done = called(*words, "--preset", preset, input=piped)

    assert done.returncode == 1, done.stdout
    assert os.listdir() == []


def test_what_is_refused_later_is_in_the_audit_log() -> None:
    recollect("remember", "tea")
    recollect("remember", "")

    assert "remember refused" in recollect("audit").stdout
