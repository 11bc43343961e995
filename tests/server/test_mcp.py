"""The MCP server as agents have it: another process, spoken to with the SDK's own client."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner
from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client, types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from support import plain

from recollect import Memory, UnsavedWarning
from recollect.memory import view_of
from recollect.presets import load, names
from recollect.server.access.accounts import Accounts
from recollect.stores.files.ledger import Ledger

SECRET = "AKIA" + "Z7QX4MPL2RWT9KDN"
SERVER = [sys.executable, "-m", "recollect", "mcp"]
_ENVIRONMENT = {
    "RECOLLECT_EMBEDDER": "none",
    "PYTHONWARNINGS": "error",
    "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
}

ARGUMENTS: dict[str, dict[str, Any]] = {
    "recall": {"query": "tea"},
    "remember": {"content": "the tea is green"},
    "revise": {"id": "ID", "content": "the tea is black"},
    "list": {"tags": ["drinks"]},
    "forget": {"id": "ID"},
    "undo": {},
    "search_my_memories": {"query": "tea"},
    "search_atlasux_knowledge": {"query": "tea"},
    "memory_store": {"text": "the tea is green", "tags": ["drinks"]},
    "memory_search": {"query": "tea"},
    "memory_delete": {"id": "ID"},
    "save_to_journal": {"content": "the tea was green today"},
    "save_to_core": {"content": "I like tea"},
    "write_scratchpad": {"key": "tea", "value": ["green"]},
    "read_scratchpad": {"key": "tea"},
    "list_scratchpad": {},
    "clear_scratchpad": {},
    "observe": {"content": "the tea is from Japan"},
}
"""A good call of every tool; ID stands for a memory that is there."""


@asynccontextmanager
async def client(store: object, *options: str, stderr: Path | None = None) -> AsyncIterator[ClientSession]:
    """A client that started a server for itself, over its pipes."""
    command, *before = SERVER
    server = StdioServerParameters(
        command=command, args=[*before, "--store", str(store), *options], env={**_ENVIRONMENT}
    )
    with open(stderr or os.devnull, "a") as log:
        async with stdio_client(server, errlog=log) as streams, ClientSession(*streams) as session:
            await session.initialize()
            yield session


@asynccontextmanager
async def web_client(url: str) -> AsyncIterator[ClientSession]:
    async with streamable_http_client(url) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


HERE = ("--mcp-only", "--listen", "127.0.0.1:0")
"""Options of a server over HTTP, on a free port."""


class Served(subprocess.Popen[str]):
    """A server in a process of its own, whose ends this test holds itself."""

    def __init__(self, store: object, *options: str) -> None:
        server = [*SERVER[:-1], "serve"] if "--mcp-only" in options else SERVER
        quiet = ["--log", "none"] if "--mcp-only" in options and "--log" not in options else []
        command = [*server, "--store", str(store), *quiet, *options]
        pipe = subprocess.PIPE
        super().__init__(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env={**os.environ, **_ENVIRONMENT}, bufsize=1
        )

    def say(self, line: object) -> None:
        assert self.stdin is not None
        self.stdin.write(line if isinstance(line, str) else json.dumps(line) + "\n")
        self.stdin.flush()

    def ask(self, method: str, **params: Any) -> Any:
        assert self.stdout is not None
        self.say({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        answer = json.loads(self.stdout.readline())
        assert answer["jsonrpc"] == "2.0"
        return answer.get("result") or answer["error"]

    def greet(self) -> None:
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def url(self) -> str:
        """Where it listens, once it does."""
        assert self.stderr is not None
        for line in self.stderr:
            if line.startswith("Listening on "):
                return line.removeprefix("Listening on ").strip()
        raise AssertionError("it does not listen")

    def end(self) -> tuple[str, str]:
        """What it still had to say on stdout and stderr; it must end well."""
        printed, problems = self.communicate(timeout=60)
        assert self.returncode == 0, problems
        return printed, problems


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    started: list[Served] = []

    def serve(*given: Any) -> Served:
        started.append(Served(*given))
        return started[-1]

    yield serve
    for server in started:
        server.kill()
        server.wait()
        for stream in (server.stdin, server.stdout, server.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()


async def together(*jobs: Any) -> list[Any]:
    return list(await asyncio.gather(*(job() for job in jobs)))


def document(result: types.ReadResourceResult) -> Any:
    (content,) = result.contents
    assert content.mime_type == "application/json"
    assert isinstance(content, types.TextResourceContents)
    return json.loads(content.text)


# Tools


@pytest.mark.slow
def test_each_preset_offers_its_tools_and_they_work(tmp_path: Path) -> None:
    def trial(preset: str) -> Any:
        async def run() -> None:
            where = [tmp_path / preset, "--preset", preset, "--agent", "ann", "--conversation", "c1"]
            async with client(*where) as session:
                offered = (await session.list_tools()).tools
                assert [tool.name for tool in offered] == list(load(preset).tools)
                for tool in offered:
                    assert tool.description
                    assert tool.input_schema["type"] == "object"
                    assert tool.annotations is not None
                    assert not (tool.annotations.read_only_hint and tool.annotations.destructive_hint)
                    assert tool.title
                    assert tool.output_schema is not None
                ident = ""
                for tool in sorted(
                    offered, key=lambda tool: (tool.name == "undo", "id" in tool.input_schema["properties"])
                ):
                    given = {name: ident if value == "ID" else value for name, value in ARGUMENTS[tool.name].items()}
                    result = await session.call_tool(tool.name, given)
                    assert not result.is_error, (preset, tool.name, result)
                    assert isinstance(result.structured_content, dict)
                    assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]
                    ident = result.structured_content.get("id", ident)
                    refused = await session.call_tool(tool.name, {"no_such_argument": SECRET})
                    assert refused.is_error
                    assert refused.structured_content["error"]
                    assert SECRET not in str(refused)

        return run

    asyncio.run(together(*(trial(preset) for preset in names())))


def test_the_document_lists_the_tools_of_each_preset() -> None:
    text = (Path(__file__).parent.parent.parent / "docs" / "mcp.md").read_text()
    rows = re.findall(r"^\| (`\w+`.*?) \| (`.*?) \|$", text, re.MULTILINE)
    listed = {
        name: re.findall(r"`([a-z_]+)`", tools) for presets, tools in rows for name in re.findall(r"`(\w+)`", presets)
    }
    assert listed == {name: list(load(name).tools) for name in names()}
    for block in re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        (servers,) = json.loads(block).values()
        assert servers["recollect"]["args"][0] == "mcp"


def test_what_only_reads_says_so_and_read_only_leaves_the_rest_out(memory: Memory) -> None:
    from recollect.server.mcp import serve

    async def run() -> None:
        async with Client(serve(memory)) as all_tools, Client(serve(memory, read_only=True)) as reading:
            reads = {tool.name: tool.annotations.read_only_hint for tool in (await all_tools.list_tools()).tools}
            writing = ("remember", "revise", "forget", "undo")
            assert reads == {"recall": True, "list": True} | dict.fromkeys(writing, False)
            assert [tool.name for tool in (await reading.list_tools()).tools] == ["recall", "list"]
            with pytest.raises(MCPError, match="no tool 'remember'") as refused:
                await reading.call_tool("remember", {"content": "tea"})
            assert refused.value.code == types.INVALID_PARAMS

    asyncio.run(run())
    assert memory.list() == []


def test_read_only_starts_no_memory(tmp_path: Path) -> None:
    from recollect.cli.app import cli

    done = CliRunner().invoke(cli, ["mcp", "--read-only", "--store", str(tmp_path / "none")])

    assert done.exit_code == 1
    assert "there is no memory at" in done.stderr
    assert not (tmp_path / "none").exists()


def test_what_nobody_foresaw_is_not_told_to_clients_and_not_quoted_in_the_log(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from recollect.server.mcp import serve
    from recollect.server.reporting import Discreet

    def fail(*given: Any, **more: Any) -> None:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr(memory, "recall", fail)
    monkeypatch.setattr(memory, "context", fail)

    async def run() -> None:
        async with Client(serve(memory)) as session:
            result = await session.call_tool("recall", {"query": "tea"})
            assert result.is_error
            assert result.structured_content == {"error": "unexpected ZeroDivisionError; see the server's log"}
            with pytest.raises(MCPError, match="unexpected ZeroDivisionError"):
                await session.get_prompt("context", {"message": "tea"})

    asyncio.run(run())
    logged = [Discreet().format(record) for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(logged) == 2
    assert all("ZeroDivisionError" in line and "fail" in line and SECRET not in line for line in logged)


@pytest.mark.clause("LED-13")
def test_a_client_is_told_what_a_full_disk_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.server.mcp import serve

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def stored(session: Client, text: str) -> dict[str, Any]:
        result = await session.call_tool("remember", {"content": text})
        assert not result.is_error
        assert isinstance(result.content[0], types.TextContent)
        assert json.loads(result.content[0].text) == result.structured_content
        return result.structured_content or {}

    async def run() -> None:
        settings = {"concurrency": {"max_retries": 0}}
        with Memory(Ledger(tmp_path / "memory", settings=settings), preset="ledger") as memory:
            async with Client(serve(memory)) as session:
                assert "not_saved_yet" not in await stored(session, "before")
                with monkeypatch.context() as patch:
                    patch.setattr(os, "fsync", full)
                    with pytest.warns(UnsavedWarning):
                        told = await stored(session, "meanwhile")
                assert "in memory only" in told["not_saved_yet"]
                assert "not_saved_yet" not in await stored(session, "after")
            assert len(memory.list()) == 3

    asyncio.run(run())


# Resources and the prompt


def test_memories_are_resources(memory: Memory) -> None:
    from recollect.server.mcp import serve

    with_talk = memory.at(conversation="monday.1")
    stored = [with_talk.remember(f"tea number {number}") for number in range(101)]
    memory.archive(stored[-1].id)

    async def run() -> None:
        async with Client(serve(memory)) as session:
            listed = (await session.list_resources()).resources
            assert [resource.uri for resource in listed] == ["recollect://memories", "recollect://sessions"]
            templates = (await session.list_resource_templates()).resource_templates
            assert [one.uri_template for one in templates] == ["recollect://memories/{id}", "recollect://sessions/{id}"]
            latest = document(await session.read_resource("recollect://memories"))["memories"]
            assert [one["id"] for one in latest] == [record.id for record in stored[-2::-1]]
            one = document(await session.read_resource(f"recollect://memories/{stored[-1].id}"))
            assert one["content"] == "tea number 100"
            assert one["state"] == "archived"
            assert "embedding" not in one
            talks = document(await session.read_resource("recollect://sessions"))
            assert talks == {"sessions": [{"session_id": "monday.1", "memories": 100}]}
            talk = document(await session.read_resource("recollect://sessions/monday.1"))
            assert talk["session"] == {"session_id": "monday.1"}
            assert len(talk["memories"]) == 100

    asyncio.run(run())


def test_sessions_of_a_ledger_are_resources(tmp_path: Path) -> None:
    from recollect.server.mcp import serve

    with Memory(f"ledger:{tmp_path / 'ledger'}", preset="ledger") as memory:
        about = memory.sessions.create("alice")
        ident = memory.sessions.add(about.session_id, {"type": "finding", "content": "the tea is green"})

        async def run() -> None:
            async with Client(serve(memory)) as session:
                (found,) = document(await session.read_resource("recollect://sessions"))["sessions"]
                assert (found["session_id"], found["user_id"]) == (about.session_id, "alice")
                one = document(await session.read_resource(f"recollect://sessions/{about.session_id}"))
                assert one["session"]["total_entries"] == 1
                assert [entry["id"] for entry in one["memories"]] == [ident]
                with pytest.raises(MCPError, match="no session sess_none"):
                    await session.read_resource("recollect://sessions/sess_none")

            async with Client(serve(memory.at(workspace="other"))) as bound:
                assert document(await bound.read_resource("recollect://sessions"))["sessions"] == []
                with pytest.raises(MCPError, match="cannot be moved"):
                    await bound.read_resource(f"recollect://sessions/{about.session_id}")

        asyncio.run(run())


@pytest.mark.slow
def test_no_resource_id_leads_out_of_the_view(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory") as owner:
        places = [
            owner.at(agent="bob"),
            owner.at(workspace="elsewhere"),
            owner.at(tenant="stranger"),
            owner.at(tenant="stranger", agent="ann", conversation="private"),
        ]
        hidden = [place.remember("the treasure is under the oak").id for place in places]
        owner.at(agent="bob", conversation="plans").remember("the treasure is under the oak")
        own = owner.at(agent="ann").remember("I have no treasure").id
    hostile = [
        *hidden,
        "../../../../etc/passwd",
        "..%2F..%2Fstranger%2Faccount.db",
        "%00",
        "%",
        "*",
        "' OR 1=1 --",
        "a" * 100_000,
        "",
        "é",
        f"{own}/../{hidden[0]}",
        f"{own}?id={hidden[0]}",
    ]

    async def run() -> None:
        async with client(tmp_path / "memory", "--agent", "ann", "--workspace", "default") as session:
            for collection in ("memories", "sessions"):
                for ident in [*hostile, "plans", "private", "elsewhere", "stranger"]:
                    with pytest.raises(MCPError) as refused:
                        await session.read_resource(f"recollect://{collection}/{ident}")
                    assert refused.value.code == types.INVALID_PARAMS
                    assert "oak" not in str(refused.value)
            for uri in (
                "recollect://",
                "recollect://Memories",
                "recollect:memories",
                f"file://{tmp_path}",
                "memories",
                "",
            ):
                with pytest.raises(MCPError, match="no resource"):
                    await session.read_resource(uri)
            assert [one["id"] for one in document(await session.read_resource("recollect://memories"))["memories"]] == [
                own
            ]
            assert document(await session.read_resource("recollect://sessions")) == {"sessions": []}
            assert document(await session.read_resource(f"recollect://memories/{own}"))["id"] == own

    asyncio.run(run())


def test_the_prompt_is_the_context_of_a_message(memory: Memory) -> None:
    from recollect.server.mcp import serve

    memory.remember("Alice prefers green tea")

    async def prompt(session: Client, **given: str) -> str:
        (message,) = (await session.get_prompt("context", given)).messages
        assert message.role == "user"
        assert isinstance(message.content, types.TextContent)
        return message.content.text

    async def run() -> None:
        async with Client(serve(memory)) as session:
            (offered,) = (await session.list_prompts()).prompts
            assert [(one.name, bool(one.required)) for one in offered.arguments or []] == [
                ("message", True),
                ("budget", False),
            ]
            expected = memory.context([{"role": "user", "content": "which tea does Alice want?"}]).text
            assert "green tea" in expected
            assert await prompt(session, message="which tea does Alice want?") == expected
            assert "green tea" in await prompt(session, message="which tea does Alice want?", budget="500")
            assert await prompt(session, message="zebra") == (
                "Nothing that is remembered seems to matter for this message."
            )
            for given, problem in (
                ({}, "message: is needed"),
                ({"message": " "}, "message: is needed"),
                ({"message": "tea", "budget": "many"}, "budget: must be a whole number"),
                ({"message": "tea", "budget": "0"}, "budget: "),
                ({"message": "tea", "budget": "9" * 9}, "budget: "),
                ({"message": "tea", "budget": "9" * 9000}, "budget: "),
            ):
                with pytest.raises(MCPError, match=problem):
                    await session.get_prompt("context", given)
            with pytest.raises(MCPError, match="no prompt 'other'"):
                await session.get_prompt("other", {"message": "tea"})

    asyncio.run(run())


# The process


@pytest.mark.slow
def test_only_the_protocol_is_on_stdout_and_secrets_are_nowhere(tmp_path: Path, serve: Callable[..., Served]) -> None:
    server = serve(tmp_path / "memory")
    server.greet()
    refused = server.ask("tools/call", name="remember", arguments={"content": f"the key is {SECRET}"})
    assert refused["isError"] is True
    server.ask("tools/call", name="remember", arguments={"content": {"deep": SECRET}})
    server.ask("tools/call", name="remember", arguments=SECRET)
    server.ask("tools/call", name=SECRET, arguments={})
    server.ask("resources/read", uri=f"recollect://memories/{SECRET}")
    server.ask("prompts/get", name="context", arguments={"message": "tea", "budget": SECRET})
    server.ask(SECRET)
    server.say(f'{{"not": JSON {SECRET}\n')
    server.say(f'{{"jsonrpc": "2.0", "method": "{SECRET}", "params": {{"a": "{SECRET}"}}}}\n')
    assert server.ask("tools/call", name="recall", arguments={"query": "key"})["isError"] is False

    printed, problems = server.end()

    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in printed.splitlines())
    assert SECRET not in problems
    assert "Traceback" not in problems
    written = b"".join(path.read_bytes() for path in (tmp_path / "memory").rglob("*") if path.is_file())
    assert SECRET.encode() not in written


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "closed stdin"])
def test_it_ends_with_everything_written(tmp_path: Path, serve: Callable[..., Served], how: str) -> None:
    server = serve(tmp_path / "memory")
    server.greet()
    server.ask("tools/call", name="remember", arguments={"content": "the tea is green"})
    found = server.ask("tools/call", name="recall", arguments={"query": "tea"})["structuredContent"]
    assert found["count"] == 1

    if how == "closed stdin":
        printed, problems = server.end()
    else:
        server.send_signal(getattr(signal, how))
        assert server.wait(60) == 0  # though the client still holds both ends
        printed, problems = server.end()

    assert printed == ""
    assert problems.splitlines() == [f"Started a new memory in {tmp_path / 'memory'}"]
    with Memory(tmp_path / "memory") as memory:
        (record,) = memory.list()
        assert record.access_count == 1


@pytest.mark.slow
def test_a_client_that_vanishes_leaves_no_noise(tmp_path: Path, serve: Callable[..., Served]) -> None:
    server = serve(tmp_path / "memory")
    server.greet()
    assert server.stdout is not None
    server.stdout.close()
    for _ in range(20):
        server.say({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    assert server.stdin is not None
    server.stdin.close()
    assert server.wait(60) == 0
    assert server.stderr is not None
    assert "Traceback" not in server.stderr.read()


# Many at once


async def work(session: ClientSession, who: str, times: int, acknowledged: list[str]) -> None:
    for number in range(times):
        text = f"{who} counted sheep{number}"
        stored = await session.call_tool("remember", {"content": text})
        assert not stored.is_error, stored
        acknowledged.append(stored.structured_content["id"])
        found = await session.call_tool("recall", {"query": f'"{text}"', "limit": 50})
        assert text in [one["text"] for one in found.structured_content["memories"]]


@pytest.mark.slow
def test_eight_processes_share_a_store_and_one_is_killed(tmp_path: Path, serve: Callable[..., Served]) -> None:
    acknowledged: list[str] = []
    victim = serve(tmp_path / "memory")
    victim.greet()

    def one(who: str) -> Any:
        async def run() -> None:
            async with client(tmp_path / "memory") as session:
                await work(session, who, 6, acknowledged)

        return run

    async def murder() -> None:
        for number in range(6):
            call = {"name": "remember", "arguments": {"content": f"victim counted sheep{number}"}}
            answer = await anyio.to_thread.run_sync(lambda call=call: victim.ask("tools/call", **call))
            acknowledged.append(answer["structuredContent"]["id"])
        victim.say(
            {
                "jsonrpc": "2.0",
                "id": 9,
                "method": "tools/call",
                "params": {"name": "recall", "arguments": {"query": "x"}},
            }
        )
        victim.say({"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": call})
        victim.kill()

    asyncio.run(together(murder, *(one(f"client{number}") for number in range(7))))

    with Memory(tmp_path / "memory") as memory:
        assert len(acknowledged) == 48
        assert {record.id for record in memory.list(limit=1000)} >= set(acknowledged)
        assert memory.verify() == []


KILLED = """
import asyncio, sys
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

