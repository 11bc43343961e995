"""Writes the columns file of a place beside its database: in the background, and only once enough has changed."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import apsw

from recollect.stores.resident import columns_file
from recollect.stores.resident.columns import ColumnsCopy
from recollect.stores.resident.columns_file import Header, Mark
from recollect.stores.sqlite.place_file import PlaceFile
from recollect.values.errors import RecollectError

LEAST = 2000
"""Memories from which a file is quicker than the rows of the database."""
_BEHIND, _SHARE = 1000, 50
"""Changes that a file may lack, and more of them in a large place: one for so many memories."""
DELAY = 0.5
"""Seconds after the recall that saw it is due, so that a short process has its answer first."""
_PAUSE = 60.0
"""Seconds after an attempt until the next one."""
_REST = 20.0
"""The next one waits so many times as long as the last one took."""
_PATIENCE = 2000
"""Milliseconds that the mark waits for whoever writes to the database."""


class State(NamedTuple):
    """Of the columns at one moment."""

    copied: ColumnsCopy
    rev: int


class ColumnsWriter:
    """Of one resident copy. It holds no lock that anybody needs while it writes."""

    def __init__(self, handle: PlaceFile, state: Callable[[], State]) -> None:
        self._handle = handle
        self._state = state
        self.behind = 0
        """Changes that the file lacks."""
        self._thread: threading.Thread | None = None
        self._hurry = threading.Event()
        self._cancelled = False
        self._not_before = 0.0

    def consider(self, size: int) -> None:
        """Begin to write if that is due."""
        handle = self._handle
        if self._thread is not None or size < LEAST or self.behind <= most_behind(size):
            return
        if not handle.writable or handle.in_memory or self._cancelled or time.monotonic() < self._not_before:
            return
        self._hurry.clear()
        self._thread = threading.Thread(target=self._run, name="recollect-columns", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # no thread can be had, or the interpreter is ending
            self._thread = None

    def finish(self, seconds: float) -> None:
        """Wait for one that was begun: a short process is to leave a file for the next one."""
        self._hurry.set()
        if (thread := self._thread) is not None:
            thread.join(seconds)

    def cancel(self) -> None:
        self._cancelled = True
        self._hurry.set()

    def _run(self) -> None:
        self._hurry.wait(DELAY)
        began = time.monotonic()
        try:
            # Without the file everything works, only more slowly: whatever keeps it from being written is no error.
            with suppress(OSError, apsw.Error, RecollectError):
                self._write()
        finally:
            now = time.monotonic()
            self._not_before = now + max(_PAUSE, _REST * (now - began))
            self._thread = None

    def _write(self) -> None:
        handle = self._handle
        if self._cancelled or self._is_written_by_another():
            return
        writing = columns_file.begin(handle.path)
        if writing is None:
            return
        try:
            if not handle.current():  # else it would hold one workspace in the folder of another
                return
            state = self._state()
            self.behind = 0
            writing.write(state.copied, lambda: self._cancelled)
            writing.finish(state.rev, _marked(handle))
        finally:
            writing.close()

    def _is_written_by_another(self) -> bool:
        """Whether another process has written one meanwhile that lacks little."""
        header = columns_file.header_of(self._handle.path)
        if header is None or not has_mark(self._handle.rows, header):
            return False
        ((later,),) = self._handle.rows("SELECT count(*) FROM changed WHERE rev > ?", (header.rev,))
        ((last,),) = self._handle.rows("SELECT coalesce(max(seq), 0) FROM memories")
        if later + last - header.last > most_behind(header.size):
            return False
        self.behind = later + last - header.last
        return True


def most_behind(size: int) -> int:
    return _BEHIND + size // _SHARE


def has_mark(rows: Callable[..., list[tuple[object, ...]]], header: Header) -> bool:
    """Whether the database is the one that the file was made of, or a copy, and still knows what came since.

    A number that nobody can guess is in the list of changes; a database that was restored from before does not have it.
    """
    ((oldest,),) = rows("SELECT min(rev) FROM changed")
    is_marked = rows("SELECT seq FROM changed WHERE rev = ?", (header.mark.rev,)) == [(-header.mark.number,)]
    return is_marked and isinstance(oldest, int) and oldest <= header.rev + 1


def _marked(handle: PlaceFile) -> Mark:
    number = secrets.randbits(62) + 1
    with handle.connected() as connection:
        connection.set_busy_timeout(_PATIENCE)
        connection.execute("PRAGMA query_only = OFF; PRAGMA synchronous = NORMAL")
        connection.execute("INSERT INTO changed (seq) VALUES (?)", (-number,))
        return Mark(connection.last_insert_rowid(), number)
