"""What a store logs while a command runs, as a person wants to read it."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

from recollect.cli import text
from recollect.cli.output import note

_CORRUPT = ("corruption detected", "entry skipped")
_RAISED = "I/O failure"
"""Told by the error that the command ends with."""


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.damaged: set[tuple[str, str]] = set()
        self.others: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        details = getattr(record, "metadata", {})
        if record.getMessage() in _CORRUPT:
            where = details.get("where") or f"line {details.get('line')}"
            self.damaged.add((str(getattr(record, "session_id", "")), str(where)))
        elif record.getMessage() != _RAISED:
            problem = details.get("problem")
            self.others[f"{record.getMessage()}{f': {problem}' if problem else ''}"] = None


@contextmanager
def heard(look: str | None) -> Generator[None]:
    """Damage that is skipped is told in one line, with the command to look at it; not at all if that is None."""
    logger, handler = logging.getLogger("recollect"), _Heard()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        if look is not None:
            for line in handler.others:
                note(f"recollect: {text.one_line(line)}")
            if number := len(handler.damaged):
                note(f"{text.count(number, 'damaged line was', 'damaged lines were')} skipped; look with: {look}")
