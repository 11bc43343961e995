"""A channel is a wall: a view bound to one sees, changes and counts nothing of the others, through every verb."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.stores import STORES, located

from recollect import AccessError, ConflictError, Memory, NotFoundError, presets

pytestmark = pytest.mark.clause("INK-24", "INK-12")
WORD = "saffron"


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with Memory(located(request.param, tmp_path / "memory"), embedder="none") as memory:
        memory.channels.create("cooking", "about food")
        memory.channels.create("travel", "about roads")
        yield memory


def cook(memory: Memory) -> tuple[str, list[str]]:
    """A conversation in the channel `cooking`: its ref code, and the ids of a turn and of memories of both tiers."""
    kitchen = memory.at(channel="cooking")
    started = kitchen.conversations.start(f"how much {WORD}")
    turn = kitchen.conversations.say(started.id, "user", f"I put {WORD} into the rice")
    inside = kitchen.at(conversation=started.id)
    own = inside.remember(f"{WORD} is dear", tier="conversation")
    room = inside.remember(f"{WORD} is in the cupboard", tier="channel")
    inside.scratchpad.write("spice", WORD)
    return started.ref_code, [turn.id, own.id, room.id]


def test_nothing_of_another_channel_is_seen(memory: Memory) -> None:
    ref, ids = cook(memory)
    road = memory.at(channel="travel")
    assert road.recall(WORD, limit=50) == []
    assert road.list(state=None) == []
    assert road.stats().total == 0
    assert road.conversations.list(status="active") == []
    assert road.orient(f"{WORD} rice").sections == ()
    assert not any(WORD in str(message) for message in road.context([{"role": "user", "content": WORD}]).messages[:-1])
    for ident in ids:
        assert road.diagnose(ident).status == "unknown"
        for verb in (road.get, road.history, road.forget, road.archive):
            with pytest.raises(NotFoundError):
                verb(ident)
        with pytest.raises(NotFoundError):
            road.revise(ident, content="pepper")
    with pytest.raises(NotFoundError):
        road.conversations.get(ref)
    with pytest.raises(NotFoundError):
        road.undo()
    assert {record.id for record in memory.list(state=None)} == set(ids)


def test_a_bulk_forget_leaves_other_channels_alone(memory: Memory) -> None:
    ref, ids = cook(memory)
    conversation = memory.conversations.get(ref).id
    road = memory.at(channel="travel")
    assert road.forget(since="2000-01-01", erase=True).count == 0
    assert road.forget(conversation=ref).count == 0
    assert road.forget(conversation=conversation).count == 0
    assert {record.id for record in memory.list(state=None)} == set(ids)
    assert memory.conversations.get(ref).status == "active"
    assert memory.at(conversation=conversation).scratchpad.read("spice") == WORD


def test_a_scratchpad_belongs_to_the_channel_of_its_conversation(memory: Memory) -> None:
    ref, _ = cook(memory)
    conversation = memory.conversations.get(ref).id
    road = memory.at(channel="travel", conversation=conversation)
    assert road.scratchpad.list() == []
    road.scratchpad.write("spice", "pepper")
    assert road.scratchpad.clear() == 1
    assert memory.at(conversation=conversation).scratchpad.read("spice") == WORD
    assert memory.at(channel="cooking", conversation=conversation).scratchpad.read("spice") == WORD


def test_conversations_of_one_name_in_two_channels_have_a_scratchpad_each(memory: Memory) -> None:
    kitchen, road = (memory.at(channel=name, conversation="today").scratchpad for name in ("cooking", "travel"))
    kitchen.write("where", "stove")
    with pytest.raises(NotFoundError):
        road.read("where")
    road.write("where", "Rome")
    assert (kitchen.read("where"), road.read("where")) == ("stove", "Rome")
    assert road.clear() == 1
    assert kitchen.read("where") == "stove"


def test_what_was_recorded_in_a_channel_is_not_read_in_another(memory: Memory) -> None:
    memory.at(channel="cooking").audit.record("note", f"bought {WORD}", {"price": WORD})
    assert WORD not in str(memory.at(channel="travel").audit.search(limit=100))
    assert memory.at(channel="cooking").audit.search(WORD)[0].message == f"bought {WORD}"


def test_a_view_of_one_channel_cannot_walk_into_another(memory: Memory) -> None:
    with pytest.raises(AccessError):
        memory.at(channel="travel").at(channel="cooking")
    with pytest.raises(NotFoundError):
        memory.at(channel="travel").channels.get("cooking")


@pytest.mark.parametrize("preset", sorted({"recollect", "atlas", "inklings", "journal"} & set(presets.names())))
def test_the_wall_stands_in_every_preset(preset: str, tmp_path: Path) -> None:
    with Memory(tmp_path / "memory", preset=preset, embedder="none") as memory:
        for name in ("cooking", "travel"):
            memory.channels.create(name)
        _, ids = cook(memory)
        road = memory.at(channel="travel")
        assert road.recall(WORD) == []
        assert road.list(state=None) == []
        assert road.forget(since="2000-01-01").count == 0
        assert {record.id for record in memory.list(state=None)} == set(ids)


def test_a_conversation_of_the_same_name_is_another_in_each_channel(memory: Memory) -> None:
    """Also where somebody starts one of the same name on purpose, to end it or to read its notes."""
    ref, _ = cook(memory)
    conversation = memory.conversations.get(ref).id
    thief = memory.at(account="thief", channel="travel", conversation=conversation)
    thief.conversations.start("mine")
    assert thief.scratchpad.list() == []
    thief.conversations.end(conversation)
    assert thief.recall(WORD) == []
    kitchen = memory.at(channel="cooking")
    assert kitchen.conversations.get(ref).status == "active"
    assert WORD in kitchen.list(conversation=conversation, role="user")[0].text
    memory.forget(account="thief", erase=True)
    assert WORD in kitchen.list(conversation=conversation, role="user")[0].text
    assert kitchen.at(conversation=conversation).scratchpad.read("spice") == WORD


def test_a_change_of_one_channel_is_not_undone_in_another(memory: Memory) -> None:
    blue, red = memory.at(channel="cooking"), memory.at(channel="travel")
    noted = blue.remember("for all to see", tier="workspace")
    blue.cases.save("what is for all?", texts=["see"])
    assert red.cases.list() == []
    with pytest.raises(NotFoundError):
        red.undo()
    blue.undo()
    assert blue.cases.list() == []
    blue.at(conversation="c1").archive(noted.id)
    blue.undo()  # made in a narrower view of it
    assert memory.get(noted.id).archived_at is None


def test_an_observation_is_the_views_own_change(memory: Memory) -> None:
    other = memory.at(account="u2", channel="cooking").remember("of u2", tier="workspace")
    inside = memory.at(conversation="c1")
    seen = inside.conversations.observe("the build is slow")
    inside.undo()
    assert [record.id for record in memory.list()] == [other.id] != [seen.id]


def test_an_export_has_no_other_channel(memory: Memory) -> None:
    out = io.BytesIO()
    memory.at(channel="travel").export(out)
    assert b"about food" not in out.getvalue()
    assert b"about roads" in out.getvalue()


def test_forgetting_a_conversation_leaves_one_of_the_same_name_in_another_channel(memory: Memory) -> None:
    kitchen, road = (memory.at(channel=name, conversation="today") for name in ("cooking", "travel"))
    for view, account in ((kitchen, "u1"), (road, "u2")):
        view.at(account=account).conversations.start("hello")
        view.scratchpad.write("where", account)
    road.forget(conversation="today", erase=True)
    assert kitchen.scratchpad.read("where") == "u1"
    assert [talk.channel for talk in memory.conversations.list()] == ["cooking"]


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("bound", ["channel", "conversation"])
def test_everything_of_a_person_is_everything_inside_the_wall(memory: Memory, erase: bool, bound: str) -> None:
    kitchen = memory.at(account="ann", agent="gaia", channel="cooking")
    talk = kitchen.conversations.start("dinner")
    kitchen.conversations.say(talk.id, "user", f"{WORD} please")
    kitchen.at(conversation=talk.id).scratchpad.write("spice", WORD)
    kitchen.cases.save(f"where is the {WORD}?", texts=["cupboard"])
    memory.at(account="ann").cases.save(f"who likes {WORD}?", texts=["Ann"])
    memory.at(workspace="other", account="ann", agent="gaia").remember(f"Ann likes {WORD}")
    before = [(record.id, record.content) for view in (memory, memory.at(workspace="other")) for record in view.list()]
    road = memory.at(channel="travel")
    outside = road if bound == "channel" else road.at(conversation="another")
    for whose in ({"account": "ann"}, {"agent": "gaia"}):
        assert outside.forget(**whose, erase=erase).count == 0
    now = [(record.id, record.content) for view in (memory, memory.at(workspace="other")) for record in view.list()]
    assert now == before
    assert [known.id for known in memory.conversations.list()] == [talk.id]
    assert memory.at(channel="cooking", conversation=talk.id, account="ann", agent="gaia").scratchpad.read("spice")
    assert len(memory.cases.list()) == 2
    assert kitchen.forget(account="ann", erase=erase).count == 1
    assert (memory.list(), memory.conversations.list()) == ([], [])
    assert [case.question for case in memory.cases.list()] == [f"who likes {WORD}?"]


def test_each_channel_has_a_conversation_of_the_same_name(memory: Memory) -> None:
    talks = [
        memory.at(channel=channel, conversation="today").conversations.start(channel)
        for channel in ("cooking", "travel")
    ]
    assert [talk.id for talk in talks] == ["today", "today"]
    for talk in talks:
        view = memory.at(channel=talk.channel)
        assert [known.title for known in view.conversations.list()] == [talk.channel]
        assert view.conversations.get("today").title == talk.channel
        assert memory.conversations.get(talk.ref_code).title == talk.channel
        with pytest.raises(ConflictError):
            view.at(conversation="today").conversations.start("again")


def test_a_view_of_a_channel_is_not_told_of_others_by_making_one(memory: Memory) -> None:
    for name in ("cooking", "unheard of"):
        with pytest.raises(AccessError, match="bound to travel"):
            memory.at(channel="travel").channels.create(name)
