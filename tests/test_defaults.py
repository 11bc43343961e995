"""recollect.toml in a store: what it says is used unless somebody says otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.stores import FILES

from recollect import AccessError, InputError, Memory, SecretError


def settings(folder: Path, text: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recollect.toml").write_text(text)
    return str(folder)


@pytest.mark.parametrize("store", FILES)
def test_memory_reads_the_preset_and_the_address(tmp_path: Path, store: str) -> None:
    path = settings(tmp_path / "m", 'preset = "atlas"\nworkspace = "shop"\nagent = "atlas"\n')
    with Memory(f"{store}:{path}") as memory:
        assert memory.preset.name == "atlas"
        stored = memory.remember("Alice prefers tabs")
        assert (stored.address.workspace, stored.address.agent) == ("shop", "atlas")


def test_what_is_given_wins(tmp_path: Path) -> None:
    path = settings(tmp_path / "m", 'preset = "atlas"\nworkspace = "shop"\nagent = "atlas"\n')
    with Memory(path, preset="recollect") as memory:
        assert memory.preset.name == "recollect"
        other = memory.at(agent="zoe", workspace="yard")
        assert (other.address.workspace, other.address.agent) == ("yard", "zoe")
        assert memory.at(conversation="c1").address.agent == "atlas"


def test_a_view_that_was_chosen_is_not_widened(tmp_path: Path) -> None:
    path = settings(tmp_path / "m", 'agent = "atlas"\n')
    with Memory(path) as memory:
        view = memory.at(conversation="c1")
        with pytest.raises(AccessError):
            view.at(agent="zoe")


def test_the_kind_of_store_is_read(tmp_path: Path) -> None:
    path = settings(tmp_path / "m", 'store = "ledger"\n')
    with Memory(path) as memory:
        memory.remember("Alice prefers tabs")
    assert (tmp_path / "m" / "sessions" / "default" / "memory.jsonl").exists()


def test_a_store_of_one_file_has_its_settings_beside_it(tmp_path: Path) -> None:
    (tmp_path / "notes.recollect.toml").write_text('agent = "atlas"\n')
    with Memory(f"notebook:{tmp_path / 'notes.jsonl'}") as memory:
        assert memory.address.agent == "atlas"
    with Memory(f"notebook:{tmp_path / 'others.jsonl'}") as memory:
        assert memory.address.agent is None


def test_paths_in_it_are_relative_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = settings(tmp_path / "m", 'preset = "../mine.toml"\n')
    (tmp_path / "mine.toml").write_text('extends = "atlas"\n')
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with Memory(path) as memory:
        assert memory.preset.name == "mine"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("presett = 'atlas'", "presett"),
        ("api_key = 'x'", "api_key"),
        ("preset = 5", "preset"),
        ("preset = 'nosuch'", "preset"),
        ("tenant = ''", "tenant"),
        ("store = 'oracle'", "store"),
        ("embedder = 'https://me:word@host/v1#m'", "embedder"),
        ("= broken", "recollect.toml"),
    ],
)
def test_what_is_wrong_with_it_is_told_by_the_key(tmp_path: Path, text: str, field: str) -> None:
    path = settings(tmp_path / "m", text)
    with pytest.raises(InputError) as caught:
        Memory(path)
    assert caught.value.field == field


def test_a_key_in_it_is_refused_and_not_repeated(tmp_path: Path) -> None:
    secret = "AKIA" + "Z7QX4MPL2RWT9KDN"
    path = settings(tmp_path / "m", f'agent = "{secret}"\n')
    with pytest.raises(SecretError) as caught:
        Memory(path)
    assert secret not in str(caught.value)


@pytest.mark.parametrize("store", FILES)
def test_what_is_done_to_the_whole_is_not_narrowed_and_a_copy_has_the_settings(tmp_path: Path, store: str) -> None:
    path = settings(tmp_path / "m", 'workspace = "shop"\nagent = "atlas"\n')
    with Memory(f"{store}:{path}") as memory:
        memory.remember("Alice prefers tabs")
        memory.at(workspace="yard").remember("the yard is wide")
        assert memory.verify() == []
        memory.compact()
        assert {*memory.workspaces()} == {"shop", "yard"}
        assert memory.backup(tmp_path / "copy").damage == ()
        with pytest.raises(AccessError):
            memory.at(agent="zoe").verify()
    with Memory(f"{store}:{tmp_path / 'copy'}") as copy:
        assert copy.address.agent == "atlas"
        assert [one.text for one in copy.list()] == ["Alice prefers tabs"]


@pytest.mark.parametrize("store", [5, True, b"./x", ["x"], {}, 1.5])
def test_what_is_no_location_is_refused_at_once(store: Any) -> None:
    with pytest.raises(InputError, match="store: must be a path"):
        Memory(store)
