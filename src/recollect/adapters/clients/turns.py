"""The turns of a model call that are stored: the user's message and the answer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

import msgspec

from recollect.context import OPEN, blocks, unrepeated, without
from recollect.context.messages import SYSTEM, Message, result_of, text_of
from recollect.policies.injection import Placing
from recollect.text.echo import unechoed
from recollect.values.record import Role


class Heard(NamedTuple):
    """What a reply, or an event of a stream, says."""

    text: str = ""
    over: bool = False
    """Whether nothing is missing after it."""


class Shape(msgspec.Struct, frozen=True):
    """How one method of a client takes a conversation and gives an answer."""

    source: Literal["openai", "anthropic"]
    messages: str
    """The argument with the conversation."""
    reply: Callable[[Any], Heard]
    event: Callable[[Any], Heard]
    system: str | None = None
    """The argument with the system prompt, where it is no message."""
    text: bool = False
    """Whether the conversation may be a text alone."""
    history: tuple[str, ...] = ()
    """Arguments that refer to earlier turns on the server."""
    place: Placing | None = None
    """Where memories go unless the caller says; without it, where the preset says."""
    prefilled: bool = False
    """Whether a last message of the assistant is the beginning of its answer."""


class Reply:
    """An answer as it comes."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self.over = False

    def add(self, heard: Heard) -> None:
        self._texts.append(heard.text)
        self.over = self.over or heard.over

    @property
    def text(self) -> str:
        return "".join(self._texts)


class Turn(NamedTuple):
    role: Role
    text: str
    key: bytes
    """The same for the same words at the same point of the same conversation."""


def turns(
    shape: Shape, messages: Sequence[Message], reply: Reply, place: Sequence[object], injected: str = ""
) -> list[Turn]:
    """What was new in a call, without what a context had put in: `injected` now, or with an earlier message.

    `place` is where it would be stored.
    """
    new_turns: list[Turn] = []
    at = _last_user_index(messages)
    if at is not None and (text := _new(text_of(messages[at]), _injected_texts(messages[:at], injected))):
        new_turns.append(Turn("user", text, _key(place, messages[: at + 1])))
    begun = text_of(messages[-1]) if shape.prefilled and messages and messages[-1].get("role") == "assistant" else ""
    injected_texts = _injected_texts(messages, injected)
    if reply.text.strip() and (text := _new(unechoed(without(begun + reply.text), injected_texts), injected_texts)):
        new_turns.append(Turn("assistant", text, _key(place, [*messages, {"role": "assistant", "content": text}])))
    return new_turns


def _injected_texts(before: Sequence[Message], injected: str) -> list[str]:
    """The texts that recollect has put into these messages."""
    earlier = (block for message in before if OPEN in (text := text_of(message)) for block in blocks(text))
    return [injected, *earlier]


def _new(text: str, injected: Sequence[str]) -> str:
    return unrepeated(without(text), injected).strip()


def _last_user_index(messages: Sequence[Message]) -> int | None:
    """The index of the user's last message; None if a tool has answered since, or it has no words."""
    for at in reversed(range(len(messages))):
        message = messages[at]
        role, kind = message.get("role"), message.get("type")
        if role == "user":
            return at if text_of(message).strip() else None
        if role in ("tool", "function") or (isinstance(kind, str) and kind.endswith("_output")):
            return None
    return None


def earlier(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """What was said before the user's last message, by whom, without what a context had put in."""
    users = [at for at, message in enumerate(messages) if message.get("role") == "user"]
    before = messages[: users[-1]] if users else messages
    return [
        (role, without(text_of(message)).strip())
        for message in before
        if (role := message.get("role")) in ("user", "assistant")
    ]


def last_of(messages: Sequence[Message], role: str, *, whole: bool = False) -> str:
    """The words of the last message of a role, before the user's last one or in the `whole` conversation."""
    at = None if whole else _last_user_index(messages)
    before = messages if at is None else messages[:at]
    return next((text_of(message) for message in reversed(before) if message.get("role") == role), "")


def _key(place: Sequence[object], messages: Sequence[Message]) -> bytes:
    """A hash of the messages without system prompts, because many of these hold the time of day."""
    spoken = [
        (message.get("role"), text_of(message), result_of(message))
        for message in messages
        if message.get("role") not in SYSTEM
    ]
    return hashlib.blake2b(msgspec.json.encode((place, spoken), enc_hook=str), digest_size=16).digest()


def plain(value: Any) -> Any:
    """A copy as dicts and lists, with the clients' own objects as they would be sent."""
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("list[Any]", value)]
    if hasattr(value, "model_dump"):
        hidden = getattr(value, "__api_exclude__", None)
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=hidden, warnings=False)
    return value


def argument(arguments: Mapping[str, Any], name: str | None) -> Any:
    """An argument; None also for the clients' own markers of an argument that is not given."""
    value = arguments.get(name) if name is not None else None
    return None if type(value).__name__ in ("NotGiven", "Omit") else value
