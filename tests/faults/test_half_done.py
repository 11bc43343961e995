"""A change of several places is there as a whole or not at all, also when its process is killed between two commits."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.stores import STORES, located

from recollect import Memory, RecollectError
from recollect.memory import view_of
from recollect.stores.intents import FOLDER

PAIR = [{"content": "in the workspace"}, {"content": "in the account", "tier": "account"}]


def contents(memory: Memory) -> list[str]:
    return sorted(str(record.content) for record in memory.list(state=None, limit=100))


def pair(memory: Memory) -> Any:
    return memory.remember_many(PAIR)


def forget_pair(memory: Memory) -> Any:
    return memory.forget([record.id for record in memory.list() if str(record.content).startswith("kept")])


def archive_pair(memory: Memory) -> Any:
    return memory.archive([record.id for record in memory.list() if str(record.content).startswith("kept")])


def undo_pair(memory: Memory) -> Any:
    return memory.undo()


CHANGES: dict[str, Callable[[Memory], Any]] = {
    "remember": pair,
    "forget": forget_pair,
    "archive": archive_pair,
    "undo": undo_pair,
}


def killed_at_commit(location: str, change: Callable[[Memory], Any], commit: int) -> bool:
    """Run a change in a child that dies in its commit with that number. False if there are fewer."""
    child = os.fork()
    if child == 0:
        try:
            with Memory(location, embedder="none") as memory:
                _die_at(memory, commit)
                change(memory)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WEXITSTATUS(status) == 9


def _die_at(memory: Memory, commit: int) -> None:
    """In this process: end it just before a file is committed for the second, third … time."""
    seen = 0
    owner = _committing(memory)
    plain: Any = owner.end

    def end(self: Any, error: BaseException | None) -> None:
        nonlocal seen
        seen += error is None
        if seen == commit:
            os._exit(9)
        plain(self, error)

    owner.end = end


def _committing(memory: Memory) -> Any:
    """The class whose objects commit the places of a memory."""
    from recollect.stores.files.index import PlaceIndex
    from recollect.stores.sqlite.place_file import PlaceFile
    from recollect.stores.sqlite.store import SqliteStore

    return PlaceFile if isinstance(memory._view.store, SqliteStore) else PlaceIndex


@pytest.mark.parametrize("commit", [1, 2, 3])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", [kind for kind in STORES if kind != "postgresql"])
def test_killed_between_two_commits_it_is_taken_back_or_done_to_its_end(
    kind: str, change: str, commit: int, tmp_path: Path
) -> None:
    location = located(kind, tmp_path / "memory")
    with Memory(location, embedder="none") as memory:
        memory.remember_many([{"content": "kept here"}, {"content": "kept for the account", "tier": "account"}])
        before = contents(memory)
    with Memory(location, embedder="none") as memory:
        whole = {
            "remember": sorted([*before, "in the workspace", "in the account"]),
            "forget": [],
            "archive": before,
            "undo": [],
        }[change]
    killed = killed_at_commit(location, CHANGES[change], commit)
    assert killed or commit == 3
    with Memory(location, embedder="none") as memory:
        assert contents(memory) in (before, whole)
        states = {record.archived_at is None for record in memory.list(state=None)}
        assert len(states) <= 1, "half of it is archived"
        assert all(log.ok for log in memory.audit.verify())
        assert memory.doctor().ok
        memory.remember_many(PAIR)
        assert {"in the workspace", "in the account"} <= set(contents(memory))
    assert not list(tmp_path.rglob(FOLDER)), "the record is gone"


@pytest.mark.parametrize("kind", [kind for kind in STORES if kind != "postgresql"])
def test_where_the_second_commit_fails_nothing_is_there(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recollect.values.errors import DiskFullError

    with Memory(located(kind, tmp_path / "memory"), embedder="none") as memory:
        memory.remember_many([{"content": "kept here"}, {"content": "kept for the account", "tier": "account"}])
        before = contents(memory)
        seen = 0
        with monkeypatch.context() as patched:
            plain: Any = _committing(memory).end

            def end(self: Any, error: BaseException | None) -> None:
                nonlocal seen
                seen += error is None
                if seen == 2 and error is None:
                    plain(self, DiskFullError("no space left"))
                    raise DiskFullError("no space left")
                plain(self, error)

            patched.setattr(_committing(memory), "end", end)
            with pytest.raises(RecollectError):
                memory.remember_many(PAIR)
        assert contents(memory) == before
        memory.remember_many(PAIR)
        assert len(contents(memory)) == 4
    assert not list(tmp_path.rglob(FOLDER))


@pytest.mark.parametrize("kind", [kind for kind in STORES if kind != "postgresql"])
def test_what_others_have_built_on_stays_and_the_record_goes(kind: str, tmp_path: Path) -> None:
    location = located(kind, tmp_path / "memory")
    with Memory(location, embedder="none") as memory:
        memory.remember_many([{"content": "kept here"}, {"content": "kept for the account", "tier": "account"}])
    assert killed_at_commit(location, pair, 2)
    with Memory(location, embedder="none") as memory:
        store: Any = view_of(memory).store
        store.intents.finish = None  # as one that has not noticed yet
        (half,) = [record for record in memory.list() if str(record.content).startswith("in the")]
        memory.revise(half.id, content="built on")
    with Memory(location, embedder="none") as memory:
        assert "built on" in contents(memory)
        memory.remember("the next call works")
    assert not list(tmp_path.rglob(FOLDER))
