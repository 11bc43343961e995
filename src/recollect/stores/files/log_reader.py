"""Bringing an index up to date with the files of its log.

Whoever reads looks at the files first, and takes in what was added to them since. Files that are not those that were
read before, because a person or another program has replaced or edited them, are read from their beginning.
"""

from __future__ import annotations

import logging
import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress

import apsw

from recollect.stores.files import audit_file, files, snapshots
from recollect.stores.files.files import MISSING, AppendOnly, FileIdentity
from recollect.stores.files.fileset import AUDIT, COUNTER, TOMBSTONES
from recollect.stores.files.index_tables import FileRead, IndexTables
from recollect.stores.files.log import Log, Parts, log_enabled, tell
from recollect.stores.files.metrics import CORRUPTION
from recollect.stores.files.replay import PENDING, Replay, Row
from recollect.stores.files.snapshots import METADATA
from recollect.stores.port import Damage, Place
from recollect.stores.resident import columns_path
from recollect.stores.sqlite.database import Database
from recollect.stores.touches import Touches
from recollect.stores.transactions import StaleFileError
from recollect.values.errors import ConcurrencyError, RecollectError, SchemaError, StoreError
from recollect.values.record import SCHEMA_VERSION, Record

_TRIES = 50
_DAMAGED = (apsw.CorruptError, apsw.NotADBError)
_REFUSED = (apsw.IOError, apsw.FullError, apsw.CantOpenError, apsw.ReadOnlyError)
_LINES_AT_ONCE = 20_000
_MOMENT = 0.05
"""Seconds that a reader waits for the thread that writes to append its lines."""
_CATCH_UP_SECONDS = 0.25
"""Lock timeout of a reader that takes in lines which were acknowledged before the index has them."""
_UNREAD = FileRead(MISSING, 0, 0)


