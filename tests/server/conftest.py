"""A server of an empty memory, and a client of it that may everything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support import plain
from support.served import Served, served

from recollect import Memory


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with Memory(tmp_path / "m") as memory, served(memory) as server:
        yield server


@pytest.fixture
def client(server: Served) -> Iterator[httpx.Client]:
    with plain.Client(base_url=f"{server.url}/v1", headers=server.headers()) as client:
        yield client
