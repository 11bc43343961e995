"""The shortlists of all places that a question is put to, side by side in arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.policies.ranking import Calibrated
from recollect.recall import lexical
from recollect.recall.calibrated import CosineMoments, Lending, Neighbours, lendings
from recollect.recall.lexical import word_weight
from recollect.stores.port import Place
from recollect.stores.shortlist import Positions, Shortlist
from recollect.text.query import TextQuery
from recollect.text.terms import MOST_TERMS, index_entries
from recollect.text.times import QuestionTime, closeness

Floats = NDArray[np.float32]
Texts = Callable[[Sequence[int]], Mapping[int, str]]
"""The texts at some positions, of those that are still there."""

_LOOSE_WORTH = 0.5
"""What a match inside a longer word is worth beside a match of the whole word."""
_REQUIRED_WORTH = 1.0
"""The text score for having every phrase and pattern, before any of the words."""
_NOWHERE = np.zeros(0, np.int64)


class Unknown(NamedTuple):
    words: set[str]
    share: float
    """Of the weight of all the words in the question; rare words weigh more."""


class Pool:
    def __init__(self, shortlists: Sequence[Shortlist]) -> None:
        self._shortlists = shortlists
        self._starts = np.cumsum([0, *(len(shortlist.seen.mask) for shortlist in shortlists)])
        self.shown: NDArray[np.bool_] = self._join(lambda shortlist: shortlist.seen.mask, np.bool_)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def _join(self, column: Callable[[Shortlist], NDArray[Any]], kind: Any) -> NDArray[Any]:
        if len(self._shortlists) == 1:
            return column(self._shortlists[0])
        return np.concatenate([column(s) for s in self._shortlists]) if self._shortlists else np.zeros(0, kind)

    def owner(self, at: int) -> tuple[Place, str]:
        """The place that a position belongs to, and the memory's id."""
        number = int(np.searchsorted(self._starts, at, "right")) - 1
        shortlist = self._shortlists[number]
        return shortlist.place, shortlist.block.ids[at - int(self._starts[number])]

    def columns(self) -> Neighbours:
        """What the calibrated score needs of each memory."""

        def shifted(name: str) -> NDArray[Any]:
            columns = [getattr(shortlist.block, name) for shortlist in self._shortlists]
            if len(columns) == 1:
                return columns[0]
            return np.concatenate(
                [np.where(column < 0, -1, column + start) for column, start in zip(columns, self._starts, strict=False)]
            )

        length = self._join(_length, np.float32)
        # The number of a conversation is one of a memory's too, so adding the start keeps places apart.
        return Neighbours(length, shifted("conversation"), shifted("before"), shifted("after"))

    def lending(self, weights: Calibrated) -> tuple[Lending, ...]:
        """Neighbours are of the same place, so each place keeps its own."""
        lent = [_lending(shortlist, weights) for shortlist in self._shortlists]
        if len(lent) == 1:
            return lent[0]
        return tuple(
            Lending(
                np.concatenate([np.where(lend.position < 0, -1, lend.position + start) for lend, start in here]),
                np.concatenate([lend.share for lend, _ in here]),
            )
            for same_step in zip(*lent, strict=True)
            for here in [list(zip(same_step, self._starts.tolist(), strict=False))]
        )

    def text(self, query: TextQuery, texts: Texts | None) -> Floats:
        """How well the words match, place by place. With `texts` the best are read to see how often they say it."""
        scores = [
            _text(shortlist, query, None if texts is None else _from(int(start), texts))
            for shortlist, start in zip(self._shortlists, self._starts, strict=False)
        ]
        return scores[0] if len(scores) == 1 else np.concatenate(scores)

    def coverage(self, query: TextQuery, positions: Sequence[int]) -> dict[int, float]:
        """The share of what the question asks for that each of these has, from 0 to 1: words, phrases and patterns."""
        shares: dict[int, float] = {}
        rows = np.array(sorted(positions), np.int64)
        for shortlist, start, end in zip(self._shortlists, self._starts, self._starts[1:], strict=False):
            here = rows[(rows >= start) & (rows < end)]
            shares.update(zip(here.tolist(), _coverage(shortlist, query, here - start).tolist(), strict=True))
        return shares

    def frequency(self, word: str) -> int:
        """How many memories that can be seen have it, of those words that were looked for."""
        return sum(_frequency(shortlist, word) for shortlist in self._shortlists)

    def unknown(self, query: TextQuery, guessed: Collection[str] = ()) -> Unknown:
        """Which words of the question no memory has. Those that are only `guessed` count as well."""
        weights: dict[str, float] = {}
        unknown: set[str] = set()
        for word in query.words[:MOST_TERMS]:
            frequency = self.frequency(word)
            weights[word] = word_weight(frequency, max(self.size(), frequency))
            if not frequency:
                unknown.add(word)
        weight = sum(weights[word] for word in unknown) + sum(weights.get(word, 0.0) for word in guessed)
        return Unknown(unknown, weight / (sum(weights.values()) or 1.0))

    def having_words(self) -> list[int]:
        """The positions of all that have one of the words that were looked for."""
        positions = [
            at + start
            for shortlist, start in zip(self._shortlists, self._starts, strict=False)
            for at in shortlist.words.values()
        ]
        return np.unique(np.concatenate(positions)).tolist() if positions else []

    def nearest(self, query: TextQuery, most: int) -> list[int]:
        """The positions of the best by meaning, or of those with a word of it where nothing was compared."""
        from recollect.recall.order import best_positions, only_above

        if not self._shortlists:
            return []
        cosines = self.cosines()
        if cosines is None:
            return best_positions(only_above(self.text(query, None), 0.0, self), most)
        return best_positions(np.where(self.shown, np.nan_to_num(cosines, nan=-1.0), -np.inf), most)

    def cosines(self) -> Floats | None:
        """NaN where a memory has no vector; None if none has of all that can be seen."""
        if not any(shortlist.whole.compared for shortlist in self._shortlists):
            return None

        def cosine(shortlist: Shortlist) -> Floats:
            if shortlist.cosine is not None:
                return shortlist.cosine
            return np.full(len(shortlist.seen.mask), np.nan, np.float32)

        return self._join(cosine, np.float32)

    def moments(self) -> CosineMoments:
        """The mean and spread of the cosine over all that can be seen and compared, shortlisted or not."""
        wholes = [shortlist.whole for shortlist in self._shortlists if shortlist.whole.compared]
        count = sum(whole.compared for whole in wholes)
        if not count:
            return CosineMoments(0.0, 0.0)
        mean = sum(whole.compared * whole.cosine for whole in wholes) / count
        squares = sum(whole.compared * (whole.spread**2 + (whole.cosine - mean) ** 2) for whole in wholes)
        return CosineMoments(mean, float(np.sqrt(squares / count)))

    def size(self) -> int:
        """How many can be seen, shortlisted or not."""
        return sum(shortlist.whole.memories for shortlist in self._shortlists)

    def pending(self) -> int:
        """How many of them have no vector to be compared by, and should have one."""
        here = (shortlist.whole for shortlist in self._shortlists if shortlist.place.workspace is not None)
        return sum(whole.memories - whole.compared for whole in here)

    def speakers(self) -> set[str]:
        """The speakers of all visible memories, shortlisted or not."""
        return {name for shortlist in self._shortlists for name in shortlist.whole.speakers} - {""}

    def lacking(self) -> dict[Place, int]:
        """How many memories of each place have no vector, up to the number that was asked for."""
        return {shortlist.place: shortlist.whole.lacking for shortlist in self._shortlists if shortlist.whole.lacking}

    def spoken_by(self, named: set[str]) -> NDArray[np.bool_] | None:
        return self._spoken(lambda name: name in named) if named else None

    def spoken_by_others(self, named: set[str]) -> NDArray[np.bool_] | None:
        """What somebody said who is not one of these. What nobody said is neither."""
        return self._spoken(lambda name: name != "" and name not in named) if named else None

    def _spoken(self, wanted: Callable[[str], bool]) -> NDArray[np.bool_]:
        def spoken(shortlist: Shortlist) -> NDArray[np.bool_]:
            block = shortlist.block
            speakers = list(block.speakers)
            return np.fromiter(map(wanted, speakers), np.bool_, len(speakers))[block.speaker]

        return self._join(spoken, np.bool_)

    def close_to(self, asked: QuestionTime | None) -> Floats | None:
        if asked is None:
            return None
        return closeness(asked, self._join(lambda shortlist: shortlist.block.created, np.int64) / 1e6)


