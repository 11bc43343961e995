"""The local embedder with the real model: right vectors, from any thread and process, and nothing behind one's back."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from recollect import InputError, ModelError
from recollect.models.embedders import available, manifest, open_embedder
from recollect.models.embedders.local import LocalEmbedder

pytest_plugins = ["support.model_files"]

PREFIX = "Represent this sentence for searching relevant passages: "
TEXTS = [
    "Alice prefers tabs over spaces when she writes Python",
    "The office is in Porto, on the second floor",
    "tea",
    "The build takes nine minutes on the old machine, and three on the new one, which is why nobody uses the old one",
    "Bora's sister Dina moved to Lisbon in May",
    "We decided to deploy on Fridays",
]


@pytest.fixture
def installed(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The model's folder, found by name."""
    monkeypatch.setenv("RECOLLECT_MODELS", str(model_folder.parent))
    return model_folder


@pytest.fixture
def copy(model_folder: Path, tmp_path: Path) -> Path:
    """A folder with the model's files in it, to spoil."""
    folder = tmp_path / "my-encoder"
    folder.mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (folder / name).symlink_to(model_folder / name)
    return folder


def reference(folder: Path, text: str, mean: bool = False) -> np.ndarray:
    """One text through the tokenizers package and a bare session."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    ids = np.array([tokenizer.encode(text).ids], np.int64)
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    output = session.run(None, feeds)[0][0]
    row = output.mean(axis=0) if mean else output[0]
    return row / np.linalg.norm(row)


# Vectors


def test_vectors_have_length_one_and_the_models_dimensions(embedder: LocalEmbedder) -> None:
    rows = embedder.embed_documents(TEXTS)

    assert rows.shape == (len(TEXTS), 384)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)
    assert (embedder.model, embedder.dimensions) == ("snowflake-arctic-embed-s", 384)


def test_a_question_is_nearest_to_its_answer(embedder: LocalEmbedder) -> None:
    rows = embedder.embed_documents(TEXTS)

    for question, answer in [
        ("which indentation does Alice want?", 0),
        ("where do we work?", 1),
        ("how long do I wait for compilation?", 3),
        ("who lives in Portugal's capital?", 4),
        ("when do releases go out?", 5),
    ]:
        assert (rows @ embedder.embed_query(question)).argmax() == answer, question


def test_vectors_are_those_of_the_model(model_folder: Path, embedder: LocalEmbedder) -> None:
    for text in (TEXTS[0], TEXTS[3]):
        assert embedder.embed_documents([text])[0] @ reference(model_folder, text) > 0.999
        assert embedder.embed_query(text) @ reference(model_folder, PREFIX + text) > 0.999


def test_only_a_question_gets_the_prefix(embedder: LocalEmbedder) -> None:
    query = embedder.embed_query("where is the office?")
    plain, prefixed = (
        embedder.embed_documents(["where is the office?"])[0],
        embedder.embed_documents([f"{PREFIX}where is the office?"])[0],
    )

    assert query @ prefixed > 0.999
    assert query @ plain < 0.95


def test_rows_come_in_the_order_of_the_texts(embedder: LocalEmbedder) -> None:
    texts = [f"{text} ({number})" * (1 + number % 3) for number, text in enumerate(TEXTS * 5)]

    rows = embedder.embed_documents(texts)

    alone = np.stack([embedder.embed_documents([text])[0] for text in texts])
    assert np.array_equal(rows, alone)
    assert ((rows @ alone.T).argmax(axis=1) == np.arange(len(texts))).all()


def test_a_texts_vector_is_the_same_beside_any_other_texts(model_folder: Path, embedder: LocalEmbedder) -> None:
    """To the last bit: a memory that is embedded anew is the same memory."""
    texts = ["tea", "a long story about tea " * 60, *TEXTS]
    alone = np.stack([embedder.embed_documents([text])[0] for text in texts])
    several = LocalEmbedder(model_folder, threads=3)

    for other in (embedder, several):
        assert np.array_equal(other.embed_documents(texts), alone)
        assert np.array_equal(other.embed_documents(texts[::-1])[::-1], alone)
    assert np.array_equal(several.embed_query("tea"), several.embed_documents(["tea"])[0])


def test_what_is_past_512_tokens_does_not_count(embedder: LocalEmbedder) -> None:
    start = "tea " * 600

    one, two = embedder.embed_documents([start]), embedder.embed_documents([start + "quarterly tax returns " * 20_000])

    assert one[0] @ two[0] > 0.9999


@pytest.mark.parametrize(
    "texts", [[""], [" "], ["\u200b"], ["\ud800"], ["😀" * 3000], ["\x00", "tea"]], ids=lambda texts: ascii(texts)[:30]
)
def test_odd_texts_have_vectors_too(embedder: LocalEmbedder, texts: list[str]) -> None:
    rows = embedder.embed_documents(texts)

    assert np.isfinite(rows).all()
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)


def test_no_texts_are_no_rows(embedder: LocalEmbedder) -> None:
    assert embedder.embed_documents([]).shape == (0, 384)


def test_one_text_is_not_taken_for_a_list_of_letters(embedder: LocalEmbedder) -> None:
    with pytest.raises(InputError, match="texts"):
        embedder.embed_documents("tea")


# Threads, processes, and what is loaded when


def test_many_threads_can_share_one_that_nobody_has_loaded(installed: Path) -> None:
    embedder = LocalEmbedder.named(threads=1)
    found: dict[int, np.ndarray] = {}
    together = threading.Barrier(4)

    def work(number: int) -> None:
        together.wait()
        found[number] = embedder.embed_documents(TEXTS)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    for rows in found.values():
        assert (rows * found[0]).sum(axis=1).min() > 0.999


def test_it_can_be_closed_and_used_again(installed: Path) -> None:
    embedder = LocalEmbedder.named(threads=1)
    before = embedder.embed_query("tea")
    embedder.close()
    embedder.close()

    assert embedder.embed_query("tea") @ before > 0.999


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_can_use_what_its_parent_loaded(installed: Path, run: Callable[..., str]) -> None:
    script = """
