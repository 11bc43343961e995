"""The ledger: a folder of sessions, each an append-only log of memories."""

from __future__ import annotations

import os

from recollect.stores.base import Place
from recollect.stores.jsonl import config, files
from recollect.stores.jsonl.folder import JsonlFolder, folders, holds_something
from recollect.stores.jsonl.formats import LedgerFormat
from recollect.stores.jsonl.searching import SearchedBook


class Ledger(JsonlFolder):
    """`sessions/<workspace>/memory.jsonl` and what belongs to it. What accounts share is in `account/`."""

    _config: config.Config | None = None

    @property
    def config(self) -> config.Config:
        if self._config is None:
            self._config = config.load(os.path.join(self.root, "config.json"))
        return self._config

    def _tenant(self, tenant: str) -> str:
        return self.root if tenant == "default" else os.path.join(self.root, "tenants", tenant)

    def path(self, place: Place) -> str:
        tenant = self._tenant(place.tenant)
        if place.workspace is None:
            return os.path.join(tenant, "account")
        return os.path.join(tenant, "sessions", place.workspace)

    def make(self, place: Place) -> SearchedBook:
        folder = self.path(place)
        format = LedgerFormat()
        return SearchedBook(folder, os.path.join(folder, format.file), place, format, self.config)

    def starting(self) -> None:
        path = os.path.join(self.root, "config.json")
        if not os.path.exists(path):
            files.make_folder(self.root)
            files.replace(path, config.shown(self.config))

    def tenants(self) -> list[str]:
        others = folders(os.path.join(self.root, "tenants"))
        return [name for name in ("default", *others) if self._used(name)]

    def _used(self, tenant: str) -> bool:
        return bool(self.workspaces(tenant)) or self._holds(Place(tenant, None))

    def workspaces(self, tenant: str) -> list[str]:
        names = folders(os.path.join(self._tenant(tenant), "sessions"))
        return [name for name in names if self._holds(Place(tenant, name))]

    def _holds(self, place: Place) -> bool:
        return holds_something(self.path(place), ("memory.jsonl", "audit.jsonl", "metadata.json"))
