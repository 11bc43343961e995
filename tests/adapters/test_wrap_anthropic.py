"""Anthropic's own client, wrapped, against a real server: what reaches the model, and what is kept."""

from __future__ import annotations

import asyncio
import copy
import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.lazily import Lazily
from support.model_server import ModelServer, Tool, cut, fails_midway, model_server, says, status
from support.wrap_server import stored_turns

import recollect
from recollect import AsyncMemory, Memory

anthropic: Any = Lazily("anthropic")

DOG = "My dog is called Bello"
ASKED = "What is my dog called?"
SECRET = "my key is sk-proj-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3"


def in_system(client: Any, memory: Any, **options: Any) -> Any:
    """Memory in the system prompt, apart from what the user says, which this server repeats; all of it stored."""
    return recollect.wrap(client, memory, **{"place": "system", "store": "turns", **options})


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def plain(server: ModelServer) -> Iterator[anthropic.Anthropic]:
    http = anthropic.DefaultHttpxClient(verify=False)  # there is no TLS, and reading certificates takes a while
    with anthropic.Anthropic(base_url=server.url, api_key="any", max_retries=0, http_client=http) as client:
        yield client


@pytest.fixture
def client(plain: anthropic.Anthropic, memory: Memory) -> Any:
    return in_system(plain, memory)


def asking(*messages: Any, **options: Any) -> dict[str, Any]:
    talk = [user(one) if isinstance(one, str) else one for one in messages]
    return {"model": "c", "max_tokens": 100, "messages": talk, **options}


def awaited(server: ModelServer, memory: Any, work: Any) -> Any:
    """Run `work` with a wrapped async client."""

    async def main() -> Any:
        http = anthropic.DefaultAsyncHttpxClient(verify=False)
        plain = anthropic.AsyncAnthropic(base_url=server.url, api_key="any", max_retries=0, http_client=http)
        async with in_system(plain, memory) as client:
            return await work(client)

    return asyncio.run(main())


def test_what_was_told_in_one_call_is_in_the_next_request(client: Any, server: ModelServer) -> None:
    client.messages.create(**asking(DOG))
    assert server.bodies[0] == asking(DOG)
    client.messages.create(**asking(ASKED))
    client.messages.create(**asking(ASKED, system="Be kind"))
    assert DOG in server.bodies[1]["system"]
    assert server.bodies[2]["system"].startswith("Be kind\n\n<memories>")
    assert server.bodies[2]["messages"] == [user(ASKED)]


def test_a_prompt_in_blocks_stays_one_and_keeps_its_marks(client: Any, server: ModelServer) -> None:
    blocks = [{"type": "text", "text": "Be kind", "cache_control": {"type": "ephemeral"}}]
    client.messages.create(**asking(DOG))
    client.messages.create(**asking(ASKED, system=blocks))
    assert server.bodies[1]["system"][0] == blocks[0]
    assert DOG in server.bodies[1]["system"][1]["text"]
    assert len(blocks) == 1


def test_what_was_told_is_in_the_next_request_of_an_async_client(server: ModelServer, memory: Memory) -> None:
    async def work(client: Any) -> None:
        await client.messages.create(**asking(DOG))
        await client.messages.create(**asking(ASKED, system=anthropic.NOT_GIVEN))

    awaited(server, AsyncMemory(memory), work)
    assert DOG in server.bodies[1]["system"]
    assert stored_turns(memory)[:2] == [("user", DOG), ("assistant", f"You said: {DOG}")]


def test_the_presets_put_memory_in_as_they_do(tmp_path: Path, plain: anthropic.Anthropic, server: ModelServer) -> None:
    marks = {"aegis": "[Memories]", "journal": "# Your Private Memory", "atlas": DOG, "recollect": "<memories>"}
    for preset, mark in marks.items():
        with Memory(tmp_path / preset, preset=preset) as memory:
            memory.remember(DOG)
            in_system(plain, memory).messages.create(**asking(ASKED))
        assert mark in server.bodies[-1]["system"], preset
        assert DOG in server.bodies[-1]["system"], preset
        assert server.bodies[-1]["messages"] == [user(ASKED)]


