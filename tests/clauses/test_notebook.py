"""The notebook: one file that a person, an agent and other programs read and write, as the Aegis document has it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import Clock, Script
from support.notebook_files import SAMPLE, Notes, parse

from recollect import InputError, Memory, NotFoundError, SecretError, tools


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / ".aegis" / "memory")


@pytest.fixture
def memory(notes: Notes, clock: Clock) -> Iterator[Memory]:
    with notes.open(clock) as memory:
        yield memory


def texts(records: Any) -> list[str]:
    return [record.content for record in records]


@pytest.mark.clause("AEG-01")
def test_the_documents_memories_are_written_as_the_document_writes_them(notes: Notes, memory: Memory) -> None:
    for line in map(json.loads, SAMPLE.splitlines()):
        scope = {} if line["scope"] == "workspace" else {"scope": line["scope"]}
        stored = memory.remember(line["text"], tags=line["tags"], metadata=scope, created_at=line["ts"])
        assert stored.id == line["id"]
    assert notes.file.read_text() == SAMPLE


@pytest.mark.clause("AEG-01")
def test_a_file_written_by_hand_is_read_and_continued(notes: Notes, clock: Clock) -> None:
    spaced = '{ "ts": "2026-02-27T08:00:00Z", "text": "by hand",  "id": "m-9" }\r\n'
    notes.write(SAMPLE + spaced)
    with notes.open(clock) as memory:
        found = {record.id: record for record in memory.list()}
        assert [*found] == ["m-9", "m-3", "m-2", "m-1"]
        assert found["m-3"].content == "Deploy target is AWS us-east-1"
        assert found["m-3"].tags == ("infra", "deploy")
        assert found["m-3"].created_at == datetime(2026, 2, 26, 12, 10, tzinfo=UTC)
        assert [found[ident].metadata for ident in ("m-1", "m-2", "m-9")] == [{"scope": "user"}, {}, {}]
        assert memory.remember("the next").id == "m-10"
    assert notes.file.read_bytes().startswith((SAMPLE + spaced).encode())


@pytest.mark.clause("AEG-01")
@pytest.mark.parametrize(
    "line",
    [
        '{"id":"m-4","text":"","ts":"2026-02-26T12:00:00Z"}',
        '{"id":"m-4","text":"when?"}',
        '{"id":"m-4","text":"whose?","scope":"galaxy","ts":"2026-02-26T12:00:00Z"}',
        "just a remark",
    ],
)
def test_a_line_that_is_no_note_is_skipped_and_named(notes: Notes, clock: Clock, line: str) -> None:
    notes.write(line + "\n" + SAMPLE)
    with notes.open(clock) as memory:
        assert [record.id for record in memory.list()] == ["m-3", "m-2", "m-1"]
        (finding,) = [one for one in memory.doctor().findings if one.problem == "corrupt"]
        assert finding.examples[0].startswith("memories.jsonl, line 1: ")


@pytest.mark.clause("AEG-01")
def test_what_somebody_writes_into_the_open_file_is_seen_at_once(notes: Notes, memory: Memory) -> None:
    memory.remember("ours")
    with notes.file.open("a") as file:
        file.write('{"id":"m-7","scope":"session","text":"theirs","tags":[],"ts":"2026-03-01T12:00:01Z"}\n')
    assert texts(memory.list()) == ["theirs", "ours"]
    assert memory.remember("ours again").id == "m-8"


@pytest.mark.clause("AEG-01")
@pytest.mark.parametrize("scope", ["user", "workspace", "session", None])
def test_ten_lines_of_code_can_read_the_file(notes: Notes, memory: Memory, scope: str | None) -> None:
    memory.remember('a "quoted"\nline 🦉', tags=list("abcde"), metadata={"scope": scope} if scope else None)
    memory.remember("x" * 500)
    memory.remember("y", importance=0.9, kind="preference", role="user", source="chat", metadata={"more": [1]})
    first, second, third = parse(notes.file.read_text())
    assert (first["text"], first["tags"], first["scope"]) == (
        'a "quoted"\nline 🦉',
        list("abcde"),
        scope or "workspace",
    )
    assert second["text"] == "x" * 500
    assert third["text"] == "y"
    with notes.open() as again:
        found = again.get("m-3")
        assert (found.importance, found.kind, found.role, found.source) == (0.9, "preference", "user", "chat")
        assert found.metadata == {"more": [1]}


@pytest.mark.clause("AEG-01")
@pytest.mark.parametrize(
    ("text", "tags", "message"),
    [
        ("", [], "^content: must not be empty"),
        ("x" * 501, [], "^content: 501 characters is over the limit of 500"),
        ("fine", list("abcdef"), "^tags: 6 tags are over the limit of 5"),
    ],
)
def test_text_has_1_to_500_characters_and_up_to_5_tags(
    notes: Notes, memory: Memory, text: str, tags: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        memory.remember(text, tags=tags)
    assert not notes.file.exists()


@pytest.mark.clause("AEG-01")
def test_the_counter_never_goes_back(notes: Notes, clock: Clock) -> None:
    with notes.open(clock) as memory:
        assert [memory.remember(f"note {n}").id for n in range(3)] == ["m-1", "m-2", "m-3"]
        memory.forget("m-3")
        assert memory.remember("not m-3 again").id == "m-4"
        memory.forget("m-4")
    with notes.open(clock) as memory:
        assert memory.remember("after reopening").id == "m-5"
        memory.forget(["m-1", "m-2", "m-5"], erase=True)
        assert notes.file.read_text() == ""
    with notes.open(clock) as memory:
        memory.compact()
        assert memory.remember("after forgetting all").id == "m-6"
        with pytest.raises(InputError):
            memory.remember("")
        assert memory.remember("after a refusal").id == "m-7"


@pytest.mark.clause("AEG-01")
def test_processes_never_give_one_number_twice(notes: Notes, clock: Clock, start: Callable[..., Script]) -> None:
    script = """
