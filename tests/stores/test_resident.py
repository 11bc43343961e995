"""The resident copy of a place stays what the place is, whoever writes to it, and goes when memory is short."""

import random
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from msgspec.structs import replace
from support.concepts import texts

from recollect import CorruptionError, Memory
from recollect.conformance.samples import DeliberateError, sample
from recollect.record import Record, pack
from recollect.stores import open_store
from recollect.stores.copies import Copies
from recollect.stores.corpus import Corpus
from recollect.stores.port import JournaledStore, Place
from recollect.stores.sqlite.folder import SqliteFolder

PLACE = Place("default", "default")


@pytest.fixture(params=["sqlite", "ledger", "notebook"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{request.param}:{tmp_path / 'memory'}"


def test_what_comes_in_place_of_the_newest_is_found(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember("the first owl")
        second = memory.remember("the second owl")
        assert set(texts(memory.recall("owl"))) == {"the first owl", "the second owl"}
        memory.forget(second.id)
        third = memory.remember("the third owl")
        assert set(texts(memory.recall("owl"))) == {"the first owl", "the third owl"}
        memory.forget(third.id)
        assert set(texts(memory.recall("owl"))) == {"the first owl"}
        memory.remember("the fourth owl")
        assert set(texts(memory.recall("owl"))) == {"the first owl", "the fourth owl"}


def shape(corpus: Corpus) -> dict[str, Any]:
    """All that a question may depend on, by id."""
    columns, vectors = corpus.columns, corpus.columns.vectors
    codes = {"tags": columns.tags, "speaker": columns.speakers, "kind": columns.kinds, "role": columns.roles}

    def one(at: int) -> dict[str, Any]:
        found: dict[str, Any] = {name: columns.column(name)[at].item() for name in ("created", "length", "importance")}
        found |= {name: bool(columns.column(name)[at]) for name in ("archived", "superseded")}
        found |= {name: kept.values[columns.column(name)[at]] for name, kept in codes.items()}
        steps = {name: int(columns.column(name)[at]) for name in ("before", "after")}
        found |= {name: columns.ids[step] if step >= 0 else None for name, step in steps.items()}
        if vectors is not None:
            found["vector"] = vectors.matrix[at].round(5).tolist() if vectors.has[at] else None
        return found

    return {columns.ids[at]: one(at) for at in np.flatnonzero(columns.column("alive")).tolist()}


def vector(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.3:
        return {}
    model, size = rng.choice([("m", 3), ("m", 3), ("other", 3)])
    return {"embedding": pack([rng.random() for _ in range(size)]), "embedding_model": model}


def fresh(rng: random.Random) -> Record:
    begin = rng.choice(["Ann: ", "Bob: ", ""])
    return sample(
        begin + " ".join(rng.choices("owl lynx hare".split(), k=rng.randint(1, 9))),
        conversation=rng.choice(["a", "b", None]),
        role=rng.choice(["user", None]),
        metadata=rng.choice([{}, {}, {"speaker": "Eve"}]),
        **vector(rng),
    )


def write(store: JournaledStore, rng: random.Random, known: list[Record]) -> None:
    """Something that leaves `known` as the store has it, also where it is taken back."""
    deed = rng.choice(["one", "many", "delete", "delete last", "update", "update", "fail"])
    if deed == "fail":
        with suppress(DeliberateError), store.transaction(PLACE):
            store.put([fresh(rng)])
            with store.corpus(PLACE, "m") as corpus:
                assert len(shape(corpus)) == len(known) + 1
            raise DeliberateError
    elif deed in ("one", "many") or not known:
        known += store.put([fresh(rng) for _ in range(1 if deed == "one" else 4)])
    elif deed == "update":
        at = rng.randrange(len(known))
        changes = {"importance": rng.random(), "tags": rng.choice([("x",), ()]), **vector(rng)}
        known[at] = replace(known[at], **changes)
        store.update([known[at]])
    else:
        store.delete([known.pop(-1 if deed == "delete last" else rng.randrange(len(known)))])


@pytest.mark.parametrize("seed", range(4))
def test_a_copy_kept_current_is_the_same_as_one_read_anew(url: str, seed: int) -> None:
    rng, known = random.Random(seed), list[Record]()
    with closing(open_store(url)) as here, closing(open_store(url)) as there:
        for step in range(80):
            write(rng.choice([here, there]), rng, known)
            if step % 5 == 4:
                with closing(open_store(url)) as anew, anew.corpus(PLACE, "m") as corpus:
                    expected = shape(corpus)
                assert expected.keys() == {record.id for record in known}
                for store in (here, there):
                    with store.corpus(PLACE, "m") as corpus:
                        assert with_speakers_of(shape(corpus), expected) == expected


@pytest.mark.parametrize("looked_at", [True, False])
def test_what_was_taken_back_is_as_it_was(url: str, looked_at: bool) -> None:
    with closing(open_store(url)) as store:
        first, second = store.put([sample("Ann: an owl", conversation="a"), sample("Bob: a lynx", conversation="a")])
        with store.corpus(PLACE, "m") as corpus:
            expected = shape(corpus)
        for deed in (lambda: store.update([replace(second, importance=0.9)]), lambda: store.delete([second])):
            with suppress(DeliberateError), store.transaction(PLACE):
                deed()
                if looked_at:
                    with store.corpus(PLACE, "m") as corpus:
                        assert shape(corpus) != expected
                raise DeliberateError
            with store.corpus(PLACE, "m") as corpus:
                assert shape(corpus) == expected
                found: set[str] = {corpus.columns.ids[at] for at in corpus.postings("lynx").tolist()}
                assert found == {second.id}
                assert set(corpus.texts(range(corpus.columns.size)[-1:]).values()) == {"Bob: a lynx"}
                assert first.id in shape(corpus)


def with_speakers_of(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """A name that was proven stays so, while a fresh copy may have lost the proof."""
    for ident, one in found.items():
        if one["speaker"] in ("ann", "bob"):
            one["speaker"] = expected[ident]["speaker"]
    return found


@pytest.mark.parametrize(("column", "wrong"), [("tags", "[1"), ("created_at", "noon")])
def test_a_row_that_cannot_be_read_is_told_and_read_again_once_it_can(tmp_path: Path, column: str, wrong: str) -> None:
    with closing(SqliteFolder(tmp_path)) as store:
        store.put([sample("an owl"), sample("a lynx")])
        with store.corpus(PLACE, None) as corpus:
            assert corpus.columns.size == 2
        broken = sample("a hare", tags=("x",))
        store.put([broken])
        other: Any = apsw.Connection(str(next(tmp_path.rglob("memory.db"))))
        ((right,),) = other.execute(f"SELECT {column} FROM memories WHERE id = ?", (broken.id,)).fetchall()
        other.execute(f"UPDATE memories SET {column} = ? WHERE id = ?", (wrong, broken.id))
        with pytest.raises(CorruptionError, match="cannot be read"), store.corpus(PLACE, None):
            pass
        other.execute(f"UPDATE memories SET {column} = ? WHERE id = ?", (right, broken.id))
        with store.corpus(PLACE, None) as corpus:
            assert len(shape(corpus)) == 3
        other.close()


# Memory


class Weight:
    def __init__(self, name: str) -> None:
        self.name, self.bytes = name, 10


def lend(copies: Copies[str, Weight], *names: str) -> None:
    for name in names:
        with copies.lent(name, Weight) as copy:
            assert copy.name == name


def test_the_copy_not_asked_for_longest_goes_first() -> None:
    copies: Copies[str, Weight] = Copies(30)
    lend(copies, "a", "b", "c", "a", "d")
    assert [name in copies for name in "abcd"] == [True, False, True, True]


def test_a_copy_in_use_stays_and_the_last_one_too() -> None:
    copies: Copies[str, Weight] = Copies(5)
    with copies.lent("a", Weight) as held:
        lend(copies, "b", "c")
        assert [name in copies for name in "abc"] == [True, False, True]
        with copies.lent("a", Weight) as again:
            assert again is held
        assert "a" in copies
    lend(copies, "d")
    assert [name in copies for name in "abcd"] == [False, False, False, True]


def test_a_copy_that_grew_while_it_was_used_makes_room_at_once() -> None:
    copies: Copies[str, Weight] = Copies(30)
    lend(copies, "a")
    with copies.lent("b", Weight) as copy:
        copy.bytes = 25
    assert ("a" in copies, "b" in copies) == (False, True)


@pytest.fixture
def crowded(url: str) -> Iterator[Any]:
    """A store with three workspaces of 200 memories, each with vectors."""
    with closing(open_store(url)) as store:
        for name in "abc":
            found = sample("an owl", workspace=name, embedding=pack([1.0] * 64), embedding_model="m")
            store.put([replace(found, id=sample().id) for _ in range(200)])
        yield store


def read(store: JournaledStore, *names: str) -> None:
    for name in names:
        with store.corpus(Place("default", name), "m") as corpus:
            assert len(shape(corpus)) == 200


def test_workspaces_beyond_the_limit_are_let_go_and_read_again(crowded: Any) -> None:
    read(crowded, "a", "b", "c")
    assert len(crowded.residents) == 3
    crowded.residents.most = 200_000  # each takes 51,200 bytes of vectors and half as much for its columns
    read(crowded, "a")
    assert len(crowded.residents) == 2
    read(crowded, "b", "c", "a")
    crowded.residents.most = 0
    read(crowded, "b")
    assert len(crowded.residents) == 1


def test_letting_go_disturbs_nobody(crowded: Any) -> None:
    crowded.residents.most = 0
    problems: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for name in random.Random(seed).choices("abc", k=40):
                read(crowded, name)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    read(crowded, "a")
    assert len(crowded.residents) == 1
