"""A text query as an FTS5 expression."""

from __future__ import annotations

import re

from recollect.stores.segment import parts, spaceless, terms
from recollect.textquery import TextQuery

_MOST_TERMS = 64
_LOOSE_FROM = 4
"""Shorter words would match inside too many others."""


def expression(query: TextQuery) -> tuple[str, list[str]]:
    """The MATCH expression, and the patterns that the index cannot answer and the rows must."""
    required = [phrase for text in query.phrases if (phrase := _phrase(text))]
    slow: list[str] = []
    for pattern in query.patterns:
        stem = pattern[:-1]
        if pattern.endswith("*") and stem.isalnum() and not spaceless(stem):
            required.append(f'"{stem}"*')
        else:
            slow.append(pattern)
    words = list(dict.fromkeys(term for word in query.words for term in _terms(word, query.loose)))[:_MOST_TERMS]
    some = " OR ".join(words)
    every = " AND ".join(required)
    if every and some:
        # The words only score: what has every phrase is found with or without them.
        return f"({every}) OR (({every}) AND ({some}))", slow
    if slow and not every:
        return "", slow
    return every or some, slow


def _phrase(text: str) -> str:
    found = terms(text)
    if not found:
        return ""
    if len(found) == 1:
        return _term(found[0])
    return '"' + " ".join(found) + '"'


def _term(term: str) -> str:
    return f'"{term[:-1]}"*' if term.endswith("*") else f'"{term}"'


def _terms(word: str, loose: bool) -> list[str]:
    found = [_term(term) for term in terms(word)]
    if not loose or len(word) < _LOOSE_FROM or spaceless(word):
        return found
    return [f'"{term}"*' for term in terms(word)] + [f'"{part}"' for part in parts(word)]


def word_pattern(pattern: str) -> str:
    """A wildcard pattern as a regular expression that matches whole words."""
    body = "".join({"*": r"\w*", "?": r"\w"}.get(char) or re.escape(char) for char in pattern)
    return rf"(?<!\w){body}(?!\w)"
