"""Channels and conversations: their states, what is cleared, what stays, whoever ends them and however often."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.common import LONG, Clock
from support.stores import DATABASES, STORES, located, traces
from support.watchdog import together

from recollect import (
    ConflictError,
    ConversationTransitionError,
    InputError,
    Memory,
    NotFoundError,
    SecretError,
    tools,
)
from recollect.policies.extraction import extract
from recollect.stores import open_store
from recollect.stores.port import Place


@pytest.fixture(params=STORES)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "m")


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.fixture
def memory(location: str, clock: Clock) -> Iterator[Memory]:
    with Memory(location, preset="recollect", embedder="none", clock=clock) as memory:
        yield memory


# Channels


@pytest.mark.clause("INK-07")
def test_every_workspace_has_a_default_channel_and_users_make_more(memory: Memory, clock: Clock) -> None:
    shop, home = memory.at(workspace="shop"), memory.at(workspace="home")
    (default,) = shop.channels.list()
    assert (default.name, default.is_default, default.workspace_id) == ("general", True, "shop")
    assert default.created_at == clock()
    ops = shop.channels.create("ops", "what runs where")
    assert (ops.name, ops.description, ops.is_default) == ("ops", "what runs where", False)
    assert shop.channels.list() == [default, ops]
    assert shop.channels.get("ops") == shop.channels.get(ops.id) == ops
    assert [channel.name for channel in home.channels.list()] == ["general"]
    assert home.channels.list()[0].id != default.id
    with pytest.raises(ConflictError, match="ops already"):
        shop.channels.create("ops")
    with pytest.raises(NotFoundError):
        home.channels.get("ops")
    with pytest.raises(InputError, match="channel"):
        shop.channels.create("")
    with pytest.raises(SecretError):
        shop.channels.create("x", "the password: hunter2")
    assert shop.channels.list() == [default, ops]


@pytest.mark.clause("INK-07")
def test_a_channel_has_many_conversations(memory: Memory) -> None:
    memory.channels.create("ops")
    ops = [memory.conversations.start(f"number {n}", channel="ops") for n in range(3)]
    other = memory.conversations.start("elsewhere")
    assert [one.id for one in memory.conversations.list(channel="ops")] == [one.id for one in reversed(ops)]
    assert {one.channel_id for one in ops} == {memory.channels.get("ops").id}
    assert memory.conversations.list(channel="general") == [other]
    assert memory.at(channel="ops").conversations.start().channel == "ops"
    assert [one.channel for one in memory.at(channel="ops").conversations.list()] == ["ops"] * 4
    with pytest.raises(NotFoundError, match="no channel nowhere"):
        memory.conversations.start("x", channel="nowhere")


# Conversations


@pytest.mark.clause("INK-08")
@pytest.mark.clause("INK-23")
def test_a_conversation_is_started_found_ended_and_put_away(memory: Memory, clock: Clock) -> None:
    started = memory.conversations.start("the trip")
    assert re.fullmatch("[0-9A-Za-z]{11}", started.ref_code)
    assert (started.status, started.started_at, started.ended_at) == ("active", clock(), None)
    assert memory.conversations.get(started.id) == memory.conversations.get(started.ref_code) == started
    clock.forward(hours=1)
    idle = memory.conversations.end(started.ref_code)
    assert (idle.status, idle.ended_at, idle.ref_code) == ("idle", clock(), started.ref_code)
    assert memory.conversations.list() == [idle]
    clock.forward(hours=1)
    archived = memory.conversations.archive(started.id)
    assert (archived.status, archived.ended_at) == ("archived", idle.ended_at)
    assert memory.conversations.list() == []
    assert memory.conversations.list(status="archived") == [archived]
    forced = memory.conversations.archive(memory.conversations.start().id)
    assert (forced.status, forced.ended_at) == ("archived", clock())


@pytest.mark.clause("INK-08")
@pytest.mark.parametrize(
    ("path", "wanted"),
    [(["end"], "end"), (["archive"], "end"), (["archive"], "archive"), (["end", "archive"], "archive")],
)
def test_a_wrong_transition_is_a_typed_error_and_changes_nothing(memory: Memory, path: list[str], wanted: str) -> None:
    started = memory.conversations.start()
    for step in path:
        getattr(memory.conversations, step)(started.id)
    before = memory.conversations.get(started.id), len(memory.audit.search(""))
    with pytest.raises(ConversationTransitionError) as caught:
        getattr(memory.conversations, wanted)(started.id)
    assert caught.value.status == before[0].status
    assert (memory.conversations.get(started.id), len(memory.audit.search(""))) == before


def test_lists_have_filters_and_pages(memory: Memory) -> None:
    made = [memory.conversations.start(f"topic {n} {'even' if n % 2 == 0 else 'odd'}") for n in range(10)]
    memory.conversations.end(made[3].id)
    newest = [one.id for one in reversed(made)]
    assert [one.id for one in memory.conversations.list()] == newest
    assert [one.id for one in memory.conversations.list(limit=4)] == newest[:4]
    assert [one.id for one in memory.conversations.list(limit=4, after=newest[3])] == newest[4:8]
    assert [one.id for one in memory.conversations.list(contains="ODD")] == newest[::2]
    assert [one.id for one in memory.conversations.list(status="idle")] == [made[3].id]
    with pytest.raises(InputError, match="limit"):
        memory.conversations.list(limit=0)
    with pytest.raises(InputError, match="status"):
        memory.conversations.list(status="gone")  # type: ignore[arg-type]


def test_a_view_that_is_bound_to_a_conversation_starts_that_one(memory: Memory) -> None:
    monday = memory.at(conversation="monday")
    assert monday.conversations.start("standup").id == "monday"
    with pytest.raises(ConflictError, match="started already"):
        monday.conversations.start()
    other = memory.conversations.start()
    with pytest.raises(NotFoundError):
        monday.conversations.end(other.id)


def test_what_agents_said_to_themselves_stays_theirs_whoever_ends_it(memory: Memory) -> None:
    started = memory.conversations.start()
    for agent in ("a", "b"):
        view = memory.at(agent=agent)
        view.conversations.say(started.id, "user", f"The code of door {agent} is blue.")
    memory.at(agent="b").conversations.end(started.id)
    assert [record.content for record in memory.at(agent="a").list()] == ["The code of door a is blue."]
    assert [record.content for record in memory.at(agent="b").list()] == ["The code of door b is blue."]
    assert memory.stats().tiers.get("conversation", 0) == 0


def test_others_conversations_are_not_there(memory: Memory) -> None:
    mine, yours = memory.at(agent="a", account="u"), memory.at(agent="b")
    started = mine.conversations.start("secret plans")
    for view in (yours, memory.at(account="v"), memory.at(workspace="w"), memory.at(tenant="t")):
        assert view.conversations.list() == []
        for verb in (view.conversations.get, view.conversations.end, view.conversations.archive):
            for name in (started.id, started.ref_code):
                with pytest.raises(NotFoundError) as caught:
                    verb(name)
                assert name == started.id or started.id not in str(caught.value)
    assert memory.conversations.get(started.id).status == "active"


# What is cleared and what stays


@pytest.mark.clause("INK-01")
@pytest.mark.parametrize("end", ["end", "archive"])
def test_what_is_for_a_conversation_alone_is_cleared_when_it_ends(memory: Memory, end: str) -> None:
    started, other = memory.conversations.start(), memory.conversations.start()
    inside, beside = memory.at(conversation=started.id), memory.at(conversation=other.id)
    inside.remember("only for now", tier="conversation")
    inside.at(agent="a").remember("mine for now", tier="conversation")
    stays = inside.remember("for everyone")
    theirs = beside.remember("of another", tier="conversation")
    inside.scratchpad.write("step", 3)
    getattr(memory.conversations, end)(started.id)
    assert {record.id for record in memory.list(state=None)} == {stays.id, theirs.id}
    assert inside.scratchpad.read("step") == 3
    if end == "end":
        memory.conversations.archive(started.id)
        assert inside.scratchpad.read("step") == 3


@pytest.mark.clause("INK-11")
@pytest.mark.clause("INK-23")
def test_the_scratchpad_is_kept_on_archive(memory: Memory, clock: Clock) -> None:
    started = memory.conversations.start()
    pad = memory.at(conversation=started.id).scratchpad
    first = pad.write("plan", {"steps": [1]})
    clock.forward(hours=1)
    pad.write("plan", {"steps": [1, 2]})
    memory.conversations.archive(started.id)
    assert pad.read("plan") == {"steps": [1, 2]}
    assert (pad.note("plan").created_at, pad.note("plan").updated_at) == (first.created_at, clock())


def test_users_who_call_theirs_the_same_have_their_own(memory: Memory) -> None:
    """One ends it, and the other has lost nothing."""
    mine, yours = (memory.at(account=name, conversation="monday") for name in ("u", "v"))
    mine.conversations.start("mine")
    said = mine.conversations.say("monday", "user", "The code of my door is blue.")
    yours.conversations.start("yours")
    yours.conversations.end("monday")
    assert mine.conversations.get("monday").status == "active"
    assert [record.id for record in mine.list()] == [said.id]
    assert yours.list() == []
    with pytest.raises(ConflictError):
        mine.conversations.start()


def test_what_stays_is_seen_by_nobody_who_could_not_see_the_turn(memory: Memory) -> None:
    started = memory.conversations.start("support")
    memory.at(account="u").conversations.say(started.id, "user", "I am allergic to peanuts.")
    memory.at(agent="a").conversations.end(started.id)
    assert memory.at(account="v").list() == []
    assert [record.content for record in memory.at(account="u").list()] == ["I am allergic to peanuts."]


def test_forgetting_takes_ref_codes(memory: Memory, location: str) -> None:
    with memory.conversation("quartzite") as talk:
        talk.say("user", "hmm, marble")
    memory.forget(conversation=talk.conversation.ref_code, erase=True)
    assert memory.conversations.list() == []
    memory.close()
    assert traces(location, b"quartzite") == []


def test_an_agent_forgets_its_own_of_a_shared_conversation_by_the_ref_code(memory: Memory) -> None:
    started, mine = memory.conversations.start(), memory.at(agent="a")
    mine.conversations.say(started.id, "user", "hmm, marble")
    memory.at(agent="b").conversations.say(started.id, "user", "hmm, slate")
    assert mine.forget(conversation=started.ref_code).count == 1
    assert [record.content for record in memory.list()] == ["hmm, slate"]


def test_a_conversation_that_was_forgotten_inside_its_block_is_no_error(memory: Memory) -> None:
    with memory.conversation() as talk:
        memory.forget(conversation=talk.conversation.id)
    assert memory.conversations.list() == []


@pytest.mark.clause("INK-01")
def test_the_account_holds_preferences_and_procedures_only(location: str) -> None:
    with Memory(location, preset="inklings", embedder="none") as memory:
        with memory.conversation("trip") as talk:
            talk.say("user", "I prefer trains over planes. Our office is in Porto. I need to call the bank by Friday.")
            with pytest.raises(InputError, match="account"):
                talk.observe("the office is in Porto", kind="fact", tier="account")
        tiers = {record.kind: record.tier for record in memory.list()}
        assert tiers == {"preference": "account", "fact": "workspace", "task": "channel"}
        assert memory.at(workspace="elsewhere").list()[0].kind == "preference"


def test_ending_can_be_undone(memory: Memory) -> None:
    started = memory.conversations.start()
    turn = memory.conversations.say(started.id, "user", "hello there")
    memory.conversations.end(started.id)
    assert memory.list(state=None) == []
    memory.undo()
    assert memory.conversations.get(started.id).status == "active"
    assert [record.id for record in memory.list(state=None)] == [turn.id]


@pytest.mark.clause("INK-09")
def test_a_workspace_that_is_forgotten_leaves_no_orphan(memory: Memory, location: str) -> None:
    shop = memory.at(workspace="shop")
    shop.channels.create("quartzite")
    started = shop.conversations.start("quartzite plans", channel="quartzite")
    shop.conversations.say(started.id, "user", "quartzite is a rock")
    shop.at(conversation=started.id).scratchpad.write("quartzite", 1)
    shop.forget(workspace="shop")
    assert [channel.name for channel in memory.at(workspace="shop").channels.list()] == ["general"]
    assert memory.at(workspace="shop").conversations.list() == []
    memory.close()
    assert traces(location, b"quartzite") == []


def test_forgetting_a_conversation_forgets_all_of_it(memory: Memory) -> None:
    started = memory.conversations.start("the trip")
    memory.conversations.say(started.id, "user", "hello")
    memory.forget(conversation=started.id)
    assert memory.conversations.list() == []
    with pytest.raises(NotFoundError):
        memory.conversations.get(started.ref_code)


# Work and persist


@pytest.mark.clause("INK-17")
def test_an_observation_is_stored_with_importance_and_scope_at_once(memory: Memory) -> None:
    with memory.conversation("trip") as talk:
        kept = talk.observe("Clara is allergic to nuts", kind="fact", importance=0.9, tags=["people.clara"])
        assert memory.get(kept.id) == kept
        assert (kept.importance, kept.tier, kept.tags, kept.source) == (
            0.9,
            "workspace",
            ("people.clara", "sensitive", "sensitive.health"),
            "observation",
        )
        assert kept.references == (talk.conversation.id,)
        assert talk.observe("Clara is allergic to nuts").id == kept.id
        told = tools.call(talk.memory, "observe", {"content": "Bob sails", "kind": "fact", "scope": "channel"})
        assert memory.get(told["id"]).tier == "channel"
        assert tools.call(talk.memory, "observe", {"content": "Bob sails", "scope": "channel"})["known_already"]
        assert tools.call(talk.memory, "observe", {"content": ""})["error"]
    assert [record.content for record in memory.list(newest_first=False)] == ["Clara is allergic to nuts", "Bob sails"]


@pytest.mark.clause("INK-18")
def test_the_end_catches_what_was_missed_and_stores_nothing_twice(memory: Memory) -> None:
    with memory.conversation("trip") as talk:
        talk.say("user", "Hi! How are you? Clara is allergic to nuts. We decided to go by train.")
        talk.observe("Clara is allergic to nuts", kind="finding")
        talk.say("assistant", "I'll keep that in mind. Based on what I remember: Clara is allergic to nuts.")
    assert sorted(record.content for record in memory.list()) == [
        "Clara is allergic to nuts",
        "We decided to go by train.",
    ]
    assert talk.conversation.status == "idle"


class Reads:
    """The calls of a store by name, and how often the words of each memory were read."""

    def __init__(self, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: Counter[str] = Counter()
        self.words: Counter[str] = Counter()
        self._inside = False
        for name in ("find", "get", "keep", "scan", "shelf"):
            monkeypatch.setattr(store, name, partial(self._call, name, getattr(store, name)))

    def _call(self, name: str, method: Any, *args: Any, **options: Any) -> Any:
        if self._inside:  # a store may call itself
            return method(*args, **options)
        self._inside = True
        try:
            answer = method(*args, **options)
            answer = answer if name == "keep" else list(answer)
        finally:
            self._inside = False
        self.calls[name] += 1
        if name == "get" or (name == "scan" and options.get("whole", True)):
            self.words.update(record.id for record in answer)
        return answer


def test_the_end_of_a_conversation_reads_its_turns_once(
    location: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = ["My dog is called Bello.", "Noted.", "We decided to go by train."]
    store = open_store(location)
    with Memory(store, preset="recollect", embedder="none", clock=clock) as memory:
        with memory.conversation("trip") as talk:
            said = [talk.say("user" if at != 1 else "assistant", text) for at, text in enumerate(turns)]
            said.append(talk.memory.remember("The seats are 12 and 13", lifetime="conversation", tier="channel"))
            reads = Reads(store, monkeypatch)
        assert {record.id: reads.words[record.id] for record in said} == {record.id: 1 for record in said}
        # Under the lock once more without words, and the open tasks twice; the conversation is looked up by its ref
        # code, and then by its key.
        assert reads.calls["scan"] == 4
        assert reads.calls["find"] <= 3
        monkeypatch.undo()
        assert sorted(record.content for record in memory.list()) == [turns[0], turns[2]]
        memory.undo()
        assert {record.content for record in talk.memory.list()} >= {*turns, "The seats are 12 and 13"}
        assert memory.verify() == []


def test_what_is_said_while_a_model_reads_the_rest_is_read_alone(
    location: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was recalled meanwhile is undone with its count."""
    store = open_store(location)
    with Memory(store, preset="recollect", embedder="none", clock=clock) as memory:
        started = memory.conversations.start("trip")
        first = memory.conversations.say(started.id, "user", "My dog is called Bello.")
        late = ["My cat is called Pixel."]

        def extract_slowly(*args: Any) -> Any:
            if late:
                store.touch(Place("default", "default"), [first.id], clock())
                turns.append(memory.conversations.say(started.id, "user", late.pop()).id)
            return extract(*args)

        turns = [first.id]
        reads = Reads(store, monkeypatch)
        module = import_module("recollect.facets.conversations.persist")
        monkeypatch.setattr(module, "read", lambda view, turns, ask_model: extract_slowly(turns))
        memory.conversations.end(started.id)
        assert [reads.words[ident] for ident in turns] == [1, 1]
        monkeypatch.undo()
        assert {record.content for record in memory.list()} == {"My dog is called Bello.", "My cat is called Pixel."}
        memory.undo()
        (turn,) = [record for record in memory.at(conversation=started.id).list() if record.id == first.id]
        assert (turn.content, turn.access_count) == ("My dog is called Bello.", 1)