def _from(start: int, texts: Texts) -> Texts:
    """Values by their position in one place."""

    def here(positions: Sequence[int]) -> Mapping[int, str]:
        return {at - start: text for at, text in texts([at + start for at in positions]).items()}

    return here


def _length(shortlist: Shortlist) -> Floats:
    return shortlist.seen.once("length", lambda: shortlist.block.length.astype(np.float32))


def _lending(shortlist: Shortlist, weights: Calibrated) -> tuple[Lending, ...]:
    block, seen = shortlist.block, shortlist.seen
    columns = Neighbours(_length(shortlist), block.conversation, block.before, block.after)
    return seen.once(weights, lambda: lendings(columns, weights, seen.mask))


def _coverage(shortlist: Shortlist, query: TextQuery, rows: Positions) -> Floats:
    """Rare words count more, each phrase or pattern as much as the rarest word. A store shows only what has all."""
    whole = shortlist.whole
    weights: dict[str, float] = {}
    covered = np.zeros(len(rows), np.float32)
    for word in query.words[:MOST_TERMS]:
        # A word of Chinese or Thai stands under several entries of the index, and ß under ss.
        entries = index_entries(TextQuery((word,)))
        weights[word] = word_weight(_frequency(shortlist, word), whole.memories)
        share = np.zeros(len(rows), np.float32)
        for entry in entries:
            share[_among(shortlist, shortlist.words.get(entry, _NOWHERE), rows)] += 1.0 / len(entries)
        for entry in index_entries(TextQuery((word,), loose=True)) if shortlist.loose else ():
            at = _among(shortlist, shortlist.loose.get(entry, _NOWHERE), rows)
            share[at] = np.maximum(share[at], np.float32(_LOOSE_WORTH))
        covered += np.float32(weights[word]) * share
    required = (len(query.phrases) + len(query.patterns)) * max(weights.values(), default=1.0)
    total = sum(weights.values()) + required
    if not total:
        return covered
    return np.where(shortlist.seen.mask[rows], np.minimum((covered + required) / total, 1.0), 0.0).astype(np.float32)


