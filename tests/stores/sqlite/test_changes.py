"""The list of changes that copies in memory follow."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from recollect import Memory
from recollect.conformance.samples import PLACE, sample, where
from recollect.stores.sqlite import place_file
from recollect.stores.sqlite.store import SqliteStore


def rows(path: Path) -> int:
    (file,) = path.glob("**/memory.db")
    with closing(apsw.Connection(str(file))) as connection:
        ((number,),) = connection.execute("SELECT count(*) FROM changed").fetchall()
    return int(number)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("by", ["itself", "compact"])
def test_the_list_of_changes_is_trimmed_and_copies_stay_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "itself":
        monkeypatch.setattr(place_file, "MOST_CHANGES", 50)
    with Memory(tmp_path, embedder="none") as memory, Memory(tmp_path, embedder="none") as other:
        heron, fox = memory.remember("a heron"), memory.remember("a fox")
        assert other.recall("heron")
        assert other.recall("fox")
        memory.forget(fox.id)
        for _ in range(100):
            memory.archive(heron.id)
            memory.restore(heron.id)
        memory.archive(heron.id)
        if by == "compact":
            memory.compact()
        assert rows(tmp_path) <= 60
        assert other.recall("heron") == []
        assert other.recall("fox") == []


def test_a_scan_without_content_reads_none(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    try:
        with store.transaction(PLACE):
            store.put(PLACE, [sample(f"heron {number}") for number in range(3)])
        lean = list(store.scan(where(), whole=False))
        assert [record.content for record in lean] == [None] * 3
        assert [record.id for record in lean] == [record.id for record in store.scan(where())]
    finally:
        store.close()
