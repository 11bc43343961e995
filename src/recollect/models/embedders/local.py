"""A sentence encoder on this machine, through ONNX Runtime. Nothing is downloaded here."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.models.embedders import manifest
from recollect.models.embedders.base import Scale, listed, normalized
from recollect.models.embedders.manifest import Pooling
from recollect.models.embedders.native import native
from recollect.models.embedders.tokenizer import load_tokenizer
from recollect.runtime import forking, imports
from recollect.values import validation
from recollect.values.errors import InputError, ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.models.embedders.base import Floats

BATCH_TOKENS = 256
"""Larger batches are no faster on a processor, and need more memory."""

_SORTED_TOGETHER = 4096
"""How many texts are sorted by length: enough to find like ones, few enough to hold their tokens."""

_MAX_THREADS = 2
_MODEL, _TOKENIZER = "model.onnx", "tokenizer.json"


class LocalEmbedder:
    """An ONNX sentence encoder in a folder with `model.onnx` and `tokenizer.json`, loaded when it is first used.

    `model` is the name stored with each vector, by default that of the folder. `query_prefix` goes before what is
    given to `embed_query`. `threads` is two at most unless it is given. `scale` says what its cosines mean.
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
        self._threads = threads or min(_MAX_THREADS, _cores())
        self._lock = threading.Lock()
        self._encoder: _Encoder | None = None
        _check(self._folder)
        forking.watch(self)

    @classmethod
    def named(cls, name: str = manifest.DEFAULT, *, threads: int | None = None) -> LocalEmbedder:
        """A model that `recollect models pull` has installed. ModelError where it is not."""
        model = manifest.find(name)
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
        for start in range(0, len(documents), _SORTED_TOGETHER):
            self._embed(documents[start : start + _SORTED_TOGETHER], rows[start : start + _SORTED_TOGETHER])
        return rows

    def _embed(self, texts: Sequence[str], rows: Floats) -> None:
        encoder = self._loaded()
        tokens = [encoder.tokenizer.encode(text) for text in texts]
        for batch in batches([len(ids) for ids in tokens], BATCH_TOKENS):
            rows[batch] = normalized(encoder.pooled([tokens[at] for at in batch]), self._model)

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
            encoder = _Encoder(self._folder, self._pooling, self._max_tokens, self._threads)
            dimensions = encoder.dimensions()
        if self._dimensions not in (None, dimensions):
            raise ModelError(f"{self._folder}: the model has {dimensions} dimensions, not {self._dimensions}")
        return encoder

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        if self._encoder is not None:
            import ctypes

            # Its threads stayed in the parent: to run it here, or only to free it, would wait for them for ever.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._encoder))
            self._encoder = None


class _Encoder:
    """The loaded model: tokens in, one vector a text out."""

    def __init__(self, folder: Path, pooling: Pooling, max_tokens: int, threads: int) -> None:
        self.tokenizer = load_tokenizer(folder / _TOKENIZER, max_tokens)
        self._session = _session(folder / _MODEL, threads)
        self._mean = pooling == "mean"
        self._inputs = [tensor.name for tensor in self._session.get_inputs()]
        self._output = self._session.get_outputs()[0]
        strange = [name for name in self._inputs if name not in ("input_ids", "attention_mask", "token_type_ids")]
        if strange:
            wants = ", ".join(strange)
            raise ModelError(f"{folder}: the model asks for {wants}; export it as a sentence encoder, of text alone")

    def dimensions(self) -> int:
        declared = self._output.shape[-1]
        return declared if isinstance(declared, int) else self.pooled([self.tokenizer.encode("a")]).shape[1]

    def pooled(self, tokens: Sequence[Sequence[int]]) -> NDArray[np.floating]:
        feeds = padded(tokens, self.tokenizer.pad_id)
        try:
            with native:
                output = self._session.run([self._output.name], {name: feeds[name] for name in self._inputs})[0]
        except ModelError:
            raise
        except Exception as error:  # what it raises has no common name
            raise ModelError(
                f"ONNX Runtime cannot run the model; does tokenizer.json belong to it? ({error})"
            ) from None
        if output.ndim == 3:
            output = _mean(output, feeds["attention_mask"]) if self._mean else output[:, 0]
        return output


def padded(tokens: Sequence[Sequence[int]], pad_id: int) -> dict[str, NDArray[np.int64]]:
    """What an encoder of text takes, by the names that the inputs have in all of them."""
    import numpy as np

    ids = np.full((len(tokens), max(map(len, tokens))), pad_id, np.int64)
    mask = np.zeros_like(ids)
    for row, token_ids in enumerate(tokens):
        ids[row, : len(token_ids)] = token_ids
        mask[row, : len(token_ids)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def batches(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Positions of texts of about one length, longest first; at most `most` tokens each with padding, or one text."""
    batch: list[int] = []
    for at in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if batch and lengths[batch[0]] * (len(batch) + 1) > most:
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def _mean(output: Any, mask: NDArray[np.int64]) -> Any:
    weights = mask[:, :, None].astype(output.dtype)
    return (output * weights).sum(axis=1) / weights.sum(axis=1)


def _session(path: Path, threads: int) -> Any:
    # ONNX Runtime reports to its maker unless it is told not to before it is imported.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    imports.load("onnxruntime")
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

    runtime: Any = onnxruntime
    runtime.disable_telemetry_events()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # A thread that waits in a loop for its next share takes a core from the rest of the program, and on a busy machine
    # from the other threads of its own session; one that never does wakes up too late.
    options.add_session_config_entry("session.intra_op.spin_duration_us", "20")
    try:
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # what it raises has no common name
        problem = " ".join(str(error).split())
        raise ModelError(f"{path}: ONNX Runtime cannot load it; install the model again ({problem})") from None


def _check(folder: Path) -> None:
    for name in (_MODEL, _TOKENIZER):
        if not (folder / name).is_file():
            raise ModelError(f"there is no {folder / name}; run `recollect models pull`, or give a model's folder")
    if find_spec("onnxruntime") is None:
        raise ModelError("onnxruntime is not installed; run `pip install onnxruntime`")


def _cores() -> int:
    """Those that this process may use, which in a container are often fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