import sys
from recollect import Memory
with Memory(sys.argv[1], preset="aegis") as memory:
    for n in range(20):
        print(memory.remember(f"{sys.argv[2]} {n}").id)
"""
    started = [start(script, f"notebook:{notes.folder}", name) for name in "abc"]
    ids = [ident for one in started for ident in one.finish().split()]
    assert sorted(ids, key=lambda ident: int(ident[2:])) == [f"m-{n}" for n in range(1, 61)]
    assert [memory["id"] for memory in parse(notes.file.read_text())] == [f"m-{n}" for n in range(1, 61)]


@pytest.mark.clause("AEG-03")
def test_a_secret_is_refused_and_written_nowhere(notes: Notes, memory: Memory) -> None:
    memory.remember("fine")
    before = notes.file.read_bytes()
    for secret in ("sk-" + "Quagga123", "my password" + ": Quagga", "token" + ": Quagga", "Bearer" + " Quagga"):
        with pytest.raises(SecretError, match="text appears to contain a secret — not stored"):
            memory.remember(secret)
        with pytest.raises(SecretError):
            memory.remember_many(["fine too", secret])
    memory.close()
    assert notes.file.read_bytes() == before
    assert not [path for path in notes.folder.rglob("*") if path.is_file() and b"Quagga" in path.read_bytes()]
    with notes.open() as memory:
        assert memory.remember("the next").id == "m-2"


@pytest.mark.clause("AEG-04")
def test_over_500_the_oldest_are_pruned(notes: Notes, clock: Clock) -> None:
    with notes.open(clock) as memory:
        memory.remember_many(
            [{"content": f"note {n}", "created_at": clock.now + timedelta(seconds=n)} for n in range(500)]
        )
        assert len(memory.list(limit=1000)) == 500
        clock.forward(hours=1)
        for n in range(10):
            assert memory.remember(f"late {n}").id == f"m-{501 + n}"
    kept = parse(notes.file.read_text())
    assert len(kept) == 500
    assert [kept[0]["id"], kept[-1]["id"]] == ["m-11", "m-510"]
    with notes.open(clock) as memory:
        assert len(memory.list(state=None, limit=1000)) == 500
        with pytest.raises(NotFoundError):
            memory.get("m-10")
        memory.forget(memory.list(limit=1)[0].id)
        assert memory.remember("after pruning").id == "m-511"


@pytest.mark.clause("AEG-04", "AEG-06")
def test_notes_of_one_second_are_pruned_and_found_in_the_order_of_storing(notes: Notes, clock: Clock) -> None:
    with notes.open(clock) as memory:
        memory.remember_many([f"note {n}" for n in range(1, 501)])
        for number in range(501, 521):
            memory.remember(f"note {number}")
            assert parse(notes.file.read_text())[0]["id"] == f"m-{number - 499}"
        newest = [f"m-{n}" for n in range(520, 500, -1)]
        assert [note.id for note in memory.list(limit=20)] == newest
        found = tools.call(memory, "memory_search", {"query": "note"})
        assert [note["id"] for note in found["memories"]] == newest
        hits = memory.query({"text": "note", "sort_by": "newest", "limit": 20})
        assert [hit.memory.id for hit in hits] == newest
    assert [note["id"] for note in parse(notes.file.read_text())] == [f"m-{n}" for n in range(21, 521)]


RECORDER = """
import fcntl, json, os, sys
told = []
def name(fd):
    return os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))
def recording(module, call, say):
    really = getattr(module, call)
    def recorded(*arguments, **options):
        result = really(*arguments, **options)
        told.append([call, *say(result, *arguments)])
        return result
    setattr(module, call, recorded)
