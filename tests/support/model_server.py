"""A real HTTP server that answers as OpenAI's chat completions and Anthropic's messages do, and fails as told.

    with model_server() as server:
        server.then(says("hello"), status(429, Retry_After="7"), cut("half of it", after=1))
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="any")
        client2 = anthropic.Anthropic(base_url=server.url, api_key="any")
        ...
        assert server.bodies[0]["messages"] == [...]

Each request takes the next behaviour; when there are none left, the answer is `You said: …`. An answer is streamed if
the request asks for that.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from support.web import Request, Server

CREATED = 1_780_000_000
_EVENTS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}


class Tool(NamedTuple):
    """A call of a tool that the model asks for."""

    name: str
    arguments: Mapping[str, Any]


class Answer(NamedTuple):
    """What the model says: a text, tools to be called, or both. `reason` overrides why it stops."""

    text: str = ""
    tools: tuple[Tool, ...] = ()
    reason: str | None = None

    @property
    def pieces(self) -> list[str]:
        """A word and the space behind it at a time."""
        words = self.text.split(" ")
        return [f"{word} " for word in words[:-1]] + [words[-1]] if self.text else []


class Dialect(Protocol):
    """How one provider puts it."""

    def whole(self, answer: Answer, asked: Mapping[str, Any]) -> dict[str, Any]: ...
    def events(self, answer: Answer, asked: Mapping[str, Any]) -> list[bytes]:
        """One for each piece of the text, with what goes before and after."""
        ...

    def error(self, kind: str, message: str) -> dict[str, Any]: ...
    def error_event(self, kind: str, message: str) -> bytes: ...


Behaviour = Callable[[Request, Dialect, dict[str, Any]], None]


class ModelServer(Server):
    def __init__(self) -> None:
        super().__init__(self._respond)
        self._script: deque[Behaviour] = deque()
        self._always: Behaviour | None = None
        self._taking = threading.Lock()

    def then(self, *behaviours: Behaviour) -> None:
        self._script.extend(behaviours)

    def always(self, behaviour: Behaviour) -> None:
        """What is done once the script is over."""
        self._always = behaviour

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.body) for request in self.requests]

    @property
    def headers(self) -> list[dict[str, str]]:
        """Of each request, with the names in small letters."""
        return [{name.lower(): value for name, value in request.headers.items()} for request in self.requests]

    def _respond(self, request: Request) -> None:
        dialect = dialect_of(request.path)
        if dialect is None or request.command != "POST":
            send(request, 404, OPENAI.error("not_found_error", f"there is no {request.command} {request.path}"))
            return
        try:
            asked = json.loads(request.body)
        except ValueError:
            send(request, 400, dialect.error("invalid_request_error", "the body is not JSON"))
            return
        with self._taking:
            behaviour = self._script.popleft() if self._script else self._always
        (behaviour or says(f"You said: {last_said(asked)}"))(request, dialect, asked)


@contextmanager
def model_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


# What it can be told to do


def says(text: str, *tools: Tool, reason: str | None = None) -> Behaviour:
    return lambda request, dialect, asked: _give(request, dialect, asked, Answer(text, tools, reason))


def status(code: int, message: str = "told to", kind: str = "api_error", **headers: str) -> Behaviour:
    """A refusal. Underscores in the names of headers stand for hyphens: `Retry_After="7"`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request, dialect, _: send(request, code, dialect.error(kind, message), named)


def late(seconds: float, behaviour: Behaviour) -> Behaviour:
    def act(request: Request, dialect: Dialect, asked: dict[str, Any]) -> None:
        time.sleep(seconds)
        behaviour(request, dialect, asked)

    return act


def raw(content: bytes | str, code: int = 200, content_type: str = "application/json") -> Behaviour:
    """Bytes as they are: malformed JSON, a page of a proxy, a stream made by hand."""
    encoded = content.encode() if isinstance(content, str) else content
    return lambda request, *_: request.reply(encoded, code, {"Content-Type": content_type})


def drop() -> Behaviour:
    """Hang up without a word."""
    return lambda request, *_: request.drop()


