"""The files of one place, read and written together: what a ledger's session and a notebook are made of."""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from recollect.errors import (
    ConcurrencyError,
    ConflictError,
    NotFoundError,
    ReadOnlyError,
    SizeLimitError,
    StoreError,
    UnsavedWarning,
)
from recollect.record import SCHEMA_VERSION, Record, digest, utc_now
from recollect.stores.base import Damage, Place
from recollect.stores.jsonl import files
from recollect.stores.jsonl.config import Config
from recollect.stores.jsonl.files import MISSING, AppendOnly, Identity
from recollect.stores.jsonl.formats import Format
from recollect.stores.jsonl.lines import CHANGEABLE, Change, Changed, Named, Tombstone, Vector
from recollect.stores.jsonl.lock import Lock, Note
from recollect.stores.jsonl.metrics import COMPACTION, CONTENTION, CORRUPTION, WRITE, Meter
from recollect.stores.jsonl.state import PENDING, UNREADABLE, Row, State, decode_vector

CHANGES, VECTORS, TOMBSTONES = "changes.jsonl", "vectors.jsonl", "tombstones.jsonl"
UNDO, AUDIT = "undo.jsonl", "audit.jsonl"
COUNTER = "counter"

_encode = msgspec.json.Encoder().encode
_TRIES = 50
_TOUCHES_KEPT = 256
_LAST_BYTES = 64

