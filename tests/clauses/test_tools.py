"""The documents' tools, called as a model calls them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.common import Clock
from support.notebook_files import SAMPLE, Notes, parse
from support.stores import STORES, located

from recollect import Memory, tools
from recollect.presets import Preset, load, names
from recollect.recall.sources import Found
from recollect.values.errors import PresetError

NOT_STORED = {"ok": False, "error": "text appears to contain a secret — not stored"}
EACH = pytest.mark.parametrize("kind", STORES)


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / ".aegis" / "memory")


@pytest.fixture
def aegis(notes: Notes, clock: Clock) -> Iterator[Memory]:
    with notes.open(clock) as memory:
        yield memory


@pytest.fixture
def gaia(tmp_path: Path) -> Iterator[Memory]:
    clock = Clock(datetime(2026, 1, 10, 23, 30, tzinfo=UTC))
    with Memory(tmp_path / "memory", preset="journal", clock=clock) as memory:
        yield memory.at(agent="gaia")


# memory_store


@pytest.mark.clause("AEG-02")
def test_storing_gives_the_next_id_and_writes_the_documents_lines(notes: Notes, aegis: Memory, clock: Clock) -> None:
    results: list[Any] = []
    for line in map(json.loads, SAMPLE.splitlines()):
        clock.now = datetime.fromisoformat(line["ts"])
        given = {"text": line["text"], "tags": line["tags"], "scope": line["scope"]}
        results.append(tools.call(aegis, "memory_store", given))
    assert results == [{"ok": True, "id": f"m-{number}"} for number in (1, 2, 3)]
    assert notes.file.read_text() == SAMPLE
    assert tools.call(aegis, "memory_store", '{"text": "the fourth"}') == {"ok": True, "id": "m-4"}
    (*_, last) = parse(notes.file.read_text())
    assert (last["scope"], last["tags"], last["text"]) == ("workspace", [], "the fourth")


@pytest.mark.clause("AEG-02")
@EACH
def test_every_store_keeps_a_notes_scope(tmp_path: Path, kind: str) -> None:
    with Memory(located(kind, tmp_path / "m"), preset="aegis") as memory:
        for scope in (None, "workspace", "user", "session"):
            stored = tools.call(memory, "memory_store", {"text": f"about {scope}", "scope": scope})
            assert stored["ok"] is True
            kept = memory.get(stored["id"])
            assert (kept.text, kept.metadata.get("scope", "workspace")) == (f"about {scope}", scope or "workspace")


@pytest.mark.clause("AEG-02")
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"text": "x" * 501}, "text"),
        ({"text": "é" * 501}, "text"),
        ({"text": ""}, "text"),
        ({"text": " \n"}, "content"),
        ({"text": "a", "tags": list("abcdef")}, "tags"),
        ({"text": "a", "tags": ["two\nlines"]}, "tags"),
        ({"text": "a", "scope": "galaxy"}, "scope"),
        ({"text": "a", "importance": 1}, "arguments"),
        ({"tags": ["a"]}, "text"),
    ],
)
def test_a_note_outside_the_limits_is_refused_by_name(
    notes: Notes, aegis: Memory, given: dict[str, Any], named: str
) -> None:
    tools.call(aegis, "memory_store", {"text": "x" * 500, "tags": list("abcde")})
    before = notes.file.read_bytes()
    refused = tools.call(aegis, "memory_store", given)
    assert refused.keys() == {"ok", "error"}
    assert refused["ok"] is False
    assert refused["error"].startswith(named)
    assert notes.file.read_bytes() == before


BLOB = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6kM9n"
SECRETS = [
    "my key is sk-abc123def456",
    "ghp_abc123 works",
    "use gho_abc123",
    "glpat-abc123 for the runner",
    "xoxb-12-34 posts",
    "xoxp-12-34 posts",
    "send Bearer abc",
    "token: abc",
    "password: hunter2",
    f"it is {BLOB}",
]


@pytest.mark.clause("AEG-03")
@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_refused_in_the_documents_words_and_written_nowhere(
    notes: Notes, aegis: Memory, caplog: pytest.LogCaptureFixture, secret: str
) -> None:
    caplog.set_level(logging.DEBUG)
    tools.call(aegis, "memory_store", {"text": "the first"})
    before = notes.file.read_bytes()
    assert tools.call(aegis, "memory_store", {"text": secret}) == NOT_STORED
    assert tools.call(aegis, "memory_store", json.dumps({"text": secret, "tags": ["a"]})) == NOT_STORED
    assert notes.file.read_bytes() == before
    aegis.close()
    held = b"".join(path.read_bytes() for path in notes.folder.rglob("*") if path.is_file())
    assert secret.encode() not in held
    assert secret not in caplog.text
    assert [entry.action for entry in aegis.audit.search("refused")] == ["refuse", "refuse"]


@pytest.mark.clause("AEG-03")
@pytest.mark.parametrize(
    "given",
    [
        {"text": "a", "tags": [f"sk-{BLOB}"]},
        {"text": "a", "tags": [{"sk-abc123def456": 1}]},
        {"text": "a", "scope": "sk-abc123def456"},
        {"text": "a", "sk-abc123def456": "x"},
        {"text": ["sk-abc123def456"]},
        "not JSON: sk-abc123def456",
        '{"text": "a", "scope": "\\u0073k-abc123def456"}',
    ],
)
def test_no_refusal_repeats_a_secret_wherever_it_stood(aegis: Memory, given: Any) -> None:
    refused = tools.call(aegis, "memory_store", given)
    assert refused == NOT_STORED
    assert aegis.list() == []


@pytest.mark.clause("AEG-03")
def test_an_unknown_id_or_tool_that_is_a_secret_is_not_repeated(aegis: Memory) -> None:
    secret = "sk-abc123def456"
    for name, given in (("memory_delete", {"id": secret}), ("memory_search", {"tag": f"{secret}\n"}), (secret, {})):
        refused = tools.call(aegis, name, given)
        assert "error" in refused
        assert secret not in json.dumps(refused)
    assert tools.call(aegis, "memory_search", {"query": secret}) == {"count": 0, "memories": []}


# memory_search


@pytest.fixture
def searched(aegis: Memory, clock: Clock) -> Memory:
    for number in range(1, 31):
        clock.forward(minutes=1)
        tags = [tag for tag, step in (("even", 2), ("third", 3)) if number % step == 0]
        tools.call(aegis, "memory_store", {"text": f"Note {number}: PostgreSQL on port 54{number:02}", "tags": tags})
    return aegis


def ids(found: dict[str, Any]) -> list[str]:
    assert found.keys() == {"count", "memories"}
    assert found["count"] == len(found["memories"])
    return [memory["id"] for memory in found["memories"]]


@pytest.mark.clause("AEG-06")
@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        ({}, range(30, 10, -1)),
        ({"query": None, "tag": None}, range(30, 10, -1)),
        ({"query": "", "tag": ""}, range(30, 10, -1)),
        ({"query": "POSTGRES"}, range(30, 10, -1)),
        ({"query": "gresql ON por"}, range(30, 10, -1)),
        ({"query": "note 7:"}, [7]),
        ({"query": "5429"}, [29]),
        ({"query": "NOTE 2", "tag": "third"}, [27, 24, 21]),
        ({"tag": "third"}, range(30, 0, -3)),
        ({"tag": "Third"}, []),
        ({"query": "note%"}, []),
        ({"query": "port 54.."}, []),
        ({"query": "note 7:", "tag": "even"}, []),
    ],
)
def test_a_search_is_for_any_part_of_the_text_and_the_tag(
    searched: Memory, given: dict[str, Any], numbers: Sequence[int]
) -> None:
    assert ids(tools.call(searched, "memory_search", given)) == [f"m-{number}" for number in numbers]


@pytest.mark.clause("AEG-06")
def test_a_found_memory_is_shown_as_the_document_shows_it(aegis: Memory, clock: Clock) -> None:
    clock.now = datetime(2026, 2, 26, 12, 10, tzinfo=UTC)
    tools.call(aegis, "memory_store", {"text": "Deploy target is AWS us-east-1", "tags": ["infra", "deploy"]})
    assert tools.call(aegis, "memory_search", {"query": "aws"}) == {
        "count": 1,
        "memories": [
            {
                "id": "m-1",
                "text": "Deploy target is AWS us-east-1",
                "tags": ["infra", "deploy"],
                "ts": "2026-02-26T12:10:00Z",
            }
        ],
    }


@pytest.mark.clause("AEG-06")
@EACH
def test_every_store_is_searched_alike(tmp_path: Path, clock: Clock, kind: str) -> None:
    with Memory(located(kind, tmp_path / "m"), clock=clock) as memory:
        for text in ("Straße 7", "STRASSE 8", "a lane"):
            clock.forward(seconds=1)
            tools.call(memory, "memory_store", {"text": text})
        memory.at(conversation="c").scratchpad.write("street", "Strasse 9")
        found = tools.call(memory, "memory_search", {"query": "strasse"})
        assert [one["text"] for one in found["memories"]] == ["STRASSE 8", "Straße 7"]


# memory_delete


@pytest.mark.clause("AEG-07")
def test_deleting_writes_the_file_anew_without_the_memory(notes: Notes, searched: Memory) -> None:
    before, inode = parse(notes.file.read_text()), notes.file.stat().st_ino
    assert tools.call(searched, "memory_delete", {"id": "m-3"}) == {"ok": True}
    assert parse(notes.file.read_text()) == [line for line in before if line["id"] != "m-3"]
    assert notes.file.stat().st_ino != inode
    assert [path.name for path in notes.folder.iterdir() if path.name not in ("memories.jsonl", ".memories")] == []
    assert tools.call(searched, "memory_store", {"text": "the next"}) == {"ok": True, "id": "m-31"}


@pytest.mark.clause("AEG-07")
@pytest.mark.parametrize("unknown", ["m-99", "m-0", "nonsense"])
def test_an_unknown_id_is_a_clear_error(notes: Notes, searched: Memory, unknown: str) -> None:
    before = notes.file.read_bytes()
    refused = tools.call(searched, "memory_delete", {"id": unknown})
    assert refused == {"ok": False, "error": f"there is no memory {unknown} that this view can see"}
    assert notes.file.read_bytes() == before


@pytest.mark.clause("AEG-07")
def test_what_was_deleted_is_unknown(searched: Memory) -> None:
    tools.call(searched, "memory_delete", {"id": "m-5"})
    assert tools.call(searched, "memory_delete", {"id": "m-5"})["ok"] is False


# save_to_journal and save_to_core


@pytest.mark.clause("JRN-06")
def test_saving_to_the_journal(gaia: Memory) -> None:
    result = tools.call(gaia, "save_to_journal", {"content": "  Today I learned something\n"})
    assert result == {
        "success": True,
        "memory_type": "journal",
        "content": "Today I learned something",
        "expires_around": "2026-01-17",
    }
    (entry,) = gaia.list()
    assert (entry.kind, entry.content, entry.address.agent) == ("journal", "Today I learned something", "gaia")


@pytest.mark.clause("JRN-06")
def test_saving_to_core(gaia: Memory) -> None:
    result = tools.call(gaia, "save_to_core", {"content": "I am patient"})
    assert result == {
        "success": True,
        "memory_type": "core",
        "content": "I am patient",
        "note": "This memory is now part of your permanent identity",
    }
    (entry,) = gaia.list()
    assert (entry.kind, entry.content, entry.address.agent) == ("core", "I am patient", "gaia")


@pytest.mark.clause("JRN-06")
@pytest.mark.parametrize("name", ["save_to_journal", "save_to_core"])
@pytest.mark.parametrize("content", ["a thought", "", "x" * 10_001])
def test_without_a_current_agent_nothing_is_saved(tmp_path: Path, name: str, content: str) -> None:
    with Memory(tmp_path / "memory", preset="journal") as memory:
        refused = tools.call(memory, name, {"content": content})
        assert refused == {"error": "This tool only works in group conversations"}
        assert memory.list() == []


@pytest.mark.clause("JRN-06")
def test_the_journal_tools_are_described_in_the_documents_words() -> None:
    journal, core = tools.of(load("journal"))
    assert journal.description == (
        "Save a memory to your personal journal. Journal entries are temporary and will fade after about a week. Use "
        "this for observations, insights, or things you want to remember in the short term."
    )
    assert core.description == (
        "Save a memory to your core identity. Core memories are permanent and define who you are. Use sparingly for "
        "fundamental beliefs, key learnings, or essential information about yourself."
    )
    told = [tool.parameters["properties"]["content"]["description"] for tool in (journal, core)]
    assert told == [
        "The memory to save (keep it concise, under a paragraph)",
        "The core memory to save (keep it concise and meaningful)",
    ]


@pytest.mark.clause("JRN-07")
@pytest.mark.parametrize("name", ["save_to_journal", "save_to_core"])
def test_blank_and_too_long_are_refused_in_the_documents_words(gaia: Memory, name: str) -> None:
    for blank in ("", "   ", "\n\t "):
        assert tools.call(gaia, name, {"content": blank}) == {"error": "Content cannot be blank"}
    too_long = {"error": "Content too long (max 10,000 characters)"}
    assert tools.call(gaia, name, {"content": "x" * 10_001}) == too_long
    assert gaia.list() == []
    assert tools.call(gaia, name, {"content": "  " + "ß" * 10_000 + "  "})["success"] is True


@pytest.mark.clause("JRN-07")
def test_what_the_memory_refuses_is_told_as_a_failure_to_save(gaia: Memory) -> None:
    refused = tools.call(gaia, "save_to_core", {"content": "my key is sk-abc123def456"})
    assert refused == {"error": "Failed to save: text appears to contain a secret — not stored"}
    assert tools.call(gaia, "save_to_core", {}) == {"error": "Failed to save: content: is missing"}
    assert gaia.list() == []


# search_my_memories


class Shelf:
    """A source with these findings, which is asked in place of the one of its name."""

    def __init__(self, name: str, *found: Found) -> None:
        self.name = name
        self._found = found

    def search(self, query: str, limit: int) -> list[Found]:
        return list(self._found)[:limit]


@pytest.mark.clause("ATL-08")
def test_four_sources_are_asked_and_a_failing_one_is_reported(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise ConnectionError("no route to the shelf")

    with Memory(tmp_path / "m", preset="atlas", clock=clock) as memory:
        me = memory.at(agent="atlas")
        own = me.remember("invoice 5 was paid late")
        memory.at(agent="binky").remember("invoice 6 is binky's")
        me.audit.record("approve", "invoice 4 approved")
        step = me.workflows.step(me.workflows.start("billing").id, "send")
        me.workflows.complete(step.id, output="invoice 7 was sent")
        monkeypatch.setattr("recollect.facets.knowledge.searching.ranked", fail)
        found = tools.call(me, "search_my_memories", {"query": "invoice"})
    assert found.keys() == {"results", "failed"}
    by_source = {one["source"]: one for one in found["results"]}
    assert by_source.keys() == {"memory", "audit", "workflow"}
    assert all(one.keys() == {"source", "content", "score", "timestamp", "id"} for one in found["results"])
    assert (by_source["memory"]["content"], by_source["memory"]["id"]) == ("invoice 5 was paid late", own.id)
    assert by_source["workflow"] | {"score": 0} == {
        "source": "workflow",
        "content": "billing › send: invoice 7 was sent",
        "score": 0,
        "timestamp": "2026-03-01T12:00:00Z",
        "id": step.id,
    }
    assert [one["source"] for one in found["failed"]] == ["knowledge"]
    assert "no route to the shelf" in found["failed"][0]["reason"]


@pytest.mark.clause("ATL-10")
def test_the_five_best_come_back_each_text_once_by_the_documents_formula(tmp_path: Path, clock: Clock) -> None:
    def found(text: str, similarity: float, importance: float = 0.5) -> Found:
        return Found(text=text, similarity=similarity, at=clock.now, importance=importance)

    steps = Shelf("workflow", *(found(f"step {number}", number / 10) for number in range(1, 6)))
    pages = Shelf("knowledge", found("step 5", 0.9), found("page", 1.0, 1.0))
    with Memory(tmp_path / "m", preset="atlas", clock=clock, sources=[steps, pages]) as memory:
        results = tools.call(memory, "search_my_memories", {"query": "anything"})["results"]
    # 0.5 * similarity + 0.2 * recency (now: 1) + 0.2 * importance + 0.1 * priority
    assert [(one["content"], one["source"], one["score"]) for one in results] == [
        ("page", "knowledge", 0.5 + 0.2 + 0.2 + 0.05),
        ("step 5", "knowledge", 0.45 + 0.2 + 0.1 + 0.05),
        ("step 4", "workflow", pytest.approx(0.2 + 0.2 + 0.1 + 0.06)),
        ("step 3", "workflow", pytest.approx(0.15 + 0.2 + 0.1 + 0.06)),
        ("step 2", "workflow", pytest.approx(0.1 + 0.2 + 0.1 + 0.06)),
    ]


# The scratchpad


@pytest.mark.clause("INK-11")
@EACH
def test_the_scratchpad_is_written_read_listed_and_cleared(tmp_path: Path, clock: Clock, kind: str) -> None:
    with Memory(located(kind, tmp_path / "m"), preset="inklings", clock=clock) as memory:
        talk = memory.at(conversation="aB3dE6gH9jK")
        written = tools.call(talk, "write_scratchpad", {"key": "plan", "value": {"done": [1, 2], "next": None}})
        assert written == {"key": "plan", "written_at": "2026-03-01T12:00:00Z"}
        assert tools.call(talk, "read_scratchpad", {"key": "plan"}) == {
            "key": "plan",
            "value": {"done": [1, 2], "next": None},
            "written_at": "2026-03-01T12:00:00Z",
        }
        tools.call(talk, "write_scratchpad", '{"key": "count", "value": 3}')
        tools.call(talk, "write_scratchpad", {"key": "long", "value": "x" * 3000})
        assert tools.call(talk, "list_scratchpad", "{}") == {
            "count": 3,
            "entries": [
                {"key": "count", "value": 3, "written_at": "2026-03-01T12:00:00Z"},
                {"key": "long", "truncated": True, "written_at": "2026-03-01T12:00:00Z"},
                {
                    "key": "plan",
                    "value": {"done": [1, 2], "next": None},
                    "written_at": "2026-03-01T12:00:00Z",
                },
            ],
        }
        assert tools.call(talk, "clear_scratchpad", {"key": "plan"}) == {"cleared": 1}
        missing = tools.call(talk, "read_scratchpad", {"key": "plan"})
        assert missing["error"]["type"] == "NotFoundError"
        assert tools.call(talk, "clear_scratchpad") == {"cleared": 2}
        assert tools.call(talk, "list_scratchpad") == {"count": 0, "entries": []}


@pytest.mark.clause("INK-11")
def test_the_scratchpad_needs_a_conversation(tmp_path: Path) -> None:
    with Memory(tmp_path / "m", preset="inklings") as memory:
        for name, given in (
            ("write_scratchpad", {"key": "a", "value": 1}),
            ("read_scratchpad", {"key": "a"}),
            ("list_scratchpad", {}),
            ("clear_scratchpad", {}),
        ):
            refused = tools.call(memory, name, given)["error"]
            assert (refused["type"], refused["field"]) == ("InputError", "conversation")
        assert memory.stats().total == 0


# Our own


def test_remembering_recalling_and_forgetting(memory: Memory, clock: Clock) -> None:
    given = {"content": "Alice prefers tabs", "kind": "preference", "tags": ["style"], "importance": 0.9}
    stored = tools.call(memory, "remember", given)
    assert stored == {
        "id": stored["id"],
        "kind": "preference",
        "importance": 0.9,
        "expires_at": None,
        "known_already": False,
    }
    again = tools.call(memory, "remember", given)
    assert (again["id"], again["known_already"]) == (stored["id"], True)
    clock.forward(days=1)
    tools.call(memory, "remember", {"content": "Bob prefers spaces"})
    found = tools.call(memory, "recall", {"query": "Alice prefers", "limit": 1})
    (hit,) = found["memories"]
    assert hit.pop("score") > 0
    assert 0.0 < hit.pop("relevance") < 1.0
    assert hit == {
        "id": stored["id"],
        "text": "Alice prefers tabs",
        "kind": "preference",
        "tags": ["style"],
        "date": "2026-03-01T12:00:00Z",
    }
    for narrow in ({"kind": "preference"}, {"tags": ["style"]}, {"until": "2026-03-02"}):
        (only,) = tools.call(memory, "recall", {"query": "prefers", **narrow})["memories"]
        assert only["id"] == stored["id"]
    (other,) = tools.call(memory, "recall", {"query": "prefers", "since": "2026-03-02T00:00:00Z"})["memories"]
    assert other["text"] == "Bob prefers spaces"
    gone = tools.call(memory, "forget", {"id": stored["id"], "reason": "asked to"})
    assert gone == {"count": 1, "ids": [stored["id"]]}
    assert tools.call(memory, "recall", {"query": "Alice"})["count"] == 0
    assert memory.audit.search("asked to")


def test_a_very_long_memory_is_shown_in_part(memory: Memory) -> None:
    memory.remember("heron " * 1000)
    (hit,) = tools.call(memory, "recall", {"query": "heron"})["memories"]
    assert (hit["text"], hit["truncated"]) == (("heron " * 1000)[:4000], True)


def test_a_tool_sees_what_its_view_sees(tmp_path: Path) -> None:
    with Memory(tmp_path / "m") as memory:
        secret = memory.at(agent="binky").remember("the lynx is binky's")
        other = memory.at(agent="atlas")
        assert tools.call(other, "recall", {"query": "lynx"})["count"] == 0
        assert tools.call(other, "memory_search", {"query": "lynx"})["count"] == 0
        assert tools.call(other, "search_my_memories", {"query": "lynx"})["results"] == []
        assert "error" in tools.call(other, "forget", {"id": secret.id})
        assert "error" in tools.call(other, "memory_delete", {"id": secret.id})
        assert memory.get(secret.id) == secret


def test_a_working_note_is_not_remembered_by_mistake(memory: Memory) -> None:
    refused = tools.call(memory, "remember", {"content": "half done", "kind": "scratchpad"})
    assert refused["error"]["field"] == "kind"
    assert memory.stats().total == 0


# The list


@pytest.mark.parametrize("name", names())
def test_every_tool_of_a_preset_exists_and_is_offered_in_three_forms(name: str) -> None:
    preset = load(name)
    offered = tools.of(preset)
    assert [tool.name for tool in offered] == list(preset.tools)
    assert tools.openai(preset) == [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in offered
    ]
    assert tools.anthropic(preset) == [
        {"name": t.name, "description": t.description, "input_schema": t.parameters} for t in offered
    ]
    assert tools.mcp(preset) == [
        {
            "name": t.name,
            "title": t.title,
            "description": t.description,
            "inputSchema": t.parameters,
            "outputSchema": t.output,
            "annotations": {"readOnlyHint": not t.writes, "destructiveHint": t.destructive, "openWorldHint": False},
        }
        for t in offered
    ]


def test_a_memory_offers_what_its_preset_names(memory: Memory) -> None:
    assert [tool.name for tool in tools.of(memory)] == ["recall", "remember", "revise", "list", "forget", "undo"]
    with pytest.raises(PresetError, match="tools: in preset mine: there is no tool `recal`; known: recall, "):
        tools.of(Preset(name="mine", tools=("recall", "recal")))


def test_every_tool_is_described_for_a_model() -> None:
    listed = tools.all()
    assert len({tool.name for tool in listed}) == len(listed) == 27
    for tool in listed:
        assert 20 < len(tool.description) < 1024
        assert all(part["description"] for part in tool.parameters["properties"].values())
        assert tool.parameters["additionalProperties"] is False
        assert set(tool.parameters["required"]) <= tool.parameters["properties"].keys()
        json.dumps(tool.parameters, allow_nan=False)
        assert 3 < len(tool.title) < 40
        assert tool.output["type"] == "object"
        assert tool.writes or not tool.destructive
    writing = {tool.name for tool in listed if tool.writes}
    assert writing == {
        *("remember", "forget", "memory_store", "memory_delete", "save_to_journal", "save_to_core"),
        *("write_scratchpad", "clear_scratchpad", "revise", "undo", "observe"),
        *("start_conversation", "idle_conversation", "archive_conversation"),
        *("confirm_proposal", "dismiss_proposal"),
    }
    additive = {tool.name for tool in listed if tool.writes and not tool.destructive}
    assert additive == {"remember", "memory_store", "save_to_journal", "save_to_core", "observe", "start_conversation"}


def test_the_schema_says_the_documents_limits() -> None:
    by_name = {tool.name: tool.parameters["properties"] for tool in tools.all()}
    text, tags, scope = (by_name["memory_store"][field] for field in ("text", "tags", "scope"))
    assert (text["type"], text["minLength"], text["maxLength"]) == ("string", 1, 500)
    assert (tags["type"], tags["maxItems"], tags["items"]["type"]) == ("array", 5, "string")
    assert (set(scope["enum"]), scope["default"]) == ({"user", "workspace", "session"}, "workspace")
    assert by_name["save_to_journal"]["content"]["maxLength"] == 10_000
    assert by_name["save_to_core"]["content"]["maxLength"] == 10_000


def test_the_schemas_are_json_schema() -> None:
    for tool in tools.all():
        Draft202012Validator.check_schema(tool.parameters)


def test_an_entry_fades_after_the_presets_window(tmp_path: Path, clock: Clock) -> None:
    mine = load("journal")
    from msgspec.structs import replace

    longer = replace(mine, retention=replace(mine.retention, window_days={"journal": 30}))
    with Memory(tmp_path / "m", preset=longer, clock=clock) as memory:
        saved = tools.call(memory.at(agent="gaia"), "save_to_journal", {"content": "a lynx"})
    assert saved["expires_around"] == f"{clock.now + timedelta(days=30):%Y-%m-%d}"
