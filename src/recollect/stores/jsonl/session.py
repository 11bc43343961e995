"""A session of a ledger: a book with snapshots, settings of its own, and a limit to its size."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from recollect.errors import ConflictError
from recollect.policies.decay import Decay, HalfLife, NoDecay
from recollect.record import utc_now
from recollect.stores.jsonl import files, snapshots
from recollect.stores.jsonl.book import CHANGES, TOMBSTONES
from recollect.stores.jsonl.config import LEDGER_DECAY
from recollect.stores.jsonl.files import Identity
from recollect.stores.jsonl.formats import LedgerFormat
from recollect.stores.jsonl.indices import SessionPart
from recollect.stores.jsonl.searching import SearchedBook
from recollect.stores.jsonl.snapshots import INDEX, METADATA, Covered
from recollect.stores.sessions import SessionDecay, SessionMetadata

_SMALL_TAIL = 65_536
COUNTED = (LedgerFormat.file, CHANGES, TOMBSTONES)
"""The files that decide what a session holds."""


class Session(SearchedBook):
    _index_covers: dict[str, Covered] | None = None
    _metadata: tuple[Identity, SessionMetadata] | None = None
    _snapshot_at: float = 0.0
    _wrote = False

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
        covers = {name: snapshots.covered(self.files[name], at) for name, at in self._at.items()}
        data = snapshots.make_index(self.state, covers, self.decay() or LEDGER_DECAY.curve(), utc_now())
        if self._replace(INDEX, data):
            self._index_covers = covers
        self._snapshot_at = time.monotonic()

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
        path = self._file(METADATA)
        found = files.identity(path)
        if self._metadata is None or self._metadata[0] != found:
            try:
                with open(path, "rb") as file:
                    self._metadata = found, msgspec.json.decode(file.read(), type=SessionMetadata)
            except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
                return None
        return self._metadata[1]

    def write_metadata(self, **changes: Any) -> SessionMetadata:
        known = self.metadata()
        now = utc_now()
        if known is None:
            known = SessionMetadata(session_id=self.place.workspace or "account", created_at=now, last_accessed=now)
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
        base = (shared or LEDGER_DECAY).curve()
        if not isinstance(base, HalfLife):
            base = HalfLife()
        floor = base.floor if own.min_decay_factor is None else own.min_decay_factor
        if own.half_life_hours is None:
            return replace(base, floor=floor)
        return HalfLife({}, own.half_life_hours, base.never, floor)

    def auto_compact(self) -> bool:
        kept = self._kept()
        own = kept.compaction_config.auto_compact if kept else None
        return self.config.storage.auto_compact if own is None else own

    def crowded(self) -> bool:
        """Whether it is so full that it should be compacted."""
        limit, storage = self.config.limit, self.config.storage
        kept = self._kept()
        own = kept.compaction_config if kept else None
        threshold = storage.compaction_threshold if own is None or own.threshold is None else own.threshold
        if limit is None or not self.auto_compact():
            return False
        used = self.used()
        # Not again before enough was written for it to be worth the while.
        return used > threshold * limit and used - (kept.compacted_size_bytes if kept else 0) > limit / 100

    # Writing

    def end(self, error: BaseException | None) -> None:
        wrote = error is None and self.staged is not None and bool(self.staged.lines)
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
        before, entries, started = self.size(), len(self.state.rows), time.monotonic()
        self._log(logging.INFO, "session compaction started")
        super().compact()
        self.write_index()
        self.write_metadata(last_compaction=utc_now(), compacted_size_bytes=self.used())
        self._wrote = True
        freed = before - self.size()
        told = {
            "entries_after": len(self.state.rows),
            "entries_before": entries,
            "size_reduction_mb": round(freed / 1_048_576, 3),
            "duration_ms": round(1000 * (time.monotonic() - started)),
        }
        self._log(logging.INFO, "session compaction completed", **told)
        return freed

    def rebuild(self) -> int:
        """Make the index anew from the log. Returns how many memories it knows."""
        try:
            os.unlink(self._file(INDEX))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise files.problem(error, self.folder) from error
        self.reset()
        self.reload()
        self.write_index()
        self.write_metadata()
        return len(self.state.rows)

    def create(self, now: datetime, **settings: Any) -> SessionMetadata:
        """In a transaction."""
        if self.exists() or self._kept() is not None:
            raise ConflictError(f"there is a session {self.place.workspace} already")
        return self.write_metadata(created_at=now, last_accessed=now, **settings)
