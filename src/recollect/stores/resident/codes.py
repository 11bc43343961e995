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
    """Strings end to end: a hundred thousand of them in a third of the memory that a list takes."""

    def __init__(self, text: bytes = b"", ends: bytes = b"") -> None:
        """`ends` are numbers of eight bytes, the first of them 0."""
        self._text = bytearray(text)
        self._ends = array("q", ends or (0).to_bytes(8, "little"))

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[index] for index in range(len(self))[at]]
        at = range(len(self))[at]
        return self._text[self._ends[at] : self._ends[at + 1]].decode()

    def __iter__(self) -> Iterator[str]:
        return (self[at] for at in range(len(self)))

    def extend(self, idents: Iterable[str]) -> None:
        for ident in idents:
            self._text += ident.encode()
            self._ends.append(len(self._text))

    def cut(self, size: int) -> Ids:
        """The first of them, as others that go on without changing these."""
        first = Ids()
        first._text, first._ends = self._text[: self._ends[size]], self._ends[: size + 1]
        return first

    def packed(self) -> tuple[bytearray, NDArray[np.int64]]:
        """The text, and where each begins and the last ends."""
        return self._text, np.frombuffer(self._ends, np.int64)
