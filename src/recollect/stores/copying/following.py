"""One place of a store made the same as that place of another, from wherever it was left.

What is done already is not written down, but seen: both stores are read in the one order that every store has, and what
is the same in both is done. So a copy that was killed goes on, and so does one whose source was written to meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from recollect.stores.audit import GENESIS, Entry, seal
from recollect.stores.fields import CHANGEABLE
from recollect.stores.port import OnDisk, Place, Store
from recollect.stores.shelves import ShelfItem
from recollect.stores.undo import NO_UNDO, Undo
from recollect.values.errors import InputError, StoreError
from recollect.values.filters import Filter
from recollect.values.record import EPOCH, Address, Record, Tier

T = TypeVar("T")
CountDone = Callable[[int], object]
"""Called with how many memories were dealt with since the last call."""

_BATCH = 500
_encode = msgspec.json.Encoder().encode


def memories_of(place: Place) -> Filter:
    """All that is in a place, in every state, and nothing of another."""
    tiers: tuple[Tier, ...] = () if place.workspace is None else ("workspace", "channel", "conversation")
    return Filter(Address(place.tenant, place.workspace), EPOCH, state=None, tiers=tiers)


def unbroken(entries: Iterable[Entry]) -> Iterator[Entry]:
    """An audit log as far as it is what was written. What comes behind a break cannot be sealed as it was."""
    previous = GENESIS
    for seq, entry in enumerate(entries, 1):
        if entry.seq != seq or seal(entry, seq, previous).hash != entry.hash:
            return
        previous = entry.hash
        yield entry


class Sums(msgspec.Struct, frozen=True):
    """How much a place holds, with a digest of each part over all of it, in order."""

    memories: int
    things: int
    entries: int
    digests: tuple[str, str, str]

    @property
    def checksum(self) -> str:
        return "sha256:" + hashlib.sha256("".join(self.digests).encode()).hexdigest()

    def differences(self, other: Sums) -> list[str]:
        """The parts that are not the same, with how many of each there are here and there."""
        names = ("memories", "things", "entries")
        ours, theirs = zip(names, self.digests, strict=True), other.digests
        differ = [name for (name, our_digest), its in zip(ours, theirs, strict=True) if our_digest != its]
        return [f"{name} ({getattr(self, name):,} and {getattr(other, name):,})" for name in differ]


class Pair:
    """A place, in the store that it is copied from and in the one that it is copied to."""

    def __init__(
        self,
        source: Store,
        target: Store,
        place: Place,
        changed: frozenset[str],
        grown: int,
        has_traces: bool = False,
    ) -> None:
        """`changed` are the fields of memories that the target is known to change. Nothing of the target is removed
        unless the source's log has grown beyond `grown`: what else is there was put there by somebody else. It
        `has_traces` if something may have been removed from it before."""
        self.source, self.target, self.place = source, target, place
        self._recomputed = "checksum" in changed
        self.renamed = "id" in changed
        self.names: dict[str, str] = {}
        """The ids in the target, where it gives its own."""
        self._grown = grown
        self.has_traces = has_traces

    def expected(self, record: Record) -> Record:
        """A memory of the source as the target should have it."""
        if self.renamed:
            name = self.names.get
            record = replace(
                record,
                id=name(record.id, record.id),
                references=tuple(name(ident, ident) for ident in record.references),
                derived_from=tuple(name(ident, ident) for ident in record.derived_from),
                superseded_by=record.superseded_by and name(record.superseded_by, record.superseded_by),
            )
        return replace(record, checksum=record.digest()) if self._recomputed else record

    def match(self) -> None:
        """Learn the ids of the target from the order of both, where nothing is to be written."""
        if self.renamed:
            ours, theirs = (store.scan(memories_of(self.place), whole=False) for store in (self.source, self.target))
            self.names = {original.id: other.id for original, other in zip(ours, theirs, strict=False)}

    def check_removable(self, what: str) -> None:
        if self.source.written(self.place) <= self._grown:
            where = shown(self.place)
            raise InputError("target", f"holds {what} in {where} and the source does not: no copy of it began so")

    def follow(self, count_done: CountDone) -> None:
        """Make the target the same. The log comes last: as long as it is a part of the source's, nobody else wrote."""
        rest = self._log_behind()
        self._drop_undo()
        _follow(_CopiedMemories(self, count_done))
        _follow(_CopiedItems(self))
        self._append(rest)
        if self.has_traces and isinstance(self.target, OnDisk):  # the source may have erased what was removed here
            self.target.scrub(self.place)
            self.has_traces = False

    def _drop_undo(self) -> None:
        """What the source can undo no more: it was erased there, or it expired."""
        ours, theirs = ({undo.seq for undo in store.undo_sizes(self.place)} for store in (self.source, self.target))
        if gone := sorted(theirs - ours):
            self.target.purge(self.place, seqs=gone)
            self.has_traces = True

    def _log_behind(self) -> Iterator[Entry]:
        """The entries of the source behind those that the target has."""
        ours = unbroken(self.source.entries(self.place))
        for have in self.target.entries(self.place):
            if next(ours, None) != have:
                where = shown(self.place)
                raise InputError("target", f"has another audit log in {where} than the source: somebody wrote there")
        return ours

    def _append(self, rest: Iterator[Entry]) -> None:
        while batch := [(entry, self.undo(self.source, entry)) for entry in islice(rest, _BATCH)]:
            with self.target.transaction(self.place):
                for entry, undo in batch:
                    if self.target.append(self.place, entry, undo) != entry:
                        where = f"entry {entry.seq} of {shown(self.place)}"
                        raise StoreError(f"copy: the target seals {where} otherwise, or somebody else writes there")

    def undo(self, store: Store, entry: Entry) -> Undo:
        """What an entry replaced. It names memories by ids: where they got others it would be about nothing."""
        return (None if self.renamed else store.undo_of(self.place, entry.seq)) or NO_UNDO

    def sums(self, store: Store, count_done: CountDone) -> Sums:
        """Of the target; of the source as the target should have it."""
        expected = self.expected if store is self.source else _as_it_is
        memories = _summed(
            _encode(expected(record)) for record in _counting(count_done, store.scan(memories_of(self.place)))
        )
        items = _summed(map(_encode, store.shelf(self.place)))
        entries = _summed(_encode((entry, self.undo(store, entry))) for entry in unbroken(store.entries(self.place)))
        return Sums(memories[0], items[0], entries[0], (memories[1], items[1], entries[1]))


