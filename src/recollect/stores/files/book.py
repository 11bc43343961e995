"""One place of a store of plain files, as readers see it: what a ledger's session and a notebook are made of.

Two locks. `writing` is held by one thread for a whole transaction, and waited for no longer than the store is patient.
`guard` is held for moments around what was read of the files, never while anybody waits, and never together with the
guard of another book. Readers take the guard only; whoever takes both takes `writing` first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from recollect.stores.audit import Entry
from recollect.stores.files import aside, audit_file
from recollect.stores.files.audit_file import AuditFile, Last
from recollect.stores.files.config import Config
from recollect.stores.files.files import AppendOnly
from recollect.stores.files.fileset import AUDIT, UNDO, Appender, FileSet
from recollect.stores.files.formats import Format
from recollect.stores.files.lines import UndoHead
from recollect.stores.files.metrics import Meter
from recollect.stores.files.reader import MovedError, Reader, tell_failure, verify
from recollect.stores.files.staging import Staged
from recollect.stores.files.state import Row
from recollect.stores.port import Before, By, Damage, Order, Place
from recollect.stores.scans import Resume, resumed_at
from recollect.stores.scope import Attempt
from recollect.stores.shelves import Thing
from recollect.stores.touches import Touched, Touches
from recollect.values.errors import StoreError
from recollect.values.filters import Filter
from recollect.values.record import Record, digest, utc_now

if TYPE_CHECKING:
    from recollect.stores.files.session import Session

_TRIES = 50
T = TypeVar("T")


class Book:
    """What one thread writes and any number read."""

    def __init__(self, place: Place, fileset: FileSet, format: Format, config: Config, meter: Meter) -> None:
        self.place = place
        self.fileset = fileset
        self.format = format
        self.config = config
        self.meter = meter
        self.guard = threading.RLock()
        self.writing = threading.RLock()
        self.reader = Reader(place, fileset, format, meter, config.performance.cache_size)
        self.appender = Appender(fileset, config.patience)
        self.touches = Touches(seconds=config.performance.batch_write_interval_ms / 1000)
        self.flying: dict[str, tuple[int, Touched]] = {}
        """Retrievals that are being written, with the versions that will tell of them."""
        self.session: Session | None = None
        """What a session of a ledger has beyond its memories."""
        self.audit = AuditFile(fileset, lambda: self.session.audit_entries() if self.session else self.audit.noted())
        self.wrote = False
        self.staged: Staged | None = None
        self.owner = 0
        """The thread whose transaction is staged."""
        self.unsaved_because = ""
        self.undropped: set[int] = set()
        """Entries whose undo data was dropped, but the disk has refused to write the file without it."""
        self.now: Callable[[], datetime] = utc_now
        self.defer: Callable[[], None] = lambda: None
        """Tells the store that the session has files to write within `batch_write_interval_ms`."""

    @property
    def busy(self) -> bool:
        """Whether something is kept in memory only, or being written."""
        return self.staged is not None or bool(self.reader.unsaved)

    def mine(self) -> Staged | None:
        """What this thread has staged, if it is in a transaction."""
        return self.staged if self.owner == threading.get_ident() else None

    def read(self, what: Callable[[], T]) -> T:
        """With everything that is written by now, and once more where files were replaced meanwhile."""
        for _ in range(_TRIES):
            try:
                return self._read(what)
            except MovedError:
                continue
            except StoreError as error:
                if isinstance(error.__cause__, OSError):
                    tell_failure(self.place, error)
                raise
        return self._read(what)

    def _read(self, what: Callable[[], T]) -> T:
        with self.guard:  # nobody writes into the state meanwhile
            if not self.config.performance.index_in_memory and not self.busy:
                self.reader.reset()
            self.reader.refresh()
            return what()

    # Memories. All of these are called under the guard.

    def row(self, ident: str) -> Row | None:
        staged = self.mine()
        return staged.row(self.reader.state, ident) if staged else self.reader.state.rows.get(ident)

    def rows(self) -> Iterator[Row]:
        """In the order of storing."""
        staged = self.mine()
        return staged.all_rows(self.reader.state) if staged else iter(self.reader.state.rows.values())

    def stub(self, row: Row) -> Record:
        """Without content and vector, but with the retrievals that are not written yet."""
        record, staged = row.record, self.mine()
        if staged is not None and record.id in staged.untouched:
            return record
        version, flying = self.flying.get(record.id, (0, None))
        if flying is not None and row.version < version:
            record = replace(
                record, access_count=record.access_count + flying.times, accessed_at=max(record.accessed_at, flying.at)
            )
        return self.touches.onto(record)

    def record(self, row: Row, *, vector: bool = True) -> Record | None:
        """The whole memory; None if its line turns out to be damaged."""
        try:
            content = self.reader.content(row)
        except ValueError:
            return None
        stub = self.stub(row)
        blob = self.reader.vector(row) if vector else None
        return replace(
            stub,
            content=content,
            embedding=blob,
            embedding_model=stub.embedding_model if vector else None,
            checksum=digest(stub.id, stub.tier, stub.kind, stub.role, content, stub.created_at),
        )

    def text(self, row: Row) -> str:
        record = self.record(row, vector=False)
        return record.text if record else ""

    def with_texts(self, texts: frozenset[str]) -> list[Record]:
        """Of what is in no conversation and still counts. In the order of storing."""
        state, staged = self.reader.state, self.mine()
        if state.by_text is None:
            state.by_text = {}
            for row in list(state.rows.values()):
                state.note_text(row, self.text(row))
        named = [ident for text in texts for ident in state.by_text.get(hash(text), ())]
        rows = [row for ident in {*named, *(staged.rows if staged else ())} if (row := self.row(ident))]
        rows = [row for row in rows if row.record.archived_at is None and row.record.superseded_by is None]
        records = [record for row in rows if (record := self.record(row))]
        wanted = {one.id for one in records if one.address.conversation is None and one.text in texts}
        order = {row.record.id: at for at, row in enumerate(self.rows())} if len(wanted) > 1 else {}
        return sorted((one for one in records if one.id in wanted), key=lambda one: order.get(one.id, 0))

    def matching(self, where: Filter, order: Order, resume: Resume | None = None) -> list[Record]:
        """Without content, in order. Equals are in the order of storing, and the newest in its exact reverse."""
        meets = where.matcher()
        records = [record for row in self.rows() if meets(record := self.stub(row))]
        if order == "importance":
            records.sort(key=lambda record: (record.importance, record.created_at))
        else:
            records.sort(key=lambda record: record.created_at)
        if order == "newest":
            records.reverse()
        return records if resume is None else records[resumed_at(records, order, resume) :]

    def counted(self, where: Filter, by: Sequence[By], speakers: Callable[[str], str]) -> Iterator[tuple[str, ...]]:
        """The values of some fields of each that matches."""
        ways: dict[By, Callable[[Row], str]] = {
            "state": lambda row: row.record.state(where.now),
            "kind": lambda row: row.record.kind,
            "tier": lambda row: row.record.tier,
            "agent": lambda row: row.record.address.agent or "",
            "embedded": lambda row: "no" if row.vector is None else "yes",
            "speaker": lambda row: speakers(row.record.id),
        }
        asked, meets = [ways[name] for name in by], where.matcher()
        return (tuple(way(row) for way in asked) for row in self.rows() if meets(row.record))

    def damage(self) -> list[Damage]:
        """Takes the guard itself, for a moment only."""
        return [*verify(self.place, self.fileset, self.format), *aside.damage(self.place, self.fileset, self.format)]

    # Shelves. These too.

    def thing(self, shelf: str, key: str) -> Thing | None:
        staged = self.mine()
        return staged.thing(self.reader.state, (shelf, key)) if staged else self.reader.state.things.get((shelf, key))

    def things(
        self,
        shelf: str | None,
        parent: str | None,
        contains: str,
        newest_first: bool,
        after: str | None,
        limit: int | None,
    ) -> list[Thing]:
        staged, state, folded = self.mine(), self.reader.state, contains.casefold()
        every = list(staged.all_things(state) if staged else state.things.values())
        every = [thing for thing in (reversed(every) if newest_first else every) if shelf in (None, thing.shelf)]
        behind = next((at + 1 for at, thing in enumerate(every) if thing.key == after), 0)
        wanted = (thing for thing in every[behind:] if parent in (None, thing.parent) and thing.contains(folded))
        return list(islice(wanted, limit))

    # The audit log. And these.

    def last_entry(self) -> Last:
        staged = self.mine()
        if staged is not None and (lines := staged.lines.get(AUDIT)):
            return audit_file.last_of(lines[-1])
        for parts in reversed(self.reader.unsaved):
            if logged := parts.get(AUDIT):
                return audit_file.last_of(logged)
        return self.audit.last()

    def entries(self, contains: Sequence[str], about: str, newest_first: bool, limit: int | None) -> Iterator[Entry]:
        return audit_file.entries(self._lines(AUDIT), contains, about, newest_first, limit)

    def stored_by_audit(self) -> dict[str, bool]:
        """Of each memory that the audit log names, whether it was stored last, or deleted."""
        return audit_file.last_changes(self._lines(AUDIT))

    def _lines(self, name: str) -> list[bytes]:
        staged = self.mine()
        more = staged.lines.get(name, []) if staged else []
        return self.audit.lines(name, *(parts.get(name, b"") for parts in self.reader.unsaved), *more)

    def undo_lines(self) -> list[tuple[UndoHead, bytes]]:
        staged = self.mine()
        dropped = {*self.undropped, *(staged.dropped_undo if staged else ())}
        return [(head, line) for head, line in audit_file.undo_heads(self._lines(UNDO)) if head.seq not in dropped]

    def before(self, seq: int) -> Before | None:
        if self.mine() is None and not self.reader.unsaved and not self.undropped:
            return self.audit.before(seq)
        for head, line in self.undo_lines():
            if head.seq == seq:
                return audit_file.before(line)
        return None

    def undos(self) -> list[tuple[int, Before]]:
        return [(head.seq, audit_file.before(line)) for head, line in self.undo_lines()]

    # Files

    def close_files(self) -> bool:
        """Let go of descriptors, where nobody reads just now; what was read stays known."""
        with Attempt(self.guard) as taken:
            if taken:
                self.reader.close()
        return taken

    def sync(self, *names: str) -> None:
        """Make durable what was written without waiting for the disk."""
        for name in names:
            file = AppendOnly(self.fileset.paths[name])
            try:
                if file.open():
                    file.sync()
            finally:
                file.close()

    def forget(self, *, everything: bool = False) -> None:
        """What was read of the files, and the descriptors. `everything`: also what is not written yet."""
        with self.guard:
            if everything:
                self.reader.unsaved.clear()
                self.touches.take()
            if not self.busy:  # a transaction builds on what was read
                self.reader.reset()
            self.reader.close()

    def abandon(self) -> None:
        """In a forked child: what the parent's threads were doing is theirs to finish."""
        self.reader.close()
        self.appender.abandon()
