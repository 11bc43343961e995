"""A memory that was changed in the database: no verb gives it to a caller, the rest is served, it can be deleted."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from support.stores import DATABASES, located

from recollect import CorruptionError, Memory, NotFoundError
from recollect.values.record import Record

Change = Callable[[str, str, str], None]
"""Sets a column of the memory with an id to another value, given as SQL."""
TABLES = {"text": "contents", "metadata": "contents"}


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


@pytest.fixture
def memory(url: str) -> Iterator[Memory]:
    with Memory(url) as memory:
        yield memory


@pytest.fixture
def change(url: str) -> Change:
    def change(ident: str, column: str, value: str) -> None:
        if not url.startswith("postgresql"):
            file = next(Path(url.removeprefix("sqlite:")).rglob("default/memory.db"))
            # In a process of its own: a second SQLite in this one would break the locks of the first.
            sql = f"UPDATE memories SET {column} = {value} WHERE id = '{ident}'"
            script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
            subprocess.run([sys.executable, "-c", script, str(file), sql], check=True)
            return
        server, _, schema = url.rpartition("schema=")
        with psycopg.connect(server.rstrip("?&"), autocommit=True) as connection:
            table, seq = f"{schema}.{TABLES[column]}", f"(SELECT seq FROM {schema}.memories WHERE id = %s)"
            connection.execute(f"UPDATE {table} SET {column} = {value} WHERE seq = {seq}".encode(), (ident,))

    return change


def test_no_verb_gives_a_changed_memory_to_a_caller(memory: Memory, change: Change) -> None:
    lie = memory.remember("the heron is grey")
    memory.remember("the heron is tall")
    change(lie.id, "text", "'the heron is pink'")
    out = io.BytesIO()
    assert memory.export(out) == 1
    assert b"pink" not in out.getvalue()
    hits = memory.recall("heron")
    assert [hit.memory.content for hit in hits] == ["the heron is tall"]
    assert "1 damaged memory is left out" in hits.report
    assert "pink" not in str(memory.context([{"role": "user", "content": "what is the heron like?"}]))
    assert [record.content for record in memory.list()] == ["the heron is tall"]
    assert [hit.memory.content for hit in memory.query({"sort_by": "oldest"})] == ["the heron is tall"]
    for verb in (memory.get, memory.history, memory.archive, lambda ident: memory.revise(ident, importance=1.0)):
        with pytest.raises(CorruptionError, match=f"{lie.id} does not match its checksum"):
            verb(lie.id)
    memory.remember("the heron is pink")
    assert len(memory.list()) == 2, "what was stored is not the memory that was changed"
    assert [damage.where for damage in memory.verify()] == [lie.id]
    assert not memory.doctor().ok


def test_a_changed_memory_can_be_forgotten_and_erased(memory: Memory, change: Change) -> None:
    for erase in (False, True):
        lie = memory.remember(f"the heron is grey {erase}")
        change(lie.id, "text", "'the heron is pink'")
        assert memory.forget(lie.id, erase=erase).ids == (lie.id,)
        with pytest.raises(NotFoundError):
            memory.get(lie.id)
    assert memory.verify() == []


def test_what_is_whole_is_exported_and_imported_and_the_rest_is_named(
    memory: Memory, change: Change, tmp_path: Path
) -> None:
    old = memory.remember("the heron is grey")
    lie = memory.revise(old.id, content="the heron is blue")
    memory.remember("the owl is brown")
    change(lie.id, "text", "'the heron is pink'")
    out = io.BytesIO()
    assert memory.export(out) == 2
    with Memory(tmp_path / "new") as other:
        out.seek(0)
        imported = other.import_(out)
        assert (imported.added, imported.damaged) == (2, (lie.id,))
        assert [record.content for record in other.list()] == ["the owl is brown"]
        assert other.get(old.id).superseded_by == lie.id
        assert other.doctor().ok


@pytest.mark.parametrize("value", ["'[1]'", "'no JSON'"])
def test_a_row_that_cannot_be_read_is_left_out_and_logged(
    memory: Memory, change: Change, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory.remember("the heron is tall")
    torn = memory.remember("the heron is grey", metadata={"seen": 1})
    change(torn.id, "metadata", value)
    with caplog.at_level(logging.ERROR, "recollect.store"):
        assert [hit.memory.content for hit in memory.recall("heron")] == ["the heron is tall"]
        assert [record.content for record in memory.list()] == ["the heron is tall"]
        assert memory.export(io.BytesIO()) == 1
    assert "corruption detected" in caplog.text


def test_a_recall_of_ten_costs_ten_digests(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.remember_many([f"heron number {n}" for n in range(100)])
    digests: list[str] = []
    real = Record.digest

    def counted(record: Record) -> str:
        digests.append(record.id)
        return real(record)

    monkeypatch.setattr(Record, "digest", counted)
    assert len(memory.recall("heron", limit=10)) == 10
    assert len(digests) == 10


def test_a_changed_passage_of_a_document_is_named(url: str) -> None:
    with Memory(url) as memory:
        memory.knowledge.add("# Heron\n\nThe heron is grey.", title="Heron", status="published")
        memory.remember("something else")
    if url.startswith("postgresql"):
        server, _, schema = url.rpartition("schema=")
        with psycopg.connect(server.rstrip("?&"), autocommit=True) as connection:
            connection.execute(f"UPDATE {schema}.contents SET text = replace(text, 'grey', 'pink')".encode())
    else:
        (file,) = (path for path in Path(url.removeprefix("sqlite:")).rglob("memory.db") if "knowledge" in str(path))
        script = """import sqlite3, sys
c = sqlite3.connect(sys.argv[1]); c.execute("UPDATE memories SET text = replace(text, 'grey', 'pink')"); c.commit()"""
        subprocess.run([sys.executable, "-c", script, str(file)], check=True)
    with Memory(url) as memory:
        (damage,) = memory.verify()
        assert "knowledge" in damage.where
        assert memory.at(workspace="shop").verify() == []
        assert memory.knowledge.search("heron") == []
        assert not memory.doctor().ok
