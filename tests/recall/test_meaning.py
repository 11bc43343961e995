"""Recall by meaning: what the vectors find, when they are made, and what may be asked of a recall."""

import gc
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.concepts import FILLER, Broken, Concepts, Floats, parts, texts
from support.hours import Hours
from support.stores import STORES, located

from recollect import Memory, ModelError, NotFoundError
from recollect.stores import open_store
from recollect.stores.port import Place


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


def place_of(memory: Memory) -> Place:
    return Place(memory.address.tenant, memory.address.workspace)


def eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


# When there are vectors


@pytest.mark.clause("INK-13")
def test_meaning_finds_what_shares_no_word_at_once_and_from_elsewhere(url: str) -> None:
    with Memory(url, embedder=Concepts()) as memory:
        memory.remember_many(FILLER)
        car = memory.remember("Ute sold her automobile")
        assert memory.recall("the car?")[0].memory.id == car.id
        with Memory(url, embedder=Concepts()) as other:
            assert other.recall("the car?")[0].memory.id == car.id
    idle = Concepts()
    with Memory(url, embedder=idle) as later:
        assert later.recall("the car?")[0].memory.id == car.id
        assert idle.embedded == []  # the vectors were stored, with the name of the model
        kept = later.get(car.id)
        assert (kept.embedding_model, len(kept.floats or ())) == ("concepts", 8)
    with Memory(url, embedder="none") as wordless:
        assert wordless.recall("the car?") == []
        assert texts(wordless.recall("automobile")) == ["Ute sold her automobile"]


def test_what_accounts_share_is_never_embedded(url: str) -> None:
    embedder = Concepts()
    with Memory(url, embedder=embedder) as memory:
        shared = memory.remember("The automobile is insured", tier="account")
        own = memory.remember("The vehicle is parked")
        memory.remember_many(FILLER)
        memory.embed()  # recall waits for vectors only as long as its preset says
        assert texts(memory.recall("car"))[0] == "The vehicle is parked"
        assert "The automobile is insured" not in texts(memory.recall("car"))
        assert texts(memory.recall("insured"))[0] == "The automobile is insured"
        kept = {one.text: one.embedding_model for one in memory.list()}
        assert (kept[shared.text], kept[own.text]) == (None, "concepts")
    assert "The automobile is insured" not in embedder.embedded


def test_superseded_and_forgotten_are_not_recalled_by_meaning(url: str) -> None:
    with Memory(url, embedder=Concepts()) as memory:
        memory.remember_many(FILLER)
        old = memory.remember("Ute drives a vehicle")
        gone = memory.remember("Ute sold her automobile")
        assert {old.id, gone.id} <= {hit.memory.id for hit in memory.recall("car")}
        new = memory.revise(old.id, content="Ute rides a dog")
        memory.forget(gone.id, erase=True)
        assert not {old.id, gone.id} & {hit.memory.id for hit in memory.recall("car", limit=100)}
        assert memory.recall("hound")[0].memory.id == new.id
        with pytest.raises(NotFoundError):
            memory.get(gone.id)


def test_erasing_removes_the_vector_from_the_disk(tmp_path: Path) -> None:
    text = "Ute's dog and car are at home with tea"
    vector = Concepts().embed_documents([text])[0].astype("<f4").tobytes()

    def kept() -> bool:
        return any(vector in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())

    with Memory(tmp_path, embedder=Concepts()) as memory:
        told = memory.remember(text)
        memory.recall("dog")
        assert kept()
        memory.forget(told.id, erase=True)
    assert not kept()


@pytest.mark.parametrize("after", [Concepts("other", 16), Concepts("other", 8), Concepts("concepts", 16)])
def test_a_changed_model_embeds_anew_and_recall_is_right_meanwhile(url: str, after: Concepts) -> None:
    with Memory(url, embedder=Concepts()) as memory:
        memory.remember_many([*FILLER, "Ute sold her automobile", "Max drinks a beverage", "Ada has a hound"])
        assert memory.recall("car")[0].memory.text == "Ute sold her automobile"
        half = open_store(url)
        some = memory.list()[:5]
        rows = after.embed_documents([record.text for record in some])
        made = {record.id: row.astype("<f4").tobytes() for record, row in zip(some, rows, strict=True)}
        half.embed(place_of(memory), after.model, made)
        half.close()
        with Memory(url, embedder=Broken(after.model, after.dimensions)) as broken:
            assert broken.recall("automobile")[0].memory.text == "Ute sold her automobile"
        with Memory(url, embedder=after) as changed:
            for question, answer in (("car", "Ute sold her automobile"), ("puppy", "Ada has a hound")):
                assert changed.recall(question)[0].memory.text == answer
            kept = changed.list()
            assert {(one.embedding_model, len(one.floats or ())) for one in kept} == {(after.model, after.dimensions)}
        assert memory.recall("car")[0].memory.text == "Ute sold her automobile"  # and back again


