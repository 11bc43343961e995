"""A resident copy of one place in columns: what filters and scores need of every memory, as arrays.

A position stands for one memory, in the order in which they came. Removed ones keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.filters import Filter, visible_at
from recollect.record import Address, Record, Tier, to_micros
from recollect.speech import speaker

NEVER = (1 << 63) - 1
_GROWTH = 1.125
"""Copies are cheap beside vectors that nobody uses."""

_ARRAYS: dict[str, Any] = {
    "key": np.int64,
    "created": np.int64,
    "expires": np.int64,
    "importance": np.float64,
    "archived": np.bool_,
    "superseded": np.bool_,
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


class Codes:
    """Small numbers for values that occur again and again."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._known: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        code = self._known.get(value)
        if code is None:
            code = self._known[value] = len(self.values)
            self.values.append(value)
        return code

    def table(self, wanted: Callable[[Any], bool]) -> NDArray[np.bool_]:
        """For each code, whether its value is wanted."""
        return np.fromiter((wanted(value) for value in self.values), np.bool_, len(self.values))


class Vectors:
    """The vectors of one model, normalised. A memory without one has a row of zeros."""

    def __init__(self, model: str, dimensions: int, size: int) -> None:
        self.model = model
        self.dimensions = dimensions
        self.matrix: NDArray[np.float32] = np.zeros((max(size, 1), dimensions), np.float32)
        self.has: NDArray[np.bool_] = np.zeros(max(size, 1), np.bool_)

    def reserve(self, size: int) -> None:
        if size > len(self.has):
            wanted = max(size, int(len(self.has) * _GROWTH) + 64)
            matrix = np.zeros((wanted, self.dimensions), np.float32)
            matrix[: len(self.has)] = self.matrix
            self.matrix = matrix
            self.has = np.concatenate([self.has, np.zeros(wanted - len(self.has), np.bool_)])

    def put(self, at: int, blob: bytes | None) -> None:
        """A vector of another dimension is none of this model's."""
        self.reserve(at + 1)
        self.has[at] = blob is not None and len(blob) == 4 * self.dimensions
        if self.has[at] and blob is not None:
            vector = np.frombuffer(blob, "<f4")
            norm = float(np.linalg.norm(vector))
            self.matrix[at] = vector / norm if norm else vector
        else:
            self.matrix[at] = 0.0


