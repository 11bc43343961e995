"""Reading the files of one place into a state, and keeping it current with what is added to them."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from recollect.stores.files import files, snapshots
from recollect.stores.files.audit_file import last_changes, undo_heads
from recollect.stores.files.files import MISSING, AppendOnly, Identity
from recollect.stores.files.fileset import AUDIT, COUNTER, TOMBSTONES, UNDO, UNREAD, VECTORS, FileSet
from recollect.stores.files.formats import Format
from recollect.stores.files.lines import without_reason
from recollect.stores.files.metrics import CORRUPTION, Meter
from recollect.stores.files.snapshots import METADATA
from recollect.stores.files.state import PENDING, UNREADABLE, Row, State, decode_vector
from recollect.stores.port import Damage, Place
from recollect.values.errors import StoreError

_TRIES = 50
_LAST_BYTES = 64

log = logging.getLogger("recollect.store")
log.addHandler(logging.NullHandler())  # nothing on stderr unless the application asks for it

Parts = Mapping[str, bytes]
"""What is to be appended to each file."""


class MovedError(StoreError):
    """Files were replaced while they were read; trying again is safe."""


def tell(place: Place, level: int, message: str, **details: Any) -> None:
    """Levels and names are those of the ledger document."""
    if log.isEnabledFor(level):
        extra = {"component": "MemoryManager", "session_id": place.workspace, "metadata": details}
        log.log(level, message, extra=extra)


def tell_failure(place: Place, problem: StoreError) -> StoreError:
    """What the system refused, and the caller is about to be told."""
    tell(place, logging.ERROR, "I/O failure", problem=str(problem))
    return problem


class Reader:
    """Whoever calls holds the guard of the book. Nothing here waits for anybody."""

    def __init__(self, place: Place, fileset: FileSet, format: Format, meter: Meter, cache_size: int) -> None:
        self._place = place
        self._fileset = fileset
        self._format = format
        self._meter = meter
        self._cache_size = cache_size
        self._files = {name: AppendOnly(fileset.paths[name]) for name in fileset.read}
        self._compared: object = None
        self._covered = 0
        """How long tombstones.jsonl was when the session's metadata was written."""
        """The generation whose files were compared with the session's metadata."""
        self._told: set[tuple[str, int]] = set()
        """Damage that was logged."""
        self.unsaved: list[Parts] = []
        """What the disk has refused so far, in the order in which it was made."""
        self.reset()

    def reset(self) -> None:
        """Know nothing of the files."""
        self.state = State(self._place, self._format, self._counter())
        self.generation = object()
        """Another object whenever the state was read anew."""
        self.revision = 0
        """Another number whenever the state has changed."""
        self.at: dict[str, int] = dict.fromkeys(self._fileset.read, 0)
        """How far each file was read."""
        self.seen: dict[str, Identity] = {}
        self._ends: dict[str, bytes] = {}
        """The last bytes that were read of each file."""
        self._contents: OrderedDict[str, tuple[int, int, Any]] = OrderedDict()
        self._reading = False
        """Whether lines are being taken in. If nobody is at that, an interrupt has left it half done."""

    def _counter(self) -> int:
        """The highest number that was given to a memory which is no longer in the file."""
        try:
            return int(files.read_whole(self._fileset.path(COUNTER)) or 0)
        except (StoreError, ValueError):
            return 0

    def refresh(self) -> None:
        """Take in what was written since."""
        there = self._fileset.identities(self._fileset.read)
        if there != self.seen or self._reading:
            self._catch_up(there)

    def _catch_up(self, there: dict[str, Identity]) -> None:
        there, ends = self._complete_ends(there)
        if self._reading or not self._continues(there, ends):
            self.reset()
        if self._compared is not self.generation and not self._format.rewrites:
            # Before the files are looked at: what it says that they had, they have had by then.
            self._covered = snapshots.covered_sizes(self._fileset.path(METADATA)).get(TOMBSTONES, 0)
            there, ends = self._complete_ends(there)
        self._reading = True
        for name in self._fileset.read:
            self._read_tail(name, ends[name])
        main = self._fileset.main
        # What is not complete yet must be looked at again, even if no byte is added to it.
        self.seen = there if ends == there else {**there, main: Identity(there[main].inode, -1)}
        self._leave_out_forgotten()
        self._tell_damage()
        if self.unsaved:
            self._apply(self.unsaved)
        self._reading = False

    def _complete_ends(self, there: dict[str, Identity]) -> tuple[dict[str, Identity], dict[str, Identity]]:
        """The files as they are now, and how far they are complete."""
        ends = there
        for _ in range(_TRIES):
            note = self._fileset.note()
            again = self._fileset.identities(self._fileset.read)
            ends = self._fileset.complete(note, again)
            if again == there and all(self._has(name, which) for name, which in there.items()):
                break
            there = again
        return there, ends

    def _has(self, name: str, which: Identity) -> bool:
        """Whether the file that is open is that one."""
        file = self._files[name]
        file.open()
        return file.inode == which.inode

    def _continues(self, there: Mapping[str, Identity], ends: Mapping[str, Identity]) -> bool:
        """Whether the files are those that were read before, with nothing but more at their ends.

        People and other programs replace files, shorten them, or write them anew in place.
        """
        for name, known in self.seen.items():
            now, at = there[name], self.at[name]
            if (known != MISSING and known.inode != now.inode) or ends[name].size < at:
                return False
            if known.size == now.size and known.changed != now.changed:
                return False
            if (last := self._ends.get(name)) and self._files[name].read(at - len(last), at) != last:
                return False
        return True

    def _read_tail(self, name: str, end: Identity) -> None:
        at = self.at[name]
        if end.size <= at:
            return
        data = self._files[name].read(at, end.size)
        for line in files.lines(data, at):
            self.state.read(name, line)
            if line.whole:
                self.at[name] = line.end
        self.revision += 1
        if self.at[name] > at:
            self._ends[name] = data[: self.at[name] - at][-_LAST_BYTES:]

    def _leave_out_forgotten(self) -> None:
        """If tombstones.jsonl has lost its end, what it deleted would be back: the audit log knows better.

        Files are compared with the sizes in the session's metadata once, when they are read from the beginning.
        """
        if self._compared is self.generation or self._format.rewrites:
            return
        self._compared = self.generation
        if self.at[TOMBSTONES] >= self._covered:
            return
        stored = last_changes(files.read_whole(self._fileset.paths[AUDIT]).splitlines())
        for ident, row in list(self.state.rows.items()):
            if stored.get(ident) is False:
                self.state.unburied[ident] = row.last_version
                self.state.bury(ident, row.last_version)
        if number := len(self.state.unburied):
            problem = f"has lost its end: {number:,} left out, which the audit log says were forgotten"
            self.state.damage[TOMBSTONES, PENDING] = Damage(TOMBSTONES, problem)

    def _tell_damage(self) -> None:
        """Count and log each once."""
        for key, damage in self.state.damage.items():
            if key not in self._told:
                self._told.add(key)
                self._meter.counts[CORRUPTION] += 1
                tell(self._place, logging.ERROR, "corruption detected", where=damage.where, problem=damage.problem)

    # What the disk has refused

    def hold(self, parts: Parts) -> None:
        """Show what could not be written as if it was."""
        self.unsaved.append(parts)
        self._apply([parts])

    def _apply(self, several: Sequence[Parts]) -> None:
        for parts in several:
            for name in self._fileset.read:
                for line in files.lines(parts.get(name, b"")):
                    self.state.read(name, line._replace(start=PENDING, end=PENDING))
        self.revision += 1

    def drop_unsaved_undo(self, seqs: Container[int]) -> None:
        """Forget the undo data of these entries that no file has yet."""
        for number, parts in enumerate(self.unsaved):
            if lines := parts.get(UNDO):
                left = b"".join(line + b"\n" for head, line in undo_heads(lines.splitlines()) if head.seq not in seqs)
                self.unsaved[number] = {**parts, UNDO: left}

    def purge_unsaved(self) -> None:
        """Forget whatever no file has yet of memories and things that are deleted: it must not be written anywhere."""
        self.unsaved = [
            {name: self._purged(name, data) if name in self._fileset.read else data for name, data in parts.items()}
            for parts in self.unsaved
        ]

    def _purged(self, name: str, data: bytes) -> bytes:
        if name == TOMBSTONES:  # they are needed, but not the reasons, which a person has written
            return b"".join(without_reason(line.data) for line in files.lines(data))
        return b"".join(line.data + b"\n" for line in files.lines(data) if self.state.is_current(name, line.data))

    # What stands at a place in a file

    def content(self, row: Row) -> Any:
        """Raises ValueError if its line turns out to be damaged; the memory is gone then."""
        ident = row.record.id
        known = self._contents.get(ident)
        if log.isEnabledFor(logging.DEBUG):
            tell(self._place, logging.DEBUG, "cache miss" if known is None else "cache hit", id=ident)
        if row.record.content is not None:
            return row.record.content
        if row.held is not None:
            return row.held[0]
        if known is not None and known[:2] == (row.start, row.end):
            self._contents.move_to_end(ident)
            return known[2]
        content = self._read_content(row)
        self._contents[ident] = row.start, row.end, content
        if len(self._contents) > self._cache_size:
            self._contents.popitem(last=False)
        return content

    def _read_content(self, row: Row) -> Any:
        name = self._fileset.main
        line = self._bytes(name, row.start, row.end).rstrip(b"\r\n")
        try:
            return self._format.content(line)
        except UNREADABLE as error:
            problem = f"cannot be read and is skipped: {error}"
            self.state.damage[name, row.start] = Damage(f"{name}, line {row.number}", problem)
            if self.state.rows.get(row.record.id) is row:
                self.state.lose(row.record.id)
            self.revision += 1
            self._tell_damage()
            raise ValueError(problem) from error

    def vector(self, row: Row) -> bytes | None:
        if row.vector is None or row.vector[0] == PENDING:
            return row.blob
        line = self._bytes(VECTORS, *row.vector)
        try:
            return decode_vector(line).vector
        except UNREADABLE as error:
            self.state.damage[VECTORS, row.vector[0]] = Damage(f"{VECTORS}, byte {row.vector[0]:,}", str(error))
            return None

    def _bytes(self, name: str, start: int, end: int) -> bytes:
        """Of the file that the state was read from, and of no other that has taken its path since."""
        file, known = self._files[name], self.seen[name].inode
        if file.inode != known and not self._has(name, Identity(known, 0)):
            self.reset()
            raise MovedError(f"{file.path} was replaced while it was read")
        return file.read(start, end)

    # Descriptors

    @property
    def open_files(self) -> int:
        return sum(file.inode != 0 for file in self._files.values())

    def close(self) -> None:
        """Only the files: what was read of them stays known."""
        for file in self._files.values():
            file.close()


