"""Workflows on the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from recollect.cli.app import cli

pytestmark = pytest.mark.usefixtures("here")


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, ["workflows", *words])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def ask(*words: str) -> Any:
    return json.loads(run(*words, "--json"))


def test_a_workflow_is_run_and_what_it_brought_is_found() -> None:
    flow = ask("start", "onboarding", "--goal", "sign the lease")
    short = flow["id"][-8:]
    step = ask("step", short, "sign")
    assert ask("complete", step["id"][-8:], "signed", "for five years")["output"] == "signed for five years"
    other = ask("step", flow["id"], "file")
    assert "Failed" in run("fail", other["id"], "no cabinet")
    third = ask("step", short, "file")
    assert ask("complete", third["id"], '{"pages": 3}', "--json-output")["output"] == {"pages": 3}
    assert "Finished" in run("finish", short)
    assert [one["output"] for one in ask("search", "five", "years")] == ["signed for five years"]
    assert "onboarding › sign" in run("search", "signed")
    assert run("search", "zzz") == "Nothing matched.\n"
    shown = run("show", short)
    assert "signed for five years" in shown
    assert "no cabinet" in shown
    assert [one["status"] for one in ask("show", short)["steps"]] == ["completed", "failed", "completed"]
    assert "sign the lease" in run()
    assert run("list", "--status", "running") == "There are no such workflows.\n"
    assert ask("remove", short, "--yes", "--reason", "old")["erased"] is True
    assert ask("list") == []


def test_what_does_not_fit_is_one_line_and_exit_code_1() -> None:
    flow = ask("start", "x")
    step = ask("step", flow["id"], "a")
    assert "has a step that is running" in run("finish", flow["id"], code=1)
    run("complete", step["id"])
    assert "is completed already" in run("complete", step["id"], code=1)
    assert "output: is not JSON" in run("complete", step["id"], "{", "--json-output", code=1)
    assert "there is no workflow 00000000" in run("show", "00000000", code=1)
    assert "there is no step" in run("fail", "00000000", "x", code=1)
    assert "Failed" in run("finish", flow["id"], "--error", "given up")
