"""The rules of a ledger: who may read its files, what may be stored, what may be set, and which versions are read."""

from __future__ import annotations

import json
import os
import re
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import Clock
from support.ledger_files import SAMPLE, Files, checksum, entry

from recollect import InputError, Memory, NotFoundError, SchemaError, SizeLimitError
from recollect.stores.files.ledger import Ledger


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "memory")


def filled(files: Files) -> list[str]:
    with files.open() as memory:
        memory.sessions.create("user123", session_id="s")
        return memory.sessions.add_many("s", [entry(f"entry {n}", tags=["all"]) for n in range(4)])


@pytest.mark.clause("LED-20")
@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_folders_are_private_and_only_the_lock_can_be_read_by_others(files: Files, umask: int) -> None:
    before = os.umask(umask)
    try:
        ids = filled(files)
        with files.open() as memory:
            memory.sessions.delete("s", ids[2])
            memory.sessions.compact("s")
    finally:
        os.umask(before)
    for path in [files.root, *files.root.rglob("*")]:
        expected = 0o700 if path.is_dir() else 0o644 if path.name == "lock" else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


@pytest.mark.clause("LED-20")
@pytest.mark.parametrize(
    "name", ["..", "../s", "a/b", "a\\b", "/etc", ".", "", "s-1", "s.1", "x" * 65, "sess\0", "s\n", "ä", None, 7]
)
def test_no_session_id_can_lead_out_of_the_folder(files: Files, name: Any) -> None:
    filled(files)
    before = sorted(files.root.parent.rglob("*"))
    with files.open() as memory:
        for call in (
            lambda: memory.sessions.create("u", session_id=name) if name else memory.sessions.create(name),
            lambda: memory.sessions.load(name),
            lambda: memory.sessions.delete_session(name),
            lambda: memory.sessions.add(name, entry()),
        ):
            with pytest.raises(InputError, match="_id: must be 1 to 64 letters, digits or '_'"):
                call()
        with pytest.raises(NotFoundError, match="there is no session " + "x" * 64):
            memory.sessions.load("x" * 64)
    assert sorted(files.root.parent.rglob("*")) == before


@pytest.mark.clause("LED-22")
def test_an_older_schema_is_read_and_migrated_with_the_first_write(files: Files) -> None:
    files.write(SAMPLE, "sess_001")
    with files.open() as memory:
        assert [hit.memory.id for hit in memory.sessions.query("sess_001", {"sort_by": "oldest"})] == [
            "mem_001",
            "mem_002",
        ]
        assert memory.sessions.load("sess_001").total_entries == 2
        assert (files.session("sess_001") / "memory.jsonl").read_text() == SAMPLE
        memory.sessions.add("sess_001", entry("new"))
    old, reply, new = files.log("sess_001")
    sample = [json.loads(line) for line in SAMPLE.splitlines()]
    for now, was in ((old, sample[0]), (reply, sample[1])):
        assert now["schema_version"] == 1
        assert now["checksum"] == checksum(now)
        assert {field: now[field] for field in was} == was
    assert new["content"] == "new"
    assert files.json("sessions", "sess_001", "metadata.json")["version"] == 1


@pytest.mark.clause("LED-22")
def test_a_session_can_be_migrated_at_once(files: Files) -> None:
    files.write(SAMPLE, "sess_001")
    with files.open() as memory:
        assert memory.sessions.migrate("sess_001")
        assert not memory.sessions.migrate("sess_001")
        assert memory.sessions.stats("sess_001").entries == 2
    assert [line["schema_version"] for line in files.log("sess_001")] == [1, 1]


@pytest.mark.clause("LED-22")
@pytest.mark.parametrize("newer", ["entry", "metadata"])
def test_what_a_newer_version_wrote_is_refused_and_left_alone(files: Files, newer: str) -> None:
    filled(files)
    path = files.session() / ("memory.jsonl" if newer == "entry" else "metadata.json")
    if newer == "entry":
        line = {**files.log()[0], "id": "mem_new", "schema_version": 2}
        path.write_text(path.read_text() + json.dumps({**line, "checksum": checksum(line)}) + "\n")
    else:
        path.write_text(json.dumps({**json.loads(path.read_text()), "version": 2, "mood": "fine"}))
    before = path.read_bytes()
    with files.open() as memory:
        for call in (lambda: memory.sessions.query("s", {}), lambda: memory.sessions.add("s", entry())):
            with pytest.raises(SchemaError, match=r"version 2; this recollect knows up to 1. Use a newer one"):
                call()
    assert path.read_bytes() == before


