"""Vectors from any endpoint that speaks OpenAI's `/v1/embeddings`: OpenAI, Ollama, vLLM, LM Studio and others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from recollect.models.embedders.base import Scale, listed, normalized
from recollect.models.endpoint import Endpoint, Service
from recollect.runtime import imports
from recollect.values import validation
from recollect.values.errors import InputError

if TYPE_CHECKING:
    from recollect.models.embedders.base import Floats


OPENAI = "https://api.openai.com/v1"


class _Embedding(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _EmbeddingAnswer(msgspec.Struct):
    data: list[_Embedding]


_decode = msgspec.json.Decoder(_EmbeddingAnswer).decode
_SERVICE = Service(
    "/embeddings",
    "RECOLLECT_EMBEDDING_KEY",
    "OPENAI_API_KEY",
    {413: "use a smaller batch_size or max_characters"},
)


class RemoteEmbedder:
    """An endpoint and the name of its model.

    The key is the parameter, or `RECOLLECT_EMBEDDING_KEY`, or `OPENAI_API_KEY`; an endpoint that needs none gets none.
    `dimensions` is asked of models that can shorten their vectors; without it, it is what the first answer has. Texts
    are cut at `max_characters`, because many endpoints refuse what is too long for the model. `scale` says what the
    model's cosines mean.
    """

    def __init__(
        self,
        url: str,
        model: str | None = None,
        *,
        key: str | None = None,
        dimensions: int | None = None,
        query_prefix: str = "",
        document_prefix: str = "",
        batch_size: int = 32,
        batch_characters: int = 50_000,
        max_characters: int = 6_000,
        timeout: float = 30.0,
        retries: int = 4,
        deadline: float = 120.0,
        scale: Scale | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not model:
            raise InputError("embedder", "name the model of the endpoint after a #, as in https://host/v1#model")
        self.scale = scale
        self._model = validation.label(model, "model")
        retries = validation.count(retries, "retries", low=0)
        self._endpoint = Endpoint(url, _SERVICE, key, timeout, retries, sleep, deadline)
        self._asked = dimensions and validation.count(dimensions, "dimensions", high=validation.MAX_DIMENSIONS)
        self._dimensions = self._asked
        self._query_prefix, self._document_prefix = query_prefix, document_prefix
        self._batch_size = validation.count(batch_size, "batch_size")
        self._batch_characters = batch_characters
        self._max_characters = validation.count(max_characters, "max_characters", high=validation.MAX_CONTENT_BYTES)

    def __repr__(self) -> str:
        return f"<RemoteEmbedder {self._model} at {self._endpoint.shown}>"

    @property
    def model(self) -> str:
        return self._model

    @property
    def dimensions(self) -> int:
        """Asks the endpoint, if nobody has yet."""
        return self._dimensions or self.embed_query("how many?").shape[0]

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        imports.load("numpy")
        import numpy as np

        inputs = [self._document_prefix + self._cut(text) for text in listed(texts)]
        if not inputs:
            return np.empty((0, self.dimensions), np.float32)
        return np.concatenate([self._ask(batch) for batch in self._batches(inputs)])

    def embed_query(self, text: str) -> Floats:
        return self._ask([self._query_prefix + self._cut(text)])[0]

    def close(self) -> None:
        self._endpoint.close()

    def _cut(self, text: str) -> str:
        # Endpoints refuse an empty text, and JSON half a surrogate pair.
        return text[: self._max_characters].encode("utf-8", "replace").decode() or " "

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        characters = 0
        for text in texts:
            characters += len(text)
            if batch and (len(batch) >= self._batch_size or characters > self._batch_characters):
                yield batch
                batch, characters = [], len(text)
            batch.append(text)
        yield batch

    def _ask(self, texts: list[str]) -> Floats:
        body: dict[str, Any] = {"model": self._model, "input": texts}
        if self._asked:
            body["dimensions"] = self._asked
        rows = self._endpoint.post(body, lambda content: self._rows(content, len(texts)))
        vectors = normalized(rows, self._model)
        self._dimensions = vectors.shape[1]
        return vectors

    def _rows(self, content: bytes, expected: int) -> list[list[float]]:
        rows = _in_order(_decode(content).data, expected)
        sizes = {len(row) for row in rows}
        dimensions = self._dimensions or max(sizes)
        if sizes != {dimensions} or not dimensions:
            raise ValueError(f"vectors of {sorted(sizes)} dimensions, where {dimensions} were expected")
        return rows


def _in_order(items: Sequence[_Embedding], expected: int) -> list[list[float]]:
    """The vectors in the order of the texts, which the answer may have shuffled."""
    if len(items) != expected:
        raise ValueError(f"{len(items)} vectors for {expected} texts")
    if all(item.index is None for item in items):
        return [item.embedding for item in items]
    places = {item.index: item.embedding for item in items}
    if places.keys() != set(range(expected)):
        raise ValueError("its indices are not those of the texts")
    return [places[at] for at in range(expected)]
