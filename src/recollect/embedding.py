"""Vectors that follow the memories: made in the background, in batches, and before a recall that would miss them.

A memory is durable without its vector. Whatever a crash, a missing model or a changed one leaves without, is found by
looking at which memories have no vector of the current model.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from recollect.errors import RecollectError
from recollect.record import Address
from recollect.stores.base import JournaledStore, Place

if TYPE_CHECKING:
    from recollect.embedders.base import Embedder

_BATCH = 32
_PATIENCE = 30.0
"""Seconds before a model that failed is tried again."""
FIRST, EVERY, RUN = 60.0, 1800.0, 50
"""Backfill of whatever nobody asked for: seconds until the first run, between runs, and memories a run."""

log = logging.getLogger("recollect.embedding")


class Embedding:
    """One embedder at work on one store. `opening` is called when it is first needed; None means: text only."""

    def __init__(
        self,
        store: JournaledStore,
        opening: Callable[[], Embedder | None],
        *,
        first: float = FIRST,
        every: float = EVERY,
    ) -> None:
        self._store = store
        self._opening = opening
        self._first, self._every = first, every
        self._embedder: Embedder | None = None
        self._opened = False
        self._failed_at = -_PATIENCE
        self._working = threading.Lock()
        self._wake = threading.Condition()
        self._waiting: dict[Place, None] = {}
        self._known: dict[Place, None] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def embedder(self) -> Embedder | None:
        """None while there is no model, or while it has just failed."""
        if not self._opened:
            with self._working:
                if not self._opened:
                    self._embedder = self._opening()
                    self._opened = True
        return None if time.monotonic() - self._failed_at < _PATIENCE else self._embedder

    def nudge(self, place: Place) -> None:
        """There may be new memories; embed them in the background."""
        if place.workspace is None:
            return  # what accounts share is never embedded
        with self._wake:
            if self._closed:
                return
            self._waiting[place] = self._known[place] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="recollect-embedding", daemon=True)
                self._thread.start()
            self._wake.notify()

    def _work(self) -> None:
        due = time.monotonic() + self._first
        while True:
            with self._wake:
                while not self._waiting and not self._closed and time.monotonic() < due:
                    self._wake.wait(max(due - time.monotonic(), 0.0))
                if self._closed:
                    return
                places, self._waiting = list(self._waiting), {}
                known = list(self._known)
            for place in places:
                while not self._closed and self._batch(place, _BATCH):
                    pass
            if time.monotonic() >= due:
                due = time.monotonic() + self._every
                for place in known:
                    self.backfill(place)

    def backfill(self, place: Place, limit: int = RUN) -> int:
        """Embed some of the memories that have no vector of the current model. Silent where there is no model."""
        done = 0
        while done < limit and (made := self._batch(place, min(_BATCH, limit - done))):
            done += made
        return done

    def catch_up(self, place: Place, seconds: float) -> None:
        """Before a recall: embed what is missing there, for at most about so long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._batch(place, _BATCH):
            pass

    def _batch(self, place: Place, most: int) -> int:
        """How many memories were given a vector."""
        embedder = self.embedder
        if embedder is None or place.workspace is None:
            return 0
        with self._working:
            try:
                return self._embed(embedder, place, self._missing(embedder, place, most))
            except RecollectError as error:
                self._failed_at = time.monotonic()
                log.warning("vectors are behind", extra={"metadata": {"problem": str(error)}})
                return 0

    def _missing(self, embedder: Embedder, place: Place, most: int) -> list[str]:
        with self._store.corpus(place, embedder.model) as corpus:
            return corpus.columns.missing(embedder.dimensions, most)

    def _embed(self, embedder: Embedder, place: Place, ids: Sequence[str]) -> int:
        view = Address(*place)
        texts = {record.id: record.text for record in self._store.get(ids, view)}
        if not texts:
            return 0
        made = dict(zip(texts, embedder.embed_documents(list(texts.values())), strict=True))
        with self._store.transaction(place):
            there = self._store.get(list(texts), view)
            self._store.update(
                [
                    replace(record, embedding=made[record.id].astype("<f4").tobytes(), embedding_model=embedder.model)
                    for record in there
                ]
            )
        return len(there)

    def close(self) -> None:
        """Stop after the batch at hand. What is left is embedded another time."""
        with self._wake:
            self._closed = True
            self._wake.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None
        self._closed = False
        if self._embedder is not None:
            self._embedder.close()
