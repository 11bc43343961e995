"""The edge cases of the ledger document, by their numbers. The first, a full session, is among the limits."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from support.common import Clock, Script
from support.ledger_files import NOW, SAMPLE, Files, entry

from recollect import InputError, Memory, NotFoundError


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "memory")


def session(files: Files, clock: Clock) -> Memory:
    memory = files.open(clock)
    memory.sessions.create("u", session_id="s")
    return memory


WRITER = """
import sys
from recollect import Memory
with Memory(sys.argv[1], preset="ledger") as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(25):
        memory.sessions.add("s", {"type": "finding", "content": f"{sys.argv[2]}-{n}"})
"""


@pytest.mark.clause("LED-19")
def test_case_2_concurrent_writes_to_one_session_all_arrive(
    files: Files, clock: Clock, start: Callable[..., Script]
) -> None:
    session(files, clock).close()
    writers = [start(WRITER, f"ledger:{files.root}", name) for name in "abcd"]
    assert [writer.line() for writer in writers] == ["ready"] * 4
    for writer in writers:
        writer.tell("go")
    for writer in writers:
        writer.finish()
    expected = {f"{name}-{n}" for name in "abcd" for n in range(25)}
    assert sorted(line["content"] for line in files.log()) == sorted(expected)
    with files.open(clock) as memory:
        assert memory.sessions.load("s").statistics["findings"] == 100
        assert memory.sessions.stats("s").corrupt == ()


@pytest.mark.clause("LED-19")
@pytest.mark.parametrize("left", [1, 30, 0.5, -2, -1])
def test_case_3_an_incomplete_last_line_costs_only_itself(files: Files, clock: Clock, left: float) -> None:
    with session(files, clock) as memory:
        memory.sessions.add_many("s", [entry("first"), entry("second"), entry("torn")])
    path = files.session() / "memory.jsonl"
    *whole, torn = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole) + torn[: int(left * len(torn)) if left == 0.5 else int(left)])
    # Without its end of line alone it is still an entry.
    expected = ["first", "second", *(["torn"] if left == -1 else [])]
    with files.open(clock) as memory:
        assert [hit.memory.content for hit in memory.sessions.query("s", {"sort_by": "oldest"})] == expected
        memory.sessions.add("s", entry("next"))
        assert {hit.memory.content for hit in memory.sessions.query("s", {})} == {*expected, "next"}
    with files.open(clock) as memory:
        assert memory.sessions.load("s").total_entries == len(expected) + 1


@pytest.mark.clause("LED-19")
def test_case_4_a_corrupted_index_file_changes_no_answer(files: Files, clock: Clock) -> None:
    with session(files, clock) as memory:
        memory.sessions.add_many("s", [entry("one", tags=["t"]), entry("two", tags=["t"])])
        memory.sessions.rebuild_index("s")
    (files.session() / "index.json").write_bytes(b'{"version":1,"entries":{"mem_fake":')
    with files.open(clock) as memory:
        assert {hit.memory.content for hit in memory.sessions.search_by_topic("s", "t")} == {"one", "two"}


@pytest.mark.clause("LED-19")
def test_case_5_a_timestamp_in_the_future_counts_as_now(files: Files, clock: Clock) -> None:
    with session(files, clock) as memory:
        memory.sessions.add("s", entry("ahead", importance=0.5, timestamp=NOW + timedelta(days=3)))
        (hit,) = memory.sessions.query("s", {"text": "ahead"})
        assert hit.score == pytest.approx(0.5 * 1.0 * 1.5)
        clock.back(days=365)
        (hit,) = memory.sessions.query("s", {})
        assert hit.score == pytest.approx(0.5 * 1.0 * 1.5)
        assert len(memory.sessions.search_by_time_range("s", NOW, NOW + timedelta(days=4))) == 1
        memory.sessions.compact("s")
        assert len(memory.sessions.query("s", {})) == 1


@pytest.mark.clause("LED-19")
def test_case_6_unicode_and_special_characters_are_stored_and_found(files: Files, clock: Clock) -> None:
    texts = ["Ünïcödé ☃ 🦉", "日本語のメモ", "עברית", 'quotes " and \\ and \u0000', "line\nbreak\r\n\u2028"]
    with session(files, clock) as memory:
        memory.sessions.add_many("s", [entry(text) for text in texts])
    with files.open(clock) as memory:
        assert {hit.memory.content for hit in memory.sessions.query("s", {})} == set(texts)
        for words, text in (("ünïcödé", texts[0]), ("メモ", texts[1]), ("עברית", texts[2]), ("break", texts[4])):
            assert [hit.memory.content for hit in memory.sessions.query("s", {"text": words})] == [text]


@pytest.mark.clause("LED-19")
def test_case_7_an_entry_of_more_than_a_megabyte_is_refused(files: Files, clock: Clock) -> None:
    with session(files, clock) as memory:
        with pytest.raises(InputError, match=r"^content: 1,048,\d+ bytes is over the limit of 1,048,576 bytes"):
            memory.sessions.add("s", entry({"text": "x" * 1_048_570}))
        memory.sessions.add("s", entry("x" * 1_048_576))
        assert len(files.log()) == 1


@pytest.mark.clause("LED-19", "LED-15")
def test_case_8_circular_references_end(files: Files, clock: Clock) -> None:
    first, second = (json.loads(line) for line in SAMPLE.splitlines())
    third = {**second, "id": "mem_003", "references": ["mem_003", "mem_002"]}
    first["references"] = ["mem_003"]
    files.write("".join(json.dumps(line) + "\n" for line in (first, second, third)))
    with files.open(clock) as memory:
        for depth, expected in ((1, {"mem_002", "mem_003"}), (16, {"mem_002", "mem_003"})):
            hits = memory.sessions.query("s", {"references": ["mem_001"], "max_depth": depth})
            assert {hit.memory.id for hit in hits} == expected


@pytest.mark.clause("LED-19")
def test_case_9_deleting_what_is_not_there_changes_nothing(files: Files, clock: Clock) -> None:
    with session(files, clock) as memory:
        memory.sessions.add("s", entry())
        assert memory.sessions.delete("s", "mem_none") is False
        assert memory.sessions.delete_by_topic("s", "nothing") == 0
        assert files.log(file="tombstones.jsonl") == []
        with pytest.raises(NotFoundError, match="there is no session nobody"):
            memory.sessions.delete("nobody", "mem_none")


@pytest.mark.clause("LED-19")
def test_case_10_a_query_without_results_is_empty(files: Files, clock: Clock) -> None:
    with session(files, clock) as memory:
        assert memory.sessions.query("s", {"text": "owl"}) == []
        memory.sessions.add("s", entry())
        for wish in ({"text": "heron"}, {"tags": ["none"]}, {"types": ["decision"]}, {"time_range": "yesterday"}):
            assert memory.sessions.query("s", wish) == []
        assert memory.sessions.search("heron") == []


@pytest.mark.clause("LED-19")
@pytest.mark.parametrize("how", ["cut", "deleted"])
def test_entries_that_are_cut_from_the_audit_log_are_missed(tmp_path: Path, how: str) -> None:
    files = Files(tmp_path / "memory")
    with files.open() as memory:
        memory.sessions.create("u", session_id="s")
        for n in range(4):
            memory.sessions.add("s", entry(f"entry {n}"))
        assert not any(one.breaks for one in memory.at(workspace="s").audit.verify())
    log = files.session() / "audit.jsonl"
    if how == "cut":
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-2]))
    else:
        log.unlink()
    with files.open() as memory:
        assert any(one.breaks for one in memory.at(workspace="s").audit.verify())
        memory.sessions.add("s", entry("another"))
        assert any(one.breaks for one in memory.at(workspace="s").audit.verify())
