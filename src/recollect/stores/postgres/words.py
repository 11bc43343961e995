"""The words of a text as PostgreSQL indexes them: by the very rules of the SQLite store.

SQLite's own tokenizer makes the tokens, so both find the same. Each has a key of its place before it, so that an index
that all tenants share is searched only where one's own words are.
"""

from __future__ import annotations

import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any

import apsw

from recollect.runtime import forking
from recollect.stores.port import Place
from recollect.text.query import TextQuery
from recollect.text.segment import segment
from recollect.text.terms import index_entries, pattern_beginnings, phrase_entries

_PART = 8000
"""Tokens in one tsvector, which counts to 16,383. It may have a megabyte, too."""
_OVERLAP = 64
"""Tokens that the next part begins with once more: no phrase is longer."""
_BYTES = 500_000
_LONGEST = 200
"""Letters of a token that are kept."""
_AS_DOCUMENT, _AS_QUERY = 0x0004, 0x0001
_QUOTED = str.maketrans({"'": "''", "\\": "\\\\", "\0": ""})

_turn = threading.Lock()
_at_work = forking.Gate()
"""Around each use: SQLite locks its memory for all, and a child that is forked meanwhile would wait for it for ever."""


@cache
def _tokenizer() -> Callable[..., list[str]]:
    """One for all threads. One of each thread's own would be freed in a child, with SQLite as the fork found it."""
    connection: Any = apsw.Connection(":memory:")
    return connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc"])


def _tokens(text: str, how: int) -> list[str]:
    data = text.encode("utf-8", "replace")
    with _at_work, _turn:
        return _tokenizer()(data, how, None, include_offsets=False, include_colocated=False)


@lru_cache(maxsize=4096)
def place_key(place: Place) -> str:
    name = f"{place.tenant}\0{'' if place.workspace is None else place.workspace}"
    return urlsafe_b64encode(blake2b(name.encode(), digest_size=6).digest()).decode()


def vectors(place: Place, text: str) -> list[str]:
    """The words of a text and where they stand, as tsvectors."""
    key, tokens = place_key(place), _tokens(segment(text), _AS_DOCUMENT)
    if len(tokens) <= _PART and len(text) <= _BYTES // 20:  # no token of which can be too long, nor all of them
        return [_vector(key, tokens)]
    return [_vector(key, part) for part in _in_parts([token[:_LONGEST] for token in tokens])]


def _vector(key: str, tokens: Sequence[str]) -> str:
    """Tokens are letters and digits, so that nothing in them needs a quote. The server takes the same ones together."""
    return " ".join([f"'{key}{token[:_LONGEST]}':{number}" for number, token in enumerate(tokens, 1)])


def _in_parts(tokens: Sequence[str]) -> Iterator[Sequence[str]]:
    start = 0
    while True:
        end, size = start, 0
        while end < len(tokens) and end - start < _PART and size < _BYTES:
            size += len(tokens[end].encode()) + 16
            end += 1
        yield tokens[start:end]
        if end >= len(tokens):
            return
        start = end - min(_OVERLAP, (end - start) // 2)


def _quoted(token: str) -> str:
    return token.translate(_QUOTED)


def queries(place: Place, query: TextQuery) -> dict[str, str]:
    """The tsquery of each entry that the query's words stand for. One that can find nothing is left out."""
    made = {entry: _entry_query(place, entry) for entry in index_entries(query)}
    return {entry: asked for entry, asked in made.items() if asked}


def required(place: Place, query: TextQuery) -> list[str] | None:
    """A tsquery for each phrase and beginning of a pattern, all of which must be met; None if nothing can be."""
    phrases = [_phrase(place, phrase_entries(text)) for text in query.phrases]
    asked = [phrase for phrase in phrases if phrase]
    if query.phrases and not asked and not query.patterns:
        return None
    begins = [[_entry_query(place, entry) for entry in pattern_beginnings(pattern)] for pattern in query.patterns]
    return asked + [" | ".join(filter(None, some)) for some in begins if any(some)]


def _entry_query(place: Place, entry: str) -> str:
    star = entry.endswith("*")
    tokens = _tokens(entry[:-1] if star else entry, _AS_QUERY)
    return _following(place, tokens, star)


def _phrase(place: Place, entries: Sequence[str]) -> str:
    if len(entries) == 1:
        return _entry_query(place, entries[0])
    return _following(place, _tokens(" ".join(entries), _AS_QUERY))


def _following(place: Place, tokens: Sequence[str], star: bool = False) -> str:
    key = place_key(place)
    parts = [f"'{key}{_quoted(token[:_LONGEST])}'" for token in tokens]
    if parts and star:
        parts[-1] += ":*"
    return " <-> ".join(parts)
