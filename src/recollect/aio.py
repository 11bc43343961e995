"""AsyncMemory: Memory for asyncio, made from the same operations. `aio.pyi` has its types; `make docs` writes it."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from copy import copy
from functools import partial, wraps
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, cast

from recollect.context.orientation import OrientationDocument
from recollect.documents.skills import Skills
from recollect.facets.conversations import Conversation
from recollect.facets.conversations.talk import Talk
from recollect.memory import Memory
from recollect.operations import OWNERS, former_names_of, operations_of, owner_class
from recollect.presets import Preset
from recollect.remote import deferred
from recollect.runtime import forking
from recollect.values.record import Address

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

_THREADS = 16


class _Threads:
    """The threads of one AsyncMemory and its views. Not asyncio's own pool, which the whole program shares."""

    def __init__(self) -> None:
        self.after_fork()
        forking.watch(self)

    def after_fork(self) -> None:
        """Replaces the pools: their threads stay in the parent process, and a pool does not notice."""
        self._asking = ThreadPoolExecutor(_THREADS, "recollect-asking")
        self._others = ThreadPoolExecutor(_THREADS, "recollect-verb")

    async def run(self, verb: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._in(self._others, partial(verb, *args, **kwargs))

    async def ask(self, verb: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs a verb that may wait for a model, in threads of its own: the other verbs never wait behind it."""
        return await self._in(self._asking, partial(verb, *args, **kwargs))

    async def _in(self, pool: ThreadPoolExecutor, call: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(pool, partial(copy_context().run, call))


def _like(original: Callable[..., Any]) -> Callable[[F], F]:
    """Gives a method the name, the signature and the docstring of another."""
    return lambda method: cast("F", wraps(original)(method))


class _Awaited:
    """An object whose methods are awaited: each runs in a thread, so the event loop never waits for the disk."""

    def __init__(self, made_from: Any, threads: _Threads) -> None:
        self.made_from = made_from
        self.threads = threads


def _awaited(function: Callable[..., Any], *, asks_model: bool = False) -> Any:
    """A coroutine function in place of a method, with the same name, arguments and docstring."""

    @wraps(function)
    async def call(owner: _Awaited, *args: Any, **kwargs: Any) -> Any:
        method = getattr(owner.made_from, function.__name__)  # a remote memory has methods of its own
        run = owner.threads.ask if asks_model else owner.threads.run
        return await run(method, *args, **kwargs)

    return call


def _renamed(old: Callable[..., Any]) -> Any:
    """The old name of a method. It warns here: a warning from the thread of the method could not name the caller."""
    new = cast("Any", old).__wrapped__.__name__

    @wraps(old)
    async def call(owner: _Awaited, *args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"{old.__name__} is now called {new}", DeprecationWarning, stacklevel=2)
        return await getattr(owner, new)(*args, **kwargs)

    return call


def _methods(owner: str) -> dict[str, Any]:
    """The awaited methods of Memory or of a facet, and its facets as properties."""
    methods = {o.verb: _awaited(o.function, asks_model=o.asks_model) for o in operations_of(owner).values()}
    methods |= {name: _renamed(old) for name, old in former_names_of(owner).items()}
    inner = [name for name in OWNERS if name and name.rpartition(".")[0] == owner]
    return methods | {name.rpartition(".")[2]: _facet(name) for name in inner}


def _facet(name: str) -> property:
    original = owner_class(name)
    members = {"__doc__": original.__doc__, "__module__": __name__, **_methods(name)}
    kind: Any = type(f"Async{original.__name__}", (_Awaited,), members)
    globals()[kind.__name__] = kind
    return property(lambda owner: kind(getattr(owner.made_from, name.rpartition(".")[2]), owner.threads))


class AsyncTalk(_Awaited):
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
        """The orientation about the title. It is read from the disk, so it is awaited."""
        return await self.threads.ask(lambda: self.made_from.orientation)

    end = _awaited(Talk.end, asks_model=True)
    observe = _awaited(Talk.observe)
    say = _awaited(Talk.say)


class AsyncMemory(_Awaited):
    """The same verbs, awaited. Takes what `Memory` takes, or a Memory, which has its settings already."""

    @_like(Memory.__init__)
    def __init__(self, store: Any = None, **options: Any) -> None:
        if not isinstance(store, Memory):
            with deferred():  # a server is asked in a thread, by the first verb or by `async with`
                store = Memory(store, **options)
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
        """The skills that were read from SKILL.md files when this memory was made."""
        return self.memory.skills

    @_like(Memory.conversation)
    def conversation(self, *args: Any, **kwargs: Any) -> AsyncTalk:
        return AsyncTalk(self.memory.conversation(*args, **kwargs), self)

    @_like(Memory.at)
    def at(self, **parts: str | None) -> Self:
        view = copy(self)
        view.made_from = self.memory.at(**parts)
        return view

    close = _awaited(Memory.close)

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


for _name, _method in _methods("").items():
    setattr(AsyncMemory, _name, _method)
