"""All claims about a store in one test class."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from recollect.conformance.audit import JournalClaims
from recollect.conformance.content import ContentClaims
from recollect.conformance.filters import FilterClaims
from recollect.conformance.keeping import KeepingClaims
from recollect.conformance.places import PlaceClaims
from recollect.conformance.search import SearchClaims
from recollect.conformance.transactions import TransactionClaims
from recollect.stores.port import JournaledStore


class StoreConformance(
    KeepingClaims, ContentClaims, FilterClaims, SearchClaims, JournalClaims, TransactionClaims, PlaceClaims
):
    """Subclass it with a fixture `store`, and where the store can, with `reopen` and `folder`."""

    @pytest.fixture
    def store(self) -> JournaledStore:
        raise NotImplementedError("a subclass must have a fixture `store` that gives a fresh, empty store")

    @pytest.fixture
    def reopen(self) -> Callable[[], JournaledStore]:
        pytest.skip("the store has no fixture `reopen`")

    @pytest.fixture
    def folder(self) -> Path:
        pytest.skip("the store has no fixture `folder`")
