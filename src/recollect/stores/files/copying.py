"""Copying the files of one place while others write to it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import IO

from recollect.stores.files import files
from recollect.stores.files.fileset import INDEX_FILE
from recollect.stores.files.log import Log
from recollect.stores.paths import TRASH
from recollect.values.errors import StoreError

_CHUNK = 1 << 20


def copy(log: Log, turn: AbstractContextManager[object], parts: Sequence[str], root: str, folder: str) -> None:
    """The files of a place, from under `root` to the same names under `folder`, as they are at one moment.

    The `turn` to write is taken only until they are open: files grow at their ends or are replaced as a whole, so what
    was there stays readable.
    """
    with ExitStack() as stack:
        with turn:
            if log.unsaved:
                raise StoreError(f"{len(log.unsaved)} writes are not saved yet: {log.unsaved_because}")
            opened = [(path, stack.enter_context(open(path, "rb"))) for path in _files(parts)]
            sizes = [os.fstat(file.fileno()).st_size for _, file in opened]
        for (path, file), size in zip(opened, sizes, strict=True):
            _write(file, size, os.path.join(folder, os.path.relpath(path, root)))


def _files(parts: Sequence[str]) -> Iterator[str]:
    """Without the lock, which is nobody's there, the index, and what is going or was never finished."""
    for part in parts:
        if os.path.isfile(part):
            yield part
        for folder, folders, names in os.walk(part):
            folders[:] = [name for name in folders if not name.startswith(TRASH)]
            wanted = (name for name in names if name != "lock" and not name.startswith(INDEX_FILE))
            yield from (os.path.join(folder, name) for name in wanted if not name.endswith(files.TEMPORARY))


def _write(file: IO[bytes], size: int, path: str) -> None:
    try:
        files.make_folder(os.path.dirname(path))
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, files.PRIVATE)
        with open(fd, "wb") as copy:
            while size > 0 and (data := file.read(min(size, _CHUNK))):
                copy.write(data)
                size -= len(data)
            copy.flush()
            os.fsync(fd)
    except OSError as error:
        raise files.problem(error, path) from error