async def run():
    async with streamable_http_client(sys.argv[1]) as streams, ClientSession(*streams) as session:
        await session.initialize()
        for number in range(1000):
            stored = await session.call_tool("remember", {"content": f"victim counted sheep{number}"})
            print(stored.structured_content["id"], flush=True)

asyncio.run(run())
"""


@pytest.mark.slow
def test_eight_clients_share_a_server_over_http(
    tmp_path: Path, serve: Callable[..., Served], start: Callable[..., Any]
) -> None:
    server = serve(tmp_path / "memory", *HERE)
    url = server.url()
    acknowledged: list[str] = []
    victim = start(KILLED, url)

    def one(who: str) -> Any:
        async def run() -> None:
            async with web_client(url) as session:
                await work(session, who, 6, acknowledged)

        return run

    async def murder() -> None:
        for _ in range(5):
            acknowledged.append(await anyio.to_thread.run_sync(victim.line))
        victim.kill()

    asyncio.run(together(murder, *(one(f"client{number}") for number in range(7))))
    assert len(acknowledged) == 47
    server.kill()
    server.wait()

    again = serve(tmp_path / "memory", "--mcp-only", "--listen", url.removeprefix("http://").removesuffix("/mcp"))
    url = again.url()

    async def look() -> None:
        async with web_client(url) as session:
            found = await session.call_tool("recall", {"query": "client3 counted sheep5", "limit": 1})
            assert found.structured_content["memories"][0]["text"] == "client3 counted sheep5"
            again.send_signal(signal.SIGTERM)
            assert await anyio.to_thread.run_sync(again.end) == ("", "")  # though the client is still there

    asyncio.run(look())
    with Memory(tmp_path / "memory") as memory:
        assert {record.id for record in memory.list(limit=10_000)} >= set(acknowledged)
        assert memory.verify() == []


@pytest.mark.slow
def test_only_who_means_this_server_is_answered_over_http(tmp_path: Path, serve: Callable[..., Served]) -> None:

    url = serve(tmp_path / "memory", *HERE).url()
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"accept": "application/json, text/event-stream"}

    def status(**headers: str) -> int:
        return plain.post(url, json=ping, headers={**accept, **headers}, trust_env=False).status_code

    port = url.rpartition(":")[2].removesuffix("/mcp")
    assert status() == 200
    assert status(origin=f"http://127.0.0.1:{port}") == 200
    assert status(origin=f"http://localhost:{port}") == 200
    assert status(origin="http://localhost:3000") == 403
    assert status(origin="http://127.0.0.1:3000") == 403
    assert status(origin=f"http://127.0.0.1:{port}0") == 403
    assert status(origin=f"https://127.0.0.1:{port}") == 403
    assert status(origin="null") == 403
    assert status(host="evil.example:8377") == 421
    assert status(origin="https://evil.example") == 403
    assert status(**{"content-type": "text/plain"}) == 400


@pytest.mark.slow
def test_pages_of_an_origin_that_was_named_are_answered_over_http(tmp_path: Path, serve: Callable[..., Served]) -> None:
    import httpx

    named = ("--allow-origin", "http://localhost:3000", "--allow-origin", "https://app.example")
    url = serve(tmp_path / "memory", *HERE, *named).url()
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"accept": "application/json, text/event-stream"}

    def ask(origin: str) -> httpx.Response:
        return plain.post(url, json=ping, headers={**accept, "origin": origin}, trust_env=False)

    for origin in ("http://localhost:3000", "https://app.example"):
        answer = ask(origin)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, origin)
        asks = {"origin": origin, "access-control-request-method": "POST"}
        asked = plain.options(url, headers=asks, trust_env=False)
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, origin)
    for origin in ("http://localhost:3001", "http://app.example", "https://app.example.evil.example"):
        answer = ask(origin)
        assert (answer.status_code, answer.headers.get("access-control-allow-origin")) == (403, None)


@pytest.mark.parametrize("origin", ["*", "localhost:3000", "http://localhost:*", "http://localhost:3000/", "null", ""])
def test_an_origin_is_named_as_browsers_send_it(tmp_path: Path, origin: str) -> None:
    from recollect.cli.app import cli

    given = ["serve", "--store", str(tmp_path / "memory"), *HERE, "--allow-origin", origin]
    done = CliRunner().invoke(cli, given)

    assert done.exit_code == 1
    assert "allow_origin: must be as browsers send it, such as http://localhost:3000" in done.stderr
    assert not (tmp_path / "memory").exists()


def _dropped(url: str) -> None:
    """A request whose client is gone before it has sent all of it."""
    host, port = url.removeprefix("http://").removesuffix("/mcp").split(":")
    with socket.create_connection((host, int(port))) as client:
        head = f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        client.sendall(f"{head}Accept: application/json\r\nContent-Length: 1000\r\n\r\n{{".encode())


@pytest.mark.slow
def test_a_server_whose_stderr_nobody_reads_answers_and_ends(tmp_path: Path, serve: Callable[..., Served]) -> None:
    server = serve(tmp_path / "memory", *HERE, "--log", "json", "--rate", "1000000")
    url = server.url()
    for turn in range(1000):  # each is told of; together they are more than a pipe holds
        _dropped(url)
        refused = (
            plain.get(url, headers={"host": "evil.example:1"}, trust_env=False, timeout=30) if turn % 10 == 0 else None
        )
        assert refused is None or refused.status_code == 421
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"accept": "application/json, text/event-stream"}
    assert plain.post(url, json=ping, headers=accept, trust_env=False, timeout=30).status_code == 200
    server.send_signal(signal.SIGTERM)
    assert server.wait(2) == 0


@pytest.mark.slow
def test_a_line_that_does_not_end_is_refused_and_the_next_is_answered(
    tmp_path: Path, serve: Callable[..., Served]
) -> None:
    server = serve(tmp_path / "memory")
    server.greet()
    assert server.stdout is not None
    endless = "x" * (64 << 20)
    asks = {
        '{"jsonrpc": "2.0", "id": 7, "method": "' + endless + '"}\n': 7,
        '{"method": "' + endless + '", "params": {"id": 3}, "jsonrpc": "2.0", "id": "eight"}\n': "eight",
        '{"method": "' + endless + '", "params": {"id": 3}}\n': None,
        endless + "\n": None,
    }
    for line, ident in asks.items():
        server.say(line)
        answer = json.loads(server.stdout.readline())
        assert (answer["id"], answer["error"]["code"]) == (ident, types.INVALID_REQUEST)
        assert "4,194,304 bytes" in answer["error"]["message"]
        assert "tools" in server.ask("tools/list")
    largest = server.ask("tools/call", name="write_scratchpad", arguments={"key": "k", "value": "é" * 500_000})
    assert "error" not in str(largest)[:200], str(largest)[:300]
    server.end()


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("0.0.0.0:8377", ": 0.0.0.0 can be reached from other machines, and nobody has a key yet"),
        ("192.168.1.5:8377", "recollect keys create NAME"),
        ("[::]:8377", "recollect keys create NAME"),
        ("memory.example:8377", "recollect keys create NAME"),
        ("localhost.evil.example:8377", "recollect keys create NAME"),
        ("8377", ": must be a host and a port"),
        (":8377", ": must be a host and a port"),
        ("127.0.0.1:http", ": must be a host and a port"),
        ("127.0.0.1:99999", ": must be a host and a port"),
    ],
)
@pytest.mark.parametrize("command", [("serve", "--mcp-only", "--listen"), ("mcp", "--http")], ids=" ".join)
def test_other_machines_are_not_served_by_accident(
    tmp_path: Path, where: str, problem: str, command: tuple[str, ...]
) -> None:
    from recollect.cli.app import cli

    done = CliRunner().invoke(cli, [command[0], "--store", str(tmp_path / "memory"), *command[1:], where])

    assert done.exit_code == 1
    assert f"{command[-1].strip('-')}{problem}" in done.stderr or problem in done.stderr
    assert not (tmp_path / "memory").exists()


def test_a_port_that_cannot_be_had_is_told(tmp_path: Path) -> None:
    from recollect.cli.app import cli

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for command, option in ((["serve", "--mcp-only", "--listen"], "listen"), (["mcp", "--http"], "http")):
            given = [*command, f"127.0.0.1:{port}", "--store", str(tmp_path / "memory")]
            done = CliRunner().invoke(cli, given)
            assert done.exit_code == 1
            assert f"{option}: cannot listen on 127.0.0.1:{port}: Address already in use" in done.stderr
    assert not (tmp_path / "memory").exists()


@pytest.mark.slow
def test_the_old_name_of_mcp_over_http_says_the_new_one_and_works(tmp_path: Path, serve: Callable[..., Served]) -> None:
    server = serve(tmp_path / "memory", "--http", "127.0.0.1:0")
    assert server.stderr is not None
    assert server.stderr.readline().startswith("`recollect mcp --http` is deprecated; use `recollect serve --mcp-only")
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"accept": "application/json, text/event-stream"}
    assert plain.post(server.url(), json=ping, headers=accept, trust_env=False).status_code == 200


def test_the_old_name_is_in_no_help_and_opens_to_nobody_without_keys() -> None:
    from recollect.cli.app import cli

    assert "--http" not in CliRunner().invoke(cli, ["mcp", "--help"]).stdout
    refused = CliRunner().invoke(cli, ["mcp", "--http", "0.0.0.0:0", "--allow-remote"])
    assert (refused.exit_code, "make a key" in refused.stderr) == (2, True)


@pytest.mark.slow
def test_mcp_alone_has_the_rules_of_serve(tmp_path: Path, serve: Callable[..., Served]) -> None:
    """Without keys every program of this machine is served; with one, only who has it. Nothing else is there."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"accept": "application/json, text/event-stream"}

    def status(url: str, **headers: str) -> int:
        return plain.post(url, json=ping, headers={**accept, **headers}, trust_env=False).status_code

    open_url = serve(tmp_path / "memory", *HERE, "--open-metrics").url()
    root = open_url.removesuffix("/mcp")
    assert status(open_url) == 200
    assert [plain.get(root + path, trust_env=False).status_code for path in ("/healthz", "/readyz")] == [200, 200]
    for path in ("/", "/memories", "/login", "/v1/memories", "/v1/openapi.json", "/static/app.js"):
        assert plain.get(root + path, trust_env=False).status_code == 404, path
    counted = 'recollect_http_requests_total{method="POST",route="/mcp",status="200",surface="mcp"} 1.0'
    assert counted in plain.get(f"{root}/metrics", trust_env=False).text
    with Memory(tmp_path / "memory") as memory:
        keys = Accounts(view_of(memory).store).keys
        member, reader = (keys.create(rank, rank).secret for rank in ("member", "reader"))
    keyed_url = serve(tmp_path / "memory", *HERE).url()
    assert status(keyed_url) == 401
    assert [status(keyed_url, authorization=f"Bearer {key}") for key in (member, reader, "rk_a_b")] == [200, 200, 401]