def test_one_memory_alone_is_found_by_meaning(url: str) -> None:
    with Memory(url, embedder=Concepts()) as memory:
        memory.remember("Ute sold her automobile", tags=["ute"])
        memory.embed()  # recall waits for vectors only as long as its preset says
        assert texts(memory.recall("car")) == ["Ute sold her automobile"]
        memory.remember_many(FILLER)
        memory.embed()
        assert texts(memory.recall("car", tags=["ute"])) == ["Ute sold her automobile"]


class Liar(Concepts):
    """Says one size and gives another."""

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        return super().embed_documents(texts)[:, :5]


def test_a_model_that_does_not_keep_its_word_is_asked_once(url: str) -> None:
    liar = Liar()
    with Memory(url, embedder=liar) as memory:
        memory.remember("Ute sold her automobile")
        assert texts(memory.recall("automobile")) == ["Ute sold her automobile"]
        assert memory.recall("car") == []
    assert len(liar.embedded) <= 2  # in the background, and by the recall that did not know of it yet


def test_a_model_that_fails_costs_nothing_but_the_meaning(url: str) -> None:
    with Memory(url, embedder=Broken()) as memory:
        memory.remember_many(FILLER)
        memory.remember("Ute sold her automobile")
        assert memory.recall("car") == []
        assert texts(memory.recall("automobile")) == ["Ute sold her automobile"]
    with Memory(url, embedder=Concepts()) as memory:
        assert memory.recall("car")[0].memory.text == "Ute sold her automobile"


CRASH = """
import os, sys, threading
from recollect import Memory
begun = threading.Event()
class Stuck:
    model, dimensions = "concepts", 8
    def embed_documents(self, texts):
        begun.set()
        threading.Event().wait()
    def embed_query(self, text): raise AssertionError
    def close(self): pass
memory = Memory(sys.argv[1], embedder=Stuck())
memory.remember("Ute sold her automobile")
begun.wait(60)
os._exit(0)
"""


@pytest.mark.clause("INK-15")
def test_a_crash_before_the_vector_loses_nothing(url: str, run: Callable[..., str]) -> None:
    run(CRASH, url)
    with Memory(url, embedder=Concepts()) as memory:
        assert [one.text for one in memory.list()] == ["Ute sold her automobile"]
        memory.remember_many(FILLER)
        assert memory.recall("car")[0].memory.text == "Ute sold her automobile"


@pytest.fixture
def hours() -> Iterator[Hours]:
    with pytest.MonkeyPatch.context() as patch:
        yield Hours(patch)


@pytest.mark.clause("INK-15")
def test_backfill_comes_after_a_minute_then_every_half_hour_and_is_fifty_a_run(url: str, hours: Hours) -> None:
    with Memory(url, embedder="none") as writer:
        for name in ("left", "right"):
            writer.at(workspace=name).remember_many([f"note {n}" for n in range(35)])
        writer.at(tenant="other", workspace="far").remember_many([f"note {n}" for n in range(35)])
        places = [writer.at(workspace="left"), writer.at(workspace="right"), writer.at(tenant="other", workspace="far")]

        def made() -> int:
            return sum(place.stats().embedded for place in places)

        with Memory(url, embedder=Concepts()):  # nothing is written or asked here
            for seconds, number in ((59.0, 0), (2.0, 50), (1798.0, 50), (3.0, 100), (1796.0, 100), (5.0, 105)):
                hours.pass_by(seconds)
                assert eventually(lambda number=number: made() == number)
                assert made() == number


class Gone(Concepts):
    """Its files were there, and are not any more."""

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        raise ModelError("model.onnx: no such file")


class Odd(Concepts):
    def embed_documents(self, texts: Sequence[str]) -> Floats:
        raise RuntimeError("something that no embedder should raise")


