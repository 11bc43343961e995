"""A cross-encoder on this machine: it reads a question and a text together, and says how well the text answers.

It reads more exactly than vectors compare, and takes some 20 ms for each text. So it looks at the best hits only.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from recollect.models.embedders import manifest, onnx
from recollect.models.embedders.tokenizer import Tokenizer, load_tokenizer
from recollect.models.thread_pool import ThreadPool
from recollect.runtime import forking, imports
from recollect.values.errors import ModelError

_MOST_TOKENS = 512
_QUESTION_TOKENS = 128
"""A longer question is cut, so that most of what the model reads is the text."""


class LocalReranker:
    """A cross-encoder in a folder with `model.onnx` and `tokenizer.json`, loaded when it is first used."""

    def __init__(self, folder: Path, model: str) -> None:
        onnx.check_folder(folder)
        self.model = model
        self._folder = folder
        self._pool = ThreadPool()
        self._threads = onnx.usual_threads()
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, onnx.Network] | None = None
        forking.watch(self)

    def __repr__(self) -> str:
        return f"<LocalReranker {self.model} in {self._folder}>"

    def scores(self, question: str, texts: Sequence[str], seconds: float) -> list[float]:
        """How well each text answers the question: a logarithm of odds. ModelError if it takes longer than that."""
        return self._pool.ask(lambda: self._scores(question, texts), seconds)

    def _scores(self, question: str, texts: Sequence[str]) -> list[float]:
        tokenizer, network = self._load()
        asked = tokenizer.encode(question)
        if len(asked) > _QUESTION_TOKENS:
            asked = [*asked[: _QUESTION_TOKENS - 1], asked[-1]]
        scores = [0.0] * len(texts)

        def score(at: int) -> None:
            tokens = [*asked, *tokenizer.encode(texts[at])[1:]]  # the mark that begins a text stands before the pair
            if len(tokens) > _MOST_TOKENS:
                tokens = [*tokens[: _MOST_TOKENS - 1], tokens[-1]]
            scores[at] = float(network.run(tokens, second_from=len(asked)).ravel()[0])

        self._pool.each(range(len(texts)), score, self._threads)
        return scores

    def _load(self) -> tuple[Tokenizer, onnx.Network]:
        loaded = self._loaded
        if loaded is not None:
            return loaded
        imports.load("numpy")
        with self._lock:
            if self._loaded is None:
                tokenizer = load_tokenizer(self._folder / onnx.TOKENIZER, _MOST_TOKENS)
                self._loaded = tokenizer, onnx.Network(self._folder)
            return self._loaded

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        if self._loaded is not None:
            onnx.abandon(self._loaded)
            self._loaded = None


def local_reranker() -> LocalReranker:
    """The reranker that `recollect models pull --reranker` has installed. ModelError where it is not."""
    model = manifest.find(manifest.RERANKER)
    if not model.complete():
        raise ModelError(f"the model {model.name} is not in {model.folder}; run `recollect models pull --reranker`")
    return _opened(model.folder, model.name)


@cache
def _opened(folder: Path, model: str) -> LocalReranker:
    """One for the whole process: it is loaded once, whichever memory asks."""
    return LocalReranker(folder, model)
