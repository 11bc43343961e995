"""Stores as earlier versions wrote them, kept in `tests/fixtures/formats`, and what was in them.

`PYTHONPATH=src:tests python -m support.formats NAME` writes those of the version that PYTHONPATH names first. It is
done once for each format, before the format changes; what was written is never changed.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from recollect import Memory
from support.concepts import Concepts

FOLDER = Path(__file__).parents[1] / "fixtures" / "formats"
BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)
SCHEMA = "recollect_fixture"
_PLACES = ("default", "lab")


class Clock:
    """A minute passes with each look at it, so that every time in a fixture is another one."""

    def __init__(self, begin: datetime = BEGIN) -> None:
        self.now = begin

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def opened(location: str, clock: Clock | None = None) -> Memory:
    return Memory(location, clock=clock or Clock(BEGIN + timedelta(days=2)), embedder=Concepts())


def fill(memory: Memory, kind: str) -> None:
    """Something of every kind that a store keeps, in every state that it can be in. The last change can be undone."""
    if kind == "ledger":
        session = memory.sessions.create("user123", session_id="trip")
        memory.sessions.add(
            "trip", {"type": "finding", "content": {"text": "The train leaves at six"}, "tags": ["train"]}
        )
        wrong = memory.sessions.add("trip", {"type": "decision", "content": {"text": "We take the bus"}})
        memory.sessions.delete("trip", wrong, reason="no bus")
        memory.sessions.close(session.session_id)
    team = memory.at(agent="atlas", account="ada", channel="ops")
    memory.remember("The car is in garage 4", kind="fact", importance=0.9, tags=["cars.red"], source="document:g.md")
    old = memory.remember("The puppy is called Rex", kind="fact", metadata={"age": 2})
    memory.revise(old.id, content="The dog is called Max")
    memory.remember({"drink": "tea", "cups": [1, 2]}, kind="preference", references=[old.id])
    archived = memory.remember("A house on the hill", expires_at=BEGIN + timedelta(days=1))
    memory.archive(archived.id, reason="sold")
    memory.remember("Soon over", expires_at=BEGIN + timedelta(hours=1))
    memory.remember("A decision of ours: ship on Fridays 🚀 日本語", kind="decision")
    team.remember("Ada rows before breakfast", kind="fact")
    memory.at(account="ada").remember("Ada likes chess everywhere", tier="account")
    memory.at(workspace="lab").remember("The lab opens at nine")
    memory.at(agent="atlas").journal.save("met the team")
    memory.at(agent="atlas").journal.save_core("I keep answers short")
    memory.channels.create("ops", "Where we run things")
    talk = memory.conversations.start("Lunch", channel="ops")
    memory.conversations.say(talk.id, "user", "I am allergic to peanuts.")
    memory.conversations.say(talk.id, "assistant", "I will remember that.")
    memory.conversations.end(talk.id)
    open_talk = memory.conversations.start("Dinner", channel="ops")
    memory.conversations.say(open_talk.id, "user", "Let us meet at seven.")
    memory.at(conversation=open_talk.id, channel="ops").scratchpad.write("draft", {"next": "call"})
    handbook = memory.knowledge.add("# Handbook\n\nHolidays: 28 days.", title="Handbook", category="hr")
    memory.knowledge.publish(handbook.id)
    memory.knowledge.allow("atlas", ["hr"])
    run = memory.workflows.start("release", goal="ship it")
    step = memory.workflows.step(run.id, "build")
    memory.workflows.complete(step.id, output="built well")
    memory.cases.save("where is the car?", texts=["garage 4"])
    memory.at(agent="atlas").audit.record("deployed", "the tests passed")
    gone = memory.remember("This was a mistake")
    memory.forget(gone.id, reason="wrong")
    memory.recall("car", limit=1)
    memory.remember("A late note that is forgotten last")
    (hit,) = memory.recall("late note", limit=1)
    memory.forget(hit.memory.id)


def look(memory: Memory, kind: str) -> dict[str, Any]:
    """All of it, as the public calls give it, in plain values."""
    sessions = sorted(memory.sessions.list(), key=lambda session: session.session_id) if kind == "ledger" else []
    owner = {name: memory.at(workspace=name) for name in _PLACES}
    contents = {
        "memories": {name: _all(view) for name, view in owner.items()},
        "audit": {name: view.audit.search(limit=1000) for name, view in owner.items()},
        "verified": {name: [log.ok for log in view.audit.verify()] for name, view in owner.items()},
        "conversations": memory.conversations.list(limit=100),
        "channels": memory.channels.list(),
        "cases": memory.cases.list(),
        "workflows": memory.workflows.list(limit=100),
        "steps": [memory.workflows.steps(run.id) for run in memory.workflows.list(limit=100)],
        "documents": memory.knowledge.list(),
        "allowed": memory.knowledge.allowed("atlas"),
        "passages": [passage.text for passage in memory.knowledge.search("holidays")],
        "notes": [
            memory.at(conversation=talk.id, channel="ops").scratchpad.list()
            for talk in memory.conversations.list(limit=100)
        ],
        "sessions": [session.session_id for session in sessions],
        "entries": [_entries(memory, session.session_id) for session in sessions],
        "words": _texts(memory, "garage"),
        "meaning": _texts(memory, "automobile"),
        "doctor": memory.doctor().ok,
    }
    return json.loads(msgspec.json.encode(contents))


def _all(view: Memory) -> list[Any]:
    return sorted(view.list(state=None, limit=1000), key=lambda record: record.id)


def _entries(memory: Memory, session: str) -> list[Any]:
    """What a session exports, without the checksums of the lines: they change with the form of an export."""
    entries = json.loads(memory.sessions.export(session, "json"))["entries"]
    return [{name: value for name, value in entry.items() if name != "checksum"} for entry in entries]


def _texts(memory: Memory, query: str) -> list[str]:
    return [str(hit.memory.content) for hit in memory.recall(query, limit=1)]


def differences(expected: Any, actual: Any, where: str = "") -> list[str]:
    """What an earlier version had and this one has not. A field that is new is no difference."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        has = dict(_items(actual))
        had = {name: value for name, value in _items(expected) if name in has or value}
        return [line for name in had for line in differences(had[name], has.get(name), f"{where}.{name}")]
    if isinstance(expected, list) and isinstance(actual, list) and len(_list(expected)) == len(_list(actual)):
        pairs = enumerate(zip(_list(expected), _list(actual), strict=True))
        return [line for number, pair in pairs for line in differences(*pair, f"{where}[{number}]")]
    return [] if expected == actual else [f"{where}: was {expected!r}, is {actual!r}"]


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items())


