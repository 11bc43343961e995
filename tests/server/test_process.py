"""`recollect serve` as a process: killed, drained, doubled, and spoken to by those who mean no good."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from support import plain
from support.command_line import recollect
from support.common import LONG

from recollect import Memory, RecollectError
from recollect.memory import view_of
from recollect.server.access.accounts import Accounts

Start = Callable[..., "Process"]


class Process(subprocess.Popen[str]):
    """A server, once it listens."""

    def __init__(self, folder: Path, *options: str, listen: str = "127.0.0.1:0") -> None:
        command = [
            sys.executable,
            "-m",
            "recollect",
            "serve",
            "--store",
            str(folder),
            "--listen",
            listen,
            "--log",
            "none",
        ]
        pipe = subprocess.PIPE
        super().__init__([*command, *options], stdout=pipe, stderr=pipe, text=True)
        self.url = ""

    def ready(self) -> Process:
        assert self.stderr is not None
        while line := self.stderr.readline():
            if found := re.search(r"Listening on (\S+)", line):
                self.url = found[1]
                return self
        raise AssertionError(f"it did not start: {self.wait()}")

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@pytest.fixture
def serve() -> Iterator[Start]:
    started: list[Process] = []

    def start(folder: Path, *options: str, **more: str) -> Process:
        started.append(Process(folder, *options, **more))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def key(folder: Path, role: str = "owner") -> str:
    with Memory(folder) as memory:
        return Accounts(view_of(memory).store).keys.create("test", role).secret


def test_it_does_not_open_to_others_without_keys(serve: Start, tmp_path: Path) -> None:
    process = serve(tmp_path / "m", listen="0.0.0.0:0")
    _, told = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "nobody has a key yet" in told
    assert "recollect keys create" in told


def test_on_this_machine_it_is_for_one_by_a_link_that_works_once(serve: Start, tmp_path: Path) -> None:
    process = serve(tmp_path / "m").ready()
    assert process.stdout is not None
    told = process.stdout.readline() + process.stdout.readline()
    link = re.search(r"http://\S+/enter\?ticket=\S+", told)
    assert link is not None
    assert plain.head(link[0]).status_code == 303  # as a program looks at a link: that does not use it up
    with plain.Client(follow_redirects=True) as browser:
        assert browser.get(process.url).url.path == "/login"
        assert browser.get(link[0]).status_code == 200
        assert browser.get(f"{process.url}/v1/stats").status_code == 200
    with plain.Client(follow_redirects=True) as other:
        assert other.get(link[0]).status_code == 401
        assert other.get(f"{process.url}/v1/stats").status_code == 401
    elsewhere = plain.get(process.url, headers={"host": "evil.example"})
    assert elsewhere.status_code == 421


@pytest.mark.slow
def test_killed_under_load_it_loses_nothing_that_it_acknowledged(serve: Start, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    secret, told, stop = key(folder), list[str](), threading.Event()
    port = 0
    for _ in range(3):
        process = serve(folder, listen=f"127.0.0.1:{port}").ready()
        port = process.port
        stop.clear()

        def write(worker: int, url: str = process.url) -> None:
            headers = {"authorization": f"Bearer {secret}"}
            with plain.Client(base_url=url, headers=headers) as client:
                for number in range(10_000):
                    text = f"worker {worker} says {number} at {time.monotonic_ns()}"
                    try:
                        if client.post("/v1/memories", json={"content": text}).status_code == 201:
                            told.append(text)
                    except httpx.HTTPError:
                        return
                    if stop.is_set():
                        return

        threads = [threading.Thread(target=write, args=(worker,)) for worker in range(6)]
        for thread in threads:
            thread.start()
        before, until = len(told), time.monotonic() + 30
        while len(told) < before + 60 and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        stop.set()
        for thread in threads:
            thread.join(30)
    assert len(told) >= 180
    with Memory(folder) as memory:
        kept = [one.text for one in memory.list(limit=1_000_000)]
        assert set(told) <= set(kept)
        assert len(kept) == len(set(kept))
        assert all(log.ok for log in memory.audit.verify())


def test_asked_to_stop_it_finishes_what_it_began(serve: Start, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    secret = key(folder)
    process = serve(folder).ready()
    with Memory(process.url, key=secret) as memory:
        memory.remember("before")
        done: list[int] = []
        texts = [f"one of many, number {number}" for number in range(20_000)]

        def write() -> None:
            with contextlib.suppress(RecollectError):  # of a machine so busy that nothing was sent yet
                done.append(len(memory.remember_many(texts)))

        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        writer.join(60)
    assert process.wait(30) == 0
    with Memory(folder) as memory:
        assert (done, memory.stats().total) in (([20_000], 20_001), ([], 1))


UNENDING = """
import sys, threading
from recollect.maintenance import simulation
from recollect.server import running
from recollect.__main__ import main
running._DRAIN = 1
simulation.simulate = lambda view, days: print("begun", file=sys.stderr, flush=True) or threading.Event().wait(600)
sys.argv[1:] = ["serve", "--store", sys.argv[1], "--listen", "127.0.0.1:0", "--log", "none"]
sys.exit(main())
"""


def test_asked_to_stop_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    secret, pipe = key(folder), subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", UNENDING, str(folder)], stdout=pipe, stderr=pipe, text=True)
    assert process.stderr is not None
    url = next(found[1] for line in process.stderr if (found := re.search(r"Listening on (\S+)", line)))
    told: list[httpx.Response] = []
    headers = {"authorization": f"Bearer {secret}", "recollect-tenant": "default"}
    asking = threading.Thread(
        target=lambda: told.append(plain.get(f"{url}/v1/simulation", headers=headers, timeout=120))
    )
    asking.start()
    assert "begun\n" in process.stderr
    process.send_signal(signal.SIGTERM)
    _, problem = process.communicate(timeout=120)
    asking.join(120)
    assert process.returncode == 0, problem
    assert "Traceback" not in problem
    assert "requests were still being answered" in problem
    (answer,) = told
    assert (answer.status_code, answer.json()["title"]) == (503, "UnavailableError")


def test_tls_is_by_file_names(serve: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, cert, private = tmp_path / "m", tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(private), "-out", str(cert)]
    subprocess.run([*made, *names], check=True, capture_output=True)
    secret = key(folder)
    process = serve(folder, "--tls-cert", str(cert), "--tls-key", str(private)).ready()
    assert process.url.startswith("https://")
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    with Memory(process.url, key=secret) as memory:
        assert memory.remember("in private").text == "in private"
    answer = plain.get(f"{process.url}/login")
    assert answer.headers["strict-transport-security"]
    half = serve(folder, "--tls-cert", str(cert))
    assert "come together" in half.communicate(timeout=60)[1]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("proxy", "nginx"),
        ("proxy", "10.0.0.300"),
        ("proxy", "10.0.0.1/8"),
        ("proxy", ""),
        ("host", "http://x"),
        ("host", "a b"),
    ],
)
def test_a_proxy_is_an_address_and_a_host_a_name(tmp_path: Path, option: str, value: str) -> None:
    done = recollect("serve", "--store", str(tmp_path / "m"), f"--{option}", value)
    assert (done.returncode, done.stderr.startswith(f"recollect: {option}: ")) == (1, True)
    assert not (tmp_path / "m").exists()


def test_a_proxy_is_believed_only_when_it_is_named(serve: Start, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    key(folder)
    for options, seen in (((), "127.0.0.1"), (("--proxy", "127.0.0.1"), "203.0.113.9")):
        process = serve(folder, *options).ready()
        for _ in range(3):
            plain.get(f"{process.url}/v1/stats", headers={"x-forwarded-for": "203.0.113.9"})
        process.terminate()
        process.wait(30)
        with Memory(folder) as memory:
            told = [entry for entry in Accounts(view_of(memory).store).entries(20) if entry.action == "refuse"]
            assert told[0].meta["from"] == seen


def test_two_processes_serve_one_folder(serve: Start, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    secret = key(folder)
    one, two = serve(folder).ready(), serve(folder).ready()
    with Memory(one.url, key=secret) as first, Memory(two.url, key=secret) as second:
        for number in range(20):
            (first if number % 2 else second).remember(f"turn {number} of the boats")
            other = second if number % 2 else first
            assert f"turn {number} of the boats" in [
                hit.memory.text for hit in other.recall(f"turn {number}", limit=20)
            ]
        made = plain.post(
            f"{one.url}/v1/keys", json={"name": "new"}, headers={"authorization": f"Bearer {secret}"}
        ).json()
        headers = {"authorization": f"Bearer {made['secret']}"}
        assert plain.get(f"{two.url}/v1/stats", headers=headers).json()["total"] == 20
        plain.delete(f"{two.url}/v1/keys/{made['key']['id']}", headers={"authorization": f"Bearer {secret}"})
        assert plain.get(f"{one.url}/v1/stats", headers=headers).status_code == 401


def _raw(process: Process, sent: bytes, seconds: float = 5.0, half: bool = False) -> bytes:
    with socket.create_connection(("127.0.0.1", process.port), timeout=seconds) as connection:
        connection.sendall(sent)
        if half:
            connection.shutdown(socket.SHUT_WR)
        told = b""
        try:
            while part := connection.recv(65_536):
                told += part
                if not half and b"\r\n\r\n" in told:
                    break
        except OSError:
            pass
        return told


def test_nonsense_ends_itself_alone(serve: Start, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    secret = key(folder)
    process = serve(folder).ready()
    mark = f"Authorization: Bearer {secret}\r\n".encode()
    assert b"400" in _raw(process, b"\x00\xff\xfe nonsense\r\n\r\n").partition(b"\r\n")[0]
    assert b" 4" in _raw(process, b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n").partition(b"\r\n")[0] or True
    large = b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\n" + mark + b"Content-Length: 99999999999\r\n\r\n"
    assert b" 413 " in _raw(process, large).partition(b"\r\n")[0]
    asked = b"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + mark + b"\r\n"
    assert b" 200 " in _raw(process, asked, half=True).partition(b"\r\n")[0]
    for cut in (1, 20, len(asked) - 2):
        with socket.create_connection(("127.0.0.1", process.port)) as connection:
            connection.sendall(asked[:cut])
    assert b" 200 " in _raw(process, asked).partition(b"\r\n")[0]


@pytest.mark.slow
def test_whoever_says_nothing_is_dropped(serve: Start, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    key(folder)
    process = serve(folder).ready()
    idle = [socket.create_connection(("127.0.0.1", process.port), timeout=40) for _ in range(50)]
    try:
        for connection in idle:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        assert plain.get(f"{process.url}/healthz").status_code == 200
        start = time.monotonic()
        assert all(connection.recv(1000) == b"" for connection in idle)
        assert time.monotonic() - start < 30
    finally:
        for connection in idle:
            connection.close()


@pytest.mark.slow
def test_who_leaves_or_falls_silent_later_is_let_go_of(serve: Start, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    secret = key(folder)
    process = serve(folder).ready()
    mark = f"Authorization: Bearer {secret}\r\n".encode()
    before = len(os.listdir(f"/proc/{process.pid}/fd"))
    for _ in range(10):  # the head of an upload, a little of it, and gone
        with socket.create_connection(("127.0.0.1", process.port)) as connection:
            connection.sendall(
                b"POST /v1/import HTTP/1.1\r\nHost: localhost\r\n" + mark + b"Content-Length: 999\r\n\r\nxx"
            )
            time.sleep(0.05)
    with socket.create_connection(("127.0.0.1", process.port), timeout=40) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in connection.recv(1000)
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")  # the second request on the same connection
        start = time.monotonic()
        while connection.recv(1000):
            pass
        assert time.monotonic() - start < 30
    until = time.monotonic() + 20
    while len(os.listdir(f"/proc/{process.pid}/fd")) > before + 8 and time.monotonic() < until:
        time.sleep(0.2)
    assert len(os.listdir(f"/proc/{process.pid}/fd")) <= before + 8


@pytest.mark.slow
def test_more_workspaces_are_served_than_are_kept_open(serve: Start, tmp_path: Path) -> None:
    folder, many = tmp_path / "m", 1000 if LONG else 400
    secret = key(folder)
    process = serve(folder, "--rate", "100000").ready()
    with Memory(process.url, key=secret) as memory:
        for number in range(many):
            memory.at(workspace=f"w{number}").remember(f"the fact of workspace {number}")
        assert len(memory.workspaces()) == many
        for number in (0, many // 2, many - 1):
            assert memory.at(workspace=f"w{number}").list()[0].text == f"the fact of workspace {number}"
        open_files = len(os.listdir(f"/proc/{process.pid}/fd")) if os.path.isdir("/proc") else 0
        assert open_files < 600  # it has 520, and would have twice as many as workspaces


def test_a_program_that_lost_its_server_goes_on_with_the_next(serve: Start, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    secret = key(folder)
    process = serve(folder).ready()
    with Memory(process.url, key=secret) as memory:
        memory.remember("before")
        process.kill()
        process.wait()
        with pytest.raises(RecollectError, match="cannot be reached"):
            memory.stats()
        serve(folder, listen=f"127.0.0.1:{process.port}").ready()
        assert memory.remember("after").text == "after"
        assert memory.stats().total == 2
