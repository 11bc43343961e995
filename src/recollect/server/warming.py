"""Being ready for the first question.

A store on disk answers from a copy in memory, which is made when it is first asked. For a hundred thousand memories
that takes most of a second, which nobody needs to wait for.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio.to_thread

from recollect.memory import Memory, view_of
from recollect.stores.port import OnDisk, Place
from recollect.stores.shortlist import Ask
from recollect.text.query import TextQuery
from recollect.values.errors import RecollectError
from recollect.values.filters import Filter
from recollect.values.record import Address

_MOST = 8
"""Workspaces that are got ready: the largest, which take longest."""
_SECONDS = 20.0
"""After which no further one is begun."""


class Warming:
    """One thread, from the start of the application until it is done or the application ends."""

    def __init__(self, memory: Memory) -> None:
        self._view = view_of(memory)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recollect-warming", daemon=True)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            # The store is closed after this, and nobody may be reading it then.
            await anyio.to_thread.run_sync(self._thread.join)

    def _run(self) -> None:
        until = time.monotonic() + _SECONDS
        try:
            for place in self._places():
                if self._stop.is_set() or time.monotonic() > until:
                    return
                address = Address(tenant=place.tenant, workspace=place.workspace)
                self._view.store.search(Ask(Filter(address, self._view.now(), state=None), TextQuery()))
        except RecollectError as error:  # which the first question will meet as well, and tell somebody
            logging.getLogger("recollect.server").warning("could not get ready: %s", error)

    def _places(self) -> list[Place]:
        store = self._view.store
        if not isinstance(store, OnDisk):  # others keep no copy
            return []
        places = [place for place in store.places(self._view.address.tenant) if not place.reserved]
        return sorted(places, key=store.size, reverse=True)[:_MOST]
