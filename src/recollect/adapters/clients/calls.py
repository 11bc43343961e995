"""One model call: memories are added before it, and its turn is stored after it. An error here never stops the call."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, cast, get_args

import msgspec

from recollect.adapters.clients.turns import Heard, Reply, Shape, Turn, argument, earlier, last_of, plain, turns
from recollect.aio import AsyncMemory
from recollect.context import Context
from recollect.facets.conversations.persist import close, keep, without_refused
from recollect.facets.requests import Heeded, RequestOutcome, heed
from recollect.memory import Memory
from recollect.policies.extraction import Said, extract
from recollect.policies.injection import Placing, SystemMessages
from recollect.policies.personal import mark
from recollect.policies.secrets import find
from recollect.values import validation
from recollect.values.errors import InputError, RecollectError, SecretError

OnError = Literal["warn", "raise"]
Storing = Literal["facts", "turns"]
"""Store the facts of a conversation, or every turn word for word."""

_log = logging.getLogger("recollect.wrap")
_EARLIER = 20
"""So many messages tell whether the user plays a part, or asked to keep nothing."""
_REMEMBERED = 10_000
"""So many turns are known to be stored already."""


def _memory(value: Any) -> Memory:
    if isinstance(value, AsyncMemory):
        return value.memory
    if isinstance(value, Memory):
        return value
    raise InputError("memory", f"must be a Memory or an AsyncMemory, not {type(value).__name__}")


def _flag(field: str) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        if isinstance(value, bool):
            return value
        raise InputError(field, f"must be True or False, not {type(value).__name__}")

    return check


def _storing(value: Any) -> Storing | None:
    if isinstance(value, bool):
        return "facts" if value else None
    if value in get_args(Storing):
        return value
    raise InputError("store", "must be True, False, 'facts' or 'turns'")


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "memory": _memory,
    "budget": lambda value: None if value is None else validation.count(value, "budget", high=100_000_000),
    "place": lambda value: None if value is None else validation.choice(value, "place", Placing),
    "system_messages": lambda value: (
        None if value is None else validation.choice(value, "system_messages", SystemMessages)
    ),
    "min_relevance": lambda value: None if value is None else validation.importance(value, "min_relevance"),
    "without_tags": lambda value: None if value is None else tuple(validation.sequence(value, "without_tags")),
    "inject": _flag("inject"),
    "store": _storing,
    "kind": validation.kind,
    "query": lambda value: None if value is None else validation.query(value),
    "on_error": lambda value: validation.choice(value, "on_error", OnError),
}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    memory: Memory
    budget: int | None = None
    place: Placing | None = None
    system_messages: SystemMessages | None = None
    min_relevance: float | None = None
    without_tags: tuple[str, ...] | None = None
    inject: bool = True
    store: Storing | None = "facts"
    kind: str = "conversation"
    query: str | None = None
    on_error: OnError = "warn"

    @property
    def stores(self) -> bool:
        """Whether anything of a call is stored: the caller and the memory's preset both say so."""
        return self.store is not None and self.memory.preset.remember.from_clients

    def but(self, changes: Any) -> Options:
        """With what the caller says about one call."""
        if not isinstance(changes, Mapping):
            raise InputError("recollect", f"must be a dict of options, not {type(changes).__name__}")
        for name in changes:  # pyright: ignore[reportUnknownVariableType]
            if name not in _CHECKS:
                raise InputError("recollect", f"{str(name)[:48]!r} is not an option; known: {', '.join(_CHECKS)}")  # pyright: ignore[reportUnknownArgumentType]
        checked = {name: _CHECKS[name](value) for name, value in changes.items()}  # pyright: ignore[reportUnknownVariableType]
        return msgspec.structs.replace(self, **checked)


def options(**values: Any) -> Options:
    return Options(**{name: _CHECKS[name](value) for name, value in values.items()})


