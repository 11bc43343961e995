"""Export and import: exact, whole or not at all, and harmless to repeat."""

import io
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.stores import DATABASES, located

from recollect import AccessError, ConflictError, InputError, Memory, Record, SecretError
from recollect.verbs.import_ import Imported

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(params=DATABASES)
def store(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def memory(store: str, tmp_path: Path) -> Iterator[Memory]:
    with Memory(located(store, tmp_path / "one"), clock=lambda: NOW) as memory:
        yield memory


@pytest.fixture
def other(store: str, tmp_path: Path) -> Iterator[Memory]:
    with Memory(located(store, tmp_path / "two"), clock=lambda: NOW + timedelta(days=400)) as memory:
        yield memory


def state(memory: Memory) -> list[Record]:
    return sorted(memory.list(state=None, limit=100_000), key=lambda one: one.id)


def exported(memory: Memory) -> bytes:
    out = io.BytesIO()
    memory.export(out)
    return out.getvalue()


def edited(memory: Memory, change: Callable[[dict[str, Any]], object]) -> io.BytesIO:
    """An export in which someone changed the first memory."""
    document = json.loads(exported(memory))
    change(document["memories"][0])
    return io.BytesIO(json.dumps(document).encode())


@pytest.fixture
def full(memory: Memory) -> Memory:
    """Memories with every field, of every tier, in every state."""
    me = memory.at(agent="atlas", account="ada")
    me.remember(
        {"build": {"status": "grün", "steps": [1, 2.5, None, True]}},
        kind="finding",
        importance=0.123456789,
        tags=["a.b", "größe"],
        role="tool_result",
        source="ci",
        conversation="c1",
        channel="ops",
        references=["abc"],
        metadata={"deep": {"er": ["x", {"y": 0.1}]}},
        embedding=[0.1, -2.5, 1e-20],
        embedding_model="mini",
    )
    memory.remember("line one\nline two\r\n\u2028 \x00 end", created_at="0001-01-01T00:00:00.000001Z")
    memory.remember("for the account", tier="account", lifetime="short_term", valid_from=NOW, valid_until="2027-01-01")
    memory.remember("for the talk", tier="conversation", conversation="c2", expires_at=NOW + timedelta(days=1))
    memory.archive(memory.remember("archived").id)
    memory.revise(memory.remember("old").id, content="new")
    memory.recall("line archived talk")
    return memory


@pytest.mark.clause("INK-21")
def test_everything_comes_back_exactly(tmp_path: Path, full: Memory, other: Memory) -> None:
    assert full.export(tmp_path / "export.json") == 7
    done = other.import_(tmp_path / "export.json")
    assert (done.added, done.unchanged) == (7, 0)
    assert state(other) == state(full)
    assert {one.access_count for one in state(other)} == {0, 1}
    assert any(one.embedding for one in state(other))
    assert [hit.memory.text for hit in other.recall("grün status", touch=False)] == [
        hit.memory.text for hit in full.recall("grün status", touch=False)
    ]
    assert exported(other).split(b"\n")[1:] == exported(full).split(b"\n")[1:]
    assert other.doctor().ok


@pytest.mark.clause("INK-21")
def test_an_export_is_one_json_document_with_a_schema_version(full: Memory) -> None:
    document = json.loads(exported(full))
    assert (document["format"], document["schema_version"]) == ("recollect", 1)
    assert document["exported_at"] == "2026-03-01T12:00:00Z"
    assert len(document["memories"]) == 7
    assert {one["schema_version"] for one in document["memories"]} == {1}
    assert len(exported(full).splitlines()) == 7 + 2


def test_a_document_in_one_piece_is_as_long_as_memory_allows(full: Memory, other: Memory) -> None:
    document = json.loads(exported(full))
    padded = json.dumps({"padding": "", **document}).replace('"padding": ""', f'"padding": "{"x" * (16 << 20)}"')
    with pytest.raises(InputError, match="at most 16,777,216 bytes"):
        other.import_(io.BytesIO(padded.encode()))
    assert other.stats().total == 0
    assert other.import_(io.BytesIO(json.dumps(document).encode())).added


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_any_layout_of_the_document_can_be_read(full: Memory, other: Memory, indent: int | None) -> None:
    document = json.dumps(json.loads(exported(full)), indent=indent, ensure_ascii=indent is None)
    assert other.import_(io.BytesIO(document.encode())).added == 7
    assert state(other) == state(full)


def test_windows_line_ends_and_an_empty_export_can_be_read(full: Memory, other: Memory) -> None:
    assert other.import_(io.BytesIO(exported(other))).added == 0
    assert other.import_(io.BytesIO(exported(full).replace(b"\n", b"\r\n"))).added == 7


def test_importing_again_adds_nothing(full: Memory, other: Memory) -> None:
    other.import_(io.BytesIO(exported(full)))
    first = next(one for one in state(other) if one.state(NOW) == "live")
    other.archive(first.id)
    before = state(other)
    done = other.import_(io.BytesIO(exported(full)))
    assert (done.added, done.unchanged) == (0, 7)
    assert state(other) == before


def test_what_is_missing_is_added(full: Memory, other: Memory) -> None:
    other.import_(io.BytesIO(exported(full)))
    later = full.remember("later")
    done = other.import_(io.BytesIO(exported(full)))
    assert (done.added, done.unchanged) == (1, 7)
    assert other.get(later.id) == later


def test_a_large_memory_goes_through_in_pieces(tmp_path: Path, memory: Memory, other: Memory) -> None:
    memory.remember_many(f"note number {number}" for number in range(5000))
    out, seen = [], []
    assert memory.export(tmp_path / "export.json", progress=out.append) == 5000
    assert out[0] < 5000
    assert out[-1] == 5000
    done = other.import_(tmp_path / "export.json", progress=seen.append)
    assert done.added == 5000
    assert seen == sorted(seen)
    assert seen[0] < 5000
    assert seen[-1] == 5000
    assert state(other) == state(memory)
    other.undo()
    assert other.stats().total == 0


class Pieces(io.RawIOBase):
    """A stream that is written to and never holds more than a piece."""

    def __init__(self) -> None:
        self.largest = self.total = 0

    def write(self, data: Any) -> int:
        self.largest, self.total = max(self.largest, len(data)), self.total + len(data)
        return len(data)


def test_an_export_is_written_as_a_stream(memory: Memory) -> None:
    memory.remember_many(f"note number {number} {'x' * 500}" for number in range(2000))
    out = Pieces()
    memory.export(out)  # type: ignore[arg-type]
    assert out.total > 1_000_000
    assert out.largest < 2_000


def test_a_view_exports_what_it_sees_and_leaves_the_stream_open(memory: Memory) -> None:
    memory.at(agent="ada").remember("of ada")
    memory.at(agent="bob").remember("of bob")
    memory.remember("shared")
    memory.at(workspace="shop").remember("in the shop")
    out = io.BytesIO()
    assert memory.at(agent="ada").export(out) == 2
    assert not out.closed
    assert {one["content"] for one in json.loads(out.getvalue())["memories"]} == {"of ada", "shared"}


def test_an_import_moves_to_the_tenant_and_workspace_of_the_view(memory: Memory) -> None:
    shop = memory.at(tenant="acme", workspace="shop")
    shop.remember_many(["an owl", {"content": "mine", "tier": "account"}])
    there = memory.at(tenant="umbrella", workspace="lab")
    there.import_(io.BytesIO(exported(shop)))
    assert {(one.address.tenant, one.address.workspace) for one in state(there)} == {
        ("umbrella", "lab"),
        ("umbrella", None),
    }
    assert {one.checksum for one in state(there)} == {one.checksum for one in state(shop)}


# Whole or not at all


def test_a_file_is_replaced_when_the_new_one_is_complete(tmp_path: Path, memory: Memory) -> None:
    memory.remember_many(f"note {number}" for number in range(2500))
    path = tmp_path / "out" / "export.json"
    path.parent.mkdir()
    path.write_text("the old one")

    def stop(count: int) -> None:
        assert [one.name for one in path.parent.iterdir() if one != path]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.export(path, progress=stop)
    assert path.read_text() == "the old one"
    assert list(path.parent.iterdir()) == [path]
    assert memory.export(path) == 2500
    assert list(path.parent.iterdir()) == [path]
    assert len(json.loads(path.read_bytes())["memories"]) == 2500


@pytest.mark.parametrize("target", ["missing/export.json", "."])
def test_a_target_that_cannot_be_written_is_named(tmp_path: Path, memory: Memory, target: str) -> None:
    memory.remember("an owl")
    with pytest.raises(InputError, match=r"^target: .*cannot be written"):
        memory.export(tmp_path / target)


@pytest.mark.parametrize("source", ["missing.json", ".", "nul\x00.json"])
def test_a_source_that_cannot_be_read_is_named(tmp_path: Path, memory: Memory, source: str) -> None:
    with pytest.raises(InputError, match=r"^source: (there is no file|.*cannot be read)"):
        memory.import_(f"{tmp_path}/{source}")


BAD: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda data: b"", "is not an export"),
    "no JSON": (lambda data: b"id,content\n1,owl\n", "is not an export"),
    "a list": (lambda data: b"[]", "is not an export"),
    "another document": (lambda data: b'{"name": "x", "version": 1}', "is not an export"),
    "another format": (lambda data: data.replace(b'"recollect"', b'"mem0"', 1), "its format is 'mem0'"),
    "newer": (lambda data: data.replace(b'version":1', b'version":2', 1), "schema version 2; .*upgrade"),
    "newer memory": (lambda data: b'version":9}'.join(data.rsplit(b'version":1}', 1)), "schema_version: 9 must be"),
    "cut off": (lambda data: data[:-3], "ends in the middle"),
    "cut in a line": (lambda data: data[: data.rindex(b'"tier"')], "line 8"),
    "cut in the head": (lambda data: data[:30], "is not an export"),
    "not UTF-8": (lambda data: data.replace(b"archived", b"arch\xff\xfeed"), "line"),
    "one letter": (lambda data: data.replace(b"for the talk", b"for the walk"), "does not match its checksum"),
    "another kind": (lambda data: data.replace(b'"kind":"finding"', b'"kind":"gossip!"'), "memory 2: kind: "),
    "another time": (lambda data: data.replace(b"0001-01-01", b"0002-01-01"), "does not match its checksum"),
    "very deep": (lambda data: data.replace(b'"for the talk"', b"[" * 100_000 + b"]" * 100_000), "line"),
    "deep document": (lambda data: data[: data.index(b"\n")] + b"[" * 200_000, "is not an export"),
}  # fmt: skip


