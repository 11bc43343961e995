"""`-` is standard input wherever a command takes a TEXT."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from recollect import Memory
from recollect.cli.app import cli
from recollect.cli.intake import TextArgument

_NO_TEXT = frozenset(
    "id ids given change workflow step session memory_id documents document paths path folder file name user source "
    "destination topic start end categories number words:help".split()
)
"""Arguments that name something: ids, files, people, times, numbers."""
_OWN = {("remember", "content"), ("revise", "content"), ("ledger add", "content"), ("journal write", "content")}
"""Texts that may also be left out, to be piped in, or be read line by line."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "none")
    monkeypatch.setenv("RECOLLECT_STORE", str(tmp_path / "m"))
    return tmp_path


def run(*words: str, piped: str = "") -> str:
    result = CliRunner().invoke(cli, words, input=piped, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def leaves(command: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from leaves(inner, (*path, name))
    else:
        yield " ".join(path), command


def test_every_argument_that_is_a_text_takes_it_from_stdin() -> None:
    plain = {
        (path, str(argument.name))
        for path, command in leaves()
        for argument in command.params
        if isinstance(argument, click.Argument) and not isinstance(argument, TextArgument)
    }
    assert {(path, name) for path, name in plain if name not in _NO_TEXT} - {("help", "words")} <= _OWN | {
        (path, "content") for path in ("journal add", "journal save", "journal core")
    }


def test_what_is_piped_is_stored_and_not_the_dash() -> None:
    with Memory("m") as memory:
        flow = memory.workflows.start("sign").id
        done, failed = (memory.workflows.step(flow, name).id for name in ("one", "two"))
        talk = memory.conversations.start("about trains").id
    run("workflows", "complete", done, "-", piped="signed for\nfive years\n")
    run("workflows", "fail", failed, "-", piped="the notary was away\n")
    run("conversations", "say", talk, "-", piped="We decided to go by train\n")
    with Memory("m") as memory:
        first, second = memory.workflows.steps(flow)
        assert (first.output, second.error) == ("signed for\nfive years", "the notary was away")
        assert "We decided to go by train" in [one.text for one in memory.list(conversation=talk)]
        assert "-" not in [one.text for one in memory.list(limit=100)]


def test_what_is_piped_is_the_question() -> None:
    with Memory("m") as memory:
        memory.remember("Ada likes tea")
        memory.knowledge.add("Boats float on water.", title="Boats", status="published")
    assert "Ada likes tea" in run("recall", "-", piped="what does Ada like?\n")
    assert "Ada likes tea" in run("context", "-", piped="what does Ada like?\n")
    assert "Boats" in run("kb", "search", "-", piped="boats\n")
    assert json.loads(run("audit", "search", "-", "--json", piped="remembered\n"))
    told = json.loads(run("call", "recall", "-", piped='{"query": "tea"}'))
    assert "Ada likes tea" in json.dumps(told)
