"""What the tests of the notebook share: its file, read and written as any other program would."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from recollect import Memory

_LINE = '{{"id":"{}","scope":"{}","text":"{}","tags":[{}],"ts":"2026-02-26T12:{}:00Z"}}\n'
SAMPLE = (
    _LINE.format("m-1", "user", "User prefers Python over JavaScript", '"preference"', "00")
    + _LINE.format("m-2", "workspace", "Project uses PostgreSQL 16 on port 5432", '"infra"', "05")
    + _LINE.format("m-3", "workspace", "Deploy target is AWS us-east-1", '"infra","deploy"', "10")
)
"""The document's own file, byte for byte."""


class Notes:
    """A notebook's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "memories.jsonl"

    def open(self, clock: Callable[[], datetime] | None = None) -> Memory:
        options: dict[str, Any] = {} if clock is None else {"clock": clock}
        return Memory(f"notebook:{self.folder}", preset="aegis", **options)

    def write(self, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(text.encode())


def parse(text: str) -> list[dict[str, Any]]:
    """What the document says of a line, and nothing else."""
    memories: list[dict[str, Any]] = []
    for line in text.splitlines():
        memory = json.loads(line)
        assert list(memory) == ["id", "scope", "text", "tags", "ts"]
        assert re.fullmatch(r"m-[1-9][0-9]*", memory["id"])
        assert memory["scope"] in ("user", "workspace", "session")
        assert 1 <= len(memory["text"]) <= 500
        assert len(memory["tags"]) <= 5
        assert memory["ts"].endswith("Z")
        datetime.fromisoformat(memory["ts"])
        memories.append(memory)
    return memories