import os, signal, sys
from recollect.models.embedders.local import LocalEmbedder
embedder = LocalEmbedder.named(threads=2)
texts = [f"the cat number {n} sat on the mat and looked at the dog for a while" for n in range(64)]
before = embedder.embed_documents(texts)
for used in (True, False):
    child = os.fork()
    if not child:
        signal.alarm(60)  # rather than wait for ever for a thread that is not there
        if used:
            assert (embedder.embed_documents(texts) * before).sum(axis=1).min() > 0.99
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert (embedder.embed_documents(texts) * before).sum(axis=1).min() > 0.99
"""
    run(script)


def test_nothing_heavy_is_imported_before_it_is_used(installed: Path, run: Callable[..., str]) -> None:
    script = """
import json, sys
import recollect
from recollect.models.embedders import available, open_embedder
assert available() and open_embedder("none") is None
embedder = open_embedder("local")
assert embedder.model and embedder.dimensions == 384
open_embedder("http://localhost/v1#m")
print(json.dumps(sorted(sys.modules)))
"""
    modules = set(json.loads(run(script)))

    assert not modules & {"numpy", "onnxruntime", "httpx", "tokenizers", "filelock", "ctypes"}


def test_nothing_is_reported_to_anyone(installed: Path, tmp_path: Path, run: Callable[..., str]) -> None:
    """ONNX Runtime keeps a device's identity in the cache folder, and sends what it counts from a thread of its own."""
    kept = ("PATH", "PYTHONPATH", "RECOLLECT_MODELS")
    keep = {name: os.environ[name] for name in kept if name in os.environ}
    script = """
import os
from recollect.models.embedders.local import LocalEmbedder
LocalEmbedder.named(threads=1).embed_query("tea")
print(os.environ["ORT_DISABLE_TELEMETRY"])
"""
    assert run(script, env={**keep, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}) == "1\n"

    assert list(tmp_path.iterdir()) == []


# Other encoders, by their folder


def test_any_encoder_can_be_opened_by_its_folder(copy: Path) -> None:
    embedder = open_embedder(f"local:{copy}", threads=1)

    assert embedder is not None
    assert (embedder.model, embedder.dimensions) == ("my-encoder", 384)
    assert embedder.embed_documents([TEXTS[0]])[0] @ reference(copy, TEXTS[0]) > 0.999
    assert embedder.embed_query(TEXTS[0]) @ reference(copy, TEXTS[0]) > 0.999


def test_the_mean_of_the_tokens_leaves_padding_out(copy: Path) -> None:
    embedder = LocalEmbedder(copy, pooling="mean", threads=1)

    rows = embedder.embed_documents([TEXTS[0], TEXTS[3], TEXTS[4]])

    for row, text in zip(rows, (TEXTS[0], TEXTS[3], TEXTS[4]), strict=True):
        assert row @ reference(copy, text, mean=True) > 0.98
        assert row @ reference(copy, text) < 0.98


def test_the_name_prefix_and_length_can_be_chosen(copy: Path) -> None:
    embedder = LocalEmbedder(copy, model="mine-1", query_prefix=PREFIX, max_tokens=16, threads=1)

    assert embedder.model == "mine-1"
    assert "mine-1" in repr(embedder)
    assert embedder.embed_query("tea") @ embedder.embed_documents([f"{PREFIX}tea"])[0] > 0.999
    short = embedder.embed_documents(["tea " * 14, "tea " * 14 + "taxes"])
    assert short[0] @ short[1] > 0.999


