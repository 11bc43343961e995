"""Whatever a model says and whatever the disk does: a tool answers, in JSON, and an error has stored nothing."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.common import LONG
from support.stores import STORES, located

from recollect import DiskFullError, Memory, ReadOnlyError, tools
from recollect.facets.proposals import propose

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

VALID: dict[str, dict[str, Any]] = {
    "recall": {
        "query": "heron",
        "limit": 3,
        "kind": "fact",
        "tags": ["a"],
        "since": "2026-01-01",
        "until": "2027-01-01T00:00:00Z",
    },
    "remember": {"content": "a heron", "kind": "fact", "tags": ["a", "b.c"], "importance": 0.5, "shared": True},
    "revise": {"id": "known", "content": "a grey heron", "kind": "fact", "tags": ["a"], "importance": 0.5},
    "list": {"limit": 3, "kind": "fact", "tags": ["a"], "since": "yesterday", "until": "2027-01-01"},
    "forget": {"id": "known", "reason": "asked to"},
    "undo": {},
    "search_my_memories": {"query": "heron", "limit": 2},
    "search_atlasux_knowledge": {"query": "tea"},
    "memory_store": {"text": "a heron", "tags": ["a"], "scope": "user"},
    "memory_search": {"query": "heron", "tag": "a"},
    "memory_delete": {"id": "known"},
    "save_to_journal": {"content": "a heron"},
    "save_to_core": {"content": "a heron"},
    "write_scratchpad": {"key": "plan", "value": {"step": [1, None, "x"]}},
    "read_scratchpad": {"key": "plan"},
    "list_scratchpad": {},
    "clear_scratchpad": {"key": "plan"},
    "start_conversation": {"subject": "herons", "channel": "general"},
    "list_conversations": {"status": "active", "channel": "general", "contains": "h", "limit": 3},
    "get_conversation": {"id": "c1"},
    "idle_conversation": {"id": "c1"},
    "archive_conversation": {"id": "c1"},
    "list_proposals": {},
    "profile": {"subject": "Ada"},
    "confirm_proposal": {"id": "proposal", "ids": "known"},
    "dismiss_proposal": {"id": "proposal"},
    "observe": {"content": "a heron", "kind": "fact", "importance": 0.5, "scope": "workspace", "tags": ["a"]},
}

awkward = st.sampled_from(
    [
        *("", " ", "\0", "a\0b", "\ud800", "\udfff tail", "\ufeff", "\u202e", "\r\n", "é" * 600, "x" * 12_000),
        *("'; DROP TABLE memories; --", "%", "*", '"', '"a', "NEAR(", "a AND", "-", "{}", "null", "[" * 300, "../.."),
        *("9999-99-99", "0001-01-01T00:00:00+14:00", "today", "2026-01-01T00:00:00.123456789Z"),
        *(math.nan, math.inf, -math.inf, -0.0, 1e308, 2**63, -(2**63) - 1, 10**400, -1, 0, 51, True, None),
        *([], {}, [[]], [{}], {"": ""}, b"bytes", object(), {1: 2}, {"a"}, NOW, [None], ["a", 1], ["a"] * 100),
    ]
)
text = st.text(st.characters(exclude_categories=()), max_size=40)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | text | awkward
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=8
)


@st.composite
def nearly(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """The arguments of a tool with a few of them changed, dropped or added."""
    name = draw(st.sampled_from(sorted(VALID)))
    arguments = dict(VALID[name])
    for _ in range(draw(st.integers(0, 3))):
        field = draw(st.sampled_from([*VALID[name], "extra", "_view", "self", "memory"]))
        if draw(st.booleans()):
            arguments[field] = draw(values)
        else:
            arguments.pop(field, None)
    return name, arguments


@pytest.fixture(scope="module", params=STORES)
def talk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("garbage")
    with Memory(located(request.param, folder / "m"), preset="inklings", clock=lambda: NOW) as memory:
        yield memory.at(agent="gaia", conversation="c1")


def kept(memory: Memory) -> tuple[bytes, str]:
    """All that is stored, and the last change that the log knows of."""
    stream = io.BytesIO()
    memory.export(stream)
    changes = [entry.id for entry in memory.audit.search(limit=20) if entry.action != "refuse"]
    # Retrievals that were counted before are written by a timer.
    stored = re.sub(rb'"access(ed_at":"[^"]*"|_count":\d+)', b"", stream.getvalue())
    return stored, changes[0] if changes else ""


def asked(memory: Memory, name: Any, arguments: Any) -> dict[str, Any]:
    """Call, and check what holds for every answer."""
    before = kept(memory)
    result = tools.call(memory, name, arguments)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    known = {tool.name for tool in tools.all() if tool.writes}
    if "error" in result or name not in known:
        assert kept(memory)[1] == before[1]
    if "error" in result:
        assert kept(memory)[0] == before[0]
        said = result["error"]
        assert said if isinstance(said, str) else said.keys() - {"rule"} == {"type", "field", "message"}
    return result


def fresh(memory: Memory, started: bool = False) -> str:
    memory.forget(since="2000-01-01", shared=True)
    memory.forget(conversation="c1")
    if started:
        memory.conversations.start("herons")
    memory.scratchpad.write("plan", 1)
    return memory.remember("a heron", tags=["a"]).id


UNHURRIED = settings(
    max_examples=600 if LONG else 10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@UNHURRIED
@given(called=nearly(), as_text=st.booleans())
def test_nearly_valid_arguments_never_raise_and_an_error_stores_nothing(
    talk: Memory, called: tuple[str, dict[str, Any]], as_text: bool
) -> None:
    name, arguments = called
    ident = fresh(talk)
    if arguments.get("id") == "known":
        arguments["id"] = ident
    given: Any = arguments
    if as_text:
        try:
            given = json.dumps(arguments)
        except (TypeError, ValueError):
            return
    asked(talk, name, given)


@UNHURRIED
@given(name=st.sampled_from(sorted(VALID)) | text | awkward, arguments=values | st.binary(max_size=40))
@example(name="remember", arguments="[" * 100_000)
@example(name="write_scratchpad", arguments='{"key": "a", "value": ' + "[" * 5000 + "]" * 5000 + "}")
@example(name="write_scratchpad", arguments='{"key": "a", "value": 1e999}')
@example(name="write_scratchpad", arguments='{"key": "a", "value": ' + "9" * 500 + "}")
@example(name="write_scratchpad", arguments='{"key": "a", "value": "\\ud800"}')
@example(name="remember", arguments='{"content": "a", "content": 5}')
@example(name="remember", arguments=b'{"content": "\xff"}')
@example(name="remember", arguments="\ud800")
@example(name="remember", arguments='{"content": "' + "x" * 2_000_000 + '"}')
@example(name="remember", arguments={"content": "x", "importance": math.nan})
def test_garbage_never_raises_and_stores_nothing(talk: Memory, name: Any, arguments: Any) -> None:
    fresh(talk)
    asked(talk, name, arguments)


@pytest.mark.parametrize("name", VALID)
def test_what_is_valid_is_done(talk: Memory, name: str) -> None:
    ident = fresh(talk, started=name.endswith("_conversation") and name != "start_conversation")
    proposal = propose(talk._view, "forget", "forget the heron", [ident], "")
    made = {"known": ident, "proposal": proposal}
    arguments = {key: made.get(value, value) if isinstance(value, str) else value for key, value in VALID[name].items()}
    assert "error" not in asked(talk, name, arguments)
    assert {tool.name for tool in tools.all()} == VALID.keys()


def test_a_circle_is_no_json(talk: Memory) -> None:
    circle: dict[str, Any] = {}
    circle["content"] = circle
    assert "deeper" in asked(talk, "remember", circle)["error"]["message"]


def test_arguments_that_are_left_out_or_null_are_the_same(talk: Memory) -> None:
    fresh(talk)
    for nothing in (None, "", "  ", "{}", "null", {}, b""):
        assert asked(talk, "memory_search", nothing)["count"] == 1
    assert asked(talk, "recall", {"query": "heron", "limit": None, "tags": None})["count"] == 1


@pytest.mark.parametrize(
    ("name", "arguments", "field", "message"),
    [
        ("remember", "{", "arguments", "is not JSON"),
        ("remember", "[1]", "arguments", "must be a JSON object"),
        ("remember", {}, "content", "is missing"),
        ("remember", {"content": 5}, "content", "must be a string, not a whole number"),
        ("remember", {"content": ""}, "content", "must be a string of length >= 1"),
        ("remember", {"content": "a", "tags": "b"}, "tags", "must be a list, not a string"),
        ("remember", {"content": "a", "tags": ["b", 1]}, "tags[1]", "must be a string, not a whole number"),
        ("remember", {"content": "a", "importance": "high"}, "importance", "must be a number, not a string"),
        ("remember", {"content": "a", "importance": 1.5}, "importance", "must be a number <= 1.0"),
        ("remember", {"content": "\ud800"}, "arguments", "has a lone surrogate; it is not valid text"),
        ("recall", {"query": "a", "limit": True}, "limit", "must be a whole number, not true or false"),
        ("recall", {"query": "a", "limit": 51}, "limit", "must be a whole number <= 50"),
        (
            "recall",
            {"query": "a", "top_k": 5},
            "arguments",
            "there is one that this tool does not have; "
            "recall takes query, limit, kind, tags, since, until, min_relevance",
        ),
        (
            "list_scratchpad",
            {"a": 1},
            "arguments",
            "there is one that this tool does not have; list_scratchpad takes none",
        ),
    ],
)
def test_an_error_names_the_argument_and_the_rule(
    talk: Memory, name: str, arguments: Any, field: str, message: str
) -> None:
    refused = asked(talk, name, arguments)
    assert refused == {"error": {"type": "InputError", "field": field, "message": message}}


def test_an_unknown_tool_is_told_the_known_ones(talk: Memory) -> None:
    refused = asked(talk, "rember", {"content": "a"})["error"]
    assert refused["type"] == "NotFoundError"
    assert "remember" in refused["message"]


@pytest.mark.parametrize(
    ("failure", "kind", "message"),
    [
        (DiskFullError("no space left on the disk"), "DiskFullError", "no space left on the disk"),
        (ReadOnlyError("the folder cannot be written"), "ReadOnlyError", "the folder cannot be written"),
        (OSError(5, "Input/output error", "/somewhere/private"), "StoreError", "Input/output error"),
    ],
)
def test_a_store_that_cannot_write_is_an_error_and_no_exception(
    talk: Memory, monkeypatch: pytest.MonkeyPatch, failure: Exception, kind: str, message: str
) -> None:
    ident = fresh(talk)

    def refuse(*_: Any, **__: Any) -> Any:
        raise failure

    for verb in ("put", "delete", "keep", "remove"):
        monkeypatch.setattr(type(talk._view.store), verb, refuse)
    for name in ("remember", "forget", "write_scratchpad", "clear_scratchpad"):
        arguments = {key: ident if value == "known" else value for key, value in VALID[name].items()}
        assert asked(talk, name, arguments) == {"error": {"type": kind, "field": None, "message": message}}
    assert asked(talk, "memory_store", {"text": "a"}) == {"ok": False, "error": message}
    assert asked(talk, "save_to_core", {"content": "a"}) == {"error": f"Failed to save: {message}"}


FULL = """
import resource, signal, sys, json
from recollect import Memory, tools
with Memory(sys.argv[1]) as memory:
    kept = tools.call(memory, "remember", {"content": "a heron"})["id"]
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    for number in range(1000):
        result = tools.call(memory, "remember", {"content": f"heron {number} " * 500})
        if "error" in result:
            break
    assert "error" in result, "the disk was never full"
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert memory.stats().total == number + 1
    assert tools.call(memory, "forget", {"id": kept})["count"] == 1
    print(result["error"]["type"], result["error"]["message"])
"""


def test_a_file_that_cannot_grow_is_an_error(tmp_path: Path, run: Callable[..., str]) -> None:
    kind, _, message = run(FULL, tmp_path / "m").partition(" ")
    assert kind.endswith("Error")
    assert message.strip()