def test_a_preset_has_a_prompt_for_who_gives_none(
    tmp_path: Path, plain: anthropic.Anthropic, server: ModelServer
) -> None:
    with Memory(tmp_path / "journal", preset="journal") as memory:
        client = in_system(plain, memory.at(agent="Atlas"))
        client.messages.create(**asking(ASKED))
        client.messages.create(**asking("And now?", system="Be kind"))
    assert server.bodies[0]["system"].startswith("You are Atlas.")
    assert server.bodies[1]["system"].startswith("Be kind")


def test_what_the_caller_passes_is_never_changed(client: Any) -> None:
    client.messages.create(**asking(DOG))
    given = asking(
        {"role": "user", "content": [{"type": "text", "text": ASKED}]}, system=[{"type": "text", "text": "x"}]
    )
    before = copy.deepcopy(given)
    client.messages.create(**given)
    assert given == before


def test_a_turn_is_kept_with_who_said_it_and_where_it_came_from(client: Any, memory: Memory) -> None:
    client.messages.create(**asking(DOG))
    assert stored_turns(memory) == [("user", DOG), ("assistant", f"You said: {DOG}")]
    for record in memory.list():
        assert (record.kind, record.source, record.metadata) == ("conversation", "anthropic", {"model": "c"})


def test_what_was_put_in_is_never_kept(client: Any, memory: Memory, server: ModelServer) -> None:
    talk: list[dict[str, Any]] = []
    for number in range(20):
        echo = server.bodies[-1].get("system", "") if server.bodies else ""
        server.then(says(f"{echo}\nBello, for the {number}th time"))
        talk.append(user(f"{echo}\n\n{ASKED} Asked {number} times"))
        answer = client.messages.create(**asking(*talk))
        talk.append({"role": "assistant", "content": answer.content})
        talk = talk[-4:]
    found = stored_turns(memory)
    assert len(found) == 40
    assert not [content for _, content in found if "<memories>" in content or "Refer to a memory" in content]
    assert any("<memories>" in body.get("system", "") for body in server.bodies)


def test_a_loop_of_tool_calls_keeps_each_turn_once(client: Any, memory: Memory, server: ModelServer) -> None:
    server.then(says("", Tool("find", {"n": 1})), says("Looking further", Tool("find", {"n": 2})), says("It is Bello"))
    talk: list[Any] = [user(ASKED)]
    for number in range(3):
        answer = client.messages.create(**asking(*talk))
        talk.append({"role": "assistant", "content": answer.content})
        if answer.stop_reason == "tool_use":
            talk.append(user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": f"found {number}"}]))
    assert stored_turns(memory) == [("user", ASKED), ("assistant", "Looking further"), ("assistant", "It is Bello")]
    assert [len(body["messages"]) for body in server.bodies] == [1, 3, 5]


def test_what_is_said_beside_a_tools_result_is_kept(client: Any, memory: Memory, server: ModelServer) -> None:
    server.then(says("Good"))
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "find", "input": {}}]}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"}
    client.messages.create(**asking(ASKED, use, user([result, {"type": "text", "text": "Be quick"}])))
    assert stored_turns(memory) == [("user", "Be quick"), ("assistant", "Good")]


def test_an_answer_that_the_caller_began_is_kept_whole(client: Any, memory: Memory, server: ModelServer) -> None:
    server.then(says(' "Bello"}'))
    client.messages.create(**asking(ASKED, {"role": "assistant", "content": '{"name":'}))
    assert stored_turns(memory) == [("user", ASKED), ("assistant", '{"name": "Bello"}')]


def test_a_message_that_is_sent_again_is_kept_once(client: Any, memory: Memory) -> None:
    client.messages.create(**asking(DOG))
    client.messages.create(**asking(DOG, system="It is noon"))
    assert stored_turns(memory) == [("user", DOG), ("assistant", f"You said: {DOG}")]


