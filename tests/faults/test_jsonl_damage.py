"""Damaged, foreign and old files: what cannot be read is skipped and reported, the rest is served, writing goes on."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.jsonl import KINDS, Kept, copied

from recollect import Memory, SchemaError

pytestmark = pytest.mark.clause("LED-13")


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    """With three memories and some of everything else."""
    kept = Kept(request.param, tmp_path / "memory")
    fill(kept)
    return kept


def fill(kept: Kept) -> None:
    with kept.open() as memory:
        records = [memory.remember(f"heron number {n}", tags=["bird"]) for n in range(4)]
        memory.forget(records[3].id)
        memory.remember("an owl", embedding=[0.5, 0.25])
        memory.archive(memory.remember("a heron long gone").id)


HERONS = ["heron number 0", "heron number 1", "heron number 2", "an owl"]


def damages(kept: Kept) -> list[str]:
    with kept.open() as memory:
        found = {finding.problem: finding for finding in memory.doctor().findings if finding.severity == "error"}
    assert found.keys() <= {"corrupt"}
    return [*found["corrupt"].examples] if found else []


def goes_on(kept: Kept, expected: list[Any]) -> bool:
    """What is there is there, and what is added stays: a memory, a change, a deletion."""
    with kept.open() as memory:
        assert sorted(map(str, kept.contents())) == sorted(map(str, expected))
        gone, stays = memory.remember("a swan that leaves"), memory.remember("a swan")
        memory.forget(gone.id)
        memory.archive(stays.id)
        new = memory.remember("a stork", embedding=[1.0])
        assert memory.recall("stork")
    with kept.open() as memory:
        assert sorted(str(record.content) for record in memory.list()) == sorted([*map(str, expected), "a stork"])
        assert memory.get(stays.id).archived_at is not None
        assert memory.diagnose(gone.id).status == "forgotten"
        assert memory.get(new.id).floats == (1.0,)
        assert all(log.ok for log in memory.audit.verify())
    return True


@pytest.mark.clause("AEG-12")
@pytest.mark.clause("LED-19")
@pytest.mark.parametrize("kind", KINDS)
def test_a_last_line_torn_at_any_byte_takes_nothing_else_along(tmp_path: Path, kind: str) -> None:
    whole = Kept(kind, tmp_path / "whole")
    fill(whole)
    with whole.open() as memory:
        memory.remember("the last", tags=["bird"])
    data = whole.memories.read_bytes()
    start = data.rindex(b"\n", 0, -1) + 1
    for size in {*range(start, len(data), 7), *range(len(data) - 3, len(data))}:
        torn = copied(whole, tmp_path / "torn")
        torn.memories.write_bytes(data[:size])
        last = ["the last"] if size == len(data) - 1 else []
        assert torn.contents() == [*HERONS, *last]
        with torn.open() as memory:
            memory.remember("one more")
            assert [record.content for record in memory.list(newest_first=False)] == [*HERONS, *last, "one more"]
        assert torn.contents() == [*HERONS, *last, "one more"]
        lost = kind == "ledger" and size == start  # of a notebook a person may remove a line
        assert len(damages(torn)) == (lost or start < size < len(data) - 1)


@pytest.mark.clause("LED-19")
@pytest.mark.parametrize("name", ["changes.jsonl", "tombstones.jsonl", "vectors.jsonl", "undo.jsonl", "audit.jsonl"])
def test_a_torn_line_beside_the_memories_takes_nothing_along_that_comes_after_it(kept: Kept, name: str) -> None:
    path = kept.aside / name
    path.touch()
    with path.open("ab") as file:
        file.write(b'{"id":"half a li')
    assert goes_on(kept, HERONS)


@pytest.mark.parametrize(
    "line", [b"\0" * 200, b"garbage", b"{}", b"[]", b"null", b'{"id":1}', b"\xff\xfe\xfd", b"[" * 5000, b'"text"']
)
@pytest.mark.parametrize("where", ["start", "middle", "end"])
def test_a_line_that_is_no_entry_is_skipped_and_reported(kept: Kept, line: bytes, where: str) -> None:
    lines = kept.memories.read_bytes().splitlines(keepends=True)
    lines.insert({"start": 0, "middle": 2, "end": len(lines)}[where], line + b"\n")
    kept.memories.write_bytes(b"".join(lines))
    (damage,) = damages(kept)
    number = lines.index(line + b"\n") + 1
    assert damage.startswith(f"{kept.memories.name}, line {number}")
    assert goes_on(kept, HERONS)


@pytest.mark.clause("LED-18")
def test_a_byte_flipped_anywhere_in_a_line_of_a_ledger_is_found(tmp_path: Path) -> None:
    kept = Kept("ledger", tmp_path / "memory")
    fill(kept)
    data = kept.memories.read_bytes()
    start = data.index(b"\n") + 1
    key = data.index(b'"checksum"', start)
    for place in range(start, data.index(b"\n", start), 3):
        if key < place < key + 9:
            continue  # whoever has no checksum is believed, and here all but its name is as it was
        flipped = bytearray(data)
        flipped[place] ^= 1 << random.Random(place).randrange(8)
        if flipped[place] in b"\r\n":
            continue
        kept.memories.write_bytes(flipped)
        assert kept.contents() == [HERONS[0], *HERONS[2:]], f"byte {place}"
        assert len(damages(kept)) == 1
    kept.memories.write_bytes(flipped)
    assert goes_on(kept, [HERONS[0], *HERONS[2:]])


def test_a_byte_flipped_while_a_ledger_is_open_is_found_when_it_is_read(tmp_path: Path) -> None:
    kept = Kept("ledger", tmp_path / "memory")
    fill(kept)
    with kept.open() as memory:
        memory.stats()
        data = kept.memories.read_bytes()
        kept.memories.write_bytes(data.replace(b"heron number 1", b"heron number 7"))
        assert [record.content for record in memory.list(newest_first=False)] == [HERONS[0], *HERONS[2:]]
        assert not memory.doctor().ok


@pytest.mark.clause("LED-17")
@pytest.mark.clause("AEG-14")
def test_ends_of_lines_of_other_systems_and_blank_lines_do_no_harm(kept: Kept) -> None:
    for path in [kept.memories, *kept.aside.glob("*.jsonl")]:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n\r\n  \r\n\n"))
    assert damages(kept) == []
    assert goes_on(kept, HERONS)
    assert damages(kept) == []


def entry(ident: str, content: Any, **more: Any) -> dict[str, Any]:
    """As the ledger document's section 8.1 has it."""
    return {
        "id": ident,
        "session_id": "sess_001",
        "timestamp": "2026-01-10T10:00:00Z",
        "type": "conversation",
        "content": content,
        "importance": 0.5,
        "decay_factor": 1.0,
        "tags": [],
        "references": [],
    } | more


