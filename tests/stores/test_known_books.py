"""How many places a store of files remembers, and keeps open."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect import Memory
from recollect.stores.files.index import PlaceIndex
from recollect.stores.sqlite import places


@pytest.mark.parametrize("kind", ["sqlite", "ledger"])
def test_what_is_known_of_places_is_bounded_and_nothing_is_lost_by_that(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "open_files", lambda: 60)
    with Memory(f"{kind}:{tmp_path}", embedder="none") as memory:
        store = memory._view.store
        for number in range(100):
            memory.at(workspace=f"w{number}").remember(f"heron {number}")
            memory.at(workspace=f"w{number}").recall("heron")
            handles = list(store._handles.values())  # pyright: ignore
            assert sum(handle.open_files for handle in handles) <= 80
            if isinstance(handles[0], PlaceIndex) and number % 20 == 19:
                store.settle()  # pyright: ignore
                assert len(store._logs) <= len(store._handles) + 1  # pyright: ignore
        for number in range(100):
            (kept,) = memory.at(workspace=f"w{number}").list()
            assert (kept.text, kept.access_count) == (f"heron {number}", 1)
