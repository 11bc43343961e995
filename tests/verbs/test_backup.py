"""Backups: whole stores, copied while others write to them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.jsonl import Kept
from support.stores import FILES, located

from recollect import AccessError, AsyncMemory, ConcurrencyError, InputError, Memory, StoreError
from recollect.cli.app import cli
from recollect.stores import open_store
from recollect.stores.integrity import damage_in

EVERY = pytest.mark.parametrize("store", FILES)
PRESETS = {"sqlite": "recollect", "ledger": "ledger", "notebook": "aegis"}

WRITING = """
import sys
from recollect import Memory
memory = Memory(sys.argv[1], preset=sys.argv[2])
shop = memory.at(workspace="Shop")
number = 0
while True:
    kept = memory.remember_many([f"heron {number} left", f"heron {number} right"])
    ids = [record.id for record in kept]
    ids.append(shop.remember(f"fox {number}", tags=["animal"]).id)
    ids.append(memory.remember(f"wolf {number}", tier="account").id)
    if number % 7 == 3:
        memory.forget(memory.remember("a passing remark").id)
        memory.compact()
    number += 1
    print(*ids, flush=True)
"""


def opened(store: str, folder: Path) -> Memory:
    return Memory(f"{store}:{folder}", preset=PRESETS[store])


def ids(memory: Memory) -> set[str]:
    return {record.id for record in memory.list(limit=1_000_000)}


@EVERY
def test_what_was_acknowledged_before_a_backup_is_in_it_whoever_writes(
    store: str, tmp_path: Path, start: Callable[..., Any]
) -> None:
    writer = start(WRITING, f"{store}:{tmp_path}/memory", PRESETS[store])
    acknowledged: list[list[str]] = []
    with opened(store, tmp_path / "memory") as memory:
        for number in range(10):
            acknowledged.append(writer.line().split())
            acknowledged.append(writer.line().split())
            done = memory.backup(tmp_path / f"copy{number}")
            assert done.damage == ()
            with opened(store, tmp_path / f"copy{number}") as copy:
                own, shop = ids(copy), ids(copy.at(workspace="Shop"))
                for left, right, fox, wolf in acknowledged:
                    assert {left, right, wolf} <= own
                    assert {fox, wolf} <= shop
                contents = [record.content for record in copy.list(limit=1_000_000)]
                for side, other in (("left", "right"), ("right", "left")):  # a write is in it as a whole or not
                    numbers = {text.split()[1] for text in contents if text.endswith(side)}
                    assert numbers == {text.split()[1] for text in contents if text.endswith(other)}
                for view in (copy, copy.at(workspace="Shop")):
                    assert view.verify() == []
                    assert all(log.ok for log in view.audit.verify())
                    assert view.doctor().ok, view.doctor()
    writer.kill()
    writer.wait()
    left = [path.name for path in tmp_path.iterdir() if not path.name.startswith(("memory", "copy"))]
    assert left == []


@EVERY
def test_a_backup_is_a_store_of_its_own_with_all_tenants_settings_and_undo(store: str, tmp_path: Path) -> None:
    with opened(store, tmp_path / "memory") as memory:
        first = memory.remember("a heron")
        memory.forget(first.id)
        memory.at(tenant="acme", workspace="shop").remember("a fox")
        if store == "ledger":
            memory.sessions.create("alice", session_id="s")
            (tmp_path / "memory" / "config.json").write_text('{"storage": {"max_session_size_mb": 7}}')
        if store == "notebook":
            (tmp_path / "memory" / "agent.json").write_text('{"memory": {"max_total": 70}}')
        memory.backup(tmp_path / "copies" / "one")
        memory.remember("a wolf, later")
    with opened(store, tmp_path / "copies" / "one") as copy:
        assert copy.list() == []
        copy.undo()
        assert [record.content for record in copy.list()] == ["a heron"]
        copy.remember("only in the copy")
        assert [record.content for record in copy.at(tenant="acme", workspace="shop").list()] == ["a fox"]
        if store == "ledger":
            assert "s" in [one.session_id for one in copy.sessions.list()]
    for name in ("config.json", "agent.json"):
        if (tmp_path / "memory" / name).exists():
            same = (tmp_path / "memory" / name).read_text(), (tmp_path / "copies" / "one" / name).read_text()
            assert same[0] == same[1]
    made = [tmp_path / "copies" / "one", *(tmp_path / "copies" / "one").rglob("*")]
    assert {path.stat().st_mode & 0o077 for path in made if path.name != "lock"} == {0}
    with opened(store, tmp_path / "memory") as memory:
        assert [record.content for record in memory.list()] == ["a wolf, later"]


HOLDING = """
import sys
from recollect.stores import open_store
from recollect.stores.port import Place
with open_store(sys.argv[1]).transaction(Place("default", "default")):
    print("writing", flush=True)
    sys.stdin.readline()
