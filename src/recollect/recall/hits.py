"""What a recall returns, and why."""

from __future__ import annotations

import msgspec

from recollect.policies.ranking import Part, Score
from recollect.values.record import Record


class Explanation(msgspec.Struct, frozen=True):
    """The parts of a score. They add up (`sum`) or multiply (`product`) to it."""

    score: float
    how: str
    parts: tuple[Part, ...]
    relevance: float | None = None
    """The share of such hits that were right where it was measured; None where nothing was."""

    def __str__(self) -> str:
        sign = " + " if self.how == "sum" else " × "
        parts = f"{self.score:.3f} = " + sign.join(self._part(part) for part in self.parts)
        return parts if self.relevance is None else f"{parts}; relevance {self.relevance:.3f}"

    def _part(self, part: Part) -> str:
        if self.how == "sum" and part.weight != 1.0:
            return f"{part.weight:g}·{part.name} {part.value:.2f}"
        return f"{part.name} {part.share:.3f}"


class Hit(msgspec.Struct, frozen=True):
    """A memory that was recalled, with its score."""

    memory: Record
    scored: Score
    relevance: float | None = None
    """From 0 to 1: the share of such hits that were right where it was measured. None where nothing was."""

    @property
    def score(self) -> float:
        return self.scored.value

    @property
    def decay_factor(self) -> float | None:
        """What is left of the memory's importance by now; None where the ranking does not ask."""
        return next((part.value for part in self.scored.parts if part.name == "decay"), None)

    def explain(self) -> Explanation:
        """What made the score. A part without weight had no say and is left out."""
        parts = tuple(part for part in self.scored.parts if part.weight)
        return Explanation(self.scored.value, self.scored.how, parts, self.relevance)


class Absence(msgspec.Struct, frozen=True):
    """Why a memory is not among the hits."""

    id: str
    reason: str
    rank: int | None = None
    """The place that it would have had, were there no limit."""
    score: float | None = None


class Hits(list[Hit]):
    """Hits, best first."""

    absence: Absence | None = None
    """Why the memory that `why_not` named is not among them."""
    pending: int = 0
    """How many memories had no vector yet, and were looked for by their words alone."""
    answered: float | None = None
    """How likely it is that an answer is among what was found, from 0 to 1. None where nothing tells."""
    report: str = ""
    """What was not as it should be, for people: nothing where words and meaning were both asked."""

    def __str__(self) -> str:
        lines = "\n".join(f"{hit.score:.3f}  {hit.memory.text}" for hit in self)
        return lines or self.report or "nothing was recalled"