def cut(text: str, after: int, *, cleanly: bool = False) -> Behaviour:
    """A stream that stops after some pieces of the text: the connection breaks, or, cleanly, it just ends."""
    return lambda request, dialect, asked: _stop(request, _until(dialect, asked, text, after), cleanly)


def hang(text: str, after: int, seconds: float) -> Behaviour:
    """A stream that stops after some pieces, and says nothing more for so long."""

    def act(request: Request, dialect: Dialect, asked: dict[str, Any]) -> None:
        _begin(request)
        for event in _until(dialect, asked, text, after):
            _chunk(request, event)
        time.sleep(seconds)
        request.drop()

    return act


def fails_midway(text: str, after: int, kind: str = "overloaded_error", message: str = "Overloaded") -> Behaviour:
    """A stream in which an error comes after some pieces of the text."""

    def act(request: Request, dialect: Dialect, asked: dict[str, Any]) -> None:
        _stop(request, [*_until(dialect, asked, text, after), dialect.error_event(kind, message)], cleanly=True)

    return act


# How it is sent


def send(request: Request, code: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
    request.reply(json.dumps(body).encode(), code, {"Content-Type": "application/json", **(headers or {})})


def _give(request: Request, dialect: Dialect, asked: dict[str, Any], answer: Answer) -> None:
    if asked.get("stream"):
        _stop(request, dialect.events(answer, asked), cleanly=True)
    else:
        send(request, 200, dialect.whole(answer, asked), {"x-request-id": "req_1", "request-id": "req_1"})


def _until(dialect: Dialect, asked: Mapping[str, Any], text: str, pieces: int) -> list[bytes]:
    """The events up to the last of some pieces of the text, and not of all of it."""
    answer = Answer(text)
    events = dialect.events(answer, asked)
    deltas = [at for at, event in enumerate(events) if b"text_delta" in event or b'"content": "' in event]
    texts = [at for at in deltas if b'"content": ""' not in events[at]]
    return events[: texts[pieces - 1] + 1 if pieces else texts[0]]


def _begin(request: Request) -> None:
    request.send_response(200)
    for name, value in {**_EVENTS, "Transfer-Encoding": "chunked"}.items():
        request.send_header(name, value)
    request.end_headers()


def _chunk(request: Request, content: bytes) -> None:
    request.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))
    request.wfile.flush()


def _stop(request: Request, events: list[bytes], cleanly: bool) -> None:
    _begin(request)
    for event in events:
        _chunk(request, event)
    if cleanly:
        _chunk(request, b"")
    else:
        request.drop()


# The providers


def dialect_of(path: str) -> Dialect | None:
    path = path.partition("?")[0]
    if path.endswith("/chat/completions"):
        return OPENAI
    return ANTHROPIC if path.endswith("/v1/messages") else None


def last_said(asked: Mapping[str, Any]) -> str:
    """The last of the user's messages, as text."""
    for message in reversed(asked.get("messages") or []):
        if message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            return " ".join(part.get("text", "") for part in content or [])
    return ""


def _words(text: str) -> int:
    return max(len(text.split()), 1)


def _tokens(asked: Mapping[str, Any]) -> int:
    return sum(_words(json.dumps(message)) for message in asked.get("messages") or [])


