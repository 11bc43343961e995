"""The OpenAPI document, and what a fuzzer makes of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest
from support import plain
from support.common import LONG
from support.served import Served, served

from recollect import Memory
from recollect.operations import served_operations
from recollect.server import openapi
from recollect.server.router import EXPORT, IMPORT, ROUTES


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with Memory(tmp_path / "m") as memory, served(memory) as server:
        memory.remember_many(["Ada likes tea", "Bora sails on Sundays"])
        yield server


def test_every_route_is_in_it() -> None:
    paths = msgspec.json.decode(openapi.document())["paths"]
    told = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert told == {(route.method, f"/v1{route.path}") for route in (*ROUTES, EXPORT, IMPORT)}
    assert set(served_operations()) <= {m["operationId"] for methods in paths.values() for m in methods.values()}


def test_it_says_that_every_call_needs_a_key() -> None:
    document = msgspec.json.decode(openapi.document())
    assert document["components"]["securitySchemes"] == {"key": {"type": "http", "scheme": "bearer"}}
    assert document["security"] == [{"key": []}]
    assert not [call for methods in document["paths"].values() for call in methods.values() if "security" in call]


def test_it_is_served_to_whoever_asks(server: Served) -> None:
    assert plain.get(f"{server.url}/v1/openapi.json").json()["info"]["title"] == "recollect"


@pytest.mark.slow
def test_nothing_that_is_sent_breaks_it(server: Served) -> None:
    """No answer is a failure of ours, and each is of the kind and shape that the document says."""
    # Beyond the types, a verb has limits that it tells in its own words, and takes some of what the document forbids.
    known = "negative_data_rejection,positive_data_acceptance,use_after_free"
    command = [str(Path(sys.executable).parent / "schemathesis"), "run", f"{server.url}/v1/openapi.json"]
    phases = "examples,coverage,fuzzing,stateful" if LONG else "examples,fuzzing,stateful"
    options = ["--phases", phases, "--exclude-checks", known, "-n", "2"]  # it prints its seed, another in each run
    options += ["--max-examples", "100" if LONG else "3"]
    key = ["-H", f"Authorization: Bearer {server.key()}"]
    done = subprocess.run([*command, *options, *key], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-20_000:]
    assert plain.get(f"{server.url}/readyz").status_code == 200


def test_creations_answer_201_and_everything_else_200() -> None:
    """Written down here, and not read from the table under test."""
    creating = {
        "remember",
        "remember_many",
        "audit.record",
        "conversations.start",
        "conversations.say",
        "conversations.observe",
        "aliases.save",
        "cases.save",
        "channels.create",
        "journal.save",
        "journal.save_core",
        "journal.whiteboard.write",
        "knowledge.add",
        "workflows.start",
        "workflows.step",
        "moments.record_task",
        "moments.record_tool",
        "moments.record_decision",
        "moments.record_content",
        "moments.record_delegation",
        "sessions.create",
        "sessions.add",
        "sessions.add_many",
        "keys.create",
        "people.add",
    }
    paths = msgspec.json.decode(openapi.document())["paths"]
    declared = {
        call["operationId"]: sorted(status for status in call["responses"] if status != "default")
        for methods in paths.values()
        for call in methods.values()
    }
    assert declared == {name: ["201"] if name in creating else ["200"] for name in declared}


def test_the_status_is_the_one_that_is_declared(client: httpx.Client) -> None:
    ident = client.post("/memories", json={"content": "Ada likes tea"}).json()["id"]
    talk = client.post("/conversations", json={}).json()["id"]
    statuses = {
        "/memories/batch": client.post("/memories/batch", json={"items": ["one"]}).status_code,
        "turns": client.post(f"/conversations/{talk}/turns", json={"role": "user", "text": "hi"}).status_code,
        "/archive": client.post("/archive", json={"ids": [ident]}).status_code,
        "/undo": client.post("/undo", json={}).status_code,
        "/forget": client.post("/forget", json={"id": ident}).status_code,
        "/maintenance": client.post("/maintenance", json={"dry_run": True}).status_code,
        "/compact": client.post("/compact", json={}).status_code,
    }
    assert statuses == {
        "/memories/batch": 201,
        "turns": 201,
        "/archive": 200,
        "/undo": 200,
        "/forget": 200,
        "/maintenance": 200,
        "/compact": 200,
    }
