"""What is asked of a view: the words, the filters, and how to answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from typing import Final, Literal

import msgspec

from recollect.policies.decay import Decay
from recollect.policies.ranking import Ranking
from recollect.text.times import QuestionTime
from recollect.values.filters import Filter

Rerank = Callable[[str, Sequence[str]], Sequence[float]]
"""Scores of texts as answers to a question, higher is better."""
LOCAL: Final = "local"
"""The cross-encoder that `recollect models pull --reranker` installs."""


LOOKED_AT = 20_000
"""Characters of a memory, and of a question, that are looked at for names, numbers and spellings."""


class Question(msgspec.Struct, frozen=True):
    """A query and its filters, which differ in their view only."""

    text: str
    wheres: Sequence[Filter]
    limit: int
    as_of: datetime | None = None
    zone: tzinfo | None = None
    rerank: Rerank | Literal["local"] | None = None
    doubles: bool = False
    """Whether memories of the same text are all wanted."""
    ranking: Ranking | None = None
    """In place of the preset's."""
    decay: Decay | None = None
    """In place of the view's."""
    min_relevance: float | None = None
    """What every hit must have; without it, the preset says when nothing is an answer, and what is left out."""
    wanted: int | None = None
    """How many hits the recall wants that is explained. So many memories with a word of the question make looking
    inside longer words needless, and candidates are chosen for so many hits."""
    topic: bool = False
    """Whether all that bears on it is wanted, and not only what answers best."""
    exact: bool = False
    """Whether a hit must have every quoted phrase. Else those that have it come first."""
    names: bool = False
    """Whether its phrase is a name, that memories may also have as an alias of it."""
    unlimited: bool = False
    """Whether everything is a candidate, and not only the best by words and by meaning."""
    past: QuestionTime | None = None
    """The time before now that it names, where memories that were valid then and superseded since are candidates."""

    @property
    def hits_wanted(self) -> int:
        return self.limit if self.wanted is None else self.wanted

    @property
    def chosen_for(self) -> int:
        return self.limit if self.unlimited else self.hits_wanted

    @property
    def now(self) -> datetime:
        return self.wheres[0].now
