"""What a session of a ledger has beyond its memories: a limit to its size, settings of its own, and snapshots."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from recollect.policies.decay import Decay, HalfLife, NoDecay, hours_between
from recollect.stores.files import aside, config, files, snapshots
from recollect.stores.files.config import LEDGER_DECAY
from recollect.stores.files.files import MISSING, FileIdentity
from recollect.stores.files.fileset import AUDIT, CHANGES, SHELVES, TOMBSTONES, UNDO, VECTORS
from recollect.stores.files.formats import LedgerFormat
from recollect.stores.files.index_tables import FileRead
from recollect.stores.files.indices import SessionPart
from recollect.stores.files.log import Log, Parts, tell, tell_failure
from recollect.stores.files.snapshots import INDEX, METADATA, SETTINGS
from recollect.stores.sessions import Migration, SessionDecay, SessionMetadata
from recollect.values.errors import ConflictError, CorruptionError, InputError, SizeLimitError, StoreError
from recollect.values.record import SCHEMA_VERSION, Record, from_micros

if TYPE_CHECKING:
    from recollect.stores.files.index import PlaceIndex

COUNTED = (LedgerFormat.file, CHANGES, TOMBSTONES)
"""The files that decide what a session holds, and whose sizes its limit is about."""
_SETTINGS = ("user_id", "created_at", "decay_config", "inherited_decay", "compaction_config", "preferences")
_OVERRIDES = ("decay_config", "compaction_config", "preferences")
_UNCOUNTED = (UNDO, AUDIT, VECTORS, SHELVES)
_UNREAD = FileRead(MISSING, 0, 0)


class Session:
    """The rules of one session. What needs its memories is given its index."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._metadata: tuple[FileIdentity, SessionMetadata | None] | None = None
        self._indexed: tuple[dict[str, int], FileIdentity] | None = None
        """How far the log was read for the index that this process wrote last, and that file."""
        self._indexed_at = 0.0
        self._decayed_at: datetime | None = None
        """When the index was written, until the metadata say so."""
        self.behind = False
        """Whether index.json, metadata.json or the indices of all sessions do not tell of everything in the log."""
        self._wrote = False
        """Whether something was written since the metadata were last made durable."""
        self._warned_at = 0
        self._index_size: int | None = None
        """Of index.json, when it was last looked at."""
        self._stripped = 0, 0
        """Entries and bytes, of the compaction that goes on."""
        self.summary: SessionPart | None = None
        """What the indices of all sessions should say of this one, where that is new."""

    def _path(self, name: str) -> str:
        return self._log.fileset.path(name)

    # The limit

    def used(self, sizes: Mapping[str, int] | None = None) -> int:
        """The bytes that count towards the limit. Where the sizes of the log's files are known, they are given."""
        log = self._log.fileset
        counted = sum(log.identity(name).size if sizes is None else sizes.get(name, 0) for name in COUNTED)
        self._index_size = log.identity(INDEX).size
        return counted + self._index_size

    def _nearly_used(self, sizes: Mapping[str, int] | None) -> int:
        """As `used`, with index.json as a write has seen it before."""
        if sizes is None or self._index_size is None:
            return self.used(sizes)
        return sum(sizes.get(name, 0) for name in COUNTED) + self._index_size

    def has_room(self, parts: Parts, sizes: Mapping[str, int]) -> bool:
        limit = self._log.config.limit
        if limit is None or not parts.keys() & {LedgerFormat.file, CHANGES}:
            return True
        return self.used(sizes) + _counted(parts) <= limit  # nobody else can write meanwhile

    def check_room(self, parts: Parts, sizes: Mapping[str, int]) -> None:
        if self.has_room(parts, sizes) or (self._drop_index() and self.has_room(parts, sizes)):
            return
        raise SizeLimitError(self.used(), _counted(parts), self._log.config.limit or 0, self.auto_compact())

    def auto_compact(self) -> bool:
        stored = self._stored_metadata()
        own = stored.compaction_config.auto_compact if stored else None
        return self._log.config.storage.auto_compact if own is None else own

    def crowded(self, sizes: Mapping[str, int] | None) -> bool:
        """Whether it is so full that it should be compacted."""
        limit, storage, stored = self._log.config.limit, self._log.config.storage, self._last_metadata()
        own = stored.compaction_config.threshold if stored else None
        threshold = storage.compaction_threshold if own is None else own
        if limit is None or self._nearly_used(sizes) <= threshold * limit:
            return False
        if (used := self.used(sizes)) <= threshold * limit:
            return False
        if used - self._warned_at > limit / 100:
            self._warned_at = used
            tell(self._log.place, logging.WARNING, "approaching size limit", size_bytes=used, limit_bytes=limit)
        # Below the limit not again before enough was written for it to be worth the while. Deletions are never refused,
        # and the marks that they leave may pass it.
        grown = used - (stored.compacted_size_bytes if stored else 0)
        return self.auto_compact() and (used > limit or grown > limit / 100)

    # Snapshots

    def written(self, index: PlaceIndex) -> None:
        """After a write, with the lock held. The files derived from the log follow within the batch interval."""
        self._wrote = self.behind = True
        self._log.defer()
        if self._log.unsaved:
            return
        if index.read.get(TOMBSTONES, _UNREAD).identity == MISSING:
            self._have_tombstones()
        if self._last_metadata() is None:
            if self._log.place.workspace is not None:
                tell(self._log.place, logging.INFO, "session created")
            self.write_metadata(index, durable=False)

    def check_files(self) -> None:
        """Notice where a process was killed before it wrote the files derived from the log. Reads only metadata.json.

        `total_size_bytes` counts index.json, so that it also tells of an index that is not the one of these metadata.
        """
        fileset = self._log.fileset
        with suppress(InputError, StoreError):  # whoever uses the session is told
            if not fileset.exists() or not os.access(fileset.folder, os.W_OK):
                return
            stored, sizes = self._stored_metadata(), {name: fileset.identity(name).size for name in fileset.log}
            if stored is None or stored.covers != sizes or stored.total_size_bytes != self.used():
                self.behind = True
                self._log.defer()

    def _have_tombstones(self) -> None:
        """The document's folder has the file from the start."""
        if self._log.fileset.identity(TOMBSTONES) == MISSING:
            with suppress(OSError):
                os.close(os.open(self._path(TOMBSTONES), os.O_WRONLY | os.O_CREAT, files.PRIVATE))

    def should_write_snapshots(self, index: PlaceIndex, *, durable: bool) -> bool:
        """Whether to take the lock for `write_snapshots`."""
        if not self.behind and not (durable and self._wrote):
            return False
        if self._log.unsaved:  # the write that saves them puts these files off again
            return False
        if not self._log.fileset.exists():
            self.behind = False
            return False
        # Whoever takes the lock migrates the session and repairs its tombstones first, which only a writer should do.
        untidy = not self._wrote and (index.oldest_schema < SCHEMA_VERSION or bool(index.unburied()))
        if untidy:
            self.summary, self.behind = self._part(index), False
        return not untidy

    def write_snapshots(self, index: PlaceIndex, *, durable: bool) -> None:
        """With the lock held: index.json and metadata.json, and what the indices of all sessions should say."""
        if self._log.unsaved:
            return
        if self.behind:
            if not self._index_is_current(index):
                self.write_index(index)
            self.behind = False
        self.write_metadata(index, durable=durable)
        self.summary = self._part(index)
        self._wrote = self._wrote and not durable

    def _index_is_current(self, index: PlaceIndex) -> bool:
        """Whether this process wrote the index from the same log, and less than `update_interval_minutes` ago."""
        minutes = (self._log.config.decay or LEDGER_DECAY).update_interval_minutes
        current = self._read_sizes(index), self._log.fileset.identity(INDEX)
        return self._indexed == current and time.monotonic() - self._indexed_at <= 60 * minutes

    def _read_sizes(self, index: PlaceIndex) -> dict[str, int]:
        """How far the files of the log were read."""
        sizes = index.sizes_read()
        return {name: sizes.get(name, 0) for name in self._log.fileset.log}

    def write_index(self, index: PlaceIndex) -> None:
        """Unless it would take the session over its limit: the memories need the room more."""
        log, decay, now = self._log, self.decay() or LEDGER_DECAY.curve(), self._log.now()
        data = snapshots.make_index(index, self._read_sizes(index), decay, now)
        limit, old = log.config.limit, log.fileset.identity(INDEX).size
        if limit is not None and self.used() - old + len(data) > limit:
            self._drop_index()
        else:
            self._replace(INDEX, data, durable=False)
        self._decayed_at, self._indexed_at = now, time.monotonic()
        self._indexed = self._read_sizes(index), log.fileset.identity(INDEX)

    def _drop_index(self) -> bool:
        """It can be made again at any time. False if there is none."""
        try:
            os.unlink(self._path(INDEX))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise tell_failure(self._log.place, files.problem(error, self._log.fileset.folder)) from error
        return True

    def _replace(self, name: str, data: bytes, *, durable: bool = True) -> None:
        """A snapshot that cannot be written is no loss."""
        try:
            files.replace(self._path(name), data, durable=durable)
        except OSError as error:
            tell(self._log.place, logging.ERROR, "snapshot not written", file=name, problem=str(error))

    def metadata(self, index: PlaceIndex | None) -> SessionMetadata | None:
        """What is known of the session, counted as of now. None if it was never created, nor written to."""
        log, stored = self._log, self._stored_metadata()
        if stored is None and not log.fileset.exists():
            return None
        if stored is None:
            ((first,),) = index.rows("SELECT min(created_at) FROM memories") if index else [(None,)]
            now = log.now()
            created = now if first is None else from_micros(first)
            stored = SessionMetadata(session_id=log.place.workspace or "account", created_at=created, last_accessed=now)
        kinds = index.kinds() if index else {}
        oldest = index.oldest_schema if index else SCHEMA_VERSION
        shown, inherited = self._decay_in_force(self._own_decay(stored))
        return replace(
            stored,
            total_entries=sum(kinds.values()),
            total_size_bytes=self.used(),
            decay_config=shown,
            inherited_decay=inherited,
            statistics=snapshots.statistics(kinds),
            last_decay_update=stored.last_decay_update or stored.created_at,
            migration=replace(
                stored.migration, status="current" if oldest >= SCHEMA_VERSION else "pending", schema_version=oldest
            ),
            corrupt_entries=(len(index.damaged_lines()) if index else 0) + aside.count(log.fileset),
            buffered_writes=len(log.unsaved),
        )

    def _stored_metadata(self) -> SessionMetadata | None:
        """What the file says, or its copy. None if neither is there and can be read."""
        identity, cached = self._log.fileset.identity(METADATA), self._metadata
        if cached is None or cached[0] != identity:
            cached = self._metadata = identity, self._read(METADATA) or self._read(SETTINGS)
        return cached[1]

    def _read(self, name: str) -> SessionMetadata | None:
        """InputError names a setting that a person got wrong. None if the file cannot be read for another reason."""
        path, data = self._path(name), b""
        try:
            data = files.read_whole(path)
            return snapshots.read_metadata(data, path)
        except msgspec.ValidationError as error:
            if any(f"`$.{block}" in str(error) for block in _OVERRIDES):
                config.convert(data, SessionMetadata, path)
            return None
        except (CorruptionError, msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def _last_metadata(self) -> SessionMetadata | None:
        """What the file said when it was last looked at, which every write does when it begins."""
        return self._stored_metadata() if self._metadata is None else self._metadata[1]

    @property
    def has_metadata(self) -> bool:
        """Whether there were some when they were last looked at."""
        return self._metadata is not None and self._metadata[1] is not None

    def check_settings(self) -> None:
        """InputError for a setting in the metadata that is wrong: before anything is written, and so overwritten."""
        self._stored_metadata()

    def write_metadata(self, index: PlaceIndex, *, durable: bool = True, **changes: Any) -> SessionMetadata:
        metadata, now = self.metadata(index), self._log.now()
        if metadata is None:
            name, counts = self._log.place.workspace or "account", snapshots.statistics({})
            metadata = SessionMetadata(session_id=name, created_at=now, last_accessed=now, statistics=counts)
        audited = self._log.last_entry(index.own_staging())[0]
        if not durable:  # the log may still be on its way to the disk
            audited = min(audited, metadata.audit_entries)
        fields = {"last_accessed": now, "audit_entries": audited, "covers": self._read_sizes(index), **changes}
        if self._decayed_at is not None:
            fields["last_decay_update"], self._decayed_at = self._decayed_at, None
        new = replace(metadata, **fields)
        shown, inherited = self._decay_in_force(self._own_decay(new))
        new = replace(new, decay_config=shown, inherited_decay=inherited)
        data = msgspec.json.format(msgspec.json.encode(new), indent=2) + b"\n"
        if durable:
            self._keep_settings(new, data)
        self._replace(METADATA, data, durable=durable)
        return new

    def _keep_settings(self, new: SessionMetadata, data: bytes) -> None:
        """The metadata are written too often to wait for the disk: what no log tells of them is safe in a copy."""
        safe = self._read(SETTINGS)
        if safe is None or any(getattr(safe, name) != getattr(new, name) for name in _SETTINGS):
            self._replace(SETTINGS, data)

    def audit_entries(self) -> int:
        with suppress(InputError):  # a setting is wrong, which says nothing about the log
            stored = self._stored_metadata()
            return stored.audit_entries if stored else 0
        return 0

    def _part(self, index: PlaceIndex) -> SessionPart:
        """What the indices of all sessions say of this one."""
        sizes, stored = self._read_sizes(index), self._stored_metadata()
        ((entries, first, last),) = index.rows("SELECT count(*), min(created_at), max(created_at) FROM memories")
        return SessionPart(
            stored.user_id if stored else None,
            entries,
            self.used(),
            None if first is None else from_micros(first),
            None if last is None else from_micros(last),
            index.kinds(),
            _counts(tag for row in index.known_rows(whole=False) for tag in row.record.tags),
            {name: sizes[name] for name in COUNTED},
        )

    # Settings

    def decay(self) -> Decay | None:
        """The session's own settings, or those of all sessions; None if nothing was set."""
        shared, stored = self._log.config.decay, self._stored_metadata()
        own = self._own_decay(stored) if stored else SessionDecay()
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

    @staticmethod
    def _own_decay(stored: SessionMetadata) -> SessionDecay:
        """What was set for the session, or written into its metadata since."""
        shown, inherited = stored.decay_config, stored.inherited_decay

        def own(name: str) -> float | None:
            value = getattr(shown, name)
            return None if value is None or value == inherited.get(name) else value

        enabled = shown.enabled or inherited.get("enabled") == 0
        return SessionDecay(enabled, own("half_life_hours"), own("min_decay_factor"))

    def _decay_in_force(self, own: SessionDecay) -> tuple[SessionDecay, dict[str, float]]:
        """For the metadata: all numbers, and those of them that are not the session's own."""
        shared, inherited = self._log.config.decay or LEDGER_DECAY, dict[str, float]()
        numbers = {name: getattr(own, name) for name in ("half_life_hours", "min_decay_factor")}
        for name, value in numbers.items():
            if value is None:
                numbers[name] = inherited[name] = getattr(shared, name)
        enabled = own.enabled
        if enabled and not shared.enabled and len(inherited) == 2:
            enabled, inherited["enabled"] = False, 0
        return SessionDecay(enabled, **numbers), inherited

    # In a transaction

    def strip(self, record: Record) -> Record:
        """For compaction: without the longest parts of its metadata, if it is old and has too much of that.

        The document keeps an entry's metadata in its content, as `content.metadata`; the rest of the content stays.
        """
        rule = self._log.config.compaction
        age, most = rule.strip_metadata_after_hours, rule.strip_metadata_over_bytes
        if age is None or hours_between(record.created_at, self._log.now()) < age:
            return record
        metadata, freed = _stripped(record.metadata, most)
        content: Any = record.content
        if isinstance(content, dict) and isinstance(verbose := content.get("metadata"), dict):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            shorter, more = _stripped(verbose, most)  # pyright: ignore[reportUnknownArgumentType]
            content, freed = {**content, "metadata": shorter} if more else content, freed + more  # pyright: ignore[reportUnknownVariableType]
        if not freed:
            return record
        self._stripped = self._stripped[0] + 1, self._stripped[1] + freed
        return replace(record, metadata=metadata, content=content)

    def compacted(self, index: PlaceIndex, entries_before: int, freed: int, started: float) -> None:
        self.write_index(index)
        stored, (entries, size), self._stripped = self._stored_metadata(), self._stripped, (0, 0)
        self.write_metadata(
            index,
            last_compaction=self._log.now(),
            compacted_size_bytes=self.used(),
            stripped_entries=(stored.stripped_entries if stored else 0) + entries,
            stripped_bytes=(stored.stripped_bytes if stored else 0) + size,
        )
        self._wrote, self.behind = True, False
        self.summary = self._part(index)
        details = {
            "entries_before": entries_before,
            "entries_after": sum(index.kinds().values()),
            "size_reduction_mb": round(freed / 1_048_576, 3),
            "duration_ms": round(1000 * (time.monotonic() - started)),
        }
        tell(self._log.place, logging.INFO, "session compaction completed", **details)

    def rebuild(self, index: PlaceIndex) -> int:
        """Make both indices anew from the log. Returns how many memories they know."""
        self._drop_index()
        index.rebuild()
        self.write_index(index)
        self.write_metadata(index)
        return sum(index.kinds().values())

    def migrated(self, index: PlaceIndex) -> None:
        """After the files were written anew because they had entries of an older schema."""
        self.write_metadata(index, migration=Migration(migrated_at=self._log.now()))
        self._wrote = True

    def create(self, index: PlaceIndex, now: datetime, **settings: Any) -> SessionMetadata:
        if self._log.fileset.exists() or self._stored_metadata() is not None:
            raise ConflictError(f"there is a session {self._log.place.workspace} already")
        tell(self._log.place, logging.INFO, "session created")
        files.make_folder(self._log.fileset.folder)
        self._have_tombstones()
        return self.write_metadata(index, created_at=now, last_accessed=now, inherited_decay={}, **settings)


def _stripped(metadata: dict[str, Any], most: int) -> tuple[dict[str, Any], int]:
    """Without its longest parts, so that at most so many bytes are left; and the bytes that were taken away."""
    before = size = len(msgspec.json.encode(metadata))
    left = dict(metadata)
    for name in sorted(metadata, key=lambda name: len(msgspec.json.encode(metadata[name])), reverse=True):
        if size <= most:
            break
        del left[name]
        size = len(msgspec.json.encode(left))
    return left, before - size


def _counted(parts: Parts) -> int:
    """The bytes that count towards the limit."""
    return sum(len(data) for name, data in parts.items() if name not in _UNCOUNTED)


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values))