class Wrapping:
    """What a wrapped client remembers with. `wrapped.recollect` is this."""

    def __init__(self, chosen: Options) -> None:
        self._options = chosen
        self._stored: OrderedDict[bytes, None] = OrderedDict()
        self._lock = threading.Lock()
        self._left: deque[tuple[WrappedCall, Reply]] = deque()
        self._open: dict[int, tuple[WrappedCall, Reply]] = {}
        """Streams that are being read, or were left in the middle by somebody who still holds them."""
        self.last: Context | None = None
        """What the latest call, of any thread, was given: `.report`, `.memories`, `.text`."""
        self.last_requests: tuple[RequestOutcome, ...] = ()
        """What the latest call that was stored asked of the memory, such as "forget that", and what became of it."""

    @property
    def memory(self) -> Memory:
        return self._options.memory

    def call(self, shape: Shape, arguments: dict[str, Any]) -> WrappedCall:
        changes = arguments.pop("recollect", None)
        return WrappedCall(self, shape, self._options if changes is None else self._options.but(changes), arguments)

    def flush(self) -> None:
        """Store the turns of streams that were let go before their end. The next call does so too."""
        while self._left:
            try:
                call, reply = self._left.popleft()
            except IndexError:  # another thread took it
                return
            call.finish(reply, quietly=True)

    def end(self) -> None:
        """The client closes, so nothing more comes of any stream."""
        self.flush()
        for call, reply in list(self._open.values()):
            call.finish(reply, quietly=True)

    def begin(self, call: WrappedCall, reply: Reply) -> None:
        self._open[id(call)] = call, reply

    def over(self, call: WrappedCall) -> None:
        self._open.pop(id(call), None)

    def leave(self, call: WrappedCall, reply: Reply) -> None:
        """Keep for `flush`: nothing may be written while objects are being collected."""
        self._left.append((call, reply))

    def claim(self, turns: Iterable[Turn]) -> list[Turn]:
        """Those that nobody has stored or is about to store."""
        claimed: list[Turn] = []
        with self._lock:
            for turn in turns:
                if turn.key in self._stored:
                    self._stored.move_to_end(turn.key)
                else:
                    self._stored[turn.key] = None
                    claimed.append(turn)
            while len(self._stored) > _REMEMBERED:
                self._stored.popitem(last=False)
        return claimed

    def release(self, claimed: Iterable[Turn]) -> None:
        """They were not stored after all; a later call may try again."""
        with self._lock:
            for turn in claimed:
                self._stored.pop(turn.key, None)


