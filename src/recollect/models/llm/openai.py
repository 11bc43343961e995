"""Any endpoint that speaks OpenAI's `/v1/chat/completions`: OpenAI, Ollama, vLLM, LM Studio and others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from recollect.models.endpoint import PassingError, Service, one_line
from recollect.models.llm.base import Role
from recollect.models.llm.chat import Chat

OPENAI = "https://api.openai.com/v1"
_PASSING = ("server_error", "overloaded", "rate_limit", "timeout")


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: str | None = None


class _OpenAiAnswer(msgspec.Struct):
    choices: list[_Choice] | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_OpenAiAnswer).decode


class OpenAiLlm(Chat):
    """The key is the parameter, or `RECOLLECT_LLM_KEY`, or `OPENAI_API_KEY`; an endpoint that needs none gets none."""

    _service = Service(
        "/chat/completions",
        "RECOLLECT_LLM_KEY",
        "OPENAI_API_KEY",
        {400: "check the name of the model and the length of the text", 413: "send less text"},
    )

    def _body(self, messages: list[tuple[Role, str]]) -> dict[str, Any]:
        return {"model": self.name, "messages": [{"role": role, "content": text} for role, text in messages]}

    def _whole(self, content: bytes) -> str:
        answer = _decode(content)
        if answer.error:
            raise ValueError(one_line(answer.error))
        if not answer.choices:
            raise ValueError("it has no choices")
        choice = answer.choices[0]
        message = choice.message or _Message()
        _check(message.refusal, choice.finish_reason, bool(message.content and message.content.strip()))
        return message.content or ""

    def _pieces(self, events: Iterator[bytes]) -> Iterator[str]:
        refusal, reason, any_text = "", None, False
        for data in events:
            if data == b"[DONE]":
                _check(refusal, reason, any_text)
                return
            answer = _decode(data)
            if answer.error:
                raise _failure(answer.error)
            for choice in (answer.choices or [])[:1]:
                delta, reason = choice.delta or _Message(), choice.finish_reason or reason
                refusal += delta.refusal or ""
                if delta.content:
                    any_text = any_text or not delta.content.isspace()
                    yield delta.content
        raise PassingError("the stream ended before it said [DONE]")


def _check(refusal: str | None, reason: str | None, any_text: bool) -> None:
    if refusal or reason == "content_filter":
        raise ValueError(f"the model refused ({one_line(refusal or reason)})")
    if not any_text:
        more = "; raise max_tokens" if reason == "length" else ""
        raise ValueError(f"it has no text (finish_reason {reason}){more}")


def _failure(error: Any) -> Exception:
    problem = f"failed ({one_line(error)})"
    kind = str(error.get("type") or error.get("code")) if isinstance(error, dict) else ""  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    return PassingError(problem) if any(name in kind for name in _PASSING) else ValueError(problem)