def test_many_conversations_that_say_the_same_leave_one_memory(tmp_path: Path) -> None:
    many = 1000 if LONG else 300
    with Memory(tmp_path / "m", embedder="none") as memory:
        for _ in range(many):
            with memory.conversation() as talk:
                talk.say("user", "My dog is called Bello.")
        (kept,) = memory.list()
        assert kept.access_count == many - 1
        assert len(kept.references) == 256


def test_what_was_injected_is_not_stored(memory: Memory) -> None:
    memory.remember("My dog is called Bello")
    with memory.conversation() as talk:
        block = talk.memory.context([{"role": "user", "content": "what is my dog called?"}]).messages[-1]["content"]
        assert "Bello" in block
        talk.say("user", block)
    assert [record.content for record in memory.list()] == ["My dog is called Bello"]


def test_what_is_refused_is_left_out_and_the_rest_stays(memory: Memory) -> None:
    with memory.conversation() as talk:
        talk.say("user", "My dog is called Bello.")
        with pytest.raises(SecretError):
            talk.say("user", "my password is hunter2")
    assert [record.content for record in memory.list()] == ["My dog is called Bello."]
    assert talk.conversation.status == "idle"


def test_an_error_in_the_block_ends_it_and_goes_on(memory: Memory) -> None:
    talk = memory.conversation("sums")

    def fail() -> None:
        with talk:
            talk.say("user", "My dog is called Bello.")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert memory.conversations.get(talk.conversation.id).status == "idle"
    assert len(memory.list()) == 1


