"""The verbs of a memory that is on a server, made from those of one that is here."""

from __future__ import annotations

import base64
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from msgspec.structs import astuple

from recollect import presets
from recollect.operations import OWNERS, Operation, operations_of, owner_class, signature
from recollect.remote import is_deferred
from recollect.remote.client import Client
from recollect.values.errors import AccessError, InputError, StoreError, UnavailableError
from recollect.values.record import Address, Record, UnsavedRecord, utc_now
from recollect.verbs.export import Progress, Target, written_to
from recollect.verbs.import_ import Imported, read_from
from recollect.view import View

_KEY = "RECOLLECT_KEY"
_LOADED = frozenset(("_view", "_owner", "_whole", "_key_bound", "_defaults"))
"""Attributes of a memory that depend on what the server says of itself."""


def _in_event_loop() -> bool:
    asyncio = sys.modules.get("asyncio")  # not imported for this: without it there is no loop
    return asyncio is not None and asyncio._get_running_loop() is not None


class KeyFacts(msgspec.Struct, frozen=True):
    """What a server tells a client about itself."""

    version: str
    rank: str
    preset: presets.Preset
    address: Address
    bound: tuple[str, ...] = ()
    """The parts of the address that cannot be chosen any more."""


class _Nowhere:
    """The store of a view that is on a server."""

    def __getattr__(self, name: str) -> NoReturn:
        raise StoreError(f"{name}: the store is on a server; only its verbs can be called from here")


@functools.cache
def remote(memory: type) -> type:
    """The class of memories that are on a server."""
    facets = {name: property(_facet_maker(name)) for name in OWNERS if name and "." not in name}
    return type("RemoteMemory", (_Calls, memory), {**_methods(""), **facets, "__doc__": memory.__doc__})


class _Calls:
    """The part of a remote Memory that is no verb."""

    _client: Client

    def __init__(self, store: str, *, key: str | None = None, **options: Any) -> None:
        for name, value in options.items():
            if value and value is not utc_now:
                raise InputError(name, "is the server's to say; leave it out where the store is a server")
        self._client = Client(store, key or os.environ.get(_KEY))
        self._above: tuple[Any, Mapping[str, str | None]] | None = None
        self._deferred = is_deferred()
        if self._deferred:
            return
        try:
            self._load()
        except BaseException:
            self._client.close()
            raise

    def __getattr__(self, name: str) -> Any:
        """What the server says of itself, asked for when it is first needed: `__getattr__` is for what is not there."""
        if name not in _LOADED or "_client" not in vars(self):
            raise AttributeError(name)
        if self._deferred and _in_event_loop():
            raise StoreError("the server was not asked yet: use `async with AsyncMemory(…)`, or await a verb first")
        self._load()
        return vars(self)[name]

    def _load(self) -> None:
        if self._above is not None:
            above, parts = self._above
            bound: Any = above._bound(parts)
            vars(self).update({name: getattr(bound, name) for name in _LOADED})
            return
        about = self._client.read(self._client.about(), KeyFacts)
        view = View(_Nowhere(), about.preset, utc_now, about.address)  # type: ignore[arg-type]
        self._key_bound = frozenset(about.bound)
        self._defaults: dict[str, str] = {}
        self._owner = self._whole = self._view = view

    def at(self, **parts: str | None) -> Any:
        """What the key is bound to and what is chosen here are put together by the server, whichever comes first."""
        if "_view" in vars(self):
            return self._bound(parts)
        later = object.__new__(type(self))
        later._client, later._above, later._deferred = self._client, (self, parts), self._deferred
        return later

    def _bound(self, parts: Mapping[str, str | None]) -> Any:
        for part in self._key_bound & parts.keys():
            if parts[part] not in (None, value := getattr(self._view.address, part)):
                raise AccessError(f"{part}: this view is bound to {value} and cannot be moved")
        above: Any = super()
        bound: Any = above.at(**{part: value for part, value in parts.items() if part not in self._key_bound})
        bound._client, bound._key_bound = self._client, self._key_bound
        bound._above, bound._deferred = None, self._deferred
        return bound

    @property
    def unsaved(self) -> int:
        """As of the server's last answer; no request is made."""
        return self._client.unsaved

    def export(self, target: Target, *, progress: Progress | None = None) -> int:
        count, memories, line = -1, True, b""
        with self._client.download("/export", self._address()) as parts, written_to(target) as out:
            for line in _lines(parts):
                if count < 0 and not line.startswith(b'{"format":"recollect"'):
                    raise StoreError(f"{self._client.url}: what came is no export of recollect")
                out.write(line)
                memories = memories and not line.startswith(b"]")
                count += memories
            if not line.startswith(b"]}"):
                raise UnavailableError(f"{self._client.url}: the export ended in the middle")
        if progress:
            progress(count)
        return count

    def import_(self, source: Target, *, progress: Progress | None = None) -> Imported:
        with read_from(source) as stream:
            answer = self._client.upload("/import", self._address(), stream)
        imported = self._client.read(answer, Imported)
        if progress:
            progress(imported.added + imported.unchanged)
        return imported

    def backup(self, target: str | os.PathLike[str], **_: Any) -> NoReturn:
        raise InputError("target", "a server is backed up where its store is: `recollect backup` on that machine")

    def close(self) -> None:
        """Let go of the connections. A later call opens them again."""
        self._client.close()

    def _address(self) -> dict[str, str]:
        """The address parts to send. The tenant is always sent, so that no request reaches another one."""
        return {part: getattr(self._view.address, part) for part in (self._view.bound | {"tenant"}) - self._key_bound}

    def _call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        form = signature(name)
        for left_out in form.left_out:
            if arguments.get(left_out) is not None and left_out != "progress":
                raise InputError(left_out, "cannot be sent to a server; leave it out")
        sent = {key: value for key, value in arguments.items() if key not in form.left_out}
        unsaved, result = self._client.call(name, form, self._address(), sent)
        return _marked(result) if unsaved else result


