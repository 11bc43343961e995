"""Vectors that follow the memories: made in the background, in batches, and before a recall that would miss them.

A memory is durable without its vector. Whatever a crash, a missing model or a changed one leaves without, is found by
looking at which memories have no vector of the current model.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from recollect import forking
from recollect.errors import ModelError, StoreError
from recollect.models.backlog import Backlog
from recollect.stores.port import Administered, Place, Store

if TYPE_CHECKING:
    from recollect.models.embedders.base import Embedder, Floats

_BATCH = 32
_STUCK = 5.0
_ASKED = 256
"""Questions whose vectors are kept: the same is often asked again."""
_PATIENCE = 30.0
"""Seconds before a model that failed is tried again."""
_FIRST, _EVERY, _RUN = 60.0, 1800.0, 50
"""Backfill of whatever nobody asked for: seconds until the first run, between runs, and memories a run."""

log = logging.getLogger("recollect.models.vectors")


def embedder_for(wanted: str | Embedder | None) -> Embedder | None:
    """What makes vectors; None for words only. Whatever cannot be had is refused here, by name."""
    spec = os.environ.get("RECOLLECT_EMBEDDER", "") if wanted is None else wanted
    if spec == "none":
        return None
    if not isinstance(spec, str):
        return spec
    from recollect.models.embedders import available, open_embedder

    if not spec and available() is None:
        log.info("no model: recall is by words only; `recollect models pull` installs one")
        return None
    return open_embedder(spec or "local")


class Embedding:
    """One embedder at work on one store.

    Only the worker's thread makes vectors of memories. Whoever needs them soon says so and waits as long as it likes.
    """

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._failed_at = -_PATIENCE
        self._asked: dict[str, Floats] = {}
        self._stuck: dict[Place, float] = {}
        """Where vectors could not be written, and until when that is not tried again for a recall."""
        self._tenants: dict[str, None] = {}
        """Of which something was stored or asked here."""
        self._begin_anew(Backlog())
        self._start()
        forking.watch(self)

    def _begin_anew(self, backlog: Backlog) -> None:
        self._starting = threading.Lock()
        self._backlog = backlog
        self._thread: threading.Thread | None = None
        # A memory that nobody holds any more ends its worker.
        weakref.finalize(self, backlog.close).atexit = False

    def after_fork(self) -> None:
        """The worker is the parent's, and may have held a lock."""
        self._begin_anew(Backlog(self._backlog.places))

    @property
    def embedder(self) -> Embedder | None:
        """None while it has just failed."""
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
                self._fail(error, logging.WARNING)
                return None
            self._asked[text] = vector
            while len(self._asked) > _ASKED:
                self._asked.pop(next(iter(self._asked), ""), None)
        return vector

    def _fail(self, error: Exception, level: int = logging.INFO) -> None:
        self._failed_at = time.monotonic()
        log.log(level, "vectors are behind", extra={"metadata": {"problem": f"{type(error).__name__}: {error}"}})

    def nudge(self, place: Place) -> None:
        """There may be new memories; embed them in the background."""
        if place.workspace is None:
            return  # what accounts share is never embedded
        self._tenants[place.tenant] = None
        self._backlog.add(place)
        self._start()

    def catch_up(self, place: Place, seconds: float) -> None:
        """Before a recall: have what is missing there embedded next, and wait for that, but no longer."""
        embedder = self.embedder
        if embedder is None or place.workspace is None or seconds <= 0:
            return
        self._tenants[place.tenant] = None
        if time.monotonic() < self._stuck.get(place, 0.0):
            return  # somebody else writes there, and nobody should wait for that
        if self._store.lacking(place, embedder.model, embedder.dimensions, 1):
            self._start()
            self._backlog.wait_for(place, seconds)

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            with self._starting:
                if self._thread is None or not self._thread.is_alive():
                    args = (weakref.ref(self), self._backlog)
                    thread = threading.Thread(target=_work, args=args, name="recollect-embedding", daemon=True)
                    thread.start()
                    self._thread = thread

    def serve(self, place: Place) -> None:
        """A batch."""
        made = 0
        try:
            made = self._batch(place, _BATCH)
        finally:
            self._backlog.served(place, more=made == _BATCH)

    def backfill(self) -> Iterator[int]:
        """Embed some of the memories that have no vector of the current model, place by place, wherever they are.

        Silent where there is no model.
        """
        left = _RUN
        for place in self._places():
            while left and (made := self._batch(place, min(_BATCH, left))):
                left -= made
                yield made
            if not left or self.embedder is None:
                return

    def _places(self) -> Iterator[Place]:
        try:
            tenants = self._store.tenants() if isinstance(self._store, Administered) else list(self._tenants)
            for tenant in tenants:
                yield from self._store.places(tenant)
        except StoreError as error:
            log.debug("backfill put off", extra={"metadata": {"problem": str(error)}})

    def _batch(self, place: Place, most: int) -> int:
        """How many memories were given a vector."""
        embedder = self.embedder
        if embedder is None or place.workspace is None:
            return 0
        try:
            ids = self._store.lacking(place, embedder.model, embedder.dimensions, most)
            return self._embed(embedder, place, ids)
        except StoreError as error:
            self._stuck[place] = time.monotonic() + _STUCK
            log.debug("vectors not kept", extra={"metadata": {"problem": str(error)}})
        except Exception as error:  # an embedder may be anybody's, and nobody is there to catch what it raises
            self._fail(error)
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
        self._backlog.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._begin_anew(Backlog())
        self._embedder.close()


def _work(owner: weakref.ref[Embedding], backlog: Backlog) -> None:
    """The worker. It holds its owner only while it works for it."""
    due = time.monotonic() + _FIRST
    run: Iterator[int] | None = None
    while True:
        place = backlog.take(0.0 if run else due)
        embedding = owner()
        if backlog.closed or embedding is None:
            return
        if place is not None:
            embedding.serve(place)
        elif run is not None:
            run = run if next(run, 0) else None
        elif time.monotonic() >= due:
            due = time.monotonic() + _EVERY
            run = embedding.backfill()
        del embedding
