"""The server's log on stderr: it names the code that failed, and never holds content."""

from __future__ import annotations

import logging
import os
import queue
import time
from contextlib import suppress
from logging.handlers import QueueHandler, QueueListener
from traceback import format_tb
from types import TracebackType

from recollect.runtime.logs import JsonLines

_Error = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
_WAITING = 1000
"""Lines that wait to be written; more are dropped."""
_PATIENCE = 0.5
"""Seconds that the last of them have at the end."""


class Discreet(logging.Formatter):
    """Errors without their text, since that may quote what a client sent."""

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # what another formatter may have made of it
        return super().format(record)

    def formatException(self, ei: _Error) -> str:  # noqa: N802 (the name is logging's)
        return "".join([*format_tb(ei[2]), ei[0].__name__ if ei[0] else ""])


class DiscreetJson(JsonLines):
    """The same as JSON."""

    formatException = Discreet.formatException  # noqa: N815 (the name is logging's)


class _Lines(QueueHandler):
    """Formats records at once and queues them. Drops them where the queue is full: no caller waits for the log."""

    def __init__(self) -> None:
        self.lines: queue.Queue[logging.LogRecord] = queue.Queue(_WAITING)
        self.dropped = 0
        super().__init__(self.lines)

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.lines.put_nowait(record)
        except queue.Full:
            self.dropped += 1

    def flush(self) -> None:
        """Called at exit. QueueListener.stop would wait for ever where nobody reads the pipe."""
        deadline = time.monotonic() + _PATIENCE
        while self.lines.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.005)


class _FileDescriptorHandler(logging.Handler):
    """Not through `sys.stderr`, whose lock would be held while a pipe is full, and which Python flushes at exit."""

    def __init__(self, fd: int, lines: _Lines) -> None:
        super().__init__()
        self._fd, self._lines = fd, lines

    def createLock(self) -> None:  # noqa: N802 (the name is logging's)
        # Only the listener's thread writes. Waiting at a full pipe it would hold the lock, for which logging.shutdown
        # waits at exit.
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):  # nobody is there any more
            self._write(record.getMessage())
            if self._lines.dropped:
                dropped, self._lines.dropped = self._lines.dropped, 0
                self._write(f"recollect: {dropped:,} more were dropped, as nobody read them")

    def _write(self, line: str) -> None:
        data = f"{line}\n".encode(errors="backslashreplace")
        while data:
            data = data[os.write(self._fd, data) :]


def to_stderr(formatter: logging.Formatter | None = None) -> None:
    """Warnings and errors of this process, one line each, written by a thread that nobody waits for."""
    lines = _Lines()
    lines.setFormatter(formatter or Discreet("recollect: %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[lines])
    logging.captureWarnings(True)
    QueueListener(lines.lines, _FileDescriptorHandler(2, lines)).start()