def _among(shortlist: Shortlist, positions: Positions, rows: Positions) -> NDArray[np.bool_]:
    """Which of the rows are among the positions."""
    has = np.zeros(len(shortlist.seen.mask), np.bool_)
    has[positions] = True
    return has[rows]


def _frequency(shortlist: Shortlist, word: str) -> int:
    """How many memories that can be seen have a word."""
    return min((shortlist.whole.frequency.get(entry, 0) for entry in index_entries(TextQuery((word,)))), default=0)


def _text(shortlist: Shortlist, query: TextQuery, texts: Texts | None) -> Floats:
    shown, whole = shortlist.seen.mask, shortlist.whole
    selected = bool(query.phrases or query.patterns)
    if not query.words:
        return shown.astype(np.float32) if selected else np.zeros(len(shown), np.float32)
    brake = shortlist.seen.once("brake", lambda: lexical.brake_of(_length(shortlist), whole.length))

    def scored(words: Mapping[str, Positions], read: Texts | None) -> Floats:
        return lexical.text_scores(words, whole.memories, whole.frequency, brake, read, selected=selected)

    scores = scored(shortlist.words, texts)
    if shortlist.loose:
        loose = scored(shortlist.loose, None)
        fresh = (scores == 0) & (loose > 0)
        if fresh.any():
            weakest = float(scores[scores > 0].min(initial=np.inf)) if scores.any() else 1.0
            scores[fresh] = _LOOSE_WORTH * weakest * loose[fresh] / float(loose[fresh].max())
    if selected:  # every memory shown has the phrases and patterns; words come on top of that
        scores[shown] += np.float32(_REQUIRED_WORTH)
    return scores
