"""Changes of several files that a killed process may have left half done.

Each file is committed by itself. So before the first commit a small record names the audit entries that each place is
about to get, and it is removed after the last one. Whoever finds such a record later has the change taken back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from recollect.stores.port import Place
from recollect.values.errors import RecollectError
from recollect.values.record import new_id

FOLDER = ".unfinished"


class IntentPart(NamedTuple):
    """What one place gets by a change."""

    tenant: str
    workspace: str | None
    entries_before: int
    """How many entries its audit log had."""
    entries: list[str]
    """The ids of the new ones."""

    @property
    def place(self) -> Place:
        return Place(self.tenant, self.workspace)


_encode = msgspec.json.Encoder().encode
_parts = msgspec.json.Decoder(list[IntentPart]).decode


class Intents:
    """The records of a store, in a folder of their own."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.folder = os.path.join(root, FOLDER)
        self.finish: Callable[[Sequence[IntentPart]], None] | None = None
        """Takes a change back that was left half done. The engine sets it."""
        self._finishing = False

    def note(self, parts: Sequence[IntentPart]) -> str:
        """Record what is about to be committed, durably. Returns the path of the record."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        path = os.path.join(self.folder, new_id())
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(descriptor, _encode(parts))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._sync()
        return path

    def _sync(self) -> None:
        with suppress(OSError):
            descriptor = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def done(self, path: str) -> None:
        """All places have it, or none has. Another process may have seen to the record meanwhile."""
        with suppress(OSError):
            os.unlink(path)
        with suppress(OSError):  # not empty: others are at work
            os.rmdir(self.folder)

    def finish_left(self) -> None:
        """Take back what killed processes have left half done. Called with no transaction open.

        A record of a process that is still at work is no harm: its places are locked until all of it is there.
        """
        if self.finish is None or self._finishing:
            return
        try:
            names = os.listdir(self.folder)
        except OSError:  # there is no such folder, as nearly always
            return
        self._finishing = True
        try:
            for name in names:
                self._finish(os.path.join(self.folder, name))
        finally:
            self._finishing = False

    def _finish(self, path: str) -> None:
        try:
            with open(path, "rb") as file:
                parts = _parts(file.read())
        except OSError:
            return
        except msgspec.MsgspecError:  # it was cut off, so that nothing was committed
            self.done(path)
            return
        with suppress(RecollectError):  # a disk that is full or read-only: the next one tries again
            if self.finish is not None:
                self.finish(parts)
            self.done(path)
