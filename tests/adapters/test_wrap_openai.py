"""OpenAI's own client, wrapped, against a real server: what reaches the model, and what is kept."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import logging
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pydantic
import pytest
from support.common import LONG
from support.lazily import Lazily
from support.model_server import ModelServer, Tool, cut, fails_midway, hang, model_server, raw, says, status
from support.wrap_server import responses_server, stored_turns, tool_result

import recollect
from recollect import AsyncMemory, DiskFullError, InputError, Memory, SecretError

openai: Any = Lazily("openai")

DOG = "My dog is called Bello"
ASKED = "What is my dog called?"
SECRET = "my key is sk-proj-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3"


def in_system(client: Any, memory: Any, **options: Any) -> Any:
    """Memory in the system prompt, apart from what the user says, which this server repeats; all of it stored."""
    return recollect.wrap(client, memory, **{"place": "system", "store": "turns", **options})


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def plain(server: ModelServer) -> Iterator[openai.OpenAI]:
    http = openai.DefaultHttpxClient(verify=False)  # there is no TLS, and reading certificates takes longer than a test
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0, http_client=http) as client:
        yield client


@pytest.fixture
def client(plain: openai.OpenAI, memory: Memory) -> Any:
    return in_system(plain, memory)


def say(client: Any, text: Any, **options: Any) -> Any:
    return client.chat.completions.create(model="m", messages=[user(text)], **options)


def awaited(server: ModelServer, memory: Any, work: Any, **options: Any) -> Any:
    """Run `work` with a wrapped async client."""

    async def main() -> Any:
        http = openai.DefaultAsyncHttpxClient(verify=False)
        plain = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0, http_client=http)
        async with in_system(plain, memory, **options) as client:
            return await work(client)

    return asyncio.run(main())


def injected(body: dict[str, Any]) -> str:
    return "\n".join(one["content"] for one in body["messages"] if one["role"] == "system")


# What reaches the model


def test_what_was_told_in_one_call_is_in_the_next_request(client: Any, server: ModelServer) -> None:
    say(client, DOG)
    assert server.bodies[0]["messages"] == [user(DOG)]
    say(client, ASKED)
    assert DOG in injected(server.bodies[1])
    assert server.bodies[1]["messages"][-1] == user(ASKED)
    assert set(server.bodies[1]) == {"model", "messages"}


def test_the_sources_of_an_answer_are_known_by_its_id(client: Any, memory: Memory) -> None:
    memory.remember(DOG)
    say(client, ASKED)
    answer = memory.sources(recollect.wrapping(client).last.id)  # type: ignore[union-attr]
    assert answer.question == ASKED
    assert [used.content for used in answer.memories] == [DOG]


def test_no_ids_are_put_in_where_no_tool_takes_them(client: Any, memory: Memory) -> None:
    memory.remember(DOG, created_at="2026-01-02T03:04:05Z")
    say(client, ASKED)
    assert f"- (2026-01-02) {DOG}" in client.recollect.last.text.splitlines()
    assert client.recollect.last.memories == (memory.list(role=None)[-1].id,)


def test_what_was_told_is_in_the_next_request_of_an_async_client(server: ModelServer, memory: Memory) -> None:
    async def work(client: Any) -> None:
        await client.chat.completions.create(model="m", messages=[user(DOG)])
        await client.chat.completions.create(model="m", messages=[user(ASKED)])

    awaited(server, AsyncMemory(memory), work)
    assert DOG in injected(server.bodies[1])
    assert stored_turns(memory)[:2] == [("user", DOG), ("assistant", f"You said: {DOG}")]


def test_a_budget_condenses_older_turns(plain: openai.OpenAI, memory: Memory, server: ModelServer) -> None:
    client = in_system(plain, memory, budget=1000)
    talk = [user(f"number {n} " + "word " * 40) if n % 2 else {"role": "assistant", "content": "ok"} for n in range(60)]
    client.chat.completions.create(model="m", messages=[*talk, user(ASKED)])
    assert len(server.bodies[0]["messages"]) < len(talk)
    assert server.bodies[0]["messages"][-1] == user(ASKED)


def test_the_presets_put_memory_in_as_they_do(tmp_path: Path, plain: openai.OpenAI, server: ModelServer) -> None:
    marks = {"aegis": "[Memories]", "journal": "# Your Private Memory", "atlas": DOG, "recollect": "<memories>"}
    for preset, mark in marks.items():
        with Memory(tmp_path / preset, preset=preset) as memory:
            memory.remember(DOG)
            say(in_system(plain, memory), ASKED)
        assert mark in injected(server.bodies[-1]), preset
        assert DOG in injected(server.bodies[-1]), preset


@pytest.mark.clause("AEG-15", "AEG-16")
@pytest.mark.parametrize("store", [True, "facts", "turns"])
def test_on_aegis_a_client_puts_notes_in_and_stores_none(
    tmp_path: Path, plain: openai.OpenAI, server: ModelServer, store: Any
) -> None:
    with Memory(tmp_path / "aegis", preset="aegis") as memory:
        memory.remember(DOG)
        client = in_system(plain, memory, store=store)
        for text in ("Remember this: I am allergic to nuts", f"We decided to use PostgreSQL. {ASKED}"):
            say(client, text)
            say(client, text, recollect={"store": "turns"})
        assert DOG in injected(server.bodies[-1])
        assert [record.text for record in memory.list()] == [DOG]


def test_a_preset_that_puts_nothing_in_sends_what_the_caller_sends(
    tmp_path: Path, plain: openai.OpenAI, server: ModelServer
) -> None:
    with Memory(tmp_path / "ledger", preset="ledger") as memory:
        client = in_system(plain, memory.at(conversation="s1"))
        say(client, DOG)
        say(client, ASKED)
        assert server.bodies[1]["messages"] == [user(ASKED)]
        assert ("user", DOG) in stored_turns(memory)


def test_what_the_caller_passes_is_never_changed(client: Any) -> None:
    say(client, DOG)
    parts = [{"type": "text", "text": ASKED}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]
    messages = [{"role": "system", "content": "be kind"}, user(parts)]
    options = {"store": True, "query": "dog"}
    before = copy.deepcopy((messages, options))
    client.chat.completions.create(model="m", messages=messages, recollect=options)
    assert (messages, options) == before


def test_messages_may_be_the_clients_own_objects_or_read_only_once(client: Any, server: ModelServer) -> None:
    server.then(says("", Tool("weather", {"city": "Oslo"})), says("Rain"))
    first = say(client, "How is the weather in Oslo?").choices[0].message
    talk = [user("How is the weather in Oslo?"), first, tool_result("rain")]
    client.chat.completions.create(model="m", messages=(one for one in talk))
    sent = server.bodies[1]["messages"]
    assert [one["role"] for one in sent if one["role"] != "system"] == ["user", "assistant", "tool"]
    assert next(one for one in sent if one["role"] == "assistant")["tool_calls"][0]["function"]["name"] == "weather"


# What is stored_turns


def test_a_turn_is_kept_with_who_said_it_and_where_it_came_from(client: Any, memory: Memory) -> None:
    say(client, DOG)
    assert stored_turns(memory) == [("user", DOG), ("assistant", f"You said: {DOG}")]
    for record in memory.list():
        assert (record.kind, record.source, record.metadata) == ("conversation", "openai", {"model": "m"})


def test_a_turn_is_one_write(client: Any, memory: Memory) -> None:
    say(client, DOG)
    assert [entry.action for entry in memory.audit.search()] == ["remember"]


def test_a_turn_is_kept_in_the_views_conversation(plain: openai.OpenAI, memory: Memory) -> None:
    say(in_system(plain, memory.at(agent="a", conversation="c1"), kind="finding"), DOG)
    assert {(one.address.conversation, one.address.agent, one.kind) for one in memory.list()} == {
        ("c1", "a", "finding")
    }


def test_what_was_put_in_is_never_kept(client: Any, memory: Memory, server: ModelServer) -> None:
    talk: list[dict[str, Any]] = []
    for number in range(20):
        echo = injected(server.bodies[-1]) if server.bodies else ""
        server.then(says(f"{echo}\nBello, for the {number}th time"))
        talk.append(user(f"{echo}\n\n{ASKED} Asked {number} times"))
        answer = client.chat.completions.create(model="m", messages=talk)
        talk.append({"role": "assistant", "content": answer.choices[0].message.content})
        talk = talk[-4:]
    found = stored_turns(memory)
    assert len(found) == 40
    assert not [content for _, content in found if "<memories>" in content or "Refer to a memory" in content]
    assert any("<memories>" in injected(body) for body in server.bodies)


def test_only_words_are_kept_of_a_message_with_pictures(client: Any, memory: Memory) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    say(client, [{"type": "text", "text": "This is Bello"}, picture])
    assert stored_turns(memory)[0] == ("user", "This is Bello")
    say(client, [picture])
    assert [role for role, _ in stored_turns(memory)] == ["user", "assistant", "assistant"]


@pytest.mark.parametrize("message", [{"content": None, "refusal": "I cannot"}, {"content": ""}, {"content": "  "}])
def test_an_answer_without_words_is_not_kept(
    client: Any, memory: Memory, server: ModelServer, message: dict[str, Any]
) -> None:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    server.then(raw(json.dumps(body)))
    say(client, DOG)
    assert stored_turns(memory) == [("user", DOG)]


def test_of_several_choices_the_first_is_kept(client: Any, memory: Memory, server: ModelServer) -> None:
    choices = [
        {"index": n, "message": {"role": "assistant", "content": f"answer {n}"}, "finish_reason": "stop"}
        for n in range(2)
    ]
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}
    server.then(raw(json.dumps(body)))
    say(client, DOG, n=2)
    assert stored_turns(memory) == [("user", DOG), ("assistant", "answer 0")]


def test_of_several_choices_in_a_stream_the_first_is_kept(client: Any, memory: Memory, server: ModelServer) -> None:
    said = [(0, "one ", None), (1, "other", None), (1, None, "stop"), (0, "two", None), (0, None, "stop")]
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        {**head, "choices": [{"index": index, "delta": {"content": text}, "finish_reason": why}]}
        for index, text, why in said
    ]
    stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    server.then(raw(f"{stream}data: [DONE]\n\n", content_type="text/event-stream"))
    assert len(list(say(client, DOG, n=2, stream=True))) == 5
    assert stored_turns(memory) == [("user", DOG), ("assistant", "one two")]


def test_a_loop_of_tool_calls_keeps_each_turn_once(client: Any, memory: Memory, server: ModelServer) -> None:
    server.then(says("", Tool("find", {"n": 1})), says("Looking further", Tool("find", {"n": 2})), says("It is Bello"))
    talk: list[Any] = [{"role": "system", "content": "be kind"}, user(ASKED)]
    for number in range(3):
        message = client.chat.completions.create(model="m", messages=talk).choices[0].message
        talk += [message, *([tool_result(f"found {number}")] if message.tool_calls else [])]
    assert stored_turns(memory) == [("user", ASKED), ("assistant", "Looking further"), ("assistant", "It is Bello")]


def test_what_was_said_before_a_tools_result_is_not_new(client: Any, memory: Memory, server: ModelServer) -> None:
    server.then(says("It is Bello"))
    call = {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    asks = {"role": "assistant", "content": None, "tool_calls": [call]}
    client.chat.completions.create(model="m", messages=[user(ASKED), asks, tool_result("found")])
    assert stored_turns(memory) == [("assistant", "It is Bello")]


def test_a_message_that_is_sent_again_is_kept_once(client: Any, memory: Memory, server: ModelServer) -> None:
    for _ in range(2):
        say(client, DOG)
    server.then(says("Another answer"))
    client.chat.completions.create(model="m", messages=[{"role": "system", "content": "it is noon"}, user(DOG)])
    assert stored_turns(memory) == [("user", DOG), ("assistant", f"You said: {DOG}"), ("assistant", "Another answer")]


def test_the_same_words_at_another_point_are_kept_again(client: Any, memory: Memory, server: ModelServer) -> None:
    server.then(says("Sure?"), says("Really?"))
    talk: list[Any] = [user("yes")]
    talk.append(client.chat.completions.create(model="m", messages=talk).choices[0].message)
    client.chat.completions.create(model="m", messages=[*talk, user("yes")])
    assert stored_turns(memory) == [("user", "yes"), ("assistant", "Sure?"), ("user", "yes"), ("assistant", "Really?")]


def test_the_same_words_are_kept_in_each_memory(client: Any, memory: Memory, tmp_path: Path) -> None:
    with Memory(tmp_path / "other") as other:
        say(client, DOG)
        say(client, DOG, recollect={"memory": other})
        say(client, DOG, recollect={"memory": memory.at(channel="ops"), "inject": False})
        assert len(stored_turns(memory)) == 4
        assert len(stored_turns(other)) == 2


# Failures of the model


def test_a_call_that_fails_keeps_nothing_and_says_why(client: Any, memory: Memory, server: ModelServer) -> None:
    server.then(status(500))
    with pytest.raises(openai.InternalServerError):
        say(client, DOG)
    assert stored_turns(memory) == []
    say(client, DOG)
    assert stored_turns(memory) == [("user", DOG), ("assistant", f"You said: {DOG}")]


def test_the_clients_own_retries_keep_a_turn_once(client: Any, memory: Memory, server: ModelServer) -> None:
    server.then(status(500, retry_after_ms="1"), status(503, retry_after_ms="1"))
    say(client.with_options(max_retries=2), DOG)
    assert len(server.requests) == 3
    assert stored_turns(memory) == [("user", DOG), ("assistant", f"You said: {DOG}")]


# Streams


def test_a_stream_is_kept_when_it_is_over(client: Any, memory: Memory) -> None:
    stream = say(client, DOG, stream=True, stream_options={"include_usage": True})
    texts = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
    assert "".join(filter(None, texts)) == f"You said: {DOG}"
    assert stored_turns(memory) == [("user", DOG), ("assistant", f"You said: {DOG}")]
    assert memory.list(role="assistant")[0].metadata == {"model": "m"}
    assert stream.response.status_code == 200
    assert not hasattr(stream, "text_stream")


def test_a_stream_is_kept_although_the_caller_adds_to_the_list_meanwhile(client: Any, memory: Memory) -> None:
    talk: list[Any] = [user(DOG)]
    for _ in client.chat.completions.create(model="m", messages=talk, stream=True):
        talk.append(user("too early"))
    assert stored_turns(memory)[0] == ("user", DOG)


@pytest.mark.parametrize("end", ["close", "with", "error in with"])
def test_what_came_of_a_stream_is_kept_if_it_is_closed_early(client: Any, memory: Memory, end: str) -> None:
    stream = say(client, DOG, stream=True)
    if end == "close":
        [next(stream) for _ in range(3)]
        stream.close()
    else:
        with suppress(KeyError), stream:
            [next(stream) for _ in range(3)]
            if end == "error in with":
                raise KeyError
    assert stored_turns(memory) == [("user", DOG), ("assistant", "You said:")]
    assert memory.list(role="assistant")[0].metadata == {"model": "m", "partial": True}
    assert memory.list(role="user")[0].metadata == {"model": "m"}


def test_a_stream_closed_before_a_word_came_leaves_nothing(client: Any, memory: Memory) -> None:
    with say(client, DOG, stream=True):
        pass
    assert stored_turns(memory) == []


def test_a_stream_left_at_its_last_word_is_whole(client: Any, memory: Memory) -> None:
    for chunk in say(client, DOG, stream=True):
        if chunk.choices[0].finish_reason:
            break
    assert stored_turns(memory) == [("user", DOG), ("assistant", f"You said: {DOG}")]
    assert "partial" not in memory.list(role="assistant")[0].metadata


def test_a_stream_that_is_let_go_is_kept_with_the_next_call(client: Any, memory: Memory, server: ModelServer) -> None:
    for number, _ in enumerate(say(client, DOG, stream=True)):
        if number == 3:
            break
    gc.collect()
    say(client, ASKED)
    assert stored_turns(memory)[:2] == [("user", DOG), ("assistant", "You said: My")]
    assert DOG in injected(server.bodies[1])


@pytest.mark.parametrize("behaviour", [cut("It is Bello", 2), fails_midway("It is Bello", 2)])
def test_what_came_of_a_stream_is_kept_if_it_breaks(
    client: Any, memory: Memory, server: ModelServer, behaviour: Any
) -> None:
    server.then(behaviour)
    stream = say(client, ASKED, stream=True)
    with pytest.raises(openai.APIError):
        list(stream)
    assert stored_turns(memory) == [("user", ASKED), ("assistant", "It is")]
    assert memory.list(role="assistant")[0].metadata == {"model": "m", "partial": True}
    say(client, ASKED)
    assert [role for role, _ in stored_turns(memory)] == ["user", "assistant", "assistant"]


def test_a_stream_that_breaks_before_a_word_came_leaves_nothing(
    client: Any, memory: Memory, server: ModelServer
) -> None:
    server.then(cut("It is Bello", 0))
    with pytest.raises(openai.APIError):
        list(say(client, ASKED, stream=True))
    assert stored_turns(memory) == []


def test_a_stream_that_ends_without_an_end_is_partial(client: Any, memory: Memory, server: ModelServer) -> None:
    server.then(cut("It is Bello", 2, cleanly=True))
    list(say(client, ASKED, stream=True))
    assert memory.list(role="assistant")[0].metadata["partial"] is True


def test_a_stream_of_tool_calls_keeps_what_the_user_said(client: Any, memory: Memory, server: ModelServer) -> None:
    server.then(says("", Tool("find", {"n": 1})))
    list(say(client, ASKED, stream=True))
    assert stored_turns(memory) == [("user", ASKED)]


def test_the_stream_helper_keeps_the_turn(client: Any, memory: Memory, server: ModelServer) -> None:
    say(client, DOG)
    with client.chat.completions.stream(model="m", messages=[user(ASKED)]) as stream:
        kinds = {event.type for event in stream}
    assert "content.delta" in kinds
    assert stream.get_final_completion().choices[0].message.content == f"You said: {ASKED}"
    with client.beta.chat.completions.stream(model="m", messages=[user("And yours?")]) as stream:
        assert stream.until_done().get_final_completion().choices[0].message.content == "You said: And yours?"
    assert DOG in injected(server.bodies[1])
    assert [content for role, content in stored_turns(memory) if role == "user"] == [DOG, ASKED, "And yours?"]
    assert len(stored_turns(memory)) == 6


def test_the_stream_helper_closed_early_keeps_what_came(client: Any, memory: Memory) -> None:
    with client.chat.completions.stream(model="m", messages=[user(DOG)]) as stream:
        for event in stream:
            if event.type == "content.delta" and event.snapshot.strip() == "You said:":
                break
    assert stored_turns(memory) == [("user", DOG), ("assistant", "You said:")]


def test_a_parsed_answer_is_kept(client: Any, memory: Memory, server: ModelServer) -> None:
    class Dog(pydantic.BaseModel):
        name: str

    server.then(says('{"name": "Bello"}'))
    answer = client.chat.completions.parse(model="m", messages=[user(ASKED)], response_format=Dog)
    assert answer.choices[0].message.parsed == Dog(name="Bello")
    assert stored_turns(memory) == [("user", ASKED), ("assistant", '{"name": "Bello"}')]


def test_async_streams_are_kept(server: ModelServer, memory: Memory) -> None:
    async def work(client: Any) -> None:
        stream = await client.chat.completions.create(model="m", messages=[user(DOG)], stream=True)
        assert [chunk async for chunk in stream]
        async with await client.chat.completions.create(model="m", messages=[user("early")], stream=True) as stream:
            [await anext(stream) for _ in range(3)]
        server.then(cut("It is Bello", 2))
        stream = await client.chat.completions.create(model="m", messages=[user("cut")], stream=True)
        with pytest.raises(openai.APIError):
            [chunk async for chunk in stream]
        async with client.chat.completions.stream(model="m", messages=[user("helper")]) as stream:
            assert (await stream.get_final_completion()).choices[0].message.content == "You said: helper"

    awaited(server, memory, work)
    assert stored_turns(memory) == [
        ("user", DOG),
        ("assistant", f"You said: {DOG}"),
        ("user", "early"),
        ("assistant", "You said:"),
        ("user", "cut"),
        ("assistant", "It is"),
        ("user", "helper"),
        ("assistant", "You said: helper"),
    ]
    assert [one.content for one in memory.list() if "partial" in one.metadata] == ["It is", "You said:"]


def test_a_cancelled_async_stream_keeps_what_came(server: ModelServer, memory: Memory) -> None:
    server.then(hang("It is Bello", 2, 3))

    async def read(client: Any, came: asyncio.Event) -> None:
        stream = await client.chat.completions.create(model="m", messages=[user(ASKED)], stream=True)
        async for chunk in stream:
            if chunk.choices[0].delta.content == "is ":
                came.set()

    async def work(client: Any) -> None:
        came = asyncio.Event()
        task = asyncio.create_task(read(client, came))
        await came.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    awaited(server, memory, work)
    assert stored_turns(memory) == [("user", ASKED), ("assistant", "It is")]


def test_what_is_being_kept_is_kept_although_nobody_waits_any_more(server: ModelServer, memory: Memory) -> None:
    async def work(client: Any) -> None:
        loop, busy = asyncio.get_running_loop(), threading.Event()
        loop.set_default_executor(ThreadPoolExecutor(1))
        stream = await client.chat.completions.create(model="m", messages=[user(DOG)], stream=True)
        [await anext(stream) for _ in range(3)]
        other = loop.run_in_executor(None, busy.wait)
        closing = asyncio.create_task(stream.close())
        while not stream.response.is_closed:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        busy.set()
        await other
        assert await asyncio.to_thread(stored_turns, memory) == [("user", DOG), ("assistant", "You said:")]

    awaited(server, memory, work)


def test_the_event_loop_never_waits_for_the_memory(server: ModelServer, memory: Memory) -> None:
    threads: set[int] = set()
    here = threading.get_ident()

    def clock() -> Any:
        threads.add(threading.get_ident())
        return real()

    real = memory._view.clock
    watched = Memory(memory._view.store, clock=clock)

    async def work(client: Any) -> None:
        await client.chat.completions.create(model="m", messages=[user(DOG)])
        [chunk async for chunk in await client.chat.completions.create(model="m", messages=[user(ASKED)], stream=True)]
        async with client.chat.completions.stream(model="m", messages=[user(ASKED)]) as stream:
            await stream.until_done()

    awaited(server, watched, work)
    assert threads
    assert here not in threads


# Failures of the memory


def test_a_secret_is_not_kept_and_the_call_goes_through(
    client: Any, memory: Memory, server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.then(says("Noted"))
    assert say(client, SECRET).choices[0].message.content == "Noted"
    assert server.bodies[0]["messages"][-1] == user(SECRET)
    assert stored_turns(memory) == [("assistant", "Noted")]
    assert [record.name for record in caplog.records if record.levelno == logging.WARNING] == ["recollect.wrap"]
    assert "secret" in caplog.text
    assert "sk-proj" not in caplog.text


class Broken(Memory):
    """The disk is full, or worse."""

    failing = True

    def remember_many(self, items: Any) -> Any:
        if self.failing:
            raise DiskFullError("no space left")
        return super().remember_many(items)

    def context(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("a bug")


def test_a_memory_that_fails_never_breaks_a_call(
    plain: openai.OpenAI, tmp_path: Path, caplog: pytest.LogCaptureFixture, server: ModelServer
) -> None:
    with Broken(tmp_path / "broken") as broken:
        client = recollect.wrap(plain, broken, store="turns")
        assert say(client, DOG).choices[0].message.content == f"You said: {DOG}"
        assert list(say(client, DOG, stream=True))
        assert server.bodies[0]["messages"] == [user(DOG)]
        assert "no space left" in caplog.text
        assert "a bug" in caplog.text
        broken.failing = False
        say(client, DOG)
        assert stored_turns(broken) == [("user", DOG), ("assistant", f"You said: {DOG}")]


def test_on_request_a_memory_that_fails_raises(plain: openai.OpenAI, tmp_path: Path, server: ModelServer) -> None:
    with Broken(tmp_path / "broken") as broken:
        client = recollect.wrap(plain, broken, store="turns", on_error="raise")
        with pytest.raises(RuntimeError, match="a bug"):
            say(client, DOG)
        assert server.requests == []
        with pytest.raises(DiskFullError):
            say(client, DOG, recollect={"inject": False})
        with pytest.raises(DiskFullError):
            list(say(client, DOG, recollect={"inject": False}, stream=True))
        server.then(cut("It is Bello", 2))
        with pytest.raises(openai.APIError):  # the model's own comes first
            list(say(client, DOG, recollect={"inject": False}, stream=True))
    with Memory(tmp_path / "sound") as memory:
        server.then(says("Noted"))
        with pytest.raises(SecretError):
            say(in_system(plain, memory, on_error="raise"), SECRET)
        assert stored_turns(memory) == [("assistant", "Noted")]


@pytest.mark.parametrize("messages", ["hello", [3], [["x"]]])
def test_what_no_model_takes_goes_to_the_client_as_it_is(
    client: Any, memory: Memory, server: ModelServer, messages: Any
) -> None:
    memory.remember("hello")
    server.then(status(400))
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="m", messages=messages)
    assert server.bodies[0]["messages"] == messages
    with pytest.raises(TypeError):
        client.chat.completions.create(model="m")


# Options, and the rest of the client


def test_a_call_has_options_of_its_own(client: Any, memory: Memory, server: ModelServer, tmp_path: Path) -> None:
    say(client, DOG)
    say(client, ASKED, recollect={"inject": False})
    assert server.bodies[-1]["messages"] == [user(ASKED)]
    say(client, "And now?", recollect={"store": False, "query": "dog"})
    assert DOG in injected(server.bodies[-1])
    assert ("user", "And now?") not in stored_turns(memory)
    with Memory(tmp_path / "other") as other:
        say(client, ASKED, recollect={"memory": other})
        assert injected(server.bodies[-1]) == ""
        assert stored_turns(other)[0] == ("user", ASKED)
    assert all("recollect" not in body for body in server.bodies)
    assert client.recollect.last.memories == ()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"sotre": False}, "'sotre' is not an option; known: memory, budget, place"),
        ({"store": "no"}, "store: must be True, False, .facts. or .turns."),
        ({"memory": "m"}, "memory: must be a Memory or an AsyncMemory, not str"),
        ({"budget": 0}, "budget: 0 must be a whole number"),
        ({"on_error": "ignore"}, "on_error: 'ignore' must be one of warn, raise"),
        ([1], "recollect: must be a dict of options, not list"),
    ],
)
def test_an_option_that_is_wrong_is_refused(client: Any, server: ModelServer, options: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        say(client, DOG, recollect=options)
    assert server.requests == []


def test_what_cannot_be_wrapped_is_refused(plain: openai.OpenAI, client: Any, memory: Memory) -> None:
    for wrong in (object(), openai, plain.chat, Memory):
        with pytest.raises(InputError, match="must be OpenAI, AsyncOpenAI, Anthropic or AsyncAnthropic"):
            recollect.wrap(wrong, memory)
    with pytest.raises(InputError, match="is wrapped already"):
        recollect.wrap(client, memory)
    with pytest.raises(InputError, match="kind: 'A kind'"):
        recollect.wrap(plain, memory, kind="A kind")
    with pytest.raises(InputError, match="memory: must be a Memory"):
        recollect.wrap(plain, None)  # type: ignore[arg-type]


def test_wrapping_imports_nobodys_package(run: Callable[..., str]) -> None:
    script = "import sys, recollect; recollect.wrap; print({'openai', 'anthropic', 'httpx'} & set(sys.modules))"
    assert run(script) == "set()\n"


def test_a_wrapped_client_is_like_the_client(client: Any, plain: openai.OpenAI, memory: Memory) -> None:
    assert client.base_url == plain.base_url
    assert client.models is plain.models
    assert client.chat.completions.with_raw_response is plain.chat.completions.with_raw_response
    client.api_key = "another"
    assert plain.api_key == "another"
    assert set(dir(plain)) == set(dir(client))
    assert repr(client).startswith("<recollect.wrap of <openai.OpenAI")
    assert "<Memory recollect>" in repr(client)
    assert client.chat.completions.create.__doc__ == plain.chat.completions.create.__doc__
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = client.chat.completions.nothing_such
    assert client.recollect.memory is memory
    assert client.recollect.last is None
    assert copy.copy(client).recollect is client.recollect


def test_a_copy_of_a_wrapped_client_is_wrapped(client: Any, memory: Memory, server: ModelServer) -> None:
    say(client, DOG)
    for copied in (client.with_options(timeout=20), client.copy(max_retries=1)):
        say(copied, DOG)  # which is known to be stored_turns
        say(copied, ASKED)
        assert DOG in injected(server.bodies[-1])
        assert copied.recollect is client.recollect
    assert len(stored_turns(memory)) == 4


def test_azures_clients_are_wrapped_too(server: ModelServer, memory: Memory) -> None:
    with openai.AzureOpenAI(azure_endpoint=server.url, api_key="any", api_version="2024-10-21") as azure:
        client = in_system(azure, memory)
        say(client, DOG)
        say(client, ASKED)
    assert DOG in injected(server.bodies[1])


def test_the_last_context_can_be_looked_at(client: Any, memory: Memory) -> None:
    say(client, DOG)
    say(client, ASKED)
    last = client.recollect.last
    assert DOG in last.text
    assert set(last.memories) <= {record.id for record in memory.list()}
    assert last.report.tokens > 0


def test_many_threads_share_a_client(client: Any, memory: Memory, server: ModelServer) -> None:
    def work(number: int) -> None:
        text = f"thread {number} has a dog called D{number}"
        for _ in range(2):  # sent twice, kept once
            if number % 2:
                answer = say(client, text).choices[0].message.content
            else:
                answer = "".join(one.choices[0].delta.content or "" for one in say(client, text, stream=True))
            assert answer == f"You said: {text}"

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(24)))
    texts = [f"thread {number} has a dog called D{number}" for number in range(24)]
    assert sorted(stored_turns(memory)) == sorted(
        [("user", one) for one in texts] + [("assistant", f"You said: {one}") for one in texts]
    )


def test_threads_that_say_the_same_at_once_keep_it_once(client: Any, memory: Memory) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: say(client, DOG), range(16)))
    assert sorted(stored_turns(memory)) == [("assistant", f"You said: {DOG}"), ("user", DOG)]


# Responses


def answering(url: str, memory: Memory) -> Any:
    return in_system(openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0), memory)


def test_responses_are_given_memory_in_their_instructions(memory: Memory) -> None:
    with responses_server() as server, answering(server.url, memory) as client:
        assert client.responses.create(model="m", input=DOG).output_text == "It is noted"
        client.responses.create(model="m", input=ASKED, instructions="Be kind")
        talk: list[Any] = [user(ASKED), *client.responses.create(model="m", input=[user(ASKED)]).output, user("Sure?")]
        client.responses.create(model="m", input=talk)
        bodies = [json.loads(request.body) for request in server.requests]
    assert bodies[0] == {"model": "m", "input": DOG}
    assert bodies[1]["input"] == ASKED
    assert bodies[1]["instructions"].startswith("Be kind\n\n<memories>")
    assert DOG in bodies[1]["instructions"]
    assert [one["role"] for one in bodies[3]["input"]] == ["user", "assistant", "user"]
    assert [one for one in stored_turns(memory) if one[0] == "user"] == [
        ("user", DOG),
        ("user", ASKED),
        ("user", "Sure?"),
    ]
    assert ("assistant", "It is noted") in stored_turns(memory)


def test_what_the_server_keeps_of_a_conversation_counts(memory: Memory) -> None:
    with responses_server() as server, answering(server.url, memory) as client:
        for before in ("resp_1", "resp_1", "resp_2"):
            client.responses.create(model="m", input="yes", previous_response_id=before)
    assert [role for role, _ in stored_turns(memory)] == ["user", "assistant"] * 2


def test_a_tools_output_is_not_what_the_user_said(memory: Memory) -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": "rain"}
    with responses_server() as server, answering(server.url, memory) as client:
        client.responses.create(model="m", input=[output], previous_response_id="resp_1")
    assert stored_turns(memory) == [("assistant", "It is noted")]


def test_streamed_responses_are_kept(memory: Memory) -> None:
    with responses_server() as server, answering(server.url, memory) as client:
        assert list(client.responses.create(model="m", input=DOG, stream=True))
        with client.responses.stream(model="m", input=ASKED) as stream:
            assert stream.get_final_response().output_text == "It is noted"
        with client.responses.create(model="m", input="early", stream=True) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    break
    assert stored_turns(memory) == [
        ("user", DOG),
        ("assistant", "It is noted"),
        ("user", ASKED),
        ("assistant", "It is noted"),
        ("user", "early"),
        ("assistant", "It"),
    ]


def test_streamed_responses_that_break_keep_what_came(memory: Memory) -> None:
    with responses_server(cut=True) as server, answering(server.url, memory) as client:
        stream = client.responses.create(model="m", input=DOG, stream=True)
        with pytest.raises(openai.APIError):
            list(stream)
    assert stored_turns(memory) == [("user", DOG), ("assistant", "It is")]


def test_responses_that_failed_leave_nothing(memory: Memory) -> None:
    with responses_server(fails=True) as server, answering(server.url, memory) as client:
        assert client.responses.create(model="m", input=DOG).status == "failed"
        assert list(client.responses.create(model="m", input=DOG, stream=True))
    assert stored_turns(memory) == []


def test_async_responses_are_kept(memory: Memory) -> None:
    async def main(url: str) -> None:
        async with in_system(openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="any"), memory) as client:
            assert (await client.responses.create(model="m", input=DOG)).output_text == "It is noted"
            async with client.responses.stream(model="m", input=ASKED) as stream:
                assert (await stream.get_final_response()).output_text == "It is noted"

    with responses_server() as server:
        asyncio.run(main(server.url))
        assert DOG in json.loads(server.requests[1].body)["instructions"]
    assert [content for role, content in stored_turns(memory) if role == "user"] == [DOG, ASKED]


# What was put in is not kept again


def _quoted(text: str) -> str:
    return "".join(f"> {line}" for line in text.splitlines(keepends=True))


def _answered(client: Any, text: str, stream: bool) -> None:
    answer = say(client, text, stream=stream)
    if stream:
        for _ in answer:
            pass


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("change", [str, _quoted])
def test_an_answer_that_repeats_the_block_is_not_kept_wherever_it_is_cut(
    client: Any, memory: Memory, server: ModelServer, change: Callable[[str], str], stream: bool
) -> None:
    say(client, DOG)
    server.then(says(""))
    say(client, ASKED)
    block = client.recollect.last.text
    assert DOG in block
    before = stored_turns(memory)
    for at in range(1, len(block) + 1, 7 if change is not str else 1 if LONG else 5):
        server.then(says(change(block[:at]), reason="length"))
        _answered(client, ASKED, stream)
        assert client.recollect.last.text == block
    assert stored_turns(memory) == before
    server.then(says(f"It is:\n\n{change(block[:-12])}\n\nSo it is Bello."))
    _answered(client, ASKED, stream)
    assert stored_turns(memory)[len(before) :] == [("assistant", "It is:\n\n\nSo it is Bello.")]


@pytest.mark.parametrize("preset", ["recollect", "aegis", "journal", "atlas"])
def test_no_block_snowballs(plain: openai.OpenAI, tmp_path: Path, server: ModelServer, preset: str) -> None:
    with Memory(tmp_path / "other", preset=preset) as memory:
        memory.remember(DOG)
        client: Any = in_system(plain, memory)
        talk: list[Any] = [user(ASKED)]
        for number in range(4):
            client.chat.completions.create(model="m", messages=talk, recollect={"store": False})
            block = client.recollect.last.text
            assert DOG in block or preset == "journal"
            server.then(says(f"{number}: {ASKED}\n{_quoted(block[:-3])}"))
            answer = client.chat.completions.create(model="m", messages=talk)
            talk += [answer.choices[0].message, user(f"{ASKED} {number}")]
        assert not [text for role, text in stored_turns(memory) if role == "assistant" and DOG in text]


def test_a_cut_answer_that_is_in_the_conversation_is_not_kept_when_it_is_repeated(
    client: Any, memory: Memory, server: ModelServer
) -> None:
    say(client, DOG)
    server.then(says(""))
    say(client, ASKED)
    cut_block = _quoted(client.recollect.last.text[:-5])
    memory.forget([record.id for record in memory.list()])
    server.then(says(cut_block))
    talk = [user(ASKED), {"role": "assistant", "content": cut_block}, user("Again?\n\n" + cut_block)]
    client.chat.completions.create(model="m", messages=talk)
    assert stored_turns(memory) == [("user", "Again?")]


@pytest.mark.parametrize("preset", ["recollect", "inklings", "journal", "atlas"])
def test_an_answer_that_echoes_what_was_put_in_is_not_kept(
    plain: openai.OpenAI, tmp_path: Path, server: ModelServer, preset: str
) -> None:
    fact = "Alice prefers tabs over spaces and drinks green tea every morning at nine"
    asked = "What does Alice prefer? tabs or spaces and tea"
    with Memory(tmp_path / "other", preset=preset) as whole:
        memory = whole.at(agent="z", conversation="c")
        if preset == "journal":
            memory.journal.save(fact)
        else:
            memory.remember(fact)
        client: Any = in_system(plain, memory)
        say(client, asked, recollect={"store": False})
        block = client.recollect.last.text
        line = next(line for line in block.splitlines() if fact in line)
        for echo in (
            f"I recall {line}",
            line.replace("- ", "* ", 1),
            line.replace("- ", "1. ", 1),
            f"| {line[2:]} |",
            textwrap.fill(block, 60),
            json.dumps({"m": block}),
            block[60:],
            block.replace(" ", "\u00a0"),
        ):
            server.then(says(echo))
            say(client, asked)
            assert [text for role, text in stored_turns(whole) if role == "assistant"] == []
        server.then(says(f"{line}\n\nSo I will book the train to Porto."))
        say(client, asked)
        assert [text for role, text in stored_turns(whole) if role == "assistant"] == [
            "So I will book the train to Porto."
        ]


# Where memory goes


def test_memory_is_put_before_what_the_user_says_and_never_kept_with_it(
    plain: openai.OpenAI, memory: Memory, server: ModelServer
) -> None:
    client: Any = recollect.wrap(plain, memory, store="turns")
    server.then(says("Noted"), says("Bello"))
    say(client, DOG)
    say(client, [{"type": "text", "text": ASKED}])
    block = recollect.wrapping(client).last.text  # type: ignore[union-attr]
    assert DOG in block
    assert server.bodies[1]["messages"] == [user([{"type": "text", "text": block}, {"type": "text", "text": ASKED}])]
    assert stored_turns(memory) == [("user", DOG), ("assistant", "Noted"), ("user", ASKED), ("assistant", "Bello")]


@pytest.mark.parametrize("place", ["system", "before_last", "last_user"])
def test_a_call_may_say_where_memory_goes(
    plain: openai.OpenAI, memory: Memory, server: ModelServer, place: str
) -> None:
    memory.remember(DOG)
    client: Any = recollect.wrap(plain, memory, store="turns")
    server.then(says("Bello"))
    say(client, ASKED, recollect={"place": place})
    block = client.recollect.last.text
    sent = server.bodies[0]["messages"]
    assert (
        sent
        == {
            "system": [{"role": "system", "content": block}, user(ASKED)],
            "before_last": [user(block), user(ASKED)],
            "last_user": [user(f"{block}\n\n{ASKED}")],
        }[place]
    )
    assert [one for one in stored_turns(memory) if one[0]] == [("user", ASKED), ("assistant", "Bello")]


def test_what_is_not_relevant_is_not_put_in(plain: openai.OpenAI, memory: Memory, server: ModelServer) -> None:
    memory.remember(DOG)
    client: Any = recollect.wrap(plain, memory, min_relevance=1.0)
    server.then(says("I do not know"), says("Bello"))
    say(client, ASKED, recollect={"store": False})
    assert server.bodies[0]["messages"] == [user(ASKED)]
    assert "nothing relevant" in str(client.recollect.last.report)
    say(client, ASKED, recollect={"min_relevance": 0.0})
    assert DOG in str(server.bodies[1]["messages"])


def test_responses_may_be_given_memory_with_what_the_user_says(memory: Memory) -> None:
    memory.remember(DOG)
    with responses_server() as server, openai.OpenAI(base_url=f"{server.url}/v1", api_key="any") as plain:
        client: Any = recollect.wrap(plain, memory)
        client.responses.create(model="m", input=ASKED, recollect={"store": False})
        client.responses.create(model="m", input=ASKED, recollect={"place": "last_user"})
        bodies = [json.loads(request.body) for request in server.requests]
    assert DOG in bodies[0]["instructions"]
    assert bodies[0]["input"] == ASKED
    assert "instructions" not in bodies[1] or not bodies[1]["instructions"]
    assert bodies[1]["input"][0]["content"].endswith(f"</memories>\n\n{ASKED}")


def test_only_a_wrapped_client_has_a_wrapping(plain: openai.OpenAI, client: Any) -> None:
    assert recollect.wrapping(client) is client.recollect
    with pytest.raises(InputError, match="client"):
        recollect.wrapping(plain)


# What matters of it


def test_what_matters_is_kept_and_nothing_else(plain: openai.OpenAI, memory: Memory, server: ModelServer) -> None:
    client: Any = recollect.wrap(plain, memory.at(conversation="monday"))
    booked = "I've booked table 4 for Friday."
    server.then(says("Hello! How can I help?"), says(f"I'll keep that in mind. {booked}"), says("Bello"))
    say(client, "Hi!")
    say(client, f"{DOG}. What should I cook?")
    say(client, ASKED)
    assert stored_turns(memory) == [("user", f"{DOG}."), ("assistant", booked)]
    dog = memory.list(role="user")[0]
    assert (dog.kind, dog.source, dog.references) == ("fact", "openai", ("monday",))


def test_two_hundred_turns_leave_each_fact_once(plain: openai.OpenAI, memory: Memory, server: ModelServer) -> None:
    """Boilerplate, greetings, old questions and echoes of what was remembered are no memories."""
    facts = [
        "I'm allergic to peanuts.",
        "My dog is called Bello.",
        "We decided to go by train.",
        "I moved to Vienna in May.",
    ]
    for number in range(20):
        client: Any = recollect.wrap(plain, memory.at(conversation=f"c{number}"))
        for turn in range(5):
            server.then(says(f"Based on what I remember: {facts[turn % 4]} I'll keep that in mind!"))
            say(client, ["Hi there!", *facts][turn] + " What do you know about me?")
    assert sorted(text for _, text in stored_turns(memory)) == sorted(facts)
    assert all(one.access_count >= 19 for one in memory.list())
    assert max(memory.list(), key=lambda one: one.importance).content == facts[0]
    (hit, *_) = memory.recall("what am I allergic to?")
    assert hit.memory.content == facts[0]


def test_what_is_refused_takes_nothing_else_with_it(plain: openai.OpenAI, memory: Memory, server: ModelServer) -> None:
    client: Any = recollect.wrap(plain, memory, on_error="raise")
    server.then(says("Noted"), says("Noted"), says("Noted"))
    say(client, "aws_secret_access_key =\n  wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    say(client, f"{DOG}.\n\n{SECRET}")
    assert stored_turns(memory) == []
    assert memory.audit.search("refused")[0].meta["field"] == "content"
    say(client, f"{DOG}.")
    assert stored_turns(memory) == [("user", f"{DOG}.")]


PERSONAL = "My new card is 4111 1111 1111 1111. I moved to Lisbon in May. The wifi password is fluffy99."


def test_a_sentence_with_personal_data_is_left_out_and_the_others_are_kept(
    plain: openai.OpenAI, memory: Memory, server: ModelServer
) -> None:
    client: Any = recollect.wrap(plain, memory, on_error="raise")
    server.then(says("Noted"))
    say(client, PERSONAL)
    assert stored_turns(memory) == [("user", "I moved to Lisbon in May.")]
    assert "card" in {entry.meta.get("rule") for entry in memory.audit.search(action="refuse")}


def test_a_turn_word_for_word_is_without_its_personal_data(
    plain: openai.OpenAI, memory: Memory, server: ModelServer
) -> None:
    client: Any = recollect.wrap(plain, memory, on_error="raise", store="turns")
    server.then(says("Noted"), says("Fine"))
    say(client, PERSONAL)
    say(client, "my pin is 4471")
    assert stored_turns(memory) == [
        ("user", "I moved to Lisbon in May."),
        ("assistant", "Noted"),
        ("assistant", "Fine"),
    ]


def test_a_wrapped_client_leaves_out_tags(plain: openai.OpenAI, memory: Memory, server: ModelServer) -> None:
    memory.remember("about my health: I am diabetic")
    client: Any = recollect.wrap(plain, memory, without_tags=["sensitive"])
    server.then(says("Fine"), says("Fine"))
    say(client, "what do you know about my health?")
    say(client, "what do you know about my health now?", recollect={"without_tags": []})
    assert ["diabetic" in str(body) for body in server.bodies] == [False, True]


def test_an_answer_is_kept_with_what_was_asked(plain: openai.OpenAI, memory: Memory, server: ModelServer) -> None:
    client: Any = recollect.wrap(plain, memory)
    server.then(says("Lovely!"))
    talk = [user("I got a puppy!"), {"role": "assistant", "content": "What is your puppy called?"}, user("Bello")]
    client.chat.completions.create(model="m", messages=talk)
    assert ("user", "What is your puppy called? Bello") in stored_turns(memory)


def test_a_stream_that_is_left_and_still_held_is_kept_when_the_client_closes(
    memory: Memory, server: ModelServer, plain: openai.OpenAI
) -> None:
    client: Any = in_system(plain, memory)
    server.then(says("It is Bello"))
    held = say(client, DOG, stream=True)
    next(held)
    next(held)
    recollect.wrapping(client).flush()
    assert stored_turns(memory) == []  # it may go on
    client.close()
    assert [role for role, _ in stored_turns(memory)] == ["user", "assistant"]
    assert memory.list(role="assistant")[0].metadata["partial"] is True
    del held
    client.close()
    assert len(stored_turns(memory)) == 2
