"""Models at endpoints: all that can go wrong, over a real connection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from support.llms import KINDS, OPENAI_ONLY, QUESTION, Connect, collected, connecting, ways
from support.model_server import (
    ANTHROPIC,
    OPENAI,
    Answer,
    Dialect,
    ModelServer,
    cut,
    drop,
    fails_midway,
    hang,
    late,
    model_server,
    raw,
    says,
    status,
)
from support.web import closed_port

from recollect import ModelError


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


# Whole and streamed


def test_a_full_endpoint_is_asked_again_when_it_says(
    server: ModelServer, connect: Connect, pauses: list[float]
) -> None:
    busy = status(429, Retry_After="7")
    server.then(busy, busy, says("yes"), busy, busy, says("yes"))

    for ask in ways(connect()):
        assert ask() == "yes"
    assert pauses == [7.0] * 4


def test_the_wait_may_be_given_as_a_date(server: ModelServer, connect: Connect, pauses: list[float]) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    server.then(status(429, Retry_After=soon), says("yes"))

    assert connect().complete(QUESTION) == "yes"
    assert 20 < pauses[0] <= 30


@pytest.mark.parametrize("header", ["61", "Fri, 01 Jan 2100 00:00:00 GMT"])
def test_a_wait_of_more_than_a_minute_is_not_waited_for(
    server: ModelServer, connect: Connect, pauses: list[float], header: str
) -> None:
    server.always(status(429, Retry_After=header))

    for ask in ways(connect()):
        with pytest.raises(ModelError, match=r"429 .*; try again later"):
            ask()
    assert pauses == []
    assert len(server.requests) == 2


@pytest.mark.parametrize("code", [408, 500, 502, 503, 504, 529])
def test_a_failing_endpoint_is_asked_again_ever_more_slowly(
    server: ModelServer, connect: Connect, pauses: list[float], code: int
) -> None:
    for ask in ways(connect()):
        pauses.clear()
        server.then(*[status(code)] * 3, says("yes"))
        assert ask() == "yes"
        for pause, most in zip(pauses, [0.5, 1.0, 2.0], strict=True):
            assert most / 2 <= pause <= most


def test_an_endpoint_that_fails_for_ever_is_given_up(server: ModelServer, connect: Connect) -> None:
    server.always(status(503, "the model\nis\x1b[31m loading"))

    for ask in ways(connect(retries=2)):
        server.requests.clear()
        with pytest.raises(ModelError, match=r"answered with 503 \(the model is \[31m loading\)"):
            ask()
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (400, "told to.*check the name of the model"),
        (401, "RECOLLECT_LLM_KEY or (OPENAI|ANTHROPIC)_API_KEY"),
        (403, "check what the key may do"),
        (404, "check the URL.*name of the model"),
        (413, "send less text"),
        (422, "told to"),
        (302, "answered with 302"),
    ],
)
def test_a_refusal_is_not_repeated(server: ModelServer, connect: Connect, code: int, advice: str) -> None:
    server.always(status(code, Location="/elsewhere"))

    for ask in ways(connect()):
        server.requests.clear()
        with pytest.raises(ModelError, match=advice):
            ask()
        assert len(server.requests) == 1


def test_nothing_that_listens_says_so(kind: str, pauses: list[float]) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    llm = KINDS[kind][0](url, "m", retries=2, sleep=pauses.append)

    for ask in ways(llm):
        with pytest.raises(ModelError, match=f"{url}/.*: cannot be reached .*is it running"):
            ask()
    assert len(pauses) == 4


def test_an_endpoint_that_is_silent_is_not_waited_for_without_end(server: ModelServer, connect: Connect) -> None:
    server.always(late(1.5, says("too late")))

    for ask in ways(connect(timeout=0.1, retries=1)):
        server.requests.clear()
        with pytest.raises(ModelError, match=r"gave no answer within 0\.1 s"):
            ask()
        assert len(server.requests) == 2


def test_a_connection_that_breaks_before_the_answer_is_made_again(server: ModelServer, connect: Connect) -> None:
    for ask in ways(connect()):
        server.then(drop(), says("yes"))
        assert ask() == "yes"


# Answers that make no sense

NONSENSE: dict[str, list[Any]] = {
    "openai": [
        {},
        [],
        {"choices": None},
        {"choices": []},
        {"choices": [{}]},
        {"choices": [{"message": None}]},
        {"choices": [{"message": {"role": "assistant"}}]},
        {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": "  \n"}}]},
        {"choices": [{"message": {"content": 5}}]},
        {"error": "at once"},
    ],
    "anthropic": [
        {},
        [],
        {"content": None},
        {"content": []},
        {"content": [{"text": "without a type"}]},
        {"content": [{"type": "text", "text": None}]},
        {"content": [{"type": "text", "text": " "}]},
        {"content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}], "stop_reason": "tool_use"},
        {"type": "error", "error": {"type": "api_error", "message": "at once"}},
    ],
}
CASES = [(kind, json.dumps(answer)) for kind, answers in NONSENSE.items() for answer in answers]
CASES += [(kind, text) for kind in KINDS for text in ("", "<html>welcome</html>", '{"choices": [{"mess', "\xff")]


@pytest.mark.parametrize(("kind", "answer"), CASES)
def test_nonsense_is_refused_and_not_asked_for_again(
    server: ModelServer, connect: Connect, kind: str, answer: str
) -> None:
    server.always(raw(answer.encode("latin-1")))

    with pytest.raises(ModelError, match="the answer cannot be used"):
        connect().complete(QUESTION)
    assert len(server.requests) == 1


@OPENAI_ONLY
def test_an_error_in_a_good_answer_is_told(server: ModelServer, connect: Connect) -> None:
    server.always(raw(json.dumps({"error": {"message": "no such model", "code": 404}})))

    for ask in ways(connect()):
        with pytest.raises(ModelError, match="no such model"):
            ask()


@OPENAI_ONLY
def test_a_refusal_of_the_model_is_told(server: ModelServer, connect: Connect) -> None:
    refusal = {"choices": [{"message": {"content": None, "refusal": "I cannot help."}, "finish_reason": "stop"}]}
    events = [{"choices": [{"delta": {"refusal": piece}}]} for piece in ("I cannot", " help.")]
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    server.then(raw(json.dumps(refusal)), raw(stream, content_type="text/event-stream"))

    for ask in ways(connect()):
        with pytest.raises(ModelError, match=r"the model refused .I cannot help"):
            ask()
    assert len(server.requests) == 2


@pytest.mark.parametrize(("kind", "reason"), [("openai", "content_filter"), ("anthropic", "refusal")])
def test_a_filter_is_a_refusal(server: ModelServer, connect: Connect, kind: str, reason: str) -> None:
    server.always(says("I would", reason=reason))

    for ask in ways(connect()):
        with pytest.raises(ModelError, match="the model refused"):
            ask()


@pytest.mark.parametrize(("kind", "reason"), [("openai", "length"), ("anthropic", "max_tokens")])
def test_a_model_that_only_thought_is_told_to_be_given_more(
    server: ModelServer, connect: Connect, kind: str, reason: str
) -> None:
    server.always(says("", reason=reason))

    for ask in ways(connect()):
        with pytest.raises(ModelError, match=f"no text .*{reason}.; raise max_tokens"):
            ask()


def test_an_answer_that_reached_the_limit_is_given_as_it_is(server: ModelServer, connect: Connect) -> None:
    server.always(says("and so", reason="length"))

    for ask in ways(connect()):
        assert ask() == "and so"


# Streams that end badly


@pytest.mark.parametrize("cleanly", [False, True])
def test_a_stream_that_is_cut_after_the_first_piece_is_an_error_at_once(
    server: ModelServer, connect: Connect, cleanly: bool
) -> None:
    server.then(cut("It is in Porto.", 2, cleanly=cleanly))

    pieces, error = collected(connect().stream(QUESTION))

    assert pieces == ["It ", "is "]
    assert "broke off in the middle of its answer" in str(error)
    assert len(server.requests) == 1


@pytest.mark.parametrize("cleanly", [False, True])
def test_a_stream_that_is_cut_before_the_first_piece_is_asked_for_again(
    server: ModelServer, connect: Connect, pauses: list[float], cleanly: bool
) -> None:
    server.then(cut("It is", 0, cleanly=cleanly), says("It is in Porto."))

    assert "".join(connect().stream(QUESTION)) == "It is in Porto."
    assert len(server.requests) == 2
    assert len(pauses) == 1


def test_a_stream_that_is_always_cut_says_what_is_missing(server: ModelServer, connect: Connect, kind: str) -> None:
    server.always(cut("It is", 0, cleanly=True))

    with pytest.raises(ModelError, match={"openai": r"\[DONE\]", "anthropic": "message_stop"}[kind]):
        list(connect(retries=1).stream(QUESTION))
    assert len(server.requests) == 2


def test_a_stream_that_ends_in_the_middle_of_a_line_is_cut(server: ModelServer, connect: Connect, kind: str) -> None:
    dialect: Dialect = {"openai": OPENAI, "anthropic": ANTHROPIC}[kind]
    whole = b"".join(dialect.events(Answer("It is"), {}))
    server.then(raw(whole[: whole.index(b'"is"') + 2], content_type="text/event-stream"))

    pieces, error = collected(connect().stream(QUESTION))

    assert pieces == ["It "]
    assert "broke off" in str(error)


def test_a_stream_that_falls_silent_is_given_up(server: ModelServer, connect: Connect) -> None:
    server.then(hang("It is in Porto.", 2, 1.5))

    pieces, error = collected(connect(timeout=0.2).stream(QUESTION))

    assert pieces == ["It ", "is "]
    assert "broke off in the middle of its answer: gave no answer within 0.2 s" in str(error)


def test_an_error_after_the_first_piece_ends_the_stream(server: ModelServer, connect: Connect) -> None:
    server.then(fails_midway("It is in Porto.", 3))

    pieces, error = collected(connect().stream(QUESTION))

    assert pieces == ["It ", "is ", "in "]
    assert "Overloaded" in str(error)
    assert len(server.requests) == 1


def test_an_error_before_the_first_piece_that_may_pass_leads_to_another_try(
    server: ModelServer, connect: Connect
) -> None:
    server.then(fails_midway("It is", 0), says("It is in Porto."))

    assert "".join(connect().stream(QUESTION)) == "It is in Porto."


def test_an_error_before_the_first_piece_that_will_not_pass_is_not_repeated(
    server: ModelServer, connect: Connect
) -> None:
    server.always(fails_midway("It is", 0, "invalid_request_error", "too long"))

    with pytest.raises(ModelError, match="too long"):
        list(connect().stream(QUESTION))
    assert len(server.requests) == 1


@pytest.mark.parametrize("data", ["{", "[]", '{"type": 5, "choices": 5}', "\udcff"])
def test_an_event_that_makes_no_sense_is_an_error(server: ModelServer, connect: Connect, data: str) -> None:
    content = f"data: {data}\n\n".encode(errors="surrogateescape")
    server.always(raw(content, content_type="text/event-stream"))

    with pytest.raises(ModelError, match="the answer cannot be used"):
        list(connect().stream(QUESTION))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("content_type", "content", "told"),
    [
        ("text/html", "<h1>Sign in to the network</h1>", r"text/html, not a stream .*Sign in"),
        ("application/json", '{"error": {"message": "cannot stream"}}', r"application/json, .*cannot stream"),
        ("", "", "of no type"),
    ],
)
def test_what_is_no_stream_is_refused(
    server: ModelServer, connect: Connect, content_type: str, content: str, told: str
) -> None:
    server.always(raw(content, content_type=content_type))

    with pytest.raises(ModelError, match=told):
        list(connect().stream(QUESTION))
    assert len(server.requests) == 1