def _list(value: Any) -> list[Any]:
    return value


def names() -> list[str]:
    return sorted(path.name for path in FOLDER.iterdir())


def expected(name: str, kind: str) -> dict[str, Any]:
    state = json.loads(gzip.decompress((FOLDER / name / f"{kind}.json.gz").read_bytes()))
    # In earlier fixtures the session that was used last comes first, which is the one whose files were written last.
    by_id = sorted(zip(state["sessions"], state["entries"], strict=True), key=lambda pair: pair[0])
    return state | {"sessions": [ident for ident, _ in by_id], "entries": [entries for _, entries in by_id]}


def unpack(name: str, kind: str, folder: Path) -> None:
    """The files of a store that is files, as they were left."""
    with zipfile.ZipFile(FOLDER / name / f"{kind}.zip") as archive:
        archive.extractall(folder)


def dump(name: str, schema: str) -> str:
    """SQL that makes a schema as it was left, under another name."""
    return gzip.decompress((FOLDER / name / "postgresql.sql.gz").read_bytes()).decode().replace(SCHEMA, schema)


def _write(name: str) -> None:
    from support import postgres

    folder = FOLDER / name
    folder.mkdir(parents=True)
    for kind in ("sqlite", "ledger", "notebook"):
        with tempfile.TemporaryDirectory() as top:
            location = f"{kind}:{top}/store{'.jsonl' if kind == 'notebook' else ''}"
            _fill_at(location, kind)
            with zipfile.ZipFile(folder / f"{kind}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for path in sorted(Path(top).rglob("*")):
                    if path.is_file():
                        archive.write(path, path.relative_to(top))
            _write_expected(folder, location, kind)
    postgres.begin()
    url = postgres.shared().url()
    location = f"{url}{'&' if '?' in url else '?'}schema={SCHEMA}"
    _fill_at(location, "postgresql")
    command = [postgres.binary("pg_dump"), "--inserts", f"--schema={SCHEMA}", url]
    text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    lines = [line for line in text.splitlines() if not line.startswith("\\")]  # commands of psql
    (folder / "postgresql.sql.gz").write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    _write_expected(folder, location, "postgresql")
    postgres.end()


def _fill_at(location: str, kind: str) -> None:
    with opened(location, Clock()) as memory:
        fill(memory, kind)
        memory.embed()


def _write_expected(folder: Path, location: str, kind: str) -> None:
    """After the store was copied: looking counts retrievals."""
    with opened(location) as memory:
        state = look(memory, kind)
    (folder / f"{kind}.json.gz").write_bytes(gzip.compress(json.dumps(state, sort_keys=True).encode(), mtime=0))


if __name__ == "__main__":
    _write(sys.argv[1])
