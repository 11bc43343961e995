"""Maintenance in the background of a server: due jobs run after its start, and then as the preset says."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterator

from recollect.memory import Memory, view_of
from recollect.stores.port import Administered, Store
from recollect.values.errors import InputError, RecollectError

_FIRST_SECONDS = 10.0
"""Seconds before the first run: a start answers its first questions before it looks for what it missed."""

_log = logging.getLogger("recollect.server")


def workspaces(store: Store, memory: Memory) -> Iterator[Memory]:
    """A view of every workspace of every tenant, in any order, so that several processes seldom meet."""
    if not isinstance(store, Administered):
        raise InputError("store", "this store does not know who its tenants are; name one with --tenant")
    tenants = store.tenants()
    random.shuffle(tenants)
    for tenant in tenants:
        places = [place for place in store.places(tenant) if place.workspace is not None and not place.reserved]
        for place in random.sample(places, len(places)):
            yield memory.at(tenant=tenant, workspace=place.workspace)
        if not places:  # what its accounts share is seen from any workspace
            yield memory.at(tenant=tenant)


class BackgroundMaintenance:
    """One thread while a `with` block runs, unless the preset's `maintenance.background` is off.

    A view that is bound to an agent or account looks after what it sees, any other after all workspaces.
    """

    def __init__(self, memory: Memory, first: float = _FIRST_SECONDS) -> None:
        self._memory, self._first = memory, first
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> BackgroundMaintenance:
        if self._memory.preset.maintenance.background:
            self._thread = threading.Thread(target=self._run, name="recollect-maintenance", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()  # the store is closed after this; what is begun is finished first

    def _run(self) -> None:
        wait = self._first
        while not self._stop.wait(wait):
            self.run_once()
            wait = 60.0 * self._memory.preset.maintenance.watch_minutes

    def run_once(self) -> None:
        """Run the due jobs. An error in one workspace does not stop the others."""
        try:
            for view in self._views():
                if self._stop.is_set():
                    return
                try:
                    view.maintain(stopping=self._stop.is_set)
                except RecollectError as error:
                    address = view.address
                    _log.warning("maintenance of %s/%s failed: %s", address.tenant, address.workspace, error)
        except RecollectError as error:  # the store is away
            _log.warning("maintenance failed: %s", error)
        except Exception:
            _log.exception("maintenance failed")

    def _views(self) -> Iterator[Memory]:
        view = view_of(self._memory)
        if view.whole and isinstance(view.store, Administered):
            return workspaces(view.store, self._memory)
        return iter([self._memory])
