"""What the disk refused and nobody could write until the end: reported, and copied to where there is room."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from recollect.stores.files import files
from recollect.stores.files.lines import named
from recollect.stores.files.log import Log
from recollect.stores.files.replay import UNREADABLE
from recollect.stores.paths import folder_name
from recollect.stores.port import Place

_SHOWN = 5
_waiting: dict[int, tuple[int, Log]] = {}
"""Logs with something in memory only, and the process that wrote it."""


def watch(log: Log) -> None:
    """Make sure that it is not lost without a word, even if nobody closes the store."""
    _waiting[id(log)] = os.getpid(), log


def unwatch(log: Log) -> None:
    _waiting.pop(id(log), None)


def lost(logs: Iterable[Log]) -> str:
    """Give up what the logs could not write: copied if possible. Says what it was and where the copy is."""
    logs = [log for log in logs if log.unsaved]
    what = "; ".join(map(_described, logs))
    try:
        copy = _copied(logs)
    except OSError as error:
        where = f"no copy could be made either: {error.strerror}"
    else:
        where = f"a copy is in {copy}, as a ledger of its own"
    for log in logs:
        unwatch(log)
    return f"{what}. It could not be written and is lost; {where}"


def _described(log: Log) -> str:
    writes = log.unsaved
    ids = [_id(line.data) for parts in writes for line in files.lines(parts.get(log.format.file, b""))]
    shown = ", ".join(ids[:_SHOWN]) + (", …" if len(ids) > _SHOWN else "")
    what = f"{len(writes)} write{'s' if len(writes) > 1 else ''} with {len(ids)} memor{'y' if len(ids) == 1 else 'ies'}"
    return f"{log.fileset.folder}: {what}{f' ({shown})' if ids else ''}: {log.unsaved_because}"


def _id(line: bytes) -> str:
    with suppress(*UNREADABLE):
        return named(line)
    return "?"


def _copied(logs: Iterable[Log]) -> str:
    """Elsewhere, because here the disk refuses."""
    root = tempfile.mkdtemp(prefix="recollect-unsaved-")
    for log in logs:
        folder = os.path.join(root, *_folder(log.place))
        os.makedirs(folder, files.PRIVATE_FOLDER, exist_ok=True)
        for parts in log.unsaved:
            for name, data in parts.items():
                fd = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, files.PRIVATE)
                with open(fd, "ab") as file:
                    file.write(data)
    return root


def _folder(place: Place) -> list[str]:
    tenant = [] if place.tenant == "default" else ["tenants", folder_name(place.tenant)]
    return [*tenant, "account"] if place.workspace is None else [*tenant, "sessions", folder_name(place.workspace)]


@atexit.register
def _at_exit() -> None:
    logs = [log for pid, log in _waiting.values() if pid == os.getpid()]
    for log in logs:
        with suppress(Exception):
            log.retry()
    if left := [log for log in logs if log.unsaved]:
        with suppress(OSError, ValueError, AttributeError):  # nobody may be there to read it
            print(f"recollect: {lost(left)}", file=sys.stderr, flush=True)
        sys.stderr = _Failing(sys.stderr)


class _Failing:
    """The stream, but its last flush fails: the one way in which a process that exits can still tell that it failed.

    Python ends with 120 then, after everything else that was to be done at exit.
    """

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def flush(self) -> None:
        if sys.is_finalizing():
            raise OSError("memories were lost")
        if self._stream is not None:
            self._stream.flush()
