"""The server beside a bare route: the least ASGI application on the same uvicorn, with the same verb and bytes.

The servers are processes of their own, the client is one socket that stays open, and all take turns.

    python benchmarks/server.py [--load 60] [--clients 200] [--postgres] [--json] [--runs 5]
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
from corpus import sentences

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support import postgres as servers

from recollect import Memory
from recollect.memory import view_of
from recollect.server.access.accounts import Accounts
from recollect.server.replays import without_vectors

os.environ["RECOLLECT_EMBEDDER"] = "none"
ROUNDS = 400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--postgres", action="store_true", help="The load on PostgreSQL, too.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=5, help="Of the overhead and of the start; all are printed.")
    asked = parser.parse_args()
    parts: list[Callable[[], list[dict[str, Any]]]] = [
        lambda: overhead(asked.runs),
        lambda: starting(asked.runs),
        lambda: [page()],
    ]
    for kind in () if not asked.load else ("sqlite", "postgresql") if asked.postgres else ("sqlite",):
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
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._socket.recv(65_536)
        headers, _, content = received.partition(b"\r\n\r\n")
        match = re.search(rb"content-length: (\d+)", headers, re.IGNORECASE)
        length = int(match[1]) if match else 0
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
def bare(store: str) -> Iterator[str]:
    """The bare route on a store. Its address."""
    context = multiprocessing.get_context("spawn")
    addresses: Any = context.Queue()
    process = context.Process(target=_bare, args=(store, addresses), daemon=True)
    process.start()
    try:
        yield addresses.get(timeout=30)
    finally:
        process.terminate()
        process.join()


def _bare(store: str, addresses: Any) -> None:
    """GET of a path that ends with an id: `memory.get` in a thread, and its bytes. No keys, no limits, no numbers."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from recollect.remote import wire

    threads = ThreadPoolExecutor(40)
    with Memory(store) as memory:

        def read(ident: str) -> bytes:
            return wire.encoded(without_vectors(memory.get(ident)))

        async def app(scope: Any, receive: Any, send: Any) -> None:
            ident = scope["path"].rpartition("/")[2]
            content = await asyncio.get_running_loop().run_in_executor(threads, read, ident)
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": content})

        taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        taken.bind(("127.0.0.1", 0))
        taken.listen(128)
        addresses.put(f"http://127.0.0.1:{taken.getsockname()[1]}")
        config = uvicorn.Config(app, log_config=None, access_log=False, http="h11", lifespan="off")
        asyncio.run(uvicorn.Server(config).serve(sockets=[taken]))


def overhead(runs: int) -> list[dict[str, Any]]:
    """`GET /v1/memories/{id}` through the whole pipeline, beside the bare route. One row a run."""
    with tempfile.TemporaryDirectory() as folder:
        with Memory(folder) as memory:
            memory.remember_many(sentences(10_000))
            ids = [record.id for record in memory.list(limit=ROUNDS)]
            key = Accounts(view_of(memory).store).keys.create("bench", "owner").secret
        with serving(folder) as (url, _), bare(folder) as bare_url:
            ours, floor = Wire(url, key), Wire(bare_url)
            for ident in ids[:100]:
                path = f"/v1/memories/{ident}"
                assert ours.send("GET", path) == floor.send("GET", path), "they do not answer the same bytes"
            return [_compare(run, ids, ours, floor) for run in range(1, runs + 1)]


def _compare(run: int, ids: list[str], ours: Wire, floor: Wire) -> dict[str, Any]:
    times: dict[str, list[float]] = {"ours": [], "floor": []}
    for ident in ids:
        for name, wire in (("ours", ours), ("floor", floor)):
            start = time.perf_counter()
            wire.send("GET", f"/v1/memories/{ident}")
            times[name].append(time.perf_counter() - start)
    api, route = (statistics.median(times[name]) * 1e3 for name in ("ours", "floor"))
    return {"what": f"get, p50, run {run}", "api_ms": api, "bare_route_ms": route, "ratio": api / route}


def starting(runs: int) -> list[dict[str, Any]]:
    """From starting the process to the first 200 of a probe. One row a run."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        with Memory(folder) as memory:
            Accounts(view_of(memory).store).keys.create("bench", "owner")
        for run in range(1, runs + 1):
            start = time.perf_counter()
            with serving(folder) as (url, _):
                while True:
                    try:
                        if httpx.get(f"{url}/readyz", verify=False).status_code == 200:
                            break
                    except httpx.HTTPError:
                        time.sleep(0.01)
                rows.append({"what": f"start to ready, run {run}", "seconds": time.perf_counter() - start})
    return rows


def page() -> dict[str, Any]:
    """The Memories page of 100,000: time to the first byte, and all that a browser loads at first."""
    with tempfile.TemporaryDirectory() as folder:
        with Memory(folder) as memory:
            for first in range(0, 100_000, 10_000):
                memory.remember_many(sentences(10_000, seed=first + 1))
            accounts = Accounts(view_of(memory).store)
            accounts.people.add("ada", "a long enough password", "owner")
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
            key = Accounts(view_of(memory).store).keys.create("bench", "owner").secret
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
