"""The columns of one SQLite file, kept current with what this and other processes write."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import apsw
import msgspec
import numpy as np
from numpy.typing import NDArray

from recollect.record import Address
from recollect.stores.columns import NEVER, Batch, Columns, Vectors, joined
from recollect.stores.corpus import Corpus
from recollect.stores.port import Place
from recollect.stores.sqlite.database import UNREADABLE
from recollect.stores.sqlite.memories import Memories
from recollect.text.fts import expression, word_pattern, word_terms
from recollect.text.query import TextQuery
from recollect.text.speakers import HEAD

# The text itself stays where it is: its beginning tells who speaks, and its length how much a neighbour may lend.
_ROWS = f"""SELECT seq, id, created_at, coalesce(expires_at, {NEVER}), importance, archived_at IS NOT NULL,
    superseded_by IS NOT NULL, length(text), kind, role, source, lifetime, tags, substr(text, 1, {HEAD}),
    CASE WHEN instr(metadata, '"speaker"') THEN metadata END,
    tier, account, channel, conversation, agent FROM memories WHERE"""
_NEW = f"{_ROWS} seq > ? ORDER BY seq LIMIT ?"
_POSTINGS = "SELECT group_concat(rowid) FROM memories_text WHERE memories_text MATCH ?"
_VECTORS = "SELECT seq, vector FROM embeddings WHERE model = ? AND length(vector) = ? AND"
_SOME = 400
_BLOCK = 10_000
"""Rows in memory at a time while columns are filled."""
_VECTOR_BLOCK = 1000

_strings = msgspec.json.Decoder(tuple[str, ...]).decode
_any = msgspec.json.Decoder(dict[str, Any]).decode


class Resident:
    def __init__(self, handle: Memories) -> None:
        self._handle = handle
        self._columns = Columns()
        self._rev = 0
        self._seen: tuple[int, int] | None = None

    @contextmanager
    def corpus(self, model: str | None) -> Generator[Corpus]:
        handle = self._handle
        with handle.lock:
            self._refresh(model)
            yield Corpus(self._columns, self._postings, self._required, word_terms, self._texts)

    @property
    def bytes(self) -> int:
        return self._columns.bytes

    def _refresh(self, model: str | None) -> None:
        connection = self._handle.connection
        open_ = connection.in_transaction
        seen = (connection.pragma("data_version"), connection.total_changes())
        if self._stale:
            self._columns, self._seen = Columns(), None
        self._stale = True  # until all of it is read
        if seen != self._seen or open_:
            self._catch_up()
        if model is not None and (self._columns.vectors is None or self._columns.vectors.model != model):
            self._attach(model)
        self._seen = seen
        self._stale = open_  # what is not committed may never be

    _stale = False
    """Whether it may hold what was taken back since, or lack something."""

    def _catch_up(self) -> None:
        rows, columns = self._handle.rows, self._columns
        ((rev,),) = rows("SELECT coalesce(max(rev), 0) FROM changed")
        changed: list[int] = []
        if columns.size:
            found = rows("SELECT DISTINCT seq FROM changed WHERE rev > ? AND seq <= ?", (self._rev, columns.last_key))
            changed = sorted(seq for (seq,) in found)
            self._restate(changed)
        self._rev, last = rev, columns.last_key
        while block := rows(_NEW, (columns.last_key, _BLOCK)):
            self._take_in(columns.extend, block)
        if columns.vectors is not None:
            self._reload_vectors(columns.vectors, [seq for seq in changed if seq <= last])
            self._load_vectors(columns.vectors, last)

    def _restate(self, changed: Sequence[int]) -> None:
        columns = self._columns
        for some in _shares(changed):
            there = {row[0]: row for row in self._handle.rows(f"{_ROWS} seq IN ({_marks(some)})", tuple(some))}
            kept: list[Sequence[Any]] = []
            for seq in some:
                at, row = columns.position(seq), there.get(seq)
                if row is None:
                    columns.remove(seq)
                elif at is not None and columns.ids[at] == row[1]:
                    kept.append(row)
                else:  # another has its number by now: those from here on were numbered anew, and are read as new
                    columns.remove_from(seq)
                    break
            if kept:
                self._take_in(columns.restate, kept)

    def _take_in(self, way: Callable[[Batch], None], rows: Sequence[Sequence[Any]]) -> None:
        try:
            *columns, tags, head, said, tier, account, channel, conversation, agent = zip(*rows, strict=True)
            who = list(zip(tier, account, channel, conversation, agent, strict=True))
            known = {one: _who(self._handle.place, *one) for one in dict.fromkeys(who)}
            lists = {text: _strings(text) if text else () for text in dict.fromkeys(tags)}
            given = [_any(text).get("speaker") if text else None for text in said]
            way(Batch._make([*columns, [lists[text] for text in tags], head, given, [known[one] for one in who]]))
        except UNREADABLE as error:
            raise self._handle.problem(error) from error

    def _attach(self, model: str) -> None:
        row = self._handle.row("SELECT length(vector) FROM embeddings WHERE model = ? LIMIT 1", (model,))
        if row is None:
            self._columns.vectors = None
            return
        vectors = self._columns.vectors = Vectors(model, row[0] // 4, self._columns.size)
        self._load_vectors(vectors, 0)

    def _reload_vectors(self, vectors: Vectors, changed: Sequence[int]) -> None:
        for some in _shares(changed):
            sql = f"{_VECTORS} seq IN ({_marks(some)})"
            found = dict(self._handle.rows(sql, (vectors.model, 4 * vectors.dimensions, *some)))
            for seq in some:
                if (at := self._columns.position(seq)) is not None:
                    vectors.put(at, found.get(seq))

    def _load_vectors(self, vectors: Vectors, after: int) -> None:
        """Block by block, so that beside the matrix there is never much of them in memory."""
        handle, columns = self._handle, self._columns
        vectors.reserve(columns.size)
        try:
            sql = f"{_VECTORS} seq > ? ORDER BY seq"
            cursor: Iterator[tuple[int, bytes]] = handle.connection.execute(
                sql, (vectors.model, 4 * vectors.dimensions, after)
            )
            while block := list(islice(cursor, _VECTOR_BLOCK)):
                keys = np.fromiter((seq for seq, _ in block), np.int64, len(block))
                positions = columns.positions(keys)
                if len(positions) < len(keys):  # written since the columns were read, and read next time
                    known = set(columns.column("key")[positions].tolist())
                    block = [row for row in block if row[0] in known]
                vectors.fill(positions, [blob for _, blob in block])
        except apsw.Error as error:
            raise handle.problem(error) from error

    def _postings(self, term: str) -> NDArray[np.int64]:
        row = self._handle.row(_POSTINGS, (term,))
        return joined(row[0] if row else None)

    def _required(self, query: TextQuery) -> NDArray[np.int64] | None:
        if not query.phrases and not query.patterns:
            return None
        clause = "".join(" AND word_like(?, m.text)" for _ in query.patterns)
        values = [word_pattern(pattern) for pattern in query.patterns]
        match = expression(TextQuery(phrases=query.phrases, patterns=query.patterns))
        if match:
            sql = f"""SELECT m.seq FROM memories_text t CROSS JOIN memories m ON m.seq = t.rowid
                WHERE memories_text MATCH ?{clause} ORDER BY m.seq"""
            found = self._handle.rows(sql, (match, *values))
        elif query.patterns:
            found = self._handle.rows(f"SELECT m.seq FROM memories m WHERE 1{clause} ORDER BY m.seq", values)
        else:
            found = []
        return np.fromiter((seq for (seq,) in found), np.int64, len(found))

    def _texts(self, keys: Sequence[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        for some in _shares(keys):
            sql = f"SELECT seq, text FROM memories WHERE seq IN ({_marks(some)})"
            found.update(self._handle.rows(sql, tuple(some)))
        return found


def _who(place: Place, tier: Any, *address: str | None) -> tuple[Address, Any]:
    return Address(*place, *address), tier


def _shares(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    return (keys[start : start + _SOME] for start in range(0, len(keys), _SOME))


def _marks(values: Sequence[int]) -> str:
    return ", ".join("?" * len(values))
