"""The columns file beside a database: used only if it is of this database and whole, and erased with what is erased."""

import random
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from stores.test_columns import batch, in_conversation, memory
from support.concepts import CONCEPTS, FILLER, Concepts
from support.stores import FILES, located, traces

from recollect import Memory
from recollect.conformance.samples import sample
from recollect.memory import view_of
from recollect.stores import open_store
from recollect.stores.port import Place
from recollect.stores.resident import columns_file
from recollect.stores.resident.columns import Columns
from recollect.stores.resident.compacting import compacted
from recollect.stores.shortlist import Ask
from recollect.stores.sqlite import columns_writer
from recollect.text.query import TextQuery
from recollect.values.filters import Filter
from recollect.values.record import Address, utc_now

PLACE = Place("default", "default")
QUESTIONS = ["puppy on the shelf", "some drink", "home", "where is the wool?", "chess", "nothing of the kind"]


@pytest.fixture(params=FILES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "store" / "memory")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file for a few memories already, and after every change."""
    monkeypatch.setattr(columns_writer, "LEAST", 5)
    monkeypatch.setattr(columns_writer, "_BEHIND", 0)
    for name in ("DELAY", "_PAUSE", "_REST"):
        monkeypatch.setattr(columns_writer, name, 0.0)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each time that a file was looked for, whether it was used."""
    looked, load = list[bool](), columns_file.load

    def watched(*arguments: Any) -> Any:
        loaded = load(*arguments)
        looked.append(loaded is not None)
        return loaded

    monkeypatch.setattr(columns_file, "load", watched)
    return looked


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """What is answered where no file is read or written."""

    def answered(url: str) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(columns_file, "load", lambda *_: None)
            patch.setattr(columns_writer, "LEAST", 1 << 40)
            return answers(url)

    return answered


def answers(url: str, model: str = "concepts", dimensions: int = 8) -> Any:
    """What a memory that is opened anew answers. It leaves a file behind, if one is due."""
    with Memory(url, embedder=Concepts(model, dimensions)) as memory:
        made(memory)
        return [
            [(hit.memory.id, hit.memory.tags, round(hit.score, 5)) for hit in memory.recall(question, limit=50)]
            for question in QUESTIONS
        ]


def made(memory: Memory) -> None:
    embedding = view_of(memory).embedding
    assert embedding is not None
    embedding.finish(PLACE, lambda _: None)


def fill(url: str) -> None:
    with Memory(url, embedder=Concepts()) as memory:
        for number, concept in enumerate(CONCEPTS):
            for word in concept.split():
                memory.remember(f"Ann: the {word} of {number}", conversation=f"talk {number}", tags=[f"t{number}"])
        memory.remember_many(FILLER)
        made(memory)


def file_of(url: str) -> Path:
    (path,) = Path(url.partition(":")[2]).parent.rglob("*-columns")
    return path


def files(url: str) -> list[str]:
    return sorted(path.name for path in Path(url.partition(":")[2]).parent.rglob("*-columns*"))


def test_the_next_process_begins_with_the_file(url: str, used: list[bool], without: Callable[[str], Any]) -> None:
    fill(url)
    first = answers(url)
    assert len(files(url)) == 1
    assert not any(used)
    used.clear()
    assert answers(url) == first
    assert used == [True]
    assert without(url) == first
    assert any(first)


def test_a_small_place_has_none(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_writer, "LEAST", 1000)
    fill(url)
    answers(url)
    assert files(url) == []