"""


def test_files_are_taken_while_nobody_writes_them(tmp_path: Path, start: Callable[..., Any]) -> None:
    kept = Kept("ledger", tmp_path / "memory")
    kept.hurry(lock_timeout_ms=100, max_retries=0, retry_backoff_ms=1)
    with kept.open() as memory:
        memory.remember("a heron")
        writer = start(HOLDING, kept.url)
        assert writer.line() == "writing"
        with pytest.raises(ConcurrencyError):
            memory.backup(tmp_path / "copy")
        assert [path.name for path in tmp_path.iterdir()] == ["memory"]
        writer.tell("go on")
        writer.finish()
        memory.backup(tmp_path / "copy")


def test_a_notebook_of_another_name_keeps_it(tmp_path: Path) -> None:
    with Memory(f"notebook:{tmp_path}/notes.jsonl", preset="aegis") as memory:
        memory.remember("a heron")
        memory.backup(tmp_path / "copy")  # other files may be beside a notebook
    with Memory(f"notebook:{tmp_path}/copy/notes.jsonl", preset="aegis") as copy:
        assert [record.content for record in copy.list()] == ["a heron"]


@EVERY
def test_a_target_that_is_taken_or_inside_the_store_is_refused(store: str, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("dear")
    (tmp_path / "file").write_text("dear")
    (tmp_path / "empty").mkdir()
    with opened(store, tmp_path / "memory") as memory:
        memory.remember("a heron")
        memory.at(workspace="shop").remember("a fox")
        before = sorted(tmp_path.rglob("*"))
        inside = {"sqlite": "memory/more", "ledger": "memory/sessions/s", "notebook": "memory/workspaces/s"}[store]
        for taken in ("full", "file", "memory", inside, ""):
            with pytest.raises(InputError, match="target"):
                memory.backup(tmp_path / taken if taken else "")
        for view in (memory.at(agent="atlas"), memory.at(tenant="acme"), memory.at(workspace="shop")):
            with pytest.raises(AccessError, match="whole store"):
                view.backup(tmp_path / "new")
        assert sorted(tmp_path.rglob("*")) == before
        memory.backup(tmp_path / "empty")
    with opened(store, tmp_path / "empty") as copy:
        assert len(copy.list()) == 1


@EVERY
def test_a_backup_that_fails_leaves_nothing(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(store, tmp_path / "memory") as memory:
        memory.remember("a heron")
        memory.at(workspace="shop").remember("a fox")
        memory.close()
        before = sorted(tmp_path.iterdir())
        told: list[int] = []

        def fail(done: int) -> None:
            told.append(done)
            if done == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            memory.backup(tmp_path / "copy", progress=fail)
        assert sorted(tmp_path.iterdir()) == before
        assert told == [1, 2]

        def refused(*given: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", refused)
            with pytest.raises((StoreError, InputError), match="No space left"):
                memory.backup(tmp_path / "copy")
        assert sorted(tmp_path.iterdir()) == before


def test_damage_is_copied_and_told(tmp_path: Path) -> None:
    with opened("ledger", tmp_path / "memory") as memory:
        memory.remember("a heron")
        memory.remember("a fox")
    log = tmp_path / "memory" / "sessions" / "default" / "memory.jsonl"
    log.write_text(log.read_text().replace("a fox", "a cat"))

    def run(*words: str) -> Any:
        return CliRunner().invoke(cli, ["backup", *words, "--store", f"ledger:{tmp_path}/memory"])

    done = run(str(tmp_path / "copy"))
    assert done.exit_code == 1
    assert "checksum" in done.stdout
    done = run(str(tmp_path / "again"), "--json")
    assert done.exit_code == 1
    (damage,) = json.loads(done.stdout)["damage"]
    assert str(tmp_path / "again") in damage["where"] or "memory.jsonl" in damage["where"]
    with opened("ledger", tmp_path / "copy") as copy:
        assert [record.content for record in copy.list()] == ["a heron"]


@EVERY
def test_the_command_copies_and_tells(store: str, tmp_path: Path) -> None:
    with opened(store, tmp_path / "memory") as memory:
        memory.remember("a heron")

    def run(*words: str) -> Any:
        return CliRunner().invoke(cli, ["backup", *words, "--store", f"{store}:{tmp_path}/memory"])

    said = run(str(tmp_path / "one"))
    assert (said.exit_code, said.stdout.startswith("Copied ")) == (0, True), said.output
    told = json.loads(run(str(tmp_path / "two"), "--json").stdout)
    assert (told["path"], told["places"], told["damage"]) == (str(tmp_path / "two"), 1, [])
    assert told["size_bytes"] > 0
    again = run(str(tmp_path / "two"))
    assert (again.exit_code, "target: " in again.stderr) == (1, True)
    bound = run(str(tmp_path / "three"), "--workspace", "shop")
    assert (bound.exit_code, "leave out --workspace" in bound.stderr) == (1, True)
    missing = CliRunner().invoke(cli, ["backup", str(tmp_path / "three"), "--store", f"{store}:{tmp_path}/nothing"])
    assert (missing.exit_code, "there is no memory" in missing.stderr) == (1, True)
    assert not (tmp_path / "three").exists()


def test_it_can_be_awaited(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncMemory(tmp_path / "memory") as memory:
            await memory.remember("a heron")
            await memory.backup(tmp_path / "copy")

    asyncio.run(run())
    with Memory(tmp_path / "copy") as copy:
        assert len(copy.list()) == 1


def test_the_copy_of_a_notebook_of_one_file_has_its_settings(tmp_path: Path) -> None:
    notes = tmp_path / "notes.jsonl"
    (tmp_path / "notes.recollect.toml").write_text('preset = "aegis"\nagent = "bob"\n')
    with Memory(f"notebook:{notes}", embedder="none") as memory:
        memory.remember("a heron")
        shown = repr(memory)
    with Memory(open_store(f"notebook:{notes}"), preset="aegis", embedder="none") as whole:  # for nobody in particular
        whole.backup(tmp_path / "copy")
    with Memory(f"notebook:{tmp_path / 'copy' / 'notes.jsonl'}", embedder="none") as copy:
        assert repr(copy) == shown
        assert [record.text for record in copy.list()] == ["a heron"]


@pytest.mark.parametrize("kind", FILES)
def test_an_entry_that_is_written_while_the_log_is_checked_is_none_that_is_missing(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory(located(kind, tmp_path / "memory"), embedder="none") as memory:
        memory.remember("a heron")
        store: Any = memory._view.store
        entries = store.entries

        def overtaken(place: Any, **options: Any) -> Any:
            before = list(entries(place, **options))
            monkeypatch.undo()
            memory.remember("a fox")
            return iter(before)

        (place,) = [place for place in store.places("default") if store.written(place)]
        monkeypatch.setattr(store, "entries", overtaken)
        assert damage_in(store, place) == []
        assert store.entries == entries
