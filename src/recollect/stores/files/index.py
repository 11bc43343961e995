"""The index of one place's log: an SQLite file that is derived from it, and may be deleted at any time.

Whoever reads brings it up to date first, by what was added to the files since. Whoever writes holds the log's lock and
the index's transaction together: the lines are appended and flushed first, then the index is committed. A process that
dies in between leaves an index that is behind, and the next one goes on from there.

Locks, in the order in which they are taken: the turn of a thread (`Database.lock`), the log's lock file, SQLite's lock.
Who only brings the index up to date takes no lock of the log.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress

from recollect.stores.audit import Entry
from recollect.stores.fields import CHANGEABLE
from recollect.stores.files import aside, audit_file, files, snapshots, unsaved
from recollect.stores.files.files import MISSING, AppendOnly, Identity
from recollect.stores.files.fileset import AUDIT, CHANGES, COUNTER, TOMBSTONES, VECTORS
from recollect.stores.files.index_tables import FileRead, IndexTables
from recollect.stores.files.lines import Change, Changed, Tombstone, Vector, line, named, without_reason
from recollect.stores.files.lock import LockNote
from recollect.stores.files.log import Log, Parts, log_enabled, tell
from recollect.stores.files.metrics import CORRUPTION
from recollect.stores.files.replay import FOREVER, PENDING, Replay, Row, is_current
from recollect.stores.files.rewriting import rewrite
from recollect.stores.files.snapshots import METADATA
from recollect.stores.files.staging import Staging
from recollect.stores.files.verifying import verify
from recollect.stores.intents import Part
from recollect.stores.port import Damage, Place
from recollect.stores.scope import let_go
from recollect.stores.sqlite.opening import BUSY_SECONDS, MovedError
from recollect.stores.sqlite.place_file import MOST_CHANGES
from recollect.stores.tables.memories import no_memory
from recollect.stores.touches import Touches
from recollect.values.errors import ConcurrencyError, ConflictError, ReadOnlyError, SchemaError, StoreError
from recollect.values.record import SCHEMA_VERSION, Record, from_micros, new_id, to_micros

_TRIES = 50
_LAST_BYTES = 64
_LINES_AT_ONCE = 5000
_TOUCHED = "SELECT access_count, accessed_at, created_at FROM memories WHERE id = ?"
_TOUCH = "UPDATE memories SET access_count = ?, accessed_at = ? WHERE id = ?"


class PlaceIndex(IndexTables):
    """Also the log's lock, and the lines that a transaction stages."""

    def __init__(self, path: str, place: Place, touches: Touches, log: Log, in_memory: bool) -> None:
        self.log = log
        self.patience = log.config.patience.total
        self._seen: dict[str, Identity] = {}
        """The files as they were when the index was last known to be current."""
        self._read: dict[str, FileRead] = {}
        """In a transaction: how far each file was taken in."""
        self._left: LockNote | None = None
        """In a transaction that holds the log's lock: what its last holder has left."""
        self._abandoning = False
        self._parts: Parts | None = None
        """What is about to be appended, once that is settled."""
        self._told: set[tuple[str, int]] = set()
        """Damage that was logged."""
        self._untouched: list[tuple[int, int, int, str]] = []
        """Of memories whose counted retrievals are staged: count, time and version before."""
        self._cache_lock = threading.Lock()
        self._cache: OrderedDict[str, Record] = OrderedDict()
        self._cached_of: object = None
        """The files as they were when the cache was begun: it is of no other."""
        super().__init__(path, place, touches, in_memory)
        # A handle may be closed and another opened while a thread still writes by the first.
        self.lock = log.turn

    def current(self) -> bool:
        return super().current() and self.in_memory == self.log.index_refused

    @property
    def busy(self) -> bool:
        """Whether some thread reads or writes just now, or something is kept in memory only."""
        return super().busy or bool(self.log.unsaved)

    @property
    def staging(self) -> Staging:
        staging = self.log.staging
        assert staging is not None, "not in a transaction"
        return staging

    def mine(self) -> Staging | None:
        """What this thread has staged, if it is in a transaction."""
        return self.log.staging if self.inside else None

    # Taking in what was added to the files

    def refresh(self) -> None:
        if self.inside:
            return
        there = self._identities()
        if there == self._seen:
            return
        if all(which == MISSING for which in there.values()) and not self.current():
            raise MovedError
        if not self._is_current(there, self.files_read()) or not self._is_as_checked():
            self._seen = {}
            self._refresh()

    def _refresh(self) -> None:
        is_empty = self.row("SELECT 1 FROM log_files LIMIT 1") is None
        try:
            super().begin(seconds=self.patience if is_empty else 0.0)
            super().end(None)
        except MovedError:
            raise
        except ConcurrencyError:
            if is_empty:
                raise
            # Somebody writes, who brings the index up to date before they say that they have written.
        except StoreError as error:
            if self.in_memory or not _is_of_disk(error):
                raise
            self._refuse(error)
            raise MovedError from error

    def _refuse(self, error: Exception) -> None:
        """The disk does not take the index: from now on this process has one in memory."""
        tell(self.place, logging.WARNING, "index kept in memory", problem=str(error))
        self.log.refuse_index()

    def _identities(self) -> dict[str, Identity]:
        return self.log.fileset.identities(self.log.fileset.read)

    def _is_current(self, there: dict[str, Identity], read: Mapping[str, FileRead]) -> bool:
        if {name: file.there for name, file in read.items()} != there:
            return False
        self._seen = there
        return True

    def _take_in(self) -> None:
        """Whatever was added to the files, or all of them if they are not those that were read."""
        self._read, there = self.files_read(), self._identities()
        if self._is_current(there, self._read) and self._is_as_checked():
            return
        there, ends = self._complete_ends(there)
        if self._continues(there, ends):
            self._take_in_tails(there, ends)
        else:
            self._take_in_all()
        self._tell_damage()

    def _take_in_all(self) -> None:
        self.clear()
        self._read = {}
        # Before the files are looked at: what the metadata say that they had, they have had by then.
        metadata = self.log.fileset.path(METADATA)
        covered = 0 if self.log.format.rewrites else snapshots.covered_sizes(metadata).get(TOMBSTONES, 0)
        self.set_facts(highest=self._counter(), checked=self.log.config.integrity.enable_checksums)
        self._take_in_tails(*self._complete_ends(self._identities()))
        for parts in self.log.unsaved:
            self._apply(parts)
        if covered > self._read[TOMBSTONES].to:
            self._leave_out_forgotten()

    def _counter(self) -> int:
        """The highest number that was given to a memory which is no longer in the file."""
        try:
            return int(files.read_whole(self.log.fileset.path(COUNTER)) or 0)
        except (StoreError, ValueError):
            return 0

    def _complete_ends(self, there: dict[str, Identity]) -> tuple[dict[str, Identity], dict[str, Identity]]:
        """The files as they are now, and how far they are complete."""
        ends = there
        for _ in range(_TRIES):
            note = self.log.fileset.note()
            again = self._identities()
            ends = self.log.fileset.complete(note, again)
            if again == there:
                break
            there = again
        return there, ends

    def _continues(self, there: Mapping[str, Identity], ends: Mapping[str, Identity]) -> bool:
        """Whether the files are those that were read before, with nothing but more at their ends.

        People and other programs replace files, shorten them, or write them anew in place.
        """
        for name, (known, to, tail) in self._read.items():
            now = there[name]
            if (known != MISSING and known.inode != now.inode) or ends[name].size < to:
                return False
            if known.size == now.size and known.changed != now.changed:
                return False
            if tail and files.read_part(self.log.fileset.paths[name], to - len(tail), to) != tail:
                return False
        return bool(self._read) and self._is_as_checked()

    def _is_as_checked(self) -> bool:
        """Whether lines were taken in under the same rule about checksums that is set now."""
        return self.fact("checked") == self.log.config.integrity.enable_checksums

    def _take_in_tails(self, there: Mapping[str, Identity], ends: Mapping[str, Identity]) -> None:
        """Tombstones first: what they tell of need not be stored before."""
        replay = self._replay()
        for name in sorted(self.log.fileset.read, key=lambda name: name != TOMBSTONES):
            _, start, tail = self._read.get(name, FileRead(MISSING, 0, b""))
            to = start
            if ends[name].size > start:
                data = self._bytes(name, there[name], start, ends[name].size)
                for number, each in enumerate(files.lines(data, start), 1):
                    replay.read(name, each)
                    to = each.end if each.whole else to
                    if number % _LINES_AT_ONCE == 0:
                        self.replayed(replay)
                        replay = self._replay()
                tail = data[: to - start][-_LAST_BYTES:] if to > start else tail
            # What is not complete yet must be looked at again, even if no byte is added to it.
            known = there[name] if ends[name] == there[name] else Identity(there[name].inode, -1)
            self._read[name] = FileRead(known, to, tail)
        self.replayed(replay)
        self._files_noted()

    def _bytes(self, name: str, which: Identity, start: int, end: int) -> bytes:
        """Of the file that was looked at, and of no other that has taken its path since."""
        file = AppendOnly(self.log.fileset.paths[name])
        try:
            if not file.open() or file.inode != which.inode:
                raise MovedError(f"{file.path} was replaced while it was read")
            return file.read(start, end)
        finally:
            file.close()

    def _files_noted(self) -> None:
        self.note_files(self._read)
        self._seen = {name: read.there for name, read in self._read.items()}

    def _leave_out_forgotten(self) -> None:
        """If tombstones.jsonl has lost its end, what it deleted would be back: the audit log knows better."""
        stored = audit_file.last_changes(files.read_whole(self.log.fileset.paths[AUDIT]).splitlines())
        rows = self.rows("SELECT id, max(version, vector_version) FROM log_lines")
        lost = [(ident, version) for ident, version in rows if stored.get(ident) is False]
        replay = self._replay()
        for ident, version in lost:
            replay.bury(ident, version)
        self.replayed(replay)
        if lost:
            self.writer.executemany("INSERT INTO unburied VALUES (?, ?)", lost)
            problem = f"has lost its end: {len(lost):,} left out, which the audit log says were forgotten"
            self.add_damage({(TOMBSTONES, PENDING): Damage(TOMBSTONES, problem)})

    def _replay(self) -> Replay:
        replay = Replay(self.place, self.log.format, self)
        replay.lines = self.fact("lines")
        return replay

    def _apply(self, parts: Parts) -> None:
        """What could not be written, as if it was."""
        replay = self._replay()
        for name in self.log.fileset.read:
            for each in files.lines(parts.get(name, b"")):
                replay.read(name, each._replace(start=PENDING, end=PENDING))
        self.replayed(replay)

    def _tell_damage(self) -> None:
        """Count and log each once."""
        for key, damage in self.damaged_lines().items():
            if key not in self._told:
                self._told.add(key)
                self.log.meter.counts[CORRUPTION] += 1
                tell(self.place, logging.ERROR, "corruption detected", where=damage.where, problem=damage.problem)

    # The entries that were used last

    def cached(self, ids: Sequence[str]) -> list[Record]:
        """Memories by id, from the cache where they are in it."""
        size, debug = self.log.config.performance.cache_size, log_enabled(logging.DEBUG)
        with self._cache_lock:
            if self._cached_of is not self._seen:
                self._cached_of, self._cache = self._seen, OrderedDict()
            cache = self._cache
            known = {ident: cache[ident] for ident in ids if ident in cache}
        for ident in ids if debug else ():
            tell(self.place, logging.DEBUG, "cache hit" if ident in known else "cache miss", id=ident)
        loaded = {
            record.id: record for record in self.load([ident for ident in dict.fromkeys(ids) if ident not in known])
        }
        with self._cache_lock:
            for ident in dict.fromkeys(ids):
                if (record := known.get(ident) or loaded.get(ident)) is not None:
                    cache[ident] = record
                    cache.move_to_end(ident)
            while len(cache) > size:
                cache.popitem(last=False)
        found = known | loaded
        return [found[ident] for ident in dict.fromkeys(ids) if ident in found]

    # Transactions

    def begin(self, *, seconds: float = BUSY_SECONDS, durable: bool = True) -> None:
        """Take the lock of the log as well, finish what a dead process left, and know all that is written."""
        if not self.lock.acquire(timeout=seconds):
            problem = f"{self.log.fileset.folder}: another thread wrote for too long; try again"
            tell(self.place, logging.WARNING, "lock timeout", problem=problem)
            raise ConcurrencyError(problem)
        try:
            self._left = self.log.lock(seconds)
            super().begin(seconds=max(seconds, 1.0), durable=True)
        except BaseException:
            if self._left is not None and self.log.appender.lock.held:
                self._left = None
                self.log.unlock()
            raise
        finally:
            self.lock.release()

    def begun(self) -> None:
        left = self._left
        if left is None:
            self._take_in()
            return
        try:
            outcome = self.log.appender.recover(left) if left.began else ""
            if outcome == "taken back":
                tell(self.place, logging.WARNING, "unfinished write taken back", pid=left.pid)
            self._take_in()
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
        if log.undropped:
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

    def sizes_read(self) -> dict[str, int]:
        """How far each file was taken in."""
        return {name: read.to for name, read in (self._read if self.inside else self.files_read()).items()}

    def known_sizes(self) -> dict[str, int]:
        """The sizes of the files when they were last looked at."""
        return {name: max(which.size, 0) for name, which in self._seen.items()}

    def forget_files(self) -> None:
        """Have everything taken in anew from the files."""
        self.writer.execute("DELETE FROM log_files")
        self._seen = {}

    def rebuild(self) -> None:
        """Take everything in anew from the files."""
        self.forget_files()
        self._take_in()

    def _tidy(self) -> None:
        """Write anew what should be. If the disk refuses that, it is done with one of the next writes."""
        try:
            rewrite(self)
        except ReadOnlyError:
            raise
        except StoreError as error:
            tell(self.place, logging.ERROR, "not written anew yet", problem=str(error))

    def rewritten(self, rows: Sequence[tuple[Row, Row]]) -> None:
        """The files were written anew with nothing but these memories: what is known, and what was written of each."""
        self.writer.execute("DELETE FROM tombs; DELETE FROM unburied; DELETE FROM damage").fetchall()
        for known, row in rows:
            if known.record != row.record:
                self.restate(known, row)
        self.put_lines(row for _, row in rows)
        self.set_facts(lines=len(rows), oldest_schema=SCHEMA_VERSION)
        self._read = {name: self._whole_file(name) for name in self.log.fileset.read}
        self._files_noted()

    def _whole_file(self, name: str) -> FileRead:
        there = self.log.fileset.identity(name)
        size = max(there.size, 0)
        tail = files.read_part(self.log.fileset.paths[name], max(0, size - _LAST_BYTES), size)
        return FileRead(there, size, tail)

    # Ending a transaction

    def savepoint(self, depth: int) -> None:
        super().savepoint(depth)
        self.staging.mark(depth)

    def release(self, depth: int, error: BaseException | None) -> None:
        if error is not None:
            self.staging.take_back(depth)
        super().release(depth, error)

    def take_back(self, depth: int) -> None:
        super().take_back(depth)
        if self.log.staging is not None:
            self.log.staging.take_back(depth)

    def intent(self) -> Part | None:
        """What is about to be written; None if nothing is logged of it."""
        entries = [audit_file.entry_of(each) for each in self.staging.lines(AUDIT)]
        return Part(*self.place, entries[0].seq - 1, [entry.id for entry in entries]) if entries else None

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
        is_saved = not parts or log.save(parts, self.sizes_read())
        self._written = {}  # the counted retrievals are as safe as the rest
        if not is_saved:
            unsaved.watch(log)
            log.refuse_index(forever=True)
        elif parts:
            log.wrote = True
            self._note_appended(parts)
        if staging.dropped_undo:
            log.drop_unsaved_undo(staging.dropped_undo)
            log.undropped |= staging.dropped_undo.keys()
            with suppress(StoreError):  # logged; the next write tries again, and a compaction fails if it cannot
                log.drop_undo()
        if is_saved and log.format.rewrites and TOMBSTONES in parts:
            self._tidy()
        if parts and log.session is not None:
            log.session.written(self)
        return is_saved

    def _note_appended(self, parts: Parts) -> None:
        appended = [name for name in parts if name in self.log.fileset.read]
        for name in appended:
            there = self.log.appender.file(name).identity()
            self._read[name] = FileRead(there, there.size, parts[name][-_LAST_BYTES:])
            self._seen = {**self._seen, name: there}
        self.note_files({name: self._read[name] for name in appended})
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
        highest = self.fact("highest")
        if log.format.rewrites:  # a person may have removed the line of the last number
            highest = max(highest, log.audit.highest(log.format.number))
        records, highest = log.format.name(records, highest)
        tombs = {record.id: self._tomb_below(record.id) for record in records} if self._any_tombs() else {}
        super().put(records)
        number = self.fact("lines") + len(staging.lines(log.format.file)) if len(records) == 1 else 0
        self.put_lines([self._stage(record, tombs.get(record.id, 0) + 1, number + 1) for record in records])
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
            self.staging.add(CHANGES, line(Change(record.id, version, old.record.created_at, Changed(**new))))
            super().update([record])
            self._set_version(record.id, version)

    def _set_version(self, ident: str, version: int) -> None:
        self.writer.execute("UPDATE log_lines SET version = ? WHERE id = ?", (version, ident))

    def embed(self, model: str | None, vectors: Mapping[str, bytes]) -> None:
        """Those that are gone are passed over."""
        known = [ident for ident in vectors if self.row("SELECT 1 FROM log_lines WHERE id = ?", (ident,))]
        versions = {ident: self.version(ident) + 1 for ident in known}
        super().embed(model, {ident: vectors[ident] for ident in known})
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
        for ident, touched in self._written.items():
            if (row := self.row(_TOUCHED, (ident,))) is None:
                continue
            count, accessed, created = row
            at, before = max(from_micros(accessed), touched.at), self.own_version(ident)
            version = self.version(ident) + 1
            changed = Changed(access_count=count + touched.times, accessed_at=at)
            self.staging.add(CHANGES, line(Change(ident, version, from_micros(created), changed)))
            self.writer.execute(_TOUCH, (count + touched.times, to_micros(at), ident))
            self._set_version(ident, version)
            self._untouched.append((count, accessed, before, ident))
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


def _is_of_disk(error: StoreError) -> bool:
    """Whether it is the disk that refuses, and not what is in the files."""
    return not isinstance(error, SchemaError)
