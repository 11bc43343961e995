"""Text to vectors: a model on this machine, or any OpenAI-compatible endpoint. Nothing is ever downloaded here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recollect.models.embedders import manifest
from recollect.models.embedders.base import Embedder, Scale
from recollect.values.errors import InputError

__all__ = ["Embedder", "Scale", "available", "open_embedder"]


def open_embedder(spec: str, **options: Any) -> Embedder | None:
    """The embedder that a text names, ModelError where it cannot be had.

    `none` is none; `local` the default model that `recollect models pull` installs; `local:PATH` any ONNX sentence
    encoder in a folder; `openai:MODEL` is at OpenAI; `https://host/v1#model` an endpoint and its model. Options are
    those of `LocalEmbedder` and `RemoteEmbedder`. A model is loaded, and an endpoint asked, when it is first used.
    """
    kind, _, rest = spec.partition(":")
    if spec == "none":
        return None
    if kind == "local":
        from recollect.models.embedders.local import LocalEmbedder

        return LocalEmbedder(rest, **options) if rest else LocalEmbedder.named(**options)
    if kind in ("http", "https", "openai"):
        from recollect.models.embedders.remote import OPENAI, RemoteEmbedder

        url, _, model = (OPENAI, "", rest) if kind == "openai" else spec.partition("#")
        return RemoteEmbedder(url, options.pop("model", model), **options)
    raise InputError(
        "embedder", f"{spec[:80]!r} must be none, local, local:FOLDER, openai:MODEL or https://host/v1#model"
    )


def available(model: str = manifest.DEFAULT) -> Path | None:
    """The folder of a model that can be used at once, or None: without loading it, in a fraction of a millisecond."""
    from importlib.util import find_spec

    model_files = manifest.find(model)
    return model_files.folder if model_files.complete() and find_spec("onnxruntime") is not None else None