@pytest.mark.slow
def test_read_only_over_http_offers_nobody_a_tool_that_writes(tmp_path: Path, serve: Callable[..., Served]) -> None:
    with Memory(tmp_path / "memory") as memory:
        memory.remember("Ada likes tea")
    url = serve(tmp_path / "memory", *HERE, "--read-only").url()

    async def offered() -> set[str]:
        async with web_client(url) as session:
            return {tool.name for tool in (await session.list_tools()).tools}

    names = asyncio.run(offered())
    assert "recall" in names
    assert "remember" not in names


def test_without_the_sdk_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.cli import mcp
    from recollect.cli.app import cli

    monkeypatch.setattr(mcp, "find_spec", lambda name: None)

    done = CliRunner().invoke(cli, ["mcp", "--store", str(tmp_path / "memory")])

    assert done.exit_code == 1
    assert "pip install '.[mcp]'" in done.stderr


def test_whoever_starts_it_by_hand_is_told_what_it_waits_for(tmp_path: Path) -> None:
    import pty
    import signal
    import subprocess

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "recollect", "mcp", "--store", str(tmp_path / "m")]
    server = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        lines = [server.stderr.readline(), server.stderr.readline()]
        assert "Waiting for an MCP client on stdin" in lines[1]
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=20)
        os.close(ours)
        os.close(theirs)
