"""A copy of one book in columns, with an index of its words, kept current with the book's state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.stores.files.book import Book
from recollect.stores.files.state import Row
from recollect.stores.files.text import TextIndex, has_all, having, of_letters
from recollect.stores.resident.columns import Batch, Columns, Vectors, micros
from recollect.stores.resident.shortlist import resident_shortlist
from recollect.stores.shortlist import Ask, Shortlist
from recollect.text.query import TextQuery
from recollect.values.filters import Filter
from recollect.values.record import to_micros


class _Copied(NamedTuple):
    row: Row
    key: int
    """The number that it is indexed under."""


class Resident:
    """Whoever calls holds the guard of the book, so that words and columns tell of the same moment."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._forget()

    def _forget(self) -> None:
        self._generation: object = None
        self._revision = -1
        self._columns = Columns()
        self._index = TextIndex()
        self._copied: dict[str, _Copied] = {}

    @property
    def bytes(self) -> int:
        return self._columns.bytes

    def close(self) -> None:
        with self._book.guard:
            self._index.close()
            self._forget()

    # What is asked

    def search(self, ask: Ask) -> Shortlist | None:
        """None where nothing is kept."""
        dimensions = 0 if ask.vector is None else len(ask.vector) // 4
        columns = self._current(ask.model if dimensions else None, dimensions)
        if not columns.size:
            return None
        return resident_shortlist(self._book.place, columns, ask, self._index.postings, self._required)

    def lacking(self, model: str, dimensions: int, limit: int) -> list[str]:
        return self._current(model, dimensions).missing(dimensions, limit)

    def speakers(self, where: Filter) -> dict[str, int]:
        return self._current(None, 0).seen(where).speakers()

    def speaker_of(self, idents: Iterable[str]) -> dict[str, str]:
        """Who said each memory."""
        block = self._current(None, 0).block()
        names = [block.speakers[int(code)] for code in block.speaker]
        known = dict(zip(block.ids, names, strict=False))
        return {ident: known.get(ident, "") for ident in idents}

    # Keeping current

    def _current(self, model: str | None, dimensions: int) -> Columns:
        try:
            self._catch_up()
            self._attach(model, dimensions)
        except BaseException:
            self._forget()  # it may lack something
            raise
        return self._columns

    def _catch_up(self) -> None:
        book, reader, inside = self._book, self._book.reader, self._book.mine() is not None
        if self._generation is not reader.generation:
            self._forget()
            self._generation = reader.generation
        if self._revision == reader.revision and not inside:
            return
        rows = {row.record.id: row for row in book.rows()}
        for ident in [ident for ident in self._copied if ident not in rows]:
            self._remove(ident)
        # A row is replaced whenever anything of it changes, so the same object means: nothing did.
        changed = [row for ident, row in rows.items() if (was := self._copied.get(ident)) is None or was.row is not row]
        moved = [row for row in changed if self._moved(row)]
        for row in moved:
            self._remove(row.record.id)
        fresh = {row.record.id for row in changed if row.record.id not in self._copied}
        same = [row for row in changed if row.record.id not in fresh]
        self._add([row for row in changed if row.record.id in fresh])
        self._restate(same)
        self._revision = reader.revision

    def _moved(self, row: Row) -> bool:
        """Whether another memory has the id by now."""
        was = self._copied.get(row.record.id)
        return was is not None and (
            (was.row.start, was.row.end) != (row.start, row.end) or was.row.record.content is not row.record.content
        )

    def _remove(self, ident: str) -> None:
        copied = self._copied.pop(ident)
        self._columns.remove(copied.key)
        self._index.remove([ident])

    def _add(self, rows: Sequence[Row]) -> None:
        """In the order of storing: who comes first in the index came first in the conversation."""
        records = [(row, record) for row in rows if (record := self._book.record(row, vector=False))]
        self._index.add((record.id, record.text) for _, record in records)
        copied = [_Copied(row, self._index.key(record.id)) for row, record in records]
        self._copied.update((each.row.record.id, each) for each in copied)
        self._columns.extend(self._batch(copied))
        self._load_vectors(copied)

    def _restate(self, rows: Sequence[Row]) -> None:
        copied = [_Copied(row, self._copied[row.record.id].key) for row in rows]
        before = [self._copied[row.record.id].row for row in rows]
        self._copied.update((each.row.record.id, each) for each in copied)
        self._columns.restate(self._batch(sorted(copied, key=lambda each: each.key)))
        self._load_vectors(
            [
                each
                for each, was in zip(copied, before, strict=True)
                if (was.vector, was.vector_version) != (each.row.vector, each.row.vector_version)
            ]
        )

    def _attach(self, model: str | None, dimensions: int) -> None:
        vectors = self._columns.vectors
        if model is None or (vectors is not None and (vectors.model, vectors.dimensions) == (model, dimensions)):
            return
        self._columns.vectors = Vectors(model, dimensions, self._columns.size)
        self._load_vectors(list(self._copied.values()))

    def _load_vectors(self, copied: Sequence[_Copied]) -> None:
        vectors = self._columns.vectors
        if vectors is None:
            return
        for row, key in copied:
            wanted = row.vector is not None and row.record.embedding_model == vectors.model
            at = self._columns.position(key)
            if at is not None:
                vectors.put(at, self._book.reader.vector(row) if wanted else None)

    def _required(self, query: TextQuery) -> NDArray[np.int64] | None:
        if not query.phrases and not query.patterns:
            return None
        patterns = having(query.patterns)
        if patterns and all(map(of_letters, query.patterns)):
            some = self._index.with_words(patterns, self._text)
            if query.phrases:
                some &= {self._index.key(ident) for ident in self._index.search(TextQuery(phrases=query.phrases))}
            return np.array(sorted(some), np.int64)
        keys = [
            copied.key
            for ident in self._index.search(TextQuery(phrases=query.phrases, patterns=query.patterns))
            if (copied := self._copied.get(ident)) and (not patterns or has_all(patterns, self._book.text(copied.row)))
        ]
        return np.array(sorted(keys), np.int64)

    def _text(self, ident: str) -> str:
        copied = self._copied.get(ident)
        return self._book.text(copied.row) if copied else ""

    def _batch(self, copied: Sequence[_Copied]) -> Batch:
        records = [row.record for row, _ in copied]
        shapes = [self._index.shape(key) for _, key in copied]
        return Batch(
            key=[key for _, key in copied],
            ident=[record.id for record in records],
            created=[to_micros(record.created_at) for record in records],
            expires=[micros(record.expires_at) for record in records],
            importance=[record.importance for record in records],
            archived=[record.archived_at is not None for record in records],
            superseded_by=[record.superseded_by for record in records],
            length=[length for length, _ in shapes],
            kind=[record.kind for record in records],
            role=[record.role for record in records],
            source=[record.source for record in records],
            lifetime=[record.lifetime for record in records],
            tags=[record.tags for record in records],
            head=[head for _, head in shapes],
            said_by=[record.metadata.get("speaker") for record in records],
            who=[(record.address, record.tier) for record in records],
        )
