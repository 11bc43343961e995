"""A server of an empty memory, and a client of it that may everything."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import argon2
import httpx
import pytest
from support import plain
from support.served import Served, served

from recollect import Memory


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passwords a hundred times faster than for users: what these tests ask is who gets in, not how long it takes.

    A hash says itself how it was made, so whatever was made before can still be checked.
    """
    monkeypatch.setattr(
        argon2, "PasswordHasher", partial(argon2.PasswordHasher, time_cost=1, memory_cost=64, parallelism=1)
    )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with Memory(tmp_path / "m") as memory, served(memory) as server:
        yield server


@pytest.fixture
def client(server: Served) -> Iterator[httpx.Client]:
    with plain.Client(base_url=f"{server.url}/v1", headers=server.headers()) as client:
        yield client