@pytest.mark.clause("INK-21")
@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_is_refused_and_nothing_is_imported(full: Memory, other: Memory, what: str) -> None:
    damage, problem = BAD[what]
    data = damage(exported(full))
    assert data != exported(full)
    there = other.remember("there before")
    with pytest.raises(InputError, match=problem) as caught:
        other.import_(io.BytesIO(data))
    assert len(str(caught.value)) < 300
    assert state(other) == [there]
    (entry,) = other.audit.search(limit=1)
    assert (entry.action, entry.meta["verb"]) == ("refuse", "import")


FORGED: list[tuple[str, Any]] = [
    ("id", "../x"),
    ("id", "x" * 33),
    ("importance", 2),
    ("importance", "high"),
    ("tier", "galaxy"),
    ("role", "robot"),
    ("lifetime", "eternal"),
    ("tags", ["no tag"]),
    ("tags", "text"),
    ("references", ["../x"]),
    ("metadata", []),
    ("access_count", -1),
    ("access_count", 2**63),
    ("accessed_at", "2026-03-01T12:00:00"),
    ("accessed_at", "yesterday"),
    ("expires_at", "2026-03-01T12:00:00"),
    ("archived_at", "2026-03-01T14:00:00+02:00"),
    ("valid_from", "2026-03-01T14:00:00+02:00"),
    ("valid_until", "yesterday"),
    ("superseded_by", "../x"),
    ("source", "two\nlines"),
    ("embedding", "AAAA"),
    ("embedding", "AADAfw=="),
    ("embedding", "no base64!"),
    ("embedding_model", ""),
    ("schema_version", 2),
    ("content", ""),
    ("address", {"agent": "x\n"}),
    ("address", {"channel": ""}),
]


