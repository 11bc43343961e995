"""The ledger on disk: files, lines, snapshots and versions, as any other program finds them."""

from __future__ import annotations

import json
import re
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import eventually
from support.ledger_files import SAMPLE, Files, checksum, entry

from recollect import ConflictError, InputError

ENTRY_FIELDS = "id session_id timestamp type content importance decay_factor tags references checksum schema_version"
TYPES = ("conversation", "decision", "finding", "preference")
HOSTILE = 'a "quoted" \\ line\nand\r\nanother\ttab \x00\x1f\x7f é 日本語 🦉 \u2028\u2029 </script> {"id":"mem_fake"}\n'


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "memory")


def filled(files: Files) -> list[str]:
    """A session of eight entries, two of them deleted, of all types."""
    with files.open() as memory:
        memory.sessions.create("user123", session_id="s")
        many = [entry(f"entry {n}", TYPES[n % 4], tags=["all", f"only.{n}"]) for n in range(8)]
        ids = memory.sessions.add_many("s", many)
        memory.sessions.delete("s", ids[0])
        memory.sessions.delete("s", ids[5], reason="wrong")
    return ids


def counted_bytes(files: Files) -> int:
    """What section 5.1 counts, and the changes that are kept beside the document's files."""
    names = ("memory.jsonl", "index.json", "tombstones.jsonl", "changes.jsonl")
    return sum(path.stat().st_size for name in names if (path := files.session() / name).exists())


@pytest.mark.clause("LED-01")
def test_the_folder_is_laid_out_as_in_the_document(files: Files) -> None:
    filled(files)
    with files.open() as memory:
        memory.sessions.rebuild_index("s")
    found = {str(path.relative_to(files.root)) for path in files.root.rglob("*") if path.is_file()}
    names = "metadata.json memory.jsonl index.json tombstones.jsonl lock".split()
    document = {"config.json", "indices/global_index.json", "indices/topic_index.json"}
    document |= {f"sessions/s/{name}" for name in names}
    assert document <= found
    # What the document has no word for is in the session's folder too.
    more = {f"sessions/s/{name}.jsonl" for name in ("audit", "undo", "changes", "vectors", "shelves")}
    assert found - document <= {*more, "sessions/s/metadata.bak", "sessions/s/index.db", "indices/lock"}
    assert all(json.loads(line) for path in files.session().glob("*.jsonl") for line in path.read_text().splitlines())


@pytest.mark.clause("LED-01")
def test_a_session_is_named_after_the_day_and_the_person(files: Files) -> None:
    with files.open(lambda: datetime(2026, 1, 10, 14, tzinfo=UTC)) as memory:
        names = [memory.sessions.create("user123").session_id for _ in range(3)]
        assert names == ["sess_20260110_user123", "sess_20260110_user123_2", "sess_20260110_user123_3"]
        assert sorted(one.name for one in (files.root / "sessions").iterdir()) == names
        with pytest.raises(ConflictError, match="there is a session sess_20260110_user123 already"):
            memory.sessions.create("user123", session_id=names[0])


@pytest.mark.clause("LED-02")
def test_a_line_has_the_documents_fields_and_no_others(files: Files) -> None:
    with files.open() as memory:
        memory.sessions.create("user123", session_id="s")
        first = memory.sessions.add("s", entry({"role": "user", "message": "Hi", "metadata": {}}, "conversation"))
        memory.sessions.add(
            "s",
            entry(
                {"decision": "code flow", "alternatives": ["Implicit flow", "PKCE"]},
                "decision",
                importance=0.85,
                tags=["authentication", "security"],
                references=[first],
                timestamp="2026-01-10T14:23:45.678Z",
            ),
        )
    one, two = files.log()
    assert set(one) == set(two) == set(ENTRY_FIELDS.split())
    assert re.fullmatch(r"[A-Za-z0-9_]{1,32}", two["id"])
    assert datetime.fromisoformat(two.pop("timestamp")) == datetime(2026, 1, 10, 14, 23, 45, 678_000, tzinfo=UTC)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", two.pop("checksum"))
    assert two == {
        "id": two["id"],
        "session_id": "s",
        "type": "decision",
        "content": {"decision": "code flow", "alternatives": ["Implicit flow", "PKCE"]},
        "importance": 0.85,
        "decay_factor": 1.0,
        "tags": ["authentication", "security"],
        "references": [first],
        "schema_version": 1,
    }
    assert (one["id"], one["content"]) == (first, {"role": "user", "message": "Hi", "metadata": {}})


