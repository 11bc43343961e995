"""What a server says on stderr: which code failed, and never what it was working on."""

from __future__ import annotations

import logging
import sys
from traceback import format_tb
from types import TracebackType

_Error = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class Discreet(logging.Formatter):
    """Errors without their text, since that may quote what a client sent."""

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # what another formatter may have made of it
        return super().format(record)

    def formatException(self, ei: _Error) -> str:  # noqa: N802 (the name is logging's)
        return "".join([*format_tb(ei[2]), ei[0].__name__ if ei[0] else ""])


def to_stderr() -> None:
    """Warnings and errors of this process, one line each, with where they come from."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Discreet("recollect: %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
