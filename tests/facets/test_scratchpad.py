"""The scratchpad: working state of a conversation, kept on a shelf, and shown to nobody who does not ask."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.common import Clock, Script
from support.concepts import Concepts
from support.stores import STORES, located

from recollect import AccessError, ConflictError, InputError, Memory, NotFoundError, SecretError

pytestmark = pytest.mark.clause("INK-11")


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with Memory(located(request.param, tmp_path / "m"), preset="inklings", clock=clock) as memory:
        yield memory


@pytest.fixture
def talk(memory: Memory) -> Memory:
    return memory.at(conversation="c1")


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -1, 1.5, "", " ", "a lynx", "null", [], {}, [[]], {"": None}, {"a": {"b": [1, "é", None]}}],
    ids=repr,
)
def test_any_json_comes_back_as_it_went(talk: Memory, value: Any) -> None:
    written = talk.scratchpad.write("k", value)
    assert written.value == value
    assert type(talk.scratchpad.read("k")) is type(value)
    assert talk.scratchpad.list() == [written]
    talk.scratchpad.write("k", "else")
    talk.undo()
    assert talk.scratchpad.read("k") == value
    talk.close()
    assert talk.scratchpad.read("k") == value


def test_a_note_is_overwritten_listed_by_key_and_cleared(talk: Memory, clock: Clock) -> None:
    pad = talk.scratchpad
    pad.write("b", 1)
    clock.forward(minutes=1)
    pad.write("a", [2])
    clock.forward(minutes=1)
    last = pad.write("b", {"three": 3})
    assert [(note.key, note.value) for note in pad.list()] == [("a", [2]), ("b", {"three": 3})]
    assert (last.created_at, last.updated_at) == (clock.now - timedelta(minutes=2), clock.now)
    assert last.version == 2
    assert pad.note("b") == last
    assert (pad.clear("b"), pad.clear("b"), pad.clear("never")) == (1, 0, 0)
    with pytest.raises(NotFoundError, match="the scratchpad of this conversation has nothing under 'b'"):
        pad.read("b")
    pad.write("c", 4)
    assert (pad.clear(), pad.list(), pad.clear()) == (2, [], 0)


def test_every_change_is_in_the_audit_log_and_can_be_undone(memory: Memory, talk: Memory) -> None:
    talk.scratchpad.write("secret plan", "draft")
    talk.scratchpad.write("secret plan", "final")
    assert [entry.action for entry in memory.audit.search()] == ["scratchpad", "scratchpad"]
    assert not any("plan" in str(entry) or "draft" in str(entry) for entry in memory.audit.search())
    memory.undo()
    assert talk.scratchpad.read("secret plan") == "draft"
    talk.scratchpad.clear()
    assert talk.scratchpad.list() == []
    memory.undo()
    assert talk.scratchpad.read("secret plan") == "draft"
    memory.undo()
    assert talk.scratchpad.list() == []
    assert all(log.ok for log in memory.audit.verify())


def test_a_change_that_was_written_over_is_not_undone_first(memory: Memory, talk: Memory) -> None:
    talk.scratchpad.write("plan", 1)
    (first,) = memory.audit.search()
    talk.scratchpad.write("plan", 2)
    with pytest.raises(ConflictError, match="was built on by"):
        memory.undo(first.id)
    assert talk.scratchpad.read("plan") == 2


def test_forgetting_a_conversation_forgets_its_notes(memory: Memory, talk: Memory) -> None:
    talk.scratchpad.write("plan", 1)
    talk.remember("we meet at noon")
    memory.at(conversation="c2").scratchpad.write("plan", 2)
    memory.forget(conversation="c1")
    assert (talk.scratchpad.list(), memory.at(conversation="c2").scratchpad.read("plan")) == ([], 2)
    memory.undo()
    assert talk.scratchpad.read("plan") == 1
    memory.forget(conversation="c1", erase=True)
    assert talk.scratchpad.list() == []


@pytest.mark.parametrize("kind", STORES)
def test_no_model_reads_it_and_nothing_counts_it(tmp_path: Path, kind: str) -> None:
    embedder = Concepts()
    with Memory(located(kind, tmp_path / "m"), preset="inklings", embedder=embedder) as memory:
        talk = memory.at(conversation="c1")
        for number in range(50):
            talk.scratchpad.write("plan", {"heron": number})
        memory.remember("a lynx")
        assert memory.recall("heron lynx")
        assert (memory.stats().total, memory.doctor().memories, memory.list(state=None)) == (1, 1, memory.list())
    assert embedder.embedded == ["a lynx"]


def test_it_is_kept_when_the_memory_is_closed_exported_and_imported(
    memory: Memory, talk: Memory, tmp_path: Path
) -> None:
    talk.scratchpad.write("plan", {"step": 2})
    memory.close()
    assert talk.scratchpad.read("plan") == {"step": 2}
    stream = io.BytesIO()
    memory.export(stream)
    stream.seek(0)
    with Memory(tmp_path / "copy", preset="inklings") as other:
        other.import_(stream)
        assert other.at(conversation="c1").scratchpad.read("plan") == {"step": 2}


def test_another_conversation_does_not_see_it(memory: Memory, talk: Memory) -> None:
    talk.scratchpad.write("plan", 1)
    other = memory.at(conversation="c2").scratchpad
    assert other.list() == []
    with pytest.raises(NotFoundError):
        other.read("plan")
    assert other.clear() == 0
    other.write("plan", 2)
    assert (talk.scratchpad.read("plan"), other.read("plan")) == (1, 2)


def test_an_agents_notes_are_its_own_and_come_before_the_shared_ones(memory: Memory, talk: Memory) -> None:
    ada, bob = (memory.at(agent=name, conversation="c1").scratchpad for name in ("ada", "bob"))
    talk.scratchpad.write("goal", "shared")
    ada.write("goal", "ada's")
    ada.write("own", 1)
    assert (ada.read("goal"), bob.read("goal"), talk.scratchpad.read("goal")) == ("ada's", "shared", "shared")
    assert [note.key for note in bob.list()] == ["goal"]
    assert [(note.key, note.value) for note in ada.list()] == [("goal", "ada's"), ("own", 1)]
    bob.write("goal", "bob's")
    assert (ada.read("goal"), bob.read("goal"), talk.scratchpad.read("goal")) == ("ada's", "bob's", "shared")
    assert ada.clear("own") == 1
    with pytest.raises(NotFoundError):
        ada.read("own")


def test_a_note_written_in_a_channel_is_one_of_its_own(memory: Memory, talk: Memory) -> None:
    talk.scratchpad.write("plan", 1)
    ops = memory.at(channel="ops", conversation="c1").scratchpad
    assert ops.read("plan") == 1
    ops.write("plan", 2)
    assert ops.clear() == 2
    assert talk.scratchpad.list() == []


def test_nothing_brings_it_up_by_itself(memory: Memory, talk: Memory) -> None:
    talk.scratchpad.write("heron", {"text": "the heron nests in May"})
    talk.remember("herons eat fish")
    for view in (memory, talk):
        assert [hit.memory.text for hit in view.recall("heron nests in May", limit=50)] == ["herons eat fish"]
        assert view.recall("heron nests", kind="scratchpad") == []
        assert view.recall("heron nests", as_of="2026-03-02", kind="scratchpad") == []
        assert [one.text for one in view.list()] == ["herons eat fish"]
        assert [one.text for one in view.list(state=None, contains="heron")] == ["herons eat fish"]
        assert [hit.memory.text for hit in view.query({"text": "heron*"})] == ["herons eat fish"]
        assert [hit.memory.text for hit in view.query({})] == ["herons eat fish"]
        assert "nests" not in str(view.consult("heron nests in May"))
        context = view.context([{"role": "user", "content": "when does the heron nest in May?"}])
        assert "herons eat fish" in str(context.messages)
        assert "nests in" not in str(context.messages)
    assert talk.list(kind="scratchpad") == []
    assert talk.query({"types": ["scratchpad"]}) == []


@pytest.mark.parametrize("preset", ["recollect", "atlas", "aegis", "inklings", "ledger", "journal"])
def test_no_preset_lets_it_fade_or_counts_it(tmp_path: Path, clock: Clock, preset: str) -> None:
    with Memory(tmp_path / "m", preset=preset, clock=clock) as memory:
        talk = memory.at(conversation="c1", agent="gaia")
        talk.scratchpad.write("plan", "heron")
        clock.now += timedelta(days=3650)
        memory.maintain(early=True)
        memory.compact()
        assert talk.scratchpad.read("plan") == "heron"
        assert "heron" not in str(talk.context([{"role": "user", "content": "the heron plan?"}]).text)


def test_the_quota_is_of_memories(tmp_path: Path, clock: Clock) -> None:
    with Memory(tmp_path / "m", preset="aegis", clock=clock) as memory:
        talk = memory.at(conversation="c1")
        talk.scratchpad.write("plan", 1)
        clock.forward(hours=1)
        memory.remember_many(f"note {number}" for number in range(500))
        memory.remember("the 501st", created_at=clock.now + timedelta(hours=1))
        memory.maintain()
        assert talk.scratchpad.read("plan") == 1
        assert len(memory.list(limit=1000)) == 500
        assert memory.list(contains="501st")


def test_what_is_remembered_under_the_same_kind_is_no_note(talk: Memory) -> None:
    talk.remember("not a note", kind="scratchpad", tier="conversation")
    talk.remember({"value": 1}, kind="scratchpad", tier="conversation", metadata={"key": 5})
    talk.remember({"key": "k", "value": 1}, kind="scratchpad", tier="workspace", metadata={"key": "k"})
    assert talk.scratchpad.list() == []


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("", 1, "key"),
        (" ", 1, "key"),
        ("x" * 101, 1, "key"),
        ("two\nlines", 1, "key"),
        (5, 1, "key"),
        ("k", float("nan"), "value"),
        ("k", "\ud800", "value"),
        ("k", b"bytes", "value"),
        ("k", {1: 2}, "value"),
        ("k", "x" * 2_000_000, "value"),
    ],
    ids=lambda value: ascii(value)[:30],  # a worker sends the name of a test with everything that it tells of it
)
def test_what_is_no_key_or_no_json_is_refused(talk: Memory, key: Any, value: Any, field: str) -> None:
    with pytest.raises(InputError) as refusal:
        talk.scratchpad.write(key, value)
    assert refusal.value.field == field
    assert talk.stats().total == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("plan", "use ghp_0123456789abcdefABCDEF0123456789abcd"),
        ("plan", {"deep": ["AKIA" + "Z7QX4MPL2RWT9KDN"]}),
        ("db_password", "kX9-wq2!Lm4z"),
        ("ghp_0123456789abcdefABCDEF0123456789abcd", 1),
    ],
)
def test_secrets_are_refused_here_too(talk: Memory, key: str, value: Any) -> None:
    talk.scratchpad.write("plan", "before")
    with pytest.raises(SecretError) as refusal:
        talk.scratchpad.write(key, value)
    assert "ghp_" not in str(refusal.value)
    assert [(note.key, note.value) for note in talk.scratchpad.list()] == [("plan", "before")]
    assert talk.audit.search("refused")


def test_what_a_preset_has_no_room_for_is_refused_and_noted(tmp_path: Path) -> None:
    with Memory(tmp_path / "m", preset="aegis") as memory:
        talk = memory.at(conversation="c1")
        talk.scratchpad.write("plan", "x " * 200)
        for key in ("plan", "other"):
            with pytest.raises(InputError, match="over the limit of 500"):
                talk.scratchpad.write(key, "x " * 300)
        assert [note.value for note in talk.scratchpad.list()] == ["x " * 200]
        assert [entry.action for entry in talk.audit.search()] == ["refuse", "refuse", "scratchpad"]


def test_it_needs_a_conversation_and_stays_in_its_view(memory: Memory, talk: Memory) -> None:
    with pytest.raises(InputError, match="conversation: must be chosen first"):
        _ = memory.scratchpad
    with pytest.raises(AccessError):
        talk.at(conversation="c2")


WRITER = """
import sys
from recollect import Memory
with Memory(sys.argv[1], preset="inklings") as memory:
    pad = memory.at(conversation="c1").scratchpad
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(20):
        pad.write(f"{sys.argv[2]}-{number}", number)
        pad.write("same", [sys.argv[2], number])