@pytest.mark.clause("LED-02")
@pytest.mark.parametrize("type", ["fact", "", None, "Decision"])
def test_a_type_is_one_of_four(files: Files, type: Any) -> None:
    with files.open() as memory:
        memory.sessions.create("u", session_id="s")
        with pytest.raises(InputError, match=r"^type: must be one of conversation, decision, finding, preference"):
            memory.sessions.add("s", entry(type=type))
        with pytest.raises(InputError, match=r"^text: is not part of an entry; known: type, content, importance"):
            memory.sessions.add("s", {"type": "finding", "text": "an owl"})
    assert files.log() == []


@pytest.mark.clause("LED-03")
def test_metadata_has_the_documents_fields(files: Files) -> None:
    with files.open() as memory:
        settings: dict[str, Any] = {
            "decay": {"enabled": True, "half_life_hours": 336, "min_decay_factor": 0.2},
            "preferences": {"language": "pt", "verbosity": "low", "custom": {"tone": "dry"}},
        }
        memory.sessions.create("user123", session_id="s", **settings)
    told = files.json("sessions", "s", "metadata.json")
    assert {"session_id", "user_id", "created_at", "last_accessed", "total_entries", "total_size_bytes"} < set(told)
    assert (told["session_id"], told["user_id"], told["version"]) == ("s", "user123", 1)
    assert told["decay_config"] == settings["decay"]
    assert told["preferences"] == settings["preferences"]
    assert told["statistics"] == {"conversations": 0, "decisions": 0, "findings": 0, "preferences": 0}


@pytest.mark.clause("LED-03")
def test_statistics_are_always_those_of_what_is_stored(files: Files) -> None:
    def check(memory: Any) -> None:
        gone = {stone["id"] for stone in files.log(file="tombstones.jsonl")}
        stored = [one["type"] for one in files.log() if one["id"] not in gone]
        told = memory.sessions.load("s")
        assert told.total_entries == len(stored)
        assert told.statistics == {f"{type}s": stored.count(type) for type in TYPES}
        assert memory.sessions.stats("s").entries == len(stored)
        assert told.total_size_bytes == counted_bytes(files)

    files.configure(performance={"batch_write_interval_ms": 3_600_000})
    ids = filled(files)
    with files.open() as memory:
        check(memory)
        memory.sessions.add("s", entry())
        check(memory)
        memory.sessions.delete("s", ids[1])
        check(memory)
        memory.at(workspace="s").undo()
        memory.sessions.add_many("s", [entry(f"{n}", "preference") for n in range(5)])
        assert memory.sessions.delete_by_topic("s", "all") == 6
        check(memory)
        memory.sessions.compact("s")
        check(memory)
        memory.sessions.add("s", entry("after compaction", "decision"))
    with files.open() as memory:
        check(memory)
        told = memory.sessions.load("s")
    kept = files.json("sessions", "s", "metadata.json")
    assert (kept["total_entries"], kept["statistics"]) == (7, told.statistics)


@pytest.mark.clause("LED-03", "LED-26")
def test_metadata_is_true_soon_after_every_write_while_the_session_is_open(files: Files) -> None:
    def told(**expected: int) -> bool:
        metadata = files.json("sessions", "s", "metadata.json")
        counts = {name: metadata["statistics"][name] for name in expected}
        size = metadata["total_size_bytes"] == counted_bytes(files)
        return counts == expected and metadata["total_entries"] == sum(metadata["statistics"].values()) and size

    files.configure(performance={"batch_write_interval_ms": 1})
    with files.open() as memory:
        memory.sessions.create("u", session_id="s")
        memory.sessions.add_many("s", [entry(f"entry {n}") for n in range(200)])
        ids = [memory.sessions.add("s", entry("the last", "decision"))]
        assert eventually(lambda: told(findings=200, decisions=1, preferences=0))
        with files.open() as other:  # of another process, as far as files can tell
            other.sessions.delete("s", ids[0])
            assert eventually(lambda: told(findings=200, decisions=0, preferences=0))
        memory.sessions.add("s", entry("one more", "preference"))
        assert eventually(lambda: told(findings=200, decisions=0, preferences=1))
        memory.sessions.compact("s")
        assert eventually(lambda: told(findings=200, decisions=0, preferences=1))
        shared = files.json("indices", "global_index.json")["sessions"]["s"]
        assert (shared["entries"], shared["size_bytes"]) == (201, counted_bytes(files))
        memory.sessions.add("s", entry("and another"))
    shared = files.json("indices", "global_index.json")["sessions"]["s"]
    assert (shared["entries"], shared["size_bytes"]) == (202, counted_bytes(files))
    assert told(findings=201, decisions=0, preferences=1)


