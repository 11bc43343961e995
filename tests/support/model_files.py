"""The real model for tests: the one that is installed, or pulled once for all tests of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.models.embedders import available
from recollect.models.embedders.local import LocalEmbedder
from recollect.models.embedders.pull import pull


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the default model."""
    if folder := available():
        return folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECOLLECT_MODELS", str(tmp_path_factory.mktemp("models")))
        return Path(pull().path)


@pytest.fixture(scope="session")
def embedder(model_folder: Path) -> Iterator[LocalEmbedder]:
    """The default model, loaded once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECOLLECT_MODELS", str(model_folder.parent))
        embedder = LocalEmbedder.named(threads=1)
    yield embedder
    embedder.close()