class _OpenAi:
    def whole(self, answer: Answer, asked: Mapping[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
        if answer.tools:
            message["tool_calls"] = [self._call(at, tool) for at, tool in enumerate(answer.tools)]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._reason(answer)}
        return {**self._head("chat.completion", asked), "choices": [choice], "usage": self._usage(answer, asked)}

    def events(self, answer: Answer, asked: Mapping[str, Any]) -> list[bytes]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
        deltas += [{"content": piece} for piece in answer.pieces]
        for at, tool in enumerate(answer.tools):
            call = self._call(at, tool)
            arguments = call["function"]["arguments"]
            call["function"]["arguments"] = ""
            deltas.append({"tool_calls": [{"index": at, **call}]})
            for part in (arguments[:7], arguments[7:]):
                deltas.append({"tool_calls": [{"index": at, "function": {"arguments": part}}]})
        chunks = [self._chunk(asked, delta, None) for delta in deltas] + [self._chunk(asked, {}, self._reason(answer))]
        if (asked.get("stream_options") or {}).get("include_usage"):
            for chunk in chunks:
                chunk["usage"] = None
            head = self._head("chat.completion.chunk", asked)
            chunks.append({**head, "choices": [], "usage": self._usage(answer, asked)})
        return [b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks] + [b"data: [DONE]\n\n"]

    def error(self, kind: str, message: str) -> dict[str, Any]:
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}

    def error_event(self, kind: str, message: str) -> bytes:
        return b"data: %b\n\n" % json.dumps(self.error(kind, message)).encode()

    def _head(self, kind: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "id": "chatcmpl-1",
            "object": kind,
            "created": CREATED,
            "model": asked.get("model", "m"),
            "service_tier": "default",
            "system_fingerprint": "fp_1",
        }

    def _chunk(self, asked: Mapping[str, Any], delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**self._head("chat.completion.chunk", asked), "choices": [choice]}

    def _call(self, at: int, tool: Tool) -> dict[str, Any]:
        function = {"name": tool.name, "arguments": json.dumps(tool.arguments)}
        return {"id": f"call_{at + 1}", "type": "function", "function": function}

    def _reason(self, answer: Answer) -> str:
        return answer.reason or ("tool_calls" if answer.tools else "stop")

    def _usage(self, answer: Answer, asked: Mapping[str, Any]) -> dict[str, int]:
        prompt, made = _tokens(asked), _words(answer.text)
        return {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}


class _Anthropic:
    def whole(self, answer: Answer, asked: Mapping[str, Any]) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
        blocks += [{**self._use(at, tool), "input": dict(tool.arguments)} for at, tool in enumerate(answer.tools)]
        usage = {**self._used(asked), "output_tokens": _words(answer.text)}
        return {**self._head(asked), "content": blocks, "stop_reason": self._reason(answer), "usage": usage}

    def events(self, answer: Answer, asked: Mapping[str, Any]) -> list[bytes]:
        message = {**self._head(asked), "content": [], "usage": {**self._used(asked), "output_tokens": 1}}
        events = [_event("message_start", message=message), _event("ping")]
        blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        if answer.text:
            pieces = [{"type": "text_delta", "text": piece} for piece in answer.pieces]
            blocks.append(({"type": "text", "text": ""}, pieces))
        for at, tool in enumerate(answer.tools):
            arguments = json.dumps(tool.arguments)
            parts = [{"type": "input_json_delta", "partial_json": part} for part in ("", arguments[:7], arguments[7:])]
            blocks.append((self._use(at, tool), parts))
        for index, (block, deltas) in enumerate(blocks):
            events.append(_event("content_block_start", index=index, content_block=block))
            events += [_event("content_block_delta", index=index, delta=delta) for delta in deltas]
            events.append(_event("content_block_stop", index=index))
        end = {"stop_reason": self._reason(answer), "stop_sequence": None}
        events.append(_event("message_delta", delta=end, usage={"output_tokens": _words(answer.text)}))
        return [*events, _event("message_stop")]

    def error(self, kind: str, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}

    def error_event(self, kind: str, message: str) -> bytes:
        return _event("error", error={"type": kind, "message": message})

    def _head(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        kind = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.get("model", "m")}
        return {**kind, "stop_reason": None, "stop_sequence": None}

    def _use(self, at: int, tool: Tool) -> dict[str, Any]:
        return {"type": "tool_use", "id": f"toolu_{at + 1}", "name": tool.name, "input": {}}

    def _reason(self, answer: Answer) -> str:
        return answer.reason or ("tool_use" if answer.tools else "end_turn")

    def _used(self, asked: Mapping[str, Any]) -> dict[str, int]:
        return {"input_tokens": _tokens(asked), "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


def _event(kind: str, **data: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), json.dumps({"type": kind, **data}).encode())


OPENAI: Dialect = _OpenAi()
ANTHROPIC: Dialect = _Anthropic()