log = logging.getLogger("recollect.store")


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
        self._depth = 0
        self._uncut: dict[str, int] = {}
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
            self._ends[name] = data[: self._at[name] - at][-_LAST_BYTES:]

    def _apply_unsaved(self) -> None:
        for parts in self.unsaved:
            for name in self._state_files:
                for line in files.lines(parts.get(name, b"")):
                    self.state.read(name, line._replace(start=PENDING, end=PENDING))

    def record(self, row: Row, *, vector: bool = True) -> Record | None:
        """The whole memory; None if its line turns out to be damaged."""
        stub = row.record
        kept = self._cache.get(stub.id)
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
        blob = self._vector(row) if vector else None
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
            self.meter.counts[CORRUPTION] += 1
            self._log(logging.ERROR, "entry skipped", line=row.number, problem=problem)
            return _DAMAGED

    def _vector(self, row: Row) -> bytes | None:
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

    # Writing

    def begin(self, operation: str = "write") -> None:
        """Take the lock, finish what a dead process left, and know all that is written. May be nested."""
        self.guard.acquire()
        try:
            if self._depth == 0:
                self._begin(operation)
            self._depth += 1
        except BaseException:
            self.guard.release()
            raise

    def _begin(self, operation: str) -> None:
        for _ in range(_TRIES):
            files.make_folder(self.folder)
            try:
                left = self._acquire(operation)
                break
            except FileNotFoundError:
                self.lock.forget()
        else:
            raise StoreError(f"{self.folder} is removed as often as it is made")
        try:
            self._recover(left)
            self.refresh()
            self._prepare()
            self.staged = Staged()
            self._stage_touches()
        except BaseException as error:
            self.staged = None
            self._release()
            if isinstance(error, OSError):
                raise files.problem(error, self.folder) from error
            raise

    def _acquire(self, operation: str) -> Note:
        waits = self.lock.waits
        try:
            return self.lock.acquire(operation)
        except ConcurrencyError as error:
            self._log(logging.WARNING, "lock timeout", problem=str(error))
            raise
        finally:
            if self.lock.waits > waits:
                self.meter.counts[CONTENTION] += 1

    def _prepare(self) -> None:
        if self.unsaved:
            self._save_unsaved()
        if (self.format.rewrites and self.state.tombs) or self.state.oldest_schema < SCHEMA_VERSION:
            self.rewrite()

    def _log(self, level: int, message: str, **details: Any) -> None:
        log.log(level, message, extra={"session_id": self.place.workspace, "metadata": details})

    def _release(self) -> None:
        try:
            self.lock.release()
        except OSError as error:
            self.lock.forget()  # closing the file gives the lock back as well
            self._log(logging.ERROR, "lock file not written", problem=str(error))

    def end(self, error: BaseException | None) -> None:
        """Write what was staged, or forget it if there was an error."""
        self._depth -= 1
        try:
            if self._depth:
                return
            staged = self.staged
            try:
                if staged is not None and error is None:
                    self._commit(staged)
                elif staged is not None:
                    self._take_all_back(staged)
            finally:
                self.staged = None
                self._release()
        finally:
            self.guard.release()

    def take_back(self, mark: tuple[dict[str, int], int, int]) -> None:
        """Undo what was staged since the mark."""
        staged = self.staged
        assert staged is not None
        counts, taken, dropped = mark
        for ident, row, tomb in reversed(staged.taken[taken:]):
            self.state.set_back(ident, row, tomb)
        del staged.taken[taken:]
        del staged.dropped_undo[dropped:]
        for name, lines in staged.lines.items():
            del lines[counts.get(name, 0) :]

    def _take_all_back(self, staged: Staged) -> None:
        self.take_back(({}, 0, 0))
        for ident, (count, at) in staged.touches.items():
            more, last = self._touches.get(ident, (0, at))
            self._touches[ident] = (count + more, max(at, last))

    def stage(self, name: str, line: bytes) -> None:
        staged = self.staged
        assert staged is not None
        staged.add(name, line)

    def _taking(self, ident: str) -> None:
        assert self.staged is not None
        self.staged.taken.append((ident, self.state.rows.get(ident), self.state.tombs.get(ident)))

    def put(self, records: Sequence[Record]) -> list[Record]:
        """All or none of them."""
        assert self.staged is not None
        mark = self.staged.mark()
        named, highest = self.format.name(records, self.state.highest)
        try:
            for record in named:
                self._put(record)
        except BaseException:
            self.take_back(mark)
            raise
        self.state.highest = max(highest, self.state.highest)
        return named

    def _put(self, record: Record) -> None:
        state, staged, ident = self.state, self.staged, record.id
        assert staged is not None
        if ident in state.rows:
            raise ConflictError(f"a memory with the id {ident} exists already")
        version = state.version(ident) + 1
        self._taking(ident)
        staged.records[ident] = record
        self.stage(self.format.file, self.format.line(record, version))
        plain = record.content if self.format.rewrites and not isinstance(record.content, str) else None
        stub = replace(record, content=plain, embedding=None, checksum="")
        state.add(stub, version, PENDING, PENDING)
        if ident not in state.rows:
            raise ConflictError(f"the id {ident} was deleted for good by another program; store it under another id")
        if rest := self.format.rest(record):
            version += 1
            self._change(state.rows[ident], rest, version)
        if record.embedding is not None:
            self._embed(record, version)

    def _change(self, row: Row, changed: Changed, version: int) -> None:
        ident = row.record.id
        self.stage(CHANGES, _encode(Change(ident, version, row.record.created_at, changed)) + b"\n")
        self.state.rows[ident] = replace(row, record=changed.onto(row.record), version=version)

    def _embed(self, record: Record, version: int) -> None:
        vector = Vector(record.id, version, record.embedding_model, record.embedding)
        self.stage(VECTORS, _encode(vector) + b"\n")
        row = self.state.rows[record.id]
        where = None if record.embedding is None else (PENDING, PENDING)
        stub = replace(row.record, embedding_model=record.embedding_model)
        self.state.rows[record.id] = replace(row, record=stub, vector=where, vector_version=version)

    def update(self, records: Sequence[Record]) -> None:
        for record in records:
            row = self._row(record.id)
            old = row.record
            new = {name: value for name in CHANGEABLE if (value := getattr(record, name)) != getattr(old, name)}
            vector = self._vector(row)
            if not new and vector == record.embedding and old.embedding_model == record.embedding_model:
                continue
            self._taking(record.id)
            version = self.state.version(record.id) + 1
            if new:
                self._change(row, Changed(**new), version)
            if vector != record.embedding or old.embedding_model != record.embedding_model:
                self._keep_content(row)
                assert self.staged is not None
                kept = self.staged.records.get(record.id, record)
                self.staged.records[record.id] = replace(kept, embedding=record.embedding)
                self._embed(record, version)

    def _keep_content(self, row: Row) -> None:
        """Staged records hold content; a memory that was stored before has its own in the file."""
        assert self.staged is not None
        if row.start == PENDING and row.record.id not in self.staged.records:
            fresh = self._fresh(row.record.id)
            if fresh is not None:
                self.staged.records[row.record.id] = fresh

    def delete(self, records: Sequence[Record], reason: str) -> None:
        at = utc_now()
        for record in records:
            row = self._row(record.id)
            self._taking(record.id)
            version = self.state.version(record.id)
            stone = Tombstone(record.id, at, reason, version)
            self.stage(TOMBSTONES, _encode(stone) + b"\n")
            self.state.bury(record.id, max(version, row.version))
            self._touches.pop(record.id, None)
            self._cache.pop(record.id, None)

    def _row(self, ident: str) -> Row:
        row = self.state.rows.get(ident)
        if row is None:
            raise NotFoundError(f"there is no memory {ident}")
        return row

    def touch(self, ident: str, at: datetime) -> None:
        """Kept in memory and written along with the next change: a recall must not cost a disk flush."""
        if ident not in self.state.rows:
            return
        if not self._touches:
            self._oldest_touch = time.monotonic()
        count, last = self._touches.get(ident, (0, at))
        self._touches[ident] = (count + 1, max(last, at))
        age = time.monotonic() - self._oldest_touch
        if len(self._touches) >= _TOUCHES_KEPT or age > self.config.performance.batch_write_interval_ms / 1000:
            self.settle()

    def settle(self) -> None:
        """Write the counted retrievals now. If they cannot be written they wait for the next time."""
        if not self._touches or self.staged is not None:
            return
        self._oldest_touch = time.monotonic()
        if not self.exists():
            self._touches.clear()
            return
        try:
            self.begin("touch")
            self.end(None)
        except (StoreError, OSError):
            self._log(logging.WARNING, "retrievals not counted yet")

    def _stage_touches(self) -> None:
        assert self.staged is not None
        self.staged.touches, self._touches = self._touches, {}
        for ident, (count, at) in self.staged.touches.items():
            if row := self.state.rows.get(ident):
                self._taking(ident)
                old = row.record
                changed = Changed(access_count=old.access_count + count, accessed_at=max(old.accessed_at, at))
                self._change(row, changed, self.state.version(ident) + 1)

    # Committing

    def _commit(self, staged: Staged) -> None:
        parts = staged.parts()
        try:
            if parts:
                self._check_room(parts)
                self._save(parts, staged)
        except BaseException:
            self._take_all_back(staged)
            raise
        self.staged = None
        if staged.dropped_undo:
            self.drop_undo(staged.dropped_undo)
        if self.format.rewrites and TOMBSTONES in parts and not self.unsaved:
            self.rewrite()

    def _save(self, parts: dict[str, bytes], staged: Staged) -> None:
        """Append durably. If the disk refuses for long, keep it in memory and say so."""
        if self.unsaved:  # they are written in the order in which they were made
            self._keep_unsaved(parts, staged, StoreError(self._unsaved_because))
            return
        concurrency, started = self.config.concurrency, time.perf_counter()
        for attempt in range(concurrency.max_retries + 1):
            try:
                self._settle_rows(parts, self._append(parts))
                self.meter.took(WRITE, started)
                return
            except OSError as error:
                problem = files.problem(error, self.folder)
                if isinstance(problem, ReadOnlyError):
                    raise problem from error
                if attempt == concurrency.max_retries:
                    self._keep_unsaved(parts, staged, problem)
                    return
                time.sleep(concurrency.retry_backoff_ms / 1000 * 2**attempt)

    def _append(self, parts: dict[str, bytes]) -> dict[str, int]:
        """Where each part begins. After an OSError nothing of it is left, or whoever comes next removes it."""
        self._cut()
        began: dict[str, tuple[int, int]] = {}
        starts: dict[str, int] = {}
        fresh = False
        for name in parts:
            file = self.files[name]
            fresh = not file.open() or fresh
            file.open(create=True)
            inode, size, _ = files.identity(file.path)
            began[name] = inode, size
            # A line that somebody left without its end must not become a part of ours.
            starts[name] = size + (size > 0 and file.read(size - 1, size) != b"\n")
        several = len(parts) - (AUDIT in parts) > 1 or parts.get(self.format.file, b"").count(b"\n") > 1
        if fresh:
            files.sync_folder(self.folder)
            files.sync_folder(os.path.dirname(self.files[self.format.file].path))
        self.lock.announce(began, {name: starts[name] + len(data) for name, data in parts.items()}, durable=several)
        try:
            for name, data in parts.items():
                self.files[name].append(data if starts[name] == began[name][1] else b"\n" + data)
            # The audit log follows without waiting: what it would lose in a power cut is found missing and added again.
            for name in parts if list(parts) == [AUDIT] else [name for name in parts if name != AUDIT]:
                self.files[name].sync()
        except OSError:
            self._uncut = {name: size for name, (_, size) in began.items()}
            self.lock.unsettled = True
            self._cut()
            raise
        return starts

    def _cut(self) -> None:
        """Take back what a failed write left behind. If that fails too, the note in the lock file stays."""
        for name, size in self._uncut.items():
            self.files[name].cut(size)
        if self._uncut:
            self._uncut = {}
            self.lock.unsettled = False

    def _settle_rows(self, parts: dict[str, bytes], starts: dict[str, int]) -> None:
        """Know where in the files the staged lines now stand, without reading them."""
        rows, name = self.state.rows, self.format.file
        self.state.lines += starts.get(name, 0) > self._at[name]  # an end was put to somebody's line
        for file in (name, VECTORS):
            at = starts.get(file, 0)
            for line in files.lines(parts.get(file, b""), at):
                if file == name:
                    self.state.lines += 1
                ident = _ident(line.data)
                row = rows.get(ident)
                if row is None:
                    continue
                if file == name and row.start == PENDING:
                    rows[ident] = replace(row, start=line.start, end=line.end, number=self.state.lines)
                elif file == VECTORS and row.vector is not None:
                    rows[ident] = replace(row, vector=(line.start, line.end))
        for file in self._state_files:
            if file in parts:
                self._at[file] = starts[file] + len(parts[file])
                self._ends[file] = parts[file][-_LAST_BYTES:]
                self._seen[file] = files.identity(self.files[file].path)

    def _keep_unsaved(self, parts: dict[str, bytes], staged: Staged, problem: StoreError) -> None:
        self.unsaved.append(parts)
        self._unsaved_records.update(staged.records)
        self._unsaved_because = str(problem)
        self._log(logging.ERROR, "write kept in memory", problem=str(problem))
        warnings.warn(
            f"{problem} It is kept in memory and written once that is possible; until then it is not durable",
            UnsavedWarning,
            stacklevel=2,
        )

    def _save_unsaved(self) -> None:
        """Try to write what was kept in memory; leave it there if that still fails."""
        while self.unsaved:
            try:
                self._append(self._as_of_now(self.unsaved[0]))
            except OSError as error:
                self._unsaved_because = str(files.problem(error, self.folder))
                return
            self.unsaved.pop(0)
        self._unsaved_records.clear()
        self.reset()
        self.reload()

    def _as_of_now(self, parts: dict[str, bytes]) -> dict[str, bytes]:
        """What was kept in memory, as it must be written after what others have written meanwhile."""
        return parts

    def unsaved_problem(self) -> str:
        return self._unsaved_because if self.unsaved else ""

    def _check_room(self, parts: dict[str, bytes]) -> None:
        limit = self.config.limit
        if limit is None or not parts.keys() & {self.format.file, CHANGES}:
            return
        adding = sum(len(data) for name, data in parts.items() if name not in (UNDO, AUDIT, VECTORS))
        used = self.used()
        if used + adding > limit:
            raise SizeLimitError(used, adding, limit, self.auto_compact())

    def auto_compact(self) -> bool:
        return self.config.storage.auto_compact

    def used(self) -> int:
        """The bytes that count towards the limit of a session."""
        counted = [self.files[name].path for name in (self.format.file, CHANGES, TOMBSTONES)]
        return sum(files.identity(path).size for path in (*counted, os.path.join(self.folder, "index.json")))

    def size(self) -> int:
        total = sum(files.identity(file.path).size for file in self.files.values())
        return total + sum(
            files.identity(os.path.join(self.folder, name)).size for name in ("index.json", "metadata.json")
        )

    # After a crash, and cleaning up

    def _recover(self, left: Note) -> None:
        """Finish or take back what a killed process was writing."""
        if not left.began:
            return
        now = {name: files.identity(self.files[name].path) for name in left.began if name in self.files}
        same = {name for name, (inode, _) in left.began.items() if name in now and now[name].inode == inode}
        missing = {name for name in same if now[name].size < left.ends[name]}
        if same != left.began.keys():
            pass  # somebody has put other files there
        elif missing - {AUDIT}:
            for name in same:
                if self.files[name].open():
                    self.files[name].cut(left.began[name][1])
            self._log(logging.WARNING, "unfinished write taken back", pid=left.pid)
        elif missing:
            self.unlogged = left
        self.reset()
        if self.unlogged is None:
            self.lock.settle()

    unlogged: Note | None = None
    """What a dead process wrote as a whole, but did not log."""

    def rewrite(self) -> int:
        """Write the files anew without what was deleted, each atomically. In a transaction, before anything is staged.

        Returns the bytes freed. A crash in between leaves old and new files that say the same.
        """
        before = sum(files.identity(self.files[name].path).size for name in self._state_files)
        self.meter.counts[COMPACTION] += 1
        memories: list[bytes] = []
        changes: list[bytes] = []
        vectors: list[bytes] = []
        for row in sorted(self.state.rows.values(), key=lambda row: row.start):
            record = self.record(row)
            if record is None:
                continue
            version = max(row.version, row.vector_version)
            memories.append(self.format.line(record, version))
            if rest := self.format.rest(record):
                changes.append(_encode(Change(record.id, 2, record.created_at, rest)) + b"\n")
                version = 2
            if record.embedding is not None:
                vectors.append(_encode(Vector(record.id, version, record.embedding_model, record.embedding)) + b"\n")
        new = {self.format.file: memories, VECTORS: vectors, CHANGES: changes, TOMBSTONES: []}
        highest = self.state.highest
        try:
            self.lock.quiet()
            files.remove_leftovers(os.path.dirname(self.files[self.format.file].path))
            files.remove_leftovers(self.folder)
            if highest:
                files.replace(os.path.join(self.folder, COUNTER), f"{highest}\n".encode())
            for name, lines in new.items():
                path = self.files[name].path
                if lines or os.path.exists(path):
                    files.replace(path, b"".join(lines))
        except OSError as error:
            raise files.problem(error, self.folder) from error
        finally:
            self.reset()
            self.reload()
        return before - sum(files.identity(self.files[name].path).size for name in self._state_files)

    def drop_undo(self, seqs: Sequence[int]) -> None:
        """Where undo is kept, remove it."""

    def close(self) -> None:
        for file in self.files.values():
            file.close()
        self.lock.forget()


_DAMAGED = object()
_named = msgspec.json.Decoder(Named).decode


def _ident(line: bytes) -> str:
    return _named(line).id if line else ""
