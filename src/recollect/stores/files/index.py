"""The index of one place's log: an SQLite file that is derived from it, and may be deleted at any time.

Whoever reads brings it up to date first, by what was added to the files since. Whoever writes holds the log's lock and
the index's transaction together: the lines are appended and flushed first, then the index is committed. A process that
dies in between leaves an index that is behind, and the next one goes on from there. A process that alone stores new
memories commits them to the index later, many at once (`deferred_index.py`).

Locks, in the order in which they are taken: the turn of a thread (`Database.lock`), the log's lock file, SQLite's lock.
Who only brings the index up to date takes no lock of the log.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress

from recollect.stores.audit import Entry
from recollect.stores.fields import CHANGEABLE
from recollect.stores.files import aside, audit_file, files, unsaved
from recollect.stores.files.deferred_index import DeferredIndex
from recollect.stores.files.fileset import AUDIT, CHANGES, TOMBSTONES, VECTORS
from recollect.stores.files.index_tables import FileRead
from recollect.stores.files.lines import Change, Tombstone, Vector, line, named, without_reason
from recollect.stores.files.lock import LockNote
from recollect.stores.files.log import Log, Parts, tell
from recollect.stores.files.replay import FOREVER, Row, is_current
from recollect.stores.files.rewriting import rewrite
from recollect.stores.files.staging import Staging
from recollect.stores.files.verifying import verify
from recollect.stores.intents import IntentPart
from recollect.stores.port import Damage, Place
from recollect.stores.scope import let_go
from recollect.stores.sqlite.opening import BUSY_SECONDS
from recollect.stores.sqlite.place_file import MOST_CHANGES
from recollect.stores.tables.memories import no_memory
from recollect.stores.touches import Touches
from recollect.stores.undo import FieldValues
from recollect.values.errors import ConcurrencyError, ConflictError, ReadOnlyError, StoreError
from recollect.values.record import SCHEMA_VERSION, Record, from_micros, new_id, to_micros

_SET_VERSION = "UPDATE log_lines SET version = ? WHERE id = ?"
_TOUCH = "UPDATE memories SET access_count = ?, accessed_at = ? WHERE id = ?"


class PlaceIndex(DeferredIndex):
    """Also the log's lock, and the lines that a transaction stages."""

    def __init__(self, path: str, place: Place, touches: Touches, log: Log, in_memory: bool) -> None:
        self._left: LockNote | None = None
        """In a transaction that holds the log's lock: what its last holder has left."""
        self._abandoning = False
        self._parts: Parts | None = None
        """What is about to be appended, once that is settled."""
        self._untouched: list[tuple[int, int, int, str]] = []
        """Of memories whose counted retrievals are staged: count, time and version before."""
        super().__init__(path, place, touches, log, in_memory)

    @property
    def staging(self) -> Staging:
        staging = self.log.staging
        assert staging is not None, "not in a transaction"
        return staging

    def own_staging(self) -> Staging | None:
        """What this thread has staged, if it is in a transaction."""
        return self.log.staging if self.inside else None

    # Transactions

    def begin(self, *, seconds: float = BUSY_SECONDS, durable: bool = True, alone: bool = False) -> None:
        """Take the lock of the log as well, finish what a dead process left, and know all that is written."""
        if not self.lock.acquire(timeout=seconds):
            problem = f"{self.log.fileset.folder}: another thread wrote for too long; try again"
            tell(self.place, logging.WARNING, "lock timeout", problem=problem)
            raise ConcurrencyError(problem)
        try:
            may_sleep = alone and self.may_sleep()
            self._left = self.log.lock(seconds)
            if may_sleep and not self._left.began and self.is_alone():
                self._begin_asleep()
            else:
                super().begin(seconds=max(seconds, 1.0), durable=True)
        except BaseException:
            if self._left is not None and self.log.appender.lock.held:
                self._left = None
                self.log.unlock()
            raise
        finally:
            self.lock.release()

    def _begin_asleep(self) -> None:
        self.lock.acquire()
        try:
            self.sleep()
            if self.log.session is not None:
                self.log.session.check_settings()
            self.log.staging, self._parts, self._untouched = Staging(), None, []
        except BaseException:
            self._end(committed=False)
            raise

    def begun(self) -> None:
        left = self._left
        if left is None:
            super().begun()
            return
        try:
            outcome = self.log.appender.recover(left) if left.began else ""
            if outcome == "taken back":
                tell(self.place, logging.WARNING, "unfinished write taken back", pid=left.pid)
            self.take_in()
            self.commit_taken()
            if outcome == "unlogged":
                self._log_found(left)
            self._make_ready()
            self.log.staging, self._parts = Staging(), None
            self._stage_touches()
            self._trim_changes(MOST_CHANGES)
        except OSError as error:
            raise self.log.failure(error) from error

    def _log_found(self, left: LockNote) -> None:
        """Add the entry that a process died before writing, for what it did write."""
        appender, main = self.log.appender, self.log.format.file
        size = left.began[AUDIT][1]
        log, stones, memories = appender.file(AUDIT), appender.file(TOMBSTONES), appender.file(main)
        log.open(create=True)
        log.cut(size)
        created, deleted = (left.began.get(name, (0, FOREVER))[1] for name in (main, TOMBSTONES))
        written = (named(each.data) for each in files.lines(memories.read(created, left.ends.get(main, 0))))
        new = [ident for ident in written if self.row("SELECT 1 FROM memories WHERE id = ?", (ident,))]
        gone = [named(each.data) for each in files.lines(stones.read(deleted, left.ends.get(TOMBSTONES, 0)))]
        message = (
            f"found {len(new)} written and {len(gone)} forgotten by process {left.pid}, "
            "which ended before it could log that"
        )
        entry = Entry(0, new_id(), self.log.now(), "recover", message, None, {"created": new, "deleted": gone})
        _, logged = audit_file.sealed_line(entry, self.log.audit.last())
        appender.lock.announce(left.began, {**left.ends, AUDIT: size + len(logged)}, durable=False)
        log.append(logged)
        appender.lock.settle()

    def _make_ready(self) -> None:
        """Write what was put off: what the disk refused, and files that must be written anew."""
        log, session = self.log, self.log.session
        if session is not None:
            session.check_settings()
        if log.unsaved:
            self.write_unsaved()
        if any(log.undropped):
            with suppress(StoreError):
                log.drop_undo()
        if lost := self.unburied():
            self._bury_again(lost)
        old = self.oldest_schema < SCHEMA_VERSION
        if not log.unsaved and (old or (log.format.rewrites and self.row("SELECT 1 FROM tombs LIMIT 1"))):
            self._tidy()
            if old and session is not None and self.oldest_schema >= SCHEMA_VERSION:
                session.migrated(self)

    def _bury_again(self, lost: Mapping[str, int]) -> None:
        """Write tombstones in place of those that were lost: after this write nothing tells that they were."""
        at = self.log.now()
        stones = [Tombstone(ident, at, "its tombstone was lost", version) for ident, version in lost.items()]
        self.log.appender.append({TOMBSTONES: b"".join(map(line, stones))}, self.sizes_read())
        self.rebuild()

    def write_unsaved(self) -> None:
        """With the lock held: try to write what was kept in memory; leave it there if that still fails."""
        if self.log.write_unsaved(self.sizes_read()):
            unsaved.unwatch(self.log)
            self.rebuild()
            self.log.allow_index()

    def _tidy(self) -> None:
        """Write anew what should be. If the disk refuses that, it is done with one of the next writes."""
        try:
            rewrite(self)
        except ReadOnlyError:
            raise
        except StoreError as error:
            tell(self.place, logging.ERROR, "not written anew yet", problem=str(error))

    # Ending a transaction

    def savepoint(self, depth: int) -> None:
        super().savepoint(depth)
        self.staging.mark(depth)

    def release(self, depth: int, error: BaseException | None) -> None:
        if error is not None:
            self.staging.take_back(depth)
            self._forget_facts()
        super().release(depth, error)

    def take_back(self, depth: int) -> None:
        super().take_back(depth)
        self._forget_facts()
        if self.log.staging is not None:
            self.log.staging.take_back(depth)

    def _forget_facts(self) -> None:
        """After something was taken back. What is stored while the transaction is asleep changes none."""
        if not self.asleep:
            self.facts = None

    def intent(self) -> IntentPart | None:
        """What is about to be written; None if nothing is logged of it."""
        entries = [audit_file.entry_of(each) for each in self.staging.lines(AUDIT)]
        return IntentPart(*self.place, entries[0].seq - 1, [entry.id for entry in entries]) if entries else None

    def prepare(self) -> None:
        """Make sure that what was staged can be written. SizeLimitError if there is no room for it."""
        staging, session, sizes = self.staging, self.log.session, self.known_sizes()
        if session is not None and staging.touch_lines and not session.has_room(staging.parts(), sizes):
            self.unstage_touches()
        self._parts = staging.parts()
        if self._parts and session is not None:
            session.check_room(self._parts, sizes)

    def end(self, error: BaseException | None) -> None:
        """Append what was staged and commit the index, or forget both if there was an error."""
        problem: BaseException | None = None
        is_saved = False
        if error is None:
            try:
                is_saved = self._save()
            except BaseException as failure:
                problem = failure
        failed = error or problem
        if failed is None and not is_saved and not self.in_memory:
            failed = StoreError("the disk has refused it, and so the index does not have it")
        try:
            super().end(failed)
        except StoreError as failure:
            if not is_saved:
                raise
            self._refuse(failure)  # the log has it, and the index is brought up to date later
        if problem is not None:
            raise problem

    def _save(self) -> bool:
        """Whether the log has all of it; else it is kept in memory."""
        log, staging = self.log, self.staging
        if self._parts is None:
            self.prepare()
        parts = self._parts or {}
        if staging.is_touches_only and not log.unsaved:
            self._save_touches(parts)
            return True
        is_saved = not parts or log.save(parts, self.sizes_read())
        self._written = {}  # the counted retrievals are as safe as the rest
        if not is_saved:
            unsaved.watch(log)
            log.refuse_index(forever=True)
        elif parts:
            log.wrote = True
            logged = staging.lines(AUDIT)
            self._note_written(parts, audit_file.last_of(logged[-1])[0] if logged else None)
        if any(staging.purged):
            log.drop_unsaved_undo(staging.purged)
            log.undropped |= staging.purged
            with suppress(StoreError):  # logged; the next write tries again, and a compaction fails if it cannot
                log.drop_undo()
        if is_saved and log.format.rewrites and TOMBSTONES in parts:
            self._tidy()
        if parts and log.session is not None:
            log.session.written(self)
        return is_saved

    def _save_touches(self, parts: Parts) -> None:
        """Counts of retrievals may be lost: what the disk refuses of them is not kept as if it was a write."""
        if parts:
            try:
                self.log.appender.append(parts, self.sizes_read())
            except OSError as error:
                raise self.log.failure(error) from error
            self._note_appended(parts)
            if self.log.session is not None:
                self.log.session.written(self)
        self._written = {}

    def _note_written(self, parts: Parts, entries: int | None) -> None:
        """The log has these lines, and so many audit entries where some were added."""
        if self.asleep:
            self.defer(parts, entries)
            return
        if entries is not None:
            self.set_facts(entries=entries)
        self._note_appended(parts)

    def _note_appended(self, parts: Parts) -> None:
        """The index has what was appended. Where a line without its end stood before that, it is whole now."""
        appended = [name for name in parts if name in self.log.fileset.read]
        identities = {name: self.log.appender.file(name).identity() for name in appended}
        if any(identities[name].size != self.read[name].to + len(parts[name]) for name in appended):
            identities = self.identities()
            self.take_in_tails(identities, identities)
            return
        for name in appended:
            self.read[name] = FileRead(
                identities[name], identities[name].size, zlib.crc32(parts[name], self.read[name].crc)
            )
        self.note_files({name: self.read[name] for name in appended})
        self.seen_next = {name: read.identity for name, read in self.read.items()}
        if main := parts.get(self.log.format.file):
            self.set_facts(lines=self.fact("lines") + main.count(b"\n"))

    def leave(self) -> None:
        left, self._left = self._left, None
        if left is not None:
            self.log.staging, self._parts = None, None
            if self._abandoning:
                self.log.appender.let_go()
            else:
                self.log.unlock()
        super().leave()

    def abandon(self) -> None:
        """What was being written is left to whoever comes next, as if this process had died."""
        if self.lock.acquire(blocking=False):  # else another thread has it
            self._abandoning = True
            try:
                super().abandon()
            finally:
                self._abandoning = False
                self.log.staging, self._parts, self._left = None, None, None
                self.log.appender.let_go()
                let_go(self.lock)

    # Memories

    def put(self, records: Sequence[Record]) -> Sequence[Record]:
        log, staging = self.log, self.staging
        number = self.fact("lines") + len(staging.lines(log.format.file)) + 1
        if self.asleep and self.are_new(records):
            self.add_rows([self._stage(record, 1, at) for at, record in enumerate(records, number)])
            return list(records)
        highest = self.fact("highest")
        if log.format.rewrites:  # a person may have removed the line of the last number
            highest = max(highest, log.audit.highest(log.format.number))
        records, highest = log.format.name(records, highest)
        tombs = {record.id: self._tomb_below(record.id) for record in records} if self._any_tombs() else {}
        super().put(records)
        rows = [self._stage(record, tombs.get(record.id, 0) + 1, at) for at, record in enumerate(records, number)]
        self.put_lines(rows)
        if highest:
            self.set_facts(highest=highest)
        return records

    def _any_tombs(self) -> bool:
        return self.row("SELECT 1 FROM tombs LIMIT 1") is not None

    def _tomb_below(self, ident: str) -> int:
        tomb = self.tomb(ident)
        if tomb and self.log.format.rewrites:
            folder = self.log.fileset.folder
            raise StoreError(f"{folder}: {ident} cannot be stored again before the disk lets the old one go")
        if tomb >= FOREVER - 1:
            raise ConflictError(f"the id {ident} was deleted for good by another program; store it under another id")
        return tomb

    def _stage(self, record: Record, version: int, number: int) -> Row:
        """The lines of a new memory."""
        format, staging = self.log.format, self.staging
        own, vector_version = format.line(record, version), 0
        staging.add(format.file, own)
        if rest := format.rest(record):
            version += 1
            staging.add(CHANGES, line(Change(record.id, version, record.created_at, rest)))
        if record.embedding is not None:
            vector_version = version
            staging.add(VECTORS, line(Vector(record.id, version, record.embedding_model, record.embedding)))
        return Row(record, version, vector_version, number, len(own))

    def update(self, records: Sequence[Record]) -> None:
        for record in records:
            old = self.known_row(record.id)
            if old is None:
                raise no_memory(record.id)
            new = {name: value for name in CHANGEABLE if (value := getattr(record, name)) != getattr(old.record, name)}
            if not new:
                continue
            if new.keys() & {"access_count", "accessed_at"}:
                new |= {"access_count": record.access_count, "accessed_at": record.accessed_at}
            version = self.version(record.id) + 1
            self.staging.add(CHANGES, line(Change(record.id, version, old.record.created_at, FieldValues(**new))))
            super().update([record])
            self._set_version(record.id, version)

    def _set_version(self, ident: str, version: int) -> None:
        self.writer.execute(_SET_VERSION, (version, ident))

    def embed(self, model: str | None, vectors: Mapping[str, bytes]) -> None:
        """Those that are gone are passed over."""
        stored_ids = [ident for ident in vectors if self.row("SELECT 1 FROM log_lines WHERE id = ?", (ident,))]
        versions = {ident: self.version(ident) + 1 for ident in stored_ids}
        super().embed(model, {ident: vectors[ident] for ident in stored_ids})
        for ident, version in versions.items():
            self.staging.add(VECTORS, line(Vector(ident, version, model, vectors[ident])))
            self.writer.execute("UPDATE log_lines SET vector_version = ? WHERE id = ?", (version, ident))

    def delete(self, ids: Sequence[str], reason: str = "") -> None:
        at, versions = self.log.now(), {ident: self.version(ident) for ident in ids}
        super().delete(ids)
        for ident, version in versions.items():
            self.staging.add(TOMBSTONES, line(Tombstone(ident, at, reason, version)))
            self.writer.execute("DELETE FROM log_lines WHERE id = ?", (ident,))
        self.bury(versions.items())

    # Retrievals

    def _stage_touches(self) -> None:
        """Write those that were counted before along with what comes."""
        self._written, self._untouched = self.touches.take(), []
        counts: list[tuple[int, int, str]] = []
        versions: list[tuple[int, str]] = []
        for ident, count, accessed, created, own, vector in self.counts(list(self._written)):
            touched = self._written[ident]
            at, version = max(from_micros(accessed), touched.at), max(own, vector, self.tomb(ident)) + 1
            changed = FieldValues(access_count=count + touched.times, accessed_at=at)
            self.staging.add(CHANGES, line(Change(ident, version, from_micros(created), changed)))
            counts.append((count + touched.times, to_micros(at), ident))
            versions.append((version, ident))
            self._untouched.append((count, accessed, own, ident))
        self.writer.executemany(_TOUCH, counts)
        self.writer.executemany(_SET_VERSION, versions)
        self.staging.touch_lines = len(self._untouched)

    def unstage_touches(self) -> None:
        """They wait further: the place must not become larger by them."""
        for count, accessed, version, ident in self._untouched:
            self.writer.execute(_TOUCH, (count, accessed, ident))
            self._set_version(ident, version)
        self._untouched = []
        self.staging.drop_touches()
        written, self._written = self._written, {}
        self.touches.put_back(written)

    # Erasing

    def purge_unsaved(self) -> None:
        """Forget whatever no file has yet of memories and things that are deleted: it must not be written anywhere."""
        self.log.unbury(saved=False)
        self.log.unsaved = [
            {name: self._purged(name, data) if name in self.log.fileset.read else data for name, data in parts.items()}
            for parts in self.log.unsaved
        ]

    def _purged(self, name: str, data: bytes) -> bytes:
        if name == TOMBSTONES:  # they are needed, but not the reasons, which a person has written
            return b"".join(without_reason(each.data) for each in files.lines(data))
        current = (each for each in files.lines(data) if is_current(name, each.data, self, self.thing_version))
        return b"".join(each.data + b"\n" for each in current)

    def damage(self) -> list[Damage]:
        log = self.log
        return [*verify(log.place, log.fileset, log.format), *aside.damage(log.place, log.fileset, log.format)]
