"""Models at endpoints, spoken to over a real connection: what is sent, what comes, and with which key."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.llms import ANTHROPIC_ONLY, KINDS, OPENAI_ONLY, QUESTION, Connect, connecting, ways
from support.model_server import Behaviour, ModelServer, Tool, cut, fails_midway, model_server, raw, says, status

from recollect import InputError, ModelError
from recollect.models.llm import Message
from recollect.models.llm.anthropic import AnthropicLlm
from recollect.models.llm.openai import OpenAiLlm

KEY = "sk-Secret0123456789"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RECOLLECT_LLM_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def pauses() -> list[float]:
    """How long the model would have been left alone, had `sleep` not been this."""
    return []


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def connect(kind: str, server: ModelServer, pauses: list[float]) -> Iterator[Connect]:
    with connecting(kind, server, pauses) as connect:
        yield connect


# What works


def test_an_answer_comes_whole_or_in_pieces(server: ModelServer, connect: Connect) -> None:
    server.then(says("It is in Porto."), says("It is in Porto."))
    llm = connect()

    assert llm.name == "m"
    assert llm.complete(QUESTION) == "It is in Porto."
    assert list(llm.stream(QUESTION)) == ["It ", "is ", "in ", "Porto."]


@OPENAI_ONLY
def test_what_openai_is_sent(server: ModelServer, connect: Connect) -> None:
    messages = [Message("system", "be brief"), Message("user", "hi"), Message("assistant", "hello"), *QUESTION]
    llm = connect(key="k")
    llm.complete(messages, max_tokens=7, temperature=0.5)
    list(llm.stream(QUESTION))

    assert server.requests[0].path == "/v1/chat/completions"
    assert server.headers[0]["authorization"] == "Bearer k"
    assert server.bodies[0] == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "where is the office?"},
        ],
        "max_tokens": 7,
        "temperature": 0.5,
    }
    assert server.bodies[1]["stream"] is True
    assert (server.bodies[1]["max_tokens"], server.bodies[1]["temperature"]) == (1024, 0.0)


@ANTHROPIC_ONLY
def test_what_anthropic_is_sent(server: ModelServer, connect: Connect) -> None:
    messages = [Message("system", "be brief"), Message("system", "be kind"), *QUESTION]
    llm = connect(key="k")
    llm.complete(messages, max_tokens=7, temperature=0.5)
    list(llm.stream(QUESTION))

    assert server.requests[0].path == "/v1/messages"
    assert server.headers[0]["x-api-key"] == "k"
    assert server.headers[0]["anthropic-version"] == "2023-06-01"
    assert "authorization" not in server.headers[0]
    assert server.bodies[0] == {
        "model": "m",
        "system": "be brief\n\nbe kind",
        "messages": [{"role": "user", "content": "where is the office?"}],
        "max_tokens": 7,
        "temperature": 0.5,
    }
    assert server.bodies[1]["stream"] is True
    assert "system" not in server.bodies[1]


@pytest.mark.parametrize(
    ("kind", "base", "path"),
    [
        ("openai", "/v1/", "/v1/chat/completions"),
        ("openai", "/v1/chat/completions", "/v1/chat/completions"),
        ("openai", "/azure?api-version=1", "/azure/chat/completions?api-version=1"),
        ("anthropic", "/", "/v1/messages"),
        ("anthropic", "/v1", "/v1/messages"),
        ("anthropic", "/proxy/v1/", "/proxy/v1/messages"),
        ("anthropic", "/v1/messages", "/v1/messages"),
    ],
)
def test_the_url_may_end_in_any_way_people_write_it(server: ModelServer, kind: str, base: str, path: str) -> None:
    llm = KINDS[kind][0](f"{server.url}{base}", "m")
    llm.complete(QUESTION)
    llm.close()

    assert server.requests[0].path == path


def test_a_user_and_password_of_the_url_are_sent_and_neither_shown_nor_logged(
    server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    llm = OpenAiLlm(f"{server.url.replace('//', '//me:p%40ss@')}/v1", "m", key=None)
    server.then(says("yes"), status(400))

    llm.complete(QUESTION)
    with pytest.raises(ModelError) as caught:
        llm.complete(QUESTION)
    llm.close()

    assert server.headers[0]["authorization"] == "Basic bWU6cEBzcw=="
    for secret in ("p%40ss", "p@ss", "bWU6cEBzcw"):
        assert secret not in f"{caught.value!r} {llm!r} {caplog.text}"


def test_text_that_json_cannot_hold_is_made_fit(server: ModelServer, connect: Connect) -> None:
    connect().complete([Message("user", "half \ud800 pair")])

    assert server.bodies[0]["messages"][0]["content"] == "half ? pair"


@ANTHROPIC_ONLY
def test_thinking_and_tools_are_not_text(server: ModelServer, connect: Connect) -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "x"}
    content = [
        thinking,
        {"type": "other", "text": "?"},
        {"type": "text", "text": "In "},
        {"type": "text", "text": "Porto."},
    ]
    server.then(raw(json.dumps({"content": content, "stop_reason": "end_turn"})), says("Wait.", Tool("f", {"a": 1})))
    llm = connect()

    assert llm.complete(QUESTION) == "In Porto."
    assert "".join(llm.stream(QUESTION)) == "Wait."


@OPENAI_ONLY
@pytest.mark.parametrize("letter", ["\u2028", "\x85", "\x0b", "\x1c", "é", "🦜"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_stream_is_cut_into_lines_only_where_they_end(
    server: ModelServer, connect: Connect, letter: str, newline: str
) -> None:
    chunk = json.dumps({"choices": [{"delta": {"content": f"a{letter}b"}}]}, ensure_ascii=letter < " ")
    lines = [": a comment", "", f"data:{chunk}", "", "retry: 5", "", f"data: {chunk}", "", "data: [DONE]"]
    server.then(raw(newline.join(lines), content_type="Text/Event-Stream; charset=utf-8"))

    assert list(connect().stream(QUESTION)) == [f"a{letter}b"] * 2


def test_a_stream_that_is_left_early_lets_its_connection_go(server: ModelServer, connect: Connect) -> None:
    llm = connect()
    pieces = llm.stream(QUESTION)
    assert next(pieces) == "You "
    pieces.close()  # type: ignore[attr-defined]

    assert llm.complete(QUESTION) == "You said: where is the office?"


def test_nothing_is_sent_before_the_first_piece_is_asked_for(server: ModelServer, connect: Connect) -> None:
    connect().stream(QUESTION)

    assert server.requests == []


def test_many_threads_can_share_one(server: ModelServer, connect: Connect) -> None:
    llm = connect()
    found: dict[int, str] = {}

    def work(number: int) -> None:
        ask = llm.complete if number % 2 else lambda messages: "".join(llm.stream(messages))
        found[number] = ask([Message("user", f"number {number}")])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == {number: f"You said: number {number}" for number in range(12)}


def test_it_can_be_closed_and_used_again(connect: Connect) -> None:
    llm = connect()
    llm.complete(QUESTION)
    llm.close()
    llm.close()

    assert llm.complete(QUESTION)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_connections_of_its_own(
    server: ModelServer, connect: Connect, run: Callable[..., str]
) -> None:
    script = """
