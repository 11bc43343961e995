"""The columns of one SQLite file, kept current with what this and other processes write."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import apsw
import msgspec
import numpy as np
from numpy.typing import NDArray

from recollect.stores.port import Place
from recollect.stores.resident import columns_file
from recollect.stores.resident.columns import Batch, Columns, joined
from recollect.stores.resident.shortlist import resident_shortlist
from recollect.stores.resident.snapshot import ALWAYS, NEVER
from recollect.stores.resident.vectors import Vectors
from recollect.stores.resident.vocabulary import Vocabulary, is_of_letters
from recollect.stores.rows import UNREADABLE
from recollect.stores.shortlist import Ask, Shortlist
from recollect.stores.sqlite.columns_writer import ColumnsWriter, State, has_mark
from recollect.stores.sqlite.match import match_entry, match_expression
from recollect.stores.sqlite.place_file import PlaceFile
from recollect.stores.tables.conditions import marks
from recollect.stores.transactions import StaleFileError
from recollect.text.query import TextQuery
from recollect.text.terms import word_pattern
from recollect.values.record import Address

_ROWS = f"""SELECT seq, id, created_at, coalesce(expires_at, {NEVER}),
    coalesce(valid_from, {ALWAYS}), coalesce(valid_until, {NEVER}), importance, archived_at IS NOT NULL,
    superseded_by, length, kind, role, source, lifetime, tags, speaker, tier, account, channel, conversation, agent
    FROM memories WHERE"""
_NEW = f"{_ROWS} seq > ? ORDER BY seq LIMIT ?"
_POSTINGS = "SELECT group_concat(rowid) FROM memories_text WHERE memories_text MATCH ?"
_VECTORS = "SELECT seq, vector FROM embeddings WHERE model = ? AND length(vector) = ? AND"
_BLOCK = 10_000
"""Rows in memory at a time while columns are filled."""
_VECTOR_BLOCK = 1000
_FINISHING = 60.0
"""Seconds that closing waits for the columns file."""
_SOME = 400
"""Numbers in one statement."""

_strings = msgspec.json.Decoder(tuple[str, ...]).decode


class Resident:
    """A copy with a connection of its own, by which it sees what others have committed. Threads take turns."""

    def __init__(self, handle: PlaceFile) -> None:
        self._handle = handle
        self._lock = threading.Lock()
        self._connection: Any = None
        self._closed = False
        self._writer = ColumnsWriter(handle, self._state)
        self._forget()

    def _forget(self) -> None:
        self._columns = Columns()
        self._vocabulary = Vocabulary()
        self._rev = 0
        self._version: int | None = None

    @property
    def bytes(self) -> int:
        return self._columns.bytes

    def close(self) -> None:
        """For good: whoever has it still asks for another."""
        self._writer.cancel()
        with self._lock:
            self._closed = True
            self._forget()
            connection, self._connection = self._connection, None
        if connection is not None:
            self._handle.dispose(connection)

    def finish(self) -> None:
        """Leave a file for the next process, if one is due."""
        self._writer.finish(_FINISHING)

    def _state(self) -> State:
        with self._current(None, 0) as columns:
            return State(columns.copied(), self._rev)

    # What is asked

    def search(self, ask: Ask) -> Shortlist:
        dimensions = 0 if ask.vector is None else len(ask.vector) // 4
        with self._current(ask.model if dimensions else None, dimensions) as columns:

            def stored(keys: Sequence[int]) -> dict[int, bytes]:
                return self._stored_vectors(keys, ask.model, dimensions)

            if not self._handle.inside:
                self._writer.consider(columns.size, columns.vectors.model if columns.vectors is not None else None)
            return resident_shortlist(self._handle.place, columns, ask, self._postings, self._required, stored)

    @contextmanager
    def _current(self, model: str | None, dimensions: int) -> Generator[Columns]:
        """The columns as of now, in one read transaction, so that words and columns tell of the same moment."""
        handle = self._handle
        with self._lock:
            inside = handle.inside  # a copy for one question, made in this thread's own transaction
            if inside:
                self._connection = handle.writer
            elif self._closed:
                raise StaleFileError
            elif self._connection is None:
                self._connection = handle.connect()
            try:
                if not inside:
                    self._connection.execute("BEGIN")
                self._refresh(model, dimensions)
                yield self._columns
            except apsw.Error as error:
                raise handle.problem(error) from error
            finally:
                if not inside and self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def _refresh(self, model: str | None, dimensions: int) -> None:
        version: int = self._connection.pragma("data_version")
        try:
            if version != self._version:
                self._version = None
                self._catch_up()
            self._attach(model, dimensions)
            self._version = version
        except BaseException:
            self._forget()  # it may lack something
            raise

    def _rows(self, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except UnicodeDecodeError as error:
            raise self._handle.problem(error) from error

    def _catch_up(self) -> None:
        ((rev, oldest),) = self._rows("SELECT (SELECT max(rev) FROM changed), (SELECT min(rev) FROM changed)")
        if oldest is not None and oldest > self._rev + 1:  # older changes were trimmed, and this copy may lack some
            self._forget()
        if not self._columns.size:
            self._load_file()
        columns, rev = self._columns, rev or 0
        changed: list[int] = []
        if not columns.size:
            self._vocabulary = Vocabulary()
        else:
            rows = self._rows(
                "SELECT DISTINCT seq FROM changed WHERE rev > ? AND seq BETWEEN 1 AND ?", (self._rev, columns.last_key)
            )
            changed = sorted(seq for (seq,) in rows)
            self._restate(changed)
            if changed and self._vocabulary.last_key:
                self._check_vocabulary(changed)
        self._rev, last, before = rev, columns.last_key, columns.size
        while block := self._rows(_NEW, (columns.last_key, _BLOCK)):
            self._take_in(columns.extend, block)
        if columns.vectors is not None:
            self._reload_vectors(columns.vectors, [seq for seq in changed if seq <= last])
            self._load_vectors(columns.vectors, last)
        self._writer.behind += len(changed) + columns.size - before

    def _load_file(self) -> None:
        """Begin with what the columns file has, if there is one of this database."""
        handle = self._handle
        if handle.in_memory:
            return
        loaded = columns_file.load(handle.path, *handle.place, lambda header: has_mark(self._rows, header))
        if loaded is not None:
            header, self._columns = loaded
            self._rev, self._writer.behind = header.rev, 0

    def _check_vocabulary(self, changed: Sequence[int]) -> None:
        """A number may belong to another text by now: then all are read anew when they are needed."""
        for some in _shares(changed):
            sql = f"SELECT seq FROM memories WHERE seq IN ({marks(some)}) AND seq <= ?"
            stored = {seq for (seq,) in self._rows(sql, (*some, self._vocabulary.last_key))}
            if stored:
                self._vocabulary = Vocabulary()
                return

    def _restate(self, changed: Sequence[int]) -> None:
        columns = self._columns
        for some in _shares(changed):
            rows_by_seq = {row[0]: row for row in self._rows(f"{_ROWS} seq IN ({marks(some)})", tuple(some))}
            restated: list[Sequence[Any]] = []
            for seq in some:
                at, row = columns.position(seq), rows_by_seq.get(seq)
                if row is None:
                    columns.remove(seq)
                elif at is not None and columns.ids[at] == row[1]:
                    restated.append(row)
                else:  # another has its number by now: those from here on were numbered anew, and are read as new
                    columns.remove_from(seq)
                    break
            if restated:
                self._take_in(columns.restate, restated)

    def _take_in(self, way: Callable[[Batch], None], rows: Sequence[Sequence[Any]]) -> None:
        try:
            *columns, tags, speakers, tier, account, channel, conversation, agent = zip(*rows, strict=True)
            who = list(zip(tier, account, channel, conversation, agent, strict=True))
            owners = {owner: _who(self._handle.place, *owner) for owner in dict.fromkeys(who)}
            lists = {text: _tags(text) for text in dict.fromkeys(tags)}
            way(Batch._make([*columns, [lists[text] for text in tags], speakers, [owners[o] for o in who]]))
        except UNREADABLE as error:
            raise self._handle.problem(error) from error

    # Vectors

    def _attach(self, model: str | None, dimensions: int) -> None:
        vectors = self._columns.vectors
        if model is None or (vectors is not None and (vectors.model, vectors.dimensions) == (model, dimensions)):
            return
        vectors = self._columns.vectors = Vectors(model, dimensions, self._columns.size)
        self._load_vectors(vectors, 0)
        self._writer.behind += int(np.count_nonzero(vectors.has(self._columns.size)))

    def _stored_vectors(self, keys: Sequence[int], model: str | None, dimensions: int) -> dict[int, bytes]:
        blobs: dict[int, bytes] = {}
        for some in _shares(keys):
            blobs |= dict(self._rows(f"{_VECTORS} seq IN ({marks(some)})", (model, 4 * dimensions, *some)))
        return blobs

    def _reload_vectors(self, vectors: Vectors, changed: Sequence[int]) -> None:
        for some in _shares(changed):
            blobs = self._stored_vectors(some, vectors.model, vectors.dimensions)
            for seq in some:
                if (at := self._columns.position(seq)) is not None:
                    vectors.put(at, blobs.get(seq))

    def _load_vectors(self, vectors: Vectors, after: int) -> None:
        """Block by block, so that beside the matrix there is never much of them in memory."""
        columns = self._columns
        vectors.reserve(columns.size)
        cursor: Iterator[tuple[int, bytes]] = self._connection.execute(
            f"{_VECTORS} seq > ? ORDER BY seq", (vectors.model, 4 * vectors.dimensions, after)
        )
        while block := list(islice(cursor, _VECTOR_BLOCK)):
            keys = np.fromiter((seq for seq, _ in block), np.int64, len(block))
            vectors.fill(columns.positions(keys), [blob for _, blob in block])

    # Words

    def _postings(self, entry: str) -> NDArray[np.int64]:
        ((keys,),) = self._rows(_POSTINGS, (match_entry(entry),)) or ((None,),)
        return joined(keys)

    def _required(self, query: TextQuery) -> NDArray[np.int64] | None:
        if not query.phrases and not query.patterns:
            return None
        if query.patterns and all(map(is_of_letters, query.patterns)):
            return self._with_words(query)
        clause = "".join(" AND word_like(?, m.text)" for _ in query.patterns)
        patterns = [word_pattern(pattern) for pattern in query.patterns]
        match = match_expression(TextQuery(phrases=query.phrases, patterns=query.patterns))
        if match:
            sql = f"""SELECT m.seq FROM memories_text t CROSS JOIN memories m ON m.seq = t.rowid
                WHERE memories_text MATCH ?{clause} ORDER BY m.seq"""
            rows = self._rows(sql, (match, *patterns))
        elif query.patterns:
            rows = self._rows(f"SELECT m.seq FROM memories m WHERE 1{clause} ORDER BY m.seq", patterns)
        else:
            rows = []
        return np.fromiter((seq for (seq,) in rows), np.int64, len(rows))

    def _with_words(self, query: TextQuery) -> NDArray[np.int64]:
        """By the words of all texts, which are read once."""
        vocabulary = self._vocabulary
        vocabulary.add(self._rows("SELECT seq, text FROM memories WHERE seq > ? ORDER BY seq", (vocabulary.last_key,)))
        keys = vocabulary.with_all(query.patterns)
        if query.phrases and (match := match_expression(TextQuery(phrases=query.phrases))):
            keys &= {
                key for (key,) in self._rows("SELECT rowid FROM memories_text WHERE memories_text MATCH ?", (match,))
            }
        return np.array(sorted(keys), np.int64)


def _tags(text: str | None) -> tuple[str, ...]:
    """What a column says; nothing where it cannot be read: whoever reads the memory itself leaves it out."""
    try:
        return _strings(text) if text else ()
    except UNREADABLE:
        return ()


def _who(place: Place, tier: Any, *address: str | None) -> tuple[Address, Any]:
    return Address(*place, *address), tier


def _shares(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    return (keys[start : start + _SOME] for start in range(0, len(keys), _SOME))
