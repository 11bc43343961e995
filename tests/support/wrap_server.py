"""A real HTTP server that answers as OpenAI's responses do, and what the tests of wrapped clients ask of a memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from recollect import Memory
from support.web import Request, Server, serving


def stored_turns(memory: Memory) -> list[tuple[str | None, Any]]:
    """Who said what, in order."""
    records = memory.list(newest_first=False, limit=10_000)
    return [(record.role, record.content) for record in sorted(records, key=lambda record: record.id)]


def tool_result(text: str, ident: str = "call_1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": ident, "content": text}


@contextmanager
def responses_server(text: str = "It is noted", *, cut: bool = False, fails: bool = False) -> Iterator[Server]:
    """Says the same each time. A stream is cut before its last word, or ends in a failure without one."""

    def answer(request: Request) -> None:
        asked = json.loads(request.body)
        if not asked.get("stream"):
            content = json.dumps(_response(asked, text, "failed" if fails else "completed")).encode()
            request.reply(content, 200, {"Content-Type": "application/json"})
            return
        events = list(_events(asked, text, fails))
        body = b"".join(events)
        request.begin(len(body), 200, {"Content-Type": "text/event-stream"})
        if cut:
            request.wfile.write(b"".join(events[:-2]))
            request.drop()
        else:
            request.wfile.write(body)

    with serving(answer) as server:
        yield server


def _response(asked: dict[str, Any], text: str, status: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_780_000_000,
        "model": asked.get("model", "m"),
        "status": status,
        "output": [message] if text and status == "completed" else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _events(asked: dict[str, Any], text: str, fails: bool) -> Iterator[bytes]:
    words = text.split(" ")
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": []}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": _response(asked, "", "in_progress")}]
    if not fails:
        events.append({"type": "response.output_item.added", "output_index": 0, "item": message})
        events.append({"type": "response.content_part.added", "part": part, **where})
        for number, word in enumerate(words):
            delta = word if number == 0 else f" {word}"
            events.append({"type": "response.output_text.delta", "delta": delta, "logprobs": [], **where})
    end = "failed" if fails else "completed"
    events.append({"type": f"response.{end}", "response": _response(asked, text, end)})
    for number, event in enumerate(events):
        data = json.dumps({**event, "sequence_number": number})
        yield f"event: {event['type']}\ndata: {data}\n\n".encode()
