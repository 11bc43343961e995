"""The entries of a word index that a text query looks for, and its patterns as regular expressions."""

from __future__ import annotations

import re

from recollect.text.query import LETTER, TextQuery
from recollect.text.segment import fold, normalize, parts, spaceless, terms

MOST_TERMS = 64
"""Entries of the index that one question looks for at most."""
_LOOSE_FROM = 4
"""Shorter words would match inside too many others."""
_WORDY = re.compile(rf"{LETTER}|[*?]")


def index_entries(query: TextQuery) -> list[str]:
    """The entries of the index that the query's words stand for.

    An entry is a plain word; with a star at its end it stands for all that begin so.
    """
    entries = dict.fromkeys(entry for word in query.words for entry in _entries(word, query.loose))
    entries |= dict.fromkeys(f"{term}*" for beginning in query.begins for term in terms(beginning))
    return list(entries)[:MOST_TERMS]


def pattern_beginnings(pattern: str) -> list[str]:
    """Entries of which a memory with a pattern has one. The index holds stems, which have less of a word's end, and i
    for a final y. None if nothing is known of it."""
    head = normalize(re.split(r"[*?]", pattern, maxsplit=1)[0]).lower()
    if len(head) < 3 or not head.isalnum() or spaceless(head):
        return []
    return [f"{head[:2]}*"] if head[2] == "y" else [f"{head[:3]}*", head[:2]]


def phrase_entries(text: str) -> list[str]:
    """The entries of the index that follow each other in a phrase."""
    return terms(text)[:MOST_TERMS]


def _entries(word: str, loose: bool) -> list[str]:
    exact = terms(word)
    if not loose or len(word) < _LOOSE_FROM or spaceless(word):
        return exact
    return [f"{term}*" for term in exact] + parts(word)


def word_pattern(pattern: str) -> str:
    """A wildcard pattern as a regular expression for whole words of a folded text, in time linear in the text."""
    first, *rest = (_literal(part) for part in re.split(r"\*+", fold(pattern)))
    # Taking the first place where a middle part fits is never wrong, so it need not be tried again: (?>…).
    middle = "".join(f"(?>{LETTER}*?{part})" for part in rest[:-1])
    last = f"{LETTER}*{rest[-1]}" if rest else ""
    # A word ends at its last letter, an emoji also in the middle of a word.
    before, after = (f"(?<!{LETTER})", f"(?!{LETTER})") if _WORDY.search(pattern) else ("", "")
    return f"{before}{first}{middle}{last}{after}"


def _literal(part: str) -> str:
    return "".join(LETTER if char == "?" else re.escape(char) for char in part)
