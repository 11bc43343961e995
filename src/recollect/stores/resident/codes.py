"""Small numbers for values that occur again and again, and strings end to end: what columns are made of."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray


class Codes:
    """Small numbers for values that occur again and again."""

    def __init__(self, values: list[Any] | None = None) -> None:
        self.values: list[Any] = [] if values is None else values
        self._codes: dict[Any, int] | None = None
        """Made when a value is looked up first: who only reads needs no code of it."""

    @property
    def _by_value(self) -> dict[Any, int]:
        if self._codes is None:
            self._codes = {value: code for code, value in enumerate(self.values)}
        return self._codes

    def __call__(self, value: Any) -> int:
        codes = self._by_value
        code = codes.get(value)
        if code is None:
            code = codes[value] = len(self.values)
            self.values.append(value)
        return code

    def many(self, values: Sequence[Any]) -> NDArray[np.int32]:
        for value in dict.fromkeys(values):
            self(value)
        return np.fromiter(map(self._by_value.__getitem__, values), np.int32, len(values))

    def table(self, wanted: Callable[[Any], bool]) -> NDArray[np.bool_]:
        """For each code, whether its value is wanted."""
        return np.fromiter((wanted(value) for value in self.values), np.bool_, len(self.values))


class Ids(Sequence[str]):
    """Strings end to end: a hundred thousand of them in a third of the memory that a list takes.

    The first of them may be mapped from a file, of which only what is asked for is read.
    """

    def __init__(self, text: NDArray[np.uint8] | None = None, ends: NDArray[np.int64] | None = None) -> None:
        """`ends` begins with 0."""
        self._mapped: NDArray[np.uint8] = np.zeros(0, np.uint8) if text is None else text
        self._mapped_ends: NDArray[np.int64] = np.zeros(1, np.int64) if ends is None else ends
        self._text = bytearray()
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._mapped_ends) + len(self._ends) - 2

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[index] for index in range(len(self))[at]]
        at = range(len(self))[at]
        if at < (mapped := len(self._mapped_ends) - 1):
            return self._mapped[self._mapped_ends[at] : self._mapped_ends[at + 1]].tobytes().decode()
        at -= mapped
        return self._text[self._ends[at] : self._ends[at + 1]].decode()

    def __iter__(self) -> Iterator[str]:
        return (self[at] for at in range(len(self)))

    def extend(self, idents: Iterable[str]) -> None:
        for ident in idents:
            self._text += ident.encode()
            self._ends.append(len(self._text))

    def cut(self, size: int) -> Ids:
        """The first of them, as others that go on without changing these."""
        first, more = Ids(self._mapped, self._mapped_ends[: size + 1]), size + 1 - len(self._mapped_ends)
        if more > 0:
            first._text, first._ends = self._text[: self._ends[more]], self._ends[: more + 1]
        return first

    def packed(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The text, and where each begins and the last ends."""
        end = self._mapped_ends[-1]
        text = np.concatenate([self._mapped[:end], np.frombuffer(self._text, np.uint8)])
        return text, np.concatenate([self._mapped_ends, np.frombuffer(self._ends, np.int64)[1:] + end])