@pytest.mark.clause("LED-26")
def test_metadata_shows_the_decay_in_force(files: Files) -> None:
    with files.open() as memory:
        told = memory.sessions.create("u", session_id="s")
        assert (told.decay_config.half_life_hours, told.decay_config.min_decay_factor) == (168, 0.1)
        memory.sessions.create("u", session_id="own", decay={"half_life_hours": 168})
        ids = memory.sessions.add("s", entry("one", "decision")), memory.sessions.add("own", entry("two", "decision"))
    kept = files.json("sessions", "s", "metadata.json")
    assert kept["decay_config"] == {"enabled": True, "half_life_hours": 168, "min_decay_factor": 0.1}

    def factors() -> list[float]:
        later = datetime.now(UTC) + timedelta(hours=168)
        with files.open(lambda: later) as memory:
            lines = [memory.sessions.export(name).splitlines() for name in ("s", "own")]
        entries = [json.loads(line) for several in lines for line in several]
        assert tuple(one["id"] for one in entries) == ids
        return [round(one["decay_factor"], 2) for one in entries]

    # What is shown is not what was set: a decision keeps its own rate unless the session has another.
    assert factors() == [0.85, 0.5]
    kept["decay_config"]["half_life_hours"] = 84
    (files.session() / "metadata.json").write_text(json.dumps(kept))
    assert factors() == [0.25, 0.5]
    files.configure(decay={"enabled": False})
    with files.open() as memory:
        memory.sessions.create("u", session_id="new")
        memory.sessions.add("new", entry())
        assert not memory.sessions.load("new").decay_config.enabled
    files.configure()
    with files.open() as memory:
        assert memory.sessions.load("new").decay_config.enabled


@pytest.mark.clause("LED-26")
def test_metadata_keeps_when_it_was_decayed_compacted_and_migrated(files: Files) -> None:
    files.write(SAMPLE, "sess_001")
    now = [datetime(2026, 5, 1, tzinfo=UTC)]
    with files.open(lambda: now[0]) as memory:
        told = memory.sessions.load("sess_001")
        assert (told.migration.status, told.migration.migrated_at) == ("pending", None)
        memory.sessions.add("sess_001", entry())
        kept = files.json("sessions", "sess_001", "metadata.json")
        assert kept["migration"] == {"status": "current", "schema_version": 1, "migrated_at": "2026-05-01T00:00:00Z"}
        assert kept["last_compaction"] is None
        now[0] += timedelta(hours=1)
        memory.sessions.rebuild_index("sess_001")
        kept = files.json("sessions", "sess_001", "metadata.json")
        assert kept["last_decay_update"] == "2026-05-01T01:00:00Z"
        now[0] += timedelta(hours=1)
        memory.sessions.compact("sess_001")
        kept = files.json("sessions", "sess_001", "metadata.json")
        assert kept["last_compaction"] == kept["last_decay_update"] == "2026-05-01T02:00:00Z"
        assert kept["migration"]["migrated_at"] == "2026-05-01T00:00:00Z"


@pytest.mark.clause("LED-01", "LED-12", "LED-26")
def test_tombstones_are_there_from_the_start_and_whole(files: Files) -> None:
    with files.open() as memory:
        memory.sessions.create("u", session_id="s")
        assert (files.session() / "tombstones.jsonl").read_bytes() == b""
        memory.at(workspace="other").remember("made by writing to it", kind="finding")
        assert (files.session("other") / "tombstones.jsonl").read_bytes() == b""
        for reason in ("wrong", None):
            memory.sessions.delete("s", memory.sessions.add("s", entry()), reason=reason)
    stones = files.log(file="tombstones.jsonl")
    assert [stone["reason"] for stone in stones] == ["wrong", ""]
    assert all({"id", "timestamp", "reason"} <= set(stone) for stone in stones)


@pytest.mark.clause("LED-27")
def test_times_in_files_come_from_the_memorys_clock(files: Files) -> None:
    now = [datetime(2031, 5, 1, tzinfo=UTC)]
    with files.open(lambda: now[0]) as memory:
        memory.sessions.create("u", session_id="s")
        gone, _ = memory.sessions.add_many("s", [entry("one"), entry("two", importance=0.8)])
        now[0] += timedelta(hours=336)
        memory.sessions.delete("s", gone)
        memory.sessions.rebuild_index("s")
    assert files.json("sessions", "s", "metadata.json")["last_accessed"] == "2031-05-15T00:00:00Z"
    assert [stone["timestamp"] for stone in files.log(file="tombstones.jsonl")] == ["2031-05-15T00:00:00Z"]
    index = files.json("sessions", "s", "index.json")
    assert index["last_updated"] == "2031-05-15T00:00:00Z"
    assert [one["current_relevance"] for one in index["entries"].values()] == [0.4]
    assert files.json("indices", "global_index.json")["last_updated"] == "2031-05-15T00:00:00Z"


