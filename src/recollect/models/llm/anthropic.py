"""Any endpoint that speaks Anthropic's `/v1/messages`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from recollect.models.endpoint import PassingError, Service, one_line
from recollect.models.llm.base import Role
from recollect.models.llm.chat import Chat
from recollect.values.errors import InputError

ANTHROPIC = "https://api.anthropic.com"
_PASSING = ("overloaded_error", "api_error", "rate_limit_error", "timeout_error")


class _Block(msgspec.Struct):
    type: str
    text: str = ""


class _AnthropicAnswer(msgspec.Struct):
    content: list[_Block]
    stop_reason: str | None = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""
    stop_reason: str | None = None


class _Error(msgspec.Struct):
    type: str = ""
    message: str = ""


class _Event(msgspec.Struct):
    type: str
    delta: _Delta | None = None
    error: _Error | None = None


_decode = msgspec.json.Decoder(_AnthropicAnswer).decode
_decode_event = msgspec.json.Decoder(_Event).decode


class AnthropicLlm(Chat):
    """The key is the parameter, or `RECOLLECT_LLM_KEY`, or `ANTHROPIC_API_KEY`."""

    _service = Service(
        "/v1/messages",
        "RECOLLECT_LLM_KEY",
        "ANTHROPIC_API_KEY",
        {
            400: "check the name of the model and the length of the text",
            404: "check the URL and the name of the model",
            413: "send less text",
        },
        key_header="x-api-key",
        key_prefix="",
        headers={"anthropic-version": "2023-06-01"},
    )

    def _body(self, messages: list[tuple[Role, str]]) -> dict[str, Any]:
        turns = [{"role": role, "content": text} for role, text in messages if role != "system"]
        if not turns:
            raise InputError("messages", "must have one of the user")
        body: dict[str, Any] = {"model": self.name, "messages": turns}
        if system := "\n\n".join(text for role, text in messages if role == "system"):
            body["system"] = system
        return body

    def _whole(self, content: bytes) -> str:
        answer = _decode(content)
        text = "".join(block.text for block in answer.content if block.type == "text")
        _check(answer.stop_reason, bool(text.strip()))
        return text

    def _pieces(self, events: Iterator[bytes]) -> Iterator[str]:
        reason, any_text = None, False
        for data in events:
            event = _decode_event(data)
            delta = event.delta or _Delta()
            if event.type == "error":
                raise _failure(event.error or _Error())
            if event.type == "message_stop":
                _check(reason, any_text)
                return
            if event.type == "message_delta":
                reason = delta.stop_reason or reason
            elif event.type == "content_block_delta" and delta.type == "text_delta" and delta.text:
                any_text = any_text or not delta.text.isspace()
                yield delta.text
        raise PassingError("the stream ended before it said message_stop")


def _check(reason: str | None, any_text: bool) -> None:
    if reason == "refusal":
        raise ValueError("the model refused")
    if not any_text:
        more = "; raise max_tokens" if reason == "max_tokens" else ""
        raise ValueError(f"it has no text (stop_reason {reason}){more}")


def _failure(error: _Error) -> Exception:
    problem = f"failed ({error.type}: {one_line(error.message)})"
    return PassingError(problem) if error.type in _PASSING else ValueError(problem)