from recollect import Memory
with Memory(sys.argv[1], preset="aegis") as memory:
    memory.remember("so that the files are there")
with Memory(sys.argv[1], preset="aegis") as memory:
    recording(os, "open", lambda fd, path, flags, *mode: (os.path.basename(path), bool(flags & os.O_APPEND)))
    recording(os, "write", lambda size, fd, data: (name(fd), bytes(data).decode()))
    recording(os, "fsync", lambda result, fd: (name(fd),))
    recording(os, "rename", lambda result, old, new: (os.path.basename(new),))
    recording(fcntl, "flock", lambda result, fd, how: (how & ~fcntl.LOCK_NB,))
    if sys.argv[2] == "store":
        memory.remember("a note of one line\\nor two", tags=["t"])
    else:
        memory.forget("m-1")
    print(json.dumps(told))
"""


@pytest.mark.clause("AEG-05")
def test_a_note_is_one_appended_line_flushed_before_the_lock_is_given_back(
    notes: Notes, run: Callable[..., str]
) -> None:
    told = json.loads(run(RECORDER, f"notebook:{notes.folder}", "store"))
    exclusive, unlock = 2, 8
    held = told[told.index(["flock", exclusive]) : told.index(["flock", unlock])]
    assert ["open", "memories.jsonl", True] in told
    written = [one for one in told if one[0] == "write" and one[1] == "memories.jsonl"]
    assert len(written) == 1
    assert written[0] in held
    assert written[0][2].endswith("\n")
    assert written[0][2].count("\n") == 1
    assert json.loads(written[0][2])["text"] == "a note of one line\nor two"
    assert ["fsync", "memories.jsonl"] in held[held.index(written[0]) :]
    assert [one for one in told if one[0] == "rename"] == []


@pytest.mark.clause("AEG-07")
def test_forgetting_writes_a_new_file_and_renames_it_over_the_old(notes: Notes, run: Callable[..., str]) -> None:
    told = json.loads(run(RECORDER, f"notebook:{notes.folder}", "forget"))
    calls = [(one[0], one[1]) for one in told]
    renamed = calls.index(("rename", "memories.jsonl"))
    temporary = [
        one for one in calls[:renamed] if one[0] == "fsync" and re.fullmatch(r"memories\.jsonl\..*tmp", str(one[1]))
    ]
    assert len(temporary) == 1
    assert ("write", "memories.jsonl") not in calls
    assert notes.file.read_bytes() == b""
    assert not list(notes.folder.rglob("*.tmp"))


@pytest.mark.clause("AEG-07")
def test_forgetting_one_leaves_the_others_byte_for_byte(notes: Notes, clock: Clock) -> None:
    notes.write(SAMPLE)
    with notes.open(clock) as memory:
        assert memory.forget("m-2").count == 1
        lines = SAMPLE.splitlines(keepends=True)
        assert notes.file.read_text() == lines[0] + lines[2]
        before = notes.file.read_bytes()
        for unknown in ("m-2", "m-99"):
            with pytest.raises(NotFoundError, match=f"there is no memory {unknown}"):
                memory.forget(unknown)
        assert notes.file.read_bytes() == before


@pytest.mark.clause("AEG-06")
def test_notes_are_found_by_a_part_of_a_word_in_any_case_and_by_tag(notes: Notes, clock: Clock) -> None:
    notes.write(SAMPLE)
    with notes.open(clock) as memory:
        ids = lambda **wish: [hit.memory.id for hit in memory.query({"sort_by": "newest", **wish})]  # noqa: E731
        assert ids(text="*GRESQL*") == ["m-2"]
        assert ids(text="*java*") == ["m-1"]
        assert ids(tags=["infra"]) == ["m-3", "m-2"]
        assert ids(text="*e*", tags=["deploy"]) == ["m-3"]
        assert ids(text="*java*", tags=["infra"]) == []
        assert ids() == ["m-3", "m-2", "m-1"]
        assert ids(limit=2) == ["m-3", "m-2"]
        assert [record.id for record in memory.list(tags=["infra"], limit=20)] == ["m-3", "m-2"]


@pytest.mark.clause("AEG-12")
def test_a_line_is_never_changed_in_place(notes: Notes, memory: Memory) -> None:
    memory.remember("Alice lives in Lisbon")
    before = notes.file.read_bytes()
    memory.recall("Alice")
    memory.archive("m-1")
    memory.restore("m-1")
    assert memory.revise("m-1", content="Alice lives in Porto").id == "m-2"
    memory.close()
    assert notes.file.read_bytes().startswith(before)
    assert [line["id"] for line in parse(notes.file.read_text())] == ["m-1", "m-2"]


@pytest.mark.clause("AEG-12")
@pytest.mark.parametrize("torn", ['{"id":"m-4","sco', '{"id":"m-4","scope":"user","text":"unfin', "{", '{"id"'])
def test_a_torn_last_line_costs_nothing_else(notes: Notes, clock: Clock, torn: str) -> None:
    notes.write(SAMPLE + torn)
    with notes.open(clock) as memory:
        assert [record.id for record in memory.list()] == ["m-3", "m-2", "m-1"]
        stored = memory.remember("the next")
        assert [record.id for record in memory.list()] == [stored.id, "m-3", "m-2", "m-1"]
    with notes.open(clock) as memory:
        assert [record.id for record in memory.list()] == [stored.id, "m-3", "m-2", "m-1"]
        memory.forget("m-2")
    with notes.open(clock) as memory:
        assert texts(memory.list()) == [
            "the next",
            "Deploy target is AWS us-east-1",
            "User prefers Python over JavaScript",
        ]
    assert [line["id"] for line in parse(notes.file.read_text())] == ["m-1", "m-3", stored.id]


@pytest.mark.clause("AEG-14")
def test_it_needs_no_network_no_model_and_no_server(notes: Notes, run: Callable[..., str]) -> None:
    script = """
