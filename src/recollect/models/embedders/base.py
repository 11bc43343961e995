"""What the engine asks of whatever turns text into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from recollect.values.errors import InputError, ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float32]


class Scale(msgspec.Struct, frozen=True):
    """What the cosines of a model mean, as a similarity from 0 to 1.

    Of pairs of a question and a memory with similarity 0.7, seven in ten belong together, where half of all pairs do.
    """

    middle: float
    """The cosine of similarity 0.5."""
    slope: float

    def odds(self, cosine: Floats) -> Floats:
        """The logarithm of the odds that a question and a memory belong together."""
        return self.slope * (cosine - self.middle)

    def similarity(self, cosine: Floats) -> Floats:
        import numpy as np

        return (1.0 / (1.0 + np.exp(-self.odds(cosine)))).astype(np.float32)


@runtime_checkable
class Scaled(Protocol):
    """Optional: how an embedder's cosines map to relevance. Without it they are taken as they are."""

    @property
    def scale(self) -> Scale | None: ...


@runtime_checkable
class Literate(Protocol):
    """Optional: an embedder that has a list of words, so that what is in it is not taken for a misspelling."""

    def knows(self, word: str) -> bool: ...


class Embedder(Protocol):
    """Turns text into vectors of length one, so that their dot product is the cosine of the angle between them.

    May be used from several threads, and in a process that was forked from the one that made it.
    """

    @property
    def model(self) -> str:
        """The name that is stored with each vector: only vectors of the same name can be compared."""
        ...

    @property
    def dimensions(self) -> int: ...

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        """A row for each text, in the same order."""
        ...

    def embed_query(self, text: str) -> Floats:
        """One vector. Not the same as `embed_documents`: many models need a prefix for queries."""
        ...

    def close(self) -> None:
        """Release resources. A later call acquires them again."""
        ...


def listed(texts: Sequence[str]) -> list[str]:
    """The texts, unless they are one text: its letters would each get a vector."""
    if isinstance(texts, str):
        raise InputError("texts", "must be a list of texts, not one text")
    return list(texts)


def normalized(vectors: ArrayLike, model: str) -> Floats:
    """Rows of length one; a row of zeros stays one."""
    import numpy as np

    with np.errstate(over="ignore"):  # what does not fit becomes infinite
        rows = np.asarray(vectors, np.float32)
    if not np.isfinite(rows).all():
        raise ModelError(f"{model}: the model gave a vector with NaN or infinity; use another model")
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
