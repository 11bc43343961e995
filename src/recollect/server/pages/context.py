"""Context preview: exactly what a model would see of a conversation, and what it costs."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from recollect.memory import Memory, view_of
from recollect.server.pages.rows import seen_as
from recollect.server.pages.site import Visit, page
from recollect.values.errors import InputError

_ROLE = re.compile(r"^(user|assistant|system|tool)\s*:\s*", re.IGNORECASE)
_BUDGET = 2000


def looking(memory: Memory) -> Memory:
    """The same memory, in which looking leaves no trace: nothing is counted, nothing is logged."""
    view = view_of(memory)
    preset = view.preset
    if preset.context.audit:
        preset = replace(preset, context=replace(preset.context, audit=False))
    return seen_as(memory, replace(view, preset=preset, counts=False))


def read_messages(text: str) -> list[dict[str, Any]]:
    """JSON as a client sends it, or lines such as `user: …`; a line without a role goes on with the one before."""
    if text.lstrip().startswith("["):
        try:
            return msgspec.json.decode(text, type=list[dict[str, Any]])
        except msgspec.DecodeError as error:
            raise InputError("messages", f"is not a JSON list of messages: {error}") from None
    messages: list[dict[str, Any]] = []
    for line in text.strip().splitlines():
        match = _ROLE.match(line)
        if match or not messages:
            messages.append(
                {"role": match[1].lower() if match else "user", "content": line[match.end() if match else 0 :]}
            )
        else:
            messages[-1]["content"] += f"\n{line}"
    return messages


@page("/context", "Context preview", template="context.html", nav="Context preview")
def context(visit: Visit) -> dict[str, Any]:
    text = visit.query("messages").replace("\r\n", "\n")
    data: dict[str, Any] = {"text": text, "budget": _BUDGET, "problem": "", "result": None}
    data["preset"] = visit.memory.preset.name
    try:
        data["budget"] = visit.number("budget", _BUDGET, high=1_000_000)
        if text:
            data["result"] = _shown(visit.memory, read_messages(text), data["budget"])
    except InputError as error:
        data["problem"] = str(error)
    return data


def _shown(memory: Memory, messages: list[dict[str, Any]], budget: int) -> dict[str, Any]:
    made = looking(memory).context(messages, budget=budget)
    report = made.report
    return {
        "messages": [
            {"role": message.get("role", ""), "text": _text(message.get("content")), "added": message not in messages}
            for message in made.messages
        ],
        "memories": made.memories,
        "tokens": report.tokens,
        "over": report.over,
        "sections": report.sections,
        "left_out": report.left_out,
        "condensed_by": report.condensed_by,
    }


def _text(content: Any) -> str:
    return content if isinstance(content, str) else msgspec.json.format(msgspec.json.encode(content)).decode()
