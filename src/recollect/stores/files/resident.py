"""The columns of one book, kept current with its state."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from recollect.record import to_micros
from recollect.stores.columns import Batch, Columns, Vectors, micros
from recollect.stores.corpus import Corpus
from recollect.stores.files.searching import SearchedBook
from recollect.stores.files.state import Row
from recollect.stores.files.text import TextIndex, has_all, having
from recollect.text.fts import word_terms
from recollect.text.query import TextQuery


class Resident:
    def __init__(self, book: SearchedBook) -> None:
        self._book = book
        self._generation: object = None
        self._forget()

    def _forget(self) -> None:
        self._columns = Columns()
        self._seen: dict[str, tuple[Row, int]] = {}

    @property
    def bytes(self) -> int:
        return self._columns.bytes

    @contextmanager
    def corpus(self, model: str | None) -> Generator[Corpus]:
        book = self._book
        with book.guard:
            book.refresh()
            index = book.text_index()
            self._catch_up(index, model)
            yield Corpus(self._columns, index.postings, self._required, word_terms, self._texts)

    def _catch_up(self, index: TextIndex, model: str | None) -> None:
        book = self._book
        if self._generation is not book.generation:
            self._forget()
            self._generation = book.generation
        columns, rows, seen = self._columns, book.state.rows, self._seen
        for ident in seen.keys() - rows.keys():
            columns.remove(seen.pop(ident)[1])
        # A row is replaced whenever anything of it changes, so the same object means: nothing did. But one that was
        # put back after a failed change is indexed anew.
        changed = [
            (index.key(ident), ident, row)
            for ident, row in rows.items()
            if (known := seen.get(ident)) is None or known[0] is not row or known[1] != index.key(ident)
        ]
        changed = sorted((one for one in changed if one[0]), key=lambda one: one[0])
        new: list[tuple[int, str, Row]] = []
        same: list[tuple[int, str, Row]] = []
        for one in changed:
            key, ident, row = one
            known = seen.get(ident)
            if known is not None and known[1] != key:
                columns.remove(known[1])
            (same if known is not None and known[1] == key else new).append(one)
            seen[ident] = row, key
        columns.restate(_batch(same, index))
        columns.extend(_batch(new, index))
        self._keep_vectors(model, [(key, row) for key, _, row in changed])

    def _keep_vectors(self, model: str | None, changed: Sequence[tuple[int, Row]]) -> None:
        columns = self._columns
        if model is not None and (columns.vectors is None or columns.vectors.model != model):
            columns.vectors = None
            changed = [(key, row) for row, key in self._seen.values()]
        vectors = columns.vectors
        for key, row in changed:
            wanted = model is not None and row.vector is not None and row.record.embedding_model == model
            blob = self._book.vector(row) if wanted else None
            if vectors is None and blob is not None and model is not None:
                vectors = columns.vectors = Vectors(model, len(blob) // 4, columns.size)
            at = columns.position(key)
            if vectors is not None and at is not None:
                vectors.put(at, blob)

    def _required(self, query: TextQuery) -> NDArray[np.int64] | None:
        if not query.phrases and not query.patterns:
            return None
        book, patterns = self._book, having(query.patterns)
        found: list[int] = []
        for ident, _ in book.text_index().search(TextQuery(phrases=query.phrases, patterns=query.patterns)):
            row = book.state.rows.get(ident)
            if row is not None and (not patterns or has_all(patterns, book.text(row))):
                found.append(self._seen[ident][1])
        return np.array(sorted(found), np.int64)

    def _texts(self, keys: Sequence[int]) -> dict[int, str]:
        book, index = self._book, self._book.text_index()
        rows = {key: row for key in keys if (row := book.state.rows.get(index.ident(key)))}
        return {key: book.text(row) for key, row in rows.items()}


def _batch(some: Sequence[tuple[int, str, Row]], index: TextIndex) -> Batch:
    records = [row.record for _, _, row in some]
    shapes = [index.shape(key) for key, _, _ in some]
    return Batch(
        key=[key for key, _, _ in some],
        ident=[record.id for record in records],
        created=[to_micros(record.created_at) for record in records],
        expires=[micros(record.expires_at) for record in records],
        importance=[record.importance for record in records],
        archived=[record.archived_at is not None for record in records],
        superseded=[record.superseded_by is not None for record in records],
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
