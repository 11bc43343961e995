"""`wrap`: a client of OpenAI or Anthropic that remembers by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from types import TracebackType
from typing import Any, Self, TypeVar

from recollect.adapters.clients import anthropic, openai
from recollect.adapters.clients.calls import OnError, Storing, WrappedCall, Wrapping, options
from recollect.adapters.clients.streams import AsyncManager, AsyncStream, Manager, Stream, threaded
from recollect.adapters.clients.turns import Reply, Shape
from recollect.aio import AsyncMemory
from recollect.memory import Memory
from recollect.policies.injection import Placing, SystemMessages
from recollect.values.errors import InputError

C = TypeVar("C")

_METHODS: dict[str, Mapping[str, Shape]] = {"openai": openai.METHODS, "anthropic": anthropic.METHODS}
_COPIES = frozenset(("copy", "with_options", "with_middleware"))
"""Methods of a client that give another one like it."""


def wrap(
    client: C,
    memory: Memory | AsyncMemory,
    *,
    budget: int | None = None,
    place: Placing | None = None,
    system_messages: SystemMessages | None = None,
    min_relevance: float | None = None,
    without_tags: Iterable[str] | None = None,
    inject: bool = True,
    store: bool | Storing = True,
    kind: str = "conversation",
    on_error: OnError = "warn",
) -> C:
    """The client, with memory: what matters is put before the model, and what matters of what was said is kept.

    For the clients of the packages `openai` (chat completions, responses) and `anthropic` (messages), plain and async,
    streaming or not; all else they do is as before. What memory fails at is logged as `recollect.wrap` and never
    stops a call, unless `on_error="raise"`. `store="turns"` keeps what was said word for word, as memories of `kind`.
    `place` and `system_messages` are those of `Memory.context`, and nothing below `min_relevance` or with one of
    `without_tags` is put in. A call takes options of its own: `create(…, recollect={"store": False})`, or any of
    those here, `query`, and `memory` for another view. `wrapping(wrapped).last` is what the latest call was given.
    """
    package, awaited = _recognised(client)
    chosen = options(
        memory=memory,
        budget=budget,
        place=place,
        system_messages=system_messages,
        min_relevance=min_relevance,
        without_tags=without_tags,
        inject=inject,
        store=store,
        kind=kind,
        on_error=on_error,
    )
    like, bind = (_AsyncClient, _awaited) if awaited else (_SyncClient, _plainly)
    made: Any = like(client, _METHODS[package], Wrapping(chosen), bind)
    return made


def wrapping(client: object) -> Wrapping:
    """What a wrapped client remembers with. It is `client.recollect` too, which type checkers do not know of."""
    if isinstance(client, _Client):
        return client.recollect
    raise InputError("client", "must be one that `wrap` has returned")


def _recognised(client: Any) -> tuple[str, bool]:
    """Whose client it is, and whether it is awaited, without importing any."""
    if isinstance(client, _Part):
        raise InputError("client", "is wrapped already")
    for owner in type(client).__mro__:
        package = owner.__module__.partition(".")[0]
        if package in _METHODS and owner.__name__ in ("SyncAPIClient", "AsyncAPIClient"):
            return package, owner.__name__ == "AsyncAPIClient"
    raise InputError(
        "client",
        f"must be OpenAI, AsyncOpenAI, Anthropic or AsyncAnthropic, or a client made from one, "
        f"not {type(client).__name__}",
    )


Bind = Callable[[Callable[..., Any], Shape, Wrapping], Callable[..., Any]]
"""Makes a method that remembers out of one that does not."""


class _Part:
    """Passes everything on to a part of a client, save for the methods that take a conversation."""

    __slots__ = ("_bind", "_inner", "_methods", "_path", "_wrapping")
    _bind: Bind
    _inner: Any
    _methods: Mapping[str, Shape]
    _path: str
    _wrapping: Wrapping

    def __init__(
        self, inner: Any, methods: Mapping[str, Shape], wrapping: Wrapping, bind: Bind, path: str = ""
    ) -> None:
        self._bind = bind
        self._inner = inner
        self._methods = methods
        self._path = path
        self._wrapping = wrapping

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in _Part.__slots__:  # asked of an object that is still being made
            raise AttributeError(name)
        value = getattr(self._inner, name)
        path = f"{self._path}{name}"
        if shape := self._methods.get(path):
            return self._bind(value, shape, self._wrapping)
        inside = f"{path}."
        if any(method.startswith(inside) for method in self._methods):
            return _Part(value, self._methods, self._wrapping, self._bind, inside)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _Part.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self._inner, name, value)

    def __dir__(self) -> list[str]:
        return dir(self._inner)

    def __repr__(self) -> str:
        return f"<recollect.wrap of {self._inner!r} with {self._wrapping.memory!r}>"


def _plainly(method: Callable[..., Any], shape: Shape, wrapping: Wrapping) -> Callable[..., Any]:
    @wraps(method)
    def create(**arguments: Any) -> Any:
        call = wrapping.call(shape, arguments)
        result = method(**call.prepare())
        if hasattr(result, "__next__"):
            return Stream(result, call)
        call.finish(_heard(call, result))
        return result

    @wraps(method)
    def stream(**arguments: Any) -> Any:
        return Manager(method, wrapping.call(shape, arguments))

    return stream if method.__name__ == "stream" else create


def _awaited(method: Callable[..., Any], shape: Shape, wrapping: Wrapping) -> Callable[..., Any]:
    @wraps(method)
    async def create(**arguments: Any) -> Any:
        call = wrapping.call(shape, arguments)
        result = await method(**await threaded(call.prepare))
        if hasattr(result, "__anext__"):
            return AsyncStream(result, call)
        await threaded(call.finish, _heard(call, result))
        return result

    @wraps(method)
    def stream(**arguments: Any) -> Any:
        return AsyncManager(method, wrapping.call(shape, arguments))

    return stream if method.__name__ == "stream" else create


def _heard(call: WrappedCall, result: Any) -> Reply:
    reply = Reply()
    call.hear(reply, call.shape.reply, result)
    return reply


class _Client(_Part):
    __slots__ = ()

    @property
    def recollect(self) -> Wrapping:
        return self._wrapping

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if name not in _COPIES:
            return value

        @wraps(value)
        def copy(*args: Any, **kwargs: Any) -> Any:
            """It remembers with the same memory, and knows what is stored already."""
            return type(self)(value(*args, **kwargs), self._methods, self._wrapping, self._bind)

        return copy


class _SyncClient(_Client):
    __slots__ = ()

    def close(self) -> None:
        self._wrapping.end()
        self._inner.close()

    def __enter__(self) -> Self:
        self._inner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wrapping.end()
        self._inner.__exit__(kind, error, trace)


class _AsyncClient(_Client):
    __slots__ = ()

    async def close(self) -> None:
        await threaded(self._wrapping.end)
        await self._inner.close()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await threaded(self._wrapping.end)
        await self._inner.__aexit__(kind, error, trace)
