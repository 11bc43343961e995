"""Optional text is text: what is empty in another type is refused, and an unreadable thing breaks no list."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support import plain
from support.served import served
from support.stores import STORES, located

from recollect import InputError, Memory
from recollect.memory import view_of

FALSY = [None, 0, False, 0.0, [], {}]


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with Memory(located(request.param, tmp_path / "m"), embedder="none") as memory:
        yield memory


@pytest.mark.parametrize("value", FALSY, ids=repr)
def test_empty_values_that_are_not_text_are_refused(memory: Memory, value: Any) -> None:
    for field, call in (
        ("title", lambda: memory.conversations.start(value)),
        ("description", lambda: memory.channels.create("ops", value)),
        ("action", lambda: memory.audit.search(action=value)),
        ("about", lambda: memory.audit.search(about=value)),
        ("contains", lambda: memory.conversations.list(contains=value)),
        ("channel", lambda: memory.conversations.start("x", channel=value)),
        ("source", lambda: memory.knowledge.add("text", title="x", source=value)),
    ):
        if value is None and field in ("channel", "source"):
            continue  # their default
        with pytest.raises(InputError) as refused:
            call()
        assert refused.value.field == field
    assert memory.conversations.list() == []
    assert [channel.name for channel in memory.channels.list()] == ["general"]


def test_a_stranger_breaks_no_list_over_http(memory: Memory) -> None:
    with served(memory) as server:
        mallory = server.headers("member", tenant="default", account="mallory")
        ann = server.headers("member", tenant="default", account="ann")
        for value in FALSY:
            for path, body in (
                ("/conversations", {"title": value}),
                ("/channels", {"name": "ops", "description": value}),
            ):
                assert plain.post(f"{server.url}/v1{path}", headers=mallory, json=body).status_code == 400
        for path in ("/conversations", "/channels"):
            assert plain.get(f"{server.url}/v1{path}", headers=ann).status_code == 200


@pytest.mark.parametrize(
    "damage", [{"title": None}, {"status": "gone"}, {"ended_at": "never"}, {"channel": [1]}], ids=repr
)
def test_a_conversation_that_cannot_be_read_is_left_out_and_logged(
    memory: Memory, damage: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = memory.conversations.start("good"), memory.conversations.start("wrong")
    _damage(memory, "conversations", "wrong", damage)
    with caplog.at_level(logging.ERROR, "recollect.store"):
        assert [one.id for one in memory.conversations.list()] == [good.id]
    assert "corruption detected" in caplog.text
    assert memory.at(conversation=bad.id).scratchpad.list() == []
    assert memory.at(channel="general").recall("anything") == []


def test_channels_notes_and_cases_that_cannot_be_read_are_left_out(memory: Memory) -> None:
    memory.channels.create("ops", "wrong")
    memory.channels.create("lab", "good")
    pad = memory.at(conversation="c").scratchpad
    pad.write("wrong", 1)
    pad.write("good", 2)
    memory.cases.save("wrong", texts=["x"])
    memory.cases.save("good", texts=["y"])
    _damage(memory, "channels", "wrong", {"description": False})
    _damage(memory, "scratchpad", "wrong", {"key": 5})
    _damage(memory, "cases", "wrong", {"limit": "many"})
    assert [channel.name for channel in memory.channels.list()] == ["general", "lab"]
    assert [note.key for note in pad.list()] == ["good"]
    assert [case.question for case in memory.cases.list()] == ["good"]


def _damage(memory: Memory, shelf: str, text: str, fields: dict[str, Any]) -> None:
    """Write other values into the body that has a text, as an earlier version or a broken disk could have."""
    view = view_of(memory)
    (thing,) = view.store.shelf(view.place, shelf, contains=text)
    with view.store.transaction(view.place):
        view.store.keep(view.place, replace(thing, body={**thing.body, **fields}))