def test_nothing_is_said_in_what_has_ended(memory: Memory) -> None:
    with memory.conversation() as talk:
        talk.end()
    for _ in range(2):
        with pytest.raises(ConflictError, match="nothing can be said"):
            talk.say("user", "too late")
    assert memory.list(state=None) == []
    with pytest.raises(ConflictError, match="not started yet"):
        memory.conversation().say("user", "too early")


# All at once


def test_of_many_who_end_it_one_does(memory: Memory) -> None:
    started = memory.conversations.start()
    memory.conversations.say(started.id, "user", "My dog is called Bello.")
    lost: list[Exception] = []

    def end() -> None:
        try:
            memory.conversations.end(started.id)
        except ConversationTransitionError as error:
            lost.append(error)

    together(*([end] * 6))
    assert len(lost) == 5
    assert [record.content for record in memory.list(state=None)] == ["My dog is called Bello."]


def test_what_is_said_while_it_ends_is_kept_or_refused(memory: Memory) -> None:
    for number in range(5):
        started = memory.conversations.start()
        said: list[str] = []

        def talk(ident: str = started.id, said: list[str] = said, number: int = number) -> None:
            for n in range(40):
                text = f"The code of door {number} {n} is blue."
                try:
                    memory.conversations.say(ident, "user", text)
                except ConflictError:
                    return
                said.append(text)

        def end(ident: str = started.id) -> None:
            time.sleep(0.01)
            memory.conversations.end(ident)

        together(talk, end)
        assert memory.stats().tiers.get("conversation", 0) == 0
        kept = {record.content for record in memory.list(limit=1000)}
        assert kept >= set(said)


