"""Log lines as JSON, for `logging` handlers of an application: recollect itself configures no logging.

handler = logging.StreamHandler()
handler.setFormatter(recollect.runtime.logs.JsonLines())
logging.getLogger("recollect").addHandler(handler)
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

import msgspec


class JsonLines(logging.Formatter):
    """One JSON object a line: timestamp, level, component, session_id, message, metadata."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        line: dict[str, Any] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC),
            "level": "WARN" if record.levelname == "WARNING" else record.levelname,
            "component": getattr(record, "component", record.name.removeprefix("recollect.")),
            "session_id": getattr(record, "session_id", None),
            "message": message[:1].upper() + message[1:],
            "metadata": getattr(record, "metadata", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()
