"""Sessions and plain-file stores on the command line, on real files."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner
from support.command_line import ANSI, called, terminal

from recollect import AccessError, Memory
from recollect.cli.app import cli

STORE = "ledger:./memory"
ENTRIES = [
    {"content": "We deploy on Fridays", "type": "decision", "tags": ["ops.deploy"], "importance": 0.9},
    {"content": "The staging server is called pelican", "type": "finding", "tags": ["ops.servers"]},
    {"content": "Alice prefers tabs", "type": "preference", "tags": ["style"], "timestamp": "2026-01-10T12:00:00Z"},
]


def run(*words: str, code: int = 0, store: str = STORE, input: str = "") -> str:
    """What the command prints."""
    done = called(*words, input=input, RECOLLECT_STORE=store)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def ask(*words: str, code: int = 0, store: str = STORE, input: str = "") -> Any:
    """The one JSON document that it prints."""
    printed = run(*words, "--json", code=code, store=store, input=input)
    assert printed.count("\n") == 1
    return json.loads(printed)


def failing(*words: str, code: int = 1, store: str = STORE, input: str = "") -> str:
    """What it says on stderr. In this process, which is quicker: there are many ways to fail."""
    done = CliRunner().invoke(cli, words, input=input, env={"RECOLLECT_STORE": store})
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    if code == 1:
        assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.fixture
def alice() -> list[str]:
    """The session `alice1` with three memories, made by this process; gives their ids."""
    return session("alice1", "alice", ENTRIES)


def session(name: str, user: str, entries: list[dict[str, Any]]) -> list[str]:
    with Memory(STORE, preset="ledger") as memory:
        memory.sessions.create(user, session_id=name)
        return memory.sessions.add_many(name, entries)


def log_of(name: str) -> Path:
    return Path("memory") / "sessions" / name / "memory.jsonl"


# Sessions


@pytest.mark.clause("LED-05")
def test_a_session_from_its_creation_to_its_end() -> None:
    name = f"sess_{datetime.now(UTC):%Y%m%d}_alice"
    created = run("sessions", "create", "alice").splitlines()
    assert created[0] == f"Created the session {name}"
    assert run("sessions", "add", name, "We", "deploy", "on", "Fridays", "--type", "decision").startswith("Added ")

    (hit,) = ask("sessions", "query", name)
    ident = hit["memory"]["id"]

    assert run("sessions", "get", name, ident[-8:]).startswith("We deploy on Fridays\n")
    assert ask("sessions", "stats", name)["entries"] == 1
    assert "Deleted " in run("sessions", "delete", name, ident[-8:], "--reason", "out of date")
    assert "there is no memory" in failing("sessions", "get", name, ident)
    assert ask("sessions", "stats", name)["deleted"] == 1
    assert "1 deleted" in run("sessions", "compact", name)
    assert run("sessions", "rebuild", name).splitlines()[-1] == "Rebuilt the index of 1 session."
    assert run("sessions", "drop", name, "--yes").startswith(f"Removed the session {name}")
    assert run("sessions").startswith("There are no sessions yet")


def test_a_session_has_settings_of_its_own() -> None:
    words = ["--id", "s1", "--half-life", "48", "--min-decay", "0.2", "--no-auto-compact", "--compact-at", "0.5"]
    words += ["--language", "pt", "--verbosity", "low", "--custom", "tz=Lisbon"]

    made = ask("sessions", "create", "alice", *words)

    assert made["decay_config"] == {"enabled": True, "half_life_hours": 48.0, "min_decay_factor": 0.2}
    assert made["compaction_config"] == {"auto_compact": False, "threshold": 0.5}
    assert made["preferences"] == {"language": "pt", "verbosity": "low", "custom": {"tz": "Lisbon"}}
    shown = run("sessions", "show", "s1")
    assert "by half in 48 hours, never below 0.2" in shown
    assert "only when asked for" in shown
    assert re.search(r"^tz +Lisbon$", shown, re.MULTILINE)
    assert ask("sessions", "create", "bob", "--no-decay")["decay_config"]["enabled"] is False


def test_sessions_are_listed_with_the_one_used_last_first(alice: list[str]) -> None:
    session("bob1", "bob", [])

    header, first, second = run("sessions").splitlines()

    assert header.split() == ["session", "user", "memories", "size", "used"]
    assert (first.split()[:3], second.split()[:3]) == (["bob1", "bob", "0"], ["alice1", "alice", "3"])
    assert [one["session_id"] for one in ask("sessions", "list")] == ["bob1", "alice1"]


def test_show_has_metadata_statistics_and_corrupt_lines(alice: list[str]) -> None:
    assert "3 (1 decision, 1 finding, 1 preference)" in run("sessions", "show", "alice1")
    damage("alice1", 2)

    shown = run("sessions", "show", "alice1")
    told = ask("sessions", "show", "alice1")

    assert "1 line" in shown
    assert "memory.jsonl, line 2" in shown
    assert (told["buffered"], told["metadata"]["user_id"]) == (0, "alice")
    assert [corrupt["where"] for corrupt in map(as_damage, told["corrupt"])] == ["memory.jsonl, line 2"]


def as_damage(given: Any) -> dict[str, str]:
    return given if isinstance(given, dict) else dict(zip(("where", "problem"), given, strict=True))


def damage(name: str, line: int) -> None:
    lines = log_of(name).read_text().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace("e", "3", 1)
    log_of(name).write_text("".join(lines))


# Adding


@pytest.mark.clause("LED-05")
def test_add_takes_every_field(alice: list[str]) -> None:
    words = ["--type", "finding", "--tag", "a", "--tag", "b.c", "--importance", "0.7"]
    words += ["--reference", alice[0][-8:], "--timestamp", "2026-01-01T00:00:00Z"]

    record = ask("sessions", "add", "alice1", "--content-json", '{"ports": [80]}', *words)

    assert (record["content"], record["kind"], record["tags"]) == ({"ports": [80]}, "finding", ["a", "b.c"])
    assert (record["importance"], record["references"]) == (0.7, [alice[0]])
    assert record["created_at"] == "2026-01-01T00:00:00Z"
    stored = ask("sessions", "get", "alice1", record["id"])
    assert stored.pop("decay_factor") == 0.1, "months old, and so at the lowest"
    assert record == stored


def test_text_and_lines_may_come_from_a_file_or_stdin(alice: list[str]) -> None:
    assert ask("sessions", "add", "alice1", "-", input="two\nlines\n")["content"] == "two\nlines"
    lines = "".join(json.dumps(entry) + "\n" for entry in ENTRIES)
    Path("entries.jsonl").write_text(lines)

    told = ask("sessions", "add", "alice1", "--from", "entries.jsonl")
    more = run("sessions", "add", "alice1", "--from", "-", "--tag", "bulk", input='{"content": "x"}\n\n')

    assert (told["stored"], len(set(told["ids"]))) == (3, 3)
    assert more == "Added 1 memory to alice1\n"
    assert [hit["memory"]["content"] for hit in ask("sessions", "query", "alice1", "--tag", "bulk")] == ["x"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"content": "x", "type": "task"}', "line 2: type: must be one of conversation, decision"),
        ('{"content": "x", "colour": 1}', "line 2: colour: is not part of an entry"),
        ('{"content": "x", "importance": 7}', "line 2: importance: 7 must be a number from 0 to 1"),
        ("[1]", "line 2: must be a JSON object"),
        ("{oops", "line 2: is not JSON"),
    ],
)
def test_one_bad_line_and_nothing_is_added(alice: list[str], line: str, problem: str) -> None:
    assert problem in failing("sessions", "add", "alice1", "--from", "-", input=f'{{"content": "fine"}}\n{line}\n')
    assert ask("sessions", "stats", "alice1")["entries"] == 3


# Asking


@pytest.mark.clause("LED-07")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["DEPLOY*"], [0]),
        (["--type", "finding", "--type", "preference", "--sort", "oldest"], [2, 1]),
        (["--tag", "ops", "--sort", "importance"], [0, 1]),
        (["--tag", "ops", "--tag", "ops.deploy"], [0]),
        (["--any-tag", "style", "--any-tag", "ops.deploy", "--sort", "newest"], [0, 2]),
        (["--tag", "ops", "--without-tag", "ops.deploy"], [1]),
        (["--since", "2026-01-10T12:00:00Z", "--until", "2026-01-11"], [2]),
        (["--until", "2026-01-10T12:00:00Z"], []),
        (["--last", "3 days", "--sort", "importance"], [0, 1]),
        (["--last", "hour", "--min-importance", "0.8"], [0]),
        (["--last", "2h", "pelican"], [1]),
        (["--last", "today", "pelican"], [1]),
        (["--sort", "importance", "--limit", "1"], [0]),
        (["peli*", "--type", "finding", "--tag", "ops", "--last", "3 days"], [1]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_a_query_combines_words_and_conditions(alice: list[str], words: list[str], found: list[int]) -> None:
    hits = ask("sessions", "query", "alice1", *words)

    assert [hit["memory"]["id"] for hit in hits] == [alice[at] for at in found]


def test_a_query_follows_references(alice: list[str]) -> None:
    near = ask("sessions", "add", "alice1", "because of the weekend", "--reference", alice[0])["id"]
    far = ask("sessions", "add", "alice1", "weekends are long", "--reference", near)["id"]

    one = ask("sessions", "query", "alice1", "--references", alice[0][-8:])
    two = ask("sessions", "query", "alice1", "--references", alice[0], "--depth", "2")

    assert {hit["memory"]["id"] for hit in one} == {near}
    assert {hit["memory"]["id"] for hit in two} == {near, far}


def test_people_see_a_table_or_the_parts_of_each_score(alice: list[str]) -> None:
    header, row = run("sessions", "query", "alice1", "pelican").splitlines()

    assert header.split() == ["score", "id", "made", "kind", "tags", "memory"]
    assert row.endswith("finding  #ops.servers  The staging server is called pelican")
    assert "× recency_boost" in run("sessions", "query", "alice1", "pelican", "--explain")
    assert run("sessions", "query", "alice1", "zeppelin") == "Nothing matched.\n"


@pytest.mark.clause("LED-23")
def test_search_asks_all_sessions(alice: list[str]) -> None:
    (other,) = session("bob1", "bob", [{"content": "Bob's pelican", "type": "finding", "tags": ["birds"]}])

    hits = ask("sessions", "search", "pelican")
    by_tag = ask("sessions", "search", "--tag", "birds")

    assert {hit["memory"]["id"] for hit in hits} == {alice[1], other}
    assert [hit["memory"]["address"]["workspace"] for hit in by_tag] == ["bob1"]
    assert "bob1" in run("sessions", "search", "pelican", "--any-tag", "birds")


# Deleting


@pytest.mark.clause("LED-12")
def test_deletion_says_how_many_and_leaves_no_text_after_compaction(alice: list[str]) -> None:
    assert run("sessions", "delete-topic", "alice1", "ops", "--yes", "--reason", "asked to").startswith(
        "Deleted 2 memories of alice1\nTake it back with: recollect undo --workspace alice1"
    )
    assert ask("sessions", "delete-range", "alice1", "2026-01-01", "2026-02-01", "--yes")["deleted"] == 1
    assert "asked to" in (log_of("alice1").parent / "tombstones.jsonl").read_text()
    assert ask("sessions", "compact", "alice1")["deleted"] == 3

    kept = b"".join(path.read_bytes() for path in Path("memory").rglob("*") if path.is_file())

    assert b"pelican" not in kept
    assert b"Fridays" not in kept


def test_a_deletion_can_be_taken_back_as_it_says(alice: list[str]) -> None:
    hint = run("sessions", "delete", "alice1", alice[1]).splitlines()[1].removeprefix("Take it back with: recollect ")

    run(*hint.split())

    assert ask("sessions", "get", "alice1", alice[1])["content"] == "The staging server is called pelican"


@pytest.mark.clause("LED-12")
@pytest.mark.parametrize(
    ("words", "question"),
    [
        (["delete-topic", "alice1", "ops"], "Forget 2 memories?"),
        (["delete-range", "alice1", "2026-01-01", "2026-02-01"], "Forget 1 memory?"),
        (["drop", "alice1"], "Remove the session alice1 of alice with 3 memories for good?"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_deletes_many_asks_first(alice: list[str], words: list[str], question: str) -> None:
    assert f"{question} There is no terminal to ask on; give --yes" in failing("sessions", *words)
    shown, code = terminal("sessions", *words, answer=b"n\n", RECOLLECT_STORE=STORE)
    assert (question in ANSI.sub("", shown), code) == (True, 1)
    assert ask("sessions", "stats", "alice1")["entries"] == 3

    shown, code = terminal("sessions", *words, answer=b"y\n", RECOLLECT_STORE=STORE)

    assert code == 0
    assert "Deleted" in shown or "Removed" in shown


def test_nothing_to_delete_is_no_question(alice: list[str]) -> None:
    shown, code = terminal("sessions", "delete-topic", "alice1", "nothing", RECOLLECT_STORE=STORE)

    assert (shown, code) == ("Nothing matched, so nothing was forgotten.\n", 0)
    assert ask("sessions", "delete-topic", "alice1", "nothing", "--yes")["deleted"] == 0


# Export


@pytest.mark.clause("LED-05")
def test_a_session_is_exported_as_lines_or_as_one_document(alice: list[str]) -> None:
    lines = [json.loads(line) for line in run("sessions", "export", "alice1").splitlines()]
    whole = json.loads(run("sessions", "export", "alice1", "--format", "json"))
    assert run("sessions", "export", "alice1", "-o", "out.jsonl") == "Exported alice1 to out.jsonl\n"

    assert [line["id"] for line in lines] == [alice[2], alice[0], alice[1]]
    assert whole["session"]["user_id"] == "alice"
    assert [entry["content"] for entry in whole["entries"]] == [line["content"] for line in lines]
    assert len(Path("out.jsonl").read_text().splitlines()) == 3
    assert ask("sessions", "export", "alice1")["session"]["session_id"] == "alice1"
    assert ask("sessions", "export", "alice1", "-o", "out.json")["format"] == "jsonl"
    assert "jsonl is many" in called("sessions", "export", "alice1", "--format", "jsonl", "--json").stderr


# Looking after all of them


def test_verify_lists_damaged_lines_and_exits_with_1(alice: list[str]) -> None:
    session("bob1", "bob", ENTRIES)
    assert run("verify") == "Verified 2 workspaces: every checksum matches\n"
    assert ask("verify")["ok"] is True
    damage("bob1", 1)
    damage("bob1", 3)

    shown = run("verify", code=1)
    told = ask("verify", code=1)

    assert shown.startswith("Verified 2 workspaces: 2 things are damaged\n\nbob1\n  memory.jsonl, line 1  ")
    assert {place["workspace"]: len(place["damage"]) for place in told["places"]} == {"alice1": 0, "bob1": 2, None: 0}
    assert run("verify", "--workspace", "alice1") == "Verified 1 workspace: every checksum matches\n"
    assert "there is no workspace carol1" in failing("verify", "--workspace", "carol1")
    assert "verify: this is done to whole workspaces; leave out --agent" in failing("verify", "--agent", "atlas")


def test_verify_is_a_verb_of_memory_too(alice: list[str]) -> None:
    damage("alice1", 2)

    with Memory(STORE) as memory:
        assert [found.where for found in memory.verify()] == ["alice1: memory.jsonl, line 2"]
        assert [found.where for found in memory.at(workspace="alice1").verify()] == ["memory.jsonl, line 2"]
        with pytest.raises(AccessError, match="verify: only a view of the whole workspace"):
            memory.at(workspace="alice1", agent="atlas").verify()


def test_damage_that_is_skipped_is_one_line_on_stderr(alice: list[str]) -> None:
    damage("alice1", 2)

    done = called("sessions", "query", "alice1", "--store", STORE)

    assert done.stderr == f"1 damaged line was skipped; look with: recollect verify --store {STORE}\n"
    assert "We deploy on Fridays" in done.stdout
    assert called("sessions", "query", "alice1", "--store", STORE, "--json").stderr == ""


@pytest.mark.parametrize("store", ["./memory", "ledger:./memory", "notebook:./notes.jsonl"])
def test_verify_works_on_every_store(store: str) -> None:
    run("remember", "tea", store=store)
    run("remember", "coffee", "--workspace", "other", "--tenant", "acme", store=store)

    assert run("verify", store=store) == "Verified 2 workspaces: every checksum matches\n"
    assert run("verify", "--tenant", "acme", store=store) == "Verified 1 workspace: every checksum matches\n"


def test_verify_sees_what_was_changed_in_sqlite_and_in_the_audit_log() -> None:
    run("remember", "tea", store="./memory")
    with apsw.Connection("memory/default/workspaces/default/memory.db") as connection:
        connection.execute("DROP TRIGGER audit_is_append_only_update; UPDATE audit SET message = 'nothing happened'")
        connection.execute("UPDATE memories SET text = 'coffee'")

    shown = run("verify", code=1, store="./memory")

    assert "does not match its checksum" in shown
    assert re.search(r"audit log +entry 1 does not match its hash", shown)


@pytest.mark.clause("LED-05")
def test_rebuild_makes_every_index_anew(alice: list[str]) -> None:
    session("bob1", "bob", ENTRIES[:1])
    for name in ("alice1", "bob1"):
        (log_of(name).parent / "index.json").write_text("nonsense")

    assert run("rebuild").splitlines()[-1] == "Rebuilt the index of 2 sessions."
    assert ask("rebuild", "--session", "bob1") == {"rebuilt": [{"session": "bob1", "entries": 1}], "failed": {}}
    assert json.loads((log_of("alice1").parent / "index.json").read_text())


@pytest.mark.clause("LED-22")
def test_migrate_brings_every_session_up_to_date_and_says_which(alice: list[str]) -> None:
    old = {
        "id": "mem_001",
        "timestamp": "2026-01-10T12:00:00Z",
        "type": "decision",
        "content": "old",
        "importance": 0.5,
    }
    log_of("old1").parent.mkdir()
    log_of("old1").write_text(json.dumps({**old, "session_id": "old1", "tags": [], "references": []}) + "\n")

    shown = run("migrate")

    assert shown == "migrated  old1\nMigrated 1 session; 1 was up to date already.\n"
    assert json.loads(log_of("old1").read_text())["schema_version"] == 1
    assert ask("migrate") == {"migrated": [], "up_to_date": ["alice1", "old1"], "failed": {}}
    assert run("sessions", "migrate", "old1") == "1 session was up to date already.\n"


def test_one_session_that_fails_does_not_keep_the_others_waiting(alice: list[str]) -> None:
    session("bob1", "bob", ENTRIES[:1])
    metadata = log_of("alice1").parent / "metadata.json"
    metadata.write_text(json.dumps(json.loads(metadata.read_text()) | {"version": 99}))

    done = called("rebuild", RECOLLECT_STORE=STORE)

    assert done.returncode == 1
    assert done.stderr.startswith("recollect: alice1: ")
    assert "Rebuilt the index of 1 session." in done.stdout
    assert list(ask("rebuild", code=1)["failed"]) == ["alice1"]
    assert list(ask("compact", "--all", code=1)["failed"]) == ["alice1"]
    assert [one["session_id"] for one in ask("sessions", code=1)] == ["bob1"]
    assert run("verify", code=1).count("\nalice1\n") == 1


@pytest.mark.parametrize("store", ["./memory", "ledger:./memory"])
def test_compact_all_compacts_every_workspace(store: str) -> None:
    for name in ("one", "two"):
        run("remember", "the word is zeppelin", "--workspace", name, store=store)
        run("forget", "--since", "1h", "--yes", "--workspace", name, store=store)

    shown = run("compact", "--all", store=store)
    told = ask("compact", "--all", store=store)

    assert re.search(r"^Compacted 2 workspaces; .* freed\.", shown, re.MULTILINE)
    assert [one["name"] for one in told["workspaces"]] == ["one", "two"]
    files = [path for path in Path("memory").rglob("*") if path.is_file()]
    assert not any(b"zeppelin" in path.read_bytes() for path in files)
    assert "--all is every workspace" in failing("compact", "--all", "--workspace", "one", code=2, store=store)


def test_metrics_count_over_all_sessions(alice: list[str]) -> None:
    session("bob1", "bob", ENTRIES)

    assert ask("sessions", "metrics")["memory.entries.total"] == 6
    assert re.search(r"^memory\.entries\.total +6$", run("sessions", "metrics"), re.MULTILINE)


# Stores


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["--preset", "ledger"], "memory/sessions/default/memory.jsonl"),
        (["--preset", "aegis"], ".aegis/memory/memories.jsonl"),
        (["--store", "ledger:./x"], "x/sessions/default/memory.jsonl"),
        (["--store", "notebook:./notes.jsonl"], "notes.jsonl"),
        (["--store", "notebook:./deep/notes.jsonl"], "deep/notes.jsonl"),
        (["--store", "sqlite:./x", "--preset", "ledger"], "x/default/workspaces/default/memory.db"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_init_makes_a_store_of_the_kind_that_is_asked_for(words: list[str], file: str) -> None:
    made = called("init", *words)
    again = json.loads(called("init", *words, "--json").stdout)
    assert made.stdout.startswith("Made the file " if file.endswith("notes.jsonl") else "Made the folder ")
    assert again["created"] is False
    assert Path(again["path"]).exists()

    first = next(line for line in made.stdout.splitlines() if line.startswith("Next: recollect "))
    assert "recollect: there is no memory at" not in called("list", *words).stderr
    called("remember", "tea", *words)

    assert Path(file).exists()
    assert all(word in first for word in words)
    assert [record["content"] for record in json.loads(called("list", *words, "--json").stdout)] == ["tea"]


@pytest.mark.parametrize("preset", ["ledger", "aegis"])
def test_a_folder_says_its_kind_whatever_the_preset(preset: str) -> None:
    called("remember", "tea", "--preset", preset)

    for words in ([], ["--preset", "atlas"], ["--preset", "ledger"]):
        assert "tea" in called("list", *words).stdout
    assert not list(Path("memory").rglob("memory.db"))


def test_a_notebook_that_is_not_there_is_an_error() -> None:
    Path("folder.jsonl").mkdir()
    Path("file").write_text("x")

    assert "there is no memory at notebook:./n.jsonl" in failing("list", store="notebook:./n.jsonl")
    assert "is a folder" in failing("init", store="notebook:./folder.jsonl")
    assert "is a file; a memory is a folder" in failing("init", store="ledger:./file")
    assert called("remember", "tea", "--store", "notebook:./n.jsonl").stderr == (
        "Started a new memory in notebook:./n.jsonl\n"
    )


# Refusals


def test_an_error_has_its_type_in_json(alice: list[str]) -> None:
    assert ask("sessions", "show", "nobody", code=1)["error"]["type"] == "NotFoundError"
    assert ask("sessions", "show", "../x", code=1)["error"]["field"] == "session_id"
    assert ask("sessions", "create", "alice", "--id", "alice1", code=1)["error"]["type"] == "ConflictError"
    assert ask("sessions", "list", code=1, store="./other")["error"]["field"] == "store"


@pytest.mark.parametrize("store", ["./memory", "sqlite:./memory", "notebook:./memory"])
@pytest.mark.parametrize("words", [["sessions"], ["sessions", "create", "alice"], ["rebuild"], ["migrate"]])
def test_a_store_without_sessions_says_to_use_a_ledger(store: str, words: list[str]) -> None:
    assert failing(*words, store=store) == (
        f"recollect: store: {store} keeps no sessions; use a ledger, as in --store ledger:./memory\n"
    )
    assert not Path("memory").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["show", "nobody"],
        ["stats", "nobody"],
        ["add", "nobody", "tea"],
        ["add", "nobody", "--from", "-"],
        ["get", "nobody", "mem_1234"],
        ["delete", "nobody", "mem_1234"],
        ["query", "nobody"],
        ["delete-topic", "nobody", "ops"],
        ["delete-range", "nobody", "2d", "1d"],
        ["drop", "nobody"],
        ["export", "nobody"],
        ["compact", "nobody"],
        ["rebuild", "nobody"],
        ["migrate", "nobody"],
    ],
    ids=lambda words: words[0],
)
def test_an_unknown_session_is_not_found_and_a_bad_id_is_refused(alice: list[str], words: list[str]) -> None:
    bad = [word.replace("nobody", "../x") for word in words]

    assert failing("sessions", *words) == "recollect: there is no session nobody\n"
    assert failing("sessions", *bad) == "recollect: session_id: must be 1 to 64 letters, digits or '_'\n"
    assert sorted(path.name for path in Path("memory/sessions").iterdir()) == ["alice1"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["create", "a b"], "user_id: must be 1 to 64 letters"),
        (["create", "bob", "--id", "alice1"], "there is a session alice1 already"),
        (["create", "bob", "--half-life", "-1"], "decay.half_life_hours: "),
        (["create", "bob", "--min-decay", "2"], "decay.min_decay_factor: "),
        (["get", "alice1", "ffffffff"], "there is no memory 'ffffffff'"),
        (["delete", "alice1", "f" * 32], "there is no memory"),
        (["query", "alice1", "--last", "fortnight"], "last: 'last fortnight' is not a time such as"),
        (["query", "alice1", "--since", "1d", "--until", "2d"], "time_range: begins after it ends"),
        (["delete-range", "alice1", "1d", "2d", "--yes"], "end: 2d is before 1d"),
        (["delete-topic", "alice1", "no tag", "--yes"], "tag"),
        (["add", "alice1", "--from", "missing.jsonl"], "file: missing.jsonl cannot be read: No such file"),
        (["add", "alice1", "tea", "--workspace", "other"], "this view is bound to other"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_is_refused_in_one_line(alice: list[str], words: list[str], problem: str) -> None:
    assert problem in failing("sessions", *words)


@pytest.mark.parametrize(
    "words",
    [
        ["add", "alice1", "tea", "--type", "task"],
        ["add", "alice1", "tea", "--from", "-"],
        ["create", "bob", "--no-decay", "--half-life", "3"],
        ["create", "bob", "--custom", "novalue"],
        ["query", "alice1", "--last", "hour", "--since", "1d"],
        ["query", "alice1", "--sort", "colour"],
        ["close", "alice1"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2(alice: list[str], words: list[str]) -> None:
    assert "Error: " in failing("sessions", *words, code=2)


# As people see it


def test_an_agent_adds_and_asks_for_its_own(alice: list[str]) -> None:
    run("sessions", "add", "alice1", "atlas was here", "--agent", "atlas")

    assert ask("sessions", "query", "alice1", "atlas", "--agent", "atlas")
    assert ask("sessions", "query", "alice1", "atlas", "--agent", "borea") == []


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_everything_fits_the_terminal(alice: list[str], columns: int) -> None:
    from rich.cells import cell_len

    damage("alice1", 2)
    session("a_session_with_quite_a_long_name", "somebody", [{**ENTRIES[0], "content": "deploy tabs " * 30}])
    for words in (
        ["sessions"],
        ["sessions", "show", "alice1"],
        ["sessions", "stats", "alice1"],
        ["sessions", "query", "alice1"],
        ["sessions", "search", "deploy"],
        ["sessions", "metrics"],
        ["verify"],
        ["rebuild"],
        ["compact", "--all"],
    ):
        shown, _ = terminal(*words, columns=columns, RECOLLECT_STORE=STORE)
        result = [line for line in ANSI.sub("", shown).split("\n") if "look with" not in line]
        assert max(map(cell_len, result)) <= columns, shown
        assert "…" not in "".join(result), shown


def test_colour_is_for_terminals_that_want_it(alice: list[str]) -> None:
    assert "\x1b[" in terminal("sessions", RECOLLECT_STORE=STORE)[0]
    assert "\x1b" not in terminal("sessions", RECOLLECT_STORE=STORE, NO_COLOR="1")[0]
    assert "\x1b" not in run("sessions")
