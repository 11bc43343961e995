"""The ledger: a folder of sessions, each an append-only log of memories."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime

from recollect.errors import StoreError
from recollect.record import SCHEMA_VERSION
from recollect.stores.files import config, files, indices
from recollect.stores.files.folder import JsonlFolder, folders, holds_something
from recollect.stores.files.formats import LedgerFormat
from recollect.stores.files.indices import SessionPart
from recollect.stores.files.searching import SearchedBook
from recollect.stores.files.session import COUNTED, Session
from recollect.stores.files.snapshots import METADATA
from recollect.stores.port import Place, Settings
from recollect.stores.sessions import Preferences, SessionCompaction, SessionDecay, SessionMetadata


class Ledger(JsonlFolder):
    """`sessions/<workspace>/memory.jsonl` and what belongs to it. What accounts share is in `account/`."""

    _config: config.Config | None = None
    _started = False

    def __init__(self, root: str | os.PathLike[str]) -> None:
        super().__init__(root)
        self._parts: dict[Place, SessionPart | None] = {}

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

    def make(self, place: Place) -> Session:
        folder = self.path(place)
        format = LedgerFormat(self.config.integrity.enable_checksums)
        return Session(folder, os.path.join(folder, format.file), place, format, self.config, self.meter)

    def _session(self, place: Place) -> Session:
        book = self.book(place)
        assert isinstance(book, Session)
        return book

    def settings(self, place: Place) -> Settings:
        return Settings(decay=self._session(place).decay())

    def crowded(self, place: Place) -> bool:
        return self._session(place).crowded()

    def has_session(self, place: Place) -> bool:
        return self._holds(place)

    def session(self, place: Place) -> SessionMetadata | None:
        book = self._session(place)
        with book.guard:
            book.refresh()
            return book.metadata()

    def create_session(
        self,
        place: Place,
        user_id: str,
        now: datetime,
        decay: SessionDecay,
        compaction: SessionCompaction,
        preferences: Preferences,
    ) -> SessionMetadata:
        with self.transaction(place):
            return self._session(place).create(
                now, user_id=user_id, decay_config=decay, compaction_config=compaction, preferences=preferences
            )

    def close_session(self, place: Place) -> None:
        with self._lock:
            book = self._books.pop(place, None)
        if book is not None:
            with book.guard:
                self._sum_up(book)
                book.put_away()
        self._write_indices()

    def close(self) -> None:
        for book in list(self._books.values()):
            with book.guard:
                self._sum_up(book)
        try:
            super().close()
        finally:
            self._write_indices()

    def compact(self, place: Place) -> int:
        freed = super().compact(place)
        with self.reading(place) as book:
            self._sum_up(book)
        self._write_indices()
        return freed

    def dropped(self, place: Place) -> None:
        self._parts[place] = None
        self._write_indices()

    def _sum_up(self, book: SearchedBook) -> None:
        if isinstance(book, Session) and book.place.workspace is not None and (part := book.part()):
            self._parts[book.place] = part

    def _write_indices(self) -> None:
        """Of what changed. If they cannot be written they are behind, and not trusted."""
        parts, self._parts = self._parts, {}
        for tenant in {place.tenant for place in parts}:
            changed = {str(place.workspace): part for place, part in parts.items() if place.tenant == tenant}
            with suppress(OSError, StoreError):
                indices.update(self._tenant(tenant), changed)

    def metrics(self, tenant: str) -> dict[str, float]:
        found = self.meter.read()
        sessions = [self.session(Place(tenant, name)) for name in self.workspaces(tenant)]
        found["memory.sessions.active"] = sum(place.workspace is not None for place in self._books)
        found["memory.entries.total"] = sum(one.total_entries for one in sessions if one)
        found["memory.size.bytes"] = sum(one.total_size_bytes for one in sessions if one)
        return found

    def rebuild(self, place: Place) -> int:
        with self.transaction(place):
            return self._session(place).rebuild()

    def migrate(self, place: Place) -> bool:
        book = self._session(place)
        with book.guard:
            book.refresh()
            old = book.state.oldest_schema < SCHEMA_VERSION
        if old:
            with self.transaction(place):
                pass  # whoever writes to an old session brings it up to date first
        return old

    def deleted(self, place: Place) -> int:
        with self.reading(place) as book:
            return len(book.state.tombs.keys() - book.state.rows.keys())

    def without_tag(self, tenant: str, tag: str) -> set[str]:
        sizes = {
            name: {file: files.identity(os.path.join(folder, file)).size for file in COUNTED}
            for name in folders(os.path.join(self._tenant(tenant), "sessions"))
            if (folder := self.path(Place(tenant, name)))
        }
        return indices.without(self._tenant(tenant), tag, sizes)

    def starting(self) -> None:
        if self._started:
            return
        self._started = True
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
        folder = self.path(place)
        return holds_something(*(os.path.join(folder, name) for name in ("memory.jsonl", "audit.jsonl", METADATA)))