@pytest.mark.clause("LED-20")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tags": ["t" * 33]}, "^tags: .*1 to 32 letters"),
        ({"tags": ["a b"]}, "^tags: .*1 to 32 letters"),
        ({"tags": ["a/../b"]}, "^tags: .*1 to 32 letters"),
        ({"references": ["m" * 33]}, "^references: .*1 to 32 letters"),
        ({"references": ["../mem"]}, "^references: .*1 to 32 letters"),
        ({"content": "x" * 1_048_577}, "^content: 1,048,577 bytes is over the limit of 1,048,576 bytes"),
        ({"content": {"text": "é" * 524_288}}, "^content: .* bytes is over the limit of 1,048,576 bytes"),
        ({"content": {}}, "^content: must not be empty"),
        ({"content": {"n": float("nan")}}, "^content: must not contain NaN"),
        ({"timestamp": "10.01.2026"}, r"^timestamp: '10.01.2026' is not an ISO 8601 time"),
        ({"timestamp": 1768055025}, r"^timestamp: must be a datetime or ISO 8601 text"),
        ({"importance": 1.1}, "^importance: 1.1 must be a number from 0 to 1"),
    ],
)
def test_an_entry_that_breaks_a_rule_is_refused_by_name(files: Files, fields: dict[str, Any], message: str) -> None:
    filled(files)
    before = files.log()
    with files.open() as memory, pytest.raises(InputError, match=message):
        memory.sessions.add_many("s", [entry("fine"), {**entry(), **fields}])
    assert files.log() == before


@pytest.mark.clause("LED-20")
def test_what_is_exactly_at_the_limits_is_stored(files: Files) -> None:
    content, tags = "x" * 1_048_576, ["t" * 32, "security.authentication", "with-hyphen"]
    with files.open() as memory:
        memory.sessions.create("u", session_id="s" * 64)
        memory.sessions.add(
            "s" * 64, entry(content, tags=tags, references=["m" * 32], timestamp="2026-01-10T14:23:45Z")
        )
    (line,) = files.log("s" * 64)
    assert (line["content"], line["tags"], line["references"]) == (content, tags, ["m" * 32])


@pytest.mark.clause("LED-16")
def test_the_first_write_leaves_a_config_json_to_edit(files: Files) -> None:
    filled(files)
    told = files.json("config.json")
    assert told["version"] == "1.0"
    assert told["storage"] == {
        "root_directory": "./memory", "max_session_size_mb": 10, "compaction_threshold": 0.9, "auto_compact": True,
    }  # fmt: skip
    assert told["concurrency"] == {"lock_timeout_ms": 5000, "max_retries": 3, "retry_backoff_ms": 100}
    assert told["performance"] == {"cache_size": 100, "batch_write_interval_ms": 1000, "index_in_memory": True}
    assert told["integrity"] == {"enable_checksums": True, "checksum_algorithm": "sha256"}
    assert list(told) == [*DOCUMENT, "compaction"]
    assert told["decay"] == {**DOCUMENT["decay"], "half_life_hours": 168}
    (files.root / "config.json").write_text(json.dumps({**told, "storage": {"max_session_size_mb": 3}}))
    before = (files.root / "config.json").read_bytes()
    with files.open() as memory:
        memory.sessions.add("s", entry())
    assert (files.root / "config.json").read_bytes() == before


DOCUMENT: dict[str, Any] = {
    "version": "1.0",
    "storage": {
        "root_directory": "./memory",
        "max_session_size_mb": 10,
        "compaction_threshold": 0.9,
        "auto_compact": True,
    },
    "concurrency": {"lock_timeout_ms": 5000, "max_retries": 3, "retry_backoff_ms": 100},
    "decay": {
        "enabled": True,
        "update_interval_minutes": 60,
        "type_specific": {
            "conversation": {"half_life_hours": 168},
            "decision": {"half_life_hours": 720},
            "finding": {"half_life_hours": 336},
            "preference": {"decay_enabled": False},
        },
        "min_decay_factor": 0.1,
    },
    "performance": {"cache_size": 100, "batch_write_interval_ms": 1000, "index_in_memory": True},
    "integrity": {"enable_checksums": True, "checksum_algorithm": "sha256"},
}
"""Section 7.1, word for word."""