def note(ident: str, text: str, **more: Any) -> dict[str, Any]:
    return {"id": ident, "scope": "user", "text": text, "tags": ["bird"], "ts": "2026-01-10T10:00:00Z"} | more


def add(kept: Kept, *lines: dict[str, Any] | str) -> None:
    with kept.memories.open("a") as file:
        file.writelines((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)


@pytest.mark.clause("LED-18")
def test_lines_of_other_programs_count(kept: Kept) -> None:
    if kept.kind == "ledger":
        checked = entry("mem_2", {"message": "hi", "ä": "ß"}, schema_version=1)
        text = json.dumps(checked, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        seal = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
        add(kept, entry("mem_1", "theirs", schema_version=1, colour="red"), {"checksum": seal, **checked})
        add(kept, {**entry("mem_3", "forged", schema_version=1), "checksum": seal})
        theirs: list[Any] = ["theirs", {"message": "hi", "ä": "ß"}]
    else:
        add(kept, note("m-77", "theirs", colour="red"), '{ "ts": "2026-01-10T10:00:00+02:00", "text":"w", "id": "x" }')
        add(kept, note("m-78", ""), note("m-79", "no time", ts="yesterday"))
        theirs = ["theirs", "w"]
    assert len(damages(kept)) == (1 if kept.kind == "ledger" else 2)
    assert goes_on(kept, [*HERONS, *theirs])
    if kept.kind == "notebook":
        with kept.open() as memory:
            assert memory.remember("after theirs").id == "m-81"


def test_an_id_that_occurs_twice_is_kept_once_and_reported(kept: Kept) -> None:
    first = json.loads(kept.memories.read_bytes().splitlines()[0])
    copy = {key: value for key, value in first.items() if key != "checksum"}
    copy["content" if kept.kind == "ledger" else "text"] = "an impostor in its place"
    add(kept, copy)
    (damage,) = damages(kept)
    assert first["id"] in damage
    assert goes_on(kept, HERONS)


def test_the_same_line_twice_is_no_damage(kept: Kept) -> None:
    add(kept, kept.memories.read_text().splitlines()[0])
    assert damages(kept) == []
    assert goes_on(kept, HERONS)


@pytest.mark.clause("LED-22")
def test_an_entry_of_a_newer_schema_is_refused_and_not_touched(tmp_path: Path) -> None:
    kept = Kept("ledger", tmp_path / "memory")
    fill(kept)
    add(kept, entry("mem_1", "from the future", schema_version=2))
    before = kept.memories.read_bytes()
    with kept.open() as memory:
        for verb in (memory.list, memory.compact, lambda: memory.remember("a swan"), lambda: memory.recall("heron")):
            with pytest.raises(SchemaError, match="schema version 2"):
                verb()
    assert kept.memories.read_bytes() == before
    kept.memories.write_bytes(b"".join(before.splitlines(keepends=True)[:-1]))
    assert goes_on(kept, HERONS)


@pytest.mark.clause("LED-22")
def test_entries_without_a_schema_are_migrated_with_the_first_write(tmp_path: Path) -> None:
    kept = Kept("ledger", tmp_path / "memory")
    kept.memories.parent.mkdir(parents=True)
    add(kept, entry("mem_001", {"message": "Hello"}), entry("mem_002", {"message": "Hi!"}, references=["mem_001"]))
    before = kept.memories.read_bytes()
    with kept.open() as memory:
        assert [record.id for record in memory.list(newest_first=False)] == ["mem_001", "mem_002"]
        assert [hit.memory.id for hit in memory.recall("hello")] == ["mem_001"]
        assert memory.doctor().ok
        assert kept.memories.read_bytes() == before
        memory.remember("a swan")
        lines = [json.loads(line) for line in kept.memories.read_bytes().splitlines()]
        assert [line["schema_version"] for line in lines] == [1, 1, 1]
        assert all(line["checksum"].startswith("sha256:") for line in lines)
        assert memory.get("mem_002").references == ("mem_001",)
        assert memory.get("mem_002").content == {"message": "Hi!"}
    assert goes_on(kept, [{"message": "Hello"}, {"message": "Hi!"}, "a swan"])


FILES = ["changes.jsonl", "tombstones.jsonl", "vectors.jsonl", "undo.jsonl", "lock", "index.json", "metadata.json"]


@pytest.mark.clause("LED-19")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["missing", "empty", "garbage", "zeros", "a list", "half"])
def test_a_file_beside_the_memories_may_be_missing_or_unreadable(kept: Kept, name: str, how: str) -> None:
    path = kept.aside / name
    data = path.read_bytes() if path.exists() else b""
    path.unlink(missing_ok=True)
    if how != "missing":
        other = {"empty": b"", "garbage": b"\xfe garbage\n", "zeros": b"\0" * 999, "a list": b"[[1]]\n"}
        path.write_bytes(other.get(how, data[: len(data) // 2]))
    lost = {"changes.jsonl": ["a heron long gone"], "tombstones.jsonl": []}.get(name, [])
    if name == "tombstones.jsonl" and kept.kind == "ledger":
        lost = ["heron number 3"]  # nothing says any more that it was deleted
    found = kept.contents()
    assert [one for one in found if one not in lost] == HERONS
    assert goes_on(kept, found)


def test_a_missing_file_of_memories_is_an_empty_memory(kept: Kept) -> None:
    kept.memories.unlink()
    assert goes_on(kept, [])


def test_a_deletion_of_another_program_holds_for_all_versions(tmp_path: Path) -> None:
    kept = Kept("ledger", tmp_path / "memory")
    fill(kept)
    with kept.open() as memory:
        ident = memory.list(newest_first=False)[0].id
        with (kept.aside / "tombstones.jsonl").open("a") as file:
            file.write(json.dumps({"id": ident, "timestamp": "2026-01-10T10:00:00Z", "reason": "theirs"}) + "\n")
        assert memory.recall("heron number 0")[0].memory.id != ident
        assert damages(kept) == []
    assert goes_on(kept, HERONS[1:])


def rewritten(kept: Kept, memory: Memory, old: bytes, new: bytes) -> list[Any]:
    """What an open memory finds after somebody has written the file anew, in place."""
    memory.list()
    kept.memories.write_bytes(kept.memories.read_bytes().replace(old, new))
    return [record.content for record in memory.list(newest_first=False)]


@pytest.mark.clause("AEG-08")
@pytest.mark.parametrize("text", [b"hEron number 1", b"a longer heron number 1 than before", b"short"])
def test_what_a_person_writes_into_an_open_notebook_counts_at_once(tmp_path: Path, text: bytes) -> None:
    kept = Kept("notebook", tmp_path / "memory")
    fill(kept)
    with kept.open() as memory:
        found = rewritten(kept, memory, b"heron number 1", text)
        assert found == [HERONS[0], text.decode(), *HERONS[2:]]
        assert text.decode() in [hit.memory.content for hit in memory.recall(text.decode())]
        memory.remember("a swan")
    assert kept.contents() == [*found, "a swan"]
    assert damages(kept) == []


def test_a_folder_replaced_by_its_backup_while_open_is_the_one_that_counts(kept: Kept, tmp_path: Path) -> None:
    shutil.copytree(kept.root, tmp_path / "backup")
    with kept.open() as memory:
        memory.remember("a fox")
        shutil.rmtree(kept.root)
        shutil.copytree(tmp_path / "backup", kept.root)
        memory.remember("a lynx")
        assert [record.content for record in memory.list(newest_first=False)] == [*HERONS, "a lynx"]
    assert damages(kept) == []
    assert goes_on(kept, [*HERONS, "a lynx"])


def slips(kept: Kept) -> list[str]:
    """Lines by hand that cannot be read: of an id that nobody could name, and cut off."""
    if kept.kind == "ledger":
        return [
            json.dumps(entry("my note 1", "its id has blanks", schema_version=1)),
            '{"id":"n","content":"cut',
        ]
    return [json.dumps(note("my note 1", "its id has blanks")), '{"id":"n","text":"cut']


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_that_cannot_be_read_is_set_aside_and_named_until_a_person_removes_it(tmp_path: Path, kind: str) -> None:
    kept = Kept(kind, tmp_path / "memory")
    fill(kept)
    add(kept, *slips(kept))
    add(kept, entry("fine", "an old swan") if kind == "ledger" else note("fine", "an old swan"))
    with kept.open() as memory:
        new = memory.remember("a stork")  # brings an old ledger up to date
        memory.forget(new.id)  # writes a notebook anew
        for _ in range(2):
            assert len(memory.verify()) == 2
            memory.compact()
    assert kept.contents() == ["an old swan", *HERONS]
    assert (kept.aside / "unread.jsonl").read_text().splitlines() == slips(kept)
    first, second = damages(kept)
    assert first.startswith("unread.jsonl, line 1: ")
    assert "my note 1" in first
    assert "cut off" in second
    (kept.aside / "unread.jsonl").unlink()
    assert damages(kept) == []


def test_a_session_counts_what_was_set_aside(tmp_path: Path) -> None:
    kept = Kept("ledger", tmp_path / "memory")
    fill(kept)
    add(kept, *slips(kept))
    with kept.open() as memory:
        memory.sessions.compact("default")
        stats = memory.sessions.stats("default")
        assert [damage.where for damage in stats.corrupt] == ["unread.jsonl, line 1", "unread.jsonl, line 2"]
    assert json.loads((kept.aside / "metadata.json").read_text())["corrupt_entries"] == 2


def test_a_last_line_without_its_end_is_read_and_not_set_aside(kept: Kept) -> None:
    last = entry("fine", "a swan", schema_version=1) if kept.kind == "ledger" else note("fine", "a swan")
    with kept.memories.open("a") as file:
        file.write(json.dumps(last))
    with kept.open() as memory:
        memory.compact()
    assert damages(kept) == []
    assert kept.contents() == ["a swan", *HERONS]


@pytest.mark.parametrize("how", ["id", "text", "cut off"])
def test_nothing_that_was_set_aside_tells_of_what_was_erased(kept: Kept, how: str) -> None:
    with kept.open() as memory:
        secret = memory.remember("the heron nests at the north pier")
        mine = kept.memories.read_text().splitlines()[-1]
    key = "content" if kept.kind == "ledger" else "text"
    other = json.loads(mine)
    other.pop("checksum", None)
    add(kept, *slips(kept))
    add(
        kept,
        {
            "id": json.dumps({**other, "tags": 7, key: "in other words"}),
            "text": json.dumps({**other, "id": "in my own words", "tags": 7}),
            "cut off": mine[: mine.index("north") + 3],
        }[how],
    )
    with kept.open() as memory:
        memory.compact()
        assert len(memory.verify()) == 3
        memory.forget(secret.id, erase=True)
        assert len(memory.verify()) == 2
    assert (kept.aside / "unread.jsonl").read_text().splitlines() == slips(kept)


def test_what_was_forgotten_stays_so_when_the_tombstones_are_lost(tmp_path: Path) -> None:
    kept = Kept("ledger", tmp_path / "memory")
    with kept.open() as memory:
        heron, owl = (memory.remember(text) for text in ("a heron", "an owl"))
        memory.forget(owl.id)
    (stones,) = Path(kept.root).rglob("tombstones.jsonl")
    stones.write_bytes(b"")
    with kept.open() as memory:
        assert [record.id for record in memory.list(state=None)] == [heron.id]
        assert memory.recall("owl") == []
        assert "1 left out, which the audit log says were forgotten" in memory.verify()[0].problem
        assert not memory.doctor().ok
        fox = memory.remember("a fox")  # after which the tombstone is there again
    assert owl.id in stones.read_text()
    with kept.open() as memory:
        assert {record.id for record in memory.list(state=None)} == {heron.id, fox.id}
        assert memory.verify() == []


def test_entries_that_the_log_of_a_session_has_lost_are_reported(tmp_path: Path) -> None:
    kept = Kept("ledger", tmp_path / "memory")
    with kept.open() as memory:
        heron, owl = (memory.remember(text) for text in ("a heron", "an owl"))
    (log,) = Path(kept.root).rglob("memory.jsonl")
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    with kept.open() as memory:
        for _ in range(2):  # and once more after something was written
            (damage,) = memory.verify()
            assert "has lost 1, which the audit log says were stored" in damage.problem
            assert owl.id in damage.problem
            assert not memory.doctor().ok
            memory.remember("a fox")
        assert memory.get(heron.id).content == "a heron"


def test_what_another_program_deleted_is_no_loss_after_a_compaction(tmp_path: Path) -> None:
    kept = Kept("ledger", tmp_path / "memory")
    with kept.open() as memory:
        owl = memory.remember("an owl")
        memory.remember("a heron")
    (stones,) = Path(kept.root).rglob("tombstones.jsonl")
    stone = {"id": owl.id, "timestamp": "2026-01-10T14:23:45Z", "reason": "by hand"}
    stones.write_text(json.dumps(stone) + "\n")
    with kept.open() as memory:
        assert memory.verify() == []
        memory.compact()
        assert memory.verify() == []
        assert memory.doctor().ok
        assert len(memory.list()) == 1


def test_a_byte_order_mark_costs_no_line(kept: Kept) -> None:
    before = kept.contents()
    kept.memories.write_bytes(b"\xef\xbb\xbf" + kept.memories.read_bytes())
    assert kept.contents() == before
    assert goes_on(kept, before)


def test_fields_of_other_programs_survive_a_rewrite(kept: Kept) -> None:
    first, *rest = kept.memories.read_text().splitlines()
    line = {**json.loads(first), "mood": {"fine": True}}
    if "checksum" in line:
        fields = {name: value for name, value in line.items() if name != "checksum"}
        canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        line["checksum"] = "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
    kept.memories.write_text("\n".join([json.dumps(line), *rest]) + "\n")
    before = kept.contents()
    with kept.open() as memory:
        memory.remember("one more")
        memory.compact()
        assert memory.verify() == []
    assert json.loads(kept.memories.read_text().splitlines()[0])["mood"] == {"fine": True}
    assert kept.contents() == [*before, "one more"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_without_its_end_is_not_passed_over_when_we_append_behind_it(kind: str, tmp_path: Path) -> None:
    """Another program's last line may lack its end. What is appended makes it whole, and it counts."""
    kept = Kept(kind, tmp_path / "memory")
    with kept.open() as memory:
        memory.remember("the first heron")
        line = kept.memories.read_bytes().splitlines()[-1]
        other = json.loads(line)
        other.pop("checksum", None)
        other |= {"id": "m-77" if kind == "notebook" else "0" * 32}
        other |= {"text": "a heron by hand"} if kind == "notebook" else {"content": "a heron by hand"}
        with kept.memories.open("ab") as file:
            file.write(json.dumps(other).encode())
        memory.remember("the last heron")
        expected = ["a heron by hand", "the first heron", "the last heron"]
        assert sorted(record.content for record in memory.list()) == expected
    assert sorted(kept.contents()) == expected
    for path in kept.aside.glob("index.db*"):
        path.unlink()
    assert sorted(kept.contents()) == expected
