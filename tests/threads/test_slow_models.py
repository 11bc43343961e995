"""A model that takes its time: whoever does not need its answer does not wait for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from support.concepts import Concepts, Floats
from support.stores import DATABASES
from support.watchdog import opened, together, took

SLOW = 3.0


class SlowQuestions(Concepts):
    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    def embed_query(self, text: str) -> Floats:
        self.asked.set()
        time.sleep(SLOW)
        return super().embed_query(text)


def test_what_is_written_while_a_question_is_embedded_does_not_wait(url: str) -> None:
    with opened(url, embedder=(model := SlowQuestions())) as memory:
        shop = memory.at(workspace="shop", account="ann")
        shop.remember("a dog in the shop")
        times: dict[str, float] = {}

        def write() -> None:
            model.asked.wait()
            for tier in ("workspace", "account"):
                begin = time.monotonic()
                record = shop.remember("a heron", kind="preference", tier=tier)  # type: ignore[arg-type]
                shop.revise(record.id, importance=0.9)
                times[tier] = time.monotonic() - begin

        together(lambda: shop.recall("puppy"), write)
        assert max(times.values()) < 1, times


class SlowFor(Concepts):
    """Takes its time over memories that mention a snail."""

    def __init__(self) -> None:
        super().__init__()
        self.busy = threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        if any("snail" in text for text in texts):
            self.busy.set()
            time.sleep(SLOW)
        return super().embed_documents(texts)


def test_vectors_of_one_tenant_do_not_hold_up_a_recall_of_another(store: str, url: str) -> None:
    parts = {"tenant": "own"} if store in DATABASES else {"workspace": "own"}  # plain files have one tenant
    with opened(url, embedder=(model := SlowFor())) as memory:
        mine, theirs = memory.at(**parts), memory.at(**dict.fromkeys(parts, "theirs"))
        mine.remember("a dog")
        assert mine.recall("puppy")
        theirs.remember("a snail")
        assert model.busy.wait(5)
        times = [took(lambda question=question: mine.recall(question)) for question in ("puppy", "hound")]
        assert max(times) < 1.5, times
        assert took(lambda: mine.remember("another dog")) < 1.5
        assert took(lambda: theirs.remember("a slug")) < 1.5, "vectors are made outside of any lock of the store"
