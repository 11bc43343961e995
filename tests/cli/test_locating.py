"""Which memory a command uses: settings in it, and finding it from the working folder upwards."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.command_line import SECRET, called, store

from recollect import Memory


def test_init_writes_settings_that_every_command_and_the_library_read(here: Path) -> None:
    done = called("init", "./brain", "--preset", "atlas", "--workspace", "shop", "--agent", "zoe")
    assert done.returncode == 0
    assert "recollect.toml" in done.stdout
    text = (here / "brain" / "recollect.toml").read_text()
    assert 'preset = "atlas"' in text
    assert '# tenant = "acme"' in text
    stored = json.loads(called("remember", "Alice prefers tabs", "--store", "brain", "--json").stdout)
    assert stored["address"]["agent"] == "zoe"
    assert stored["address"]["workspace"] == "shop"
    with Memory("./brain") as memory:
        assert memory.preset.name == "atlas"
        assert [one.text for one in memory.list()] == ["Alice prefers tabs"]
    other = json.loads(called("remember", "x", "--store", "brain", "--agent", "max", "--json").stdout)
    assert other["address"]["agent"] == "max"
    environment = json.loads(called("remember", "y", "--store", "brain", "--json", RECOLLECT_AGENT="eve").stdout)
    assert environment["address"]["agent"] == "eve"
    whole = called("compact", "--all", "--store", "brain")
    assert whole.returncode == 0, whole.stderr
    assert called("verify", "--store", "brain").returncode == 0
    assert called("backup", "copy", "--store", "brain").returncode == 0


def test_init_again_changes_nothing(here: Path) -> None:
    called("init", "./brain", "--agent", "zoe")
    before = (here / "brain" / "recollect.toml").read_text()
    assert called("init", "./brain").returncode == 0
    refused = called("init", "./brain", "--agent", "max")
    assert refused.returncode == 1
    assert "agent: " in refused.stderr
    assert (here / "brain" / "recollect.toml").read_text() == before


def test_init_of_a_file_and_of_a_kind(here: Path) -> None:
    assert called("init", "notebook:./notes.jsonl", "--agent", "zoe").returncode == 0
    assert (here / "notes.recollect.toml").exists()
    assert called("init", "ledger:./log").returncode == 0
    called("remember", "we deploy on Fridays", "--store", "./log")
    assert (here / "log" / "sessions").is_dir()


def test_init_writes_no_secret(here: Path) -> None:
    refused = called("init", "./brain", "--embedder", f"https://u:{SECRET}@host/v1#m")
    assert refused.returncode == 1
    assert SECRET not in refused.stderr + refused.stdout
    assert not (here / "brain").exists()


def test_a_bad_key_is_named(here: Path) -> None:
    called("init", "./brain")
    (here / "brain" / "recollect.toml").write_text("presett = 'atlas'")
    refused = called("list", "--store", "brain", "--json")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"]["field"] == "presett"


@pytest.mark.parametrize("where", ["memory", ".aegis/memory", "brain"])
def test_a_memory_is_found_from_below(here: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called("init", where)
    called("remember", "Alice prefers tabs", "--store", where)
    (here / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(here / "src" / "deep")
    found = called("recall", "tabs")
    assert "Alice prefers tabs" in found.stdout
    assert str(here / where) in found.stderr
    assert called("recall", "tabs", "--json").stderr == ""
    monkeypatch.chdir(here)
    assert called("recall", "tabs").stderr == ""


def test_inside_the_memory_itself(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called("init", "brain")
    called("remember", "Alice prefers tabs", "--store", "brain")
    monkeypatch.chdir(here / "brain")
    assert "Alice" in called("list").stdout


def test_a_folder_that_is_only_called_memory_is_not_taken(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "memory" / "src").mkdir(parents=True)
    (here / "work").mkdir()
    monkeypatch.chdir(here / "work")
    assert called("remember", "Alice prefers tabs").returncode == 0
    assert (here / "work" / "memory").is_dir()


def test_one_that_is_nearer_goes_first_and_init_looks_nowhere_else(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store("far away")
    (here / "work").mkdir()
    monkeypatch.chdir(here / "work")
    assert called("init").returncode == 0
    assert (here / "work" / "memory" / "recollect.toml").exists()
    called("remember", "nearby")
    assert "far away" not in called("list").stdout


def test_of_several_none_is_guessed(here: Path) -> None:
    for name in ("one", "two"):
        called("init", name)
    refused = called("list")
    assert refused.returncode == 1
    assert "one, two" in refused.stderr


def test_the_search_ends_at_home(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store("above home")
    (here / "home" / "work").mkdir(parents=True)
    monkeypatch.chdir(here / "home" / "work")
    assert called("list", HOME=os.fspath(here / "home")).returncode == 1
