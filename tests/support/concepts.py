"""A model small enough to know what it must find, for tests of meaning."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from recollect import Hit, ModelError
from recollect.models.embedders import Scale

Floats = NDArray[np.float32]

CONCEPTS = [
    "car automobile vehicle",
    "tea beverage drink",
    "dog puppy hound",
    "house home dwelling",
    "rowing sport chess",
    "sits sit desk",
]
FILLER = [f"{thing} is on shelf {n}" for n, thing in enumerate("soap salt rope glue wool cork lime sand clay".split())]


class Concepts:
    """Words of one concept mean the same; all others mean little. Vectors may be wider than they need be."""

    def __init__(self, model: str = "concepts", dimensions: int = 8) -> None:
        self.model, self.dimensions = model, dimensions
        self.embedded: list[str] = []

    def _vector(self, text: str) -> Floats:
        vector = np.zeros(self.dimensions, np.float32)
        vector[-1] = 0.2
        for word in "".join(letter if letter.isalnum() else " " for letter in text.lower()).split():
            for at, concept in enumerate(CONCEPTS):
                vector[at] += word in concept.split()
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        self.embedded += texts
        return np.stack([self._vector(text) for text in texts])

    def embed_query(self, text: str) -> Floats:
        return self._vector(text)

    def close(self) -> None:
        pass


class Broken(Concepts):
    def embed_documents(self, texts: Sequence[str]) -> Floats:
        raise ModelError("out of order")


class Angles(Concepts):
    """Each text at an angle, in degrees, from any question."""

    def __init__(self, angles: Mapping[str, float]) -> None:
        super().__init__("angles", 2)
        self.angles = angles
        self.scale: Scale | None = None

    def _vector(self, text: str) -> Floats:
        angle = math.radians(self.angles.get(text, 0.0))
        return np.array([math.cos(angle), math.sin(angle)], np.float32)


def texts(hits: Sequence[Hit]) -> list[str]:
    return [hit.memory.text for hit in hits]


def parts(hit: Hit) -> dict[str, float]:
    return {part.name: part.share for part in hit.explain().parts}
