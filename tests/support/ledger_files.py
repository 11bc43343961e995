"""What the tests of the ledger share: a folder of its files, read and written as any other program would."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recollect import Memory

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
"""What the clock of conftest begins with."""

SAMPLE = (
    '{"id":"mem_001","session_id":"sess_001","timestamp":"2026-01-10T10:00:00Z","type":"conversation",'
    '"content":{"role":"user","message":"Hello"},"importance":0.5,"decay_factor":1.0,"tags":[],"references":[]}\n'
    '{"id":"mem_002","session_id":"sess_001","timestamp":"2026-01-10T10:01:00Z","type":"conversation",'
    '"content":{"role":"assistant","message":"Hi!"},"importance":0.5,"decay_factor":1.0,"tags":[],'
    '"references":["mem_001"]}\n'
)
"""The example of section 8.1, which has no checksums and no versions."""


class Files:
    """A ledger's folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self, clock: Callable[[], datetime] | None = None) -> Memory:
        options: dict[str, Any] = {} if clock is None else {"clock": clock}
        return Memory(f"ledger:{self.root}", preset="ledger", **options)

    def configure(self, **sections: Any) -> None:
        self.root.mkdir(exist_ok=True)
        (self.root / "config.json").write_text(json.dumps(sections))

    def session(self, name: str = "s") -> Path:
        return self.root / "sessions" / name

    def json(self, *path: str) -> Any:
        return json.loads(self.root.joinpath(*path).read_text())

    def log(self, name: str = "s", file: str = "memory.jsonl") -> list[dict[str, Any]]:
        path = self.session(name) / file
        return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()] if path.exists() else []

    def write(self, text: str, name: str = "s") -> None:
        """As another program would, or a person."""
        self.session(name).mkdir(parents=True, exist_ok=True)
        (self.session(name) / "memory.jsonl").write_bytes(text.encode())

    def holding(self, text: str) -> list[str]:
        """Every file whose bytes hold the text."""
        paths = [path for path in self.root.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]
        return [str(path.relative_to(self.root)) for path in paths]


def checksum(entry: dict[str, Any]) -> str:
    """As section 8.2 says: SHA-256 over the entry with sorted keys and without white space."""
    rest = {key: value for key, value in entry.items() if key != "checksum"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def entry(content: Any = "an owl", type: str = "finding", **fields: Any) -> dict[str, Any]:
    return {"type": type, "content": content, **fields}
