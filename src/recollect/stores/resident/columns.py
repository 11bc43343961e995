"""A resident copy of one place in columns: what filters and scores need of every memory, as arrays.

A position stands for one memory, in the order in which they came. Removed ones keep theirs, except at the end.
Columns change under the lock of their owner. What is handed out is a `Snapshot`, which never changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from recollect.stores.resident.codes import Codes, Ids
from recollect.stores.resident.snapshot import NEVER, Mask, Snapshot
from recollect.stores.resident.vectors import Vectors
from recollect.values.filters import PLACED, PRIVATE_KINDS, Comparison, Filter
from recollect.values.record import EPOCH, Address, Operator, Tier, to_micros

_GROWTH = 1.125
"""ResidentCache are cheap beside vectors that nobody uses."""
_FILTERS = 4
"""Filters whose answers are kept. Most questions are put with the same few."""

_NUMBERS = {"created_at": "created", "expires_at": "expires"}
"""Columns whose fields have another name."""
_COMPARE: dict[Operator, Any] = {
    "at_least": np.greater_equal,
    "below": np.less,
    "passed": np.less_equal,
    "ahead": np.greater,
    "begun": np.less_equal,
}

_ARRAYS: dict[str, Any] = {
    "key": np.int64,
    "created": np.int64,
    "expires": np.int64,
    "valid_from": np.int64,
    "valid_until": np.int64,
    "importance": np.float64,
    "archived": np.bool_,
    "superseded_by": np.int32,
    "length": np.int32,
    "who": np.int32,
    "kind": np.int32,
    "role": np.int32,
    "source": np.int32,
    "lifetime": np.int32,
    "tags": np.int32,
    "speaker": np.int32,
    "conversation": np.int32,
    "before": np.int32,
    "after": np.int32,
    "alive": np.bool_,
}


class Batch(NamedTuple):
    """Some memories, column by column. Times are in microseconds."""

    key: Sequence[int]
    ident: Sequence[str]
    created: Sequence[int]
    expires: Sequence[int]
    """NEVER for most."""
    valid_from: Sequence[int]
    """ALWAYS for most."""
    valid_until: Sequence[int]
    """NEVER for most."""
    importance: Sequence[float]
    archived: Sequence[bool]
    superseded_by: Sequence[str | None]
    length: Sequence[int]
    kind: Sequence[str]
    role: Sequence[str | None]
    source: Sequence[str | None]
    lifetime: Sequence[str]
    tags: Sequence[tuple[str, ...]]
    speaker: Sequence[str]
    who: Sequence[tuple[Address, Tier]]


_CHANGING = ("before", "after", "speaker")
"""What a block has of the columns that change in place."""
CODED = ("who", "kind", "role", "source", "lifetime", "tags", "speaker", "superseded_by")
"""Columns of codes."""


class ColumnsCopy(NamedTuple):
    """All of the columns at one moment, to be written to a file, or as they were read from one."""

    data: dict[str, NDArray[Any]]
    ids: Ids
    values: dict[str, list[Any]]
    """By column, what its codes stand for."""
    conversations: dict[str, int]
    vectors: Vectors | None


class Columns:
    def __init__(self) -> None:
        self.size = 0
        self.ids = Ids()
        self.vectors: Vectors | None = None
        self.who, self.kinds, self.roles, self.sources = Codes(), Codes(), Codes(), Codes()
        self.lifetimes, self.tags, self.speakers, self.successors = Codes(), Codes(), Codes(), Codes()
        self.successors(None)  # code 0: not superseded
        self._data: dict[str, NDArray[Any]] = {name: np.zeros(64, kind) for name, kind in _ARRAYS.items()}
        self._conversations: dict[str, int] = {}
        """By name, its number: the position of its first memory when it began. So numbers grow in this order, all are
        below the size, and with the end of the columns go the conversations that began there."""
        self._last: NDArray[np.int32] = np.full(64, -1, np.int32)
        """By conversation, the position of the last memory; -1 for none."""
        self._seen: dict[Filter, Mask] = {}
        self._block: Snapshot | None = None
        self._lent = 0
        """The size of the largest block that shares these arrays."""
        self._are_lent = False
        """Whether a block shares those that change in place."""

    @classmethod
    def restored(cls, copied: ColumnsCopy, size: int) -> Columns:
        """As `copied` gave them, without anything that is gone."""
        columns = cls()
        columns.size, columns.ids, columns.vectors = size, copied.ids, copied.vectors
        columns._data = {name: copied.data[name] for name in _ARRAYS}
        for name, codes in columns._coded.items():
            codes.__init__(copied.values[name])
        columns._conversations = copied.conversations
        columns._last = np.full(max(size, 64), -1, np.int32)
        ends = np.flatnonzero(columns.column("after") < 0)
        columns._last[columns.column("conversation")[ends]] = ends
        return columns

    def copied(self) -> ColumnsCopy:
        """Copies, and of the vectors the rows themselves: what changes in one later, changes in the database, too."""
        data = {name: self.column(name).copy() for name in _ARRAYS}
        values = {name: list(codes.values) for name, codes in self._coded.items()}
        vectors = None if self.vectors is None else self.vectors.shared(self.size)
        return ColumnsCopy(data, self.ids.cut(self.size), values, dict(self._conversations), vectors)

    @property
    def _coded(self) -> dict[str, Codes]:
        """By the column of their codes."""
        return {"who": self.who, "tags": self.tags, "speaker": self.speakers, **self._codes}

    @property
    def bytes(self) -> int:
        vectors = self.vectors
        shared = sum(column.nbytes for column in self._data.values()) + 48 * self.size
        return shared + (vectors.bytes if vectors is not None else 0)

    def column(self, name: str) -> NDArray[Any]:
        """As far as it is filled."""
        return self._data[name][: self.size]

    @property
    def last_key(self) -> int:
        return int(self._data["key"][self.size - 1]) if self.size else 0

    def position(self, key: int) -> int | None:
        positions = self.positions(np.array([key]))
        return int(positions[0]) if len(positions) else None

    def positions(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of those that are there."""
        stored_keys = self.column("key")
        if not len(stored_keys) or not len(keys):
            return np.zeros(0, np.int64)
        first, last = int(stored_keys[0]), int(stored_keys[-1])
        if last - first == len(stored_keys) - 1:  # no number was left out
            positions: NDArray[np.int64] = keys[(keys >= first) & (keys <= last)] - first
        else:
            positions = np.searchsorted(stored_keys, keys)  # keys grow with time, so positions are in the order of keys
            inside = positions < len(stored_keys)
            positions, keys = positions[inside], keys[inside]
            positions = positions[stored_keys[positions] == keys]
        return positions[self._data["alive"][positions]]

    def extend(self, batch: Batch) -> None:
        """Add memories. Their keys grow, and are higher than any before."""
        count = len(batch.key)
        if not count:
            return
        self._take_back()
        start, self.size = self.size, self.size + count
        if self.size > len(self._data["key"]):
            wanted = max(self.size, int(start * _GROWTH) + 64)
            self._data = {name: _grown(column, wanted) for name, column in self._data.items()}
        if self.vectors is not None:
            self.vectors.reserve(self.size)
        self._changed()
        self.ids.extend(batch.ident)
        data, new = self._data, slice(start, self.size)
        for name in ("key", "created", "length"):
            data[name][new] = getattr(batch, name)
        data["alive"][new] = True
        for name, codes in (("who", self.who), ("kind", self.kinds), ("role", self.roles), ("source", self.sources)):
            data[name][new] = codes.many(getattr(batch, name))
        talks = enumerate((address.conversation for address, _ in batch.who), start)
        groups = np.fromiter((self._group(talk, at) for at, talk in talks), np.int32, count)
        data["conversation"][new] = groups
        self._link(start, groups)
        self._take_in(new, batch)

    def restate(self, batch: Batch) -> None:
        """Take in what may have changed of memories that are there, in the order of their keys."""
        if len(batch.key):
            self._take_back()
            self._take_in(self.positions(np.array(batch.key, np.int64)), batch)

    def _take_in(self, positions: slice | NDArray[np.int64], batch: Batch) -> None:
        data = self._data
        for name in ("expires", "valid_from", "valid_until", "importance", "archived"):
            data[name][positions] = getattr(batch, name)
        data["superseded_by"][positions] = self.successors.many(batch.superseded_by)
        data["lifetime"][positions] = self.lifetimes.many(batch.lifetime)
        data["tags"][positions] = self.tags.many(batch.tags)
        data["speaker"][positions] = self.speakers.many(batch.speaker)
        self._changed()

    def _group(self, conversation: str | None, at: int) -> int:
        """The number of a conversation. A memory outside any has one of its own."""
        return at if conversation is None else self._conversations.setdefault(conversation, at)

    def _link(self, start: int, groups: NDArray[np.int32]) -> None:
        """Who comes before and after whom in each conversation."""
        if self.size > len(self._last):
            grown = np.full(len(self._data["key"]), -1, np.int32)
            grown[: len(self._last)] = self._last
            self._last = grown
        order = np.argsort(groups, kind="stable")
        sorted_groups, at = groups[order], order + start
        same = sorted_groups[1:] == sorted_groups[:-1]
        begins, ends = np.append(True, ~same), np.append(~same, True)
        before = np.append(-1, at[:-1])
        before[begins] = self._last[sorted_groups[begins]]
        after = np.append(at[1:], -1)
        after[ends] = -1
        self._data["before"][at], self._data["after"][at] = before, after
        linked = begins & (before >= 0)
        self._data["after"][before[linked]] = at[linked]
        self._last[sorted_groups[ends]] = at[ends]

    def remove(self, key: int) -> None:
        at = self.position(key)
        if at is None:
            return
        self._take_back()
        data = self._data
        before, after, group = int(data["before"][at]), int(data["after"][at]), int(data["conversation"][at])
        if before >= 0:
            data["after"][before] = after
        if after >= 0:
            data["before"][after] = before
        if self._last[group] == at:
            self._last[group] = before
        data["alive"][at] = False
        data["before"][at] = data["after"][at] = -1  # the end may be cut off, and nothing may point past it
        if self.vectors is not None:
            self.vectors.clear(at)
        while self.size and not data["alive"][self.size - 1]:  # SQLite gives the highest number once more
            self.size -= 1
        while self._conversations and next(reversed(self._conversations.values())) >= self.size:
            self._conversations.popitem()
        if self.size < self._lent:  # the end will be written again, and blocks that were handed out still show it
            self._data = {name: column.copy() for name, column in data.items()}
            self._lent = 0
        if self.size < len(self.ids):
            self.ids = self.ids.cut(self.size)
        self._changed()

    def remove_from(self, key: int) -> None:
        """All from that one on."""
        for last in self.column("key")[::-1].tolist():
            if last < key:
                break
            self.remove(last)

    def missing(self, dimensions: int, most: int) -> list[str]:
        """Ids of living memories without a vector of so many dimensions, the newest first."""
        lacking = self.column("alive") & (self.column("superseded_by") == 0)
        vectors = self.vectors
        if vectors is not None and vectors.dimensions == dimensions:
            lacking &= ~vectors.has(self.size)
        return [self.ids[at] for at in np.flatnonzero(lacking)[::-1][:most].tolist()]

    def _take_back(self) -> None:
        """Called before something changes in place."""
        if self._are_lent:
            self._data |= {name: self._data[name].copy() for name in _CHANGING}
            self._are_lent = False

    def _changed(self) -> None:
        self._seen.clear()
        self._block = None

    def block(self) -> Snapshot:
        if self._block is None:
            # Some are only ever added to; where the end is cut off, the columns go on with copies. The others change
            # in place when a memory comes or goes: before that, the columns go on with copies of them, too.
            created, length, talk = (self.column(name) for name in ("created", "length", "conversation"))
            before, after, who = (self.column(name) for name in _CHANGING)
            self._are_lent = True
            self._block = Snapshot(self.ids, created, length, talk, before, after, who, self.speakers.values)
            self._lent = max(self._lent, self.size)
        return self._block

    def seen(self, where: Filter) -> Mask:
        """Which positions a filter sees. It is kept until a memory changes, comes, goes or expires."""
        now, key = to_micros(where.now), replace(where, now=EPOCH)
        seen = self._seen.pop(key, None)
        if seen is None or not seen.holds(now):
            mask, expires = self.mask(where), self.column("expires")
            mask.flags.writeable = False
            since = int(expires[expires <= now].max(initial=-NEVER))
            seen = Mask(self.block(), mask, since, int(expires[expires > now].min(initial=NEVER)))
        self._seen[key] = seen
        while len(self._seen) > _FILTERS:
            del self._seen[next(iter(self._seen))]
        return seen

    def mask(self, where: Filter) -> NDArray[np.bool_]:
        """Which positions a filter sees: what `Filter.matches` says of each."""
        mask = self.column("alive") & self.who.table(where.address_matcher())[self.column("who")]
        for comparison in where.comparisons():
            if comparison.field not in PLACED:
                mask &= self._compared(comparison)
        if where.hides_private:
            owned = self.who.table(lambda who: who[0].agent is not None)[self.column("who")]
            mask &= ~(owned & self.kinds.table(PRIVATE_KINDS.__contains__)[self.column("kind")])
        if where.tags or where.any_tags or where.without_tags:
            mask &= self.tags.table(where.has_tags)[self.column("tags")]
        return mask

    def _compared(self, comparison: Comparison) -> NDArray[np.bool_]:
        """Which positions a comparison of one field holds for."""
        field, operator, value = comparison
        if field == "archived_at":
            archived = self.column("archived")
            return archived if operator == "set" else ~archived
        if (codes := self._codes.get(field)) is not None:
            return codes.table(comparison.holds)[self.column(field)]
        number = value if field == "importance" else to_micros(value)
        return _COMPARE[operator](self.column(_NUMBERS.get(field, field)), number)

    @property
    def _codes(self) -> dict[str, Codes]:
        return {
            "kind": self.kinds,
            "role": self.roles,
            "source": self.sources,
            "lifetime": self.lifetimes,
            "superseded_by": self.successors,
        }


def _grown(column: NDArray[Any], size: int) -> NDArray[Any]:
    grown = np.zeros((size, *column.shape[1:]), column.dtype)
    grown[: len(column)] = column
    return grown


def joined(keys: str | None) -> NDArray[np.int64]:
    """From SQLite's group_concat of numbers."""
    return np.fromstring(keys, np.int64, sep=",") if keys else np.zeros(0, np.int64)
