"""A server that is killed between a change and its answer: whoever sends the request again is answered."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support import plain

from recollect import Memory
from recollect.memory import view_of
from recollect.server.access.accounts import Accounts

_DYING = """
import os, signal
from recollect.server.idempotency import Answers
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
Answers._keep = die
"""
"""Kills the process when the change is stored and its answer is about to be noted."""
_DYING_LATER = """
import os, signal
from recollect.server.idempotency import Answers
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
signal.signal(signal.SIGUSR1, lambda *_: setattr(Answers, "_keep", die))
"""
"""The same, from the time on when a signal asks for it."""
_DYING_BETWEEN_COMMITS = """
import os, signal
import sys
from recollect.stores.files.index import PlaceIndex
from recollect.stores.sqlite.place_file import PlaceFile
from recollect.stores.intents import Intents
plain_note, noted = Intents.note, []
def note(self, parts):
    noted.append(parts)
    return plain_note(self, parts)
Intents.note = note
owner = PlaceIndex if any(option.startswith(("ledger:", "notebook:")) for option in sys.argv) else PlaceFile
plain = owner.end
def end(self, error):
    if noted and error is None:
        if len(noted) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        noted.append(None)
    plain(self, error)
owner.end = end
"""
"""Kills the process when one place of a change has it, and the next one has not."""
_START = "from recollect.cli import main; main()"
Start = Callable[..., tuple[str, subprocess.Popen[str]]]


@pytest.fixture
def serve() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start(store: str, *, dying: str = "") -> tuple[str, subprocess.Popen[str]]:
        options = ["serve", "--store", store, "--listen", "127.0.0.1:0", "--log", "none"]
        program = dying + _START
        process = subprocess.Popen(
            [sys.executable, "-c", program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stderr is not None
        while line := process.stderr.readline():
            if listening := re.search(r"Listening on (\S+)", line):
                return listening[1], process
        raise AssertionError(f"it did not start: {process.wait()}")

    yield start
    for process in started:
        process.kill()
        process.communicate()


def headers(store: str) -> dict[str, str]:
    with Memory(store) as memory:
        secret = Accounts(view_of(memory).store).keys.create("test", "owner").secret
    return {"authorization": f"Bearer {secret}"}


def sent_to_the_dying(
    start: Start, store: str, key: dict[str, str], method: str, path: str, body: Any, dying: str = _DYING
) -> None:
    url, process = start(store, dying=dying)
    with pytest.raises(httpx.HTTPError):
        plain.request(method, f"{url}/v1{path}", json=body, headers={**key, "idempotency-key": path})
    assert process.wait(60) == -signal.SIGKILL


@pytest.mark.parametrize("kind", ["", "ledger:", "notebook:"])
def test_a_write_that_was_stored_is_answered_after_a_kill(serve: Start, tmp_path: Path, kind: str) -> None:
    store = f"{kind}{tmp_path}/m"
    key, body = headers(store), {"content": "Ada likes heliotrope"}
    sent_to_the_dying(serve, store, key, "POST", "/memories", body)
    url, _ = serve(store)
    again = plain.post(f"{url}/v1/memories", json=body, headers={**key, "idempotency-key": "/memories"})
    assert (again.status_code, again.headers["idempotent-replay"]) == (201, "true")
    assert again.json()["content"] == "Ada likes heliotrope"
    (stored,) = plain.get(f"{url}/v1/memories", headers=key).json()
    assert stored["id"] == again.json()["id"]


@pytest.mark.parametrize("kind", ["", "ledger:", "notebook:"])
def test_a_change_of_two_places_is_done_whole_after_a_kill_between_them(
    serve: Start, tmp_path: Path, kind: str
) -> None:
    store = f"{kind}{tmp_path}/m"
    key, items = headers(store), [{"content": "here"}, {"content": "of the account", "tier": "account"}]
    with Memory(store) as memory:
        memory.remember("begin")
        memory.at(account="u1").remember("begin", tier="account")
    body = {"items": items}
    sent_to_the_dying(serve, store, key, "POST", "/memories/batch", body, _DYING_BETWEEN_COMMITS)
    url, _ = serve(store)
    again = plain.post(f"{url}/v1/memories/batch", json=body, headers={**key, "idempotency-key": "/memories/batch"})
    assert again.status_code == 201
    assert [record["content"] for record in again.json()] == ["here", "of the account"]
    stored = [record["content"] for record in plain.get(f"{url}/v1/memories", headers=key).json()]
    assert sorted(stored) == ["begin", "begin", "here", "of the account"]


def test_what_somebody_undid_after_a_kill_is_not_done_again(serve: Start, tmp_path: Path) -> None:
    store = f"{tmp_path}/m"
    key, body = headers(store), {"content": "Ada likes heliotrope"}
    sent_to_the_dying(serve, store, key, "POST", "/memories", body)
    url, _ = serve(store)
    assert plain.post(f"{url}/v1/undo", json={}, headers=key).status_code == 200
    again = plain.post(f"{url}/v1/memories", json=body, headers={**key, "idempotency-key": "/memories"})
    assert again.status_code == 409
    assert plain.get(f"{url}/v1/memories", headers=key).json() == []


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("kind", ["", "ledger:", "notebook:"])
def test_a_person_is_forgotten_whole_after_a_kill_between_two_places(
    serve: Start, tmp_path: Path, kind: str, erase: bool
) -> None:
    store = f"{kind}{tmp_path}/m"
    key = headers(store)
    with Memory(store) as memory:
        for workspace in ("default", "shop"):
            memory.at(workspace=workspace, account="u1").remember(f"zanzibarnuts in {workspace}")
            memory.at(workspace=workspace).remember(f"nobody's in {workspace}")
        memory.at(account="u1").remember("zanzibarnuts of the account", tier="account")
    body = {"account": "u1", "erase": erase}
    sent_to_the_dying(serve, store, key, "POST", "/forget", body, _DYING_BETWEEN_COMMITS)
    url, _ = serve(store)
    again = plain.post(f"{url}/v1/forget", json=body, headers={**key, "idempotency-key": "/forget"})
    assert again.status_code == 200
    with Memory(store) as memory:
        for workspace in ("default", "shop"):
            assert [r.content for r in memory.at(workspace=workspace).list(state=None)] == [f"nobody's in {workspace}"]


def test_every_kind_of_answer_is_made_anew_after_a_kill(serve: Start, tmp_path: Path) -> None:
    store = f"{tmp_path}/m"
    key = headers(store)
    with Memory(store) as memory:
        ident = memory.remember("Bora sails on Sundays").id
        talk = memory.conversations.start("about boats").id
        flow = memory.workflows.start("row").id
        step = memory.workflows.step(flow, "cast off").id
    calls: list[tuple[str, str, Any, Callable[[Any], bool]]] = [
        (
            "POST",
            "/memories/batch",
            {"items": ["one", "two"]},
            lambda told: [r["content"] for r in told] == ["one", "two"],
        ),
        ("PATCH", f"/memories/{ident}", {"content": "Bora rows"}, lambda told: told["content"] == "Bora rows"),
        ("POST", "/conversations", {"title": "about kites"}, lambda told: told["title"] == "about kites"),
        ("POST", "/channels", {"name": "harbour"}, lambda told: told["name"] == "harbour"),
        (
            "POST",
            f"/conversations/{talk}/turns",
            {"role": "user", "text": "Ahoy"},
            lambda told: told["content"] == "Ahoy",
        ),
        ("POST", f"/conversations/{talk}/end", {}, lambda told: told["id"] == talk),
        ("POST", "/workflows", {"name": "sail"}, lambda told: told["name"] == "sail"),
        ("POST", f"/workflows/{flow}/steps", {"name": "steer"}, lambda told: told["name"] == "steer"),
        (
            "POST",
            f"/steps/{step}/complete",
            {"output": "off"},
            lambda told: told["id"] == step and told["output"] == "off",
        ),
        (
            "POST",
            "/knowledge",
            {"text": "Boats float.", "title": "Boats", "category": "sea"},
            lambda told: told["title"] == "Boats",
        ),
        ("POST", "/forget", {"id": ident}, lambda told: ident in told["ids"] and told["count"] >= 1),
        ("POST", "/audit", {"action": "note", "message": "seen"}, lambda told: told["message"] == "seen"),
    ]
    url, process = serve(store, dying=_DYING_LATER)
    for method, path, body, right in calls:
        process.send_signal(signal.SIGUSR1)
        with pytest.raises(httpx.HTTPError):
            plain.request(method, f"{url}/v1{path}", json=body, headers={**key, "idempotency-key": path})
        assert process.wait(60) == -signal.SIGKILL
        url, process = serve(store, dying=_DYING_LATER)
        count = len(plain.get(f"{url}/v1/audit", params={"limit": 100}, headers=key).json())
        again = plain.request(method, f"{url}/v1{path}", json=body, headers={**key, "idempotency-key": path})
        assert again.is_success, (path, again.text)
        assert right(again.json()), (path, again.text)
        assert len(plain.get(f"{url}/v1/audit", params={"limit": 100}, headers=key).json()) == count, "done twice"


def test_a_key_that_was_made_before_a_kill_is_not_made_twice(serve: Start, tmp_path: Path) -> None:
    store = f"{tmp_path}/m"
    key = headers(store)
    sent_to_the_dying(serve, store, key, "POST", "/keys", {"name": "for a program"})
    url, _ = serve(store)
    made = {**key, "idempotency-key": "/keys"}
    again = plain.post(f"{url}/v1/keys", json={"name": "for a program"}, headers=made)
    assert again.status_code == 409
    assert "was done already" in again.json()["detail"]  # its secret is nowhere
    names = [one["name"] for one in plain.get(f"{url}/v1/keys", headers=key).json()]
    assert names.count("for a program") == 1


def test_what_is_erased_is_in_no_stored_answer(client: httpx.Client, tmp_path: Path) -> None:
    """Also of a tool, whose answer has no ids that it could be read anew by."""
    once = {"idempotency-key": "k"}
    body = {"content": "Ada likes heliotrope"}
    stored = client.post("/tools/remember", json=body, headers=once).json()
    assert client.post("/tools/remember", json=body, headers=once).json() == stored
    (memory,) = client.get("/memories").json()
    client.post("/forget", json={"id": memory["id"], "erase": True})
    again = client.post("/tools/remember", json=body, headers=once)
    assert again.status_code == 409
    assert "heliotrope" not in again.text
    raw = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"heliotrope" not in raw
