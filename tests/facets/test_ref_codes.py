"""A ref code stands for its conversation wherever an argument names one, and nowhere for another conversation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import called
from support.stores import STORES, located

from recollect import Memory
from recollect.operations import all_operations, signature
from recollect.values.bodies import REF_CODE_LENGTH


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with Memory(located(request.param, tmp_path / "m")) as memory:
        yield memory


def texts(memory: Memory, conversation: str) -> set[str]:
    listed = memory.list(conversation=conversation)
    recalled = memory.recall("rain", conversation=conversation, min_relevance=0)
    named = memory.about("rain", conversation=conversation)
    assert {hit.memory.id for hit in named} == {record.id for record in listed}
    assert {record.id for record in listed} == {hit.memory.id for hit in recalled}
    return {record.text for record in listed}


def test_each_verb_means_the_same_conversation_by_code_and_by_id(memory: Memory) -> None:
    talk = memory.conversations.start("rain")
    memory.remember("rain by id", conversation=talk.id)
    memory.remember("rain by code", conversation=talk.ref_code)
    memory.remember_many([{"content": "rain of many", "conversation": talk.ref_code}])
    memory.remember("rain elsewhere", conversation="elsewhere")
    assert texts(memory, talk.id) == texts(memory, talk.ref_code) == {"rain by id", "rain by code", "rain of many"}
    assert memory.conversations.get(talk.ref_code) == memory.conversations.get(talk.id)


@pytest.mark.parametrize("erase", [False, True])
def test_what_is_listed_by_a_code_is_what_is_forgotten_by_it(memory: Memory, erase: bool) -> None:
    talk = memory.conversations.start("rain")
    for name in (talk.id, talk.ref_code):
        memory.remember(f"rain, {name}", conversation=name)
    other = memory.remember("rain elsewhere", conversation="elsewhere")
    shown = {record.id for record in memory.list(conversation=talk.ref_code)}
    assert set(memory.forget(conversation=talk.ref_code, erase=erase).ids) == shown
    assert [record.id for record in memory.list(state=None)] == [other.id]


def test_a_name_that_only_looks_like_a_code_is_a_name(memory: Memory) -> None:
    name = "m" * REF_CODE_LENGTH
    memory.remember("rain", conversation=name)
    assert texts(memory, name) == {"rain"}


def test_a_code_that_a_view_cannot_see_leads_it_nowhere(memory: Memory) -> None:
    talk = memory.at(agent="atlas").conversations.start("rain")
    memory.at(agent="atlas").remember("rain of atlas", conversation=talk.id)
    assert texts(memory.at(agent="other"), talk.ref_code) == set()
    assert memory.at(agent="other").forget(conversation=talk.ref_code).count == 0
    assert texts(memory.at(agent="atlas"), talk.ref_code) == {"rain of atlas"}


def test_every_operation_that_names_a_conversation_is_tried_here() -> None:
    naming = {
        name
        for name in all_operations()
        for parameter in signature(name).takes
        if parameter.names == "conversation" and not name.startswith(("conversations.", "moments.record_"))
    }
    assert naming == {"remember", "list", "recall", "about", "forget"}


def test_the_command_line_goes_into_a_conversation_by_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Memory("./memory") as memory:
        talk = memory.conversations.start("rain")
    for name in (talk.ref_code, talk.id):
        assert called("remember", f"rain, {name}", "--conversation", name).returncode == 0
        assert called("scratchpad", "write", name, "x", "--conversation", name).returncode == 0
    with Memory("./memory") as memory:
        assert {record.address.conversation for record in memory.list()} == {talk.id}
        assert len(memory.at(conversation=talk.id).scratchpad.list()) == 2
