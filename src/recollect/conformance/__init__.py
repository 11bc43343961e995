"""The claims that every store must keep, as tests that a store of your own can run.

In a test module (pytest and hypothesis come with `recollect[conformance]`):

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def store(self, tmp_path):  # a fresh, empty store for each test
            with closing(MyStore(tmp_path)) as store:
                yield store

        @pytest.fixture
        def reopen(self, tmp_path):  # optional: the same data, as another process would open it
            return lambda: MyStore(tmp_path)

    class MyMachine(StoreMachine):  # random operations, compared with a dict
        def fresh(self):
            return MyStore(mkdtemp())

    TestMyMachine = MyMachine.TestCase

Without `reopen`, the claims about other processes are skipped. A fixture `folder` with the path of everything on disk
adds the search for traces of deleted text.
"""

import pytest

_CLAIMS = (
    "audit",
    "content",
    "draws",
    "filters",
    "keeping",
    "machine",
    "places",
    "samples",
    "scanning",
    "search",
    "shelves",
    "suite",
    "transactions",
)
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in _CLAIMS))

from recollect.conformance.machine import StoreMachine  # noqa: E402
from recollect.conformance.suite import StoreConformance  # noqa: E402

__all__ = ["StoreConformance", "StoreMachine"]