CHANGES: dict[str, Callable[[Memory, str], Any]] = {
    "new": lambda memory, _: memory.remember("a hound is on shelf 99", conversation="talk 2"),
    "forgotten": lambda memory, ident: memory.forget(ident),
    "archived": lambda memory, ident: memory.archive(ident),
    "revised": lambda memory, ident: memory.revise(ident, content="the puppy that is at home", tags=["new"]),
    "undone": lambda memory, ident: (memory.forget(ident), memory.undo()),
    "the last ones": lambda memory, _: [memory.forget(record.id) for record in memory.list(limit=3)],
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_came_after_the_file_is_known(
    url: str, change: str, used: list[bool], without: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(url)
    answers(url)
    monkeypatch.setattr(columns_writer, "_BEHIND", 1000)
    with Memory(url, embedder=Concepts()) as memory:
        CHANGES[change](memory, memory.list(newest_first=False, limit=9)[-1].id)
        made(memory)
    used.clear()
    assert answers(url) == without(url)
    assert used[0]


@pytest.mark.parametrize("seed", range(3))
def test_any_changes_between_processes(url: str, seed: int, without: Callable[[str], Any]) -> None:
    fill(url)
    rng = random.Random(seed)
    for _ in range(5):
        with Memory(url, embedder=Concepts()) as memory:
            for _ in range(rng.randint(0, 4)):
                listed = memory.list(limit=1000)
                CHANGES[rng.choice([*CHANGES])](memory, rng.choice(listed).id)
                if rng.random() < 0.5:
                    memory.recall("puppy")
            made(memory)
        assert answers(url) == without(url)


def header_of(data: bytes) -> tuple[tuple[Any, ...], dict[str, Any]]:
    magic, version, length, crc = struct.unpack_from("<8sIII", data)
    return (magic, version, length, crc), msgspec.json.decode(data[20 : 20 + length])


def with_header(data: bytes, **fields: Any) -> bytes:
    """With a header that is right in itself."""
    (magic, version, length, _), header = header_of(data)
    encoded = msgspec.json.encode(header | {name: value for name, value in fields.items() if name != "version"})
    encoded = encoded.ljust(length)
    head = struct.pack("<8sIII", magic, fields.get("version", version), len(encoded), zlib.crc32(encoded))
    return (head + encoded).ljust(1 << 14, b"\0") + data[1 << 14 :]


def database_of(path: Path) -> str:
    return str(path).removesuffix("-columns")


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


def harms(data: bytes) -> Iterator[tuple[str, bytes]]:
    (_, _, length, _), header = header_of(data)
    parts: dict[str, list[Any]] = header["parts"]
    for size in (0, 1, 7, 19, 20, 20 + length // 2, 20 + length, 1 << 14, len(data) // 2, len(data) - 1):
        yield f"cut at {size}", data[:size]
    yield "longer", data + b"\0"
    for at in (0, 3, 8, 9, 12, 13, 16, 19, 20, 20 + length // 3, 19 + length):
        yield f"a bit of the header at {at}", flipped(data, at)
    for name, (offset, size, _) in parts.items():
        if size:
            yield f"a bit of {name}", flipped(data, offset + size // 2)
    yield "the future", with_header(data, version=columns_file.VERSION + 1)
    yield "the version before", with_header(data, version=columns_file.VERSION - 1)
    yield "another byte order", with_header(data, byte_order="big" if header["byte_order"] == "little" else "little")
    yield "another mark", with_header(data, mark=[header["mark"][0], header["mark"][1] ^ 1])
    yield "a mark to come", with_header(data, mark=[header["mark"][0] + 1, header["mark"][1]])
    yield "of zeros", bytes(len(data))
    yield "no file of ours", b"%PDF-1.7 " * 9000


@pytest.mark.parametrize("url", FILES[:1], indirect=True)
def test_what_is_damaged_or_of_others_is_made_anew(url: str, used: list[bool], without: Callable[[str], Any]) -> None:
    fill(url)
    right = answers(url)
    path = file_of(url)
    whole = path.read_bytes()
    for what, data in harms(whole):
        path.write_bytes(data)
        used.clear()
        # Whoever is to write one asks this, and would leave a damaged file where it is.
        if "mark" not in what:
            assert columns_file.header_of(database_of(path)) is None, what
        assert answers(url) == right, what
        assert used == [False], what
        used.clear()
        assert answers(url) == right, what
        assert used == [True], f"{what}: not made anew"
        path.write_bytes(whole)
    assert without(url) == right


def test_a_file_without_vectors_is_written_again_by_who_compares_them(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns_writer, "_BEHIND", 3)  # what it lacks of changes alone makes no other one due
    fill(url)
    with Memory(url, embedder="none") as memory:
        memory.recall("hound")
    header = columns_file.header_of(database_of(file_of(url)))
    assert header is not None
    assert header.model is None
    answers(url)
    header = columns_file.header_of(database_of(file_of(url)))
    assert header is not None
    assert header.model == "concepts"
    written = file_of(url).stat().st_mtime_ns
    with Memory(url, embedder="none") as memory:  # has no use for them, and leaves them there
        memory.recall("hound")
    assert file_of(url).stat().st_mtime_ns == written


def test_a_database_that_was_restored_does_not_take_the_newer_file(
    url: str, used: list[bool], without: Callable[[str], Any], tmp_path: Path
) -> None:
    root, saved = Path(url.partition(":")[2]).parent, tmp_path / "saved"
    fill(url)
    answers(url)
    shutil.copytree(root, saved)
    older = file_of(url)
    with Memory(url, embedder=Concepts()) as memory:
        memory.remember("a drink at home", tags=["later"])
        memory.forget(memory.list(newest_first=False)[0].id)
        made(memory)
    answers(url)
    newer = older.read_bytes()
    shutil.rmtree(root)
    shutil.copytree(saved, root)
    older.write_bytes(newer)
    used.clear()
    assert answers(url) == without(url)
    assert not used[0]
    # Another history of the same length.
    shutil.rmtree(root)
    shutil.copytree(saved, root)
    with Memory(url, embedder=Concepts()) as memory:
        memory.remember("a puppy in the house", tags=["otherwise"])
        memory.forget(memory.list(newest_first=False)[3].id)
        made(memory)
        older.write_bytes(newer)
    used.clear()
    assert answers(url) == without(url)
    assert not used[0]


def test_an_older_file_beside_a_newer_database_is_caught_up(url: str, without: Callable[[str], Any]) -> None:
    fill(url)
    answers(url)
    path = file_of(url)
    older = path.read_bytes()
    with Memory(url, embedder=Concepts()) as memory:
        memory.remember("a drink at home", tags=["later"])
        memory.forget(memory.list(newest_first=False)[0].id)
    answers(url)
    path.write_bytes(older)
    assert answers(url) == without(url)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_file_of_another_workspace_is_not_taken(url: str, used: list[bool], without: Callable[[str], Any]) -> None:
    fill(url)
    answers(url)
    with Memory(url, embedder=Concepts()) as memory:
        other = memory.at(workspace="another")
        other.remember_many(["one puppy", "two puppies", "a third", "a fourth", "a fifth", "a sixth"])
    path = file_of(url)
    shutil.copy(path, path.parent.parent / "another" / path.name)
    used.clear()
    with Memory(url, embedder=Concepts()) as memory:
        contents = {hit.memory.content for hit in memory.at(workspace="another").recall("puppy", limit=50)}
        assert contents <= {"one puppy", "two puppies", "a third", "a fourth", "a fifth", "a sixth"}
    assert not used[0]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_workspace_that_was_copied_with_its_file_goes_by_its_new_name(url: str, used: list[bool]) -> None:
    fill(url)
    answers(url)
    folder = file_of(url).parent
    shutil.copytree(folder, folder.with_name("renamed"))
    used.clear()
    with Memory(url, embedder=Concepts()) as memory:
        hits = memory.at(workspace="renamed").recall("puppy", conversation="talk 2")
        assert hits
        assert {hit.memory.address.workspace for hit in hits} == {"renamed"}
    assert used[0]


def test_it_may_be_deleted_while_it_is_used(url: str, without: Callable[[str], Any]) -> None:
    fill(url)
    answers(url)
    with Memory(url, embedder=Concepts()) as memory:
        memory.recall("puppy")
        file_of(url).unlink()
        memory.recall("some drink")
        memory.remember("the hound of all hounds")
        assert "the hound of all hounds" in [hit.memory.content for hit in memory.recall("hound of all", limit=50)]
    assert answers(url) == without(url)


def test_another_model_or_size_of_vectors_is_read_from_the_database(url: str, used: list[bool]) -> None:
    fill(url)
    first = answers(url)
    others = [answers(url, "another", 12), answers(url, "concepts", 9)]
    assert answers(url) == first
    assert [[len(hits) for hits in other] for other in others] == [[len(hits) for hits in first]] * 2
    with Memory(url, embedder="none") as memory:
        assert memory.recall("puppy")
    assert used[-1]


def test_transactions_see_what_they_have_changed(url: str, used: list[bool]) -> None:
    fill(url)
    answers(url)
    store = open_store(url)
    with store.transaction(PLACE):
        store.put(PLACE, [sample("an owl"), sample("a lynx")])
        where = Filter(seen_from=Address(), now=utc_now(), state=None)
        (answer,) = store.search(Ask(where, TextQuery(words=("owl",))))
        assert [len(at) for at in answer.words.values()] == [1]
    store.close()
    assert used[-1]


# Erasing

SECRETS = {"tag": "zanzibarnuts", "source": "quetzalcoatl", "conversation": "zugunruhe", "speaker": "honorificabilis"}


def tell(memory: Memory) -> list[str]:
    """Memories with names that no other has, and their ids."""
    told = [
        memory.remember(
            f"{SECRETS['speaker'].title()}: a puppy {number}",
            tags=[SECRETS["tag"]],
            source=SECRETS["source"],
            conversation=SECRETS["conversation"],
        )
        for number in range(3)
    ]
    return [record.id for record in told]


def held(path: Path, ids: list[str]) -> set[str]:
    data = path.read_bytes()
    return {word for word in (*SECRETS.values(), *ids) if word.encode() in data}


def test_what_is_erased_is_in_no_file(url: str) -> None:
    fill(url)
    with Memory(url, embedder=Concepts()) as memory:
        ids = tell(memory)
    answers(url)
    assert held(file_of(url), ids) == {*SECRETS.values(), *ids}
    left = f"{file_of(url)}-0123456789"  # of a writer that was killed
    shutil.copy(file_of(url), left)
    with Memory(url, embedder=Concepts()) as memory:
        memory.recall("puppy")
        assert memory.forget(ids, erase=True).erased
        assert files(url) == []
        assert traces(url, SECRETS["tag"].encode()) == []
        memory.recall("puppy")
    answers(url)
    assert held(file_of(url), ids) == set()


def test_who_knew_it_before_writes_nothing_of_it(url: str) -> None:
    fill(url)
    with Memory(url, embedder=Concepts()) as memory, Memory(url, embedder=Concepts()) as other:
        ids = tell(memory)
        for one in (memory, other):
            one.recall("puppy")
        assert memory.forget(ids, erase=True).erased
        other.recall("hound")
    assert held(file_of(url), ids) == set()


def test_a_file_that_is_being_written_while_something_is_erased_is_never_put_in_place(url: str) -> None:
    """Its writer has read what is erased, and has not finished when the receipt is given."""
    fill(url)
    with Memory(url, embedder=Concepts()) as memory:
        ids = tell(memory)
    answers(url)
    path = file_of(url)
    database = str(path).removesuffix("-columns")
    header = columns_file.header_of(database)
    loaded = columns_file.load(database, "default", "default", lambda _: True)
    assert header is not None
    assert loaded is not None
    for begun in ("nothing", "all"):
        writing = columns_file.begin(database)
        assert writing is not None
        if begun == "all":
            writing.write(loaded[1].copied(), lambda: False)
        with Memory(url, embedder="none") as memory:
            assert memory.forget(ids[:1], erase=True).erased
            ids = ids[1:]
        assert files(url) == []
        if begun == "nothing":
            writing.write(loaded[1].copied(), lambda: False)
        with pytest.raises(FileNotFoundError):
            writing.finish(header.rev, header.mark)
        writing.close()
        assert files(url) == []


def test_compacting_removes_it(url: str) -> None:
    fill(url)
    with Memory(url, embedder=Concepts()) as memory:
        ids = tell(memory)
        memory.recall("puppy")
        memory.forget(ids)
    answers(url)
    with Memory(url, embedder="none") as memory:
        memory.compact()
        assert files(url) == []


def test_a_backup_has_no_such_file(url: str, tmp_path: Path) -> None:
    fill(url)
    answers(url)
    with Memory(url, embedder=Concepts()) as memory:
        memory.backup(tmp_path / "backup")
    assert [path.name for path in (tmp_path / "backup").rglob("*-columns*")] == []


# Writing


def test_one_process_writes_at_a_time_and_what_a_killed_one_left_is_cleared_away(url: str) -> None:
    fill(url)
    answers(url)
    database = str(file_of(url)).removesuffix("-columns")
    writing = columns_file.begin(database)
    assert writing is not None
    assert columns_file.begin(database) is None
    assert len(files(url)) == 2
    left = next(path for path in Path(database).parent.iterdir() if "-columns-" in path.name)
    data = left.read_bytes()
    writing.close()
    left.write_bytes(data + b"half a file")
    again = columns_file.begin(database)
    assert again is not None
    assert not left.exists()
    again.close()
    assert len(files(url)) == 1


def test_nothing_is_left_of_one_that_cannot_be_written(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(url)

    def refused(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(columns_file.Writing, "finish", refused)
    right = answers(url)
    assert files(url) == []
    assert answers(url) == right


def test_columns_without_what_is_gone_are_as_if_it_had_never_been() -> None:
    rng = random.Random(4)
    for _ in range(30):
        all_of_them = [
            memory(key, who=in_conversation(rng.choice([None, "a", "b", "c"])), tags=rng.choice([(), ("x",), ("y",)]))
            for key in range(1, 40)
        ]
        gone = {one["key"] for one in rng.sample(all_of_them, rng.randint(0, 39))}
        made_of_all, made_of_the_rest = Columns(), Columns()
        made_of_all.extend(batch(all_of_them))
        for key in gone:
            made_of_all.remove(key)
        made_of_the_rest.extend(batch([one for one in all_of_them if one["key"] not in gone]))
        copied = compacted(made_of_all.copied())
        restored, expected = Columns.restored(copied, len(copied.ids)), made_of_the_rest
        for columns in (restored, expected):
            columns.extend(batch([memory(50, who=in_conversation("a")), memory(51, who=in_conversation("d"))]))
        assert list(restored.ids) == list(expected.ids)
        for name in ("before", "after", "conversation", "key", "alive", "created", "importance"):
            assert restored.column(name).tolist() == expected.column(name).tolist(), name
        for column, codes in (("who", "who"), ("tags", "tags"), ("kind", "kinds"), ("speaker", "speakers")):
            values = [
                [getattr(columns, codes).values[code] for code in columns.column(column)]
                for columns in (restored, expected)
            ]
            assert values[0] == values[1]
        assert {*restored.tags.values[: len(copied.values["tags"])]} == {
            one["tags"] for one in all_of_them if one["key"] not in gone
        }
