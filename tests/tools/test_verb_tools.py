"""The verbs as tools: revise, list, undo, sharing, short ids, kinds, and what a refusal names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.stores import STORES, located

from recollect import Memory, tools
from recollect.memory import view_of
from recollect.text import short_ids

SECRET = "AKIA" + "Z7QX4MPL2RWT9KDN"


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with Memory(located(request.param, tmp_path / "m")) as memory:
        yield memory


def call(memory: Memory, name: str, **arguments: Any) -> dict[str, Any]:
    result = tools.call(memory, name, arguments)
    (schema,) = [tool.output for tool in tools.all() if tool.name == name]
    jsonschema.validate(result, schema)
    return result


def test_a_memory_is_revised_listed_and_the_change_undone(memory: Memory) -> None:
    me = memory.at(agent="atlas")
    first = call(me, "remember", content="Alice lives in Lisbon", tags=["people"])
    second = call(me, "revise", id=first["id"], content="Alice lives in Porto")
    assert second["replaces"] == first["id"]
    (listed,) = call(me, "list")["memories"]
    assert (listed["text"], listed["tags"]) == ("Alice lives in Porto", ["people"])
    assert "undid" in call(me, "undo")["message"]
    assert [one["text"] for one in call(me, "list", since="yesterday")["memories"]] == ["Alice lives in Lisbon"]
    assert call(me, "list", until="yesterday") == {"count": 0, "memories": []}
    call(me, "forget", id=first["id"])
    assert call(me, "list")["count"] == 0


def test_what_is_shared_is_seen_by_all_agents_and_the_rest_is_not(memory: Memory) -> None:
    one, other = memory.at(agent="one"), memory.at(agent="other")
    call(one, "remember", content="the build takes nine minutes", shared=True)
    call(one, "remember", content="my own thought")
    assert [found["text"] for found in call(other, "list")["memories"]] == ["the build takes nine minutes"]
    assert call(one, "list")["count"] == 2
    call(one, "undo")
    call(one, "undo")
    assert call(other, "list")["count"] == 0


def test_a_unique_part_of_an_id_is_enough(memory: Memory) -> None:
    stored = call(memory, "remember", content="Alice lives in Lisbon")
    new = call(memory, "revise", id=stored["id"][-8:], content="Alice lives in Porto")
    assert new["replaces"] == stored["id"]
    assert stored["id"] in call(memory, "forget", id=new["id"][-12:])["ids"]
    assert call(memory, "forget", id="zzzzzzzz")["error"]["type"] == "NotFoundError"
    assert call(memory, "forget", id="z")["error"]["field"] == "id"


def test_a_part_of_an_id_reaches_no_other_agents_memory(memory: Memory) -> None:
    private = memory.at(agent="zoe").remember("a private thought")
    refused = call(memory.at(agent="max"), "forget", id=private.id[-8:])
    assert refused["error"]["type"] in ("NotFoundError", "InputError")
    assert memory.get(private.id)


def test_an_unknown_kind_says_which_there_are(memory: Memory) -> None:
    call(memory, "remember", content="Alice prefers tabs", kind="preference")
    assert call(memory, "recall", query="tabs", kind="preferense")["kinds"] == ["preference"]
    assert call(memory, "list", kind="preferense")["kinds"] == ["preference"]
    assert "kinds" not in call(memory, "recall", query="zebra crossing", kind="preference")
    for name, given in {"remember": {"content": "x"}, "list": {}, "recall": {"query": "x"}}.items():
        refused = call(memory, name, kind="My Kind", **given)["error"]
        assert refused["field"] == "kind"
        assert "in use: preference" in refused["message"]


@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [
        ("remember", {"content": f"key {SECRET}"}, "content"),
        ("remember", {"content": "x", "tags": [SECRET]}, "tags"),
        ("remember", {"content": "x", "kind": SECRET}, "kind"),
        ("forget", {"id": SECRET}, "id"),
        ("recall", {"query": "x", "since": SECRET}, "since"),
        ("remember", {SECRET: "x"}, "arguments"),
    ],
)
def test_a_refusal_names_the_rule_and_the_field(
    memory: Memory, name: str, arguments: dict[str, Any], field: str
) -> None:
    refused = call(memory, name, **arguments)["error"]
    assert (refused["type"], refused["field"], refused["rule"]) == ("SecretError", field, "aws-key-id")
    assert SECRET not in str(refused)


@pytest.mark.parametrize("kind", STORES)
def test_a_short_id_is_looked_up_without_reading_the_memories(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory(located(kind, tmp_path / "memory")) as memory:
        records = memory.remember_many([f"heron {n}" for n in range(50)])

        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("all memories were listed")

        store = type(view_of(memory).store)
        monkeypatch.setattr(store, "scan", refuse)
        assert short_ids.resolve(memory, records[7].id[-10:]) == records[7].id
        assert memory.ids_like(records[8].id) == [records[8].id]