class LogReader(IndexTables):
    """An index that knows how far each file of its log was taken in."""

    def __init__(self, path: str, place: Place, touches: Touches, log: Log, in_memory: bool) -> None:
        self.log = log
        self.patience = log.config.patience.total
        self._seen: dict[str, FileIdentity] = {}
        """The files as they were when the index was last known to be current."""
        self.read: dict[str, FileRead] = {}
        """How far each file was taken in, as of the last transaction of this process."""
        self.seen_next: dict[str, FileIdentity] | None = None
        """In a transaction: the files that the index is current with once it is committed."""
        self._logged_damage: set[tuple[str, int]] = set()
        """Damage that was logged."""
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

    # Taking in what was added to the files

    @property
    def is_deferred(self) -> bool:
        """Whether this process has acknowledged something that the index lacks."""
        return False

    def refresh(self) -> None:
        if self.inside:
            return
        identities, is_deferred = self.identities(), self.is_deferred
        if identities == self._seen and not is_deferred:
            return
        if all(which == MISSING for which in identities.values()) and not self.current():
            raise StaleFileError
        if is_deferred or not self._is_current(identities, self.files_read()) or not self._is_as_checked():
            self._seen = {}
            self._refresh(identities, _MOMENT if is_deferred else 0.0)

    def _refresh(self, identities: Mapping[str, FileIdentity], seconds: float) -> None:
        is_empty = self.row("SELECT 1 FROM log_files LIMIT 1") is None
        try:
            super().begin(seconds=self.patience if is_empty else seconds)
            super().end(None)
        except StaleFileError:
            raise
        except ConcurrencyError:
            if is_empty:
                raise
            # Only a ledger acknowledges before the index has it.
            if self.log.session is not None and not self.in_memory and self._lacks_acknowledged(identities):
                self._catch_up_beside()
        except StoreError as error:
            if self.in_memory or not _is_of_disk(error):
                raise
            self._refuse(error)
            raise StaleFileError from error

    def _lacks_acknowledged(self, identities: Mapping[str, FileIdentity]) -> bool:
        """Whether the index lacks lines before those that somebody is just writing, and has not acknowledged yet."""
        note, read = self.log.fileset.note(), self.files_read()
        for name, which in identities.items():
            inode, size = note.began.get(name, (0, 0))
            file_read = read.get(name, _UNREAD)
            if file_read.identity != which and file_read.to < (size if inode == which.inode else which.size):
                return True
        return False

    def _catch_up_beside(self) -> None:
        """Take the lines in by connections of its own, while another thread of this process has the turn to write.

        Who holds the index for longer than a moment holds the log, too, and has committed all that was acknowledged
        before: then there is nothing to wait for. This thread may hold another place, so it must not wait for long.
        """
        beside = LogReader(self.path, self.place, Touches(), self.log, in_memory=False)
        beside.lock = threading.RLock()
        try:
            with suppress(ConcurrencyError):
                Database.begin(beside, seconds=_CATCH_UP_SECONDS)
                Database.end(beside, None)
        finally:
            beside.close()

    def entries_shown(self, written: int) -> int:
        """How many audit entries tell of what the index shows. The log has those of a writer before the index does."""
        return written if self.identities() == self._seen else min(written, self.fact("entries", written))

    def problem(self, error: Exception) -> RecollectError:
        """What is wrong with the index is no harm: it is made anew, or kept in memory where the disk refuses it."""
        translated = super().problem(error)
        if self.in_memory or isinstance(translated, StaleFileError):
            return translated
        of_another_version = isinstance(error, apsw.SQLError) and "no such" in str(error)
        if isinstance(error, _DAMAGED) or of_another_version:
            tell(self.place, logging.ERROR, "index made anew", problem=str(translated))
            remove_index(self.path)
            return StaleFileError(str(translated))
        if isinstance(error, _REFUSED):
            self._refuse(translated)
            return StaleFileError(str(translated))
        return translated

    def _refuse(self, error: Exception) -> None:
        """The disk does not take the index: from now on this process has one in memory."""
        tell(self.place, logging.WARNING, "index kept in memory", problem=str(error))
        self.log.refuse_index()

    def identities(self) -> dict[str, FileIdentity]:
        return self.log.fileset.identities(self.log.fileset.read)

    def _is_current(self, identities: dict[str, FileIdentity], read: Mapping[str, FileRead]) -> bool:
        if {name: file.identity for name, file in read.items()} != identities:
            return False
        self._seen = identities
        return True

    def take_in(self) -> None:
        """Whatever was added to the files, or all of them if they are not those that were read."""
        identities = self.identities()
        if {name: file.identity for name, file in self.read.items()} == identities:
            return  # nobody has written since this process did, and what it knows of the files is true
        self.read, self.facts = self.files_read(), None
        if self._is_current(identities, self.read) and self._is_as_checked():
            return
        identities, ends = self._complete_ends(identities)
        if self._continues(identities, ends):
            self.take_in_tails(identities, ends)
        else:
            self._take_in_all()
        self._tell_damage()

    def _take_in_all(self) -> None:
        self.clear()
        self.read = {}
        # Before the files are looked at: what the metadata say that they had, they have had by then.
        metadata = self.log.fileset.path(METADATA)
        covered = 0 if self.log.format.rewrites else snapshots.covered_sizes(metadata).get(TOMBSTONES, 0)
        self.set_facts(highest=self._counter(), checked=self.log.config.integrity.enable_checksums)
        self.take_in_tails(*self._complete_ends(self.identities()))
        for parts in self.log.unsaved:
            self._apply(parts)
        if covered > self.read[TOMBSTONES].to:
            self._leave_out_forgotten()

    def _counter(self) -> int:
        """The highest number that was given to a memory which is no longer in the file."""
        try:
            return int(files.read_whole(self.log.fileset.path(COUNTER)) or 0)
        except (StoreError, ValueError):
            return 0

    def _complete_ends(
        self, identities: dict[str, FileIdentity]
    ) -> tuple[dict[str, FileIdentity], dict[str, FileIdentity]]:
        """The files as they are now, and how far they are complete."""
        ends = identities
        for _ in range(_TRIES):
            note = self.log.fileset.note()
            again = self.identities()
            ends = self.log.fileset.complete(note, again)
            if again == identities:
                break
            identities = again
        return identities, ends

    def _continues(self, identities: Mapping[str, FileIdentity], ends: Mapping[str, FileIdentity]) -> bool:
        """Whether the files are those that were read before, with nothing but more at their ends.

        People and other programs replace files, shorten them, or write them anew in place.
        """
        for name, (before, to, crc, torn) in self.read.items():
            now = identities[name]
            if now == before:
                continue
            if torn or ends[name].size < to or (before != MISSING and before.inode != now.inode):
                return False
            if to and (before.size == now.size or zlib.crc32(self._bytes(name, now, 0, to)) != crc):
                return False
        return bool(self.read) and self._is_as_checked()

    def _is_as_checked(self) -> bool:
        """Whether lines were taken in under the same rule about checksums that is set now."""
        return self.fact("checked") == self.log.config.integrity.enable_checksums

    def take_in_tails(self, identities: Mapping[str, FileIdentity], ends: Mapping[str, FileIdentity]) -> None:
        """Tombstones first: what they tell of need not be stored before."""
        replay = self._replay()
        for name in sorted(self.log.fileset.read, key=lambda name: name != TOMBSTONES):
            _, start, crc, torn = self.read.get(name, _UNREAD)
            to = start
            if ends[name].size > start:
                data = self._bytes(name, identities[name], start, ends[name].size)
                for number, each in enumerate(files.lines(data, start), 1):
                    replay.read(name, each)
                    to, torn = (each.end, False) if each.whole else (to, True)
                    if number % _LINES_AT_ONCE == 0:
                        self.replayed(replay)
                        replay = self._replay()
                crc = zlib.crc32(data[: to - start], crc)
            # What is not complete yet must be looked at again, even if no byte is added to it.
            identity = identities[name] if ends[name] == identities[name] else FileIdentity(identities[name].inode, -1)
            self.read[name] = FileRead(identity, to, crc, torn)
        self.replayed(replay)
        self._files_noted()

    def _bytes(self, name: str, which: FileIdentity, start: int, end: int) -> bytes:
        """Of the file that was looked at, and of no other that has taken its path since."""
        file = AppendOnly(self.log.fileset.paths[name])
        try:
            if not file.open() or file.inode != which.inode:
                raise StaleFileError(f"{file.path} was replaced while it was read")
            return file.read(start, end)
        finally:
            file.close()

    def _files_noted(self) -> None:
        self.note_files(self.read)
        self.seen_next = {name: read.identity for name, read in self.read.items()}

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
            self.set_facts(unburied=len(lost))
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
            if key not in self._logged_damage:
                self._logged_damage.add(key)
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
            cached = {ident: cache[ident] for ident in ids if ident in cache}
        for ident in ids if debug else ():
            tell(self.place, logging.DEBUG, "cache hit" if ident in cached else "cache miss", id=ident)
        loaded = {
            record.id: record for record in self.load([ident for ident in dict.fromkeys(ids) if ident not in cached])
        }
        with self._cache_lock:
            for ident in dict.fromkeys(ids):
                if (record := cached.get(ident) or loaded.get(ident)) is not None:
                    cache[ident] = record
                    cache.move_to_end(ident)
            while len(cache) > size:
                cache.popitem(last=False)
        records = cached | loaded
        return [records[ident] for ident in dict.fromkeys(ids) if ident in records]

    # What is known of the files

    def sizes_read(self) -> dict[str, int]:
        """How far each file was taken in."""
        return {name: read.to for name, read in (self.read if self.inside else self.files_read()).items()}

    def known_sizes(self) -> dict[str, int]:
        """The sizes of the files when they were last looked at."""
        is_read = self.inside or self.is_deferred
        seen = {name: read.identity for name, read in self.read.items()} if is_read else self._seen
        return {name: max(which.size, 0) for name, which in seen.items()}

    def forget_files(self) -> None:
        """Have everything taken in anew from the files."""
        self.writer.execute("DELETE FROM log_files")
        self._seen, self.seen_next, self.read = {}, None, {}

    def rebuild(self) -> None:
        """Take everything in anew from the files."""
        self.forget_files()
        self.take_in()

    def rewritten(self, rows: Sequence[tuple[Row, Row]]) -> None:
        """The files were written anew with nothing but these memories: what is known, and what was written of each."""
        self.writer.execute("DELETE FROM tombs; DELETE FROM unburied; DELETE FROM damage").fetchall()
        for before, row in rows:
            if before.record != row.record:
                self.restate(before, row)
        self.put_lines(row for _, row in rows)
        self.set_facts(lines=len(rows), oldest_schema=SCHEMA_VERSION, unburied=0)
        self.read = {name: self._whole_file(name) for name in self.log.fileset.read}
        self._files_noted()

    def _whole_file(self, name: str) -> FileRead:
        identity = self.log.fileset.identity(name)
        return FileRead(identity, max(identity.size, 0), zlib.crc32(files.read_whole(self.log.fileset.paths[name])))

    def begun(self) -> None:
        self.take_in()

    def ended(self, committed: bool) -> None:
        super().ended(committed)
        # Not before it is committed: what is cached of these files must be as they are.
        if committed:
            self.note_seen()
        else:
            self._seen, self.read, self.facts, self.seen_next = {}, {}, None, None

    def note_seen(self) -> None:
        """After a commit."""
        if self.seen_next is not None:
            self._seen, self.seen_next = self.seen_next, None


def _is_of_disk(error: StoreError) -> bool:
    """Whether it is the disk that refuses, and not what is in the files."""
    return not isinstance(error, SchemaError)


def remove_index(path: str) -> None:
    """With what SQLite has beside it. Whoever has it open notices, and makes another."""
    for end in ("", "-wal", "-shm"):
        with suppress(OSError):
            os.unlink(path + end)
    with suppress(StoreError):
        columns_path.remove(path)
