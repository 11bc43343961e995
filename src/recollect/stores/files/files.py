"""Plain files that survive: durable appends, whole-file replacement, and errors that say what to do."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from recollect.stores.paths import unreadable
from recollect.values.errors import CorruptionError, DiskFullError, ReadOnlyError, StoreError

PRIVATE = 0o600
PRIVATE_FOLDER = 0o700
TEMPORARY = ".tmp"
_LEFTOVER = re.compile(rf".+\.\d+-\d+{re.escape(TEMPORARY)}")


class Line(NamedTuple):
    """One line of a file, without its end. `start` and `end` are bytes in the file, the end of line included."""

    start: int
    end: int
    data: bytes
    whole: bool
    """Whether it has its end of line. Only the last one may not."""


BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def lines(data: bytes, start: int = 0) -> Iterator[Line]:
    """The lines of what was read at `start`. Ends of line may be `\\n` or `\\r\\n`."""
    at, size = 0, len(data)
    find = data.find
    if not start and data.startswith(BYTE_ORDER_MARK):
        at = len(BYTE_ORDER_MARK)  # as some editors write it
    while at < size:
        stop = find(b"\n", at)
        if stop < 0:
            yield Line(start + at, start + size, data[at:], False)
            return
        end = stop - 1 if stop > at and data[stop - 1] == 13 else stop
        yield Line(start + at, start + stop + 1, data[at:end], True)
        at = stop + 1


class FileIdentity(NamedTuple):
    """Which file a path names, how long it is, and when it was written. One that was replaced has another inode."""

    inode: int
    size: int
    changed: int = 0


MISSING = FileIdentity(0, 0)


def identity(path: str) -> FileIdentity:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return MISSING
    except OSError as error:
        raise unread(error, path) from error
    return FileIdentity(status.st_ino, status.st_size, status.st_mtime_ns)


class AppendOnly:
    """One file that only grows, until it is replaced as a whole. For one thread at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1
        self._inode = 0

    @property
    def inode(self) -> int:
        """Of the file that is open; 0 if none is."""
        return self._inode

    def identity(self) -> FileIdentity:
        """Of the file that is open."""
        status = os.fstat(self._fd)
        return FileIdentity(status.st_ino, status.st_size, status.st_mtime_ns)

    def open(self, *, create: bool = False) -> bool:
        """Have the file that the path names now. False if there is none."""
        if self._fd >= 0:
            if identity(self.path).inode == self._inode:
                return True
            self.close()
        try:
            fd = _open(self.path, os.O_CREAT if create else 0)
        except FileNotFoundError:
            return False
        self._inode = os.fstat(fd).st_ino
        self._fd = fd
        return True

    @property
    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def read(self, start: int, end: int) -> bytes:
        """These bytes of the file that was opened, fewer if it has fewer."""
        if self._fd < 0 and not self.open():
            return b""
        pieces: list[bytes] = []
        try:
            while start < end and (piece := os.pread(self._fd, end - start, start)):
                pieces.append(piece)
                start += len(piece)
        except OSError as error:
            raise unread(error, self.path) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def append(self, data: bytes) -> None:
        """Not durable before `sync`. An OSError may leave a part of it behind: `cut` takes that back."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def sync(self) -> None:
        os.fsync(self._fd)

    def cut(self, size: int) -> None:
        if self._fd >= 0 and self.size > size:
            os.ftruncate(self._fd, size)

    def close(self) -> None:
        # First forgotten, then closed: after a fork in between, nobody closes what has the number by then.
        fd, self._fd, self._inode = self._fd, -1, 0
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)


def _open(path: str, flags: int) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND | flags, PRIVATE)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not flags:
            raise
        if not flags and error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            try:
                return os.open(path, os.O_RDONLY)
            except OSError as problem_of_reading:
                raise unread(problem_of_reading, path) from error
        raise problem(error, path) from error


def replace(path: str, data: bytes, mode: int = PRIVATE, *, durable: bool = True) -> None:
    """The whole file or the old one, whatever happens meanwhile; durable when this returns. Raises OSError.

    Not `durable`: a power cut may leave any part of it.
    """
    temporary = f"{path}.{os.getpid()}-{threading.get_ident()}{TEMPORARY}"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if durable:
        sync_folder(os.path.dirname(path))


def read_end(path: str, size: int) -> bytes:
    """The last bytes of a file, as `read_whole`."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise unread(error, path) from error


def read_part(path: str, start: int, end: int) -> bytes:
    """Some bytes of a file, as `read_whole`."""
    try:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(end - start)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise unread(error, path) from error


def read_whole(path: str) -> bytes:
    """Through a descriptor of its own; nothing where there is no such file."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise unread(error, path) from error


def remove_leftovers(folder: str) -> None:
    """Whatever a killed process was about to put in place of a file."""
    for name in os.listdir(folder):
        if _LEFTOVER.fullmatch(name):
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))


def sync_folder(path: str) -> None:
    """So that a new name in it survives a power cut too."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_folder(path: str) -> None:
    """With its parents, for the owner only, each durable."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    make_folder(parent)
    try:
        with suppress(FileExistsError):
            os.mkdir(path, PRIVATE_FOLDER)
            sync_folder(parent)
    except OSError as error:
        raise problem(error, path) from error
    if not os.path.isdir(path):
        raise StoreError(f"{path} is a file, and a folder is needed there")


def unread(error: OSError, path: str) -> StoreError:
    """What an error in reading means to the caller."""
    return problem(error, path) if error.errno == errno.EIO else unreadable(error, path)


def describe_error(error: OSError, path: str) -> str:
    return f"{path}: {error.strerror or error}"


def problem(error: OSError, path: str) -> StoreError:
    """What an error of the system means to the caller."""
    text = describe_error(error, path)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFullError(f"{text}. Free some space; nothing that was acknowledged is lost")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ReadOnlyError(f"{text}. Check who owns the folder and its permissions")
    if error.errno == errno.EIO:
        return CorruptionError(f"{text}. The disk cannot be read or written there")
    return StoreError(text)