import os, sys
from recollect.models.llm import Message, llm_for
llm = llm_for(sys.argv[1])
ask = lambda: llm.complete([Message("user", "tea?")])
before = ask()
child = os.fork()
if not child:
    assert ask() == before
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert ask() == before
"""
    run(script, f"{server.url}/v1#m")

    ports = [request.port for request in server.requests]
    assert ports[0] == ports[2] != ports[1]


# Parameters that a model does not take


def test_a_temperature_that_is_not_wanted_is_left_out(server: ModelServer, connect: Connect) -> None:
    server.then(status(400, "Unsupported value: 'temperature' does not support 0 with this model."))
    llm = connect()

    assert llm.complete(QUESTION)
    assert "".join(llm.stream(QUESTION))
    assert ["temperature" in body for body in server.bodies] == [True, False, False]


@OPENAI_ONLY
def test_the_limit_is_called_as_a_model_wants_it(server: ModelServer, connect: Connect) -> None:
    renamed = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    server.then(status(400, renamed), status(400, "'temperature' is deprecated"))
    llm = connect()

    assert "".join(llm.stream(QUESTION, max_tokens=5))
    assert server.bodies[2].keys() == {"model", "messages", "stream", "max_completion_tokens"}
    assert server.bodies[2]["max_completion_tokens"] == 5


def test_a_limit_that_is_too_high_stays_an_error(server: ModelServer, connect: Connect) -> None:
    server.always(status(400, "max_tokens: 99999 > 8192, which is not supported"))
    llm = connect()

    for ask in ways(llm):
        with pytest.raises(ModelError, match="99999"):
            ask()
    assert ["max_tokens" in body for body in server.bodies] == [True, True]


def test_a_temperature_that_is_too_high_stays_an_error(server: ModelServer, connect: Connect) -> None:
    server.always(status(400, "temperature: must be at most 1"))

    with pytest.raises(ModelError, match="at most 1"):
        connect().complete(QUESTION, temperature=1.5)
    assert len(server.requests) == 1


def test_a_model_that_always_refuses_a_parameter_is_not_asked_without_end(
    server: ModelServer, connect: Connect
) -> None:
    server.always(status(400, "temperature and max_tokens not supported, use max_completion_tokens"))

    with pytest.raises(ModelError):
        connect().complete(QUESTION)
    assert len(server.requests) == 3


# Keys


@pytest.mark.parametrize(("kind", "other"), [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")])
def test_the_key_comes_from_the_parameter_or_a_variable(
    monkeypatch: pytest.MonkeyPatch, connect: Connect, server: ModelServer, kind: str, other: str
) -> None:
    header = {"openai": "authorization", "anthropic": "x-api-key"}[kind]
    sent: list[str] = []

    def ask(**options: Any) -> None:
        connect(**options).complete(QUESTION)
        sent.append(server.headers[-1].get(header, "").removeprefix("Bearer "))

    ask()
    monkeypatch.setenv({"openai": "ANTHROPIC_API_KEY", "anthropic": "OPENAI_API_KEY"}[kind], "of-someone-else")
    ask()
    monkeypatch.setenv(other, "third")
    ask()
    monkeypatch.setenv("RECOLLECT_LLM_KEY", "second\n")
    ask()
    ask(key="first")

    assert sent == ["", "", "third", "second", "first"]


@pytest.mark.parametrize(
    ("url", "sent"), [("http://example.test", None), ("https://example.test", "key"), ("http://[::1]", "key")]
)
def test_a_key_of_another_program_is_not_sent_unencrypted(
    monkeypatch: pytest.MonkeyPatch, url: str, sent: str | None
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")

    assert OpenAiLlm(url, "m")._endpoint._key == AnthropicLlm(url, "m")._endpoint._key == sent


def told(code: int) -> Behaviour:
    return status(code, f"Incorrect API key provided: {KEY}.")


@pytest.mark.parametrize(
    "behaviour",
    [
        *(told(code) for code in (400, 401, 403, 404, 429, 500)),
        raw(json.dumps({"error": {"message": f"no: {KEY}"}})),
        raw(f"{KEY} {{"),
        fails_midway("a b c", 1, message=f"no: {KEY}"),
        fails_midway("a b c", 1, "invalid_request_error", f"no: {KEY}"),
        fails_midway("a b c", 0, message="x" * 565 + KEY),
        fails_midway("a b c", 0, message="x" * 580 + KEY),
        raw("x" * 290 + KEY, 400),
        raw(f"<html>{KEY}</html>", content_type="text/html"),
        cut("a b c", 1),
    ],
)
def test_the_key_is_in_no_error_no_repr_and_no_log(
    server: ModelServer, connect: Connect, behaviour: Behaviour, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.always(behaviour)
    llm = connect(key=KEY, retries=1)

    for ask in ways(llm):
        with pytest.raises(ModelError) as caught:
            ask()
        shown = f"{caught.value!r} {llm!r} {llm._endpoint!r} {caplog.text}"
        assert KEY[:5] not in shown
        assert len(str(caught.value)) < 700


def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(connect: Connect) -> None:
    with pytest.raises(InputError, match=r"^key: ") as caught:
        connect(key="ключ\nX-Injected: yes")

    assert "ключ" not in str(caught.value)


# What is given wrongly


@pytest.mark.parametrize("messages", [[], "hello", [{"role": "user", "content": "hi"}], None])
def test_what_are_no_messages_is_refused(connect: Connect, messages: Any) -> None:
    llm = connect()
    with pytest.raises(InputError, match="messages"):
        llm.complete(messages)
    with pytest.raises(InputError, match="messages"):
        llm.stream(messages)


@ANTHROPIC_ONLY
def test_anthropic_needs_more_than_a_system_message(connect: Connect) -> None:
    with pytest.raises(InputError, match="messages"):
        connect().complete([Message("system", "be brief")])


@pytest.mark.parametrize("limits", [{"max_tokens": 0}, {"temperature": -1.0}, {"temperature": float("nan")}])
def test_limits_out_of_range_are_refused(connect: Connect, limits: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(limits))):
        connect().complete(QUESTION, **limits)


@pytest.mark.parametrize("url", ["ftp://host", "https://", "http://[::1", "http://host:port", "http://a b/v1", "host"])
def test_a_url_that_is_none_is_refused(kind: str, url: str) -> None:
    with pytest.raises(InputError, match="url"):
        KINDS[kind][0](url, "m")


@pytest.mark.parametrize("host", ["é..com", "a..com", "x" * 300, "xn--"])
def test_a_host_that_cannot_be_one_is_a_model_error(kind: str, host: str) -> None:
    for ask in ways(KINDS[kind][0](f"http://{host}/v1", "m")):
        with pytest.raises(ModelError, match="the URL cannot be used"):
            ask()
