"""What the tests of ledger and notebook share: where their files are, and what must hold after a crash."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from recollect import Memory

CHILD = Path(__file__).with_name("jsonl_child.py")
PRESETS = {"ledger": "ledger", "notebook": "aegis"}
KINDS = tuple(PRESETS)


class Kept(NamedTuple):
    """A store of one kind in a folder of its own."""

    kind: str
    root: Path

    @property
    def url(self) -> str:
        return f"{self.kind}:{self.root}"

    @property
    def preset(self) -> str:
        return PRESETS[self.kind]

    @property
    def memories(self) -> Path:
        return self.root / ("sessions/default/memory.jsonl" if self.kind == "ledger" else "memories.jsonl")

    @property
    def aside(self) -> Path:
        """Where everything but the memories is."""
        return self.root / ("sessions/default" if self.kind == "ledger" else ".memories")

    def open(self) -> Memory:
        return Memory(self.url, preset=self.preset)

    def contents(self) -> list[Any]:
        """What somebody who comes now finds, oldest first."""
        with self.open() as memory:
            return [record.content for record in memory.list(newest_first=False, limit=10_000)]

    def hurry(self, **concurrency: int) -> None:
        """Set how long to wait for others and for the disk."""
        assert self.kind == "ledger"
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "config.json").write_text(json.dumps({"concurrency": concurrency}))


@contextmanager
def quick_folder() -> Iterator[Path]:
    """In memory where that is possible: a kill is as deadly there, and nobody waits for a disk."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="recollect-", dir=shared) as folder:
        yield Path(folder)


State = dict[str, tuple[Any, str]]
"""Content and state of each memory."""


def seen(files: Kept) -> State:
    with files.open() as memory:
        return state_of(memory)


def state_of(memory: Memory) -> State:
    now = memory._view.now()
    return {record.id: (record.content, record.state(now)) for record in memory.list(state=None, limit=10_000)}


NEVER = 1_000_000
"""As the call at which a child dies: it makes fewer."""


class Server:
    """Starts children that die, and tells what they had said."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.calls = 0
        """How many calls the last child made at which it could have died."""

    def run(self, files: Kept, ops: list[str], **job: Any) -> tuple[list[dict[str, Any]], bool]:
        """What a child said, and whether it died before it was done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        whole = {"url": files.url, "preset": files.preset, "ops": ops, "seed": 0, **job}
        self._process.stdin.write(json.dumps(whole) + "\n")
        lines: list[dict[str, Any]] = []
        while "end" not in (line := json.loads(self._process.stdout.readline())):
            assert "problem" not in line, line["problem"]
            if "calls" in line:
                self.calls = line["calls"]
            else:
                lines.append(line)
        assert line["end"] in (0, signal.SIGKILL)
        return lines, line["end"] != 0

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(30) == 0


class Model:
    """What must be there, by what was acknowledged. What was begun last may be done as a whole, or not at all."""

    def __init__(self, state: State | None = None) -> None:
        self.state: State = dict(state or {})
        self.gone: set[str] = set()
        """Texts that were deleted."""
        self._buried: set[str] = set()

    def follow(self, lines: list[dict[str, Any]], state: State) -> None:
        """Compare with what was found after a child had said this. From now on that must stay."""
        intent: dict[str, Any] | None = None
        for line in lines:
            if "intent" in line:
                intent = line
            else:
                assert intent is not None
                self.state = self._after(
                    intent, dict(zip(line["done"], intent["add"], strict=True)) if "add" in intent else {}
                )
                intent = None
        if state != self.state and intent is not None:
            new = {ident: content for ident, (content, _) in state.items() if ident not in self.state}
            assert sorted(new.values()) == sorted(intent.get("add", [])), f"part of {intent}"
            if intent["intent"] == "prune" and state.keys() >= set(intent["gone"]):
                intent = {**intent, "gone": []}  # the quota is kept after the memory is stored
            self.state = self._after(intent, new)
        assert state.items() ^ self.state.items() == set(), f"found {state.items() - self.state.items()}, {intent}"

    def _after(self, intent: dict[str, Any], added: dict[str, Any]) -> State:
        after = {ident: entry for ident, entry in self.state.items() if ident not in intent.get("gone", ())}
        self.gone |= {self.state[ident][0] for ident in intent.get("gone", ())}
        self._buried |= {*intent.get("gone", ())}
        assert not self._buried & added.keys(), "an id was given again"
        for ident, state in intent.get("become", {}).items():
            after[ident] = (after[ident][0], state)
        return after | {ident: (content, "live") for ident, content in added.items()}


def assert_sound(folder: Kept, model: Model | None = None) -> None:
    """Nothing is damaged; and after compaction nothing is left of what was deleted, or of who was killed."""
    with folder.open() as memory:
        health = memory.doctor()
        assert health.ok, health
        assert all(log.ok for log in memory.audit.verify())
        if model is None:
            return
        assert [ident for ident in model.state if not memory.audit.search(about=ident, limit=1)] == []
        memory.compact()
        assert state_of(memory) == model.state
        assert memory.doctor().ok
    files = [path for path in folder.root.parent.rglob("*") if path.is_file()]
    places = (folder.memories.parent, folder.aside)
    assert [path for path in files if path.suffix == ".tmp" and path.parent in places] == []
    data = b"".join(path.read_bytes() for path in files if path.name != "audit.jsonl")
    assert [text for text in model.gone if text.encode() in data] == []


def copied(template: Kept, root: Path) -> Kept:
    shutil.rmtree(root, ignore_errors=True)
    if template.root.exists():
        shutil.copytree(template.root, root)
    return Kept(template.kind, root)
