"""The memories of all places that a question is put to, side by side in arrays, and what it finds in each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from recollect.filters import Filter
from recollect.policies.ranking import Calibrated
from recollect.recall import lexical
from recollect.recall.calibrated import Columns as Kept
from recollect.recall.calibrated import Lending, lendings
from recollect.stores.columns import View
from recollect.stores.corpus import Corpus
from recollect.stores.port import Place
from recollect.text import asked as speakers
from recollect.text.query import TextQuery
from recollect.text.times import Asked, closeness

T = TypeVar("T")
Floats = NDArray[np.float32]
_LOOSE_WORTH = 0.5
"""What a match inside a longer word is worth beside a match of the whole word."""


class Part(NamedTuple):
    """One place, and which of its memories may be found."""

    place: Place
    corpus: Corpus
    view: View

    @property
    def shown(self) -> NDArray[np.bool_]:
        return self.view.mask

    def once(self, what: Hashable, make: Callable[[], T]) -> T:
        """What depends on no question, made when first asked for."""
        kept = self.view.kept
        if what not in kept:
            kept[what] = make()
        return kept[what]

    def length(self) -> Floats:
        return self.once("length", lambda: self.corpus.columns.column("length").astype(np.float32))

    def brake(self) -> Floats:
        return self.once("brake", lambda: lexical.brake_of(self.length(), self.shown))

    def speakers(self) -> frozenset[str]:
        return self.once("speakers", self._speakers)

    def _speakers(self) -> frozenset[str]:
        columns = self.corpus.columns
        heard = np.zeros(len(columns.speakers.values), np.bool_)
        heard[columns.column("speaker")[self.shown]] = True
        return frozenset(columns.speakers.values[code] for code in np.flatnonzero(heard).tolist())

    def lending(self, weights: Calibrated) -> tuple[Lending, ...]:
        columns = self.corpus.columns
        kept = Kept(self.length(), *(columns.column(name) for name in ("conversation", "before", "after")))
        return self.once(weights, lambda: lendings(kept, weights, self.shown))


def part(place: Place, corpus: Corpus, where: Filter, wish: TextQuery) -> Part:
    view = corpus.columns.view(where)
    required = corpus.required(wish)
    if required is not None:
        has = np.zeros_like(view.mask)
        has[required] = True
        view = View(view.mask & has)
    return Part(place, corpus, view)


class Pool:
    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self._starts = np.cumsum([0, *(len(one.shown) for one in parts)])
        self.shown: NDArray[np.bool_] = self._join(lambda one: one.shown, np.bool_)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def _join(self, column: Callable[[Part], NDArray[Any]], kind: Any) -> NDArray[Any]:
        if len(self.parts) == 1:
            return column(self.parts[0])
        return np.concatenate([column(one) for one in self.parts]) if self.parts else np.zeros(0, kind)

    def owner(self, at: int) -> tuple[Part, int]:
        """The place that a position belongs to, and its position there."""
        number = int(np.searchsorted(self._starts, at, "right")) - 1
        return self.parts[number], at - int(self._starts[number])

    def ident(self, at: int) -> str:
        one, here = self.owner(at)
        return one.corpus.columns.ids[here]

    def created(self) -> NDArray[np.float64]:
        """In seconds."""
        return self._join(lambda one: one.corpus.columns.column("created"), np.int64) / 1e6

    def kept(self) -> Kept:
        """What the calibrated score needs of each memory."""

        def shifted(name: str) -> NDArray[Any]:
            if len(self.parts) == 1:
                return self.parts[0].corpus.columns.column(name)
            columns = [one.corpus.columns.column(name) for one in self.parts]
            return np.concatenate(
                [np.where(column < 0, -1, column + start) for column, start in zip(columns, self._starts, strict=False)]
            )

        length = self._join(Part.length, np.float32)
        # A conversation has fewer numbers than its place has memories, so adding the start keeps places apart.
        return Kept(length, shifted("conversation"), shifted("before"), shifted("after"))

    def lending(self, weights: Calibrated) -> tuple[Lending, ...]:
        """Neighbours are of the same place, so each place keeps its own."""
        found = [one.lending(weights) for one in self.parts]
        if len(found) == 1:
            return found[0]
        return tuple(
            Lending(
                np.concatenate([np.where(one.position < 0, -1, one.position + start) for one, start in here]),
                np.concatenate([one.share for one, _ in here]),
            )
            for lent in zip(*found, strict=True)
            for here in [list(zip(lent, self._starts.tolist(), strict=False))]
        )

    def text(self, wish: TextQuery, limit: int, sharpen: bool) -> Floats:
        """How well the words match, place by place."""
        return self._join(lambda one: self._text(one, wish, limit, sharpen), np.float32)

    def _text(self, one: Part, wish: TextQuery, limit: int, sharpen: bool) -> Floats:
        corpus, shown = one.corpus, one.shown
        if not wish.words:
            return shown.astype(np.float32) if wish.phrases or wish.patterns else np.zeros(len(shown), np.float32)
        brake, texts = one.brake(), corpus.texts if sharpen else None
        scores = lexical.text_scores(corpus.terms(wish), corpus.postings, brake, texts, shown)
        if np.count_nonzero(scores) < limit:
            loosely = corpus.terms(msgspec.structs.replace(wish, loose=True))
            loose = lexical.text_scores(loosely, corpus.postings, brake, None, shown)
            fresh = (scores == 0) & (loose > 0)
            if fresh.any():
                weakest = float(scores[scores > 0].min(initial=np.inf)) if scores.any() else 1.0
                scores[fresh] = _LOOSE_WORTH * weakest * loose[fresh] / float(loose[fresh].max())
        if wish.phrases or wish.patterns:
            scores[shown & (scores == 0)] = 1e-3  # what has every phrase is found without the words too
        return scores

    def cosines(self, query: Floats) -> Floats | None:
        """NaN where a memory has no vector; None if none has."""
        found = [one.corpus.cosines(query) for one in self.parts]
        if all(one is None for one in found):
            return None
        sizes = [len(one.shown) for one in self.parts]
        return np.concatenate(
            [np.full(size, np.nan, np.float32) if one is None else one for one, size in zip(found, sizes, strict=True)]
        )

    def vector(self, at: int) -> Floats | None:
        one, here = self.owner(at)
        vectors = one.corpus.columns.vectors
        return vectors.matrix[here] if vectors is not None and here < len(vectors.has) and vectors.has[here] else None

    def speakers(self) -> set[str]:
        """Of what may be found."""
        return {name for one in self.parts for name in one.speakers()} - {""}

    def said_by(self, named: set[str]) -> NDArray[np.bool_] | None:
        if not named:
            return None
        return self._join(
            lambda one: one.corpus.columns.speakers.table(named.__contains__)[one.corpus.columns.column("speaker")],
            np.bool_,
        )

    def asked(self, query: str) -> set[str]:
        """The speakers that a question is about."""
        return speakers.asked(query, self.speakers())

    def close_to(self, asked: Asked | None) -> Floats | None:
        return None if asked is None else closeness(asked, self.created())