@pytest.mark.clause("LED-16")
@pytest.mark.parametrize("preset", ["ledger", "recollect"])
def test_the_decay_that_is_shown_is_what_was_in_force_before(files: Files, preset: str) -> None:
    def decay() -> Any:
        with Memory(f"ledger:{files.root}", preset=preset) as memory:
            memory.at(workspace="s").remember("an owl", kind="finding")
            return memory.at(workspace="s")._view.decay  # pyright: ignore[reportPrivateUsage]

    first = decay()
    assert files.json("config.json")["decay"]["type_specific"] == DOCUMENT["decay"]["type_specific"]
    assert decay() == first


def faded(memory: Memory, session: str) -> dict[str, float]:
    exported = [json.loads(line) for line in memory.sessions.export(session).splitlines()]
    return {one["type"]: round(one["decay_factor"], 3) for one in exported}


@pytest.mark.clause("LED-27")
def test_defaults_can_be_set_when_the_manager_is_made(files: Files, clock: Clock) -> None:
    types = ("conversation", "decision", "finding", "preference")
    with Memory(Ledger(files.root, default_decay_half_life=24), preset="ledger", clock=clock) as memory:
        told = memory.sessions.create("u", session_id="s")
        assert (told.decay_config.half_life_hours, told.decay_config.min_decay_factor) == (24, 0.1)
        memory.sessions.create("u", session_id="own", decay={"half_life_hours": 48})
        for session in ("s", "own"):
            memory.sessions.add_many(session, [entry(type, type) for type in types])
        clock.forward(hours=48)
        # It stands in only where a type has no half-life of its own, and the document gives them one.
        own = {"conversation": round(0.5 ** (48 / 168), 3), "decision": round(0.5 ** (48 / 720), 3)}
        assert faded(memory, "s") == {**own, "finding": round(0.5 ** (48 / 336), 3), "preference": 1.0}
        memory.at(workspace="s").remember("a fact", kind="fact", created_at=clock() - timedelta(hours=48))
        assert faded(memory, "s")["fact"] == 0.25
        assert faded(memory, "own") == {"conversation": 0.5, "decision": 0.5, "finding": 0.5, "preference": 1.0}
    assert files.json("config.json")["decay"]["half_life_hours"] == 24
    with files.open(clock) as memory:  # what was generated holds for those who say nothing
        assert faded(memory, "s")["fact"] == 0.25
    with Memory(Ledger(files.root, default_decay_half_life=12), preset="ledger", clock=clock) as memory:
        assert faded(memory, "s")["fact"] == 0.1  # the least that anything fades to
        assert memory.sessions.load("s").decay_config.half_life_hours == 12


@pytest.mark.clause("LED-27")
def test_any_setting_can_be_given_and_is_checked_at_once(files: Files) -> None:
    settings = {"storage": {"max_session_size_mb": 0.01}, "decay": {"min_decay_factor": 0.5}}
    with Memory(Ledger(files.root, settings=settings), preset="ledger") as memory:
        memory.sessions.create("u", session_id="s")
        assert memory.sessions.load("s").decay_config.min_decay_factor == 0.5
        with pytest.raises(SizeLimitError):
            memory.sessions.add("s", entry("o" * 20_000))
    with pytest.raises(InputError, match=r"^storage.colour: is not a setting"):
        Ledger(files.root, settings={"storage": {"colour": 1}})
    with pytest.raises(InputError, match=r"^default_decay_half_life: must be a number of hours"):
        Ledger(files.root, default_decay_half_life=0)


@pytest.mark.clause("LED-20")
@pytest.mark.parametrize("session_id", ["", " ", "..", "a/b", "a" * 65])
def test_a_session_id_is_refused_by_name(files: Files, session_id: str) -> None:
    with files.open() as memory, pytest.raises(InputError, match=r"^session_id: must be 1 to 64 letters"):
        memory.sessions.create("u", session_id=session_id)
    assert not files.session("").exists()


@pytest.mark.clause("LED-16")
def test_the_documents_config_json_is_accepted(files: Files) -> None:
    files.configure(**DOCUMENT)
    filled(files)
    assert files.json("config.json") == DOCUMENT


