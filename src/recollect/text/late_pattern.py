"""Regular expressions that are compiled once they are needed: whoever imports recollect need not wait for all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any


class LatePattern:
    """A regular expression with the methods that readers of text use."""

    __slots__ = ("_compiled", "_flags", "pattern")

    def __init__(self, pattern: str, flags: int | re.RegexFlag = 0) -> None:
        self.pattern = pattern
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    @property
    def compiled(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self.pattern, self._flags)
        return self._compiled

    def search(self, text: str, *span: int) -> re.Match[str] | None:
        return self.compiled.search(text, *span)

    def match(self, text: str, *span: int) -> re.Match[str] | None:
        return self.compiled.match(text, *span)

    def fullmatch(self, text: str, *span: int) -> re.Match[str] | None:
        return self.compiled.fullmatch(text, *span)

    def finditer(self, text: str, *span: int) -> Iterator[re.Match[str]]:
        return self.compiled.finditer(text, *span)

    def findall(self, text: str) -> list[Any]:
        return self.compiled.findall(text)

    def split(self, text: str, maxsplit: int = 0) -> list[str | Any]:
        return self.compiled.split(text, maxsplit)

    def sub(self, instead: str | Callable[[re.Match[str]], str], text: str, count: int = 0) -> str:
        return self.compiled.sub(instead, text, count)
