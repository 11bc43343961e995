"""Text queries as expressions of FTS5."""

from __future__ import annotations

from recollect.text.query import TextQuery
from recollect.text.terms import index_entries, pattern_beginnings, phrase_entries


def match_expression(query: TextQuery) -> str:
    """The MATCH expression of a query. It finds all that may have its patterns; `word_pattern` tells which do."""
    required = [phrase for text in query.phrases if (phrase := _phrase(text))]
    required += [beginning for pattern in query.patterns if (beginning := _beginning(pattern))]
    some = " OR ".join(match_entry(entry) for entry in index_entries(query))
    every = " AND ".join(required)
    if every and some:
        # The words only score: what has every phrase is found with or without them.
        return f"({every}) OR (({every}) AND ({some}))"
    return every or ("" if query.patterns else some)


def match_entry(entry: str) -> str:
    """The MATCH expression of one entry of the index; a star at its end stands for all that begin so."""
    return f'"{entry[:-1]}"*' if entry.endswith("*") else f'"{entry}"'


def _beginning(pattern: str) -> str:
    some = [match_entry(entry) for entry in pattern_beginnings(pattern)]
    return some[0] if len(some) == 1 else f"({' OR '.join(some)})" if some else ""


def _phrase(text: str) -> str:
    entries = phrase_entries(text)
    if len(entries) == 1:
        return match_entry(entries[0])
    return '"' + " ".join(entries) + '"' if entries else ""
