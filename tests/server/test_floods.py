"""Many who log in, or hold connections open, take nothing from those who have a key. Work is counted, not time."""

from __future__ import annotations

import socket
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support import plain
from support.served import Served, listening, served

from recollect import Memory
from recollect.maintenance import simulation
from recollect.server import running, serving
from recollect.server.access import logins
from recollect.server.access.caller import BusyError, UnknownCallerError
from recollect.server.running import Prompt, built
from recollect.server.serving import Serving

_CLIENTS = 60


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with Memory(tmp_path / "m") as memory, served(memory) as server:
        yield server


def test_a_flood_of_logins_is_refused_and_takes_no_thread_of_others(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passwords whose check never ends: everybody else is answered all the same."""
    held, checked = threading.Event(), list[str]()

    def endless(password: str, hashes: object) -> str:
        checked.append(threading.current_thread().name)
        held.wait(60)
        raise UnknownCallerError("the name or the password is wrong")

    monkeypatch.setattr(logins, "owner_of", endless)
    headers = server.headers(tenant="other")

    def log_in(number: int) -> tuple[int, str]:
        answer = plain.post(f"{server.url}/login", data={"name": f"n{number}", "password": "x"}, timeout=60)
        return answer.status_code, answer.headers.get("retry-after", "")

    with ThreadPoolExecutor(_CLIENTS) as pool:
        sent = [pool.submit(log_in, number) for number in range(_CLIENTS)]
        while sum(one.done() for one in sent) < _CLIENTS - serving._LOGINS_OF_ONE:
            assert plain.get(f"{server.url}/v1/stats", headers=headers).status_code == 200
        assert plain.get(f"{server.url}/v1/stats", headers=headers).status_code == 200
        held.set()
        told = [one.result() for one in sent]
    assert told.count((503, "1")) >= _CLIENTS - serving._LOGINS_OF_ONE
    assert set(checked) <= {f"recollect-login_{number}" for number in range(logins.LOGINS_AT_ONCE)}


def test_the_process_lives_while_all_threads_are_busy(server: Served) -> None:
    held = threading.Event()
    busy = [server.serving._threads.submit(held.wait, 60) for _ in range(serving._THREADS)]
    try:
        assert plain.get(f"{server.url}/healthz").status_code == 200
    finally:
        held.set()
    assert all(future.result() for future in busy)


def test_one_address_does_not_take_the_turns_of_all() -> None:
    turns = serving.ConcurrencyLimit(3, 2, "too many; try again")
    with turns.taken("a"), turns.taken("a"):
        with pytest.raises(BusyError, match="too many; try again"), turns.taken("a"):
            pass
        with turns.taken("b"), pytest.raises(BusyError), turns.taken("c"):
            pass
        with turns.taken("c"):
            pass


def test_whoever_sends_a_request_at_once_is_answered_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections are accepted many at a time, before anything is read of them."""
    monkeypatch.setattr(running, "IDLE_OF_ONE", 5)
    with Memory(tmp_path / "m") as memory, listening(built(Serving(memory)), http=Prompt) as url:
        host, port = url.removeprefix("http://").split(":")
        opened = [socket.create_connection((host, int(port))) for _ in range(100)]
        for connection in opened:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        for connection in opened:
            connection.settimeout(60)
            with connection:
                assert connection.recv(100).startswith(b"HTTP/1.1 200")


def test_one_address_holds_only_so_many_idle_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "IDLE_OF_ONE", 5)
    with Memory(tmp_path / "m") as memory, listening(built(Serving(memory)), http=Prompt) as url:
        host, port = url.removeprefix("http://").split(":")
        opened = [socket.create_connection((host, int(port))) for _ in range(20)]
        try:
            closed = 0
            for one in opened[:15]:  # those that waited longest
                one.settimeout(60)
                closed += one.recv(1) == b""
            assert closed == 15
            one = opened[-1]
            for _ in range(2):  # one that is used stays
                one.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
                assert one.recv(100).startswith(b"HTTP/1.1 200")
                while b'"ok"' not in one.recv(65536):
                    pass
        finally:
            for one in opened:
                one.close()


def test_a_login_is_small_and_what_is_kept_of_unknown_names_is_smaller(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logins, "_unknown_names", names := OrderedDict[str, dict[str, Any]]())
    long = plain.post(f"{server.url}/login", data={"name": "x" * 20_000, "password": "y"})
    assert (long.status_code, len(names)) == (413, 0)
    for number in range(3):
        answer = plain.post(f"{server.url}/login", data={"name": f"{number}" + "x" * 10_000, "password": "y"})
        assert answer.status_code == 401
    assert (len(names), {len(name) for name in names}) == (3, {64})


def test_who_looks_at_the_whole_store_many_times_takes_no_thread_of_others(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, begun = threading.Event(), threading.Semaphore(0)

    def endless(view: object, days: int) -> None:
        begun.release()
        held.wait(60)

    monkeypatch.setattr(simulation, "simulate", endless)
    greedy, other = server.headers("reader", tenant="mine"), server.headers(tenant="other")

    def look(_: int) -> tuple[int, str]:
        answer = plain.get(f"{server.url}/v1/simulation", headers=greedy, timeout=60)
        return answer.status_code, answer.headers.get("retry-after", "")

    with ThreadPoolExecutor(_CLIENTS) as pool:
        sent = [pool.submit(look, number) for number in range(_CLIENTS)]
        for _ in range(serving._SLOW_OF_ONE):
            begun.acquire(timeout=60)
        while sum(one.done() for one in sent) < _CLIENTS - serving._SLOW_OF_ONE:
            assert plain.get(f"{server.url}/v1/stats", headers=other).status_code == 200
            assert plain.get(f"{server.url}/v1/stats", headers=greedy).status_code == 200
        assert plain.get(f"{server.url}/readyz").status_code == 200
        assert plain.get(f"{server.url}/v1/doctor", headers=other).status_code == 200
        held.set()
        told = [one.result() for one in sent]
    assert told.count((503, "1")) == _CLIENTS - serving._SLOW_OF_ONE
