"""Every store has the number of its format, and refuses what a later version has written, untouched."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

from recollect import Memory, SchemaError


def test_a_notebook_says_which_format_it_has(tmp_path: Path) -> None:
    with Memory(f"notebook:{tmp_path}", preset="aegis") as memory:
        memory.remember("tea at four")
    number = tmp_path / ".memories/format"
    assert number.read_text() == "1\n"
    number.unlink()
    with Memory(f"notebook:{tmp_path}", preset="aegis") as memory:
        assert [record.content for record in memory.list()] == ["tea at four"]
    number.write_text("2\n")
    before = (tmp_path / "memories.jsonl").read_bytes()
    with Memory(f"notebook:{tmp_path}", preset="aegis") as memory:
        for verb in (memory.list, lambda: memory.remember("more")):
            with pytest.raises(SchemaError, match=r"format 2; this recollect knows up to 1\. Upgrade recollect"):
                verb()
    assert (tmp_path / "memories.jsonl").read_bytes() == before


def test_an_entry_of_a_later_ledger_is_refused(tmp_path: Path) -> None:
    with Memory(f"ledger:{tmp_path}", preset="ledger") as memory:
        memory.remember("tea at four")
    log = tmp_path / "sessions/default/memory.jsonl"
    entry = json.loads(log.read_text())
    del entry["checksum"]
    log.write_text(json.dumps({**entry, "schema_version": 2}) + "\n")
    before = log.read_bytes()
    with Memory(f"ledger:{tmp_path}", preset="ledger") as memory:
        for verb in (memory.list, lambda: memory.remember("more")):
            with pytest.raises(SchemaError, match="schema version 2; this recollect knows up to 1"):
                verb()
    assert log.read_bytes() == before


@pytest.mark.parametrize("kind", ["ledger", "notebook"])
@pytest.mark.parametrize("harm", ["gone", "later", "earlier", "damaged", "not a database", "another's"])
def test_an_index_that_is_none_of_ours_is_made_anew(kind: str, harm: str, tmp_path: Path) -> None:
    with Memory(f"{kind}:{tmp_path}", embedder="none") as memory:
        ids = [memory.remember(f"heron number {n}").id for n in range(40)]
        memory.forget(ids[3])
    (index,) = tmp_path.rglob("index.db")
    if harm == "gone":
        index.unlink()
    elif harm == "later":
        apsw.Connection(str(index)).execute("PRAGMA user_version = 99")
    elif harm == "earlier":
        apsw.Connection(str(index)).execute("ALTER TABLE log_files DROP COLUMN crc")
    elif harm == "damaged":
        data = bytearray(index.read_bytes())
        data[100:4000] = b"\xff" * 3900
        index.write_bytes(data)
    elif harm == "not a database":
        index.write_text("a heron stood here")
    else:
        index.unlink()
        apsw.Connection(str(index)).execute("CREATE TABLE others (id)")
    with Memory(f"{kind}:{tmp_path}", embedder="none") as memory:
        assert {record.id for record in memory.list(limit=100)} == set(ids) - {ids[3]}
        assert memory.recall("heron number 7")[0].memory.content == "heron number 7"
        memory.undo()
        assert memory.get(ids[3]).content == "heron number 3"
        assert memory.doctor().ok
