"""Statements: what a sentence says of whom, and what a newer one does to an older. The one reader of sentences.

Recall, which ranks newer facts first, maintenance, which supersedes and merges, and the automatic memory, which keeps
what was said and ends what is so no longer, all ask here. They differ in how sure they must be, and not in how they
read.
"""

from __future__ import annotations

from recollect.text.statements.contradicting import (
    EMPTY,
    NEGATION,
    SENTENCE_END,
    Assertion,
    are_opposite,
    contradicts,
    fingerprint,
    keys,
    names,
    plain,
    shared_words,
)

__all__ = [
    "EMPTY",
    "NEGATION",
    "SENTENCE_END",
    "Assertion",
    "are_opposite",
    "contradicts",
    "fingerprint",
    "keys",
    "names",
    "plain",
    "shared_words",
]