class WrappedCall:
    def __init__(self, wrapping: Wrapping, shape: Shape, chosen: Options, arguments: dict[str, Any]) -> None:
        self.shape = shape
        self._wrapping = wrapping
        self._options = chosen
        self._arguments = arguments
        self._finished = False
        self._messages: Any = None
        self._context = ""
        """The text that was added to the call."""
        try:
            self._messages = self._read_messages()
        except Exception as error:
            self._failed("the messages could not be read", error)

    def _read_messages(self) -> Any:
        """A copy: a caller may add the answer to the list while it still comes."""
        name = self.shape.messages
        asked = argument(self._arguments, name)
        if isinstance(asked, str) and self.shape.text:
            return [{"role": "user", "content": asked}]
        if asked is not None and not isinstance(asked, Sequence):
            asked = self._arguments[name] = list(asked)  # it can be read only once
        messages = plain(asked)
        if isinstance(messages, list) and all(isinstance(message, dict) for message in cast("list[Any]", messages)):
            return messages  # pyright: ignore[reportUnknownVariableType]
        return None

    def hear(self, reply: Reply, read: Callable[[Any], Heard], what: Any) -> str:
        """Add to a reply what a result or an event says."""
        try:
            heard = read(what)
        except Exception as error:
            self._failed("the answer could not be read", error)
            return ""
        reply.add(heard)
        return heard.text

    def prepare(self) -> dict[str, Any]:
        """The arguments to send: the caller's, with memories added."""
        self._wrapping.flush()
        if not self._options.inject or self._messages is None:
            return self._arguments
        try:
            return self._arguments | self._injected()
        except Exception as error:
            self._failed("nothing was put in", error)
        return self._arguments

    def _injected(self) -> dict[str, Any]:
        shape, chosen = self.shape, self._options
        # An empty prompt says that the form is not OpenAI's.
        prompt = None if shape.system is None else plain(argument(self._arguments, shape.system)) or ""
        made = chosen.memory.context(
            self._messages,
            system=prompt,
            budget=chosen.budget,
            query=chosen.query,
            min_relevance=chosen.min_relevance,
            ids=False,  # there is no tool that takes them
            place=chosen.place or shape.place,
            system_messages=chosen.system_messages,
            without_tags=chosen.without_tags,
        )
        self._wrapping.last = made
        self._context = made.text
        messages = made.messages
        if shape.system is None and made.system:
            messages = [{"role": "system", "content": made.system}, *messages]
        changed: dict[str, Any] = {}
        if messages != self._messages:
            changed[shape.messages] = messages
        if shape.system is not None and made.system != prompt:
            changed[shape.system] = made.system
        return changed

    def finish(self, reply: Reply, *, quietly: bool = False) -> None:
        """Store the turn, once. A call that brought nothing leaves nothing: it will be tried again."""
        self._wrapping.over(self)
        if self._finished:
            return
        self._finished = True
        if not self._options.stores or self._messages is None or not (reply.over or reply.text):
            return
        try:
            self._store(reply)
        except Exception as error:
            self._failed("the turn was not stored", error, quietly)

    def begin(self, reply: Reply) -> None:
        """It comes in pieces."""
        self._wrapping.begin(self, reply)

    def leave(self, reply: Reply) -> None:
        self._wrapping.over(self)
        if not self._finished and reply.text:
            self._wrapping.leave(self, reply)

    def _store(self, reply: Reply) -> None:
        memory = self._options.memory
        # The same words may be said in two memories at the same address.
        place = (id(memory._view.store), memory.address, *self._history())  # pyright: ignore[reportPrivateUsage]
        claimed = self._wrapping.claim(turns(self.shape, self._messages, reply, place, self._context))
        if not claimed:
            return
        try:
            heeded = self._heed(claimed)
            self._wrapping.last_requests = tuple(heeded.outcomes)
            if self._options.store == "facts":
                self._keep(claimed, reply, heeded)
                return
        except BaseException:
            self._wrapping.release(claimed)
            raise
        new = {turn.role: at for at, turn in enumerate(heeded.turns)}  # the last of each role
        texts = [heeded.turns[new[turn.role]].text for turn in claimed]
        claimed = [turn._replace(text=text) for turn, text in zip(claimed, texts, strict=True) if text]
        if not claimed:
            return
        texts = [(turn, without_refused(memory._view, turn.text)) for turn in claimed]  # pyright: ignore[reportPrivateUsage]
        texts = [(turn, text) for turn, text in texts if text]
        claimed = [turn for turn, _ in texts]
        items = [self._item(turn, text, turn.role == "assistant" and not reply.over) for turn, text in texts]
        for item in items:
            if item["role"] == "user" and heeded.remembered and heeded.remembered[-1][0] == new["user"]:
                item["importance"] = 1.0
        try:
            if items:
                memory.remember_many(items)
        except InputError:
            # One of them may not be stored, now or later. The other is no worse for that.
            if len(items) == 1:
                raise
            self._store_each(claimed, items)
        except BaseException:
            self._wrapping.release(claimed)
            raise

    def _heed(self, claimed: Sequence[Turn]) -> Heeded:
        """Act on what the user asks of the memory. Messages before it tell what is off the record."""
        spoken = [Said(role, text) for role, text in earlier(self._messages)]
        new = {turn.role: turn.text for turn in claimed}
        start = len(spoken)
        if "user" not in new:  # it was stored with an earlier call
            spoken += [Said("user", last_of(self._messages, "user", whole=True))]
            start += 1
        view = self._options.memory._view  # pyright: ignore[reportPrivateUsage]
        return heed(view, [*spoken, *(Said(role, text) for role, text in new.items())], start)

    def _keep(self, claimed: Sequence[Turn], reply: Reply, heeded: Heeded) -> None:
        """What matters of it, by rules: a model of its own would cost as much again as the call."""
        view = self._options.memory._view  # pyright: ignore[reportPrivateUsage]
        personal = view.preset.personal
        new = {turn.role: mark(turn.text, personal) for turn in claimed if turn.role == "user" or reply.over}
        refused = [role for role, text in new.items() if find(text, view.preset.secrets)]
        for role in refused:  # as a whole: a piece of a credential may not look like one
            view.log_refusal("remember", SecretError("content", find(new.pop(role), view.preset.secrets) or ""))
        asked = last_of(self._messages, "assistant") if "user" in new else ""
        first = len(heeded.turns) - len(claimed)
        spoken = [
            Said(turn.role, mark(turn.text, personal) if turn.role in new else "") for turn in heeded.turns[first:]
        ]
        facts = extract([Said("assistant", asked), *spoken], heeded.turns[max(first - _EARLIER, 0) : first])
        # Repeated passages were cut out of the answer, which may have changed its meaning.
        facts = [
            fact
            for fact in heeded.facts_left(facts, first - 1)
            if fact.turn >= first and not (fact.role == "assistant" and "…" in fact.text)
        ]
        keep(view, facts, view.address.conversation, [{"source": self.shape.source}] * len(facts))
        close(view, spoken)

    def _store_each(self, claimed: Sequence[Turn], items: Sequence[dict[str, Any]]) -> None:
        refused: list[InputError] = []
        for at, item in enumerate(items):
            try:
                self._options.memory.remember_many([item])
            except InputError as error:
                refused.append(error)
            except BaseException:
                self._wrapping.release(claimed[at:])
                raise
        if refused:
            raise refused[0]

    def _item(self, turn: Turn, text: str, partial: bool) -> dict[str, Any]:
        model = argument(self._arguments, "model")
        metadata = {"model": str(model)} if model is not None else {}
        return {
            "content": text,
            "again": True,  # a turn is one of many, whatever its words
            "kind": self._options.kind,
            "role": turn.role,
            "source": self.shape.source,
            "metadata": metadata | ({"partial": True} if partial else {}),
        }

    def _history(self) -> list[str]:
        return [str(argument(self._arguments, name)) for name in self.shape.history]

    def _failed(self, what: str, error: Exception, quietly: bool = False) -> None:
        if self._options.on_error == "raise" and not quietly:
            raise error
        # Errors of recollect explain themselves; for anything else the traceback is needed.
        _log.warning("%s: %s", what, error, exc_info=None if isinstance(error, RecollectError) else error)
