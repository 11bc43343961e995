"""Stores to try threads on, and an interpreter that changes threads often."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.stores import STORES, located


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def url(store: str, tmp_path: Path) -> str:
    return located(store, tmp_path / "memory")


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """Change threads often: what can go wrong between two of them then does so in a few rounds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)
