"""A caller's conversation, in the form that OpenAI's or Anthropic's clients take, read and never changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, cast

import msgspec

from recollect.text.tokens import Count
from recollect.values.errors import InputError

Message = Mapping[str, Any]
Style = Literal["openai", "anthropic"]

SYSTEM = frozenset(("system", "developer"))
_ANTHROPIC = frozenset(
    ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "image", "document")
)
_RESULTS = frozenset(("tool", "function"))
_SPEAKERS = frozenset((*SYSTEM, "user", "assistant"))
_PICTURES = frozenset(("image", "image_url", "input_image", "computer_screenshot"))
_MORE = ("tool_calls", "function_call", "name", "arguments", "input", "action", "output", "summary")
"""Further fields of a message that a model reads, in one API or another."""
_MESSAGE_TOKENS = 4
"""Who speaks, and the marks around a message."""
_PICTURE_TOKENS = 1600
"""What the largest picture counts at most."""


class MessageGroup(NamedTuple):
    """Messages that stay together: one alone, or a call of tools with its results."""

    messages: tuple[Message, ...]

    @property
    def role(self) -> str:
        return str(self.messages[0].get("role", "assistant"))

    @property
    def text(self) -> str:
        return "\n".join(filter(None, map(text_of, self.messages)))

    @property
    def asks(self) -> bool:
        """Whether it begins with the user's words. In Anthropic's format tool results have the role user, too."""
        return self.role == "user" and not _gives(self.messages[0])

    def tokens(self, count: Count) -> int:
        return sum(tokens_of(message, count) for message in self.messages)


class Transcript(NamedTuple):
    style: Style
    system: tuple[Message, ...]
    """OpenAI's messages before the conversation begins; Anthropic's `system` as one message, if there is one."""
    units: tuple[MessageGroup, ...]

    @property
    def last_question(self) -> str:
        """The text of the user's last message."""
        for unit in reversed(self.units):
            for message in reversed(unit.messages):
                if message.get("role") == "user" and (text := text_of(message).strip()):
                    return text
        return ""

    @property
    def texts(self) -> list[str]:
        """Every message in words."""
        return [text for unit in self.units for message in unit.messages if (text := text_of(message))]


def parse(messages: Sequence[Message], system: Any = None, style: Style | None = None) -> Transcript:
    """`system` is Anthropic's: text or blocks. Without it, and without blocks of theirs, the style is OpenAI's."""
    _check(messages)
    if style is None:
        style = "anthropic" if system is not None or _anthropic(messages) else "openai"
    rest = list(messages)
    before: list[Message] = []
    if system is not None:
        before.append({"role": "system", "content": _checked_system(system)})
    elif style == "openai":
        while rest and rest[0].get("role") in SYSTEM:
            before.append(rest.pop(0))
    return Transcript(style, tuple(before), tuple(_units(rest)))


def _check(messages: Sequence[Message]) -> None:
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("messages", f"must be a list of messages, not {type(messages).__name__}")
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                f"messages[{number}]", f"must be a message with role and content, not {type(message).__name__}"
            )
        role, kind = message.get("role"), message.get("type")
        if not isinstance(role, str) and (role is not None or not isinstance(kind, str)):
            raise InputError(f"messages[{number}].role", "must say who speaks: system, user, assistant or tool")
        _check_content(message.get("content"), f"messages[{number}].content")


def _check_content(content: Any, field: str) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list | tuple):
        raise InputError(field, f"must be text or a list of parts, not {type(content).__name__}")
    for number, part in enumerate(cast("list[Any]", content)):
        if not isinstance(part, Mapping):
            raise InputError(f"{field}[{number}]", f"must be a part with a type, not {type(part).__name__}")


def _checked_system(system: Any) -> Any:
    if isinstance(system, str):
        return system
    if isinstance(system, list | tuple) and all(isinstance(part, Mapping) for part in cast("list[Any]", system)):
        return list(cast("list[Any]", system))
    raise InputError("system", "must be text or a list of text blocks")


def _anthropic(messages: Sequence[Message]) -> bool:
    return any(
        part.get("type") in _ANTHROPIC for message in messages if not _plain(message) for part in _parts(message)
    )


def _plain(message: Message) -> bool:
    """Whether a message is plain text of one speaker, as most are. Such messages need no further parsing."""
    return len(message) == 2 and isinstance(message.get("content"), str) and message.get("role") in _SPEAKERS


