"""How many places a store of files remembers."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect import Memory
from recollect.stores.files import folder
from recollect.stores.files.book import Book


def test_what_is_known_of_places_is_bounded_and_each_is_forgotten_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "_KNOWN_BOOKS", 20)
    alive: set[int] = set()
    forgotten: list[int] = []
    forget = Book.forget
    make = Book.__init__

    def counting_make(book: Book, *given: object, **options: object) -> None:
        make(book, *given, **options)  # pyright: ignore[reportArgumentType]
        alive.add(id(book))

    def counting_forget(book: Book, **options: bool) -> None:
        forgotten.append(id(book))
        alive.discard(id(book))
        forget(book, **options)

    monkeypatch.setattr(Book, "__init__", counting_make)
    monkeypatch.setattr(Book, "forget", counting_forget)
    with Memory(f"ledger:{tmp_path}", embedder="none") as memory:
        for number in range(100):
            memory.at(workspace=f"w{number}").remember(f"heron {number}")
            memory.at(workspace=f"w{number}").recall("heron")
        assert len(alive) <= 25
        assert len(forgotten) <= 200
        for number in range(100):
            (kept,) = memory.at(workspace=f"w{number}").list()
            assert (kept.text, kept.access_count) == (f"heron {number}", 1)
