"""Closing does not wait for a model, and what has no vector yet gets it from whoever comes next."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.concepts import Concepts
from support.stores import STORES, located

from recollect import Memory


class Stopped(Concepts):
    """Makes vectors only when it is let go on."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may_go_on = threading.Event(), threading.Event()

    def embed_documents(self, texts: Sequence[str]):  # type: ignore[no-untyped-def]
        self.asked.set()
        self.may_go_on.wait(30)
        return super().embed_documents(texts)


@pytest.mark.parametrize("store", STORES)
def test_closing_waits_for_no_vector(tmp_path: Path, store: str) -> None:
    url, slow = located(store, tmp_path / "m"), Stopped()
    memory = Memory(url, embedder=slow)
    ident = memory.remember("the car is red").id
    assert slow.asked.wait(10)
    started = time.monotonic()
    memory.close()
    assert time.monotonic() - started < 1.0
    workers = [thread for thread in threading.enumerate() if thread.name == "recollect-embedding"]
    slow.may_go_on.set()
    for worker in workers:
        worker.join(10)
    with Memory(url, embedder="none") as later:
        assert later.get(ident).embedding is None, "nothing is written after closing"
    with Memory(url, embedder=Concepts()) as later:
        later.embed()
        assert later.get(ident).embedding is not None
