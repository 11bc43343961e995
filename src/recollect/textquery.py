"""What a text search looks for, independent of how a store finds it."""

from __future__ import annotations

import msgspec


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

    def __bool__(self) -> bool:
        return bool(self.words or self.phrases or self.patterns)
