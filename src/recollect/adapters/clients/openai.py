"""OpenAI's clients: chat completions and responses."""

from __future__ import annotations

from typing import Any

from recollect.adapters.clients.turns import Heard, Shape


def _completion(result: Any) -> Heard:
    """The first of the choices. A refusal is no answer."""
    choices = getattr(result, "choices", None)
    content = getattr(getattr(choices[0], "message", None), "content", None) if choices else None
    return Heard(content if isinstance(content, str) else "", True)


def _chunk(event: Any) -> Heard:
    # The events of the `stream` helper hold the chunk that they were made from.
    for choice in getattr(getattr(event, "chunk", event), "choices", None) or ():
        if choice.index == 0:
            content = getattr(choice.delta, "content", None)
            return Heard(content if isinstance(content, str) else "", choice.finish_reason is not None)
    return Heard()


def _response(result: Any) -> Heard:
    text = getattr(result, "output_text", None)
    return Heard(text if isinstance(text, str) else "", getattr(result, "status", None) not in ("failed", "cancelled"))


def _response_event(event: Any) -> Heard:
    kind = getattr(event, "type", None)
    if kind == "response.output_text.delta":
        return Heard(event.delta)
    return Heard("", kind in ("response.completed", "response.incomplete"))


_CHAT = Shape("openai", "messages", _completion, _chunk)
_RESPONSES = Shape(
    "openai",
    "input",
    _response,
    _response_event,
    system="instructions",
    # Not as a message: what `previous_response_id` leads to would hold the memories of every call.
    place="system",
    text=True,
    history=("previous_response_id", "conversation"),
)

METHODS = {
    "chat.completions.create": _CHAT,
    "chat.completions.parse": _CHAT,
    "chat.completions.stream": _CHAT,
    "beta.chat.completions.create": _CHAT,
    "beta.chat.completions.parse": _CHAT,
    "beta.chat.completions.stream": _CHAT,
    "responses.create": _RESPONSES,
    "responses.parse": _RESPONSES,
    "responses.stream": _RESPONSES,
}
