"""Full-text search over memories in a process, with the index of the SQLite store held in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import apsw

from recollect.runtime.forking import in_sqlite
from recollect.stores.sqlite.match import match_entry, match_expression
from recollect.text.query import LETTER, TextQuery
from recollect.text.segment import fold, segment
from recollect.text.speakers import HEAD
from recollect.text.terms import word_pattern

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TABLE = """CREATE VIRTUAL TABLE words USING fts5 (text, content = '', contentless_delete = 1,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'")"""


_WORD, _ASCII_WORD = re.compile(f"{LETTER}+"), re.compile(r"\w+", re.ASCII)


class TextIndex:
    """Ids by the words of their texts."""

    def __init__(self) -> None:
        # apsw describes SQLite values with a type that strict checking cannot resolve.
        with in_sqlite:
            self._connection: Any = apsw.Connection(":memory:")
            self._connection.execute(_TABLE)
        self._rows: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._shapes: dict[int, tuple[int, str]] = {}
        self._next = 1
        self._vocabulary: dict[str, list[int]] = {}
        """The numbers of those that have a word, some of which may be gone. Made when it is first asked for."""
        self._unread: dict[int, str] = {}
        """Those whose words are not in it yet."""

    def add(self, texts: Iterable[tuple[str, str]]) -> None:
        """Texts by id, in place of those known by the same ids."""
        rows: list[tuple[int, str]] = []
        known: list[str] = []
        for ident, text in texts:
            known.append(ident)
            rows.append((self._next, segment(text)))
            self._shapes[self._next] = len(text), text[:HEAD]
            self._next += 1
        self.remove(ident for ident in known if ident in self._rows)
        for ident, (row, _) in zip(known, rows, strict=True):
            self._rows[ident], self._ids[row] = row, ident
            self._unread[row] = ident
        with in_sqlite, self._connection:
            self._connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)

    def _forget(self, ident: str) -> None:
        row = self._rows.pop(ident, None)
        if row is not None:
            del self._ids[row], self._shapes[row]
            self._unread.pop(row, None)
            self._connection.execute("DELETE FROM words WHERE rowid = ?", (row,))

    def remove(self, idents: Iterable[str]) -> None:
        with in_sqlite, self._connection:
            for ident in idents:
                self._forget(ident)

    def search(self, query: TextQuery) -> Iterator[str]:
        """Ids that may match. `having` tells which of them have the patterns."""
        match = match_expression(query)
        if match:
            with in_sqlite:
                rows = self._connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (match,)).fetchall()
            for (row,) in rows:
                yield self._ids[row]
        elif query.patterns:
            yield from list(self._rows)

    def with_words(self, patterns: Iterable[re.Pattern[str]], text: Callable[[str], str]) -> set[int]:
        """The numbers of all that have a word for each of the patterns, which must be of letters only."""
        unread, self._unread = self._unread, {}
        for row, ident in unread.items():
            for word in _words(fold(text(ident))):
                self._vocabulary.setdefault(word, []).append(row)
        every, found = "\n".join(self._vocabulary), self._ids.keys()
        for pattern in patterns:
            rows = {row for word in pattern.finditer(every) for row in self._vocabulary[word.group()]}
            found = found & rows
        return set(found)

    def key(self, ident: str) -> int:
        """The number that a memory is indexed under; 0 for one that is not. Later ones have higher numbers."""
        return self._rows.get(ident, 0)

    def shape(self, key: int) -> tuple[int, str]:
        """The length of a text, and its beginning."""
        return self._shapes[key]

    def close(self) -> None:
        with in_sqlite:
            self._connection.close()

    def postings(self, entry: str) -> NDArray[np.int64]:
        """The numbers of all that have an entry of the index."""
        from recollect.stores.resident.columns import joined

        sql = "SELECT group_concat(rowid) FROM words WHERE words MATCH ?"
        with in_sqlite:
            ((keys,),) = self._connection.execute(sql, (match_entry(entry),)).fetchall()
        return joined(keys)


def _words(folded: str) -> set[str]:
    return set((_ASCII_WORD if folded.isascii() else _WORD).findall(folded))


def of_letters(pattern: str) -> bool:
    """Whether a pattern is for one word, as far as `_words` tells words apart."""
    return _WORD.fullmatch(re.sub(r"[*?]", "", fold(pattern))) is not None


def having(patterns: tuple[str, ...]) -> list[re.Pattern[str]]:
    return [re.compile(word_pattern(pattern)) for pattern in patterns]


def has_all(patterns: list[re.Pattern[str]], text: str) -> bool:
    if not patterns:
        return True
    folded = fold(text)
    return all(pattern.search(folded) for pattern in patterns)