def foreign(folder: Path) -> Path:
    """The same vocabulary, cut in another way: by whole words."""
    document = json.loads((folder / "tokenizer.json").read_bytes())
    tokenizer = Tokenizer(models.WordLevel(document["model"]["vocab"], "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    (folder / "tokenizer.json").unlink()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_other_kinds_of_tokenizers_work_where_the_package_is_installed(copy: Path) -> None:
    embedder = LocalEmbedder(foreign(copy), max_tokens=8, threads=1)

    assert embedder.embed_documents(["tea \ud800", "tea and " * 50]).shape == (2, 384)


def test_other_kinds_of_tokenizers_say_what_to_install(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = LocalEmbedder(foreign(copy), threads=1)
    monkeypatch.setitem(sys.modules, "tokenizers", None)

    with pytest.raises(ModelError, match="pip install tokenizers"):
        embedder.embed_query("tea")


# What is missing or broken


def test_a_model_that_is_not_there_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_MODELS", str(tmp_path / "none"))

    assert available() is None
    with pytest.raises(ModelError, match="recollect models pull"):
        open_embedder("local")
    with pytest.raises(ModelError, match=r"there is no .*model\.onnx"):
        open_embedder(f"local:{tmp_path}")


def test_without_onnxruntime_it_says_what_to_install(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert available() == installed
    monkeypatch.setitem(sys.modules, "onnxruntime", None)

    assert available() is None
    with pytest.raises(ModelError, match=r"pip install onnxruntime"):
        open_embedder("local")


def test_half_a_model_is_not_taken_for_one(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / installed.name
    folder.mkdir()
    shutil.copy(installed / "tokenizer.json", folder)
    (folder / "model.onnx").write_bytes((installed / "model.onnx").read_bytes()[:1_000_000])
    monkeypatch.setenv("RECOLLECT_MODELS", str(tmp_path))

    assert available() is None
    assert manifest.find(manifest.DEFAULT).state() == "damaged"
    with pytest.raises(ModelError, match="recollect models pull"):
        open_embedder("local")


def test_a_file_that_is_no_model_is_refused(copy: Path) -> None:
    (copy / "model.onnx").unlink()
    (copy / "model.onnx").write_bytes(b"no model at all")

    with pytest.raises(ModelError, match=r"model\.onnx: ONNX Runtime cannot load it"):
        LocalEmbedder(copy, threads=1).embed_query("tea")


@pytest.mark.parametrize("content", ["", "[]", "{", '{"model": 3}', '{"model": {"type": "WordPiece"}}', "null"])
def test_a_file_that_is_no_tokenizer_is_refused(copy: Path, content: str) -> None:
    (copy / "tokenizer.json").unlink()
    (copy / "tokenizer.json").write_text(content)

    with pytest.raises(ModelError, match=r"tokenizer\.json: "):
        LocalEmbedder(copy, threads=1).embed_query("tea")


def test_a_text_that_is_too_long_for_the_model_is_refused(copy: Path) -> None:
    with pytest.raises(ModelError, match="ONNX Runtime cannot run the model"):
        LocalEmbedder(copy, max_tokens=600, threads=1).embed_query("tea " * 600)


def test_a_model_of_other_dimensions_is_refused(copy: Path) -> None:
    with pytest.raises(ModelError, match="384 dimensions, not 512"):
        LocalEmbedder(copy, dimensions=512, threads=1).embed_query("tea")


@pytest.mark.parametrize("options", [{"threads": 0}, {"pooling": "max"}, {"max_tokens": 2}, {"model": "x" * 65}])
def test_options_that_make_no_sense_are_refused(copy: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        LocalEmbedder(copy, **options)


def test_a_model_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InputError, match="snowflake-arctic-embed-s"):
        available("gpt-9")


# Where models are


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"HOME": "/h"}, "/h/.cache/recollect/models"),
        ("linux", {"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/x/recollect/models"),
        ("darwin", {"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/h/Library/Caches/recollect/models"),
        ("win32", {"HOME": "/h", "LOCALAPPDATA": "/l"}, "/l/recollect/models"),
        ("win32", {"HOME": "/h"}, "/h/AppData/Local/recollect/models"),
        ("linux", {"HOME": "/h", "RECOLLECT_MODELS": "~/m"}, "/h/m"),
        ("win32", {"HOME": "/h", "RECOLLECT_MODELS": "/m"}, "/m"),
    ],
)
def test_models_are_where_the_platform_keeps_caches(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], expected: str
) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "RECOLLECT_MODELS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)

    assert manifest.models_folder() == Path(expected)


def test_the_manifest_says_what_is_needed_to_use_a_model() -> None:
    for name, model in manifest.known_models().items():
        assert model.name == name
        assert set(model.files) == {"model.onnx", "tokenizer.json"}
        assert model.hub is None or set(model.hub.paths) == set(model.files)
        assert all(len(edition.sha256) == 64 for editions in model.files.values() for edition in editions)
        assert model.licence
        assert model.size > 1_000_000
    assert manifest.find(manifest.DEFAULT).query_prefix == PREFIX
