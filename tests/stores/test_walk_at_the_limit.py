"""A random walk at the size limit of a session, and on stores without one: nothing acknowledged is ever lost.

What is drawn never depends on what is stored: how far a process got before it was killed is not the same twice.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from support.stores import FILES

from recollect import Memory, NotFoundError, SizeLimitError

LIMIT = 20_971
"""Of a session of the ledger, in bytes: 0.02 MB."""
COUNTED = ("memory.jsonl", "changes.jsonl", "tombstones.jsonl", "index.json")
KEPT = {"kind": "preference", "importance": 0.9}
"""What never fades, so that compaction takes nothing but what was forgotten."""

sizes = st.sampled_from((20, 300, 900, 3000))


class Walk(RuleBasedStateMachine):
    store = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="recollect-walk-"))
        self.root = self.folder / "memory"
        self.kept: dict[str, str] = {}
        """What was acknowledged and not forgotten."""
        self.forgotten: set[str] = set()
        self.number = 0
        if self.store == "ledger":
            self.root.mkdir()
            config = {"storage": {"max_session_size_mb": 0.02}}
            (self.root / "config.json").write_text(json.dumps(config))
        self.memory = self.open()

    def open(self) -> Memory:
        return Memory(f"{self.store}:{self.root}", preset="ledger", embedder="none")

    @property
    def here(self) -> Memory:
        return self.memory.at(workspace="s")

    def text(self, size: int) -> str:
        self.number += 1
        return f"heron {self.number:06} " + "x" * size

    @initialize(full=st.booleans())
    def fill(self, full: bool) -> None:
        """Half of the walks begin where there is next to no room."""
        if full:
            for size in (*[900] * 20, *[20] * 20):
                self.add(size)

    @rule(size=sizes)
    def add(self, size: int) -> None:
        text = self.text(size)
        try:
            self.kept[self.here.remember(text, **KEPT).id] = text
        except SizeLimitError:
            assert self.store == "ledger"

    @rule(size=sizes, number=st.integers(2, 12))
    def add_many(self, size: int, number: int) -> None:
        texts = [self.text(size) for _ in range(number)]
        try:
            records = self.here.remember_many({"content": text, **KEPT} for text in texts)
            self.kept |= {record.id: record.text for record in records}
        except SizeLimitError:
            assert self.store == "ledger"

    @rule()
    def add_what_can_never_fit(self) -> None:
        if self.store != "ledger":
            return
        with pytest.raises(SizeLimitError):
            self.here.remember(self.text(LIMIT), **KEPT)

    @rule()
    def recall(self) -> None:
        hits = self.here.recall("heron", limit=1000)
        assert {hit.memory.id: hit.memory.text for hit in hits}.items() <= self.kept.items()
        assert bool(hits) == bool(self.kept)

    @rule()
    def query(self) -> None:
        hits = self.here.query({"text": "heron", "limit": 1000})
        assert {hit.memory.id for hit in hits} == {*self.kept}

    @rule(at=st.integers(0, 99))
    def get(self, at: int) -> None:
        for ident in sorted(self.kept)[at : at + 1]:
            assert self.here.get(ident).text == self.kept[ident]

    @rule(oldest=st.booleans(), erase=st.booleans(), number=st.integers(1, 5))
    def delete(self, oldest: bool, erase: bool, number: int) -> None:
        """Always possible: it is how room is made."""
        ids = sorted(self.kept)[:number] if oldest else sorted(self.kept)[-number:]
        if not ids:
            return
        assert self.here.forget(ids, erase=erase).count == len(ids)
        for ident in ids:
            del self.kept[ident]
            self.forgotten.add(ident)
            with pytest.raises(NotFoundError):
                self.here.get(ident)

    @rule()
    def compact(self) -> None:
        self.here.compact()

    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self.memory = self.open()

    @rule(size=sizes, delay=st.integers(0, 12))
    def kill(self, size: int, delay: int) -> None:
        """A process that adds is ended in the middle. The last that it began is there as a whole, or not at all."""
        self.memory.close()
        acknowledged, begun = self.killed([self.text(size) for _ in range(40)], delay / 1000)
        self.memory = self.open()
        stored = {record.id: record.text for record in self.here.list(limit=1000)}
        assert (self.kept | acknowledged).items() <= stored.items()
        more = stored.items() - (self.kept | acknowledged).items()
        assert [text for _, text in more] in ([], [begun])
        self.kept = stored

    def killed(self, texts: list[str], after: float) -> tuple[dict[str, str], str]:
        """What it had acknowledged, and what it was doing."""
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads, of which it uses none
            child = os.fork()
        if not child:
            try:
                self.write(texts, writing)
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            lines = [pipe.readline()]  # it is at work
            time.sleep(after)
            os.kill(child, signal.SIGKILL)
            lines += pipe.readlines()
        os.waitpid(child, 0)
        lines = [line for line in lines if line.endswith("\n")]
        done = dict(line.split(None, 1) for line in lines if not line.startswith("begin "))
        begun = [line.split()[1] for line in lines if line.startswith("begin ")]
        acknowledged = {ident: texts[int(at)] for ident, at in done.items()}
        return acknowledged, texts[int(begun[-1])] if begun else ""

    def write(self, texts: list[str], pipe: int) -> None:
        here = self.open().at(workspace="s")
        for at, text in enumerate(texts):
            os.write(pipe, f"begin {at}\n".encode())
            try:
                os.write(pipe, f"{here.remember(text, **KEPT).id} {at}\n".encode())
            except SizeLimitError:
                continue

    @invariant()
    def nothing_is_lost(self) -> None:
        assert {record.id: record.text for record in self.here.list(limit=1000)} == self.kept

    @invariant()
    def it_never_outgrows_its_limit(self) -> None:
        if self.store == "ledger":
            session = self.root / "sessions" / "s"
            assert sum(path.stat().st_size for name in COUNTED if (path := session / name).exists()) <= LIMIT

    def teardown(self) -> None:
        assert self.here.verify() == []
        self.memory.close()
        shutil.rmtree(self.folder)


@pytest.mark.slow
@pytest.mark.clause("LED-10")
@pytest.mark.parametrize("store", FILES)
def test_a_walk_at_the_limit_loses_nothing_that_was_acknowledged(store: str) -> None:
    walk = type("Walk", (Walk,), {"store": store})
    examples = settings.default.max_examples // 5
    how = settings(max_examples=examples, phases=[Phase.generate])  # no walk with a kill in it is the same twice
    run_state_machine_as_test(walk, settings=how)
