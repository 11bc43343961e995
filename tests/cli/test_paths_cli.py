"""Paths that are typed: an empty one is never the working folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.command_line import called, started

_REFUSED = [
    ("path", ["knowledge", "add", ""]),
    ("output", ["ledger", "export", "s", "--output", ""]),
    ("from", ["ledger", "add", "s", "--from", ""]),
    ("svg", ["simulate", "--svg", ""]),
    ("path", ["init", ""]),
    ("from", ["copy", "", "b"]),
    ("to", ["copy", "a", ""]),
    ("target", ["backup", ""]),
    ("file", ["export", ""]),
    ("file", ["import", ""]),
    ("store", ["list", "--store", ""]),
    ("preset", ["list", "--preset", ""]),
    ("name", ["presets", "show", ""]),
    ("messages", ["context", "--messages", ""]),
    ("path", ["eval", "cases", ""]),
    ("path", ["eval", "locomo", ""]),
    ("plot", ["eval", "longmemeval", "x", "--plot", ""]),
    ("from", ["models", "pull", "--from", ""]),
    ("tls-cert", ["serve", "--tls-cert", ""]),
]


@pytest.mark.parametrize("blank", ["", " "])
@pytest.mark.parametrize(("name", "words"), _REFUSED)
def test_a_blank_path_is_refused_by_name(name: str, words: list[str], blank: str) -> None:
    Path("secret.md").write_text("what nobody asked for")

    done = called(*(word or blank for word in words), "--json")

    error = {"type": "InputError", "message": f"{name}: must not be empty or blank", "field": name}
    assert (done.returncode, json.loads(done.stdout)) == (1, {"error": error})
    assert os.listdir() == ["secret.md"]


def test_an_empty_variable_is_no_blank_path() -> None:
    assert called("remember", "tea", RECOLLECT_STORE="").returncode == 0


def test_a_store_whose_path_is_no_text_is_refused() -> None:
    done = started("remember", "tea", "--store", "./st\udcff")

    assert (done.returncode, done.stderr) == (1, "recollect: store: a path must be valid UTF-8 text\n")
    assert os.listdir() == []
