"""AsyncMemory: the same verbs, awaited."""

import asyncio
import inspect
import io
import threading
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recollect import AccessError, AsyncMemory, ConflictError, InputError, Memory, NotFoundError, aio
from recollect.audit import AuditLog
from recollect.facets.cases import Cases
from recollect.facets.channels import Channels
from recollect.facets.conversations import Conversations
from recollect.facets.conversations.talk import Talk
from recollect.facets.journal import Journal, Whiteboard
from recollect.facets.knowledge import Knowledge
from recollect.facets.moments import Moments
from recollect.facets.scratchpad import Scratchpad
from recollect.facets.sessions import Sessions
from recollect.facets.workflows import Workflows

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_every_verb_can_be_awaited(tmp_path: Path) -> None:
    async def day() -> None:
        async with AsyncMemory(tmp_path / "memory", clock=lambda: NOW) as memory:
            me = memory.at(agent="atlas")
            tea = await me.remember("Alice drinks green tea", tags=["drinks"])
            two = await me.remember_many(["Bob drinks coffee", {"content": "Carol drinks mate", "tags": ["drinks"]}])
            assert await me.get(tea.id) == tea
            assert [one.id for one in await me.list(newest_first=False)] == [tea.id, *(one.id for one in two)]
            assert [hit.memory.id for hit in await me.recall("green tea")] == [tea.id]
            newer = await me.revise(tea.id, content="Alice drinks black tea")
            assert [one.id for one in await me.history(tea.id)] == [tea.id, newer.id]
            await me.archive(newer.id)
            assert (await me.diagnose(newer.id)).status == "archived"
            await me.restore(newer.id)
            assert (await me.forget(tag="drinks")).count == 3
            assert (await me.undo()).action == "undo"
            assert (await me.stats()).total == 4
            assert (await me.doctor()).ok
            assert (await me.maintain()).decayed == ()
            stream = io.BytesIO()
            assert await me.export(stream) == 4
            assert (await me.import_(io.BytesIO(stream.getvalue()))).unchanged == 4
            assert await memory.workspaces() == ["default"]
            assert isinstance(await memory.compact(), int)

    asyncio.run(day())
    with Memory(tmp_path / "memory") as memory:
        assert memory.stats().total == 4


def test_errors_come_through(tmp_path: Path) -> None:
    async def trouble() -> None:
        async with AsyncMemory(tmp_path / "memory") as memory:
            with pytest.raises(InputError):
                await memory.remember("")
            with pytest.raises(NotFoundError):
                await memory.get("missing")
            with pytest.raises(AccessError):
                memory.at(agent="a").at(agent="b")
            one = await memory.remember("a lynx")
            await memory.revise(one.id, content="a wolf")
            with pytest.raises(ConflictError):
                await memory.revise(one.id, content="a fox")

    asyncio.run(trouble())


def test_many_verbs_at_once_lose_nothing(tmp_path: Path) -> None:
    async def crowd() -> None:
        async with AsyncMemory(tmp_path / "memory") as memory:
            agents = [memory.at(agent=f"agent{number}") for number in range(4)]
            stored = await asyncio.gather(*(agents[n % 4].remember(f"note number {n}") for n in range(40)))
            found = await asyncio.gather(*(agents[n % 4].get(one.id) for n, one in enumerate(stored)))
            assert found == stored
            seen = await asyncio.gather(*(agent.recall("note", limit=50) for agent in agents))
            assert [len(hits) for hits in seen] == [10] * 4
            revised = await asyncio.gather(
                *(memory.revise(stored[0].id, content=f"version {n}") for n in range(5)), return_exceptions=True
            )
            assert sum(isinstance(one, ConflictError) for one in revised) == 4
            assert (await memory.stats()).total == 41

    asyncio.run(crowd())


def test_the_event_loop_goes_on_while_the_disk_is_waited_for(tmp_path: Path) -> None:
    class Held:
        """A clock that does not answer before it is let go."""

        def __init__(self) -> None:
            self.asked, self.free = asyncio.Event(), threading.Event()

        def __call__(self) -> datetime:
            loop.call_soon_threadsafe(self.asked.set)
            assert self.free.wait(10)
            return NOW

    async def wait() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        clock = Held()
        memory = AsyncMemory(tmp_path / "memory", clock=clock)
        writing = asyncio.create_task(memory.remember("a heron"))
        await asyncio.wait_for(clock.asked.wait(), 10)
        assert not writing.done()
        clock.free.set()
        assert (await writing).content == "a heron"
        await memory.close()

    loop: asyncio.AbstractEventLoop
    asyncio.run(wait())


