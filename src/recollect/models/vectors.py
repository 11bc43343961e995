"""Vectors that follow the memories: made in the background, in batches, and before a recall that would miss them.

A memory is durable without its vector. Whatever a crash, a missing model or a changed one leaves without, is found by
looking at which memories have no vector of the current model.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from recollect.models.backlog import Backlog
from recollect.models.thread_pool import ThreadPool
from recollect.runtime import forking
from recollect.stores.port import Administered, Place, Store
from recollect.values.errors import AccessError, ModelError, StoreError

if TYPE_CHECKING:
    from recollect.models.embedders.base import Embedder, Floats

_BATCH, _LARGEST_BATCH = 32, 1024
_QUICK, _SLOW = 0.1, 0.5
"""Seconds of a batch below which the next one is twice as large, and from which it is half as large."""
_STUCK = 5.0
_ASKED = 256
"""How many queries have their vectors cached, because queries are often repeated."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 5.0, 300.0
"""Seconds for which a model that failed is left alone: twice as many after each failure."""
_SOON = 32
"""A recall waits for so many vectors; it would wait for more in vain."""
_FEW = 4
"""A batch while questions are asked: small, so that they need not wait for it."""
_QUIET = 0.5
"""Seconds without a question after which all of the machine is for vectors."""
_YIELD = 0.2
"""Seconds for which a batch gives way to questions."""
_ALL = 1_000_000_000
_RECOUNT = 20.0
"""Whoever waits for all counts what is missing no more often than this many times as long as counting takes."""
_LAST_WRITE = 1.0
"""Seconds that closing waits for vectors that are being written."""
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
        self.embedder = embedder
        self._bounded = ThreadPool()
        self._problem = ""
        """Why the model is left alone, while it is."""
        self._pause = _SHORTEST_PAUSE
        self._retry_at = 0.0
        self._probing = False
        self._without: dict[Place, set[str]] = {}
        """Memories that the model has no usable vector for."""
        self._unserved: dict[Place, None] = {}
        """Where vectors are missing because it failed."""
        self._last_question = -_QUIET
        self._asked: dict[str, Floats] = {}
        self._stuck: dict[Place, float] = {}
        """Where vectors could not be written, and until when that is not tried again for a recall."""
        self._portions: dict[Place, int] = {}
        """Where no more than so many are to be made now."""
        self._tenants: dict[str, None] = {}
        """Of which something was stored or asked here."""
        self._made: dict[Place, int] = {}
        """How many vectors were written."""
        self._size = _BATCH
        """Of a batch. It grows while the embedder is quick: each look for what comes next costs as much."""
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
        """The worker thread stays in the parent process, and may have held a lock there: start anew."""
        self._probing = False
        self._begin_anew(Backlog(self._backlog.places))

    @property
    def model(self) -> str:
        return self.embedder.model

    # Questions

    def query(self, text: str, seconds: float) -> Floats:
        """The vector of a question, or ModelError if there is none within that time.

        After a failure the model is asked in the background, and nobody waits for it until it has answered.
        """
        self._last_question = time.monotonic()
        if problem := self._problem:
            self._probe(text)
            raise ModelError(problem)
        vector = self._asked.get(text)
        if vector is None:
            try:
                vector = self._bounded.ask(lambda: self._answered(text), seconds)
            except ModelError as error:
                raise ModelError(self._fail(error, logging.WARNING)) from error
            finally:
                self._last_question = time.monotonic()
                self._backlog.stir()
        return vector

    def _answered(self, text: str) -> Floats:
        try:
            vector = _checked([self.embedder.embed_query(text)], 1, self.embedder.dimensions)[0]
        except ModelError:
            raise
        except BaseException as error:  # an embedder may be anybody's
            raise ModelError(f"{type(error).__name__}: {error}") from error
        if not _finite(vector[None])[0]:
            raise ModelError("the model gave a vector with NaN or infinity")
        self._asked[text] = vector
        while len(self._asked) > _ASKED:
            self._asked.pop(next(iter(self._asked), ""), None)
        self._recover()  # even if the caller has stopped waiting
        return vector

    def _probe(self, text: str) -> None:
        if self._probing or time.monotonic() < self._retry_at:
            return
        self._probing = True

        def probe() -> None:
            try:
                self._answered(text)
            except ModelError as error:
                self._fail(error)
            finally:
                self._probing = False

        try:
            self._bounded.begin(probe)
        except ModelError:
            self._probing = False

    def _fail(self, error: BaseException, level: int = logging.INFO) -> str:
        """Leave the model alone for a while. Returns why."""
        reason = str(error) if isinstance(error, ModelError) else f"{type(error).__name__}: {error}"
        problem = f"{self.embedder.model}: {reason}"
        now = time.monotonic()
        if now >= self._retry_at:  # of many failures at once one counts
            self._retry_at = now + self._pause
            self._pause = min(2.0 * self._pause, _LONGEST_PAUSE)
        self._problem = problem
        log.log(level, "no vectors for now: %s", problem)
        return problem

    def _recover(self) -> None:
        if self._problem:
            self._problem, self._pause, self._retry_at = "", _SHORTEST_PAUSE, 0.0
            while self._unserved:
                self.nudge(self._unserved.popitem()[0])

    # Memories

    def nudge(self, place: Place) -> None:
        """There may be new memories; embed them in the background."""
        if place.workspace is None:
            return  # what accounts share is never embedded
        self._tenants[place.tenant] = None
        self._portions.pop(place, None)
        self._backlog.add(place)
        self._start()

    def catch_up(self, place: Place, lacking: int, seconds: float) -> bool:
        """For a recall that has found memories without vectors: have them embedded next, and wait so long for a few.

        Returns whether there may be vectors now that were not there before. `lacking` is from a search that counted
        up to `countable(place)`.
        """
        if place.workspace is None or self._problem:
            return False
        self._tenants[place.tenant] = None
        if time.monotonic() < self._stuck.get(place, 0.0):
            return False  # somebody else writes there, and nobody should wait for that
        lacking -= len(self._without.get(place, ()))
        if lacking <= 0:
            return False
        self._start()
        self._backlog.wait_for(place, seconds if lacking <= _SOON else 0.0)
        return lacking <= _SOON and seconds > 0.0

    def countable(self, places: Iterable[Place]) -> int:
        """How many memories without vectors a search has to count: more than a recall waits for are too many."""
        return _SOON + 1 + max((len(self._without.get(place, ())) for place in places), default=0)

    def missing(self, place: Place) -> int:
        """How many memories have no vector there."""
        return len(self._lacking(place, self.embedder.dimensions, _ALL))

    def _lacking(self, place: Place, dimensions: int, most: int) -> list[str]:
        """Without those that the model could make nothing of."""
        without = self._without.get(place, set())
        ids = self._store.lacking(place, self.embedder.model, dimensions, most + len(without))
        return [ident for ident in ids if ident not in without][:most]

    def finish(self, place: Place, tell: Callable[[int], object]) -> int:
        """Wait until nothing is missing there. How many were made; ModelError if the model fails."""
        missing = first = self.missing(place)
        counted_at, again = self._made.get(place, 0), time.monotonic()
        while missing:
            self._start()
            self._backlog.wait_for(place, 0.25)
            if self._problem:
                raise ModelError(self._problem)
            made = self._made.get(place, 0) - counted_at
            tell(max(first - missing + made, 0))
            if made >= missing or time.monotonic() >= again:  # others may store memories or make vectors, too
                started = time.monotonic()
                missing, counted_at = self.missing(place), self._made.get(place, 0)
                again = time.monotonic() + _RECOUNT * (time.monotonic() - started)
                tell(max(first - missing, 0))
        if without := len(self._without.get(place, ())):
            raise ModelError(f"{self.embedder.model}: the model gave NaN or infinity for {without:,} memories")
        return first

    def some(self, place: Place, most: int, seconds: float) -> int:
        """Have so many made there and no more, unless that time is over. Returns how many; silent without a model."""
        before, until = self._made.get(place, 0), time.monotonic() + seconds
        self._portions[place] = most
        try:
            while self._may_go_on(place, before + most) and time.monotonic() < until:
                self._start()
                self._backlog.wait_for(place, 0.05)
        finally:
            self._portions.pop(place, None)
        return self._made.get(place, 0) - before

    def _may_go_on(self, place: Place, most: int) -> bool:
        if self._problem or self._made.get(place, 0) >= most:
            return False
        return bool(self._lacking(place, self.embedder.dimensions, 1))

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            with self._starting:
                if self._thread is None or not self._thread.is_alive():
                    args = (weakref.ref(self), self._backlog)
                    thread = threading.Thread(target=_work, args=args, name="recollect-embedding", daemon=True)
                    # A memory that is stored is stored, whether or not there is a thread for its vector.
                    with suppress(RuntimeError):
                        thread.start()
                        self._thread = thread

    def serve(self, place: Place, backlog: Backlog) -> None:
        """A batch."""
        made, most = 0, self._size
        portion = self._portions.get(place)
        if time.monotonic() - self._last_question < _QUIET:
            most = _FEW
            backlog.give_way(lambda: not self._bounded.busy, _YIELD)
        if portion is not None:
            most = min(most, portion)
        try:
            made = self._batch(place, most, backlog) if most else 0
        finally:
            if portion is not None and place in self._portions:
                self._portions[place] = portion - made
            # The caller asks for one batch after the other.
            backlog.served(place, more=made == most and portion is None)

    def backfill(self, backlog: Backlog) -> Iterator[int]:
        """Embed some of the memories that have no vector of the current model, place by place, wherever they are.

        Silent where there is no model.
        """
        left = _RUN
        for place in self._places():
            while left and (made := self._batch(place, min(_BATCH, left), backlog)):
                left -= made
                yield made
            if not left or self._problem:
                return

    def retry(self) -> float:
        """Have what a failure left served, if it is time for that, and say when it will be."""
        if self._unserved and time.monotonic() >= self._retry_at:
            while self._unserved:
                self.nudge(self._unserved.popitem()[0])
        return self._retry_at if self._unserved else math.inf

    def _places(self) -> Iterator[Place]:
        try:
            tenants = self._store.tenants() if isinstance(self._store, Administered) else list(self._tenants)
            for tenant in tenants:
                yield from self._store.places(tenant)
        except AccessError:  # a role that may not know who there is: those that were met here
            for tenant in list(self._tenants):
                yield from self._store.places(tenant)
        except StoreError as error:
            log.debug("backfill put off", extra={"metadata": {"problem": str(error)}})

    def _batch(self, place: Place, most: int, backlog: Backlog) -> int:
        """How many memories were given a vector."""
        if place.workspace is None:
            return 0
        if self._problem and time.monotonic() < self._retry_at:
            self._unserved[place] = None
            return 0
        embedder = self.embedder
        try:
            started = time.monotonic()
            vectors = self._vectors(embedder, place, self._lacking(place, embedder.dimensions, most))
            with backlog.keeping:
                if backlog.closed or not vectors:
                    return 0
                self._store.embed(place, embedder.model, vectors)
            self._made[place] = self._made.get(place, 0) + len(vectors)
            self._recover()
            self._resize(len(vectors), time.monotonic() - started)
            return len(vectors)
        except StoreError as error:
            self._stuck[place] = time.monotonic() + _STUCK
            log.debug("vectors not kept", extra={"metadata": {"problem": str(error)}})
        except BaseException as error:  # a user's embedder may raise anything, and nobody catches it in this thread
            self._unserved[place] = None
            self._fail(error)
        return 0

    def _vectors(self, embedder: Embedder, place: Place, ids: Sequence[str]) -> dict[str, bytes]:
        texts = {record.id: record.text for record in self._store.get(place, ids)} if ids else {}
        if not texts:
            return {}
        rows = _checked(embedder.embed_documents(list(texts.values())), len(texts), embedder.dimensions)
        made, usable = dict(zip(texts, rows.astype("<f4"), strict=True)), _finite(rows)
        if odd := {ident for ident, is_usable in zip(texts, usable, strict=True) if not is_usable}:
            self._without.setdefault(place, set()).update(odd)
            log.warning("no vector for %d memories: the model gave NaN or infinity", len(odd))
        return {ident: row.tobytes() for ident, row in made.items() if ident not in odd}

    def _resize(self, made: int, seconds: float) -> None:
        if seconds >= _SLOW:
            self._size = max(self._size // 2, _BATCH)
        elif seconds < _QUICK and made == self._size:
            self._size = min(self._size * 2, _LARGEST_BATCH)

    def close(self) -> None:
        """Stop without waiting for the model. Memories without a vector get one when the store is opened next."""
        self._backlog.close()
        if self._backlog.keeping.acquire(timeout=_LAST_WRITE):  # from now on nothing is written any more
            self._backlog.keeping.release()
        self._begin_anew(Backlog())
        try:
            self.embedder.close()
        except Exception as error:  # the memories are safe, and their files are still to be closed
            log.warning("the embedder could not be closed: %r", error)


def _checked(rows: Any, count: int, dimensions: int) -> Floats:
    """Check the number and the size of vectors: wrong ones would be made again and again."""
    import numpy as np

    try:
        made: Floats = np.asarray(rows, np.float32)
    except (TypeError, ValueError) as error:
        raise ModelError(f"the model gave something else than vectors ({error})") from None
    if made.shape != (count, dimensions):
        raise ModelError(f"the model gave {made.shape} for {(count, dimensions)}")
    return made


def _finite(rows: Floats) -> list[bool]:
    import numpy as np

    return [bool(row.all()) for row in np.isfinite(rows)]


def _work(owner: weakref.ref[Embedding], backlog: Backlog) -> None:
    """The worker. It holds its owner only while it works for it."""
    due, again = time.monotonic() + _FIRST, math.inf
    run: Iterator[int] | None = None
    while True:
        place = backlog.take(0.0 if run else min(due, again))
        embedding = owner()
        if backlog.closed or embedding is None:
            return
        if place is not None:
            embedding.serve(place, backlog)
        elif run is not None:
            run = run if next(run, 0) else None
        elif time.monotonic() >= due:
            due = time.monotonic() + _EVERY
            run = embedding.backfill(backlog)
        again = embedding.retry()
        del embedding
