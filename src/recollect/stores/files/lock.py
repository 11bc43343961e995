"""The writer's lock of a folder: the operating system's, with a note for people, and for whoever comes after a crash.

A dead holder's lock is gone with its process, and a slow holder keeps it for as long as it lives. The note in the file
says who holds it. While files are being written it also says how long they were and will be, so that the next holder
can finish or take back what a killed one had begun, and readers can tell what is complete.
"""

from __future__ import annotations

import fcntl
import os
import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from recollect.stores.files.files import problem, unread
from recollect.values.errors import ConcurrencyError, StoreError

_SIZE = 1024
"""The file never changes its size: that would make every fsync in the folder slower."""
_READABLE = 0o644
_SLEEPS = (0.0, 0.00005, 0.0001, 0.0002, 0.0004, 0.0008, 0.002, 0.005)


class Patience(NamedTuple):
    """How long to wait for another writer."""

    timeout: float = 5.0
    retries: int = 3
    backoff: float = 0.1

    @property
    def total(self) -> float:
        """Seconds until one gives up."""
        return self.timeout * (self.retries + 1) + sum(self.backoff * 2**attempt for attempt in range(self.retries))


class LockNote(msgspec.Struct, frozen=True, omit_defaults=True, rename={"began": "from", "ends": "to"}):
    """What the holder of the lock is doing."""

    pid: int = 0
    timestamp: datetime | None = None
    operation: str = ""
    expires_at: datetime | None = None
    """When it should be done. Nobody takes the lock away then; it is for people."""
    began: dict[str, tuple[int, int]] = {}
    """Files that are being written: the inode and size of each before."""
    ends: dict[str, int] = {}
    """Their sizes when all is written."""


IDLE = LockNote()
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(LockNote).decode


class Lock:
    """Exclusive between processes. Between the threads of one process the caller must take turns.

    The file is open only while the lock is held or waited for.
    """

    def __init__(self, path: str, patience: Patience) -> None:
        self.path = path
        self._patience = patience
        self._fd = -1
        self._held = IDLE
        self.held = False
        self.unsettled = False
        """Whether the note tells of a write that is yet to be finished or taken back. It must stay until then."""
        self.waits = 0
        """How often somebody else had it."""

    def acquire(self, operation: str) -> LockNote:
        """Wait for the lock and return the note of a holder that died in the middle, or `IDLE`.

        FileNotFoundError if the folder is gone.
        """
        patience = self._patience
        for attempt in range(patience.retries + 1):
            if attempt:
                time.sleep(patience.backoff * 2 ** (attempt - 1))
            if self._wait(patience.timeout):
                return self._hold(operation)
        try:
            raise self._timeout()
        finally:
            self.forget()

    def try_acquire(self, operation: str) -> LockNote | None:
        """As `acquire`, but None at once where somebody else has it."""
        if self._wait(0.0):
            return self._hold(operation)
        self.forget()
        return None

    def _hold(self, operation: str) -> LockNote:
        left = self.read()
        now = datetime.now(UTC)
        self._held = LockNote(os.getpid(), now, operation, now + timedelta(seconds=self._patience.timeout))
        self.unsettled = bool(left.began)
        if not self.unsettled:
            try:
                self._write(self._held)
            except OSError as error:
                self.forget()
                raise problem(error, self.path) from error
        self.held = True
        return left

    def _wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        tries = 0
        while True:
            self._open()
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not tries:
                    self.waits += 1
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_SLEEPS[min(tries, len(_SLEEPS) - 1)])
                tries += 1
                continue
            except OSError as error:
                raise problem(error, self.path) from error
            if self._current():
                return True
            self.forget()  # the folder was dropped, and perhaps made anew, while we waited

    def _open(self) -> None:
        if self._fd >= 0:
            return
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT, _READABLE)
            if os.fstat(self._fd).st_size < _SIZE:
                os.pwrite(self._fd, b"\n", _SIZE - 1)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise problem(error, self.path) from error

    def _current(self) -> bool:
        try:
            return os.stat(self.path).st_ino == os.fstat(self._fd).st_ino
        except FileNotFoundError:
            return False

    def _timeout(self) -> ConcurrencyError:
        holder = self.read()
        who = f"process {holder.pid} ({holder.operation} since {holder.timestamp})" if holder.pid else "another process"
        tries, seconds = self._patience.retries + 1, self._patience.timeout
        return ConcurrencyError(f"{self.path}: {who} held the lock through {tries} tries of {seconds:g} s; try again")

    def announce(self, began: dict[str, tuple[int, int]], ends: dict[str, int], *, durable: bool) -> None:
        """Say what is about to be written."""
        held = self._held
        self._write(LockNote(held.pid, held.timestamp, held.operation, held.expires_at, began, ends))
        if durable:
            os.fsync(self._fd)

    def settle(self) -> None:
        """Nothing is left of what a dead holder had begun."""
        self._write(self._held)
        self.unsettled = False

    def quiet(self) -> None:
        """Nothing is being written, and no older note may come back after a power cut."""
        self._write(self._held)
        os.fsync(self._fd)

    def release(self) -> None:
        try:
            if not self.unsettled:
                self._write(IDLE)
            fcntl.flock(self._fd, fcntl.LOCK_UN)  # a forked child may have the file open for a moment longer
        finally:
            self.forget()

    def let_go(self) -> None:
        """As it is. What the note tells of is for the next holder to finish or take back."""
        try:
            if self._fd >= 0:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
        finally:
            self.forget()

    def _write(self, note: LockNote) -> None:
        text = b"{}" if note is IDLE else _encode(note)
        if len(text) >= _SIZE:
            raise StoreError(f"{self.path}: the note is too long")
        os.pwrite(self._fd, text.ljust(_SIZE - 1) + b"\n", 0)

    def read(self) -> LockNote:
        """What the holder says. A note that cannot be read is one that nobody finished."""
        try:
            return _note(os.pread(self._fd, _SIZE, 0))
        except OSError:
            return IDLE

    def forget(self) -> None:
        """Let go of the file, and of the lock with it. In a forked child this leaves the parent's lock alone."""
        fd, self._fd, self.held = self._fd, -1, False
        if fd >= 0:
            os.close(fd)


def read_note(path: str) -> LockNote:
    """What the holder of a lock says, for whoever reads beside it."""
    try:
        with open(path, "rb") as file:
            return _note(file.read(_SIZE))
    except FileNotFoundError:
        return IDLE
    except OSError as error:
        raise unread(error, path) from error


def _note(data: bytes) -> LockNote:
    try:
        return _decode(data) if data.strip(b"\0\n {}") else IDLE
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return IDLE
