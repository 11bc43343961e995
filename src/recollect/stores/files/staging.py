"""Lines that a transaction is about to append, in the order in which they were made."""

from __future__ import annotations

from typing import NamedTuple

from recollect.stores.files.fileset import AUDIT
from recollect.stores.files.lines import Purged


class _Staged(NamedTuple):
    name: str
    """Of the file."""
    line: bytes


class Staging:
    """Taking back is forgetting them from a mark on."""

    def __init__(self) -> None:
        self._lines: list[_Staged] = []
        self.touch_lines = 0
        """How many of the first ones tell of retrievals that were counted before."""
        self.purged = Purged()
        """Undo data that goes."""
        self._marks: dict[int, tuple[int, Purged]] = {}
        """By the depth of the savepoint."""

    def add(self, name: str, line: bytes) -> None:
        self._lines.append(_Staged(name, line))

    def mark(self, depth: int) -> None:
        self._marks[depth] = len(self._lines), self.purged

    def take_back(self, depth: int) -> None:
        if depth in self._marks:
            count, self.purged = self._marks.pop(depth)
            del self._lines[count:]

    @property
    def is_touches_only(self) -> bool:
        return len(self._lines) == self.touch_lines and not any(self.purged)

    def drop_touches(self) -> None:
        del self._lines[: self.touch_lines]
        self.touch_lines = 0

    def lines(self, name: str) -> list[bytes]:
        return [staged.line for staged in self._lines if staged.name == name]

    def parts(self) -> dict[str, bytes]:
        """What is to be appended to each file; the audit log last."""
        parts: dict[str, list[bytes]] = {}
        for name, line in self._lines:
            parts.setdefault(name, []).append(line)
        ordered = sorted(parts, key=lambda name: name == AUDIT)
        return {name: b"".join(parts[name]) for name in ordered}