class Columns:
    def __init__(self) -> None:
        self.size = 0
        self.dead = 0
        self.ids: list[str] = []
        self.vectors: Vectors | None = None
        self.who, self.kinds, self.roles, self.sources = Codes(), Codes(), Codes(), Codes()
        self.lifetimes, self.tags, self.speakers = Codes(), Codes(), Codes()
        self._data = {name: np.zeros(64, kind) for name, kind in _ARRAYS.items()}
        self._position: dict[int, int] = {}
        self._conversations: dict[str, int] = {}
        self._groups = 0
        self._last: dict[int, int] = {}
        self._heard: dict[tuple[str, int, int], int | None] = {}

    def column(self, name: str) -> NDArray[Any]:
        """As far as it is filled."""
        return self._data[name][: self.size]

    def position(self, key: int) -> int | None:
        return self._position.get(key)

    def positions(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of those that are there."""
        known = self.column("key")
        if not len(known) or not len(keys):
            return np.zeros(0, np.int64)
        found = np.searchsorted(known, keys)  # keys grow with time, so positions are in the order of keys
        inside = found < len(known)
        found, keys = found[inside], keys[inside]
        return found[known[found] == keys]

    def put(self, key: int, record: Record, length: int, head: str) -> int:
        """Add a memory, or take in what has changed of it. `head` is the beginning of its text."""
        at = self._position.get(key)
        if at is None:
            at = self._append(key, record, length, head)
        data = self._data
        data["expires"][at] = NEVER if record.expires_at is None else to_micros(record.expires_at)
        data["importance"][at] = record.importance
        data["archived"][at] = record.archived_at is not None
        data["superseded"][at] = record.superseded_by is not None
        data["lifetime"][at] = self.lifetimes(record.lifetime)
        data["tags"][at] = self.tags(record.tags)
        return at

    def _append(self, key: int, record: Record, length: int, head: str) -> int:
        at = self.size
        if at == len(self._data["key"]):
            wanted = int(at * 1.5) + 64
            self._data = {name: np.resize(array, wanted) for name, array in self._data.items()}
        self.size += 1
        self.ids.append(record.id)
        self._position[key] = at
        data = self._data
        group = self._group(record.address.conversation)
        data["key"][at] = key
        data["created"][at] = to_micros(record.created_at)
        data["length"][at] = length
        data["who"][at] = self.who((record.address, record.tier))
        data["kind"][at] = self.kinds(record.kind)
        data["role"][at] = self.roles(record.role)
        data["source"][at] = self.sources(record.source)
        data["conversation"][at] = group
        data["alive"][at] = True
        data["before"][at], data["after"][at] = self._last.get(group, -1), -1
        if group in self._last:
            data["after"][self._last[group]] = at
        self._last[group] = at
        self._listen(at, group, record, head)
        return at

    def _group(self, conversation: str | None) -> int:
        """The number of a conversation. A memory outside any has one of its own."""
        if conversation is None:
            self._groups += 1
            return self._groups - 1
        group = self._conversations.get(conversation)
        if group is None:
            group = self._conversations[conversation] = self._groups
            self._groups += 1
        return group

    def _listen(self, at: int, group: int, record: Record, head: str) -> None:
        """Who said it. A name before a colon is a speaker's once a second turn of the conversation begins with it.

        Turns that not everyone sees prove nothing to others: each address counts its own.
        """
        speakers, column = self.speakers, self._data["speaker"]
        column[at] = speakers(record.role or "")
        given = record.metadata.get("speaker")
        name = speaker(head) if not isinstance(given, str) else None
        if isinstance(given, str) and given:
            column[at] = speakers(given.lower())
        elif name:
            heard = name, group, int(self._data["who"][at])
            first = self._heard.get(heard, -1)
            if first == -1:
                self._heard[heard] = at
                return
            column[at] = speakers(name)
            if first is not None:
                column[first] = column[at]
                self._heard[heard] = None

    def remove(self, key: int) -> None:
        at = self._position.pop(key, None)
        if at is None:
            return
        data = self._data
        before, after, group = int(data["before"][at]), int(data["after"][at]), int(data["conversation"][at])
        if before >= 0:
            data["after"][before] = after
        if after >= 0:
            data["before"][after] = before
        if self._last.get(group) == at:
            if before >= 0:
                self._last[group] = before
            else:
                del self._last[group]
        data["alive"][at] = False
        self.dead += 1

    def missing(self, dimensions: int, most: int) -> list[str]:
        """Ids of living memories without a vector of so many dimensions, the newest first."""
        lacking = self.column("alive") & ~self.column("superseded")
        vectors = self.vectors
        if vectors is not None and vectors.dimensions == dimensions:
            vectors.reserve(self.size)
            lacking &= ~vectors.has[: self.size]
        return [self.ids[at] for at in np.flatnonzero(lacking)[::-1][:most].tolist()]

    def mask(self, where: Filter) -> NDArray[np.bool_]:
        """Which positions a filter sees: what `Filter.matches` says of each."""
        now = to_micros(where.now)
        found = self.column("alive") & self.who.table(lambda who: _may(where, *who))[self.column("who")]
        archived, superseded = self.column("archived"), self.column("superseded")
        expired = self.column("expires") <= now
        if where.state == "live":
            found &= ~(archived | superseded | expired)
        elif where.state == "expired":
            found &= expired & ~(archived | superseded)
        elif where.state == "archived":
            found &= archived & ~superseded
        elif where.state == "superseded":
            found &= superseded
        for codes, name, wanted in (
            (self.kinds, "kind", where.kinds),
            (self.roles, "role", where.roles),
            (self.sources, "source", where.sources),
            (self.lifetimes, "lifetime", where.lifetimes),
        ):
            if wanted:
                found &= codes.table(frozenset(wanted).__contains__)[self.column(name)]
        if where.tags or where.any_tags or where.without_tags:
            found &= self.tags.table(where.has_tags)[self.column("tags")]
        if where.since is not None:
            found &= self.column("created") >= to_micros(where.since)
        if where.until is not None:
            found &= self.column("created") < to_micros(where.until)
        if where.min_importance is not None:
            found &= self.column("importance") >= where.min_importance
        return found


def _may(where: Filter, address: Address, tier: Tier) -> bool:
    return (
        visible_at(where.view, address, tier)
        and (not where.tiers or tier in where.tiers)
        and (where.conversation is None or address.conversation == where.conversation)
        and (where.channel is None or address.channel == where.channel)
        and (where.agent is None or address.agent == where.agent)
    )


def joined(keys: str | None) -> NDArray[np.int64]:
    """From SQLite's group_concat of numbers."""
    return np.fromstring(keys, np.int64, sep=",") if keys else np.zeros(0, np.int64)