@pytest.mark.parametrize(("field", "value"), FORGED, ids=[f"{field}-{n}" for n, (field, _) in enumerate(FORGED)])
def test_a_forged_field_is_refused(memory: Memory, other: Memory, field: str, value: Any) -> None:
    memory.remember_many(["an owl", "a fox"])
    with pytest.raises(InputError, match=r"^source: memory 1: "):
        other.import_(edited(memory, lambda one: one.update({field: value})))
    assert other.stats().total == 0


@pytest.mark.clause("AEG-03")
@pytest.mark.parametrize("field", ["source", "tags", "metadata", "references", "address"])
def test_a_secret_does_not_come_in_with_an_import(memory: Memory, other: Memory, field: str) -> None:
    memory.remember("an owl")
    secret = "gh" + "p_a1B2c3D4e5F6g7H8"
    value = {
        "source": secret,
        "tags": [secret],
        "metadata": {"key": secret},
        "references": [secret],
        "address": {"conversation": secret},
    }[field]
    with pytest.raises(SecretError) as caught:
        other.import_(edited(memory, lambda one: one.update({field: value})))
    assert secret not in repr(caught.value)
    assert other.stats().total == 0


def test_the_same_id_with_other_content_is_a_conflict_and_nothing_is_imported(
    tmp_path: Path, memory: Memory, other: Memory
) -> None:
    memory.remember_many(f"note {number}" for number in range(1500))
    last = memory.remember("the last one")
    document = json.loads(exported(memory))
    with Memory(tmp_path / "three") as third:
        third.remember("something else")
        twin = json.loads(exported(third))
    twin["memories"][0]["id"] = last.id
    record = other_record(twin["memories"][0])
    twin["memories"][0]["checksum"] = record.digest()
    other.import_(io.BytesIO(json.dumps(twin).encode()))
    with pytest.raises(ConflictError, match=last.id):
        other.import_(io.BytesIO(json.dumps(document).encode()))
    assert [one.text for one in state(other)] == ["something else"]


