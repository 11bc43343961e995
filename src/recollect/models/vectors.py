"""Vectors that follow the memories: made in the background, in batches, and before a recall that would miss them.

A memory is durable without its vector. Whatever a crash, a missing model or a changed one leaves without, is found by
looking at which memories have no vector of the current model.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from recollect import forking
from recollect.errors import ModelError, StoreError
from recollect.stores.port import Place, Store

if TYPE_CHECKING:
    from recollect.models.embedders.base import Embedder, Floats

_BATCH = 32
_STUCK = 5.0
_LINGER = 0.05
"""Seconds that the worker waits for more, unless somebody waits for it."""
_ASKED = 256
"""Questions whose vectors are kept: the same is often asked again."""
_PATIENCE = 30.0
"""Seconds before a model that failed is tried again."""
FIRST, EVERY, RUN = 60.0, 1800.0, 50
"""Backfill of whatever nobody asked for: seconds until the first run, between runs, and memories a run."""

log = logging.getLogger("recollect.models.vectors")


def embedding_for(store: Store, wanted: str | Embedder | None) -> Embedding | None:
    """What makes vectors for a store; None for words only."""
    spec = os.environ.get("RECOLLECT_EMBEDDER", "") if wanted is None else wanted
    if spec == "none":
        return None
    if isinstance(spec, str):
        from recollect.models.embedders import available, open_embedder

        if not spec:
            if available() is None:
                log.info("no model: recall is by words only; `recollect models pull` installs one")
                return None
            spec = "local"
        name = spec
        return Embedding(store, lambda: open_embedder(name))
    return Embedding(store, lambda: spec)


class Embedding:
    """One embedder at work on one store. `opening` is called when it is first needed; None means: text only.

    Only the worker's thread makes vectors of memories. Whoever needs them soon says so and waits as long as it likes.
    """

    def __init__(
        self,
        store: Store,
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
        self._queue: dict[Place, None] = {}
        """Where memories may be without a vector, in the order in which they are served."""
        self._known: dict[Place, None] = {}
        self._closed = False
        self._asked: dict[str, Floats] = {}
        self._stuck: dict[Place, float] = {}
        """Where vectors could not be written, and until when that is not tried again for a recall."""
        self._begin_anew()
        forking.watch(self)

    def _begin_anew(self) -> None:
        self._loading = threading.Lock()
        self._wake = threading.Condition()
        self._serving: Place | None = None
        self._waiters = 0
        self._behind = False
        """Whether there is more than one batch to do."""
        self._thread: threading.Thread | None = None

    def after_fork(self) -> None:
        """The worker is the parent's, and may have held a lock."""
        self._begin_anew()

    @property
    def embedder(self) -> Embedder | None:
        """None while there is no model, or while it has just failed."""
        if not self._opened:
            with self._loading:
                if not self._opened:
                    self._embedder = self._opening()
                    self._opened = True
        return None if time.monotonic() - self._failed_at < _PATIENCE else self._embedder

    def query(self, text: str) -> Floats | None:
        """The vector of a question; None where there is no model, or it fails."""
        embedder = self.embedder
        if embedder is None:
            return None
        vector = self._asked.get(text)
        if vector is None:
            try:
                vector = embedder.embed_query(text)
            except ModelError as error:
                self._fail(error)
                return None
            self._asked[text] = vector
            while len(self._asked) > _ASKED:
                self._asked.pop(next(iter(self._asked), ""), None)
        return vector

    def _fail(self, error: ModelError) -> None:
        self._failed_at = time.monotonic()
        log.warning("vectors are behind", extra={"metadata": {"problem": str(error)}})

    def nudge(self, place: Place) -> None:
        """There may be new memories; embed them in the background."""
        if place.workspace is None:
            return  # what accounts share is never embedded
        with self._wake:
            if not self._closed:
                self._queue[place] = self._known[place] = None
                self._start()

    def catch_up(self, place: Place, seconds: float) -> None:
        """Before a recall: have what is missing there embedded next, and wait for that, but no longer."""
        embedder = self.embedder
        if embedder is None or place.workspace is None or seconds <= 0:
            return
        if time.monotonic() < self._stuck.get(place, 0.0):
            return  # somebody else writes there, and nobody should wait for that
        if not self._store.lacking(place, embedder.model, embedder.dimensions, 1):
            return
        with self._wake:
            if self._closed:
                return
            self._queue.pop(place, None)
            self._queue = {place: None, **self._queue}
            self._known[place] = None
            self._waiters += 1
            self._start()
            self._wake.wait_for(lambda: place not in self._queue and place != self._serving, seconds)
            self._waiters -= 1

    def _start(self) -> None:
        """Wake the worker. Whoever calls holds its lock."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="recollect-embedding", daemon=True)
            self._thread.start()
        self._wake.notify_all()

    def _work(self) -> None:
        due = time.monotonic() + self._first
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._queue or self._closed, max(due - time.monotonic(), 0.0))
                if self._queue and not self._waiters and not self._behind:
                    # Whoever stores one memory often stores more: they cost less together.
                    self._wake.wait_for(lambda: self._waiters or self._closed, _LINGER)
                if self._closed:
                    return
                self._serving = place = next(iter(self._queue), None)
                if place is not None:
                    del self._queue[place]
            if place is not None:
                self._serve(place)
            elif time.monotonic() >= due:
                due = time.monotonic() + self._every
                for known in list(self._known):
                    self.backfill(known)

    def _serve(self, place: Place) -> None:
        """A batch. If that was not all, the place comes again, behind those for which somebody waits."""
        made = 0
        try:
            made = self._batch(place, _BATCH)
        finally:
            with self._wake:
                self._serving = None
                self._behind = made == _BATCH and not self._closed
                if self._behind:
                    self._queue = {place: None, **self._queue} if self._waiters < 2 else {**self._queue, place: None}
                self._wake.notify_all()

    def backfill(self, place: Place, limit: int = RUN) -> int:
        """Embed some of the memories that have no vector of the current model. Silent where there is no model."""
        done = 0
        while done < limit and (made := self._batch(place, min(_BATCH, limit - done))):
            done += made
        return done

    def _batch(self, place: Place, most: int) -> int:
        """How many memories were given a vector."""
        embedder = self.embedder
        if embedder is None or place.workspace is None:
            return 0
        try:
            ids = self._store.lacking(place, embedder.model, embedder.dimensions, most)
            return self._embed(embedder, place, ids)
        except ModelError as error:
            self._fail(error)
        except StoreError as error:
            self._stuck[place] = time.monotonic() + _STUCK
            log.debug("vectors not kept", extra={"metadata": {"problem": str(error)}})
        return 0

    def _embed(self, embedder: Embedder, place: Place, ids: Sequence[str]) -> int:
        texts = {record.id: record.text for record in self._store.get(place, ids)} if ids else {}
        if not texts:
            return 0
        rows = embedder.embed_documents(list(texts.values()))
        if rows.shape != (len(texts), embedder.dimensions):  # kept, they would be missing again at once, for ever
            raise ModelError(f"{embedder.model}: the model gave {rows.shape} for {(len(texts), embedder.dimensions)}")
        vectors = {ident: row.astype("<f4").tobytes() for ident, row in zip(texts, rows, strict=True)}
        self._store.embed(place, embedder.model, vectors)
        return len(vectors)

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