def test_a_killed_process_loses_nothing_that_was_said(location: str) -> None:
    script = f"""
import sys, time
from recollect import Memory
memory = Memory({location!r}, preset="recollect", embedder="none")
talk = memory.conversation("trip").__enter__()
talk.say("user", "My dog is called Bello.")
print("said", flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "said\n"
    process.kill()
    process.wait()
    process.stdout.close()
    with Memory(location, preset="recollect", embedder="none") as memory:
        (left,) = memory.conversations.list(status="active")
        memory.conversations.end(left.id)
        assert [record.content for record in memory.list(state=None)] == ["My dog is called Bello."]


class Life(RuleBasedStateMachine):
    """Conversations in any order of steps, beside a model of them."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.memory = Memory(self.folder.name, embedder="none")
        self.states: dict[str, str] = {}
        self.turns: dict[str, int] = {}
        self.facts: set[str] = set()

    def teardown(self) -> None:
        self.memory.close()
        self.folder.cleanup()

    @rule()
    def start(self) -> None:
        started = self.memory.conversations.start()
        self.states[started.id], self.turns[started.id] = "active", 0

    @rule(data=st.data(), number=st.integers(0, 3))
    def say(self, data: st.DataObject, number: int) -> None:
        if not self.states:
            return
        ident, text = data.draw(st.sampled_from(sorted(self.states))), f"The code of door {number} is blue."
        try:
            self.memory.conversations.say(ident, "user", text)
            assert self.states[ident] == "active"
            self.turns[ident] += 1
        except ConflictError:
            assert self.states[ident] != "active"

    @rule(data=st.data(), wanted=st.sampled_from(["end", "archive"]))
    def end(self, data: st.DataObject, wanted: str) -> None:
        if not self.states:
            return
        ident = data.draw(st.sampled_from(sorted(self.states)))
        now: Any = self.states[ident]
        allowed = {"active": ("end", "archive"), "idle": ("archive",), "archived": ()}[now]
        try:
            getattr(self.memory.conversations, wanted)(ident)
            assert wanted in allowed
            self.states[ident] = "idle" if wanted == "end" else "archived"
            self.turns[ident] = 0
        except ConversationTransitionError:
            assert wanted not in allowed

    @invariant()
    def agrees(self) -> None:
        known = {
            one.id: one.status
            for status in ("active", "idle", "archived")
            for one in self.memory.conversations.list(status=status)
        }  # type: ignore[arg-type]
        assert known == self.states
        assert self.memory.stats().tiers.get("conversation", 0) == sum(self.turns.values())
        texts = [record.content for record in self.memory.list(tier="workspace")]
        assert len(texts) == len(set(texts))


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


