"""What a text search looks for, independent of how a store finds it."""

from __future__ import annotations

import msgspec

LETTER = (
    r"[\w\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    r"\u0900-\u0963\u0966-\u0dff\u0f18-\u0fbc]"
)
"""A regular expression for a letter, a digit, or a mark that is part of one, as vowels are in Indian scripts."""


class TextQuery(msgspec.Struct, frozen=True):
    """A memory matches if it has every phrase and pattern, or, where there are none, at least one of the words.

    Words also score, so the more of them it has the better it matches. `loose` lets a word match inside a longer
    one (`versicherung` in `Krankenversicherung`) and a long word match by its parts.
    """

    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    """Words with `*` for any letters and `?` for one letter."""
    loose: bool = False
    begins: tuple[str, ...] = ()
    """Beginnings of words: a memory matches by any word that begins so."""

    def __bool__(self) -> bool:
        return bool(self.words or self.phrases or self.patterns or self.begins)
