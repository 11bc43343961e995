"""The columns of one SQLite file, kept current with what this and other processes write."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.speech import HEAD
from recollect.stores.columns import Columns, Vectors, joined
from recollect.stores.corpus import Corpus
from recollect.stores.sqlite.match import expression, word_pattern, word_terms
from recollect.stores.sqlite.memories import Memories
from recollect.stores.sqlite.rows import SELECT, to_record
from recollect.textquery import TextQuery

# The text itself stays where it is: its beginning tells who speaks, and its length how much a neighbour may lend.
_LIGHT = SELECT.replace("m.text", f"substr(m.text, 1, {HEAD})").replace("m.data", "NULL")
_ROWS = f"SELECT m.seq, length(m.text), {_LIGHT}, NULL, NULL FROM memories m WHERE"
_POSTINGS = "SELECT group_concat(rowid) FROM memories_text WHERE memories_text MATCH ?"
_VECTOR = "SELECT vector FROM embeddings WHERE seq = ? AND model = ?"
_SOME = 400


class Resident:
    def __init__(self, handle: Memories) -> None:
        self._handle = handle
        self._columns = Columns()
        self._seq = self._rev = 0
        self._seen: tuple[int, int] | None = None
        self.columns_model: str | None = None

    @contextmanager
    def corpus(self, model: str | None) -> Generator[Corpus]:
        handle = self._handle
        with handle.lock:
            self._refresh(model)
            yield Corpus(self._columns, self._postings, self._required, word_terms, self._texts)

    @property
    def bytes(self) -> int:
        vectors = self._columns.vectors
        return 128 * self._columns.size + (vectors.matrix.nbytes if vectors else 0)

    def _refresh(self, model: str | None) -> None:
        connection = self._handle.connection
        open_ = connection.in_transaction
        seen = (connection.pragma("data_version"), connection.total_changes())
        if seen != self._seen or open_ or self._stale:
            self._catch_up()
        if model is not None and (self._columns.vectors is None or self._columns.vectors.model != model):
            self._attach(model)
        self._seen = seen
        self._stale = open_  # what is not committed may never be

    _stale = False
    """Whether it may hold what was taken back since."""

    def _catch_up(self) -> None:
        if self._stale:
            self._columns, self._seq, self._rev, self._stale = Columns(), 0, 0, False
        rows = self._handle.rows
        ((rev,),) = rows("SELECT coalesce(max(rev), 0) FROM changed")
        if self._seq == 0:
            self._rev = rev
        changed = [seq for (seq,) in rows("SELECT DISTINCT seq FROM changed WHERE rev > ?", (self._rev,))]
        self._rev = rev
        last = self._seq
        for row in rows(f"{_ROWS} m.seq > ? ORDER BY m.seq", (last,)):
            self._put(row)
        for seq in changed:
            if seq <= last:
                self._restate(seq)
        vectors = self._columns.vectors
        if vectors is not None:
            self._load_vectors(vectors, last, [seq for seq in changed if seq <= last])

    def _put(self, row: Sequence[Any]) -> None:
        seq, length, *fields = row
        self._columns.put(seq, to_record(self._handle.place, fields), length, fields[22])
        self._seq = max(self._seq, seq)

    def _restate(self, seq: int) -> None:
        found = self._handle.rows(f"{_ROWS} m.seq = ?", (seq,))
        if found:
            self._put(found[0])
        else:
            self._columns.remove(seq)

    def _attach(self, model: str) -> None:
        row = self._handle.row("SELECT length(vector) FROM embeddings WHERE model = ? LIMIT 1", (model,))
        if row is None:
            self._columns.vectors = None
            return
        vectors = self._columns.vectors = Vectors(model, row[0] // 4, self._columns.size)
        self._load_vectors(vectors, 0, [])

    def _load_vectors(self, vectors: Vectors, after: int, changed: Sequence[int]) -> None:
        columns = self._columns
        vectors.reserve(columns.size)
        for seq in changed:
            at = columns.position(seq)
            if at is not None:
                row = self._handle.row(_VECTOR, (seq, vectors.model))
                vectors.put(at, row[0] if row else None)
        size = 4 * vectors.dimensions
        sql = "SELECT seq, vector FROM embeddings WHERE seq > ? AND model = ? AND length(vector) = ? ORDER BY seq"
        rows = self._handle.rows(sql, (after, vectors.model, size))
        if not rows:
            return
        keys = np.fromiter((seq for seq, _ in rows), np.int64, len(rows))
        block = np.frombuffer(b"".join(vector for _, vector in rows), "<f4").reshape(len(rows), vectors.dimensions)
        norms = np.linalg.norm(block, axis=1, keepdims=True)
        there = np.isin(keys, columns.column("key"))
        at = columns.positions(keys)
        vectors.matrix[at] = (block / np.where(norms, norms, 1.0))[there]
        vectors.has[at] = True

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
        for start in range(0, len(keys), _SOME):
            some = keys[start : start + _SOME]
            sql = f"SELECT seq, text FROM memories WHERE seq IN ({', '.join('?' * len(some))})"
            found.update(self._handle.rows(sql, tuple(some)))
        return found
