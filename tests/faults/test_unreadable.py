"""A folder or file that is there and cannot be read is no empty memory: every verb says so, and nothing is replaced."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.stores import FILES

from recollect import Memory, UnreadableError

# What holds the memories of the workspace `shop`, by its path in the store.
WORKSPACES = {
    "sqlite": ("default/workspaces/shop", "memory.db"),
    "ledger": ("sessions/shop", "memory.jsonl"),
    "notebook": ("workspaces/shop", "memories.jsonl"),
}

# Whoever is root may read everywhere, so it becomes nobody, once all that it needs from its own folders is loaded.
ASK = """
import os, sys, tempfile, traceback
from recollect import Memory, RecollectError
store, path, backup = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder, Memory(f"{store}:{folder}") as memory:
    record = memory.remember("warming up", tags=["warm"])
    memory.revise(record.id, content="warm"), memory.recall("warm"), memory.doctor(), memory.stats()
    memory.context([{"role": "user", "content": "warm"}]), memory.forget(tag="warm", erase=True), memory.compact()
    memory.export(folder + "/backup.json"), memory.import_(folder + "/backup.json")
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
memory = Memory(f"{store}:{path}").at(workspace="shop")
verbs = {
    "recall": lambda: memory.recall("heron"),
    "list": lambda: memory.list(),
    "get": lambda: memory.get("m-1"),
    "context": lambda: memory.context([{"role": "user", "content": "heron"}]),
    "stats": lambda: memory.stats(),
    "history": lambda: memory.history("m-1"),
    "audit": lambda: memory.audit.search("heron"),
    "verify": lambda: memory.audit.verify(),
    "doctor": lambda: memory.doctor(),
    "export": lambda: memory.export(backup),
    "erase": lambda: memory.forget(tag="bird", erase=True),
    "forget": lambda: memory.forget(workspace="shop"),
    "undo": lambda: memory.undo(),
    "compact": lambda: memory.compact(),
    "maintain": lambda: memory.maintain(),
    "remember": lambda: memory.remember("a fox"),
}
for name, verb in verbs.items():
    try:
        print(name, "answered", verb())
    except RecollectError as error:
        print(name, type(error).__name__)
    except Exception:
        print(name, traceback.format_exc())
memory.close()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where others may look in, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="recollect-"))
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o755)
    pending = [folder]
    while pending:  # a folder can be listed only once it is open again
        for path in pending.pop().iterdir():
            if path.is_dir():
                path.chmod(0o755)
                pending.append(path)
    shutil.rmtree(folder)


def fill(store: str, path: Path) -> None:
    with Memory(f"{store}:{path}") as memory:
        memory.at(workspace="shop").remember("a heron", tags=["bird"])
        memory.at(workspace="lab").remember("a fox")
    for made in (path, *path.rglob("*")):
        made.chmod(0o755 if made.is_dir() else 0o644)


def is_refused(said: str, *others: str) -> bool:
    answers = dict(line.split(" ", 1) for line in said.splitlines())
    assert len(answers) == 16, said
    assert set(answers.values()) <= {"UnreadableError", *others}, said
    assert all(answers[verb] == "UnreadableError" for verb in ("recall", "list", "export", "erase", "stats")), said
    return True


@pytest.mark.parametrize("closed", ["store", "parent", "workspace", "file"])
@pytest.mark.parametrize("store", FILES)
def test_what_may_not_be_read_is_no_empty_memory(
    folder: Path, run: Callable[..., str], store: str, closed: str
) -> None:
    root = folder / "parent" / "store"
    fill(store, root)
    workspace, file = WORKSPACES[store]
    shut = {"store": root, "parent": root.parent, "workspace": root / workspace, "file": root / workspace / file}
    shut[closed].chmod(0o666 if closed == "parent" else 0)
    backup = folder / "backup.json"
    backup.write_text("the last backup")
    backup.chmod(0o666)
    # What is written to a folder that is open but not one's own may be refused for that first.
    assert is_refused(run(ASK, store, root, backup), *(["ReadOnlyError"] if closed == "file" else []))
    assert backup.read_text() == "the last backup"
    assert [path.name for path in folder.iterdir() if "part" in path.suffix] == []


