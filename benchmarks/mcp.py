"""The MCP server over stdio: how soon it answers, and what a tool call costs beyond the same call in process.

The floor is a bare server of the SDK with one tool that says "ok". Ours and the floor take turns, and so do the calls
through the pipe and those in process, so that a noisy machine disturbs all alike. Nothing here imports the SDK: the
client is two pipes and JSON, so that only the server's time is measured.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from corpus import questions, sentences

from recollect import Memory, tools

_STARTS, _CALLS, _MEMORIES = 9, 500, 1000
_WORDS_ONLY = {"RECOLLECT_EMBEDDER": "none"}
_BARE = """
import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def list_tools(ctx, params):
    return types.ListToolsResult(tools=[types.Tool(name="ok", input_schema={"type": "object"})])

async def call_tool(ctx, params):
    return types.CallToolResult(content=[types.TextContent(text="ok")])

async def main():
    server = Server("bare", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""


class Client:
    """Starts a server, and knows how long it took until that answered."""

    def __init__(self, command: list[str], folder: str, **environment: str) -> None:
        # Bytecode is cached as for any user, even where a build machine has that switched off.
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        pipe = subprocess.PIPE
        begun = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, *command],
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            env=clean | environment,
            cwd=folder,  # and not here, where this file would be taken for the SDK
        )
        about = {"name": "benchmark", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about})
        self.seconds = time.perf_counter() - begun
        self._say({"method": "notifications/initialized"})

    def _say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        assert self._process.stdout is not None
        self._say({"id": 1, "method": method, "params": params})
        return json.loads(self._process.stdout.readline())["result"]

    def call(self, name: str, arguments: dict[str, Any]) -> float:
        begun = time.perf_counter()
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        assert not result.get("isError"), result
        return time.perf_counter() - begun

    def close(self) -> float:
        """The processor time that it took from its start to its end, which a busy machine disturbs least."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        assert self._process.returncode == 0
        return used.ru_utime + used.ru_stime


def _ours(store: str) -> list[str]:
    return ["-m", "recollect", "mcp", "--store", store]


def starts(folder: str) -> None:
    """With whatever embedder is installed here, since that must not be loaded before it is needed."""
    ours, bare, mine, floor = [], [], [], []
    for _ in range(_STARTS):
        for command, seconds, processor in ((_ours(f"{folder}/a"), ours, mine), (["-c", _BARE], bare, floor)):
            server = Client(command, folder)
            seconds.append(server.seconds)
            processor.append(server.close())
    print(f"start until initialize is answered, of {_STARTS}: {_told(ours)}; floor {_told(bare)}; ", end="")
    print(f"ratio {statistics.median(ours) / statistics.median(bare):.2f}; goal ≤ 1,500 ms")
    print(f"  processor time, start to end: {_told(mine)}; floor {_told(floor)}; ", end="")
    print(f"ratio {statistics.median(mine) / statistics.median(floor):.2f}")


def _told(times: list[float]) -> str:
    return f"median {statistics.median(times) * 1000:,.0f} ms, best {min(times) * 1000:,.0f} ms"


def calls(folder: str, asked: list[str]) -> None:
    """Each side has a store of its own, lest one has to read again what the other changed."""
    ours = Client(_ours(f"{folder}/a"), folder, **_WORDS_ONLY)
    bare = Client(["-c", _BARE], folder)
    through, inside, floor = [], [], []
    with Memory(f"{folder}/b", embedder="none") as memory:
        for question in asked:
            given = {"query": question}
            through.append(ours.call("recall", given))
            begun = time.perf_counter()
            tools.call(memory, "recall", given)
            inside.append(time.perf_counter() - begun)
            floor.append(bare.call("ok", {}))
    ours.close()
    bare.close()
    a, b, c = (statistics.median(times) * 1000 for times in (through, inside, floor))
    print(f"recall of {_MEMORIES:,} memories, p50 of {len(asked)}: {a:.2f} ms over stdio, {b:.2f} ms in process")
    print(f"  overhead {a - b:.2f} ms; goal ≤ 5 ms; floor, a bare call of the SDK: {c:.2f} ms")


def main() -> None:
    texts = sentences(_MEMORIES)
    with tempfile.TemporaryDirectory() as folder:
        for name in "ab":
            with Memory(f"{folder}/{name}", embedder="none") as memory:
                memory.remember_many(texts)
        starts(folder)
        calls(folder, questions(_CALLS, texts))


if __name__ == "__main__":
    main()
