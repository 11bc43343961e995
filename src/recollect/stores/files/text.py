"""Full-text search over memories in a process, with the index of the SQLite store held in memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import apsw

from recollect.text.fts import expression, word_pattern
from recollect.text.query import TextQuery
from recollect.text.segment import fold, segment
from recollect.text.speakers import HEAD

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TABLE = """CREATE VIRTUAL TABLE words USING fts5 (text, content = '', contentless_delete = 1,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'")"""


class TextIndex:
    """Ids by the words of their texts."""

    def __init__(self) -> None:
        # apsw describes SQLite values with a type that strict checking cannot resolve.
        self._connection: Any = apsw.Connection(":memory:")
        self._connection.execute(_TABLE)
        self._rows: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._shapes: dict[int, tuple[int, str]] = {}
        self._next = 1

    def add(self, texts: Iterable[tuple[str, str]]) -> None:
        """Texts by id, in place of those known by the same ids."""
        rows: list[tuple[int, str]] = []
        for ident, text in texts:
            self._forget(ident)
            row = self._next
            self._next += 1
            self._rows[ident] = row
            self._ids[row] = ident
            self._shapes[row] = len(text), text[:HEAD]
            rows.append((row, segment(text)))
        with self._connection:
            self._connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)

    def _forget(self, ident: str) -> None:
        row = self._rows.pop(ident, None)
        if row is not None:
            del self._ids[row], self._shapes[row]
            self._connection.execute("DELETE FROM words WHERE rowid = ?", (row,))

    def remove(self, idents: Iterable[str]) -> None:
        with self._connection:
            for ident in idents:
                self._forget(ident)

    def search(self, query: TextQuery) -> Iterator[tuple[str, float]]:
        """Ids that may match, best first, with their scores. `having` tells which of them have the patterns."""
        match = expression(query)
        if match:
            sql = "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank"
            for row, rank in self._connection.execute(sql, (match,)):
                yield self._ids[row], -rank
        elif query.patterns:
            for ident in self._rows:
                yield ident, 1.0

    def key(self, ident: str) -> int:
        """The number that a memory is indexed under; 0 for one that is not. Later ones have higher numbers."""
        return self._rows.get(ident, 0)

    def ident(self, key: int) -> str:
        return self._ids[key]

    def shape(self, key: int) -> tuple[int, str]:
        """The length of a text, and its beginning."""
        return self._shapes[key]

    def postings(self, term: str) -> NDArray[np.int64]:
        """The numbers of all that have the term."""
        from recollect.stores.columns import joined

        row = self._connection.execute("SELECT group_concat(rowid) FROM words WHERE words MATCH ?", (term,)).fetchone()
        return joined(row[0])


def having(patterns: tuple[str, ...]) -> list[re.Pattern[str]]:
    return [re.compile(word_pattern(pattern)) for pattern in patterns]


def has_all(patterns: list[re.Pattern[str]], text: str) -> bool:
    if not patterns:
        return True
    folded = fold(text)
    return all(pattern.search(folded) for pattern in patterns)
