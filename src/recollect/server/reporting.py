"""The server's log on stderr: it names the code that failed, and never holds content."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from traceback import format_tb
from types import TracebackType

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


class Unhurried(logging.Handler):
    """Writes to a file descriptor, from a thread of its own: where nobody reads a pipe, only that thread waits.

    Not through `sys.stderr`, whose lock would be held meanwhile, and which Python flushes when it exits.
    """

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd
        self._lines: queue.Queue[bytes] = queue.Queue(_WAITING)
        self._dropped = 0
        threading.Thread(target=self._write, daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.put_nowait(f"{self.format(record)}\n".encode(errors="backslashreplace"))
        except queue.Full:
            self._dropped += 1
        except Exception:
            self.handleError(record)

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            try:
                while line:
                    line = line[os.write(self._fd, line) :]
                if self._dropped:
                    dropped, self._dropped = self._dropped, 0
                    os.write(self._fd, f"recollect: {dropped:,} more were dropped, as nobody read them\n".encode())
            except OSError:
                pass  # nobody is there any more
            finally:
                self._lines.task_done()

    def flush(self) -> None:
        """Called at exit."""
        deadline = time.monotonic() + _PATIENCE
        while self._lines.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.005)


def to_stderr() -> None:
    """Warnings and errors of this process, one line each, with where they come from."""
    handler = Unhurried(2)
    handler.setFormatter(Discreet("recollect: %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.captureWarnings(True)
