"""All claims about a store in one test class."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from recollect.conformance.audit import AuditClaims
from recollect.conformance.content import ContentClaims
from recollect.conformance.filters import FilterClaims
from recollect.conformance.keeping import KeepingClaims
from recollect.conformance.places import DiskClaims, PlaceClaims
from recollect.conformance.scanning import ScanClaims
from recollect.conformance.search import SearchClaims
from recollect.conformance.shelves import ShelfClaims
from recollect.conformance.transactions import TransactionClaims
from recollect.stores.port import Store


class StoreConformance(
    KeepingClaims,
    ContentClaims,
    ScanClaims,
    FilterClaims,
    SearchClaims,
    AuditClaims,
    ShelfClaims,
    TransactionClaims,
    PlaceClaims,
    DiskClaims,
):
    """Subclass it with a fixture `store`, and where the store can, with `reopen` and `folder`."""

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError("a subclass must have a fixture `store` that gives a fresh, empty store")

    @pytest.fixture
    def reopen(self) -> Callable[[], Store]:
        pytest.skip("the store has no fixture `reopen`")

    @pytest.fixture
    def folder(self) -> Path:
        pytest.skip("the store has no fixture `folder`")
