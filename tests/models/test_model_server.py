"""The server that stands in for paid models is taken for one by their makers' own clients."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from support.lazily import Lazily
from support.model_server import ModelServer, Tool, cut, fails_midway, model_server, says, status

anthropic: Any = Lazily("anthropic")
openai: Any = Lazily("openai")

QUESTION: list[Any] = [{"role": "user", "content": "where is the office?"}]
WEATHER = Tool("get_weather", {"city": "Porto", "days": 3})
OPENAI_TOOL: Any = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
ANTHROPIC_TOOL: Any = {"name": "get_weather", "input_schema": OPENAI_TOOL["function"]["parameters"]}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def gpt(server: ModelServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="key", max_retries=0) as client:
        yield client


@pytest.fixture
def claude(server: ModelServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.url, api_key="key", max_retries=0) as client:
        yield client


def test_openai_gets_an_answer(server: ModelServer, gpt: openai.OpenAI) -> None:
    server.then(says("In Porto."))

    answer = gpt.chat.completions.create(model="m", messages=QUESTION)

    assert (answer.object, answer.model, answer.created > 0) == ("chat.completion", "m", True)
    assert answer.choices[0].message.content == "In Porto."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert server.bodies[0]["messages"] == QUESTION
    assert server.headers[0]["authorization"] == "Bearer key"


def test_openai_gets_a_stream(server: ModelServer, gpt: openai.OpenAI) -> None:
    server.then(says("It is in Porto."))

    chunks = list(
        gpt.chat.completions.create(model="m", messages=QUESTION, stream=True, stream_options={"include_usage": True})
    )

    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "It is in Porto."
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None


def test_openai_gets_tool_calls(server: ModelServer, gpt: openai.OpenAI) -> None:
    server.then(says("", WEATHER), says("Let me look.", WEATHER, Tool("other", {})))

    answer = gpt.chat.completions.create(model="m", messages=QUESTION, tools=[OPENAI_TOOL])
    with gpt.chat.completions.stream(model="m", messages=QUESTION, tools=[OPENAI_TOOL]) as stream:
        streamed = stream.get_final_completion()

    calls: Any = answer.choices[0].message.tool_calls
    assert [(call.function.name, call.function.arguments) for call in calls] == [
        ("get_weather", '{"city": "Porto", "days": 3}')
    ]
    assert answer.choices[0].finish_reason == "tool_calls"
    assert streamed.choices[0].message.content == "Let me look."
    calls = streamed.choices[0].message.tool_calls
    assert [(call.id, call.function.name, call.function.arguments) for call in calls] == [
        ("call_1", "get_weather", '{"city": "Porto", "days": 3}'),
        ("call_2", "other", "{}"),
    ]


def test_openai_gets_errors(server: ModelServer, gpt: openai.OpenAI) -> None:
    server.then(status(429, "slow down", Retry_After="7"), fails_midway("In Porto.", 1), cut("In Porto.", 1))

    with pytest.raises(openai.RateLimitError, match="slow down") as caught:
        gpt.chat.completions.create(model="m", messages=QUESTION)
    assert caught.value.response.headers["Retry-After"] == "7"

    pieces = gpt.chat.completions.create(model="m", messages=QUESTION, stream=True)
    with pytest.raises(openai.APIError, match="Overloaded"):
        list(pieces)

    pieces = gpt.chat.completions.create(model="m", messages=QUESTION, stream=True)
    assert [next(pieces).choices[0].delta.content for _ in range(2)] == ["", "In "]
    with pytest.raises(openai.APIConnectionError):
        next(pieces)


def test_anthropic_gets_an_answer(server: ModelServer, claude: anthropic.Anthropic) -> None:
    server.then(says("In Porto."))

    answer = claude.messages.create(model="m", max_tokens=10, messages=QUESTION)

    assert (answer.type, answer.role, answer.model, answer.stop_reason) == ("message", "assistant", "m", "end_turn")
    assert [block.text for block in answer.content if block.type == "text"] == ["In Porto."]
    assert answer.usage.output_tokens == 2
    assert server.bodies[0]["max_tokens"] == 10
    assert server.requests[0].path == "/v1/messages"


def test_anthropic_gets_a_stream(server: ModelServer, claude: anthropic.Anthropic) -> None:
    server.then(says("It is in Porto."))

    with claude.messages.stream(model="m", max_tokens=10, messages=QUESTION) as stream:
        pieces = list(stream.text_stream)
        whole = stream.get_final_message()

    assert pieces == ["It ", "is ", "in ", "Porto."]
    assert whole.stop_reason == "end_turn"
    assert whole.usage.output_tokens == 4


def test_anthropic_gets_tool_calls(server: ModelServer, claude: anthropic.Anthropic) -> None:
    server.then(says("", WEATHER), says("Let me look.", WEATHER))

    answer = claude.messages.create(model="m", max_tokens=10, messages=QUESTION, tools=[ANTHROPIC_TOOL])
    with claude.messages.stream(model="m", max_tokens=10, messages=QUESTION, tools=[ANTHROPIC_TOOL]) as stream:
        streamed = stream.get_final_message()

    assert answer.stop_reason == streamed.stop_reason == "tool_use"
    used: list[Any] = [answer.content[0], streamed.content[1]]
    assert [(block.type, block.name, block.input) for block in used] == [
        ("tool_use", "get_weather", {"city": "Porto", "days": 3})
    ] * 2


def test_anthropic_gets_errors(server: ModelServer, claude: anthropic.Anthropic) -> None:
    server.then(status(429, "slow down", "rate_limit_error"), fails_midway("In Porto.", 1))

    with pytest.raises(anthropic.RateLimitError, match="slow down"):
        claude.messages.create(model="m", max_tokens=10, messages=QUESTION)
    with (
        claude.messages.stream(model="m", max_tokens=10, messages=QUESTION) as stream,
        pytest.raises(anthropic.APIStatusError, match="Overloaded"),
    ):
        stream.get_final_message()


def test_both_can_be_awaited_at_once(server: ModelServer) -> None:
    async def ask() -> tuple[list[str | None], str]:
        async with (
            openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="key") as gpt,
            anthropic.AsyncAnthropic(base_url=server.url, api_key="key") as claude,
        ):
            answers = await asyncio.gather(
                *(
                    gpt.chat.completions.create(model="m", messages=[{"role": "user", "content": f"number {number}"}])
                    for number in range(5)
                )
            )
            async with claude.messages.stream(model="m", max_tokens=10, messages=QUESTION) as stream:
                streamed = "".join([piece async for piece in stream.text_stream])
            chunks = await gpt.chat.completions.create(model="m", messages=QUESTION, stream=True)
            assert "".join([chunk.choices[0].delta.content or "" async for chunk in chunks]) == streamed
            return [answer.choices[0].message.content for answer in answers], streamed

    said, streamed = asyncio.run(ask())

    assert said == [f"You said: number {number}" for number in range(5)]
    assert streamed == "You said: where is the office?"


def test_what_it_does_not_know_is_not_found(server: ModelServer, gpt: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="there is no GET /v1/models"):
        gpt.models.list()
