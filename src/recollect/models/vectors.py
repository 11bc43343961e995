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

from msgspec.structs import replace

from recollect.errors import ModelError, StoreError
from recollect.record import Address, Record
from recollect.stores.port import JournaledStore, Place

if TYPE_CHECKING:
    from recollect.models.embedders.base import Embedder, Floats
    from recollect.stores.columns import Columns

_BATCH = 32
_ASKED = 256
"""Questions whose vectors are kept: the same is often asked again."""
_PATIENCE = 30.0
"""Seconds before a model that failed is tried again."""
FIRST, EVERY, RUN = 60.0, 1800.0, 50
"""Backfill of whatever nobody asked for: seconds until the first run, between runs, and memories a run."""

log = logging.getLogger("recollect.models.vectors")


def embedding_for(store: JournaledStore, wanted: str | Embedder | None) -> Embedding | None:
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
        self._asked: dict[str, Floats] = {}

    @property
    def embedder(self) -> Embedder | None:
        """None while there is no model, or while it has just failed."""
        if not self._opened:
            with self._working:
                if not self._opened:
                    self._embedder = self._opening()
                    self._opened = True
        return None if time.monotonic() - self._failed_at < _PATIENCE else self._embedder

    def query(self, text: str) -> Floats | None:
        """The vector of a question; None where there is no model, or it fails."""
        embedder = self.embedder
        if embedder is None:
            return None
        found = self._asked.get(text)
        if found is None:
            try:
                found = embedder.embed_query(text)
            except ModelError as error:
                self._fail(error)
                return None
            self._asked[text] = found
            while len(self._asked) > _ASKED:
                self._asked.pop(next(iter(self._asked)), None)
        return found

    def _fail(self, error: ModelError) -> None:
        self._failed_at = time.monotonic()
        log.warning("vectors are behind", extra={"metadata": {"problem": str(error)}})

    def nudge(self, place: Place) -> None:
        """There may be new memories; embed them in the background."""
        if place.workspace is None:
            return  # what accounts share is never embedded
        with self._wake:
            if self._closed:
                return
            self._waiting[place] = self._known[place] = None
            if self._thread is None or not self._thread.is_alive():  # a fork leaves it behind
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
            except ModelError as error:
                self._fail(error)
            except StoreError as error:
                log.debug("vectors not kept", extra={"metadata": {"problem": str(error)}})
            return 0

    def _missing(self, embedder: Embedder, place: Place, most: int) -> list[str]:
        with self._store.corpus(place, embedder.model) as corpus:
            columns = corpus.columns
            if columns.vectors is not None and columns.vectors.dimensions != embedder.dimensions:
                self._resize(embedder, place, columns)
            return columns.missing(embedder.dimensions, most)

    def _resize(self, embedder: Embedder, place: Place, columns: Columns) -> None:
        """The same name for a model of another size: of its vectors, those of the new size count."""
        from recollect.stores.columns import Vectors

        vectors = columns.vectors = Vectors(embedder.model, embedder.dimensions, columns.size)
        positions = {ident: at for at, ident in enumerate(columns.ids)}
        for record in self._here(columns.ids, place):
            if record.embedding_model == embedder.model:
                vectors.put(positions[record.id], record.embedding)

    def _here(self, ids: Sequence[str], place: Place) -> list[Record]:
        """Of this place only: what accounts share may have the same ids, and is never embedded."""
        return [record for record in self._store.get(ids, Address(*place)) if Place.of(record) == place]

    def _embed(self, embedder: Embedder, place: Place, ids: Sequence[str]) -> int:
        texts = {record.id: record.text for record in self._here(ids, place)}
        if not texts:
            return 0
        rows = embedder.embed_documents(list(texts.values()))
        if rows.shape != (len(texts), embedder.dimensions):  # kept, they would be missing again at once, for ever
            raise ModelError(f"{embedder.model}: the model gave {rows.shape} for {(len(texts), embedder.dimensions)}")
        made = dict(zip(texts, rows, strict=True))
        with self._store.transaction(place):
            there = self._here(list(texts), place)
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
