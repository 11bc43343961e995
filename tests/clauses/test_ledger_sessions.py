"""The ledger's sessions: every operation of the document's manager, deletion for good, compaction, and the log."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import Clock
from support.ledger_files import NOW, Files, checksum, entry

from recollect import ConcurrencyError, InputError, Memory, NotFoundError, StoreError, UnsavedWarning
from recollect.runtime.logs import JsonLines
from recollect.stores.files.ledger import Ledger
from recollect.stores.port import Place

SECRET = "Quagga"
"""In every text that is to disappear."""


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "memory")


@pytest.fixture
def memory(files: Files, clock: Clock) -> Iterator[Memory]:
    with files.open(clock) as memory:
        memory.sessions.create("user123", session_id="s")
        yield memory


def contents(hits: Any) -> list[Any]:
    return [hit.memory.content for hit in hits]


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


@pytest.mark.clause("LED-05")
def test_the_documents_basic_example_works(files: Files) -> None:
    with files.open() as memory:
        session = memory.sessions.create("user123")
        asked = memory.sessions.add(
            session.session_id,
            {
                "type": "conversation",
                "content": {"role": "user", "message": "How do I implement OAuth2?"},
                "importance": 0.8,
                "tags": ["oauth2", "authentication"],
            },
        )
        decided = memory.sessions.add(
            session.session_id,
            {
                "type": "decision",
                "content": {"decision": "Use Authorization Code flow", "alternatives": ["Implicit flow", "PKCE"]},
                "importance": 0.9,
                "tags": ["oauth2", "security", "architecture"],
                "references": [asked],
            },
        )
        found = memory.sessions.search_by_topic(session.session_id, "oauth2")
        assert [hit.memory.id for hit in found] == [decided, asked]
        memory.sessions.close(session.session_id)
        assert files.json("sessions", session.session_id, "metadata.json")["total_entries"] == 2
    with files.open() as memory:
        again = memory.sessions.load(session.session_id)
        assert (again.user_id, again.total_entries) == ("user123", 2)
        assert [one.session_id for one in memory.sessions.list()] == [session.session_id]


@pytest.mark.clause("LED-05")
def test_an_entry_is_added_got_and_deleted(memory: Memory) -> None:
    ident = memory.sessions.add("s", entry({"finding": "owls"}, importance=0.85, tags=["bird"], references=["mem_1"]))
    found = memory.sessions.get("s", ident)
    assert found is not None
    assert (found.id, found.kind, found.content) == (ident, "finding", {"finding": "owls"})
    assert (found.importance, found.tags, found.references) == (0.85, ("bird",), ("mem_1",))
    assert found.created_at == NOW
    assert memory.sessions.get("s", "mem_none") is None
    assert memory.sessions.delete("s", ident) is True
    assert memory.sessions.get("s", ident) is None
    assert memory.sessions.delete("s", ident) is False


@pytest.mark.clause("LED-05")
def test_entries_are_found_by_topic_type_and_time(memory: Memory) -> None:
    memory.sessions.add("s", entry("a", "decision", tags=["x"], importance=0.3, timestamp=days_ago(3)))
    memory.sessions.add("s", entry("b", "finding", tags=["x", "y"], importance=0.9, timestamp=days_ago(2)))
    memory.sessions.add("s", entry("c", "decision", tags=["y"], importance=0.6, timestamp=days_ago(1)))
    assert contents(memory.sessions.search_by_topic("s", "x")) == ["b", "a"]
    assert contents(memory.sessions.search_by_type("s", "decision")) == ["c", "a"]
    assert contents(memory.sessions.search_by_time_range("s", days_ago(3), days_ago(1))) == ["b", "a"]
    assert contents(memory.sessions.search_by_time_range("s", "2026-02-27", "2026-03-02")) == ["b", "c"]
    assert contents(memory.sessions.query("s", {"types": ["decision"], "tags": ["y"]})) == ["c"]
    with pytest.raises(InputError, match=r"^type: 'fact' must be one of conversation"):
        memory.sessions.search_by_type("s", "fact")  # type: ignore[arg-type]


@pytest.mark.clause("LED-05")
def test_entries_are_deleted_by_topic_and_by_time(memory: Memory) -> None:
    for day in range(5):
        memory.sessions.add(
            "s", entry(f"day {day}", timestamp=days_ago(day), tags=[f"d.{day}", "even" if day % 2 else "odd"])
        )
    assert memory.sessions.delete_by_topic("s", "d.0") == 1
    assert memory.sessions.delete_by_topic("s", "even", reason="asked to") == 2
    assert memory.sessions.delete_by_time_range("s", days_ago(4), days_ago(2)) == 1
    assert memory.sessions.delete_by_time_range("s", days_ago(40), days_ago(20)) == 0
    assert contents(memory.sessions.query("s", {})) == ["day 2"]
    with pytest.raises(InputError, match="start: is after end"):
        memory.sessions.delete_by_time_range("s", days_ago(1), days_ago(3))


@pytest.mark.clause("LED-05")
def test_a_session_is_exported_as_json_or_jsonl(files: Files, memory: Memory, clock: Clock, tmp_path: Path) -> None:
    ids = memory.sessions.add_many("s", [entry({"n": n}, tags=["t"], timestamp=days_ago(14 * n)) for n in range(3)])
    memory.sessions.delete("s", ids[1])
    lines = [json.loads(line) for line in memory.sessions.export("s", "jsonl").splitlines()]
    assert [line["id"] for line in lines] == [ids[2], ids[0]]
    assert [line["decay_factor"] for line in lines] == pytest.approx([0.25, 1.0])
    assert all(line["checksum"] == checksum(line) for line in lines)
    whole = json.loads(memory.sessions.export("s", "json"))
    assert whole["entries"] == lines
    assert (whole["session"]["user_id"], whole["session"]["statistics"]["findings"]) == ("user123", 2)
    with pytest.raises(InputError, match=r"^format: 'xml' must be one of json, jsonl"):
        memory.sessions.export("s", "xml")  # type: ignore[arg-type]
    copy = Files(tmp_path / "copy")
    copy.write(memory.sessions.export("s"), "s")
    with copy.open(clock) as other:
        assert contents(other.sessions.query("s", {"sort_by": "oldest"})) == [{"n": 2}, {"n": 0}]
        assert other.sessions.stats("s").corrupt == ()


@pytest.mark.clause("LED-05")
@pytest.mark.parametrize(
    "call", ["load", "close", "compact", "rebuild_index", "stats", "export", "delete_session", "migrate"]
)
def test_a_session_that_is_not_there_is_not_found(files: Files, memory: Memory, call: str) -> None:
    with pytest.raises(NotFoundError, match="there is no session nobody"):
        getattr(memory.sessions, call)("nobody")
    assert not files.session("nobody").exists()


@pytest.mark.clause("LED-05")
def test_another_store_says_that_it_has_no_sessions(tmp_path: Path) -> None:
    with (
        Memory(tmp_path / "other") as memory,
        pytest.raises(InputError, match="store: keeps no sessions; use a ledger"),
    ):
        memory.sessions.list()


@pytest.mark.clause("LED-05")
def test_sessions_are_closed_rebuilt_and_counted(files: Files, memory: Memory) -> None:
    memory.sessions.add_many("s", [entry("one"), entry("two", "decision")])
    memory.sessions.close("s")
    assert contents(memory.sessions.query("s", {"types": ["decision"]})) == ["two"]
    (files.session() / "index.json").unlink(missing_ok=True)
    assert memory.sessions.rebuild_index("s") == 2
    assert len(files.json("sessions", "s", "index.json")["entries"]) == 2
    stats = memory.sessions.stats("s")
    assert (stats.entries, stats.deleted, stats.corrupt, stats.buffered) == (2, 0, (), 0)
    assert stats.size_bytes == stats.metadata.total_size_bytes > 0


@pytest.mark.clause("LED-11")
def test_compaction_drops_what_was_deleted_and_what_has_faded(files: Files, memory: Memory, clock: Clock) -> None:
    add = memory.sessions.add
    add("s", entry("kept", importance=0.5))
    faded = add("s", entry("faded", importance=0.49, timestamp=days_ago(365)))  # at the floor of 0.1: 0.049
    add("s", entry("just enough", importance=0.5, timestamp=days_ago(365)))  # 0.05
    add("s", entry("a taste", "preference", importance=0.05, timestamp=days_ago(365)))
    add("s", entry("weak but new", importance=0.04))  # 0.04 * 1.5
    gone = add("s", entry("deleted"))
    memory.sessions.delete("s", gone)
    assert len(files.log()) == 6
    inode = (files.session() / "memory.jsonl").stat().st_ino
    assert memory.sessions.compact("s") > 0
    assert [line["content"] for line in files.log()] == ["kept", "just enough", "a taste", "weak but new"]
    assert (files.session() / "memory.jsonl").stat().st_ino != inode
    assert not list(files.session().glob("*.tmp"))
    assert files.log(file="tombstones.jsonl") == []
    assert memory.sessions.get("s", faded) is None
    index = files.json("sessions", "s", "index.json")
    assert set(index["entries"]) == {line["id"] for line in files.log()}
    data = (files.session() / "memory.jsonl").read_bytes()
    assert all(json.loads(data[one["byte_offset"] :].split(b"\n")[0])["id"] == i for i, one in index["entries"].items())
    metadata = files.json("sessions", "s", "metadata.json")
    assert (metadata["total_entries"], metadata["statistics"]["findings"]) == (4, 3)
    assert metadata["last_compaction"] is not None
    assert memory.sessions.compact("s") == 0


@pytest.mark.clause("LED-11")
def test_an_entry_is_the_same_after_compaction(memory: Memory) -> None:
    ids = memory.sessions.add_many(
        "s", [entry({"n": n, "z": [1.5, "é\n"]}, tags=["t"], references=["m"]) for n in range(4)]
    )
    memory.sessions.query("s", {"text": "n"})
    memory.sessions.delete("s", ids[1])
    before = [memory.sessions.get("s", ident) for ident in ids]
    memory.sessions.compact("s")
    assert [memory.sessions.get("s", ident) for ident in ids] == before
    assert before[0] is not None
    assert before[0].access_count == 1


@pytest.mark.clause("LED-12")
def test_a_tombstone_says_what_when_and_why(files: Files, memory: Memory) -> None:
    one, two = memory.sessions.add_many("s", [entry("one"), entry("two", tags=["personal_info"])])
    memory.sessions.delete("s", one)
    memory.sessions.delete_by_topic("s", "personal_info", reason="asked by the user")
    first, second = files.log(file="tombstones.jsonl")
    assert (first["id"], second["id"], second["reason"]) == (one, two, "asked by the user")
    assert datetime.fromisoformat(first["timestamp"]) == NOW
    assert [line["id"] for line in files.log()] == [one, two]
    assert memory.sessions.stats("s").deleted == 2
    memory.sessions.rebuild_index("s")
    index = files.json("sessions", "s", "index.json")
    assert (index["entries"], set(index["tombstones"])) == ({}, {one, two})


@pytest.mark.clause("LED-12")
@pytest.mark.parametrize("how", ["one", "topic", "time"])
def test_after_compaction_the_deleted_text_is_in_no_file(files: Files, memory: Memory, clock: Clock, how: str) -> None:
    memory.sessions.add("s", entry("stays", tags=["other"]))
    ident = memory.sessions.add("s", entry({"text": f"the {SECRET}"}, tags=[SECRET], timestamp=days_ago(9)))
    memory.sessions.query("s", {"text": SECRET})
    memory.sessions.rebuild_index("s")
    memory.sessions.close("s")
    assert len(files.holding(SECRET)) >= 4  # the log, the index, and both of indices/
    if how == "one":
        assert memory.sessions.delete("s", ident)
    elif how == "topic":
        assert memory.sessions.delete_by_topic("s", SECRET) == 1
    else:
        assert memory.sessions.delete_by_time_range("s", days_ago(10), days_ago(8)) == 1
    memory.sessions.compact("s")
    assert files.holding(SECRET) == []
    assert sorted(files.holding("stays")) == ["sessions/s/index.db", "sessions/s/memory.jsonl"]
    memory.close()
    assert files.holding(SECRET) == []


@pytest.mark.clause("LED-12")
def test_a_deleted_session_leaves_nothing_but_a_line_in_the_audit_log(files: Files, memory: Memory) -> None:
    memory.sessions.create("other", session_id="o")
    memory.sessions.add("o", entry("stays", tags=["other"]))
    memory.sessions.add_many("s", [entry(f"{SECRET} {n}", tags=[SECRET]) for n in range(3)])
    memory.sessions.close("s")
    memory.sessions.close("o")
    assert memory.sessions.delete_session("s", reason="moved out") == 3
    assert files.holding(SECRET) == []
    assert sorted(path.name for path in (files.root / "sessions").iterdir()) == ["o"]
    assert set(files.json("indices", "global_index.json")["sessions"]) == {"o"}
    assert [one.session_id for one in memory.sessions.list()] == ["o"]
    with pytest.raises(NotFoundError):
        memory.sessions.query("s", {})
    (told,) = memory.audit.search("moved out")
    assert (told.meta["workspace"], told.meta["memories"]) == ("s", 3)


@pytest.mark.clause("LED-12")
def test_until_compaction_a_deletion_can_be_undone(files: Files, memory: Memory) -> None:
    ident = memory.sessions.add("s", entry("on second thought"))
    memory.sessions.delete("s", ident)
    memory.at(workspace="s").undo()
    assert contents(memory.sessions.query("s", {"text": "thought"})) == ["on second thought"]
    memory.sessions.compact("s")
    assert [line["content"] for line in files.log()] == ["on second thought"]


@pytest.mark.clause("LED-21")
def test_the_metrics_have_the_documents_names_and_count(memory: Memory) -> None:
    ids = memory.sessions.add_many("s", [entry("owl"), entry("owl too")])
    memory.sessions.query("s", {"text": "owl"})
    memory.sessions.delete("s", ids[0])
    memory.sessions.compact("s")
    told = memory.sessions.metrics()
    assert {
        "memory.sessions.active": 1,
        "memory.entries.total": 1,
        "memory.locks.contention.count": 0,
        "memory.compaction.count": 1,
        "memory.errors.corruption.count": 0,
        "memory.size.bytes": memory.sessions.stats("s").size_bytes,
    }.items() <= told.items()
    assert told["memory.operations.write.duration_ms"] > 0
    assert told["memory.operations.query.duration_ms"] > 0


@pytest.mark.clause("LED-21")
def test_log_lines_are_the_documents_json(files: Files, clock: Clock) -> None:
    files.configure(storage={"max_session_size_mb": 0.01})
    with listening() as lines, files.open(clock) as memory:
        memory.sessions.create("u", session_id="sess_001")
        ids = memory.sessions.add_many("sess_001", [entry("x" * 2000) for _ in range(4)])
        memory.sessions.delete("sess_001", ids[0])
        memory.sessions.compact("sess_001")
        memory.sessions.get("sess_001", ids[1])
    for line in lines:
        assert list(line) == ["timestamp", "level", "component", "session_id", "message", "metadata"]
        assert line["session_id"] == "sess_001"
        assert line["timestamp"].endswith("Z")
    done = next(line for line in lines if line["message"] == "Session compaction completed")
    assert (done["level"], done["component"]) == ("INFO", "MemoryManager")
    assert list(done["metadata"]) == ["entries_before", "entries_after", "size_reduction_mb", "duration_ms"]
    assert (done["metadata"]["entries_before"], done["metadata"]["entries_after"]) == (4, 3)
    assert "x" * 50 not in str(lines)


LEVELS = """
- `DEBUG`: Lock acquisition/release, cache hits/misses
- `INFO`: Session lifecycle, compaction start/end
- `WARN`: Lock timeout, approaching size limit
- `ERROR`: Corruption detected, I/O failures
"""
"""Section 15.2, word for word."""
EVENTS = {
    "Lock acquisition/release": ["Lock acquired", "Lock released"],
    "cache hits/misses": ["Cache hit", "Cache miss"],
    "Session lifecycle": ["Session created", "Session opened", "Session closed", "Session deleted"],
    "compaction start/end": ["Session compaction started", "Session compaction completed"],
    "Lock timeout": ["Lock timeout"],
    "approaching size limit": ["Approaching size limit"],
    "Corruption detected": ["Corruption detected"],
    "I/O failures": ["Write kept in memory", "Snapshot not written", "I/O failure"],
}
"""What we log for each of them."""


@pytest.mark.clause("LED-28")
def test_every_event_of_the_document_is_logged_at_its_level(
    files: Files, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = dict(re.findall(r"- `(\w+)`: (.*)", LEVELS))
    level_of = {
        event: level for level, events in table.items() for what in events.split(", ") for event in EVENTS[what]
    }
    files.configure(
        storage={"max_session_size_mb": 0.02, "auto_compact": False},
        concurrency={"lock_timeout_ms": 1, "max_retries": 0, "retry_backoff_ms": 1},
    )
    with listening() as lines:
        with files.open(clock) as memory:
            memory.sessions.create("u", session_id="s")
            memory.at(workspace="unasked").remember("an owl")
            ids = memory.sessions.add_many("s", [entry("x" * 2000) for _ in range(4)])
            for _ in range(2):
                memory.sessions.get("s", ids[1])
            memory.sessions.delete("s", ids[0])
            memory.sessions.compact("s")
            with Ledger(files.root).transaction(Place("default", "s")), pytest.raises(ConcurrencyError):
                memory.sessions.add("s", entry("while somebody else writes"))
            path = files.session("s") / "memory.jsonl"
            path.write_bytes(path.read_bytes() + b"not JSON\n" + b"\n" * 10_000)
            memory.sessions.add("s", entry("y" * 1000))
            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", refuse)
                with pytest.warns(UnsavedWarning):
                    memory.sessions.add("s", entry("refused"))
            with monkeypatch.context() as patch:
                patch.setattr(os, "rename", refuse)
                memory.sessions.rebuild_index("s")
            with monkeypatch.context() as patch:
                patch.setattr(fcntl, "flock", refuse)
                with pytest.raises(StoreError, match="Input/output"):
                    memory.sessions.add("s", entry("refused"))
            memory.at(workspace="unasked").forget(workspace="unasked")
        with files.open(clock) as memory:
            memory.sessions.load("s")
    assert {line["component"] for line in lines} == {"MemoryManager"}
    said = {(line["message"], line["level"]) for line in lines}
    assert {(event, level) for event, level in said if event in level_of} == {*level_of.items()}
    assert {event for event, _ in said} - {*level_of} <= {"Not written anew yet", "Retrievals not counted yet"}
    by_session = {line["message"] for line in lines if line["session_id"] == "unasked"}
    assert {"Session created", "Session deleted"} <= by_session
    taken = [line["message"] for line in lines]
    assert taken.count("Lock acquired") == taken.count("Lock released")


def refuse(*given: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


@contextmanager
def listening() -> Iterator[list[dict[str, Any]]]:
    """Gives the lines that were logged, once it ends."""
    out, lines = io.StringIO(), list[dict[str, Any]]()
    handler, logger = logging.StreamHandler(out), logging.getLogger("recollect")
    handler.setFormatter(JsonLines())
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
        lines += map(json.loads, out.getvalue().splitlines())


@pytest.mark.clause("LED-31")
@pytest.mark.clause("LED-25")
def test_what_session_calls_return_has_the_documents_names(tmp_path: Path) -> None:
    now = NOW
    with Memory(f"ledger:{tmp_path}/memory", preset="ledger", clock=lambda: now) as memory:
        session = memory.sessions.create("user123")
        assert session.id == session.session_id == memory.sessions.load(session.id).id
        made = now - timedelta(hours=336)
        given = {"type": "finding", "content": "a heron", "timestamp": made.isoformat(), "metadata": {"page": 7}}
        ident = memory.sessions.add(session.id, given)
        entry = memory.sessions.get(session.id, ident)
        assert entry is not None
        assert (entry.id, entry.type, entry.timestamp, entry.session_id) == (ident, "finding", made, session.id)
        assert (entry.decay_factor, entry.metadata) == (pytest.approx(0.5), {"page": 7})
        (hit,) = memory.sessions.search_by_type(session.id, "finding")
        assert (hit.memory.type, hit.memory.timestamp, hit.memory.session_id) == ("finding", made, session.id)
        assert hit.decay_factor == pytest.approx(0.5)
        assert json.loads(memory.sessions.export(session.id))["metadata"] == {"page": 7}


@pytest.mark.clause("JRN-11")
@pytest.mark.parametrize("owner", [{"agent": "bot"}, {"account": "ann"}])
def test_entries_of_others_are_not_deleted_by_topic_or_time(tmp_path: Path, owner: dict[str, str]) -> None:
    with Memory(f"ledger:{tmp_path}/m") as memory:
        memory.sessions.create("ann", session_id="s1")
        session = memory.at(workspace="s1")
        shared = session.remember("shared by all", tags=["tea"])
        others = session.at(agent="other", account="bob").remember("of another", tags=["tea"])
        own = session.at(**owner).remember("my own", tags=["tea"])
        assert session.at(**owner).sessions.delete_by_topic("s1", "tea") == 1
        own_again = session.at(**owner).remember("my own again", tags=["tea"])
        assert session.at(**owner).sessions.delete_by_time_range("s1", "2000-01-01", "2100-01-01") == 1
        assert {record.id for record in session.list()} == {shared.id, others.id}
        assert {own.id, own_again.id}.isdisjoint({shared.id, others.id})
