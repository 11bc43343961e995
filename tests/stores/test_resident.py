"""The resident copy of a place stays what the place is, whoever writes to it, and goes when memory is short."""

import random
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support.common import LONG
from support.concepts import texts
from support.stores import FILES, STORES, located

from recollect import ConflictError, CorruptionError, Memory, NotFoundError
from recollect.conformance.samples import NOW, DeliberateError, sample
from recollect.stores import open_store
from recollect.stores.port import Place, Store
from recollect.stores.resident.cache import ResidentCache
from recollect.stores.shortlist import Ask
from recollect.stores.sqlite.store import SqliteStore
from recollect.text.query import TextQuery
from recollect.values.filters import Filter
from recollect.values.record import Address, Record, pack

PLACE = Place("default", "default")


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


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


ANY = Filter(seen_from=Address(), now=NOW, state=None, tiers=("workspace",))
ASK = Ask(ANY, TextQuery(words=("owl", "lynx", "hare")), pack([0.6, 0.8, 0.0]), "m")


def shape(store: Store, name: str = "default") -> dict[str, Any]:
    """All that a question may depend on, by id."""
    where = replace(ANY, seen_from=Address(workspace=name))
    answers = store.search(replace(ASK, where=where))
    if not answers:
        return {}
    (answer,) = answers
    block, cosine = answer.block, answer.cosine
    words = {word: set(at.tolist()) for word, at in answer.words.items()}
    masks = [store.search(replace(ASK, where=replace(where, tags=tags)))[0].seen.mask for tags in ((), ("x",))]
    important = store.search(replace(ASK, where=replace(where, min_importance=0.5)))[0].seen.mask

    def seen(at: int) -> dict[str, Any]:
        likeness = None if cosine is None or np.isnan(cosine[at]) else round(float(cosine[at]), 5)
        steps = {name: int(getattr(block, name)[at]) for name in ("before", "after")}
        return {
            "created": int(block.created[at]),
            "length": int(block.length[at]),
            "speaker": block.speakers[int(block.speaker[at])],
            "words": sorted(word for word, positions in words.items() if at in positions),
            "tagged": [bool(mask[at]) for mask in masks],
            "important": bool(important[at]),
            "cosine": likeness,
            **{name: block.ids[step] if step >= 0 else None for name, step in steps.items()},
        }

    return {block.ids[at]: seen(at) for at in np.flatnonzero(answer.seen.mask).tolist()}


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


def write(store: Store, rng: random.Random, known: list[Record]) -> None:
    """Something that leaves `known` as the store has it, also where it is taken back."""
    deed = rng.choice(["one", "many", "delete", "delete last", "update", "update", "fail"])
    if deed == "fail":
        with suppress(DeliberateError), store.transaction(PLACE):
            store.put(PLACE, [fresh(rng)])
            assert len(shape(store)) == len(known) + 1
            raise DeliberateError
    elif deed in ("one", "many") or not known:
        known += store.put(PLACE, [fresh(rng) for _ in range(1 if deed == "one" else 4)])
    elif deed == "update":
        at = rng.randrange(len(known))
        known[at] = replace(known[at], importance=rng.random(), tags=rng.choice([("x",), ()]))
        store.update(PLACE, [known[at]])
        if new := vector(rng):
            store.embed(PLACE, new["embedding_model"], {known[at].id: new["embedding"]})
    else:
        store.delete(PLACE, [known.pop(-1 if deed == "delete last" else rng.randrange(len(known))).id])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("url", FILES, indirect=True)
def test_a_copy_kept_current_is_the_same_as_one_read_anew(url: str, seed: int) -> None:
    rng, known = random.Random(seed), list[Record]()
    with closing(open_store(url)) as here, closing(open_store(url)) as there:
        for step in range(80):
            write(rng.choice([here, there]), rng, known)
            if step % 5 == 4:
                with closing(open_store(url)) as anew:
                    expected = shape(anew)
                assert expected.keys() == {record.id for record in known}
                for store in (here, there):
                    assert shape(store) == expected


@pytest.mark.parametrize("looked_at", [True, False])
@pytest.mark.parametrize("url", FILES, indirect=True)
def test_what_was_taken_back_is_as_it_was(url: str, looked_at: bool) -> None:
    with closing(open_store(url)) as store:
        turns = [sample("Ann: an owl", conversation="a"), sample("Bob: a lynx", conversation="a")]
        _, second = store.put(PLACE, turns)
        expected = shape(store)
        deeds = (
            lambda: store.update(PLACE, [replace(second, importance=0.1)]),
            lambda: store.delete(PLACE, [second.id]),
        )
        for deed in deeds:
            with suppress(DeliberateError), store.transaction(PLACE):
                deed()
                if looked_at:
                    assert shape(store) != expected
                raise DeliberateError
            assert shape(store) == expected


@pytest.mark.parametrize("url", FILES, indirect=True)
def test_what_was_forgotten_counts_for_nothing_in_other_scores(url: str) -> None:
    with Memory(url, embedder="none", preset="recollect") as memory:
        view = memory.at(account="ann")
        view.remember("start")
        assert not view.recall("alpha")
        gone = view.remember("gone")
        assert not view.recall("alpha")
        view.forget(gone.id)
        assert not view.recall("alpha")
        view.remember("alpha one two three four five six")
        for number in range(6):
            view.remember(f"alpha beta gamma {number}", tier="account")
        assert explained(view) == explained_anew(url)


def explained(view: Memory) -> list[tuple[str, str]]:
    hits = view.recall("What did Ann say of alpha beta?", limit=50)
    return sorted((hit.memory.text, str(hit.explain())) for hit in hits)


