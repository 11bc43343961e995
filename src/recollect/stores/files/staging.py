"""What a transaction has changed so far: lines to append, laid over a state that does not know of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from recollect.stores.files.state import Row, State
from recollect.stores.shelves import Thing

_ABSENT: Any = object()
Path = tuple[str, str]
"""A shelf and a key."""


class Mark(NamedTuple):
    """How far a transaction had come."""

    steps: int
    lines: dict[str, int]


class Staged:
    """Only the thread of the transaction sees it. Taking back is forgetting it, as a whole or from a mark on."""

    def __init__(self) -> None:
        self.lines: dict[str, list[bytes]] = {}
        self.rows: dict[str, Row | None] = {}
        """What became of memories; None for those that were deleted."""
        self.stored: dict[str, bool] = {}
        """Memories that were put, in that order: they come after all others."""
        self.tombs: dict[str, int] = {}
        self.things: dict[Path, Thing | None] = {}
        self.kept: dict[Path, bool] = {}
        """Things that were not there before, in the order in which they were first kept."""
        self.untouched: dict[str, bool] = {}
        """Memories of which retrievals that are counted but not written are of no account any more."""
        self.dropped_undo: dict[int, bool] = {}
        self.numbers: dict[str, int] = {}
        """The highest number that an id was given."""
        self._steps: list[tuple[dict[Any, Any], Any, Any]] = []

    def add(self, name: str, line: bytes) -> None:
        self.lines.setdefault(name, []).append(line)

    def set(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Change one of the tables above. The last entry of a key decides its place in the order."""
        self._steps.append((table, key, table.pop(key, _ABSENT)))
        table[key] = value

    def mark(self) -> Mark:
        return Mark(len(self._steps), {name: len(lines) for name, lines in self.lines.items()})

    def take_back(self, mark: Mark) -> None:
        """Forget what was staged since the mark."""
        for table, key, value in reversed(self._steps[mark.steps :]):
            table.pop(key, None)
            if value is not _ABSENT:
                table[key] = value
        del self._steps[mark.steps :]
        for name, lines in self.lines.items():
            del lines[mark.lines.get(name, 0) :]

    def parts(self) -> dict[str, bytes]:
        return {name: b"".join(lines) for name, lines in self.lines.items() if lines}

    # What the thread of the transaction sees

    def row(self, state: State, ident: str) -> Row | None:
        return self.rows[ident] if ident in self.rows else state.rows.get(ident)

    def all_rows(self, state: State) -> Iterator[Row]:
        """In the order of storing."""
        for ident, row in state.rows.items():
            changed = self.rows.get(ident, row)
            if changed is not None and ident not in self.stored:
                yield changed
        for ident in self.stored:
            if (row := self.rows[ident]) is not None:
                yield row

    def tomb(self, state: State, ident: str) -> int:
        return self.tombs.get(ident) or state.tombs.get(ident, 0)

    def version(self, state: State, ident: str) -> int:
        """The highest of any line of a memory."""
        row = self.row(state, ident)
        return max(row.last_version if row else 0, self.tomb(state, ident))

    def thing(self, state: State, path: Path) -> Thing | None:
        return self.things[path] if path in self.things else state.things.get(path)

    def all_things(self, state: State) -> Iterator[Thing]:
        """In the order in which they were first kept."""
        for path, thing in state.things.items():
            changed = self.things.get(path, thing)
            if changed is not None and path not in self.kept:
                yield changed
        for path in self.kept:
            if (thing := self.things[path]) is not None:
                yield thing
