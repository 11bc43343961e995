"""`rerank="local"`: a cross-encoder on this machine adds to the scores of the best hits."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from support.concepts import parts, texts
from support.served import served
from support.stores import STORES, located
from tokenizers import Tokenizer

from recollect import InputError, Memory, ModelError
from recollect.models import reranker
from recollect.models.embedders import manifest
from recollect.models.embedders.local import LocalEmbedder
from recollect.models.embedders.pull import pull
from recollect.models.reranker import LocalReranker, local_reranker

QUESTION = "how many people live in Berlin?"
TEXTS = [
    "Berlin has a population of 3.7 million registered inhabitants",
    "New York City is famous for its museums",
    "How many people went to the concert in Berlin?",
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the real model; pulled once for all workers of a run where this machine has none."""
    model = manifest.find(manifest.RERANKER)
    with pytest.MonkeyPatch.context() as patch:
        if model.complete():
            patch.setenv("RECOLLECT_MODELS", str(model.folder.parent))
        else:
            patch.setenv("RECOLLECT_MODELS", str(tmp_path_factory.getbasetemp().parent / "models"))
            pull(manifest.RERANKER)
        yield model.folder


class Scripted:
    """Reads in place of the model: what holds the word answers."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.read: list[list[str]] = []

    def scores(self, question: str, texts: Sequence[str], seconds: float) -> list[float]:
        self.read.append(list(texts))
        return [8.0 if self.word in text else -8.0 for text in texts]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    script = Scripted("attic")
    monkeypatch.setattr(reranker, "local_reranker", lambda: script)
    return script


def test_it_says_what_the_model_says_of_a_pair(installed: Path) -> None:
    """The reference is the package that defines the format, and the bare session."""
    tokenizer = Tokenizer.from_file(str(installed / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(512)
    session = onnxruntime.InferenceSession(str(installed / "model.onnx"), providers=["CPUExecutionProvider"])

    def reference(text: str) -> float:
        pair = tokenizer.encode(QUESTION, text)
        feeds = {"input_ids": pair.ids, "attention_mask": pair.attention_mask, "token_type_ids": pair.type_ids}
        taken = {tensor.name for tensor in session.get_inputs()}
        arrays = {name: np.array([values], np.int64) for name, values in feeds.items() if name in taken}
        return float(session.run(None, arrays)[0].ravel()[0])

    many = [*TEXTS, "tea " * 2000]
    scores = LocalReranker(installed, "x").scores(QUESTION, many, 60)

    assert scores == pytest.approx([reference(text) for text in many], abs=1e-4)
    assert scores[0] > 0 > max(scores[1:])
    assert LocalReranker(installed, "x").scores(QUESTION, many[::-1], 60)[::-1] == scores


def test_a_question_longer_than_the_model_reads_leaves_room_for_the_text(installed: Path) -> None:
    scores = local_reranker().scores("and then, " * 2000 + QUESTION, TEXTS, 60)

    assert len(set(scores)) == 3


def test_the_real_model_puts_an_answer_before_what_only_has_the_words(installed: Path, tmp_path: Path) -> None:
    with Memory(tmp_path, embedder="none") as memory:
        memory.remember_many(TEXTS)
        plain = memory.recall(QUESTION, min_relevance=0.0)
        assert plain[0].memory.text == TEXTS[2]
        hits = memory.recall(QUESTION, min_relevance=0.0, rerank="local")
    assert hits[0].memory.text == TEXTS[0]
    assert hits[0].score == pytest.approx(sum(parts(hits[0]).values()))
    assert parts(hits[0])["rerank"] == pytest.approx(0.5 * local_reranker().scores(QUESTION, TEXTS, 60)[0])


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


def test_a_turn_is_read_with_what_was_said_before_it_if_that_can_be_seen(url: str, scripted: Scripted) -> None:
    with Memory(url, embedder="none") as memory:
        talk = memory.conversations.start("keys")
        said = [
            memory.remember(text, role="user", kind="conversation", conversation=talk.id)
            for text in ("Where is the key of the cellar?", "I left the key upstairs", "The key has a red ribbon")
        ]
        alone = memory.remember("The key of the car is lost")
        memory.recall("where is the key?", min_relevance=0.0, rerank="local")
        assert set(scripted.read[-1]) == {
            said[0].text,
            f"{said[0].text}\n{said[1].text}",
            f"{said[1].text}\n{said[2].text}",
            alone.text,
        }
        memory.archive(said[1].id)
        memory.recall("where is the key?", min_relevance=0.0, rerank="local")
        assert set(scripted.read[-1]) == {said[0].text, f"{said[0].text}\n{said[2].text}", alone.text}


def test_a_turn_of_another_agent_is_not_read(url: str, scripted: Scripted) -> None:
    with Memory(url, embedder="none") as memory:
        talk = memory.conversations.start("keys")
        memory.at(agent="spy").remember("The code word is zebra", kind="conversation", conversation=talk.id)
        memory.remember("The key is below the mat", kind="conversation", conversation=talk.id)
        memory.at(agent="clerk").recall("where is the key?", min_relevance=0.0, rerank="local")
    assert scripted.read == [["The key is below the mat"]]


def test_what_is_not_read_stays_behind_what_is(tmp_path: Path, scripted: Scripted) -> None:
    with Memory(tmp_path, embedder="none") as memory:
        memory.remember_many([f"the key number {number} hangs on the wall" for number in range(60)])
        memory.remember("attic key")
        hits = memory.recall("attic key", limit=40, min_relevance=0.0, rerank="local")
    assert [len(read) for read in scripted.read] == [20]
    assert len(hits) == 40
    assert [parts(hit)["rerank"] for hit in hits] == [4.0] + [-4.0] * 39
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_preset_can_ask_for_it_and_a_call_can_leave_it_out(tmp_path: Path, scripted: Scripted) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\n[recall]\nrerank = "local"\n')
    with Memory(tmp_path / "memory", preset=tmp_path / "mine.toml", embedder="none") as memory:
        memory.remember_many(["the key of the cellar is on the hook", "a key is in the attic"])
        assert texts(memory.recall("the cellar key"))[0] == "a key is in the attic"
        assert texts(memory.recall("the cellar key", rerank="none"))[0] == "the key of the cellar is on the hook"
        block = memory.context([{"role": "user", "content": "where is the key?"}])
        assert "attic" in str(block.messages)
    assert len(scripted.read) == 2


def test_a_missing_model_is_an_error_where_it_was_asked_for_and_a_note_where_a_preset_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_MODELS", str(tmp_path / "nothing"))
    (tmp_path / "mine.toml").write_text('name = "mine"\n[recall]\nrerank = "local"\n')
    with Memory(tmp_path / "memory", preset=tmp_path / "mine.toml", embedder="none") as memory:
        memory.remember("the key is on the hook")
        with pytest.raises(ModelError, match="recollect models pull --reranker"):
            memory.recall("the key", rerank="local")
        hits = memory.recall("the key")
        assert texts(hits) == ["the key is on the hook"]
        assert "not reranked" in hits.report
        assert "models pull --reranker" in hits.report


def test_a_model_that_is_too_slow_is_left_out(tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    monkeypatch.setattr(LocalReranker, "_scores", lambda *_: released.wait(60))
    (tmp_path / "mine.toml").write_text('name = "mine"\n[recall]\npatience = 0.1\n')
    with Memory(tmp_path / "memory", preset=tmp_path / "mine.toml", embedder="none") as memory:
        memory.remember("the key is on the hook")
        hits = memory.recall("the key", rerank="local")
        released.set()
    assert texts(hits) == ["the key is on the hook"]
    assert "not reranked: no answer within 0.1 s" in hits.report


@pytest.mark.parametrize("wrong", ["remote", "", 7])
def test_another_word_is_refused_by_name(tmp_path: Path, wrong: Any) -> None:
    with Memory(tmp_path, embedder="none") as memory:
        memory.remember("the key is on the hook")
        with pytest.raises(InputError, match=r"rerank: .*must be one of local, none"):
            memory.recall("the key", rerank=wrong)


def test_it_can_be_asked_for_over_http(tmp_path: Path, scripted: Scripted) -> None:
    with Memory(tmp_path, embedder="none") as memory:
        memory.remember_many(["the key is on the hook", "a key is in the attic"])
        with served(memory) as server, server.memory() as remote:
            assert texts(remote.recall("the key", rerank="local"))[0] == "a key is in the attic"
            with pytest.raises(InputError, match="rerank: cannot be sent"):
                remote.recall("the key", rerank=lambda question, candidates: [])


def test_it_is_not_taken_for_an_embedder(installed: Path) -> None:
    with pytest.raises(InputError, match="makes no vectors"):
        LocalEmbedder.named(manifest.RERANKER)
