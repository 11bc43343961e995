"""Erased means erased: no byte of a forgotten text is left in the folder."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from recollect import Memory
from recollect.stores.sqlite import database

SECRETS = ("zugunruhe", "quetzalcoatl", "floccinaucinihil", "syzygetic", "北海道の鷺", "żółw")


def traces(folder: str) -> set[str]:
    """Which of the secret words are anywhere on disk: in a file, whatever its case, or in a file's name."""
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    data = b"\n".join(bytes(path.relative_to(folder)) + b"\n" + path.read_bytes() for path in files)
    text = data.decode(errors="replace").lower()
    pairs = {word: [word, *(word[at : at + 2] for at in range(len(word) - 1))] for word in SECRETS if "鷺" in word}
    return {word for word in SECRETS if any(part in text for part in pairs.get(word, [word, *_endings(word)]))}


def _endings(word: str) -> list[str]:
    """Long words are indexed under their endings too."""
    return [word[at:] for at in range(3, len(word) - 5)] if len(word) >= 12 else []


@pytest.fixture
def ids(memory: Memory) -> list[str]:
    """Memories with a secret word in each place where a word can be; each was changed, recalled and partly undone."""
    zug, quetz, flocc, syz, egret, turtle = SECRETS
    memory.remember_many(f"an ordinary memory, number {n}, that stays where it is" for n in range(200))
    first = memory.remember(f"the {zug} of herons " * 40)
    second = memory.remember({"bird": {quetz: [quetz, 2]}}, tags=[quetz, f"{quetz}.more"], source=f"from {quetz}")
    third = memory.remember(f"{flocc}ification", metadata={syz: {"deep": [syz]}}, tags=[flocc])
    fourth = memory.remember(f"我在{egret}看见了 {turtle}", embedding=[0.25] * 768, embedding_model="test")
    ids = [first.id, second.id, third.id, fourth.id]
    for n, ident in enumerate(ids):
        memory.recall(" ".join(SECRETS))
        memory.archive(ident)
        memory.restore(ident)
        revised = memory.revise(ident, content=f"{memory.get(ident).text} and more {zug}")
        if n % 2:
            memory.undo()
        else:
            ids[n] = memory.revise(revised.id, tags=[quetz]).id
    return ids


def test_the_words_are_there_to_begin_with(memory: Memory, store_url: str, ids: list[str]) -> None:
    assert traces(store_url) == set(SECRETS)


def test_forget_with_erase_leaves_no_trace(memory: Memory, store_url: str, ids: list[str]) -> None:
    receipt = memory.forget(ids, erase=True, reason="asked to")
    assert receipt.erased
    assert receipt.count == 8, "each with its earlier versions"
    assert traces(store_url) == set()
    assert memory.recall(" ".join(SECRETS)) == []
    assert len(memory.list(state=None, limit=1000)) == 200
    assert memory.doctor().ok
    assert all(log.ok for log in memory.audit.verify())


def test_forget_and_then_compact_leaves_no_trace(memory: Memory, store_url: str, ids: list[str]) -> None:
    receipt = memory.forget(ids)
    assert not receipt.erased
    assert traces(store_url) == set(SECRETS), "until then it can be undone"
    memory.compact()
    assert traces(store_url) == set()
    assert memory.doctor().ok


def test_what_was_forgotten_before_is_erased_by_a_later_compact(memory: Memory, store_url: str, ids: list[str]) -> None:
    memory.forget(ids)
    memory.undo()
    assert len(memory.recall(SECRETS[0], limit=100)) >= 1
    memory.forget(ids)
    memory.compact()
    assert traces(store_url) == set()


def test_no_trace_is_left_by_what_was_refused(memory: Memory, store_url: str) -> None:
    memory.remember("a heron")
    for bad in ({"kind": SECRETS[0] + " !"}, {"tags": [SECRETS[0] + " !"]}, {"importance": SECRETS[0]}):
        with pytest.raises(ValueError, match="must be"):
            memory.remember(f"the {SECRETS[1]} of herons", **bad)
    with pytest.raises(ValueError, match="secret"):
        memory.remember(f"the {SECRETS[1]} password is AKIAIOSFODNN7EXAMPLE")
    memory.compact()
    assert traces(store_url) == set()


def test_an_erased_account_memory_leaves_no_trace(memory: Memory, store_url: str) -> None:
    record = memory.remember(f"likes {SECRETS[0]}", kind="preference", tier="account")
    assert memory.forget(record.id, erase=True).erased
    assert traces(store_url) == set()


@pytest.mark.clause("INK-09")
def test_a_forgotten_workspace_leaves_no_trace(memory: Memory, store_url: str) -> None:
    shop = memory.at(workspace="shop")
    shop.revise(shop.remember(f"the {SECRETS[0]} of herons").id, content=SECRETS[1])
    memory.remember("stays")
    shop.forget(workspace="shop")
    assert traces(store_url) == set()


def test_while_another_process_still_reads_the_receipt_says_so(
    memory: Memory, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    record = memory.remember(f"the {SECRETS[0]} of herons")
    file = Path(store_url, "default/workspaces/default/memory.db")
    with closing(apsw.Connection(str(file))) as reader:
        reader.execute("BEGIN; SELECT count(*) FROM memories").fetchall()
        receipt = memory.forget(record.id, erase=True)
        assert not receipt.erased
        assert "compact" in str(receipt.note)
        reader.execute("COMMIT")
    assert memory.recall(SECRETS[0]) == []
    memory.compact()
    assert traces(store_url) == set()


@pytest.mark.clause("INK-10")
def test_an_embedding_is_3072_bytes_on_disk_and_gone_with_its_memory(memory: Memory, store_url: str) -> None:
    vector = [n / 768 for n in range(768)]
    record = memory.remember("a heron", embedding=vector, embedding_model="test")
    file = Path(store_url, "default/workspaces/default/memory.db")
    with closing(sqlite3.connect(file)) as raw:
        ((blob,),) = raw.execute("SELECT vector FROM embeddings").fetchall()
    assert len(blob) == 3072
    assert blob[:8] == b"\x00\x00\x00\x00\xab\xaa\xaa:", "0.0 and 1/768, little-endian"
    assert blob == memory.get(record.id).embedding
    memory.forget(record.id, erase=True)
    assert blob[400:800] not in b"".join(path.read_bytes() for path in Path(store_url).rglob("*") if path.is_file())


def test_words_leave_the_index_even_if_texts_are_segmented_differently_by_then(
    memory: Memory, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by another version of recollect, or by a Python with another version of Unicode."""
    texts = [f"the {SECRETS[2]}ification", f"我在{SECRETS[4]}看见了"]
    stored = memory.remember_many(texts)
    monkeypatch.setattr("recollect.stores.sqlite.rows.segment", lambda text: " ".join(text))
    memory.forget([record.id for record in stored], erase=True)
    memory.close()
    assert traces(store_url) == set()
