"""The notebook keeps every claim of the store port."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

from recollect.conformance import StoreConformance, StoreMachine
from recollect.stores.files.notebook import Notebook
from recollect.stores.port import Store


class TestNotebook(StoreConformance):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "memory"

    @pytest.fixture
    def store(self, folder: Path) -> Iterator[Store]:
        with closing(Notebook(folder)) as store:
            yield store

    @pytest.fixture
    def reopen(self, folder: Path) -> Callable[[], Store]:
        return lambda: Notebook(folder)


class NotebookMachine(StoreMachine):
    def fresh(self) -> Store:
        self.folder = TemporaryDirectory()
        return Notebook(self.folder.name)

    def reopen(self, store: Store) -> Store:
        return Notebook(self.folder.name)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


NotebookMachine.TestCase.settings = settings(max_examples=settings.default.max_examples // 5)
TestNotebookMachine = pytest.mark.slow(NotebookMachine.TestCase)
