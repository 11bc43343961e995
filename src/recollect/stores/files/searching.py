"""A book that can be searched: by conditions, and by words."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from operator import attrgetter

from recollect.filters import Filter
from recollect.record import Record
from recollect.stores.files import files
from recollect.stores.files.book import UNREAD
from recollect.stores.files.logbook import Logbook
from recollect.stores.files.state import Row, State
from recollect.stores.files.text import TextIndex, has_all, having
from recollect.stores.port import Damage, Match
from recollect.text.query import TextQuery


class SearchedBook(Logbook):
    _index: TextIndex | None = None
    _indexed_generation: object = None

    @property
    def busy(self) -> bool:
        """Whether something is kept in memory only, or being written."""
        return self.staged is not None or bool(self.unsaved)

    def matching(self, where: Filter, newest_first: bool) -> list[Record]:
        """Without content, by creation time."""
        meets = where.meets()
        found = [record for row in self.state.rows.values() if meets(record := row.record)]
        found.sort(key=_created, reverse=newest_first)
        return found

    def search(self, query: TextQuery, where: Filter, limit: int) -> list[Match]:
        if limit <= 0 or not query:
            return []
        found: list[Match] = []
        patterns = having(query.patterns)
        rows, meets = self.state.rows, where.meets()
        for ident, score in self._candidates(query):
            row = rows.get(ident)
            if row is None or not meets(row.record):
                continue
            record = self.record(row, vector=False)
            if record is not None and has_all(patterns, record.text):
                found.append(Match(record, score))
                if len(found) == limit:
                    break
        return found

    def _candidates(self, query: TextQuery) -> Iterator[tuple[str, float]]:
        candidates = self.text_index().search(query)
        if query.words or query.phrases:
            return candidates
        rows = self.state.rows
        return iter(sorted(candidates, key=lambda one: rows[one[0]].record.created_at, reverse=True))

    def text_index(self) -> TextIndex:
        """The words of every memory as it is now."""
        state = self.state
        if self._index is None or self._indexed_generation is not self.generation:
            self._index = TextIndex()
            self._indexed_generation = self.generation
            state.changed.clear()
            self._index.add(self._texts(list(state.rows.values())))
        elif state.changed:
            changed, state.changed = state.changed, set()
            self._index.remove(ident for ident in changed if ident not in state.rows)
            # In the order of the rows: who comes first in the index came first in the conversation.
            order = changed if len(changed) == 1 else [ident for ident in state.rows if ident in changed]
            self._index.add(self._texts([row for ident in order if (row := state.rows.get(ident))]))
        return self._index

    def text(self, row: Row) -> str:
        record = self.record(row, vector=False)
        return record.text if record else ""

    def _texts(self, rows: Iterable[Row]) -> Iterator[tuple[str, str]]:
        for row in rows:
            record = self.record(row, vector=False)
            if record is not None:
                yield record.id, record.text

    def compact(self) -> int:
        """In a transaction that has staged nothing."""
        freed = self.rewrite()
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.folder, UNREAD))
        return freed

    def verify(self) -> list[Damage]:
        """Read everything on disk again, and compare with every checksum."""
        fresh = State(self.place, self.format)
        for name in self._state_files:
            file = self.files[name]
            if file.open():
                for line in files.lines(file.read(0, file.size)):
                    fresh.read(name, line)
        return [*fresh.damage.values(), *self._unsaved_damage()]

    def _unsaved_damage(self) -> list[Damage]:
        if not self.unsaved:
            return []
        return [Damage(self.folder, f"{len(self.unsaved)} writes are in memory only: {self.unsaved_problem()}")]

    def put_away(self) -> None:
        """Write what was put off and let go of the files."""
        self.settle()
        if self.unsaved:
            self.begin("recover")
            self.end(None)
        self.snapshot()
        self.close()
        self.reset()
        self._index = None

    def snapshot(self) -> None:
        """Where snapshots are kept, write them."""


_created = attrgetter("created_at")