import socket, sys
def refuse(*arguments, **options):
    raise AssertionError("the network was used")
socket.socket = socket.create_connection = socket.getaddrinfo = refuse
from recollect import Memory
with Memory(sys.argv[1], preset="aegis") as memory:
    memory.remember("the database is PostgreSQL")
    print(memory.recall("which database?")[0].memory.content)
    print([name for name in ("onnxruntime", "httpx", "torch", "recollect.models.embedders") if name in sys.modules])
"""
    assert run(script, f"notebook:{notes.folder}").splitlines() == ["the database is PostgreSQL", "[]"]


@pytest.mark.clause("AEG-14")
def test_it_survives_a_restart_and_a_copy_of_the_folder(notes: Notes, tmp_path: Path, run: Callable[..., str]) -> None:
    run("import sys; from recollect import Memory; Memory(sys.argv[1], preset='aegis').remember('kept', tags=['t'])",
        f"notebook:{notes.folder}")  # fmt: skip
    shutil.copytree(notes.folder, tmp_path / "copy")
    for folder in (notes.folder, tmp_path / "copy"):
        with Notes(folder).open() as memory:
            assert [(record.id, record.content, record.tags) for record in memory.list()] == [("m-1", "kept", ("t",))]
            assert memory.doctor().ok
            assert memory.remember("more").id == "m-2"
    (tmp_path / "bare").mkdir()
    shutil.copy(notes.file, tmp_path / "bare")
    with Memory(f"notebook:{tmp_path / 'bare' / 'memories.jsonl'}", preset="aegis") as memory:
        assert texts(memory.list()) == ["more", "kept"]


@pytest.mark.clause("AEG-12")
@pytest.mark.parametrize("content", [{"a": []}, [""], {"a": {"b": " "}}])
def test_a_note_without_words_is_kept_too(tmp_path: Path, content: Any) -> None:
    with Memory(f"notebook:{tmp_path}/notes.jsonl", preset="aegis") as memory:
        kept = memory.remember(content)

    with Memory(f"notebook:{tmp_path}/notes.jsonl", preset="aegis") as memory:
        assert memory.get(kept.id).content == content


@pytest.mark.clause("AEG-12", "AEG-03")
@pytest.mark.parametrize("how", ["cut", "deleted"])
def test_entries_that_are_cut_from_the_audit_log_are_missed(notes: Notes, how: str) -> None:
    with notes.open() as memory:
        for n in range(4):
            memory.remember(f"note {n}")
        assert not any(one.breaks for one in memory.audit.verify())
    (log,) = notes.folder.rglob("audit.jsonl")
    if how == "cut":
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-2]))
    else:
        log.unlink()
    with notes.open() as memory:
        assert any(one.breaks for one in memory.audit.verify())
        memory.remember("another")
        assert any(one.breaks for one in memory.audit.verify())


@pytest.mark.clause("AEG-01")
@pytest.mark.parametrize("living", [False, True])
def test_a_number_is_not_given_again_after_its_line_was_removed_by_hand(tmp_path: Path, living: bool) -> None:
    file = tmp_path / "memories.jsonl"
    with Memory(f"notebook:{file}", preset="aegis") as memory:
        assert [memory.remember(f"heron {n}").id for n in range(3)] == ["m-1", "m-2", "m-3"]
        if living:
            file.write_text("".join(file.read_text().splitlines(keepends=True)[:2]))
            assert memory.remember("an owl").id == "m-4"
    if not living:
        file.write_text("".join(file.read_text().splitlines(keepends=True)[:2]))
        with Memory(f"notebook:{file}", preset="aegis") as memory:
            assert memory.remember("an owl").id == "m-4"
            assert [record.id for record in memory.list(newest_first=False)] == ["m-1", "m-2", "m-4"]
