"""How long a recall waits for a model: never for one that does not answer, and it says what it went without."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from support.concepts import FILLER, Concepts, Floats, texts
from support.hours import Hours
from support.stores import STORES, located
from support.watchdog import together

from recollect import InputError, Memory, ModelError
from recollect.aio import AsyncMemory
from recollect.cli.app import cli
from recollect.presets import Preset, load

pytest_plugins = ["support.model_files"]


class Held(Concepts):
    """Answers questions, and makes vectors, when it is let."""

    def __init__(self, *, questions: bool = True, documents: bool = True) -> None:
        super().__init__()
        self.asked = 0
        self.questions, self.documents = threading.Event(), threading.Event()
        if questions:
            self.questions.set()
        if documents:
            self.documents.set()

    def embed_query(self, text: str) -> Floats:
        self.asked += 1
        self.questions.wait(60)
        return super().embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        self.documents.wait(60)
        return super().embed_documents(texts)


def patient(seconds: float, name: str = "recollect") -> Preset:
    rules = load(name)
    return replace(rules, recall=replace(rules.recall, patience=seconds))


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


@pytest.fixture
def hours() -> Iterator[Hours]:
    with pytest.MonkeyPatch.context() as patch:
        yield Hours(patch)


def eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_a_model_that_does_not_answer_is_not_waited_for_again(url: str) -> None:
    held = Held(questions=False)
    with Memory(url, preset=patient(0.05), embedder=held) as memory:
        memory.remember("Ute sold her automobile")
        first = memory.recall("automobile")
        assert texts(first) == ["Ute sold her automobile"]
        assert first.report == "by words alone: concepts: no answer within 0.05 s"
        for _ in range(20):
            assert memory.recall("car").report == first.report
        assert held.asked == 1
        held.questions.set()  # the late answer is what brings it back
        assert eventually(lambda: memory.recall("car").report == "")
        assert texts(memory.recall("car")) == ["Ute sold her automobile"]


class Failing(Concepts):
    def __init__(self) -> None:
        super().__init__()
        self.asked, self.well = 0, False

    def embed_query(self, text: str) -> Floats:
        self.asked += 1
        if not self.well:
            raise ModelError("the line is dead")
        return super().embed_query(text)


def test_a_model_that_failed_is_left_alone_ever_longer_and_asked_in_the_background(
    tmp_path: Path, hours: Hours, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "recollect.models.vectors")
    with Memory(tmp_path, embedder=Concepts()) as memory:  # a vector made now would bring the model back at any time
        memory.remember("Ute sold her automobile")
        memory.embed()
    failing = Failing()

    def failed(times: int) -> bool:
        """Told once the next pause has begun, which is later than when the model was asked."""
        return sum("no vectors for now" in message for message in caplog.messages) == times

    with Memory(tmp_path, preset=patient(60.0), embedder=failing) as memory:
        assert memory.recall("car").report == "by words alone: concepts: the line is dead"
        for number, pause in enumerate((5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0), 1):
            assert failed(number)
            hours.pass_by(pause - 1.0)
            assert memory.recall("car").report
            assert failing.asked == number
            hours.pass_by(1.5)
            assert memory.recall("car").report, "whoever asks does not wait for it"
            # Asked again and again: the one before may not have made way for it yet.
            assert eventually(lambda number=number: bool(memory.recall("car").report) and failed(number + 1))
            assert failing.asked == number + 1
        failing.well = True
        hours.pass_by(301.0)
        assert eventually(lambda: memory.recall("car").report == "")
        assert texts(memory.recall("car")) == ["Ute sold her automobile"]


class Mute(Concepts):
    """Makes no vectors of memories until it is well."""

    well = False

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        if not self.well:
            raise ModelError("overloaded")
        return super().embed_documents(texts)


def test_vectors_that_failed_are_made_later_though_nobody_asks(url: str, hours: Hours) -> None:
    mute = Mute()
    with Memory(url, embedder=mute) as memory:
        memory.remember("Ute sold her automobile")
        hours.pass_by(1.0)
        mute.well = True
        for _ in range(3):
            hours.pass_by(5.0)
        assert eventually(lambda: memory.stats().embedded == 1)


def test_a_recall_does_not_wait_for_a_backlog_and_says_how_long_it_is(url: str) -> None:
    held = Held(documents=False)
    with Memory(url, embedder=held) as memory:
        memory.remember_many([f"{text} {n}" for n in range(10) for text in FILLER] + ["Ute sold her automobile"])
        answers: list[Any] = []
        together(*[lambda: answers.append(memory.recall("automobile"))] * 8)
        assert {hits.pending for hits in answers} == {91}
        held.documents.set()
        assert memory.embed() <= 91  # the worker may have made some already, or all
        assert memory.recall("automobile").pending == 0
        held.documents.clear()
        memory.remember_many([f"{text} again {n}" for n in range(10) for text in FILLER])
        hits = memory.recall("car")
        assert (hits.pending, hits[0].memory.text) == (90, "Ute sold her automobile")
        assert hits.report == "90 of 181 memories have no vector yet: those are found by words"
        held.documents.set()
        memory.embed()
        assert memory.recall("car").report == ""


def test_a_memory_without_a_vector_is_compared_with_its_like(url: str) -> None:
    """The same words as one that has a vector, and more of them: it must not lose for the lack of one."""
    held = Held()
    with Memory(url, embedder=held) as memory:
        memory.remember_many([*FILLER, "a vehicle of old", "the dog sleeps", "the red car of Max", "my car"])
        memory.embed()
        held.documents.clear()
        memory.remember_many([f"{text} again {n}" for n in range(5) for text in FILLER])
        better = memory.remember("the green car of Ute in the garage")
        hits = memory.recall("the green car of Ute")
        assert hits.pending == 46
        assert hits[0].memory.id == better.id
        held.documents.set()


def test_a_write_does_not_wait_behind_recalls(tmp_path: Path) -> None:
    held = Held(questions=False)

    async def busy() -> None:
        async with AsyncMemory(tmp_path / "m", preset=patient(30.0), embedder=held) as memory:
            await memory.remember("first")
            asking = [asyncio.create_task(memory.recall(f"question {n}")) for n in range(50)]
            await asyncio.sleep(0.05)
            for number in range(5):
                await memory.remember(f"written meanwhile {number}")
            assert not any(task.done() for task in asking)
            # Whatever else runs in asyncio's own threads has room, too.
            assert await asyncio.to_thread(lambda: "here") == "here"
            held.questions.set()
            await asyncio.gather(*asking)
            assert len(await memory.list()) == 6

    asyncio.run(asyncio.wait_for(busy(), 50))


def test_closing_does_not_wait_for_an_endpoint(url: str) -> None:
    held = Held(documents=False)
    memory = Memory(url, embedder=held)
    memory.remember("Ute sold her automobile")
    assert eventually(lambda: memory.embed(wait=False) == 1)
    together(memory.close)
    held.documents.set()
    time.sleep(0.1)
    with Memory(url, embedder="none") as later:
        assert later.stats().embedded == 0, "what nobody waited for touches nothing"
        assert later.verify() == []


# Making them all


def test_embed_makes_what_is_missing_and_tells_how_far_it_is(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember_many([f"note {n}" for n in range(100)])
        with pytest.raises(ModelError, match="there is no model"):
            memory.embed()
    told: list[int] = []
    with Memory(url, embedder=Concepts()) as memory:
        assert memory.embed(progress=told.append) in (68, 100), "a batch may have been made before it looked"
        assert memory.stats().embedded == 100
        assert told == sorted(told)
        assert memory.embed() == 0
    with Memory(url, preset="aegis", embedder="none") as notes, pytest.raises(InputError, match="aegis compares words"):
        notes.embed()


def test_embed_says_why_it_cannot(url: str) -> None:
    with Memory(url, embedder=Mute()) as memory:
        memory.remember("Ute sold her automobile")
        with pytest.raises(ModelError, match="overloaded"):
            memory.embed()
        assert memory.recall("automobile")


# What is wrong from the start


@pytest.mark.parametrize(
    ("embedder", "error", "says"),
    [
        ("locl", InputError, "must be none, local, local:FOLDER, openai:MODEL or https://host/v1#model"),
        ("local:/nowhere", ModelError, "there is no /nowhere/model.onnx"),
        ("openai:", InputError, "name the model"),
        ("https://host/v1", InputError, "name the model"),
        ("", None, ""),
    ],
)
def test_a_wrong_embedder_is_refused_when_the_memory_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: str, error: type[Exception] | None, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOLLECT_MODELS", str(tmp_path / "models"))
    if error is None:
        Memory(tmp_path / "m", embedder=embedder).close()
        return
    for preset in ("recollect", "ledger"):
        with pytest.raises(error, match=says):
            Memory(tmp_path / "m", preset=preset, embedder=embedder)
    assert not (tmp_path / "m").exists()
    failed = CliRunner().invoke(cli, ["remember", "tea", "--embedder", embedder])
    assert failed.exit_code == 1
    assert says in failed.output
    monkeypatch.setenv("RECOLLECT_EMBEDDER", embedder)
    with pytest.raises(error, match=says):
        Memory(tmp_path / "m")


def test_openai_is_named_as_a_model_that_writes_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with Memory(tmp_path, embedder="openai:text-embedding-3-small") as memory:
        assert memory.stats().total == 0


def test_the_command_makes_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model_folder: Path) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Any:
        done = CliRunner().invoke(cli, list(words))
        assert done.exit_code == 0, done.output
        return done.output

    with Memory(tmp_path / "memory", embedder="none") as memory:
        for name in ("default", "other"):
            memory.at(workspace=name).remember_many(["the kettle is loud", "the cat is quiet"])
    local = f"local:{model_folder}"
    assert json.loads(run("embed", "--embedder", local, "--json")) == {"made": 2, "workspaces": {"default": 2}}
    assert run("embed", "--embedder", local) == "Nothing was missing.\n"
    assert run("embed", "--all", "--embedder", local).endswith("Made 2 vectors\n")


# Embedders that are not what they should be


class Strange(Concepts):
    """Does to each question, and to each text with "odd" in it, what a test wants."""

    def __init__(self, question: Any = None, document: Any = None) -> None:
        super().__init__()
        self.question, self.document = question, document

    def embed_query(self, text: str) -> Floats:
        return super().embed_query(text) if self.question is None else _did(self.question)

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        rows = super().embed_documents(texts)
        if self.document is not None and any("odd" in text for text in texts):
            value = _did(self.document)
            if not isinstance(value, float):
                return value
            for row, text in zip(rows, texts, strict=True):
                if "odd" in text:
                    row[0] = value
        return rows

    def close(self) -> None:
        raise RuntimeError("no, I stay open")


def _did(what: Any) -> Any:
    if isinstance(what, type) and issubclass(what, BaseException):
        raise what("of its own making")
    return what


ODD = [RuntimeError, KeyboardInterrupt, SystemExit]


@pytest.mark.parametrize("question", [*ODD, "text", 3, [1.0], [float("nan")] * 8, b"12345678"], ids=repr)
def test_whatever_a_model_says_to_a_question_recall_answers_by_words(url: str, question: Any) -> None:
    with Memory(url, embedder=Strange(question=question)) as memory:
        memory.remember("Ute sold her automobile")
        hits = memory.recall("automobile")
        assert texts(hits) == ["Ute sold her automobile"]
        assert hits.report.startswith("by words alone: concepts: ")
        assert memory.recall("automobile").report == hits.report
        assert memory.context([{"role": "user", "content": "automobile"}]).memories


@pytest.mark.parametrize("document", [*ODD, "text", [1.0, 2.0], [[float("nan")] * 8] * 3], ids=repr)
def test_whatever_a_model_makes_of_memories_nothing_hangs(url: str, document: Any) -> None:
    with Memory(url, embedder=Strange(document=document)) as memory:
        memory.remember("an odd automobile")

        def embed() -> None:
            with pytest.raises(ModelError, match="concepts: "):
                memory.embed()

        together(embed)
        assert texts(memory.recall("automobile")) == ["an odd automobile"]
        assert memory.stats().embedded == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_vector_that_is_no_number_is_not_kept_and_harms_no_other(url: str, tmp_path: Path, value: float) -> None:
    with Memory(url, embedder=Strange(document=value)) as memory:
        odd = memory.remember("an odd automobile")
        memory.remember_many(FILLER)
        with pytest.raises(ModelError, match="concepts: the model gave NaN or infinity for 1 memories"):
            memory.embed()
        assert memory.stats().embedded == len(FILLER)
        memory.revise(odd.id, importance=0.9)
        memory.export(str(tmp_path / "all.json"))
        with Memory(located("sqlite", tmp_path / "again"), embedder="none") as other:
            assert other.import_(str(tmp_path / "all.json")).added == len(FILLER) + 2, "and the version before"
    with Memory(url, embedder=Concepts()) as mended:
        assert mended.embed() == 1


# Forks, and systems without room for another thread


def test_a_child_asks_a_model_that_was_being_asked_when_it_was_made(tmp_path: Path, run: Callable[..., str]) -> None:
    script = """
