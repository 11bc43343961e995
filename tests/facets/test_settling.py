"""What is said in conversations takes the place of what it says is so no longer, and of nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from support.stores import STORES, located

from recollect import ConflictError, Memory


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with Memory(located(request.param, tmp_path / "m"), preset="recollect", embedder="none") as memory:
        yield memory


def talked(memory: Memory, *turns: str) -> None:
    with memory.conversation("a talk") as talk:
        for turn in turns:
            talk.say("user", turn)


def texts(memory: Memory) -> set[str]:
    return {record.text for record in memory.list(limit=1000)}


OLD = ("I live in Lisbon.", "My sister lives in Rome.", "I work at Bosch.", "I like jazz.")


def test_a_move_told_in_other_words_ends_the_old_address(memory: Memory) -> None:
    talked(memory, *OLD)
    talked(memory, "I moved to Porto last month.", "I like the blues.")
    assert texts(memory) == {*OLD, "I moved to Porto last month.", "I like the blues."} - {"I live in Lisbon."}
    (new,) = [record for record in memory.list(limit=10) if "Porto" in record.text]
    assert [record.text for record in memory.history(new.id)] == ["I live in Lisbon.", "I moved to Porto last month."]


def test_the_newer_of_two_in_one_conversation_stays(memory: Memory) -> None:
    talked(memory, "I live in Lisbon.", "I moved to Porto last month.")
    assert texts(memory) == {"I moved to Porto last month."}


def test_what_is_said_again_ends_nothing_and_comes_once(memory: Memory) -> None:
    for _ in range(3):
        talked(memory, *OLD)
    assert texts(memory) == set(OLD)


def test_an_observation_settles_too_and_can_be_undone(memory: Memory) -> None:
    talked(memory, *OLD)
    with memory.conversation("another") as talk:
        talk.observe("I moved to Porto last month.")
        assert "I live in Lisbon." not in texts(memory)
        talk.memory.undo()
        assert texts(memory) >= set(OLD)
        assert "I moved to Porto last month." not in texts(memory)


def test_a_conversations_end_is_undone_as_one(memory: Memory) -> None:
    talked(memory, *OLD)
    talked(memory, "I moved to Porto last month.")
    memory.undo()
    assert "I live in Lisbon." in texts(memory)


@pytest.mark.parametrize("other", [{"account": "bob"}, {"agent": "helper"}, {"workspace": "shop"}])
def test_another_ones_memories_are_never_touched(memory: Memory, other: dict[str, str]) -> None:
    theirs = memory.at(**other)
    theirs.remember("I live in Lisbon.")
    talked(memory, "I moved to Porto last month.")
    assert "I live in Lisbon." in texts(theirs)
    talked(memory.at(account="ann"), "I moved to Braga.")
    assert texts(memory.at(account="ann")) >= {"I moved to Braga."}
    assert "I live in Lisbon." in texts(theirs)


def test_a_series_of_readings_stays(memory: Memory) -> None:
    for number in range(6):
        memory.remember(f"The rate limit of service {number} is {number}00 requests.")
    series = [f"I weigh {weight} kg." for weight in (80, 79, 78, 77, 76)]
    for reading in series:
        memory.remember(reading)
    talked(memory, "I weigh 75 kg now.")
    assert {*series, "I weigh 75 kg now."} <= texts(memory)


def test_a_task_is_closed_by_who_says_that_it_is_done(memory: Memory) -> None:
    talked(memory, "I need to renew my passport before June.", "I have to call the dentist.")
    talked(memory, "I renewed my passport on Monday.")
    open_tasks = {record.text for record in memory.list(kind="task")}
    assert open_tasks == {"I have to call the dentist."}


def test_a_task_is_put_away_by_a_sentence_that_is_no_fact(memory: Memory) -> None:
    talked(memory, "I need to renew my passport before June.", "I have to call the dentist.")
    theirs = memory.at(account="bob")
    talked(theirs, "I need to renew my passport before June.")
    talked(memory, "got my passport renewed today!!", "Did I call the dentist?")
    assert {record.text for record in memory.at(account=None).list(kind="task")} >= {"I have to call the dentist."}
    mine = [record for record in memory.list(kind="task") if record.address.account is None]
    assert {record.text for record in mine} == {"I have to call the dentist."}
    assert [record.text for record in theirs.list(kind="task") if record.address.account] == [
        "I need to renew my passport before June."
    ]


def test_an_appointment_that_is_called_off_is_over(memory: Memory) -> None:
    talked(memory, "The demo is on Friday at 10.")
    talked(memory, "We call the demo off.")
    assert texts(memory) == {"We call the demo off."}


def test_a_preset_keeps_all_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "quiet.toml").write_text('name = "quiet"\n[conversations]\nsupersede = false\n')
    with Memory(tmp_path / "m", preset=str(tmp_path / "quiet.toml"), embedder="none") as memory:
        talked(memory, *OLD)
        talked(memory, "I moved to Porto last month.")
        assert texts(memory) == {*OLD, "I moved to Porto last month."}


def test_what_is_ended_is_found_as_of_then(memory: Memory) -> None:
    talked(memory, *OLD)
    before: Sequence[str] = [hit.memory.text for hit in memory.recall("Where do I live?")]
    assert "I live in Lisbon." in before
    talked(memory, "I moved to Porto last month.")
    assert "I live in Lisbon." not in [hit.memory.text for hit in memory.recall("Where do I live?")]


SURE, MAY = "My name is Ada and I live in Lisbon.", "I moved to Porto last month."


def test_what_may_be_a_change_is_proposed_and_both_stay(memory: Memory) -> None:
    memory.remember(SURE)
    talked(memory, MAY)
    (proposal,) = memory.proposals()
    assert proposal.act == "replace"
    assert [memory.get(ident).text for ident in proposal.ids] == [SURE, MAY]
    assert texts(memory) == {SURE, MAY}
    assert {finding.problem: finding.count for finding in memory.doctor().findings}["possible changes"] == 1
    memory.confirm(proposal.id)
    assert texts(memory) == {MAY}
    assert memory.proposals() == []
    memory.undo()
    assert texts(memory) == {SURE, MAY}


def test_a_dismissed_change_leaves_both(memory: Memory) -> None:
    memory.remember(SURE)
    talked(memory, MAY)
    memory.dismiss(memory.proposals()[0].id)
    assert texts(memory) == {SURE, MAY}
    assert memory.proposals() == []


def test_what_was_forgotten_meanwhile_is_proposed_no_more(memory: Memory) -> None:
    memory.remember(SURE)
    talked(memory, MAY)
    (proposal,) = memory.proposals()
    memory.forget(proposal.ids[0])
    assert memory.proposals() == []
    with pytest.raises(ConflictError):
        memory.confirm(proposal.id)
    assert texts(memory) == {MAY}


def test_an_erased_memory_takes_its_proposals_along(memory: Memory) -> None:
    memory.remember(SURE)
    talked(memory, MAY)
    memory.forget(memory.proposals()[0].ids[1], erase=True)
    assert memory.proposals() == []
    assert texts(memory) == {SURE}