@pytest.mark.clause("LED-03")
def test_a_session_keeps_its_settings_when_its_metadata_are_lost(files: Files) -> None:
    with files.open() as memory:
        memory.sessions.create("user123", session_id="s", decay={"half_life_hours": 7})
        memory.sessions.add("s", entry())
    (files.session() / "metadata.json").write_bytes(b"")  # as a power cut may leave it
    with files.open() as memory:
        told = memory.sessions.load("s")
        assert (told.user_id, told.decay_config.half_life_hours, told.total_entries) == ("user123", 7, 1)


@pytest.mark.clause("LED-03")
def test_a_session_that_is_used_says_when(files: Files) -> None:
    ids = filled(files)
    before = files.json("sessions", "s", "metadata.json")
    with files.open() as memory:
        assert memory.sessions.query("s", {"text": "entry"})
    after = files.json("sessions", "s", "metadata.json")
    assert after["last_accessed"] > before["last_accessed"]
    assert after["created_at"] == before["created_at"]
    with files.open() as memory:
        found = memory.sessions.get("s", ids[1])
        assert found is not None
        assert found.access_count == 1


@pytest.mark.clause("LED-04")
def test_the_index_leads_to_every_line_and_inverts_tags_and_types(files: Files) -> None:
    now = datetime.now(UTC)
    ids = filled(files)
    with files.open() as memory:
        old = memory.sessions.add(
            "s",
            entry("naïve 日本語", "conversation", importance=0.8, timestamp=now - timedelta(hours=168), tags=["all"]),
        )
        assert memory.sessions.rebuild_index("s") == 7
    index, lines = files.json("sessions", "s", "index.json"), (files.session() / "memory.jsonl").read_bytes()
    live = [one for one in ids if one not in (ids[0], ids[5])]
    assert set(index["entries"]) == {*live, old}
    for ident, one in index["entries"].items():
        line = json.loads(lines[one["byte_offset"] :].split(b"\n")[0])
        assert line == json.loads(lines.split(b"\n")[one["line_number"] - 1])
        assert line["id"] == ident
        for field in ("type", "timestamp", "tags", "importance"):
            assert line[field] == one[field]
        fresh = one["importance"] * 1.5 if ident != old else 0.4
        assert one["current_relevance"] == pytest.approx(fresh, abs=0.001)
    assert index["tags"]["all"] == [*live, old]
    assert index["tags"]["only.3"] == [ids[3]]
    assert index["types"]["preference"] == [ids[3], ids[7]]
    assert index["version"] == 1


def _emptied(data: bytes) -> bytes:
    index = {**json.loads(data), "entries": {}, "tags": {}, "types": {}}
    return json.dumps(index, separators=(",", ":")).encode()


def _sealed(data: bytes) -> bytes:
    """With a checksum that is right, so that only what it says can be wrong."""
    body = data[: data.rindex(b',"crc32":')]
    return b'%b,"crc32":%d}' % (body, zlib.crc32(body))


