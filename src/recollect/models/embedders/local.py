"""A sentence encoder on this machine, through ONNX Runtime. Nothing is downloaded here."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.models.embedders import manifest, onnx
from recollect.models.embedders.base import Scale, listed, normalized
from recollect.models.embedders.manifest import Pooling
from recollect.models.embedders.native import native
from recollect.models.embedders.tokenizer import load_tokenizer
from recollect.models.thread_pool import ThreadPool
from recollect.runtime import forking, imports
from recollect.values import validation
from recollect.values.errors import InputError, ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.models.embedders.base import Floats


class LocalEmbedder:
    """An ONNX sentence encoder in a folder with `model.onnx` and `tokenizer.json`, loaded when it is first used.

    `model` is the name stored with each vector, by default that of the folder. `query_prefix` goes before what is
    given to `embed_query`. `scale` says what its cosines mean. `threads` is how many texts are embedded at a time, by
    default two.

    Each text is embedded by itself, on one thread. A quantised model rounds by the largest number in a batch, so in a
    batch a text would have another vector beside other texts; and padding would cost what the larger batch gains.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        model: str | None = None,
        pooling: Pooling = "cls",
        query_prefix: str = "",
        max_tokens: int = 512,
        dimensions: int | None = None,
        threads: int | None = None,
        scale: Scale | None = None,
    ) -> None:
        self.scale = scale
        self._folder = Path(folder).expanduser().absolute()
        if pooling not in ("cls", "mean"):
            raise InputError("pooling", f"{pooling!r} must be one of cls, mean")
        if max_tokens < 3:
            raise InputError("max_tokens", f"{max_tokens} leaves no room for a word; it must be 3 or more")
        if threads is not None and threads < 1:
            raise InputError("threads", f"{threads} must be 1 or more")
        self._model = validation.label(model or self._folder.name, "model")
        self._pooling: Pooling = pooling
        self._query_prefix = query_prefix
        self._max_tokens = max_tokens
        self._dimensions = dimensions
        self._threads = threads or onnx.usual_threads()
        self._lock = threading.Lock()
        self._pool = ThreadPool()
        self._encoder: _Encoder | None = None
        onnx.check_folder(self._folder)
        forking.watch(self)

    @classmethod
    def named(cls, name: str = manifest.DEFAULT, *, threads: int | None = None) -> LocalEmbedder:
        """A model that `recollect models pull` has installed. ModelError where it is not."""
        model = manifest.find(name)
        if model.does != "embed":
            raise InputError("model", f"{name} makes no vectors; it is for `rerank`")
        if not model.complete():
            raise ModelError(f"the model {name} is not in {model.folder}; run `recollect models pull`")
        return cls(
            model.folder,
            model=name,
            pooling=model.pooling,
            query_prefix=model.query_prefix,
            max_tokens=model.max_tokens,
            dimensions=model.dimensions,
            threads=threads,
            scale=model.scale,
        )

    def __repr__(self) -> str:
        return f"<LocalEmbedder {self._model} in {self._folder}>"

    @property
    def model(self) -> str:
        return self._model

    @property
    def dimensions(self) -> int:
        if self._dimensions is None:
            self._dimensions = self._loaded().dimensions()
        return self._dimensions

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        imports.load("numpy")
        import numpy as np

        documents = listed(texts)
        rows: Floats = np.empty((len(documents), self.dimensions), np.float32)
        encoder = self._loaded()

        def embed(at: int) -> None:
            rows[at] = normalized(encoder.pooled(documents[at]), self._model)[0]

        self._pool.each(range(len(documents)), embed, self._threads)
        return rows

    def embed_query(self, text: str) -> Floats:
        return self.embed_documents([self._query_prefix + text])[0]

    def knows(self, word: str) -> bool:
        """Whether it is one piece for the model: only what is written often is."""
        tokenizer = self._loaded().tokenizer
        return len(tokenizer.encode(word)) - len(tokenizer.encode("")) == 1

    def close(self) -> None:
        self._encoder = None

    def _loaded(self) -> _Encoder:
        encoder = self._encoder
        if encoder is not None:
            return encoder
        with self._lock:
            if self._encoder is None:
                self._encoder = self._load()
            return self._encoder

    def _load(self) -> _Encoder:
        with native:
            encoder = _Encoder(self._folder, self._pooling, self._max_tokens)
            dimensions = encoder.dimensions()
        if self._dimensions not in (None, dimensions):
            raise ModelError(f"{self._folder}: the model has {dimensions} dimensions, not {self._dimensions}")
        return encoder

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        if self._encoder is not None:
            onnx.abandon(self._encoder)
            self._encoder = None


class _Encoder:
    """The loaded model: a text in, its vector out, which has not the length one yet."""

    def __init__(self, folder: Path, pooling: Pooling, max_tokens: int) -> None:
        self.tokenizer = load_tokenizer(folder / onnx.TOKENIZER, max_tokens)
        self._network = onnx.Network(folder)
        self._mean = pooling == "mean"

    def dimensions(self) -> int:
        declared = self._network.width
        return declared if isinstance(declared, int) else self.pooled("a").shape[1]

    def pooled(self, text: str) -> NDArray[np.floating]:
        output = self._network.run(self.tokenizer.encode(text))
        if output.ndim == 3:
            output = output.mean(axis=1) if self._mean else output[:, 0]
        return output