def _marked(result: Any) -> Any:
    """The result with its records as UnsavedRecord."""
    if isinstance(result, list):
        return [_marked(item) for item in result]  # pyright: ignore[reportUnknownVariableType]
    return UnsavedRecord(*astuple(result)) if isinstance(result, Record) else result


def _lines(parts: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def _methods(owner: str) -> dict[str, Callable[..., Any]]:
    """The methods of Memory, or of a facet, that call the server."""
    operations = operations_of(owner).values()
    return {o.verb: _method(o) for o in operations if o.method and not o.streams}


def _method(operation: Operation) -> Callable[..., Any]:
    """A method that calls its namesake on the server. Python checks the arguments as it does for a local method."""
    form = inspect.signature(operation.function)
    (further,) = [p.name for p in form.parameters.values() if p.kind is p.VAR_KEYWORD] or [""]

    @functools.wraps(operation.function)
    def call(self: Any, *positional: Any, **named: Any) -> Any:
        arguments = dict(form.bind(self, *positional, **named).arguments)
        arguments.pop("self")
        arguments |= arguments.pop(further, {})
        return self._call(operation.name, arguments)

    return call


class _Facet:
    """In front of a facet's class."""

    _memory: Any

    def __getattr__(self, name: str) -> Any:
        if name != "_view":
            raise AttributeError(name)
        return self._memory._view

    def _call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return self._memory._call(name, arguments)


class _Files(_Facet):
    """In front of the knowledge base: files are read here and sent."""

    def add(self, text: str | None = None, *, path: Any = None, source: str | None = None, **more: Any) -> Any:
        if path is None or text is not None:
            arguments = {"text": text, "source": source, **more} | ({} if path is None else {"file_name": ""})
            return self._call("knowledge.add", {name: value for name, value in arguments.items() if value is not None})
        file = Path(os.path.abspath(path))
        try:
            content = base64.b64encode(file.read_bytes()).decode()
        except OSError:
            raise InputError("path", f"there is no file {file} that can be read") from None
        arguments = {"source": source or str(file), "file": content, "file_name": file.name, **more}
        return self._call("knowledge.add", {name: value for name, value in arguments.items() if value is not None})

    def add_folder(self, path: Any, **more: Any) -> NoReturn:
        raise InputError("path", "a folder is read where the server is; send its files with add(path=…), one by one")


@functools.cache
def _facet_class(name: str) -> type:
    kind, front = owner_class(name), {"knowledge": _Files}.get(name, _Facet)
    methods = {verb: method for verb, method in _methods(name).items() if verb not in vars(front)}
    inner = {
        full.rpartition(".")[2]: property(_facet_maker(full)) for full in OWNERS if full.rpartition(".")[0] == name
    }
    return type(kind.__name__, (front, kind), {**methods, **inner})


def _facet_maker(name: str) -> Callable[[Any], Any]:
    def make(above: Any) -> Any:
        kind: Any = _facet_class(name)
        made: Any = object.__new__(kind)
        made._memory = getattr(above, "_memory", above)
        return made

    return make