import os, sys, threading, time
from msgspec.structs import replace
from support.concepts import Concepts
from recollect import Memory, ModelError
from recollect.models import vectors
from recollect.presets import load
vectors._SHORTEST_PAUSE = 0.0
begun, parent = threading.Event(), os.getpid()
class Stuck(Concepts):
    asked = 0
    def embed_query(self, text):
        Stuck.asked += 1
        if os.getpid() != parent:
            return super().embed_query(text)
        if Stuck.asked == 1:
            raise ModelError("not yet")
        begun.set()
        threading.Event().wait()
rules = load("recollect")
memory = Memory(sys.argv[1], preset=replace(rules, recall=replace(rules.recall, patience=0.2)), embedder=Stuck())
memory.remember("Ute sold her automobile")
memory.recall("car")
memory.recall("car")  # asks in the background, and hangs there
begun.wait(20)
if pid := os.fork():
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
else:
    end = time.monotonic() + 20
    while memory.recall("car").report and time.monotonic() < end:
        time.sleep(0.02)
    os._exit(0 if memory.recall("car").report == "" else 1)
"""
    run(script, str(tmp_path / "m"))


def test_an_async_memory_works_in_a_child(tmp_path: Path, run: Callable[..., str]) -> None:
    script = """
import asyncio, os, sys
from recollect import AsyncMemory
memory = AsyncMemory(sys.argv[1], embedder="none")
async def day(text):
    await asyncio.wait_for(memory.remember(text), 10)
    await asyncio.wait_for(memory.recall(text), 10)
asyncio.run(day("tea in the parent"))
if pid := os.fork():
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    asyncio.run(day("tea afterwards"))
else:
    asyncio.run(day("tea in the child"))
    os._exit(0)
"""
    run(script, str(tmp_path / "m"))
    with Memory(tmp_path / "m", embedder="none") as memory:
        assert len(memory.list()) == 3


def test_without_room_for_a_thread_memories_are_stored_and_found(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember("Max has a vehicle")

    def full(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", full)
    memory = Memory(url, embedder=Concepts())
    assert memory.remember("Ute sold her automobile").text == "Ute sold her automobile"
    hits = memory.recall("automobile")
    assert texts(hits) == ["Ute sold her automobile"]
    assert hits.report == "by words alone: concepts: can't start new thread"
    assert memory.recall("automobile").report == hits.report
    monkeypatch.undo()
    memory.close()
    with Memory(url, embedder=Concepts()) as later:
        later.embed()
        assert set(texts(later.recall("car"))) == {"Ute sold her automobile", "Max has a vehicle"}
