"""Folders that are missing, in the way, or gone; and what a killed process leaves in them."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from recollect import Memory, UnreadableError

if TYPE_CHECKING:
    from support.common import Script


def test_opening_and_asking_create_nothing(tmp_path: Path) -> None:
    with Memory(tmp_path / "not" / "yet") as memory:
        assert memory.recall("heron") == []
        assert memory.list() == []
        assert memory.stats().total == 0
        assert memory.workspaces() == []
        assert memory.audit.verify() == []
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_made_with_the_first_memory(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "yet"
    with Memory(folder) as memory:
        memory.remember("a heron")
        assert memory.recall("heron")
    assert (folder / "default/workspaces/default/memory.db").is_file()


def test_what_is_made_is_for_this_user_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Memory(tmp_path / "memory") as memory:
            memory.remember("a heron")
            made = [tmp_path / "memory", *(tmp_path / "memory").rglob("*")]
            assert len(made) > 5
            assert [oct(stat.S_IMODE(path.stat().st_mode)) for path in made if path.is_file()] == ["0o600"] * 3
            assert {oct(stat.S_IMODE(path.stat().st_mode)) for path in made if path.is_dir()} == {"0o700"}
    finally:
        os.umask(before)


def test_a_folder_deleted_while_it_is_open_begins_anew(store_url: str) -> None:
    with Memory(store_url) as memory:
        memory.remember("a heron")
        memory.recall("heron")
        shutil.rmtree(store_url)
        new = memory.remember("a fox")
        assert [record.id for record in memory.list()] == [new.id]
        assert [hit.memory.id for hit in memory.recall("heron fox")] == [new.id]
    with Memory(store_url) as memory:
        assert [record.id for record in memory.list()] == [new.id]
        assert memory.doctor().ok


def test_a_folder_deleted_while_it_is_open_does_not_trouble_closing(store_url: str) -> None:
    with Memory(store_url) as memory:
        memory.remember("a heron")
        assert memory.recall("heron")
        shutil.rmtree(store_url)
    assert not Path(store_url).exists()


def test_a_folder_replaced_by_its_backup_while_it_is_open_is_the_one_that_counts(
    store_url: str, tmp_path: Path
) -> None:
    with Memory(store_url) as memory:
        memory.remember("a heron")
    shutil.copytree(store_url, tmp_path / "backup")
    with Memory(store_url) as memory:
        memory.remember("a fox")
        assert len(memory.list()) == 2
        shutil.rmtree(store_url)
        shutil.copytree(tmp_path / "backup", store_url)
        memory.remember("a lynx")
        assert {record.content for record in memory.list()} == {"a heron", "a lynx"}
        assert memory.doctor().ok


@pytest.mark.parametrize("above", ["", "default", "default/workspaces", "default/workspaces/default"])
def test_a_file_where_a_folder_should_be_is_an_error_and_stays(store_url: str, above: str) -> None:
    file = Path(store_url, above)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("not a folder")
    with Memory(store_url) as memory:
        for verb in (lambda: memory.remember("a heron"), memory.list):
            with pytest.raises(UnreadableError, match=r"\.db.* a file, not a folder"):
                verb()
    assert file.read_text() == "not a folder"


@pytest.mark.clause("INK-09")
def test_account_and_workspaces_are_files_of_their_own_and_a_forgotten_one_leaves_nothing(store_url: str) -> None:
    with Memory(store_url) as memory:
        memory.remember("alice likes tabs", kind="preference", tier="account")
        for name in ("shop", "lab"):
            memory.at(workspace=name).remember(f"a heron in the {name}")
        files = sorted(str(path.relative_to(f"{store_url}/default")) for path in Path(store_url).rglob("*.db"))
        assert files == ["account.db", "workspaces/lab/memory.db", "workspaces/shop/memory.db"]
        memory.at(workspace="shop").forget(workspace="shop")
        assert memory.workspaces() == ["lab"]
        assert sorted(path.name for path in Path(store_url, "default", "workspaces").iterdir()) == ["lab"]
        assert memory.at(workspace="shop").list(tier="workspace") == []
        assert len(memory.at(workspace="lab").list()) == 2


KILLED_WHILE_DROPPING = """
import os, shutil, sys
from recollect import Memory
shutil.rmtree = lambda *arguments, **options: os.kill(os.getpid(), 9)
Memory(sys.argv[1]).at(workspace="shop").forget(workspace="shop")
"""


def test_what_a_process_killed_while_forgetting_left_behind_is_cleaned(
    store_url: str, start: Callable[..., Script]
) -> None:
    with Memory(store_url) as memory:
        memory.at(workspace="shop").remember("the zugunruhe of herons")
        memory.at(workspace="lab").remember("a heron")
    start(KILLED_WHILE_DROPPING, store_url).wait()
    workspaces = Path(store_url, "default", "workspaces")
    assert len(list(workspaces.glob(".trash-*"))) == 1
    with Memory(store_url) as memory:
        assert memory.workspaces() == ["lab"]
        assert memory.at(workspace="shop").list() == []
        memory.at(workspace="lab").compact()
    assert sorted(path.name for path in workspaces.iterdir()) == ["lab"]


def test_a_file_that_was_made_but_never_filled_holds_no_memories(store_url: str) -> None:
    path = Path(store_url, "default/workspaces/shop/memory.db")
    path.parent.mkdir(parents=True)
    path.touch()
    with Memory(store_url) as memory:
        assert memory.workspaces() == []
        assert memory.at(workspace="shop").list() == []
        assert path.stat().st_size == 0
        memory.at(workspace="shop").remember("a heron")
        assert memory.workspaces() == ["shop"]
