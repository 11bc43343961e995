"""The files of one place, read and written together: what a ledger's session and a notebook are made of."""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from recollect.errors import (
    StoreError,
)
from recollect.record import Record, digest
from recollect.stores.files import files
from recollect.stores.files.config import Config
from recollect.stores.files.files import MISSING, AppendOnly, Identity
from recollect.stores.files.formats import Format
from recollect.stores.files.lock import Lock, Note
from recollect.stores.files.metrics import CORRUPTION, Meter
from recollect.stores.files.state import PENDING, UNREADABLE, Row, State, decode_vector
from recollect.stores.port import Damage, Place

CHANGES, VECTORS, TOMBSTONES = "changes.jsonl", "vectors.jsonl", "tombstones.jsonl"
UNDO, AUDIT = "undo.jsonl", "audit.jsonl"
COUNTER, UNREAD = "counter", "unread.jsonl"

_TRIES = 50
LAST_BYTES = 64

log = logging.getLogger("recollect.store")
log.addHandler(logging.NullHandler())  # nothing on stderr unless the application asks for it


class GoneError(StoreError):
    """The folder was dropped by another process just now; trying again is safe."""


class Staged:
    """What a transaction will append to each file, and how to take back what it did to the state."""

    def __init__(self) -> None:
        self.lines: dict[str, list[bytes]] = {}
        self.taken: list[tuple[str, Row | None, int | None]] = []
        self.records: dict[str, Record] = {}
        self.touches: dict[str, tuple[int, datetime]] = {}
        self.dropped_undo: list[int] = []

    def add(self, name: str, line: bytes) -> None:
        self.lines.setdefault(name, []).append(line)

    def mark(self) -> tuple[dict[str, int], int, int]:
        return {name: len(lines) for name, lines in self.lines.items()}, len(self.taken), len(self.dropped_undo)

    def parts(self) -> dict[str, bytes]:
        return {name: b"".join(lines) for name, lines in self.lines.items() if lines}


