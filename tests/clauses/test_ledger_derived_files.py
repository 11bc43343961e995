"""index.json, metadata.json and the indices of all sessions follow the log, however a process ends."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from support.common import LONG, Clock, eventually
from support.ledger_files import SAMPLE, Files

from recollect import Memory
from recollect.stores.write_timer import timer

NEVER = 3_600_000
"""Milliseconds: no test takes so long."""
LOG = ("memory.jsonl", "changes.jsonl", "vectors.jsonl", "tombstones.jsonl")
_BEGIN = """
import os, signal, sys
from datetime import UTC, datetime
from recollect import Memory
clock = {clock}
memory = Memory({url!r}, preset="ledger", **({{"clock": clock}} if clock else {{}}))
def add(session, text, **fields):
    return memory.at(workspace=session).remember(text, kind="finding", **fields).id
"""
CLOCKS = pytest.mark.parametrize("clock", ["None", "lambda: datetime(2031, 5, 1, tzinfo=UTC)"], ids=["now", "fixed"])


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "memory")


def add(memory: Memory, text: str = "an owl", session: str = "s") -> None:
    memory.at(workspace=session).remember(text, kind="finding")


def script(files: Files, rest: str, clock: str = "None") -> subprocess.Popen[str]:
    code = _BEGIN.format(url=f"ledger:{files.root}", clock=clock) + rest
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run(files: Files, rest: str, clock: str = "None", code: int = 0) -> None:
    with script(files, rest, clock) as process:
        process.communicate(timeout=120)
        assert process.returncode == code


def size(files: Files, name: str, session: str) -> int:
    path = files.session(session) / name
    return path.stat().st_size if path.exists() else 0


def problems(files: Files, session: str = "s") -> list[str]:
    """What the derived files of a session do not say as the log does. They are read as any other program would."""
    gone = {stone["id"] for stone in files.log(session, "tombstones.jsonl")}
    stored = {line["id"]: line for line in files.log(session) if line["id"] not in gone}
    sizes = {name: size(files, name, session) for name in LOG}
    counted = sum(size(files, name, session) for name in (*LOG, "index.json") if name != "vectors.jsonl")
    tags: dict[str, list[str]] = {}
    for ident, line in stored.items():
        for tag in line["tags"]:
            tags.setdefault(tag, []).append(ident)
    try:
        index = files.json("sessions", session, "index.json")
        metadata = files.json("sessions", session, "metadata.json")
        part = files.json("indices", "global_index.json")["sessions"][session]
        topics = files.json("indices", "topic_index.json")["topics"]
    except (FileNotFoundError, KeyError, json.JSONDecodeError) as error:
        return [repr(error)]
    body = (files.session(session) / "index.json").read_bytes().rpartition(b',"crc32":')[0]
    expected: dict[str, tuple[Any, Any]] = {
        "entries of the index": (list(index["entries"]), list(stored)),
        "tags of the index": (index["tags"], tags),
        "bytes of the index": ({name: part["bytes"] for name, part in index["covers"].items()}, sizes),
        "checksum of the index": (index["crc32"], zlib.crc32(body)),
        "entries of the metadata": (metadata["total_entries"], len(stored)),
        "statistics": (metadata["statistics"]["findings"], len(stored)),
        "size": (metadata["total_size_bytes"], counted),
        "bytes of the metadata": (metadata["covers"], sizes),
        "decay": (metadata["last_decay_update"], index["last_updated"]),
        "entries of the global index": (part["entries"], len(stored)),
        "size in the global index": (part["size_bytes"], counted),
        "topics": (
            {tag: by[session] for tag, by in topics.items() if session in by},
            {tag: len(ids) for tag, ids in tags.items()},
        ),
    }
    return [f"{name}: {told} != {true}" for name, (told, true) in expected.items() if told != true]


@pytest.mark.clause("LED-01", "LED-04", "LED-26", "LED-30")
@CLOCKS
def test_a_living_process_writes_them_by_itself(files: Files, clock: str) -> None:
    rest = """
for line in sys.stdin:
    add("s", line, tags=["birds", "owl"])
    first = add("s", "gone")
    memory.sessions.delete("s", first)
    memory.sessions.query("s", {"text": "owl"})
    print("stored", flush=True)