@pytest.mark.parametrize("store", FILES)
def test_a_file_in_place_of_a_folder_is_no_empty_memory(folder: Path, run: Callable[..., str], store: str) -> None:
    root = folder / "parent" / "store"
    # A notebook may be a file, but nothing can be in one.
    in_the_way = root.parent if store == "notebook" else root
    in_the_way.parent.mkdir(exist_ok=True)
    in_the_way.write_text("not a folder")
    assert is_refused(run(ASK, store, root, folder / "backup.json"), "StoreError")
    assert not (folder / "backup.json").exists()
    assert in_the_way.read_text() == "not a folder"


@pytest.mark.parametrize("store", FILES)
def test_a_file_put_in_place_of_an_open_folder_is_no_empty_memory(tmp_path: Path, store: str) -> None:
    root = tmp_path / "parent" / "store"
    with Memory(f"{store}:{root}") as memory:
        record = memory.remember("a heron", tags=["bird"])
        assert memory.recall("heron")
        moved = root.parent.rename(tmp_path / "moved")
        root.parent.write_text("not a folder")
        time.sleep(1.1)  # a store need not ask the disk for each call
        for verb in (
            lambda: memory.recall("heron"),
            lambda: memory.list(),
            lambda: memory.forget(tag="bird", erase=True),
            lambda: memory.remember("a fox"),
            lambda: memory.export(tmp_path / "backup.json"),
        ):
            with pytest.raises(UnreadableError):
                verb()
        root.parent.unlink()
        moved.rename(root.parent)
        assert memory.get(record.id).content == "a heron"
        assert [one.id for one in memory.list()] == [record.id]


def test_settings_of_a_session_that_may_not_be_read_are_not_replaced(folder: Path, run: Callable[..., str]) -> None:
    with Memory(f"ledger:{folder / 'store'}", preset="ledger") as memory:
        memory.sessions.create("Otto", session_id="shop")
    for path in (folder / "store", *(folder / "store").rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    kept = {
        path: path.read_bytes() for path in (folder / "store/sessions/shop").iterdir() if b"Otto" in path.read_bytes()
    }
    for path in kept:
        path.chmod(0)
    before, _, _ = ASK.partition("memory = Memory(")
    after = """
try:
    with Memory(f"{store}:{path}", preset="ledger") as memory:
        memory.sessions.add("shop", {"type": "finding", "content": "a heron"})
except RecollectError as error:
    print(type(error).__name__)
"""
    assert run(before + after, "ledger", folder / "store", "").strip() == "UnreadableError"
    assert kept
    assert all(path.read_bytes() == data for path, data in kept.items())


@pytest.mark.parametrize("store", FILES)
def test_a_workspace_that_may_not_be_read_does_not_hide_the_others(
    folder: Path, run: Callable[..., str], store: str
) -> None:
    root = folder / "store"
    fill(store, root)
    (root / WORKSPACES[store][0]).chmod(0)
    before, _, _ = ASK.partition("memory = Memory(")
    after = """
memory = Memory(f"{store}:{path}")
print(memory.workspaces(), [record.text for record in memory.at(workspace="lab").list()])
"""
    assert run(before + after, store, root, "").strip() == "['lab', 'shop'] ['a fox']"


@pytest.mark.parametrize("store", FILES)
def test_an_export_that_breaks_off_leaves_the_file_as_it_was(tmp_path: Path, store: str) -> None:
    backup = tmp_path / "backup.json"
    backup.write_text("the last backup")
    with Memory(f"{store}:{tmp_path / 'store'}") as memory:
        memory.remember_many([f"heron {n}" for n in range(1500)])

        def broken(number: int) -> None:
            raise UnreadableError("the disk was taken away")

        with pytest.raises(UnreadableError):
            memory.export(backup, progress=broken)
    assert backup.read_text() == "the last backup"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.json", "store"]
