"""The SQLite folder keeps every claim of the store port."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

from recollect.conformance import StoreConformance, StoreMachine
from recollect.stores.port import Store
from recollect.stores.sqlite.store import SqliteStore


class TestSqliteStore(StoreConformance):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "memory"

    @pytest.fixture
    def store(self, folder: Path) -> Iterator[Store]:
        with closing(SqliteStore(folder)) as store:
            yield store

    @pytest.fixture
    def reopen(self, folder: Path) -> Callable[[], Store]:
        return lambda: SqliteStore(folder)


class SqliteMachine(StoreMachine):
    def fresh(self) -> Store:
        self.folder = TemporaryDirectory()
        return SqliteStore(self.folder.name)

    def reopen(self, store: Store) -> Store:
        return SqliteStore(self.folder.name)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


SqliteMachine.TestCase.settings = settings(max_examples=settings.default.max_examples // 5)
TestSqliteMachine = pytest.mark.slow(SqliteMachine.TestCase)