def verify(place: Place, fileset: FileSet, format: Format) -> list[Damage]:
    """Read everything on disk again, through descriptors of its own, and compare with every checksum."""
    fresh = State(place, format)
    logged = last_changes(files.read_whole(fileset.paths[AUDIT]).splitlines())
    there = fileset.identities(fileset.read)
    ends = fileset.complete(fileset.note(), there)
    for name in fileset.read:
        # What is added meanwhile is none of this, and what is not complete yet is no damage.
        data = files.read_whole(fileset.paths[name])[: ends[name].size]
        for line in files.lines(data):
            fresh.read(name, line)
    damage = list(fresh.damage.values())
    return damage if format.rewrites else [*damage, *_compared_with_audit(fresh, fileset, logged)]


def _compared_with_audit(state: State, fileset: FileSet, before: Mapping[str, bool]) -> Iterator[Damage]:
    """Memories that are gone from the log of a session although nobody deleted them, or there although somebody did.

    `before` is what the audit log said before the session was read. What it says otherwise now was changed meanwhile.
    """
    after = last_changes(files.read_whole(fileset.paths[AUDIT]).splitlines())
    stored = {ident: is_stored for ident, is_stored in after.items() if before.get(ident) is is_stored}
    back = [ident for ident in state.rows if stored.get(ident) is False]
    if back:
        problem = f"has lost its end: {len(back):,} left out, which the audit log says were forgotten ({back[0]})"
        yield Damage(TOMBSTONES, problem)
    lost = [ident for ident, there in stored.items() if there and ident not in state.rows and ident not in state.tombs]
    unreadable = sum(name == fileset.main for name, _ in state.damage) + len(
        files.read_whole(fileset.path(UNREAD)).splitlines()
    )
    if len(lost) > unreadable:  # what cannot be read is reported line by line
        problem = f"has lost {len(lost) - unreadable:,}, which the audit log says were stored (such as {lost[-1]})"
        yield Damage(fileset.main, problem)
