"""What was put off without a flush must not leave later writes without one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from recollect import ConcurrencyError
from recollect.conformance.samples import NOW, PLACE, sample
from recollect.stores.sqlite.store import SqliteStore
from recollect.values.record import pack


def flushing(store: SqliteStore) -> int:
    """SQLite's setting inside a transaction: 2 is FULL, 1 is NORMAL."""
    with store.transaction(PLACE):
        return store.inside()[PLACE].writer.pragma("synchronous")


def test_a_write_is_flushed_whatever_was_written_without_a_flush_before(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path)) as store:
        (record,) = store.put(PLACE, [sample("a heron")])
        assert flushing(store) == 2
        store.embed(PLACE, "m", {record.id: pack([1.0])})
        assert flushing(store) == 2
        store.touch(PLACE, [record.id], NOW)
        handle = store.inside().get(PLACE) or store.creating(PLACE)
        handle.settle()
        assert flushing(store) == 2
        other: Any = apsw.Connection(handle.path)
        other.execute("BEGIN IMMEDIATE")
        store.touch(PLACE, [record.id], NOW)
        handle.settle(0.0)
        with pytest.raises(ConcurrencyError):
            handle.begin(seconds=0.0, durable=False)
        other.execute("ROLLBACK")
        other.close()
        assert flushing(store) == 2
        assert store.get(PLACE, [record.id])[0].access_count == 2