@pytest.mark.clause("INK-02", "INK-24")
@pytest.mark.parametrize("kind", DATABASES)
def test_a_memory_for_one_conversation_ends_with_it_in_whatever_tier(tmp_path: Path, kind: str) -> None:
    with Memory(located(kind, tmp_path / "memory"), preset="inklings") as memory:
        talk = memory.conversations.start("planning")
        other = memory.conversations.start("another")
        inside = memory.at(account="ada", channel=talk.channel, conversation=talk.id)
        ending = {
            tier: inside.remember(f"for now, in the {tier}", tier=tier, lifetime="conversation", kind="preference").id
            for tier in ("conversation", "channel", "workspace", "account")
        }
        stays = [
            inside.remember("for long", tier="workspace", lifetime="long_term").id,
            inside.remember("for a while", tier="channel", lifetime="short_term").id,
            memory.at(channel=other.channel, conversation=other.id).remember("theirs", lifetime="conversation").id,
        ]
        memory.conversations.end(talk.id)
        seen = memory.at(account="ada", channel=talk.channel)
        assert {one.id for one in seen.list(state=None, limit=100)} & {*ending.values()} == set()
        assert {memory.get(ident).id for ident in stays} == {*stays}
        memory.undo()
        again = memory.at(account="ada", channel=talk.channel, conversation=talk.id)
        assert {again.get(ident).id for ident in ending.values()} == {*ending.values()}
        assert memory.conversations.get(talk.id).status == "active"


@pytest.mark.clause("INK-02")
@pytest.mark.parametrize("kind", STORES)
def test_the_lifetime_of_a_conversation_needs_one(tmp_path: Path, kind: str) -> None:
    with Memory(located(kind, tmp_path / "memory")) as memory:
        with pytest.raises(InputError, match="lifetime"):
            memory.remember("for how long?", lifetime="conversation")
        assert memory.list() == []


@pytest.mark.clause("INK-08")
def test_a_wrong_transition_says_what_is_possible(memory: Memory) -> None:
    talk = memory.conversations.start("planning")
    memory.conversations.end(talk.id)
    with pytest.raises(ConversationTransitionError) as refused:
        memory.conversations.end(talk.id)
    assert (refused.value.status, refused.value.wanted, refused.value.possible) == ("idle", "idle", ("archived",))
    memory.conversations.archive(talk.id)
    with pytest.raises(ConversationTransitionError) as refused:
        memory.conversations.archive(talk.id)
    assert refused.value.possible == ()


def test_the_old_name_of_end_still_works_and_warns(memory: Memory) -> None:
    started = memory.conversations.start("foxes")
    with pytest.warns(DeprecationWarning, match="idle is now called end"):
        assert memory.conversations.idle(started.id).status == "idle"