def _units(messages: Sequence[Message]) -> Iterator[MessageGroup]:
    starts: list[int] = []
    called: dict[str, int] = {}
    before = True
    for number, message in enumerate(messages):
        plain, before = before, _plain(message)
        if before and plain:
            starts.append(number)
            continue
        if not number or not _belongs(message, messages[number - 1]):
            starts.append(number)
        for key in _answered(message):
            while starts[-1] > called.get(key, number):
                starts.pop()
        called |= dict.fromkeys(_calls(message), number)
    for start, end in pairwise([*starts, len(messages)]):
        yield MessageGroup(tuple(messages[start:end]))


def _belongs(message: Message, last: Message) -> bool:
    """Whether a message is nothing without the one before it."""
    if _gives(message):
        return True
    if message.get("role", "assistant") != "assistant":
        return False
    return _kind(last) == "reasoning" or (_asks(last) and _kind(message) not in ("", "reasoning"))


def _kind(message: Message) -> str:
    """Which item of the Responses API it is."""
    return kind if isinstance(kind := message.get("type"), str) else ""


def _asks(message: Message) -> bool:
    return _kind(message).endswith("_call")


def _gives(message: Message) -> bool:
    """Whether there is a tool's result in it."""
    if message.get("role") in _RESULTS or _kind(message).endswith("_output"):
        return True
    return any(part.get("type") == "tool_result" for part in _parts(message))


def _calls(message: Message) -> list[str]:
    """The ids of the tool calls in it."""
    call_ids = [message.get("call_id")] if _asks(message) else []
    call_ids += [part.get("id") for part in _parts(message) if part.get("type") == "tool_use"]
    call_ids += [call.get("id") for call in _mappings(message.get("tool_calls"))]
    return [key for key in call_ids if isinstance(key, str)]


def _answered(message: Message) -> list[str]:
    """The ids of the calls that it has the results of."""
    call_ids = [message.get("tool_call_id")] if message.get("role") in _RESULTS else []
    call_ids += [message.get("call_id")] if _kind(message).endswith("_output") else []
    call_ids += [part.get("tool_use_id") for part in _parts(message) if part.get("type") == "tool_result"]
    return [key for key in call_ids if isinstance(key, str)]


def _parts(message: Message) -> list[Message]:
    return _mappings(message.get("content"))


def _mappings(value: Any) -> list[Message]:
    if isinstance(value, list | tuple):
        return [item for item in cast("list[Any]", value) if isinstance(item, Mapping)]
    return []


def text_of(message: Message) -> str:
    """The text of a message, without tool calls and their results."""
    content = message.get("content")
    if message.get("role") in _RESULTS or _kind(message) == "reasoning":
        return ""
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in _parts(message)]
    return "\n".join(text for text in texts if isinstance(text, str))


def result_of(message: Message) -> str:
    """What a tool gave back, in words."""
    if _plain(message):
        return ""
    if message.get("role") in _RESULTS:
        return _words(message.get("content"))
    if _kind(message).endswith("_output"):
        return _words(message.get("output"))
    contents = [part.get("content") for part in _parts(message) if part.get("type") == "tool_result"]
    return "\n".join(filter(None, map(_words, contents)))


def _words(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    seen = [
        part
        for part in _mappings([value] if isinstance(value, Mapping) else value)
        if part.get("type") not in _PICTURES
    ]
    return "\n".join(text if isinstance(text := part.get("text"), str) else _json(part) for part in seen)


def tokens_of(message: Message, count: Count) -> int:
    """Of all that is in it: words, calls, results and pictures."""
    total, content = _MESSAGE_TOKENS, message.get("content")
    if isinstance(content, str):
        total += count(content)
    if _plain(message):
        return total
    total += sum(_part_tokens(part, count) for part in _parts(message))
    return total + sum(_value_tokens(value, count) for name in _MORE if (value := message.get(name)) is not None)


def _value_tokens(value: Any, count: Count) -> int:
    if isinstance(value, str):
        return count(value)
    if isinstance(value, list | tuple):
        return sum(_value_tokens(item, count) for item in cast("list[Any]", value))
    return _part_tokens(cast("Message", value), count) if isinstance(value, Mapping) else count(_json(value))


def _part_tokens(part: Message, count: Count) -> int:
    if part.get("type") in _PICTURES:
        return _PICTURE_TOKENS
    if isinstance(text := part.get("text"), str):
        return count(text)
    inner = part.get("content")
    if not isinstance(inner, list | tuple):
        return count(_json(part))
    # A result may have pictures inside, whose bytes are no text.
    rest = {key: value for key, value in part.items() if key != "content"}
    return count(_json(rest)) + _value_tokens(inner, count)


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except (TypeError, UnicodeEncodeError):  # keys that JSON has not, or half a surrogate pair
        return str(value)