@pytest.mark.clause("INK-15")
@pytest.mark.parametrize("model", [Gone(), Odd(), "none", None])
def test_backfill_is_silent_without_a_model(
    url: str, hours: Hours, model: Any, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with Memory(url, embedder="none") as writer, Memory(url, embedder=model) as memory:
        writer.remember_many([f"note {n}" for n in range(5)])
        caplog.set_level("WARNING")
        for _ in range(3):
            hours.pass_by(1801.0)
        assert memory.remember("and still at work").text == "and still at work"
        assert memory.stats().embedded == 0
    assert capfd.readouterr().err == ""
    assert not caplog.records


def test_a_memory_that_nobody_holds_any_more_leaves_no_thread(tmp_path: Path) -> None:
    memory: Memory | None = Memory(tmp_path, embedder=Concepts())
    memory.remember("Ute sold her automobile")
    memory.recall("car")
    before, asking = threads("recollect-embedding"), threads("recollect-asking")[-1]
    assert before
    del memory
    gc.collect()
    assert eventually(lambda: len(threads("recollect-embedding")) < len(before))
    assert asking.is_alive()  # which ends after ten idle seconds, and holds nobody meanwhile


def threads(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


# What may be asked of a recall


def test_as_of_answers_as_at_that_time(url: str, clock: Any) -> None:
    with Memory(url, embedder=Concepts(), clock=clock) as memory:
        memory.remember_many(FILLER)
        first = memory.remember("Ute drives a car")
        shelved = memory.remember("Ute sold a vehicle")
        memory.recall("car")  # so that all have their vectors
        then = clock()
        clock.forward(days=1)
        second = memory.revise(first.id, content="Ute drives an automobile of red colour")
        memory.archive(shelved.id)
        third = memory.remember("Max has a car")

        def found(**at: Any) -> set[str]:
            some = {first.id, second.id, shelved.id, third.id}
            return some & {hit.memory.id for hit in memory.recall("vehicle", limit=20, **at)}

        assert found() == {second.id, third.id}
        assert found(as_of=then) == {first.id, shelved.id}
        assert found(as_of=then - timedelta(days=1)) == set()
        assert memory.get(shelved.id).access_count == 1


def test_why_not_says_what_kept_a_memory_out(url: str) -> None:
    with Memory(url, embedder=Concepts()) as memory:
        memory.remember_many(FILLER)
        best = memory.remember("car car", tags=["x"])
        double = memory.remember("Car  car")
        third = memory.remember("Ute sold her one vehicle and drinks tea")
        shelved = memory.remember("an old car")
        memory.archive(shelved.id)
        far = memory.list(limit=100)[-1]

        def why(ident: str, **how: Any) -> str:
            absence = memory.recall("car", why_not=ident, **how).absence
            assert absence is not None
            return absence.reason

        twins = {best.id: double.id, double.id: best.id}
        shown = memory.recall("car", limit=1)[0].memory.id
        assert why(shown) == "it was recalled, as number 1"
        assert why("0" * len(shown)) == "there is no such memory that this view can see"
        assert why(shelved.id) == "it is archived"
        assert why(third.id, tags=["x"]) == "it does not meet the condition: tags"
        assert why(twins[shown]) == f"it says the same as {shown}"
        assert why(third.id, limit=1).startswith("it comes 2 of 2 with ")
        assert why(far.id) == "it is too far from the question in words and meaning, or has no vector yet"
        assert memory.recall("car").absence is None
    with Memory(url, embedder="none") as memory:
        assert why(third.id) == "it has no word of the question, and there is no model to compare the meaning"


@pytest.mark.clause("INK-06")
@pytest.mark.parametrize("preset", ["recollect", "inklings"])
def test_recall_touches_and_rerank_orders(tmp_path: Path, clock: Any, preset: str) -> None:
    with Memory(tmp_path, preset=preset, embedder=Concepts(), clock=clock) as memory:
        told = [memory.remember(text) for text in ("a car", "an old car on the hill with tea", *FILLER)]
        clock.forward(hours=1)
        hits = memory.recall("vehicle", limit=2, rerank=lambda _, them: [float(len(text)) for text in them])
        assert hits[0].memory.id == told[1].id
        before = parts(next(hit for hit in memory.recall("vehicle", touch=False) if hit.memory.id == told[1].id))
        kept = before if preset == "recollect" else {}  # what is multiplied cannot be added to
        assert parts(hits[0]) == pytest.approx({**kept, "rerank": len(told[1].text)})
        assert hits[0].score == pytest.approx(sum(parts(hits[0]).values()))
        memory.recall("vehicle", limit=2, touch=False)
        assert (memory.get(told[1].id).access_count, memory.get(told[1].id).accessed_at) == (1, clock())
        assert sum(one.access_count for one in memory.list()) == 2
