"""The PostgreSQL store keeps every claim of the store port."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from hypothesis import settings
from support.stores import fresh_location, give_back

from recollect.conformance import StoreConformance, StoreMachine
from recollect.stores import open_store
from recollect.stores.port import Store


class TestPostgres(StoreConformance):
    @pytest.fixture
    def location(self) -> Iterator[str]:
        yield (location := fresh_location())
        give_back(location)

    @pytest.fixture
    def store(self, location: str) -> Iterator[Store]:
        with closing(open_store(location)) as store:
            yield store

    @pytest.fixture
    def reopen(self, location: str) -> Callable[[], Store]:
        return lambda: open_store(location)


class PostgresMachine(StoreMachine):
    def fresh(self) -> Store:
        self.location = fresh_location()
        return open_store(self.location)

    def reopen(self, store: Store) -> Store:
        return open_store(self.location)

    def teardown(self) -> None:
        super().teardown()
        give_back(self.location)


PostgresMachine.TestCase.settings = settings(max_examples=settings.default.max_examples // 5)
TestPostgresMachine = pytest.mark.slow(PostgresMachine.TestCase)
