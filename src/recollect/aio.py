"""AsyncMemory: Memory for asyncio, made from it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from copy import copy
from datetime import datetime
from functools import partial, wraps
from types import MethodType, TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from recollect.audit import AuditLog
from recollect.context.orientation import OrientationDocument
from recollect.documents.skills import Skills
from recollect.facets.cases import Cases
from recollect.facets.channels import Channels
from recollect.facets.conversations import Conversation, Conversations
from recollect.facets.conversations.talk import Talk
from recollect.facets.journal import Journal, Whiteboard
from recollect.facets.knowledge import Knowledge
from recollect.facets.moments import Moments
from recollect.facets.scratchpad import Scratchpad
from recollect.facets.sessions import Sessions
from recollect.facets.workflows import Workflows
from recollect.memory import Memory
from recollect.presets import Preset
from recollect.remote import deferred
from recollect.runtime import forking
from recollect.values.record import Address, utc_now

if TYPE_CHECKING:
    from recollect.documents.skills import Folders
    from recollect.models.embedders.base import Embedder
    from recollect.models.llm.base import Llm
    from recollect.recall.sources import Source
    from recollect.stores.port import Store

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_THREADS = 16


class _Threads:
    """Of one AsyncMemory and its views. Not asyncio's own, which everything else in the program waits for too."""

    def __init__(self) -> None:
        self.after_fork()
        forking.watch(self)

    def after_fork(self) -> None:
        """The threads of a pool stay in the parent, and a pool does not know."""
        self._asking = ThreadPoolExecutor(_THREADS, "recollect-asking")
        self._others = ThreadPoolExecutor(_THREADS, "recollect-verb")

    async def run(self, verb: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._in(self._others, partial(verb, *args, **kwargs))

    async def ask(self, verb: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a verb that may wait for a model, in threads of their own: the other verbs never wait behind those."""
        return await self._in(self._asking, partial(verb, *args, **kwargs))

    async def _in(self, pool: ThreadPoolExecutor, call: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(pool, partial(copy_context().run, call))


class _Awaited(Generic[T]):
    """Something whose verbs are awaited: each runs in a thread, so the event loop never waits for the disk."""

    def __init__(self, made_from: T, threads: _Threads) -> None:
        self.made_from = made_from
        self.threads = threads


class _Verb(Generic[T, P, R]):
    """A verb as a coroutine, with the arguments and the result that it has. `asks`: it may wait for a model."""

    def __init__(self, verb: Callable[Concatenate[T, P], R], *, asks: bool = False) -> None:
        @wraps(verb)
        async def call(owner: _Awaited[T], *args: P.args, **kwargs: P.kwargs) -> R:
            here: Callable[P, R] = getattr(owner.made_from, verb.__name__)  # which may be that of a server's memory
            run = owner.threads.ask if asks else owner.threads.run
            return await run(here, *args, **kwargs)

        self._call = call

    @overload
    def __get__(self, owner: None, kind: type) -> Callable[..., Coroutine[Any, Any, R]]: ...
    @overload
    def __get__(self, owner: _Awaited[T], kind: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, owner: _Awaited[T] | None, kind: type) -> Callable[..., Coroutine[Any, Any, R]]:
        return self._call if owner is None else MethodType(self._call, owner)


class AsyncAuditLog(_Awaited[AuditLog]):
    """The audit log, awaited."""

    record = _Verb(AuditLog.record)
    search = _Verb(AuditLog.search)
    matching = _Verb(AuditLog.matching)
    named = _Verb(AuditLog.named)
    verify = _Verb(AuditLog.verify)


class AsyncChannels(_Awaited[Channels]):
    """Channels, awaited."""

    create = _Verb(Channels.create)
    get = _Verb(Channels.get)
    list = _Verb(Channels.list)


class AsyncConversations(_Awaited[Conversations]):
    """Conversations, awaited."""

    archive = _Verb(Conversations.archive, asks=True)
    get = _Verb(Conversations.get)
    idle = _Verb(Conversations.idle, asks=True)
    list = _Verb(Conversations.list)
    observe = _Verb(Conversations.observe)
    say = _Verb(Conversations.say)
    start = _Verb(Conversations.start)


class AsyncTalk(_Awaited[Talk]):
    """A conversation that is going on, awaited: `async with memory.conversation("title") as talk:`."""

    def __init__(self, made_from: Talk, owner: AsyncMemory) -> None:
        super().__init__(made_from, owner.threads)
        self._owner = owner

    async def __aenter__(self) -> Self:
        await self.threads.run(self.made_from.__enter__)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.threads.ask(self.made_from.__exit__, kind, error, at)

    @property
    def conversation(self) -> Conversation:
        return self.made_from.conversation

    @property
    def memory(self) -> AsyncMemory:
        return self._owner.at(channel=self.conversation.channel, conversation=self.conversation.id)

    async def orientation(self) -> OrientationDocument:
        """What is known about the title; it is read from disk, so it is awaited."""
        return await self.threads.ask(lambda: self.made_from.orientation)

    end = _Verb(Talk.end, asks=True)
    observe = _Verb(Talk.observe)
    say = _Verb(Talk.say)


class AsyncWhiteboard(_Awaited[Whiteboard]):
    """The whiteboard, awaited."""

    entries = _Verb(Whiteboard.entries)
    erase = _Verb(Whiteboard.erase)
    write = _Verb(Whiteboard.write)


class AsyncJournal(_Awaited[Journal]):
    """The journal, awaited."""

    @property
    def whiteboard(self) -> AsyncWhiteboard:
        return AsyncWhiteboard(self.made_from.whiteboard, self.threads)

    consolidate = _Verb(Journal.consolidate, asks=True)
    context = _Verb(Journal.context, asks=True)
    counts = _Verb(Journal.counts)
    counts_by_agent = _Verb(Journal.counts_by_agent)
    edit = _Verb(Journal.edit)
    expired = _Verb(Journal.expired)
    for_prompt = _Verb(Journal.for_prompt)
    has_expired = _Verb(Journal.has_expired)
    recent_first = _Verb(Journal.recent_first)
    save = _Verb(Journal.save)
    save_core = _Verb(Journal.save_core)


class AsyncCases(_Awaited[Cases]):
    """The cases, awaited."""

    list = _Verb(Cases.list)
    remove = _Verb(Cases.remove)
    save = _Verb(Cases.save)


class AsyncScratchpad(_Awaited[Scratchpad]):
    """The scratchpad, awaited."""

    clear = _Verb(Scratchpad.clear)
    list = _Verb(Scratchpad.list)
    note = _Verb(Scratchpad.note)
    read = _Verb(Scratchpad.read)
    write = _Verb(Scratchpad.write)


class AsyncSessions(_Awaited[Sessions]):
    """The sessions of a ledger, awaited."""

    add = _Verb(Sessions.add)
    add_many = _Verb(Sessions.add_many)
    close = _Verb(Sessions.close, asks=True)
    compact = _Verb(Sessions.compact)
    create = _Verb(Sessions.create)
    delete = _Verb(Sessions.delete)
    delete_by_time_range = _Verb(Sessions.delete_by_time_range)
    delete_by_topic = _Verb(Sessions.delete_by_topic)
    delete_session = _Verb(Sessions.delete_session)
    export = _Verb(Sessions.export)
    get = _Verb(Sessions.get)
    list = _Verb(Sessions.list)
    load = _Verb(Sessions.load)
    metrics = _Verb(Sessions.metrics)
    migrate = _Verb(Sessions.migrate)
    query = _Verb(Sessions.query, asks=True)
    rebuild_index = _Verb(Sessions.rebuild_index)
    search = _Verb(Sessions.search, asks=True)
    search_by_time_range = _Verb(Sessions.search_by_time_range)
    search_by_topic = _Verb(Sessions.search_by_topic)
    search_by_type = _Verb(Sessions.search_by_type)
    stats = _Verb(Sessions.stats)


class AsyncKnowledge(_Awaited[Knowledge]):
    """The knowledge base, awaited."""

    add = _Verb(Knowledge.add)
    add_folder = _Verb(Knowledge.add_folder)
    allow = _Verb(Knowledge.allow)
    allowed = _Verb(Knowledge.allowed)
    get = _Verb(Knowledge.get)
    list = _Verb(Knowledge.list)
    publish = _Verb(Knowledge.publish)
    remove = _Verb(Knowledge.remove)
    search = _Verb(Knowledge.search, asks=True)
    withdraw = _Verb(Knowledge.withdraw)


class AsyncMoments(_Awaited[Moments]):
    """The moments of decision, awaited."""

    content = _Verb(Moments.content, asks=True)
    decision = _Verb(Moments.decision, asks=True)
    delegation = _Verb(Moments.delegation, asks=True)
    record_content = _Verb(Moments.record_content, asks=True)
    record_decision = _Verb(Moments.record_decision, asks=True)
    record_delegation = _Verb(Moments.record_delegation, asks=True)
    record_task = _Verb(Moments.record_task, asks=True)
    record_tool = _Verb(Moments.record_tool, asks=True)
    task = _Verb(Moments.task, asks=True)
    tool = _Verb(Moments.tool, asks=True)


class AsyncWorkflows(_Awaited[Workflows]):
    """The workflows, awaited."""

    complete = _Verb(Workflows.complete)
    fail = _Verb(Workflows.fail)
    finish = _Verb(Workflows.finish)
    get = _Verb(Workflows.get)
    list = _Verb(Workflows.list)
    remove = _Verb(Workflows.remove)
    search = _Verb(Workflows.search, asks=True)
    start = _Verb(Workflows.start)
    step = _Verb(Workflows.step)
    steps = _Verb(Workflows.steps)


class AsyncMemory(_Awaited[Memory]):
    """The same verbs, awaited."""

    def __init__(
        self,
        store: str | os.PathLike[str] | Store | Memory | None = None,
        *,
        key: str | None = None,
        preset: str | os.PathLike[str] | Preset | None = None,
        clock: Callable[[], datetime] = utc_now,
        embedder: str | Embedder | None = None,
        llm: str | Llm | None = None,
        skills: Folders | None = None,
        sources: Iterable[Source] = (),
        replica_url: str | None = None,
        servers: Mapping[str, str] | None = None,
    ) -> None:
        """Takes what `Memory` takes, or a Memory, which has its settings already."""
        if not isinstance(store, Memory):
            with deferred():  # a server is asked in a thread, by the first verb or by `async with`
                store = Memory(
                    store,
                    key=key,
                    preset=preset,
                    clock=clock,
                    embedder=embedder,
                    llm=llm,
                    skills=skills,
                    sources=sources,
                    replica_url=replica_url,
                    servers=servers,
                )
        super().__init__(store, _Threads())

    @property
    def memory(self) -> Memory:
        """The Memory that it is made from."""
        return self.made_from

    @property
    def address(self) -> Address:
        return self.memory.address

    @property
    def preset(self) -> Preset:
        return self.memory.preset

    @property
    def unsaved(self) -> int:
        """Writes that are in memory only, because the disk refuses them; of a server, as of its last answer."""
        return self.memory.unsaved

    @property
    def skills(self) -> Skills:
        """What was read from SKILL.md files when this memory was made. Nothing here waits, so nothing is awaited."""
        return self.memory.skills

    @property
    def audit(self) -> AsyncAuditLog:
        return AsyncAuditLog(self.memory.audit, self.threads)

    @property
    def channels(self) -> AsyncChannels:
        return AsyncChannels(self.memory.channels, self.threads)

    @property
    def conversations(self) -> AsyncConversations:
        return AsyncConversations(self.memory.conversations, self.threads)

    def conversation(self, title: str = "", *, channel: str | None = None, budget: int = 1000) -> AsyncTalk:
        """A conversation to be used with `async with`: at the end what matters of it is kept."""
        return AsyncTalk(self.memory.conversation(title, channel=channel, budget=budget), self)

    @property
    def journal(self) -> AsyncJournal:
        return AsyncJournal(self.memory.journal, self.threads)

    @property
    def cases(self) -> AsyncCases:
        return AsyncCases(self.memory.cases, self.threads)

    @property
    def scratchpad(self) -> AsyncScratchpad:
        return AsyncScratchpad(self.memory.scratchpad, self.threads)

    @property
    def sessions(self) -> AsyncSessions:
        return AsyncSessions(self.memory.sessions, self.threads)

    @property
    def knowledge(self) -> AsyncKnowledge:
        return AsyncKnowledge(self.memory.knowledge, self.threads)

    @property
    def workflows(self) -> AsyncWorkflows:
        return AsyncWorkflows(self.memory.workflows, self.threads)

    @property
    def moments(self) -> AsyncMoments:
        return AsyncMoments(self.memory.moments, self.threads)

    def at(
        self,
        *,
        tenant: str | None = None,
        account: str | None = None,
        workspace: str | None = None,
        channel: str | None = None,
        conversation: str | None = None,
        agent: str | None = None,
    ) -> Self:
        """The same verbs, bound to an address. AccessError where the new view would see more than this one."""
        view = copy(self)
        view.made_from = self.memory.at(
            tenant=tenant, account=account, workspace=workspace, channel=channel, conversation=conversation, agent=agent
        )
        return view

    remember = _Verb(Memory.remember)
    remember_many = _Verb(Memory.remember_many)
    get = _Verb(Memory.get)
    list = _Verb(Memory.list)
    recall = _Verb(Memory.recall, asks=True)
    context = _Verb(Memory.context, asks=True)
    consult = _Verb(Memory.consult, asks=True)
    orient = _Verb(Memory.orient, asks=True)
    query = _Verb(Memory.query, asks=True)
    revise = _Verb(Memory.revise)
    forget = _Verb(Memory.forget)
    history = _Verb(Memory.history)
    undo = _Verb(Memory.undo)
    archive = _Verb(Memory.archive)
    restore = _Verb(Memory.restore)
    diagnose = _Verb(Memory.diagnose, asks=True)
    ids_like = _Verb(Memory.ids_like)
    deduplicate = _Verb(Memory.deduplicate)
    doctor = _Verb(Memory.doctor)
    verify = _Verb(Memory.verify)
    maintain = _Verb(Memory.maintain, asks=True)
    simulate = _Verb(Memory.simulate)
    embed = _Verb(Memory.embed, asks=True)
    compact = _Verb(Memory.compact)
    stats = _Verb(Memory.stats)
    workspaces = _Verb(Memory.workspaces)
    backup = _Verb(Memory.backup)
    export = _Verb(Memory.export)
    import_ = _Verb(Memory.import_)
    close = _Verb(Memory.close)

    async def __aenter__(self) -> Self:
        memory = self.memory

        def opened() -> Address:
            return memory.address

        await self.threads.run(opened)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
