"""The OpenAPI document, and what a fuzzer makes of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from support import plain
from support.common import LONG
from support.served import Served, served

from recollect import Memory
from recollect.remote.operations import OPERATIONS
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
    assert set(OPERATIONS) <= {m["operationId"] for methods in paths.values() for m in methods.values()}


def test_it_is_served_to_whoever_asks(server: Served) -> None:
    assert plain.get(f"{server.url}/v1/openapi.json").json()["info"]["title"] == "recollect"


@pytest.mark.slow
def test_nothing_that_is_sent_breaks_it(server: Served) -> None:
    """No answer is a failure of ours, and each is of the kind and shape that the document says."""
    # Beyond the types, a verb has limits that it tells in its own words, and takes some of what the document forbids.
    known = "negative_data_rejection,positive_data_acceptance,use_after_free"
    command = [str(Path(sys.executable).parent / "schemathesis"), "run", f"{server.url}/v1/openapi.json"]
    phases = "examples,coverage,fuzzing,stateful" if LONG else "examples,fuzzing,stateful"
    options = ["--phases", phases, "--exclude-checks", known, "-n", "2", "--seed", "1"]
    options += ["--max-examples", "100" if LONG else "5"]
    key = ["-H", f"Authorization: Bearer {server.key()}"]
    done = subprocess.run([*command, *options, *key], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-20_000:]
    assert plain.get(f"{server.url}/readyz").status_code == 200
