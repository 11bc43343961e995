"""The server beside the verb in process, and beside a bare litestar route that carries the same bytes.

The servers are processes of their own, the client is one socket that stays open, and all take turns.

    python benchmarks/server.py [--load 60] [--clients 200] [--postgres] [--json]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import uvicorn
from corpus import questions, sentences
from litestar import Litestar, Request, Response, post

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support import postgres as servers

from recollect import Memory
from recollect.memory import view_of
from recollect.server.access.vault import Vault

os.environ["RECOLLECT_EMBEDDER"] = "none"
ROUNDS = 400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--postgres", action="store_true", help="The load on PostgreSQL, too.")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    parts: list[Callable[[], list[dict[str, Any]]]] = [calls, lambda: [starting()], lambda: [page()]]
    for kind in ("sqlite", "postgresql") if asked.postgres else ("sqlite",):
        parts.append(lambda kind=kind: [crowd(kind, asked.load, asked.clients)])
    for part in parts:
        for row in part():
            print(json.dumps(row) if asked.json else shown(row), flush=True)


def shown(row: dict[str, Any]) -> str:
    what = row.pop("what")
    return f"{what}\n    " + "  ".join(f"{k} {v:,.2f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())


class Wire:
    """One open connection, and as little as can be between it and the clock."""

    def __init__(self, url: str, key: str = "") -> None:
        host, _, port = url.removeprefix("http://").rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = f"Host: {host}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"

    def send(self, method: str, path: str, body: bytes = b"") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n".encode()
        self._socket.sendall(head + body)
        told = b""
        while b"\r\n\r\n" not in told:
            told += self._socket.recv(65_536)
        headers, _, content = told.partition(b"\r\n\r\n")
        found = re.search(rb"content-length: (\d+)", headers, re.IGNORECASE)
        length = int(found[1]) if found else 0
        while len(content) < length:
            content += self._socket.recv(65_536)
        assert b" 20" in headers[:16], headers[:200] + content
        return content


@contextmanager
def serving(store: str, *options: str) -> Iterator[tuple[str, int]]:
    """Ours. Its address, and its process."""
    command = [sys.executable, "-m", "recollect", "serve", "--store", store, "--listen", "127.0.0.1:0", "--log", "none"]
    process = subprocess.Popen([*command, "--rate", "1000000", *options], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = None
    while found is None and (line := process.stderr.readline()):
        found = re.search(r"Listening on (\S+)", line)
    assert found is not None
    try:
        yield found[1], process.pid
    finally:
        process.terminate()
        process.wait()


@contextmanager
def bare(answer: bytes) -> Iterator[str]:
    """A litestar route that reads a body and answers with these bytes."""
    context = multiprocessing.get_context("spawn")
    told: Any = context.Queue()
    process = context.Process(target=_bare, args=(answer, told), daemon=True)
    process.start()
    try:
        yield told.get(timeout=30)
    finally:
        process.terminate()
        process.join()


def _bare(answer: bytes, told: Any) -> None:
    import asyncio

    @post("/", status_code=200)
    async def route(request: Request[Any, Any, Any]) -> Response[bytes]:
        await request.body()
        return Response(answer, media_type="application/json")

    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.bind(("127.0.0.1", 0))
    taken.listen(128)
    told.put(f"http://127.0.0.1:{taken.getsockname()[1]}")
    app = Litestar([route], openapi_config=None, logging_config=None)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, http="h11"))
    asyncio.run(server.serve(sockets=[taken]))


def calls() -> list[dict[str, Any]]:
    texts = sentences(10_000)
    with tempfile.TemporaryDirectory() as folder, Memory(folder) as memory:
        memory.remember_many(texts)
        key = Vault(view_of(memory).store).create_key("bench", "owner").secret
        asked, new = questions(ROUNDS, texts), sentences(3 * ROUNDS, seed=5)
        with serving(folder) as (url, _):
            ours = Wire(url, key)
            bodies = [json.dumps({"query": text, "touch": False}).encode() for text in asked]
            stored = [json.dumps({"content": text}).encode() for text in new]
            recalled = ours.send("POST", "/v1/recall", bodies[0])
            kept = ours.send("POST", "/v1/memories", stored[-1])
            with bare(recalled) as one, bare(kept) as two:
                floors = Wire(one), Wire(two)
                return [
                    compared(
                        "recall 10 of 10,000",
                        lambda n: ours.send("POST", "/v1/recall", bodies[n]),
                        lambda n: floors[0].send("POST", "/", bodies[n]),
                        lambda n: memory.recall(asked[n], touch=False),
                    ),
                    compared(
                        "remember",
                        lambda n: ours.send("POST", "/v1/memories", stored[n]),
                        lambda n: floors[1].send("POST", "/", stored[n]),
                        lambda n: memory.remember(new[ROUNDS + n]),
                    ),
                ]


def compared(
    what: str, ours: Callable[[int], object], floor: Callable[[int], object], verb: Callable[[int], object]
) -> dict[str, Any]:
    taken: dict[str, list[float]] = {"ours": [], "floor": [], "verb": []}
    actions = {"ours": ours, "floor": floor, "verb": verb}
    for number in range(ROUNDS):
        for name, action in actions.items():
            start = time.perf_counter()
            action(number)
            taken[name].append(time.perf_counter() - start)
    middle = {name: statistics.median(times[20:]) * 1e3 for name, times in taken.items()}
    over = middle["ours"] - middle["verb"]
    return {
        "what": f"{what}, p50",
        "api_ms": middle["ours"],
        "verb_ms": middle["verb"],
        "overhead_ms": over,
        "bare_route_ms": middle["floor"],
        "ratio": over / middle["floor"],
    }


def starting() -> dict[str, Any]:
    """From starting the process to the first answer that it is ready."""
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        with Memory(folder) as memory:
            Vault(view_of(memory).store).create_key("bench", "owner")
        for _ in range(5):
            start = time.perf_counter()
            with serving(folder) as (url, _):
                while True:
                    try:
                        if httpx.get(f"{url}/readyz").status_code == 200:
                            break
                    except httpx.HTTPError:
                        time.sleep(0.01)
                seconds.append(time.perf_counter() - start)
    return {"what": "start to ready, seconds", "median": statistics.median(seconds), "worst": max(seconds)}


def page() -> dict[str, Any]:
    """The Memories page of 100,000: time to the first byte, and all that a browser loads at first."""
    with tempfile.TemporaryDirectory() as folder:
        with Memory(folder) as memory:
            for first in range(0, 100_000, 10_000):
                memory.remember_many(sentences(10_000, seed=first + 1))
            kept = Vault(view_of(memory).store)
            kept.add_person("ada", "a long enough password", "owner")
        with serving(folder) as (url, _), httpx.Client(base_url=url) as browser:
            browser.post("/login", data={"name": "ada", "password": "a long enough password"})
            first_bytes: list[float] = []
            for _ in range(15):
                start = time.perf_counter()
                with browser.stream("GET", "/memories") as answer:
                    next(answer.iter_raw())
                    first_bytes.append(time.perf_counter() - start)
            html = browser.get("/memories").content
            files = set(re.findall(rb'(?:src|href)="(/static/[^"]+)"', html))
            size = 0
            for path in ["/memories", *(file.decode() for file in files)]:
                with browser.stream("GET", path) as answer:
                    size += sum(len(part) for part in answer.iter_raw())
    return {
        "what": "Memories page of 100,000",
        "first_byte_ms": statistics.median(first_bytes) * 1e3,
        "worst_ms": max(first_bytes) * 1e3,
        "first_load_kb": size / 1e3,
        "files": len(files) + 1,
    }


def crowd(kind: str, seconds: float, clients: int) -> dict[str, Any]:
    """Seven recalls to three remembers over 20 workspaces."""
    with tempfile.TemporaryDirectory() as folder, _located(kind, folder) as store:
        with Memory(store) as memory:
            key = Vault(view_of(memory).store).create_key("bench", "owner").secret
            for number in range(20):
                memory.at(workspace=f"w{number}").remember_many(sentences(200, seed=number + 1))
        with serving(store) as (url, pid):
            taken: list[float] = []
            errors: list[str] = []
            memory_mb = [psutil.Process(pid).memory_info().rss / 1e6]
            until = time.monotonic() + seconds
            threads = [
                threading.Thread(target=_client, args=(url, key, n, until, taken, errors)) for n in range(clients)
            ]
            for thread in threads:
                thread.start()
            while time.monotonic() < until:
                time.sleep(max(0.1, seconds / 6))
                memory_mb.append(psutil.Process(pid).memory_info().rss / 1e6)
            for thread in threads:
                thread.join()
    taken.sort()
    return {
        "what": f"{clients} clients for {seconds:g} s on {kind}",
        "errors": len(errors),
        "first_error": errors[0][:80] if errors else "",
        "per_second": len(taken) / seconds,
        "p50_ms": taken[len(taken) // 2] * 1e3,
        "p95_ms": taken[int(0.95 * len(taken))] * 1e3,
        "memory_mb": [round(one) for one in memory_mb],
    }


@contextmanager
def _located(kind: str, folder: str) -> Iterator[str]:
    if kind == "sqlite":
        yield folder
        return
    servers.begin()
    try:
        with servers.Server(fsync="on", full_page_writes="on") as server:
            yield server.url()
    finally:
        servers.end()


def _client(url: str, key: str, number: int, until: float, taken: list[float], errors: list[str]) -> None:
    texts = sentences(50, seed=number)
    headers = {"authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"{url}/v1", headers=headers, timeout=60) as client:
        turn = 0
        while time.monotonic() < until:
            turn += 1
            text, here = texts[turn % 50], {"recollect-workspace": f"w{(number + turn) % 20}"}
            start = time.perf_counter()
            try:
                if turn % 10 < 3:
                    told = client.post("/memories", json={"content": f"{number} {turn} {text}"}, headers=here)
                else:
                    told = client.post("/recall", json={"query": text}, headers=here)
                if told.status_code >= 300:
                    errors.append(told.text)
            except httpx.HTTPError as error:
                errors.append(repr(error))
            taken.append(time.perf_counter() - start)


if __name__ == "__main__":
    main()