"""


@pytest.mark.parametrize("kind", STORES)
def test_two_processes_lose_nothing_and_the_same_key_is_one_note(
    tmp_path: Path, start: Callable[..., Script], kind: str
) -> None:
    url = located(kind, tmp_path / "m")
    with Memory(url, preset="inklings") as memory:
        memory.remember("the first")
    writers = [start(WRITER, url, name) for name in ("ada", "bob")]
    for writer in writers:
        assert writer.line() == "ready"
    for writer in writers:
        writer.tell("go")
    for writer in writers:
        writer.finish()
    with Memory(url, preset="inklings") as memory:
        notes = {note.key: note.value for note in memory.at(conversation="c1").scratchpad.list()}
        assert memory.at(conversation="c1").scratchpad.note("same").version == 40
    assert {key: value for key, value in notes.items() if key != "same"} == {
        f"{name}-{number}": number for name in ("ada", "bob") for number in range(20)
    }
    assert notes["same"][1] == 19


@pytest.mark.parametrize("who", ["account", "agent"])
def test_who_clears_everything_clears_what_is_its_own(memory: Memory, talk: Memory, who: str) -> None:
    talk.scratchpad.write("plan", "of all")
    talk.scratchpad.write("place", "of all")
    mine = talk.at(**{who: "u1"}).scratchpad
    mine.write("plan", "mine")
    assert mine.clear("plan") == 1
    assert mine.read("plan") == "of all"
    mine.write("plan", "mine")
    assert mine.clear() == 1
    assert [note.value for note in mine.list()] == ["of all", "of all"]
    assert mine.clear("place") == 1, "one that is named is cleared for all"
    assert talk.scratchpad.clear() == 1