def other_record(fields: dict[str, Any]) -> Record:
    import msgspec

    return msgspec.convert(fields, Record)


@pytest.mark.clause("ATL-18")
@pytest.mark.parametrize("part", ["agent", "account", "channel", "conversation"])
def test_a_view_takes_in_its_own_and_shared_memories_only(memory: Memory, other: Memory, part: str) -> None:
    tier: Any = part if part in ("channel", "conversation") else None
    ada, bob = memory.at(**{part: "ada"}), memory.at(**{part: "bob"})
    shared = memory.remember("shared")
    mine = ada.remember("of ada", tier=tier)
    bob.remember("of bob", tier=tier)
    with pytest.raises(AccessError, match="belongs to another agent, account, channel or conversation"):
        other.at(**{part: "ada"}).import_(io.BytesIO(exported(memory)))
    assert state(other) == []
    if part in ("agent", "account"):
        with pytest.raises(AccessError, match=f"is shared, and this view is bound to the {part} ada"):
            other.at(**{part: "ada"}).import_(io.BytesIO(exported(ada)))
        assert state(other) == []
        other.import_(io.BytesIO(exported(memory)))
        assert other.at(**{part: "ada"}).import_(io.BytesIO(exported(ada))) == Imported(0, 2)
        return
    other.at(**{part: "ada"}).import_(io.BytesIO(exported(ada)))
    assert state(other) == [shared, mine]


def test_an_import_obeys_the_limits_of_the_preset(memory: Memory, tmp_path: Path) -> None:
    memory.remember("x" * 501)
    with Memory(tmp_path / "n", preset="aegis") as notes:
        with pytest.raises(InputError, match="source: memory 1: 501 characters is over the limit of 500"):
            notes.import_(io.BytesIO(exported(memory)))
        assert notes.list() == []


def test_an_import_writes_no_history_for_what_is_there(memory: Memory, other: Memory) -> None:
    there = other.remember("what holds")
    memory.remember("forged")
    with pytest.raises(InputError, match=f"superseded_by {there.id} is not in the export"):
        other.import_(edited(memory, lambda one: one.update({"superseded_by": there.id})))
    assert [record.text for record in other.history(there.id)] == ["what holds"]


@pytest.mark.parametrize("name", [".out.json.{pid}.part", "out.json"])
def test_an_export_follows_no_link_that_somebody_put_there(tmp_path: Path, memory: Memory, name: str) -> None:
    memory.remember("an owl")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / name.format(pid=os.getpid())).symlink_to(victim)
    memory.export(tmp_path / "out.json")
    assert victim.read_text() == "precious"
    assert b"an owl" in (tmp_path / "out.json").read_bytes()


@pytest.mark.parametrize(
    ("ids", "following"),
    [
        (["a", "m-1"], "m-2"),
        (["note", "m-2"], "m-3"),
        (["m-5", "m-00007"], "m-6"),
        (["m-10", "m-5"], "m-11"),
        (["m-5", "m-5x", "M-7", "_"], "m-6"),
        (["m-99999999999999999999999", "m-5"], "m-6"),
    ],
)
def test_a_notebook_with_ids_by_hand_comes_back_as_it_was(tmp_path: Path, ids: list[str], following: str) -> None:
    lines = [json.dumps({"id": ident, "text": f"by hand {ident}", "ts": "2026-02-26T12:00:00Z"}) for ident in ids]
    (tmp_path / "one").mkdir()
    (tmp_path / "one/memories.jsonl").write_text("".join(line + "\n" for line in lines))
    with (
        Memory(f"notebook:{tmp_path / 'one'}", preset="aegis") as one,
        Memory(f"notebook:{tmp_path / 'two'}", preset="aegis") as two,
    ):
        assert two.import_(io.BytesIO(exported(one))) == Imported(len(ids), 0)
        assert state(two) == state(one)
        assert two.import_(io.BytesIO(exported(one))) == Imported(0, len(ids))
        two.forget(ids[0])
        two.undo()
        assert state(two) == state(one)
        assert two.remember("the next").id == one.remember("the next").id == following


def test_what_comes_from_elsewhere_gets_numbers_that_are_free(memory: Memory, tmp_path: Path) -> None:
    memory.remember("from elsewhere")
    with Memory(f"notebook:{tmp_path / 'notes'}", preset="aegis") as notes:
        notes.remember("m-1 is here")
        memory.import_(io.BytesIO(exported(notes)))
    with Memory(f"notebook:{tmp_path / 'others'}", preset="aegis") as notes:
        notes.import_(io.BytesIO(exported(memory)))
        assert {one.id: one.text for one in state(notes)} == {"m-1": "m-1 is here", "m-2": "from elsewhere"}
