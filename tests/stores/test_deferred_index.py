"""What a ledger has acknowledged is in every answer, though its index is written later than its log."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from recollect import Memory
from recollect.stores.files.index import PlaceIndex
from recollect.stores.files.ledger import Ledger
from recollect.stores.port import Place
from recollect.values.errors import ConflictError
from recollect.values.filters import Filter
from recollect.values.record import Address, Record, utc_now

HERE = Place("default", "default")


def record(ident: str, text: str = "the harbour opens at six") -> Record:
    now = utc_now()
    made = Record(ident, Address(), "workspace", "decision", text, 0.5, now, now)
    return Record(ident, Address(), "workspace", "decision", text, 0.5, now, now, checksum=made.digest())


def index_of(ledger: Ledger) -> PlaceIndex:
    return ledger._handles[HERE]  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    """One whose index lacks the memories c1 to c3."""
    with_deferred = Ledger(tmp_path / "memory")
    for ident in ("a1", "b1", "c1", "c2", "c3"):
        with_deferred.put(HERE, [record(ident)])
    assert index_of(with_deferred).is_deferred
    yield with_deferred
    with_deferred.close()


def ids(ledger: Ledger) -> list[str]:
    where = Filter(seen_from=Address(), now=utc_now(), state=None)
    assert sum(ledger.count(where).values()) == len(list(ledger.scan(where)))
    return sorted(stored.id for stored in ledger.scan(where))


def test_the_next_question_is_answered_with_all_of_it(ledger: Ledger) -> None:
    assert {stored.id for stored in ledger.get(HERE, ["c3", "a1"])} == {"a1", "c3"}
    assert not index_of(ledger).is_deferred
    assert ids(ledger) == ["a1", "b1", "c1", "c2", "c3"]


def test_another_process_sees_all_of_it_at_once(ledger: Ledger) -> None:
    code = "import sys; from recollect import Memory; print(Memory(f'ledger:{sys.argv[1]}').stats().total)"
    command = [sys.executable, "-c", code, ledger.root]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "5\n"
    ledger.put(HERE, [record("d1")])  # beside an index that the other process has brought up to date
    assert ids(ledger) == ["a1", "b1", "c1", "c2", "c3", "d1"]


def test_a_process_that_is_killed_leaves_a_log_that_has_it(tmp_path: Path) -> None:
    code = """import os, sys
from recollect import Memory
memory = Memory(f"ledger:{sys.argv[1]}", preset="ledger")
for number in range(20): memory.remember(f"number {number} is about the harbour")
os.kill(os.getpid(), 9)"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    with Memory(f"ledger:{tmp_path}", preset="ledger") as memory:
        assert memory.stats().total == 20
        assert len(memory.recall("harbour", limit=50)) == 20


def test_an_id_that_is_there_already_is_refused(ledger: Ledger) -> None:
    for ident in ("a1", "c1", "c3"):
        with pytest.raises(ConflictError):
            ledger.put(HERE, [record("d1"), record(ident)])
    with pytest.raises(ConflictError):
        ledger.put(HERE, [record("e1"), record("e1")])
    assert ids(ledger) == ["a1", "b1", "c1", "c2", "c3"]


def test_one_that_was_deleted_can_be_stored_again(ledger: Ledger) -> None:
    ledger.delete(HERE, ["c3"])
    ledger.put(HERE, [record("c3", "once more")])
    ledger.put(HERE, [record("c4")])
    assert ledger.get(HERE, ["c3"])[0].content == "once more"
    ledger.rebuild(HERE)
    assert ledger.get(HERE, ["c3"])[0].content == "once more"


def test_a_transaction_sees_what_it_has_stored_itself(ledger: Ledger) -> None:
    with ledger.transaction(HERE):
        ledger.put(HERE, [record("d1"), record("d2")])
        assert {stored.id for stored in ledger.get(HERE, ["d2", "c1"])} == {"c1", "d2"}
        ledger.put(HERE, [record("d3")])
    assert ids(ledger) == ["a1", "b1", "c1", "c2", "c3", "d1", "d2", "d3"]


@pytest.mark.parametrize("asks", [False, True])
def test_a_part_of_a_transaction_is_taken_back_by_itself(ledger: Ledger, asks: bool) -> None:
    def fail() -> None:
        with ledger.transaction(HERE):
            ledger.put(HERE, [record("d2")])
            with ledger.transaction(HERE):
                ledger.put(HERE, [record("d3")])
                if asks:
                    assert len(ledger.get(HERE, ["d1", "d2", "d3"])) == 3
            raise ZeroDivisionError

    with ledger.transaction(HERE):
        ledger.put(HERE, [record("d1")])
        with pytest.raises(ZeroDivisionError):
            fail()
        ledger.put(HERE, [record("d4")])
    assert ids(ledger) == ["a1", "b1", "c1", "c2", "c3", "d1", "d4"]
    ledger.rebuild(HERE)
    assert ids(ledger) == ["a1", "b1", "c1", "c2", "c3", "d1", "d4"]


def test_a_transaction_that_fails_leaves_what_was_acknowledged_before(ledger: Ledger) -> None:
    def fail() -> None:
        with ledger.transaction(HERE):
            ledger.put(HERE, [record("d1")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert ids(ledger) == ["a1", "b1", "c1", "c2", "c3"]


@pytest.mark.parametrize("asks", [False, True])
def test_a_reader_neither_waits_for_a_long_transaction_nor_misses_what_was_before(ledger: Ledger, asks: bool) -> None:
    entered, done = threading.Event(), threading.Event()

    def write() -> None:
        with ledger.transaction(HERE):
            ledger.put(HERE, [record("d1")])
            if asks:
                assert ledger.get(HERE, ["d1"])
            entered.set()
            assert done.wait(60)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert entered.wait(60)
        assert ids(ledger) == ["a1", "b1", "c1", "c2", "c3"]
        with Memory(f"ledger:{ledger.root}") as another:
            assert another.stats().total == 5
    finally:
        done.set()
        thread.join()
    assert ids(ledger) == ["a1", "b1", "c1", "c2", "c3", "d1"]


def test_an_index_that_is_removed_meanwhile_is_made_anew(ledger: Ledger) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{index_of(ledger).path}{end}").unlink()
    ledger.put(HERE, [record("d1")])
    assert ids(ledger) == ["a1", "b1", "c1", "c2", "c3", "d1"]


def test_a_line_of_another_program_comes_between(ledger: Ledger) -> None:
    log = Path(ledger.root) / "sessions/default/memory.jsonl"
    line = b'{"id":"x1","type":"decision","content":"by hand","timestamp":"2026-01-01T00:00:00Z","importance":0.5}'
    with log.open("ab") as file:
        file.write(line)  # without the end of the line
    ledger.put(HERE, [record("y1")])
    assert ids(ledger) == ["a1", "b1", "c1", "c2", "c3", "x1", "y1"]
    ledger.put(HERE, [record("y2")])
    assert ids(ledger) == ["a1", "b1", "c1", "c2", "c3", "x1", "y1", "y2"]


def test_closing_writes_the_index(tmp_path: Path) -> None:
    first = Ledger(tmp_path / "memory")
    for ident in ("a1", "b1", "c1", "c2"):
        first.put(HERE, [record(ident)])
    first.close()
    second = Ledger(tmp_path / "memory")
    try:
        rows = second._existing(HERE).rows("SELECT count(*) FROM memories")  # pyright: ignore
        assert rows == [(4,)]
    finally:
        second.close()
