"""A session of a ledger: a book with snapshots, settings of its own, and a limit to its size."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from recollect.errors import ConflictError, SizeLimitError
from recollect.policies.decay import Decay, HalfLife, NoDecay
from recollect.record import utc_now
from recollect.stores.files import files, snapshots
from recollect.stores.files.book import CHANGES, TOMBSTONES
from recollect.stores.files.config import LEDGER_DECAY
from recollect.stores.files.files import MISSING, Identity
from recollect.stores.files.formats import LedgerFormat
from recollect.stores.files.indices import SessionPart
from recollect.stores.files.searching import SearchedBook
from recollect.stores.files.snapshots import INDEX, METADATA, Covered
from recollect.stores.sessions import SessionDecay, SessionMetadata

_SMALL_TAIL = 65_536
COUNTED = (LedgerFormat.file, CHANGES, TOMBSTONES)
"""The files that decide what a session holds."""


class Session(SearchedBook):
    _index_covers: dict[str, Covered] | None = None
    _metadata: tuple[Identity, SessionMetadata | None] | None = None
    _snapshot_at: float = 0.0
    _wrote = False
    _warned_at = 0

    def refresh(self) -> None:
        if not self.config.performance.index_in_memory and self.staged is None and not self.unsaved:
            self.reset()
        super().refresh()

    # Snapshots

    def _load_snapshot(self, ends: dict[str, Identity]) -> None:
        self._index_covers = None
        index = snapshots.read_index(self._file(INDEX))
        for name in self._state_files:
            self.files[name].open()
        if index is None or not snapshots.fits(index, self.files, ends):
            return
        snapshots.restore(index, self.state, self.format.address)
        self._at = {name: known.bytes for name, known in index.covers.items()}
        self._index_covers = index.covers

    def _file(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def snapshot(self) -> None:
        """On closing: what has changed since the last time. The index only if reading the rest would take longer."""
        if not self._wrote or self.unsaved or not self.exists():
            return
        self.refresh()
        if self._uncovered() > max(_SMALL_TAIL, self._at[self.format.file] // 20):
            self.write_index()
        self.write_metadata()
        self._wrote = False

    def _uncovered(self) -> int:
        """Bytes that a reader of the index has yet to read."""
        known = self._index_covers or {}
        return sum(at - (known[name].bytes if name in known else 0) for name, at in self._at.items()) + (
            0 if known else _SMALL_TAIL
        )

    def write_index(self) -> None:
        """Unless it would take the session over its limit: the memories need the room more."""
        covers = {name: snapshots.covered(self.files[name], at) for name, at in self._at.items()}
        data = snapshots.make_index(self.state, covers, self.decay() or LEDGER_DECAY.curve(), utc_now())
        limit, old = self.config.limit, files.identity(self._file(INDEX)).size
        if limit is not None and self.used() - old + len(data) > limit:
            self._drop_index()
        elif self._replace(INDEX, data):
            self._index_covers = covers
        self._snapshot_at = time.monotonic()

    def _drop_index(self) -> bool:
        """It can be made again at any time. False if there is none."""
        self._index_covers = None
        try:
            os.unlink(self._file(INDEX))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise files.problem(error, self.folder) from error
        return True

    def _check_room(self, parts: dict[str, bytes]) -> None:
        try:
            super()._check_room(parts)
        except SizeLimitError:
            if not self._drop_index():
                raise
            super()._check_room(parts)

    def _replace(self, name: str, data: bytes) -> bool:
        """A snapshot that cannot be written is no loss."""
        try:
            files.replace(self._file(name), data)
        except OSError as error:
            self._log(logging.WARNING, "snapshot not written", file=name, problem=str(error))
            return False
        return True

    def metadata(self) -> SessionMetadata | None:
        """What is known of the session, counted as of now. None if it was never created, nor written to."""
        kept = self._kept()
        if kept is None and not self.exists():
            return None
        records = [row.record for row in self.state.rows.values()]
        now = utc_now()
        if kept is None:
            first = min((record.created_at for record in records), default=now)
            kept = SessionMetadata(session_id=self.place.workspace or "account", created_at=first, last_accessed=now)
        return replace(
            kept,
            total_entries=len(records),
            total_size_bytes=self.size(),
            statistics=snapshots.statistics(records),
            corrupt_entries=len(self.state.damage),
            buffered_writes=len(self.unsaved),
        )

    def _kept(self) -> SessionMetadata | None:
        """What the file says. None if it is not there, or cannot be read."""
        path = self._file(METADATA)
        found = files.identity(path)
        if self._metadata is None or self._metadata[0] != found:
            kept = None
            if found != MISSING:
                with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError), open(path, "rb") as file:
                    kept = snapshots.read_metadata(file.read(), path)
            self._metadata = found, kept
        return self._metadata[1]

    def write_metadata(self, **changes: Any) -> SessionMetadata:
        known = self.metadata()
        now = utc_now()
        if known is None:
            name, counts = self.place.workspace or "account", snapshots.statistics(())
            known = SessionMetadata(session_id=name, created_at=now, last_accessed=now, statistics=counts)
        new = replace(
            known, **{"last_accessed": now, "audit_entries": self.written(), "covers": dict(self._at), **changes}
        )
        self._replace(METADATA, msgspec.json.format(msgspec.json.encode(new), indent=2) + b"\n")
        return new

    def audit_entries(self) -> int:
        kept = self._kept()
        return kept.audit_entries if kept else 0

    def part(self) -> SessionPart | None:
        """What the indices of all sessions say of this one; None if it was not changed here."""
        if not self._wrote or not self.exists():
            return None
        self.refresh()
        records = [row.record for row in self.state.rows.values()]
        kept = self._kept()
        times = [record.created_at for record in records]
        return SessionPart(
            kept.user_id if kept else None,
            len(records),
            self.size(),
            min(times, default=None),
            max(times, default=None),
            dict(Counter(record.kind for record in records)),
            dict(Counter(tag for record in records for tag in record.tags)),
            {name: self._at[name] for name in COUNTED},
        )

    # Settings

    def decay(self) -> Decay | None:
        """The session's own settings, or those of all sessions; None if nothing was set."""
        shared = self.config.decay
        kept = self._kept()
        own = kept.decay_config if kept else SessionDecay()
        if not own.enabled:
            return NoDecay()
        if own.half_life_hours is None and own.min_decay_factor is None:
            return shared.curve() if shared else None
        base = (shared if shared and shared.enabled else LEDGER_DECAY).curve()
        assert isinstance(base, HalfLife)
        floor = base.floor if own.min_decay_factor is None else own.min_decay_factor
        if own.half_life_hours is None:
            return replace(base, floor=floor)
        return HalfLife({}, own.half_life_hours, base.never, floor)

    def auto_compact(self) -> bool:
        kept = self._metadata[1] if self._metadata else self._kept()
        own = kept.compaction_config.auto_compact if kept else None
        return self.config.storage.auto_compact if own is None else own

    def crowded(self) -> bool:
        """Whether it is so full that it should be compacted."""
        limit, storage = self.config.limit, self.config.storage
        kept = self._kept()
        own = kept.compaction_config if kept else None
        threshold = storage.compaction_threshold if own is None or own.threshold is None else own.threshold
        if limit is None or (used := self.used()) <= threshold * limit:
            return False
        if used - self._warned_at > limit / 100:
            self._warned_at = used
            self._log(logging.WARNING, "approaching size limit", size_bytes=used, limit_bytes=limit)
        # Not again before enough was written for it to be worth the while.
        return self.auto_compact() and used - (kept.compacted_size_bytes if kept else 0) > limit / 100

    # Writing

    def end(self, error: BaseException | None) -> None:
        wrote = error is None and self.staged is not None and bool(self.staged.lines or self._touches)
        super().end(error)
        if wrote and not self._depth:
            self._wrote = True
            self._snapshot_sometimes()

    def _snapshot_sometimes(self) -> None:
        if not self._snapshot_at:
            self._snapshot_at = time.monotonic()
        minutes = (self.config.decay or LEDGER_DECAY).update_interval_minutes
        if time.monotonic() - self._snapshot_at > 60 * minutes:
            self.write_index()
            self.write_metadata()

    def compact(self) -> int:
        started = time.monotonic()
        entries = len(self.state.rows.keys() | self.state.tombs.keys())
        self._log(logging.INFO, "session compaction started")
        freed = super().compact()  # of the log: the index is counted out, it may be new
        self.write_index()
        self.write_metadata(last_compaction=utc_now(), compacted_size_bytes=self.used())
        self._wrote = True
        told = {
            "entries_before": entries,
            "entries_after": len(self.state.rows),
            "size_reduction_mb": round(freed / 1_048_576, 3),
            "duration_ms": round(1000 * (time.monotonic() - started)),
        }
        self._log(logging.INFO, "session compaction completed", **told)
        return freed

    def rebuild(self) -> int:
        """Make the index anew from the log. Returns how many memories it knows."""
        self._drop_index()
        self.reset()
        self.reload()
        self.write_index()
        self.write_metadata()
        return len(self.state.rows)

    def create(self, now: datetime, **settings: Any) -> SessionMetadata:
        """In a transaction."""
        if self.exists() or self._kept() is not None:
            raise ConflictError(f"there is a session {self.place.workspace} already")
        self._log(logging.INFO, "session created")
        return self.write_metadata(created_at=now, last_accessed=now, **settings)

    def put_away(self) -> None:
        super().put_away()
        if self.exists():
            self._log(logging.INFO, "session closed")
