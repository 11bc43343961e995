"""The columns of one book, kept current with its state."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from recollect.stores.columns import Columns, Vectors
from recollect.stores.corpus import Corpus
from recollect.stores.jsonl.searching import SearchedBook
from recollect.stores.jsonl.state import Row
from recollect.stores.jsonl.text import TextIndex, has_all, having
from recollect.stores.sqlite.match import word_terms
from recollect.textquery import TextQuery


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
        vectors = self._columns.vectors
        return 128 * self._columns.size + (vectors.matrix.nbytes if vectors else 0)

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
        # A row is replaced whenever anything of it changes, so the same object means: nothing did.
        changed = [
            (index.key(ident), ident, row)
            for ident, row in rows.items()
            if (known := seen.get(ident)) is None or known[0] is not row
        ]
        for key, ident, row in sorted(changed, key=lambda one: one[0]):
            if key and (known := seen.get(ident)) and known[1] != key:
                columns.remove(known[1])
            if key:
                seen[ident] = row, key
                columns.put(key, row.record, *index.shape(key))
        self._keep_vectors(model, [(key, row) for key, _, row in changed if key])

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
