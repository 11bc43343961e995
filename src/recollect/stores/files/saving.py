"""Writing to the files of one place: durable appends, recovery after a crash, and rewriting."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from recollect.errors import (
    ReadOnlyError,
    SizeLimitError,
    StoreError,
    UnsavedWarning,
)
from recollect.stores.files import files
from recollect.stores.files.book import (
    AUDIT,
    CHANGES,
    COUNTER,
    LAST_BYTES,
    TOMBSTONES,
    UNDO,
    UNREAD,
    VECTORS,
    Book,
    Staged,
)
from recollect.stores.files.lines import Change, Named, Vector
from recollect.stores.files.lock import Note
from recollect.stores.files.metrics import COMPACTION, WRITE
from recollect.stores.files.state import PENDING

_encode = msgspec.json.Encoder().encode

log = logging.getLogger("recollect.store")
log.addHandler(logging.NullHandler())  # nothing on stderr unless the application asks for it


class SavedBook(Book):
    """Appends to the files durably, and finishes or takes back what a crash left."""

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
            if not file.open():
                fresh = file.open(create=True)
            inode, size, _ = file.identity()
            began[name] = inode, size
            # A line that somebody left without its end must not become a part of ours.
            torn = size > 0 and size != self._at.get(name) and file.read(size - 1, size) != b"\n"
            starts[name] = size + torn
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
                self._ends[file] = parts[file][-LAST_BYTES:]
                self._seen[file] = self.files[file].identity()

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
        if not self.has_room(parts):
            limit = self.config.limit or 0
            raise SizeLimitError(self.used(), _counted(parts), limit, self.auto_compact())

    def has_room(self, parts: dict[str, bytes]) -> bool:
        limit = self.config.limit
        if limit is None or not parts.keys() & {self.format.file, CHANGES}:
            return True
        return self.used() + _counted(parts) <= limit  # the sizes of the files are known: nobody else can write

    def auto_compact(self) -> bool:
        return self.config.storage.auto_compact

    def used(self) -> int:
        """The bytes that count towards the limit of a session."""
        counted = sum(self._seen[name].size for name in (self.format.file, CHANGES, TOMBSTONES) if name in self._seen)
        return counted + files.identity(os.path.join(self.folder, "index.json")).size

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
        memories: list[tuple[int, bytes]] = []
        changes: list[bytes] = []
        vectors: list[bytes] = []
        for row in list(self.state.rows.values()):
            record = self.record(row)
            if record is None:
                continue
            stored = row.record  # retrievals that are not written yet stay so: compaction must not make a place larger
            record = replace(record, access_count=stored.access_count, accessed_at=stored.accessed_at)
            version = max(row.version, row.vector_version)
            memories.append((row.start, self.format.line(record, version)))
            if rest := self.format.rest(record):
                changes.append(_encode(Change(record.id, 2, record.created_at, rest)) + b"\n")
                version = 2
            if record.embedding is not None:
                vectors.append(_encode(Vector(record.id, version, record.embedding_model, record.embedding)) + b"\n")
        lines = [line for _, line in sorted(memories, key=lambda one: one[0])]
        new = {self.format.file: lines, VECTORS: vectors, CHANGES: changes, TOMBSTONES: []}
        highest = self.state.highest
        try:
            self._cut()
            self.lock.quiet()
            files.remove_leftovers(os.path.dirname(self.files[self.format.file].path))
            files.remove_leftovers(self.folder)
            self._set_aside()
            if highest:
                files.replace(os.path.join(self.folder, COUNTER), f"{highest}\n".encode())
            for name, written in new.items():
                path = self.files[name].path
                if written or os.path.exists(path):
                    files.replace(path, b"".join(written))
        except OSError as error:
            raise files.problem(error, self.folder) from error
        finally:
            self.reset()
            self.reload()
        return before - sum(files.identity(self.files[name].path).size for name in self._state_files)

    def _set_aside(self) -> None:
        """Keep lines that could not be read, until compaction: where people write, one of them may be a slip."""
        name, path = self.format.file, os.path.join(self.folder, UNREAD)
        if not self.format.rewrites:
            return
        file = self.files[name]
        data = file.read(0, file.size) if file.open() else b""
        bad = {byte for damaged, byte in self.state.damage if damaged == name}
        unread = [line.data + b"\n" for line in files.lines(data) if line.start in bad or not line.whole]
        if unread:
            with suppress(FileNotFoundError), open(path, "rb") as before:
                unread.insert(0, before.read())
            files.replace(path, b"".join(unread))

    def drop_undo(self, seqs: Sequence[int]) -> None:
        """Where undo is kept, remove it."""


def _counted(parts: dict[str, bytes]) -> int:
    """The bytes that count towards the limit."""
    return sum(len(data) for name, data in parts.items() if name not in (UNDO, AUDIT, VECTORS))


_named = msgspec.json.Decoder(Named).decode


def _ident(line: bytes) -> str:
    return _named(line).id if line else ""