@pytest.mark.clause("LED-16")
@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"storage": {"max_session_size_mb": "big"}}, r"^storage.max_session_size_mb: expected `float"),
        ({"storage": {"max_session_size_mb": 0}}, r"^storage.max_session_size_mb: "),
        ({"storage": {"compaction_threshold": 1.5}}, r"^storage.compaction_threshold: "),
        ({"storage": {"colour": 1}}, r"^storage.colour: is not a setting, in .*config.json"),
        ({"concurrency": {"max_retries": -1}}, r"^concurrency.max_retries: "),
        ({"decay": {"min_decay_factor": 2}}, r"^decay.min_decay_factor: "),
        (
            {"decay": {"type_specific": {"decision": {"half_life_hours": 0}}}},
            r"^decay.type_specific.*half_life_hours: ",
        ),
        ({"performance": {"cache_size": 1.5}}, r"^performance.cache_size: "),
        ({"integrity": {"checksum_algorithm": "md5"}}, r"^integrity.checksum_algorithm: "),
        ({"version": "2.0"}, r"^version: "),
        ({"mood": "fine"}, r"^mood: is not a setting"),
    ],
)
def test_a_wrong_setting_is_named_and_nothing_is_written(files: Files, config: dict[str, Any], message: str) -> None:
    files.configure(**config)
    with files.open() as memory, pytest.raises(InputError, match=message):
        memory.sessions.create("u", session_id="s")
    assert [path.name for path in files.root.iterdir()] == ["config.json"]


@pytest.mark.clause("LED-16")
def test_a_config_json_that_is_no_json_is_named(files: Files) -> None:
    files.configure()
    (files.root / "config.json").write_text("{not JSON")
    with files.open() as memory, pytest.raises(InputError, match=r"^config.json: is not JSON"):
        memory.sessions.create("u", session_id="s")


@pytest.mark.clause("LED-16")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"decay": {"half_life_hours": -1}}, r"^decay.half_life_hours: "),
        ({"decay": {"half_life": 1}}, r"^decay: .*unknown field `half_life`"),
        ({"compaction": {"threshold": 2}}, r"^compaction.threshold: "),
        ({"preferences": {"language": 7}}, r"^preferences.language: "),
    ],
)
def test_a_wrong_setting_of_a_session_is_named(files: Files, settings: dict[str, Any], message: str) -> None:
    with files.open() as memory, pytest.raises(InputError, match=message):
        memory.sessions.create("u", session_id="s", **settings)
    assert not files.session().exists()


@pytest.mark.clause("LED-16")
def test_checksums_need_not_be_checked(files: Files, clock: Clock) -> None:
    filled(files)
    path = files.session() / "memory.jsonl"
    path.write_bytes(path.read_bytes().replace(b"entry 1", b"ENTRY 1"))
    with files.open(clock) as memory:
        assert len(memory.sessions.query("s", {})) == 3
    files.configure(integrity={"enable_checksums": False})
    with files.open(clock) as memory:
        assert len(memory.sessions.query("s", {})) == 4


@pytest.mark.clause("LED-16")
@pytest.mark.parametrize(
    ("override", "key"),
    [
        ({"decay_config": {"half_life_hours": -5}}, "decay_config.half_life_hours"),
        ({"decay_config": {"half_life": 5}}, "decay_config.half_life"),
        ({"compaction_config": {"threshold": "much"}}, "compaction_config.threshold"),
        ({"preferences": {"language": 7}}, "preferences.language"),
    ],
)
def test_a_wrong_override_of_a_session_is_an_error_that_names_the_key(
    files: Files, override: dict[str, Any], key: str
) -> None:
    with files.open() as memory:
        memory.sessions.create("u", session_id="s")
        memory.sessions.add("s", entry("before"))
    path = files.session("s") / "metadata.json"
    wrong = json.dumps({**json.loads(path.read_text()), **override})
    path.write_text(wrong)
    with files.open() as memory:
        for verb in (
            lambda: memory.sessions.add("s", entry("after")),
            lambda: memory.sessions.load("s"),
            lambda: memory.sessions.query("s", {}),
            lambda: memory.sessions.compact("s"),
        ):
            with pytest.raises(InputError, match=f"^{re.escape(key)}: .*metadata.json"):
                verb()
    assert path.read_text() == wrong
    path.write_text(json.dumps({**json.loads(wrong), **{name: {} for name in override}}))
    with files.open() as memory:
        assert [hit.memory.content for hit in memory.sessions.query("s", {})] == ["before"]
