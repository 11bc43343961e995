"""The words of a place's texts, for patterns that no index of words can answer: `*ing`, `b?rd`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from recollect.text.query import LETTER
from recollect.text.segment import fold
from recollect.text.terms import word_pattern

_WORD, _ASCII_WORD = re.compile(f"{LETTER}+"), re.compile(r"\w+", re.ASCII)


def is_of_letters(pattern: str) -> bool:
    """Whether a pattern is for one word, as far as words are told apart here."""
    return _WORD.fullmatch(re.sub(r"[*?]", "", fold(pattern))) is not None


class Vocabulary:
    """Which memories have each word. Texts are added once; whoever asks leaves out memories that are gone."""

    def __init__(self) -> None:
        self._keys: dict[str, list[int]] = {}
        self._every = ""
        self.last_key = 0
        """Texts up to this key were added."""

    def add(self, texts: Iterable[tuple[int, str]]) -> None:
        """In the order of their keys."""
        for key, text in texts:
            folded = fold(text)
            for word in set((_ASCII_WORD if folded.isascii() else _WORD).findall(folded)):
                self._keys.setdefault(word, []).append(key)
            self.last_key = max(self.last_key, key)
        self._every = "\n".join(self._keys)

    def with_all(self, patterns: Sequence[str]) -> set[int]:
        """The keys of texts that have a word for each of the patterns."""
        keys: set[int] | None = None
        for pattern in patterns:
            words = re.compile(word_pattern(pattern)).finditer(self._every)
            having = {key for word in words for key in self._keys.get(word.group(), ())}
            keys = having if keys is None else keys & having
        return keys or set()