def _counting(count_done: CountDone, items: Iterable[T]) -> Iterator[T]:
    for item in items:
        yield item
        count_done(1)


def _summed(lines: Iterable[bytes]) -> tuple[int, str]:
    count, digest = 0, hashlib.sha256()
    for line in lines:
        digest.update(line + b"\n")
        count += 1
    return count, digest.hexdigest()


def shown(place: Place) -> str:
    where = "what accounts share" if place.workspace is None else f"the workspace {place.workspace.strip()}"
    return where if place.tenant == "default" else f"{where} of the tenant {place.tenant}"


def _as_it_is(record: Record) -> Record:
    return record


class _CopiedPart(Protocol[T]):
    """Memories, or things."""

    def wanted(self) -> Iterator[T]: ...

    def held(self) -> Iterator[T]: ...

    def pairs(self, want: T, have: T) -> bool:
        """Whether it is the same one, or can be made it where it is."""
        ...

    def amend(self, want: T, have: T) -> None:
        """Make it the same, if it is not."""
        ...

    def check_removable(self, have: T) -> None: ...

    def gone(self, have: T) -> bool:
        """Whether the source has it no more."""
        ...

    def remove(self, items: list[T]) -> None: ...

    def add(self, items: list[T]) -> None: ...


def _follow(part: _CopiedPart[T]) -> None:
    """Go along with both as long as they are the same. What the target has behind that is removed, and what the source
    has behind that is added: so the target is a part of the source at any time, from the beginning and in order."""
    wanted, held = part.wanted(), part.held()
    want = next(wanted, None)
    for have in held:
        if want is not None and part.pairs(want, have):
            part.amend(want, have)
            want = next(wanted, None)
            continue
        part.check_removable(have)
        if part.gone(have):
            part.remove([have])
            continue
        for batch in _batches(chain([have], held)):
            part.remove(batch)
        break
    if want is not None:
        for batch in _batches(chain([want], wanted)):
            part.add(batch)