def explained_anew(url: str) -> list[tuple[str, str]]:
    with Memory(url, embedder="none", preset="recollect", clock=lambda: NOW) as anew:
        return explained(anew.at(account="ann"))


_STEPS = st.tuples(
    st.sampled_from(("remember", "remember", "remember", "forget", "forget", "revise", "archive", "undo")),
    st.sampled_from(("alpha", "Ann: alpha", "Ann: beta", "alpha beta gamma", "delta epsilon")),
    st.sampled_from((None, "a", "b")),
    st.booleans(),
    st.sampled_from((0, 0, 1, 5)),
    st.booleans(),
)


@pytest.mark.parametrize("kind", FILES)
@settings(max_examples=500 if LONG else 10)
@given(steps=st.lists(_STEPS, min_size=20, max_size=30))
def test_scores_after_any_changes_are_those_of_a_memory_opened_anew(
    kind: str, steps: list[tuple[str, str, str | None, bool, int, bool]]
) -> None:
    with TemporaryDirectory() as folder:
        url = located(kind, Path(folder) / "memory")
        with Memory(url, embedder="none", preset="recollect", clock=lambda: NOW) as memory:
            view = memory.at(account="ann")
            for number, (deed, text, talk, shared, which, asks) in enumerate(steps):
                do(view, deed, f"{text} {number}", talk, shared, which)
                if asks:
                    explained(view)
            assert explained(view) == explained_anew(url)


def do(view: Memory, deed: str, text: str, talk: str | None, shared: bool, which: int) -> None:
    """The last of the memories are the likelier to go: what is cut off at the end is numbered anew."""
    known = view.list(limit=10)
    if deed == "undo":
        with suppress(NotFoundError, ConflictError):
            view.undo()
    elif deed == "remember":
        place = view if talk is None or shared else view.at(conversation=talk)
        place.remember(text, tier="account" if shared else "workspace")
    elif known:
        chosen = known[which % len(known)].id
        if deed == "forget":
            view.forget(chosen)
        elif deed == "revise":
            view.revise(chosen, content=text)
        else:
            view.archive(chosen)


@pytest.mark.parametrize(("column", "wrong"), [("tags", "[1"), ("created_at", "noon")])
def test_a_row_that_cannot_be_read_is_told_and_read_again_once_it_can(tmp_path: Path, column: str, wrong: str) -> None:
    with closing(SqliteStore(tmp_path)) as store:
        store.put(PLACE, [sample("an owl"), sample("a lynx")])
        assert len(shape(store)) == 2
        broken = sample("a hare", tags=("x",))
        store.put(PLACE, [broken])
        other: Any = apsw.Connection(str(next(tmp_path.rglob("memory.db"))))
        ((right,),) = other.execute(f"SELECT {column} FROM memories WHERE id = ?", (broken.id,)).fetchall()
        other.execute(f"UPDATE memories SET {column} = ? WHERE id = ?", (wrong, broken.id))
        if column == "tags":  # whoever reads that row leaves it out
            assert len(shape(store)) == 3
        else:
            with pytest.raises(CorruptionError, match="cannot be read"):
                shape(store)
        other.execute(f"UPDATE memories SET {column} = ? WHERE id = ?", (right, broken.id))
        assert len(shape(store)) == 3
        other.close()


# Memory


class Weight:
    def __init__(self, name: str) -> None:
        self.name, self.bytes, self.closed = name, 10, False

    def close(self) -> None:
        self.closed = True


def ask(copies: ResidentCache[str, Weight], *names: str) -> list[Weight]:
    asked: list[Weight] = []
    for name in names:
        asked.append(copies.get(name, lambda name=name: Weight(name)))
        assert asked[-1].name == name
        copies.make_room()
    return asked


def test_the_copy_not_asked_for_longest_goes_first_and_is_closed() -> None:
    copies: ResidentCache[str, Weight] = ResidentCache(30)
    weights = ask(copies, "a", "b", "c", "a", "d")
    assert [name in copies for name in "abcd"] == [True, False, True, True]
    assert [weight.closed for weight in weights] == [False, True, False, False, False]
    copies.drop("c")
    assert weights[2].closed
    copies.clear()
    assert len(copies) == 0
    assert all(weight.closed for weight in weights)


def test_the_last_one_stays_however_large_it_is() -> None:
    copies: ResidentCache[str, Weight] = ResidentCache(5)
    ask(copies, "a", "b")
    assert [name in copies for name in "ab"] == [False, True]


@pytest.fixture
def crowded(url: str) -> Iterator[Any]:
    """A store with three workspaces of 200 memories, each with vectors."""
    with closing(open_store(url)) as store:
        for name in "abc":
            owl = sample("an owl", workspace=name, embedding=pack([1.0] * 64), embedding_model="m")
            store.put(Place("default", name), [replace(owl, id=sample().id) for _ in range(200)])
        yield store


def read(store: Store, *names: str) -> None:
    for name in names:
        where = replace(ANY, seen_from=Address(workspace=name))
        (answer,) = store.search(replace(ASK, where=where, vector=pack([1.0] * 64)))
        assert answer.whole.compared == 200


@pytest.mark.parametrize("url", FILES, indirect=True)
def test_workspaces_beyond_the_limit_are_let_go_and_read_again(crowded: Any) -> None:
    read(crowded, "a", "b", "c")
    assert len(crowded.residents) == 3
    crowded.residents.most = 90_000  # each takes 12,800 bytes of vectors and twice as much for its columns
    read(crowded, "a")
    assert len(crowded.residents) == 2
    read(crowded, "b", "c", "a")
    crowded.residents.most = 0
    read(crowded, "b")
    assert len(crowded.residents) == 1


@pytest.mark.parametrize("url", FILES, indirect=True)
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
