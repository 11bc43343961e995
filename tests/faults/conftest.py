"""Folders on a real disk: what these tests are about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.common import DISK


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with TemporaryDirectory(prefix="recollect-", dir=DISK, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