def _batches(items: Iterator[T]) -> Iterator[list[T]]:
    while batch := list(islice(items, _BATCH)):
        yield batch


class _CopiedMemories:
    def __init__(self, pair: Pair, count_done: CountDone) -> None:
        self._pair = pair
        self._count_done = count_done

    def wanted(self) -> Iterator[Record]:
        return self._pair.source.scan(memories_of(self._pair.place))

    def held(self) -> Iterator[Record]:
        return self._pair.target.scan(memories_of(self._pair.place))

    def pairs(self, want: Record, have: Record) -> bool:
        names = self._pair.names
        if self._pair.renamed:
            names[want.id] = have.id
        if _amended(have, self._pair.expected(want)):
            return True
        names.pop(want.id, None)
        return False

    def amend(self, want: Record, have: Record) -> None:
        self._count_done(1)
        want = self._pair.expected(want)
        if _encode(want) == _encode(have):
            return
        target, place = self._pair.target, self._pair.place
        with target.transaction(place):
            target.update(place, [want])
            if want.embedding is not None and want.embedding_model is not None:
                target.embed(place, want.embedding_model, {want.id: want.embedding})

    def check_removable(self, have: Record) -> None:
        self._pair.check_removable(f"the memory {have.id}")

    def gone(self, have: Record) -> bool:
        return not self._pair.renamed and not self._pair.source.get(self._pair.place, [have.id])

    def remove(self, items: list[Record]) -> None:
        self._pair.target.delete(self._pair.place, [record.id for record in items], "not in the source any more")
        self._pair.has_traces = True

    def add(self, items: list[Record]) -> None:
        stored = self._pair.target.put(self._pair.place, items)
        if self._pair.renamed:
            self._pair.names.update((original.id, other.id) for original, other in zip(items, stored, strict=True))
        self._count_done(len(items))


def _amended(have: Record, want: Record) -> bool:
    """Whether `update` and `embed` can make one of the other."""
    changes = {name: getattr(want, name) for name in CHANGEABLE}
    if want.embedding is not None and want.embedding_model is not None:
        changes |= {"embedding": want.embedding, "embedding_model": want.embedding_model}
    return _encode(replace(have, **changes)) == _encode(want)


class _CopiedItems:
    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    def wanted(self) -> Iterator[ShelfItem]:
        return self._pair.source.shelf(self._pair.place)

    def held(self) -> Iterator[ShelfItem]:
        return self._pair.target.shelf(self._pair.place)

    def pairs(self, want: ShelfItem, have: ShelfItem) -> bool:
        return (want.shelf, want.key) == (have.shelf, have.key)

    def amend(self, want: ShelfItem, have: ShelfItem) -> None:
        if _encode(want) != _encode(have):
            self._pair.target.keep(self._pair.place, want, exact=True)
            self._pair.has_traces = True

    def check_removable(self, have: ShelfItem) -> None:
        """Leases and the like come and go without an entry in the log."""

    def gone(self, have: ShelfItem) -> bool:
        return not self._pair.source.find(self._pair.place, have.shelf, [have.key])

    def remove(self, items: list[ShelfItem]) -> None:
        with self._pair.target.transaction(self._pair.place):
            for item in items:
                self._pair.target.remove(self._pair.place, item.shelf, [item.key])
        self._pair.has_traces = True

    def add(self, items: list[ShelfItem]) -> None:
        with self._pair.target.transaction(self._pair.place):
            for item in items:
                self._pair.target.keep(self._pair.place, item, expect=0, exact=True)
