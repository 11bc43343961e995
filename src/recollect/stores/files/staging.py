"""Transactions on the files of one place."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from recollect.errors import (
    ConcurrencyError,
    ConflictError,
    NotFoundError,
    ReadOnlyError,
    StoreError,
)
from recollect.record import SCHEMA_VERSION, Record, utc_now
from recollect.stores.files import files
from recollect.stores.files.book import CHANGES, TOMBSTONES, VECTORS, Staged
from recollect.stores.files.lines import CHANGEABLE, Change, Changed, Tombstone, Vector
from recollect.stores.files.lock import Note
from recollect.stores.files.metrics import CONTENTION
from recollect.stores.files.saving import SavedBook
from recollect.stores.files.state import PENDING, Row

_encode = msgspec.json.Encoder().encode
_TRIES = 50
_TOUCHES_KEPT = 256

log = logging.getLogger("recollect.store")
log.addHandler(logging.NullHandler())  # nothing on stderr unless the application asks for it


class StagedBook(SavedBook):
    """Transactions: what they change is seen at once by whoever is inside, and by others when it is saved."""

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
            try:
                left = self._acquire(operation)
                break
            except FileNotFoundError:
                self.lock.forget()
                files.make_folder(self.folder)
        else:
            raise StoreError(f"{self.folder} is removed as often as it is made")
        try:
            # What this process could not take back is in nobody's way as long as the note is still its own.
            if not (self._uncut and left.began and left.pid == os.getpid()):
                self._uncut = {}
                self._recover(left)
            self.refresh()
            self._prepare()
            # Another memory may get the id of one that is gone.
            self._touches = {ident: counted for ident, counted in self._touches.items() if ident in self.state.rows}
            self.staged = Staged()
        except BaseException as error:
            self.staged = None
            self._release()
            if isinstance(error, OSError):
                raise files.problem(error, self.folder) from error
            raise

    def _acquire(self, operation: str) -> Note:
        waits = self.lock.waits
        try:
            left = self.lock.acquire(operation)
            self._log(logging.DEBUG, "lock acquired", operation=operation)
            return left
        except ConcurrencyError as error:
            self._log(logging.WARNING, "lock timeout", problem=str(error))
            raise
        finally:
            if self.lock.waits > waits:
                self.meter.counts[CONTENTION] += 1

    def _prepare(self) -> None:
        if self.unsaved:
            self._save_unsaved()
        if not self.unsaved and (
            (self.format.rewrites and self.state.tombs) or self.state.oldest_schema < SCHEMA_VERSION
        ):
            self._tidy()

    def _tidy(self) -> None:
        """Write anew what should be. If the disk refuses that, it is done with one of the next writes."""
        try:
            self.rewrite()
        except ReadOnlyError:
            raise
        except StoreError as error:
            self._log(logging.WARNING, "not written anew yet", problem=str(error))

    def _release(self) -> None:
        try:
            self.lock.release()
            self._log(logging.DEBUG, "lock released")
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
        if self.format.rewrites and ident in state.tombs:
            raise StoreError(f"{self.folder}: {ident} cannot be stored again before the disk lets the old one go")
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
            old = self.touched(row.record)
            new = {name: value for name in CHANGEABLE if (value := getattr(record, name)) != getattr(old, name)}
            vector = self.vector(row)
            if not new and vector == record.embedding and old.embedding_model == record.embedding_model:
                continue
            self._taking(record.id)
            version = self.state.version(record.id) + 1
            if new.keys() & {"access_count", "accessed_at"} and (counted := self._touches.pop(record.id, None)):
                assert self.staged is not None
                self.staged.touches[record.id] = counted  # the new values go before, unless they are taken back
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

    def _with_touches(self, staged: Staged, parts: dict[str, bytes]) -> dict[str, bytes]:
        """Write the counted retrievals along with the rest, unless they would take the place over its limit.

        Not before the end: a compaction in the same transaction gives every line another place.
        """
        if not self._touches:
            return parts
        mark, touches = staged.mark(), self._touches
        for ident, (count, at) in touches.items():
            if row := self.state.rows.get(ident):
                self._taking(ident)
                old = row.record
                changed = Changed(access_count=old.access_count + count, accessed_at=max(old.accessed_at, at))
                self._change(row, changed, self.state.version(ident) + 1)
        more = staged.parts()
        if not self.has_room(more):
            self.take_back(mark)
            return parts
        staged.touches.update(touches)
        self._touches = {}
        return more

    def _commit(self, staged: Staged) -> None:
        parts = staged.parts()
        try:
            if parts:
                self._check_room(parts)
            if parts := self._with_touches(staged, parts):
                self._save(parts, staged)
        except BaseException:
            self._take_all_back(staged)
            raise
        self.staged = None
        if staged.dropped_undo:
            self.drop_undo(staged.dropped_undo)
        if self.format.rewrites and TOMBSTONES in parts and not self.unsaved:
            self._tidy()