def test_a_call_that_fails_keeps_nothing_and_says_why(client: Any, memory: Memory, server: ModelServer) -> None:
    server.then(status(529, kind="overloaded_error"))
    with pytest.raises(anthropic.APIStatusError):
        client.messages.create(**asking(DOG))
    assert stored_turns(memory) == []


def test_the_clients_own_retries_keep_a_turn_once(client: Any, memory: Memory, server: ModelServer) -> None:
    server.then(status(500, retry_after_ms="1"), status(500, retry_after_ms="1"))
    client.with_options(max_retries=2).messages.create(**asking(DOG))
    assert len(server.requests) == 3
    assert stored_turns(memory) == [("user", DOG), ("assistant", f"You said: {DOG}")]


def test_a_stream_is_kept_when_it_is_over(client: Any, memory: Memory, server: ModelServer) -> None:
    client.messages.create(**asking(DOG))
    events = list(client.messages.create(**asking(ASKED), stream=True))
    assert events[-1].type == "message_stop"
    assert DOG in server.bodies[1]["system"]
    assert stored_turns(memory)[2:] == [("user", ASKED), ("assistant", f"You said: {ASKED}")]
    assert not any("partial" in record.metadata for record in memory.list())


@pytest.mark.parametrize("read", ["events", "texts", "final message", "final text", "done"])
def test_the_stream_helper_keeps_the_turn_however_it_is_read(client: Any, memory: Memory, read: str) -> None:
    with client.messages.stream(**asking(DOG)) as stream:
        if read == "events":
            assert {"text", "message_stop"} <= {event.type for event in stream}
        elif read == "texts":
            assert "".join(stream.text_stream) == f"You said: {DOG}"
        elif read == "final text":
            assert stream.get_final_text() == f"You said: {DOG}"
        elif read == "done":
            stream.until_done()
        assert stream.get_final_message().content[0].text == f"You said: {DOG}"
        assert stream.current_message_snapshot.stop_reason == "end_turn"
        assert stream.request_id is None or isinstance(stream.request_id, str)
    assert stored_turns(memory) == [("user", DOG), ("assistant", f"You said: {DOG}")]
    assert not any("partial" in record.metadata for record in memory.list())


@pytest.mark.parametrize("read", ["texts", "raw"])
def test_what_came_of_a_stream_is_kept_if_it_is_closed_early(client: Any, memory: Memory, read: str) -> None:
    if read == "texts":
        with client.messages.stream(**asking(DOG)) as stream:
            assert [next(stream.text_stream) for _ in range(2)] == ["You ", "said: "]
    else:
        with client.messages.create(**asking(DOG), stream=True) as stream:
            [next(stream) for _ in range(4)]
    assert stored_turns(memory) == [("user", DOG), ("assistant", "You said:")]
    assert memory.list(role="assistant")[0].metadata == {"model": "c", "partial": True}


def test_a_stream_that_is_let_go_is_kept_when_the_client_closes(plain: anthropic.Anthropic, memory: Memory) -> None:
    with in_system(plain, memory) as client:
        stream = client.messages.create(**asking(DOG), stream=True)
        [next(stream) for _ in range(4)]
        del stream
        gc.collect()
        assert stored_turns(memory) == []
        client.recollect.flush()
        assert stored_turns(memory) == [("user", DOG), ("assistant", "You said:")]
        stream = client.messages.create(**asking(ASKED), stream=True)
        [next(stream) for _ in range(4)]
        del stream
        gc.collect()
    assert stored_turns(memory)[2:] == [("user", ASKED), ("assistant", "You said:")]