"""
    with script(files, rest, clock) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(f"an owl {number}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "stored\n"
            assert eventually(lambda: not problems(files)), problems(files)
            assert len(files.json("sessions", "s", "index.json")["entries"]) == number + 1
        process.kill()


@pytest.mark.clause("LED-04", "LED-26", "LED-30")
@CLOCKS
@pytest.mark.parametrize("end", ["", "memory.close()", "memory.sessions.close('s')", "sys.exit(0)"])
def test_they_are_true_after_close_and_after_a_normal_exit(files: Files, clock: str, end: str) -> None:
    files.configure(performance={"batch_write_interval_ms": NEVER})
    run(files, f"add('s', 'an owl', tags=['birds'])\nadd('s', 'a heron')\n{end}", clock)
    assert problems(files) == []
    run(files, f"add('s', 'a wren')\nadd('other', 'a wren', tags=['birds'])\n{end}", clock)
    assert problems(files) == []
    assert problems(files, "other") == [] or end == "memory.sessions.close('s')"


@pytest.mark.clause("LED-04", "LED-26", "LED-30")
@CLOCKS
@pytest.mark.parametrize("by", ["reading", "writing", "another session"])
def test_the_next_process_repairs_what_a_killed_one_left(files: Files, clock: str, by: str) -> None:
    files.configure(performance={"batch_write_interval_ms": NEVER})
    run(files, "add('s', 'an owl', tags=['birds'])", clock)
    kill = "os.kill(os.getpid(), signal.SIGKILL)"
    run(files, f"add('s', 'a heron', tags=['waders'])\n{kill}", clock, code=-9)
    assert problems(files)
    use = {
        "reading": "assert memory.sessions.load('s').total_entries == 2",
        "writing": "add('s', 'a wren')",
        "another session": "add('other', 'a wren')",
    }
    run(files, use[by], clock)
    assert problems(files) == []


@pytest.mark.clause("LED-30")
def test_a_killed_process_that_began_a_session_leaves_one_that_is_repaired(files: Files) -> None:
    files.configure(performance={"batch_write_interval_ms": NEVER})
    for number in range(3):
        run(files, f"add('s{number}', 'a heron')\nos.kill(os.getpid(), signal.SIGKILL)", code=-9)
    with files.open() as memory:
        add(memory, session="t")
    assert [problems(files, name) for name in ("s0", "s1", "s2", "t")] == [[]] * 4


COUNT = 20 if LONG else 8
"""Processes that write at once."""


@pytest.mark.clause("LED-04", "LED-26", "LED-30")
@CLOCKS
def test_many_processes_that_each_add_one_entry_leave_them_true(files: Files, clock: str) -> None:
    sessions = ["s", "t"]
    each = [script(files, f"add({sessions[n % 2]!r}, 'owl {n}', tags=['n{n}'])", clock) for n in range(COUNT)]
    for process in each:
        with process:
            process.communicate(timeout=300)
            assert process.returncode == 0
    for session in sessions:
        assert problems(files, session) == []
        assert files.json("sessions", session, "metadata.json")["total_entries"] == COUNT // 2


@pytest.mark.clause("LED-03", "LED-30")
def test_what_the_interface_tells_never_waits_for_the_files(files: Files, clock: Clock) -> None:
    files.configure(performance={"batch_write_interval_ms": NEVER})
    with files.open(clock) as memory, files.open(clock) as other:
        for number in range(1, 6):
            add(memory, str(number))
            for each in (memory, other):
                metadata = each.sessions.load("s")
                assert (metadata.total_entries, metadata.statistics["findings"]) == (number, number)
                assert metadata.total_size_bytes == size(files, "memory.jsonl", "s")
        assert files.json("sessions", "s", "metadata.json")["total_entries"] == 1
    assert problems(files) == []


@pytest.mark.clause("LED-30")
def test_files_that_lag_are_not_written_inside_each_append(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.stores.files import files as writing

    files.configure(performance={"batch_write_interval_ms": NEVER})
    with files.open() as memory:
        memory.sessions.create("u", session_id="s")
        replaced: list[str] = []
        real = writing.replace
        monkeypatch.setattr(
            writing, "replace", lambda path, *args, **kwargs: (replaced.append(path), real(path, *args, **kwargs))
        )
        for number in range(10):
            add(memory, str(number))
        assert replaced == []
        timer.write_all()
        assert [Path(path).name for path in replaced] == [
            "index.json",
            "metadata.json",
            "global_index.json",
            "topic_index.json",
        ]


@pytest.mark.clause("LED-30")
def test_an_index_that_a_person_spoilt_or_removed_is_made_again_by_whoever_opens_the_session(files: Files) -> None:
    with files.open() as memory:
        add(memory)
    for spoil in (lambda path: path.unlink(), lambda path: path.write_text("nonsense")):
        spoil(files.session() / "index.json")
        with files.open() as memory:
            assert memory.sessions.load("s").total_entries == 1
        assert problems(files) == []


@pytest.mark.clause("LED-22", "LED-30")
def test_a_session_of_an_older_schema_is_indexed_with_the_first_write_and_not_by_reading(files: Files) -> None:
    files.write(SAMPLE)
    with files.open() as memory:
        assert memory.sessions.load("s").migration.status == "pending"
    assert (files.session() / "memory.jsonl").read_text() == SAMPLE
    assert not (files.session() / "index.json").exists()
    with files.open() as memory:
        add(memory)
    assert len(files.json("sessions", "s", "index.json")["entries"]) == 3


@pytest.mark.clause("LED-30")
def test_a_session_that_was_deleted_meanwhile_does_not_come_back(files: Files) -> None:
    with files.open() as memory:
        add(memory)
        with files.open() as other:
            other.sessions.delete_session("s")
        timer.write_all()
        assert not files.session().exists()
    assert not files.session().exists()
    assert files.json("indices", "global_index.json")["sessions"] == {}


def test_memories_that_are_only_read_leave_the_files_as_they_are(files: Files) -> None:
    with files.open() as memory:
        add(memory)
    before = {path: path.stat().st_mtime_ns for path in files.root.rglob("*.json")}
    with Memory(f"ledger:{files.root}", preset="ledger") as memory:
        assert memory.sessions.load("s").total_entries == 1
    assert {path: path.stat().st_mtime_ns for path in files.root.rglob("*.json")} == before