class Book:
    """One place. Every method expects the caller to hold `guard`; `begin` and `end` enclose writes."""

    def __init__(self, folder: str, memories: str, place: Place, format: Format, config: Config, meter: Meter) -> None:
        self.folder = folder
        self.place = place
        self.format = format
        self.config = config
        self.meter = meter
        self.guard = threading.RLock()
        self.lock = Lock(os.path.join(folder, "lock"), config.patience)
        self.files = {
            format.file: AppendOnly(memories),
            **{name: AppendOnly(os.path.join(folder, name)) for name in (CHANGES, VECTORS, TOMBSTONES, UNDO, AUDIT)},
        }
        self._state_files = (format.file, CHANGES, VECTORS, TOMBSTONES)
        self.staged: Staged | None = None
        self.unsaved: list[dict[str, bytes]] = []
        self._unsaved_records: dict[str, Record] = {}
        self._unsaved_because = ""
        self._touches: dict[str, tuple[int, datetime]] = {}
        self._oldest_touch = 0.0
        self._depth: int = 0
        self._uncut: dict[str, int] = {}
        self._told: set[tuple[str, int]] = set()
        """Damage that was logged."""
        self._cache: OrderedDict[str, tuple[Row, Record]] = OrderedDict()
        self.reset()

    # Reading

    def reset(self) -> None:
        """Know nothing of the files."""
        self.state = State(self.place, self.format, self._counter())
        self._at = dict.fromkeys(self._state_files, 0)
        self._seen: dict[str, Identity] = {}
        self._ends: dict[str, bytes] = {}
        """The last bytes that were read of each file."""
        self._cache.clear()
        self.generation = object()
        """Another object whenever the state was read anew."""

    def _counter(self) -> int:
        """The highest number that was given to a memory which is no longer in the file."""
        try:
            with open(os.path.join(self.folder, COUNTER)) as file:
                return int(file.read())
        except (OSError, ValueError):
            return 0

    def exists(self) -> bool:
        return any(os.path.exists(file.path) for file in self.files.values())

    def refresh(self) -> None:
        """Take in what was written since."""
        if self.staged is None:
            self.reload()

    def reload(self) -> None:
        found = {name: files.identity(self.files[name].path) for name in self._state_files}
        if found != self._seen:
            self._catch_up(found)

    def _catch_up(self, found: dict[str, Identity]) -> None:
        ends = found
        for _ in range(_TRIES):
            note = self.lock.read()
            again = {name: files.identity(self.files[name].path) for name in self._state_files}
            ends = self._complete(note, again)
            if again == found and all(self.files[name].is_open(one.inode) for name, one in found.items()):
                break
            found = again
        if not self._continues(found, ends):
            self.reset()
            if not self.lock.held:
                self.lock.forget()  # the folder may be another one, with another lock
        if not self._seen:
            self._load_snapshot(ends)
        for name in self._state_files:
            self._read_tail(name, ends[name])
        main = self.format.file
        # What is not complete yet must be looked at again, even if no byte is added to it.
        self._seen = found if ends == found else {**found, main: Identity(found[main].inode, -1)}
        self._tell_damage()
        self._apply_unsaved()

    def _complete(self, note: Note, found: dict[str, Identity]) -> dict[str, Identity]:
        """How far each file can be read: to its end, or to where an unfinished write began."""
        there = {name: files.identity(self.files[name].path) for name in note.began if name == UNDO} | found
        writing = {
            name: (size, note.ends.get(name, size))
            for name, (inode, size) in note.began.items()
            if name in there and there[name].inode == inode
        }
        if all(there[name].size >= end for name, (_, end) in writing.items()):
            return found
        return {
            name: Identity(was.inode, min(was.size, writing[name][0])) if name in writing else was
            for name, was in found.items()
        }

    def _continues(self, found: dict[str, Identity], ends: dict[str, Identity]) -> bool:
        """Whether the files are those that were read before, with nothing but more at their ends.

        People and other programs replace files, shorten them, or write them anew in place.
        """
        for name, known in self._seen.items():
            now, at = found[name], self._at[name]
            if (known != MISSING and known.inode != now.inode) or ends[name].size < at:
                return False
            if known.size == now.size and known.changed != now.changed:
                return False
            if (last := self._ends.get(name)) and self.files[name].read(at - len(last), at) != last:
                return False
        return True

    def _load_snapshot(self, ends: dict[str, Identity]) -> None:
        """Where a snapshot of the state is kept, begin with that."""

    def _read_tail(self, name: str, end: Identity) -> None:
        file, at = self.files[name], self._at[name]
        if end.size <= at:
            return
        data = file.read(at, end.size)
        for line in files.lines(data, at):
            self.state.read(name, line)
            if line.whole:
                self._at[name] = line.end
        if self._at[name] > at:
            self._ends[name] = data[: self._at[name] - at][-LAST_BYTES:]

    def _tell_damage(self) -> None:
        """Count and log each once."""
        for key, damage in self.state.damage.items():
            if key not in self._told:
                self._told.add(key)
                self.meter.counts[CORRUPTION] += 1
                self._log(logging.ERROR, "corruption detected", where=damage.where, problem=damage.problem)

    def _apply_unsaved(self) -> None:
        for parts in self.unsaved:
            for name in self._state_files:
                for line in files.lines(parts.get(name, b"")):
                    self.state.read(name, line._replace(start=PENDING, end=PENDING))

    def record(self, row: Row, *, vector: bool = True) -> Record | None:
        """The whole memory; None if its line turns out to be damaged."""
        stub = row.record
        kept = self._cache.get(stub.id)
        if log.isEnabledFor(logging.DEBUG):
            self._log(logging.DEBUG, "cache miss" if kept is None else "cache hit", id=stub.id)
        if kept is not None and kept[0].start == row.start and kept[0].end == row.end:
            self._cache.move_to_end(stub.id)
            content = kept[1].content
        else:
            fresh = self._fresh(stub.id) if row.start == PENDING else None
            if fresh is not None:
                content = fresh.content
            elif stub.content is not None:
                content = stub.content
            else:
                content = self._content(row)
                if content is _DAMAGED:
                    return None
        blob = self.vector(row) if vector else None
        access, accessed = stub.access_count, stub.accessed_at
        if touch := self._touches.get(stub.id):
            access, accessed = access + touch[0], max(accessed, touch[1])
        whole = Record(
            stub.id,
            stub.address,
            stub.tier,
            stub.kind,
            content,
            stub.importance,
            stub.created_at,
            accessed,
            stub.tags,
            stub.role,
            stub.source,
            stub.lifetime,
            stub.references,
            stub.metadata,
            access,
            stub.expires_at,
            stub.archived_at,
            stub.superseded_by,
            blob,
            stub.embedding_model if vector else None,
            digest(stub.id, stub.tier, stub.kind, stub.role, content, stub.created_at),
        )
        if kept is None and row.start != PENDING:
            self._remember(row, whole)
        return whole

    def _remember(self, row: Row, record: Record) -> None:
        self._cache[record.id] = (row, record)
        if len(self._cache) > self.config.performance.cache_size:
            self._cache.popitem(last=False)

    def _fresh(self, ident: str) -> Record | None:
        if self.staged is not None and ident in self.staged.records:
            return self.staged.records[ident]
        return self._unsaved_records.get(ident)

    def _content(self, row: Row) -> Any:
        name = self.format.file
        line = self.files[name].read(row.start, row.end).rstrip(b"\r\n")
        try:
            return self.format.content(line)
        except UNREADABLE as error:
            problem = f"cannot be read and is skipped: {error}"
            self.state.damage[name, row.start] = Damage(f"{name}, line {row.number}", problem)
            self.state.rows.pop(row.record.id, None)
            self.state.changed.add(row.record.id)
            self._tell_damage()
            return _DAMAGED

    def vector(self, row: Row) -> bytes | None:
        if row.vector is None:
            return None
        if row.vector[0] == PENDING:
            fresh = self._fresh(row.record.id)
            return fresh.embedding if fresh else None
        line = self.files[VECTORS].read(*row.vector)
        try:
            return decode_vector(line).vector
        except UNREADABLE as error:
            self.state.damage[VECTORS, row.vector[0]] = Damage(f"{VECTORS}, byte {row.vector[0]:,}", str(error))
            return None

    def touched(self, record: Record) -> Record:
        """With the retrievals that are not written yet."""
        touch = self._touches.get(record.id)
        if touch is None:
            return record
        return replace(
            record, access_count=record.access_count + touch[0], accessed_at=max(record.accessed_at, touch[1])
        )

    def _log(self, level: int, message: str, **details: Any) -> None:
        if log.isEnabledFor(level):
            log.log(level, message, extra={"session_id": self.place.workspace, "metadata": details})

    def close(self) -> None:
        for file in self.files.values():
            file.close()
        self.lock.forget()


_DAMAGED = object()
