"""The ledger keeps every claim of the store port."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

from recollect.conformance import StoreConformance, StoreMachine
from recollect.stores.files.ledger import Ledger
from recollect.stores.port import Store


class TestLedger(StoreConformance):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "memory"

    @pytest.fixture
    def store(self, folder: Path) -> Iterator[Store]:
        with closing(Ledger(folder)) as store:
            yield store

    @pytest.fixture
    def reopen(self, folder: Path) -> Callable[[], Store]:
        return lambda: Ledger(folder)


class LedgerMachine(StoreMachine):
    def fresh(self) -> Store:
        self.folder = TemporaryDirectory()
        return Ledger(self.folder.name)

    def reopen(self, store: Store) -> Store:
        return Ledger(self.folder.name)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


LedgerMachine.TestCase.settings = settings(max_examples=settings.default.max_examples // 5)
TestLedgerMachine = pytest.mark.slow(LedgerMachine.TestCase)