DAMAGE = {
    "missing": lambda data: None,
    "empty": lambda data: b"",
    "no JSON": lambda data: b"\x00\xff not JSON",
    "cut off": lambda data: data[: len(data) // 2],
    "another shape": lambda data: b"[1, 2, 3]",
    "from the future": lambda data: _sealed(_emptied(data).replace(b'"version":1', b'"version":2', 1)),
    "a wrong offset": lambda data: re.sub(rb'"byte_offset":(\d)', rb'"byte_offset":9\1', data),
    "a wrong tag": lambda data: data.replace(b'"all"', b'"owl"'),
    "emptied": _emptied,
}


@pytest.mark.clause("LED-04")
@pytest.mark.parametrize("kind", DAMAGE)
def test_an_index_that_is_wrong_is_made_anew_and_nobody_notices(
    files: Files, recwarn: pytest.WarningsRecorder, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    filled(files)
    path = files.session() / "index.json"
    with files.open() as memory:
        memory.sessions.rebuild_index("s")
        before = memory.sessions.query("s", {"tags": ["all"], "sort_by": "oldest"})
    damaged = DAMAGE[kind](path.read_bytes())
    path.unlink()
    if damaged is not None:
        path.write_bytes(damaged)
    with files.open() as memory:
        after = memory.sessions.query("s", {"tags": ["all"], "sort_by": "oldest"})
        assert [hit.memory.content for hit in after] == [hit.memory.content for hit in before]
        assert len(after) == 6
        assert memory.sessions.stats("s").corrupt == ()
        memory.sessions.rebuild_index("s")
    assert set(files.json("sessions", "s", "index.json")["entries"]) == {hit.memory.id for hit in before}
    assert not recwarn.list
    assert not caplog.records


@pytest.mark.clause("LED-04")
def test_an_index_that_is_behind_is_completed_from_the_log(files: Files) -> None:
    filled(files)
    with files.open() as memory:
        memory.sessions.rebuild_index("s")
    stale = (files.session() / "index.json").read_bytes()
    with files.open() as memory:
        ids = memory.sessions.add_many("s", [entry(f"later {n}", tags=["late"]) for n in range(3)])
        memory.sessions.delete("s", ids[1])
        memory.sessions.rebuild_index("s")
    (files.session() / "index.json").write_bytes(stale)
    with files.open() as memory:
        assert {hit.memory.id for hit in memory.sessions.search_by_topic("s", "late")} == {ids[0], ids[2]}
        assert memory.sessions.load("s").total_entries == 8
    other = json.loads((files.session() / "memory.jsonl").read_text().splitlines()[1])
    files.write(json.dumps({**other, "content": "someone wrote it anew", "checksum": None}) + "\n")
    with files.open() as memory:
        assert [hit.memory.content for hit in memory.sessions.query("s", {})] == ["someone wrote it anew"]


@pytest.mark.clause("LED-17")
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_lines_end_as_in_unix_or_in_windows(files: Files, ending: str) -> None:
    files.write(SAMPLE.replace("\n", ending), "sess_001")
    with files.open() as memory:
        assert [hit.memory.content["message"] for hit in memory.sessions.query("sess_001", {"sort_by": "oldest"})] == [
            "Hello",
            "Hi!",
        ]
        memory.sessions.add("sess_001", entry("ours"))
        memory.sessions.rebuild_index("sess_001")
    data = (files.session("sess_001") / "memory.jsonl").read_bytes()
    for ident, one in files.json("sessions", "sess_001", "index.json")["entries"].items():
        assert json.loads(data[one["byte_offset"] :].splitlines()[0])["id"] == ident


@pytest.mark.clause("LED-17")
@pytest.mark.parametrize("content", [HOSTILE, {HOSTILE: [HOSTILE, {"deep": HOSTILE}]}], ids=["text", "JSON"])
def test_unicode_and_newlines_survive_on_one_line(files: Files, content: Any) -> None:
    with files.open() as memory:
        memory.sessions.create("u", session_id="s")
        ident = memory.sessions.add("s", entry(content))
    assert (files.session() / "memory.jsonl").read_bytes().count(b"\n") == 1
    (line,) = files.log()
    assert line["content"] == content
    with files.open() as memory:
        found = memory.sessions.get("s", ident)
        assert found is not None
        assert found.content == content
        assert memory.sessions.get("s", "mem_fake") is None


@pytest.mark.clause("LED-18")
@pytest.mark.parametrize(
    "content", ["plain", HOSTILE, {"z": 1, "a": [1.5, None, True, -3, {"é": "ü", "B": "b"}]}, [0.1, 12345678901]]
)
def test_a_checksum_is_the_sha_256_of_the_canonical_entry(files: Files, content: Any) -> None:
    with files.open() as memory:
        memory.sessions.create("u", session_id="s")
        memory.sessions.add("s", entry(content, importance=0.7, tags=["b", "a"]))
        exported = json.loads(memory.sessions.export("s"))
    (line,) = files.log()
    assert line["checksum"] == checksum(line)
    assert exported["checksum"] == checksum(exported)


@pytest.mark.clause("LED-18", "LED-13")
def test_an_entry_that_does_not_match_its_checksum_is_skipped_and_reported(files: Files) -> None:
    with files.open() as memory:
        memory.sessions.create("u", session_id="s")
        ids = memory.sessions.add_many("s", [entry(f"owl number {n}") for n in range(3)])
    path = files.session() / "memory.jsonl"
    path.write_bytes(path.read_bytes().replace(b"owl number 1", b"owl number 7"))
    with files.open() as memory:
        assert {hit.memory.id for hit in memory.sessions.query("s", {"text": "owl"})} == {ids[0], ids[2]}
        assert memory.sessions.get("s", ids[1]) is None
        stats = memory.sessions.stats("s")
        assert [damage.where for damage in stats.corrupt] == ["memory.jsonl, line 2"]
        assert "checksum" in stats.corrupt[0].problem
        assert stats.metadata.corrupt_entries == 1
        assert memory.sessions.metrics()["memory.errors.corruption.count"] == 1
