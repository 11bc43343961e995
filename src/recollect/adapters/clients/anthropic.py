"""Anthropic's clients: messages."""

from __future__ import annotations

from typing import Any

from recollect.adapters.clients.turns import Heard, Shape


def _message(result: Any) -> Heard:
    blocks = getattr(result, "content", None) or ()
    return Heard("".join(block.text for block in blocks if getattr(block, "type", None) == "text"), True)


def _event(event: Any) -> Heard:
    kind = getattr(event, "type", None)
    if kind == "content_block_delta" and event.delta.type == "text_delta":
        return Heard(event.delta.text)
    return Heard("", kind == "message_stop")


_MESSAGES = Shape("anthropic", "messages", _message, _event, system="system", prefilled=True)

METHODS = {
    "messages.create": _MESSAGES,
    "messages.parse": _MESSAGES,
    "messages.stream": _MESSAGES,
    "beta.messages.create": _MESSAGES,
    "beta.messages.parse": _MESSAGES,
    "beta.messages.stream": _MESSAGES,
}
