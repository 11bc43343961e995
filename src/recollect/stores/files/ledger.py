"""The ledger: a folder of sessions, each an append-only log of memories."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from recollect.stores.files import aside, config, files, indices
from recollect.stores.files.fileset import FileSet
from recollect.stores.files.formats import LedgerFormat
from recollect.stores.files.indices import SessionPart
from recollect.stores.files.log import Log, tell
from recollect.stores.files.metrics import Meter
from recollect.stores.files.session import COUNTED, Session
from recollect.stores.files.snapshots import INDEX, METADATA
from recollect.stores.files.store import FileStore, holds_something
from recollect.stores.paths import check_apart, existing_or_coded, may_hold, names_in, path_exists
from recollect.stores.port import Place, Settings, Shortfall
from recollect.stores.sessions import Preferences, SessionCompaction, SessionDecay, SessionMetadata
from recollect.stores.sqlite.place_file import SOON
from recollect.stores.write_timer import timer
from recollect.values.errors import StoreError
from recollect.values.record import SCHEMA_VERSION, Record

_SHARE = 4
"""A session so large that its index takes long to make is indexed less often: for a fifth of the time at most."""
_REPAIRED_AT_ONCE = 50
"""Sessions that are read to bring the indices of all sessions up to date, before others get their turn."""


_INDEX_TIMEOUT = 2.0
"""Seconds to wait for another process that writes the shared indices: they can be written later."""


class LedgerLayout:
    """`sessions/<workspace>/memory.jsonl` and what belongs to it. What accounts share is in `account/`."""

    def __init__(self, root: str, overrides: Mapping[str, Any] | None = None) -> None:
        self.root = self.own_folder = root
        self._overrides = overrides
        self._config: config.Config | None = None
        self._started = False

    @property
    def config(self) -> config.Config:
        if self._config is None:
            self._config = config.load(os.path.join(self.root, "config.json"), self._overrides)
        return self._config

    def tenant(self, tenant: str) -> str:
        if tenant == "default":
            return self.root
        tenants = os.path.join(self.root, "tenants")
        return os.path.join(tenants, existing_or_coded(tenants, tenant))

    def path(self, place: Place) -> str:
        tenant = self.tenant(place.tenant)
        if place.workspace is None:
            return os.path.join(tenant, "account")
        sessions = os.path.join(tenant, "sessions")
        return os.path.join(sessions, existing_or_coded(sessions, place.workspace))

    def parts(self, place: Place) -> list[str]:
        return [self.path(place)]

    def beside(self, place: Place) -> list[str]:
        return [os.path.join(self.root, "config.json")]

    def make(self, place: Place, meter: Meter) -> Log:
        folder = self.path(place)
        format = LedgerFormat(self.config.integrity.enable_checksums)
        fileset = FileSet(folder, os.path.join(folder, format.file), format.file)
        rules = config.unlimited(self.config) if place.reserved else self.config  # the engine's own is no session
        log = Log(place, fileset, format, rules, meter)
        log.session = Session(log)
        if place.workspace is not None and self.holds(place):
            tell(place, logging.INFO, "session opened")
        return log

    def sizes(self, place: Place) -> dict[str, int]:
        """How long the files are that decide what a session holds."""
        folder = self.path(place)
        return {name: files.identity(os.path.join(folder, name)).size for name in COUNTED}

    def index_size(self, place: Place) -> int:
        return max(files.identity(os.path.join(self.path(place), INDEX)).size, 0)

    def places(self, tenant: str) -> list[Place]:
        names = names_in(os.path.join(self.tenant(tenant), "sessions"))
        places = [*(Place(tenant, name) for name in names), Place(tenant, None)]
        return [place for place in places if may_hold(self.holds, place)]

    def tenants(self) -> list[str]:
        others = names_in(os.path.join(self.root, "tenants"))
        return [name for name in ("default", *others) if self.places(name)]

    def holds(self, place: Place) -> bool:
        folder, names = self.path(place), (LedgerFormat.file, "audit.jsonl", "shelves.jsonl", METADATA)
        return holds_something(*(os.path.join(folder, name) for name in names))

    def starting(self) -> None:
        if self._started:
            return
        self._started = True
        path = os.path.join(self.root, "config.json")
        if not path_exists(path):
            files.make_folder(self.root)
            files.replace(path, config.shown(self.config))

    def check_format(self, place: Place) -> None:
        """`config.json` and each entry have their own numbers, and are refused where they are read."""

    def write_format(self, place: Place) -> None:
        """So nothing is to be written besides."""


class Ledger(FileStore):
    """`Memory(Ledger("./memory", default_decay_half_life=24), preset="ledger")` sets other defaults than usual."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        default_decay_half_life: float | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """`settings` are blocks of `config.json`, and go before what the file says.

        `default_decay_half_life` is in hours. It stands in for types without a half-life of their own: the document
        gives one to conversations, decisions and findings, and `settings` may.
        """
        if default_decay_half_life is not None:
            settings = config.with_half_life(settings, default_decay_half_life)
        self.root = os.path.abspath(root)
        self._ledger = LedgerLayout(self.root, settings)
        if settings:
            _ = self.config  # what is wrong with them is told now
        self._compared_tenants: set[str] = set()
        """Whose index was compared with the files of all sessions."""
        self._interval = 0.0
        """Seconds to wait with the next snapshots, where making the last ones took long."""
        self._start_indexing()
        super().__init__(self._ledger)

    def _start_indexing(self) -> None:
        self._parts_lock = threading.Lock()
        self._indexing = threading.Lock()
        self._parts: dict[Place, SessionPart | None] = {}
        """What the indices of all sessions do not say yet."""

    def after_fork(self) -> None:
        self._start_indexing()
        super().after_fork()

    @property
    def config(self) -> config.Config:
        return self._ledger.config

    def _session(self, place: Place) -> Session:
        session = self.log(place).session
        assert session is not None
        return session

    def settings(self, place: Place) -> Settings:
        return Settings(decay=self._session(place).decay())

    def crowded(self, place: Place) -> bool:
        index = self._handles.get(place)
        return self._session(place).crowded(index.known_sizes() if index is not None else None)

    def size(self, place: Place) -> int:
        return self.log(place).fileset.size(INDEX, METADATA)

    def has_session(self, place: Place) -> bool:
        return self._ledger.holds(place)

    def session(self, place: Place) -> SessionMetadata | None:
        session = self._session(place)
        return self._read(place, session.metadata, None) or session.metadata(None)

    def create_session(
        self,
        place: Place,
        user_id: str,
        now: datetime,
        decay: SessionDecay,
        compaction: SessionCompaction,
        preferences: Preferences,
    ) -> SessionMetadata:
        with self.transaction(place) as index:
            return self._session(place).create(
                index, now, user_id=user_id, decay_config=decay, compaction_config=compaction, preferences=preferences
            )

    def close_session(self, place: Place) -> None:
        log = self._logs.get(place)
        if log is not None:
            self._write_all([place])
            self._take_summary(log)
            if (index := self._handles.get(place)) is not None:
                self.discard(place, index)
            self._logs.pop(place, None)
            _tell_closed(log)
        self._write_indices()

    def close(self) -> None:
        with self.settling:
            logs = dict(self._logs)
            try:
                super().close()
            finally:
                for log in logs.values():
                    self._take_summary(log)
                    _tell_closed(log)
                self._write_indices()

    def elsewhere(self, folder: str) -> Ledger:
        return Ledger(folder)

    def shortfalls(self, place: Place, records: Iterable[Record]) -> list[Shortfall]:
        format, size, changed = LedgerFormat(), 0, 0
        for record in records:
            size += len(format.line(record, 1))
            changed += record.checksum != record.digest()
        shortfalls: list[Shortfall] = []
        limit = None if place.reserved else self.config.limit
        if limit is not None and size > limit:
            shortfalls.append(
                Shortfall(
                    f"takes {size:,} bytes, and a session may have {limit:,}: set storage.max_session_size_mb in "
                    f"{os.path.join(self.root, 'config.json')} to {size * 11 // 10 // 1_048_576 + 1} or more"
                )
            )
        if changed:
            shortfalls.append(
                Shortfall(f"{changed:,} do not match their checksum, and would get a new one", ("checksum",))
            )
        return shortfalls

    def check_apart(self, folder: str) -> None:
        check_apart(folder, self.root)

    def compact(self, place: Place) -> int:
        log, session, started = self.log(place), self._session(place), time.monotonic()
        if not log.fileset.exists():
            return 0
        tell(place, logging.INFO, "session compaction started")
        with self.turn(place, "compact") as index:
            entries = len(index.tombs().keys() | {row.record.id for row in index.known_rows(whole=False)})
            freed = self._compacted(index)  # of the log: the index is counted out, it may be new
            session.compacted(index, entries, freed, started)
        self._read(place, self._shrink_index, None)
        self._take_summary(index.log)
        self._write_indices()
        return freed

    def scrub(self, place: Place, erased: Collection[str] = ()) -> int:
        damaged = super().scrub(place, erased)
        self._write_indices()
        return damaged

    def drop(self, place: Place) -> None:
        existed = path_exists(self._ledger.path(place))
        super().drop(place)
        if existed and place.workspace is not None:
            tell(place, logging.INFO, "session deleted")
            with self._parts_lock:
                self._parts[place] = None
            self._write_indices()

    # Files derived from the logs

    def log(self, place: Place) -> Log:
        is_new = place not in self._logs
        log = super().log(place)
        if is_new and log.session is not None:
            log.session.check_files()
        return log

    def defer(self) -> None:
        timer.schedule(self, max(self.config.performance.batch_write_interval_ms / 1000, self._interval))

    def settle(self) -> bool:
        started = time.thread_time()  # without the time that other writers are waited for
        with self.settling:
            settled = super().settle()
            settled = self._write_indices() and settled
        self._interval = _SHARE * (time.thread_time() - started)
        return settled

    def _settle(self, place: Place, seconds: float = SOON, *, durable: bool = False) -> None:
        super()._settle(place, seconds, durable=durable)
        self._take_summary(self.log(place))

    def _take_summary(self, log: Log) -> None:
        """Have the indices of all sessions say what is new of one."""
        session = log.session
        if session is not None and _is_session(log.place) and session.summary:
            with self._parts_lock:
                self._parts[log.place], session.summary = session.summary, None

    def _write_indices(self) -> bool:
        """Of what changed. If they cannot be written they are behind, and not trusted; False then."""
        with self._indexing:
            with self._parts_lock:
                tenants = {place.tenant for place in self._parts}
            written = [self._write_index(tenant) for tenant in tenants]
        return all(written)

    def _write_index(self, tenant: str) -> bool:
        root, layout = self._ledger.tenant(tenant), self._ledger
        try:
            self._find_changed(tenant)
            with self._parts_lock:
                parts = {place: self._parts.pop(place) for place in list(self._parts) if place.tenant == tenant}
            changed = {str(place.workspace): part for place, part in parts.items()}
            try:
                patience = self.config.patience
                patience = patience._replace(retries=0, timeout=min(patience.timeout, _INDEX_TIMEOUT))
                indices.update(
                    root,
                    changed,
                    self.clock(),
                    lambda name: layout.sizes(Place(tenant, name)),
                    lambda name: layout.index_size(Place(tenant, name)),
                    patience,
                )
            except (OSError, StoreError):
                with self._parts_lock:
                    self._parts = parts | self._parts
                raise
        except (OSError, StoreError) as error:
            tell(Place(tenant, None), logging.WARNING, "indices not written yet", problem=str(error))
            return False
        return True

    def _find_changed(self, tenant: str) -> None:
        """Once per process: read the sessions whose parts of the index a killed process has left behind."""
        if tenant in self._compared_tenants:
            return
        names = names_in(os.path.join(self._ledger.tenant(tenant), "sessions"))
        places = [place for name in names if (place := Place(tenant, name)) and _is_session(place)]
        sizes = {str(place.workspace): self._ledger.sizes(place) for place in places if self._ledger.holds(place)}
        behind, gone = indices.out_of_date(self._ledger.tenant(tenant), sizes)
        with self._parts_lock:
            missing = [Place(tenant, name) for name in behind if Place(tenant, name) not in self._parts]
            self._parts = dict.fromkeys(Place(tenant, name) for name in gone) | self._parts
        for place in missing[:_REPAIRED_AT_ONCE]:
            self._session(place).behind = True
            self._settle(place)
        if len(missing) <= _REPAIRED_AT_ONCE:
            self._compared_tenants.add(tenant)

    def metrics(self, tenant: str) -> dict[str, float]:
        counts = self.meter.read()
        workspaces = list(filter(_is_session, self.places(tenant)))
        sessions = [session for place in workspaces if (session := self.session(place))]
        counts["memory.sessions.active"] = sum(
            place.tenant == tenant and _is_session(place) for place in list(self._handles)
        )
        counts["memory.entries.total"] = sum(session.total_entries for session in sessions)
        counts["memory.size.bytes"] = sum(session.total_size_bytes for session in sessions)
        return counts

    def rebuild(self, place: Place) -> int:
        with self.transaction(place) as index:
            return self._session(place).rebuild(index)

    def migrate(self, place: Place) -> bool:
        old = self._read(place, lambda index: index.oldest_schema < SCHEMA_VERSION, False)
        if old:
            with self.transaction(place):
                pass  # whoever writes to an old session brings it up to date first
        return old

    def unsaved_writes(self, tenant: str) -> int:
        return sum(len(log.unsaved) for place, log in list(self._logs.items()) if place.tenant == tenant)

    def damaged_entries(self, place: Place) -> int:
        damaged = self._read(place, lambda index: len(index.damaged_lines()), 0)
        return damaged + aside.count(self.log(place).fileset)

    def deleted(self, place: Place) -> int:
        sql = "SELECT count(*) FROM tombs WHERE id NOT IN (SELECT id FROM memories)"
        return self._read(place, lambda index: index.rows(sql)[0][0], 0)

    def without_tag(self, tenant: str, tag: str) -> set[str]:
        names = names_in(os.path.join(self._ledger.tenant(tenant), "sessions"))
        sizes = {name: self._ledger.sizes(Place(tenant, name)) for name in names}
        return indices.without(self._ledger.tenant(tenant), tag, sizes)


def _tell_closed(log: Log) -> None:
    with suppress(StoreError):  # who closes has no use for a folder that cannot be read
        if log.place.workspace is not None and log.fileset.exists():
            tell(log.place, logging.INFO, "session closed")


def _is_session(place: Place) -> bool:
    return place.workspace is not None and not place.reserved