@pytest.mark.parametrize("behaviour", [cut("It is Bello", 2), fails_midway("It is Bello", 2)])
@pytest.mark.parametrize("helper", [False, True])
def test_what_came_of_a_stream_is_kept_if_it_breaks(
    client: Any, memory: Memory, server: ModelServer, behaviour: Any, helper: bool
) -> None:
    def read() -> None:
        if helper:
            with client.messages.stream(**asking(ASKED)) as stream:
                stream.until_done()
        else:
            list(client.messages.create(**asking(ASKED), stream=True))

    server.then(behaviour)
    with pytest.raises(Exception, match=r"Overloaded|overloaded|peer closed|[Cc]onnection"):
        read()
    assert stored_turns(memory) == [("user", ASKED), ("assistant", "It is")]
    assert memory.list(role="assistant")[0].metadata == {"model": "c", "partial": True}


def test_async_streams_are_kept(server: ModelServer, memory: Memory) -> None:
    async def work(client: Any) -> None:
        assert [event async for event in await client.messages.create(**asking(DOG), stream=True)]
        async with client.messages.stream(**asking("texts")) as stream:
            assert "".join([text async for text in stream.text_stream]) == "You said: texts"
        async with client.messages.stream(**asking("final")) as stream:
            assert await stream.get_final_text() == "You said: final"
        async with client.messages.stream(**asking("early")) as stream:
            assert await anext(stream.text_stream) == "You "
        server.then(cut("It is Bello", 2))
        async with client.messages.stream(**asking("cut")) as stream:
            with pytest.raises(Exception, match=r"peer closed|[Cc]onnection"):
                await stream.until_done()

    awaited(server, memory, work)
    assert [content for role, content in stored_turns(memory) if role == "user"] == [
        DOG,
        "texts",
        "final",
        "early",
        "cut",
    ]
    said = [content for role, content in stored_turns(memory) if role == "assistant"]
    assert said == [f"You said: {DOG}", "You said: texts", "You said: final", "You", "It is"]
    assert [one.content for one in memory.list() if "partial" in one.metadata] == ["It is", "You"]


def test_a_secret_is_not_kept_and_the_call_goes_through(
    client: Any, memory: Memory, server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.then(says("Noted"))
    assert client.messages.create(**asking(SECRET)).content[0].text == "Noted"
    assert stored_turns(memory) == [("assistant", "Noted")]
    assert "secret" in caplog.text
    assert "sk-proj" not in caplog.text


def test_the_beta_messages_are_the_same(client: Any, memory: Memory, server: ModelServer) -> None:
    client.beta.messages.create(**asking(DOG))
    with client.beta.messages.stream(**asking(ASKED)) as stream:
        assert stream.get_final_text() == f"You said: {ASKED}"
    assert DOG in server.bodies[1]["system"]
    assert [content for role, content in stored_turns(memory) if role == "user"] == [DOG, ASKED]


def test_a_wrapped_client_is_like_the_client(client: Any, plain: anthropic.Anthropic, server: ModelServer) -> None:
    assert client.messages.batches is plain.messages.batches
    assert client.messages.count_tokens == plain.messages.count_tokens
    assert client.models is plain.models
    assert repr(client).startswith("<recollect.wrap of <anthropic.Anthropic")
    client.messages.create(**asking(DOG), recollect={"store": False})
    assert "recollect" not in server.bodies[0]
    assert client.recollect.last.memories == ()


def test_the_clients_of_other_clouds_are_wrapped_too(memory: Memory) -> None:
    with anthropic.AnthropicBedrock(aws_region="x", aws_access_key="x", aws_secret_key="x") as bedrock:
        assert repr(recollect.wrap(bedrock, memory).messages).startswith("<recollect.wrap of")


def test_many_threads_share_a_client(client: Any, memory: Memory) -> None:
    def work(number: int) -> None:
        text = f"thread {number} has a dog called D{number}"
        if number % 2:
            assert client.messages.create(**asking(text)).content[0].text == f"You said: {text}"
        else:
            with client.messages.stream(**asking(text)) as stream:
                assert "".join(stream.text_stream) == f"You said: {text}"

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(24)))
    texts = [f"thread {number} has a dog called D{number}" for number in range(24)]
    both = [(role, said) for one in texts for role, said in (("user", one), ("assistant", f"You said: {one}"))]
    assert sorted(stored_turns(memory)) == sorted(both)