def test_it_can_be_made_from_a_memory(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory") as memory:
        one = memory.remember("a lynx")
        assert asyncio.run(AsyncMemory(memory).get(one.id)) == one  # type: ignore[arg-type]


FACETS = {
    aio.AsyncMemory: Memory,
    aio.AsyncAuditLog: AuditLog,
    aio.AsyncJournal: Journal,
    aio.AsyncWhiteboard: Whiteboard,
    aio.AsyncScratchpad: Scratchpad,
    aio.AsyncSessions: Sessions,
    aio.AsyncMoments: Moments,
    aio.AsyncCases: Cases,
    aio.AsyncChannels: Channels,
    aio.AsyncConversations: Conversations,
    aio.AsyncTalk: Talk,
    aio.AsyncKnowledge: Knowledge,
    aio.AsyncWorkflows: Workflows,
}
NOT_AWAITED = ("at", "conversation")
"""What makes something else to be awaited."""


def public(kind: type) -> dict[str, Any]:
    return {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize("kind", FACETS, ids=lambda kind: kind.__name__)
def test_whatever_can_be_called_can_be_awaited_with_the_same_arguments(kind: type) -> None:
    awaited, plain = public(kind), public(FACETS[kind])
    assert set(plain) <= set(awaited)
    made = kind.__new__(kind)
    for name, verb in plain.items():
        if not callable(verb) or name in NOT_AWAITED:
            assert isinstance(verb, property) or name in NOT_AWAITED
            continue
        call = getattr(made, name)
        assert inspect.iscoroutinefunction(call), name
        assert call.__doc__ == verb.__doc__
    for name in ("__init__", *NOT_AWAITED):
        if kind is aio.AsyncMemory:
            ours, theirs = (inspect.signature(getattr(one, name)).parameters for one in (kind, Memory))
            assert {n: (p.kind, p.default) for n, p in ours.items()} == {
                n: (p.kind, p.default) for n, p in theirs.items()
            }


def test_every_facet_works_awaited(tmp_path: Path) -> None:
    async def day() -> None:
        async with AsyncMemory(f"ledger:{tmp_path / 'memory'}", embedder="none") as memory:
            me = memory.at(agent="ada", conversation="c")
            assert (await me.journal.save("it rained")).text == "it rained"
            assert (await me.journal.whiteboard.write("tea at four")).text == "tea at four"
            assert [entry.text for entry in await me.journal.whiteboard.entries()] == ["tea at four"]
            await memory.channels.create("ops")
            async with memory.at(agent="ada").conversation("tea", channel="ops") as talk:
                await talk.say("user", "My dog is called Bello.")
                assert (await talk.orientation()).about == "tea"
                assert (await talk.memory.list())[0].text == "My dog is called Bello."
            assert [one.status for one in await memory.conversations.list(channel="ops")] == ["idle"]
            assert [one.text for one in await memory.list(role="user")] == ["My dog is called Bello."]
            await me.scratchpad.write("plan", "tea, then work")
            assert await me.scratchpad.read("plan") == "tea, then work"
            assert await memory.sessions.list()
            assert await me.moments.task("tea") is not None
            step = await me.workflows.step((await me.workflows.start("tea")).id, "boil")
            assert (await me.workflows.complete(step.id, output="hot")).status == "completed"
            await memory.knowledge.add("# Tea\nis at four", status="published")
            assert [one.title for one in await me.knowledge.search("tea")] == ["Tea"]
            assert await memory.audit.search("remember")
            assert memory.unsaved == 0
            assert len(memory.skills) == 0
            with pytest.raises(TypeError):
                await me.recall("tea", nonsense=3)  # type: ignore[call-arg]
            with pytest.raises(TypeError):
                AsyncMemory(tmp_path, nonsense=3)  # type: ignore[call-arg]

    asyncio.run(day())


@pytest.mark.parametrize(
    ("owner", "verb", "pool"),
    [
        ("", "remember", "recollect-verb"),
        ("", "recall", "recollect-asking"),
        ("", "maintain", "recollect-asking"),
        ("conversations", "archive", "recollect-asking"),
        ("conversations", "end", "recollect-asking"),
        ("conversations", "list", "recollect-verb"),
        ("moments", "decision", "recollect-asking"),
        ("audit", "search", "recollect-verb"),
    ],
)
def test_verbs_that_may_ask_a_model_have_threads_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str, verb: str, pool: str
) -> None:
    with Memory(tmp_path, embedder="none") as memory:
        plain = getattr(memory, owner) if owner else memory
        monkeypatch.setattr(type(plain), verb, lambda *_: threading.current_thread().name)

        async def call() -> str:
            awaited: Any = AsyncMemory(memory)
            return await getattr(getattr(awaited, owner) if owner else awaited, verb)("x")

        assert asyncio.run(call()).startswith(pool)


def test_an_old_name_warns_the_one_who_calls_it(tmp_path: Path) -> None:
    async def end() -> list[warnings.WarningMessage]:
        async with AsyncMemory(f"sqlite:{tmp_path}/memory", embedder="none") as memory:
            conversation = await memory.conversations.start("trip")
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                await memory.conversations.idle(conversation.id)
            return caught

    (warning,) = asyncio.run(end())
    assert (warning.filename, str(warning.message)) == (__file__, "idle is now called end")
