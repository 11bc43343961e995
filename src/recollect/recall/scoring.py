"""From a question to ranked memories: what matches in words and in meaning, scored by the preset's policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from recollect.policies.ranking import Calibrated, Evidence
from recollect.recall.hits import Hit
from recollect.recall.order import (
    best_positions,
    by_score,
    freshened,
    of_itself,
    only_above,
    part_name,
    ranks,
    spread,
    summed,
    tier_order,
)
from recollect.recall.past import could_answer, past_first
from recollect.recall.question import LOCAL, Question
from recollect.recall.search import Readings, Search
from recollect.recall.selection import Likelihood, speaks_for_itself
from recollect.stores.port import Place
from recollect.text.query import TextQuery
from recollect.text.questions import asks_for_list
from recollect.text.times import asked_time, asks_when
from recollect.values.record import Record, storing_order
from recollect.view import View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.models.embedders.base import Scale
    from recollect.recall.pool import Pool

    Floats = NDArray[np.float32]

_FRESH = 20
"""So many of the best are looked at for facts that newer ones replace."""
_NOTHING = 1e-6
"""Rounding, where all are as far from the question."""


class Ranked(NamedTuple):
    """Best first."""

    hits: Sequence[Hit] = ()
    likelihood: Likelihood | None = None
    pending: int = 0
    """How many memories have no vector yet."""
    preceding: Mapping[str, str] = {}
    """What was said before each turn, by its id, where a reranker reads that as well."""


class Scoring:
    """Of one question, as it is written. The notes of `readings` say what the caller should know."""

    def __init__(self, view: View, question: Question, readings: Readings, query: TextQuery | None = None) -> None:
        self._view = view
        self._store = view.store
        self._rules = view.preset.recall
        self._ranking = question.ranking or view.preset.ranking
        self._decay = question.decay or view.decay
        self._question = question
        self._embedding = view.embedding
        self._notes = readings.notes
        self._search = Search(view, question, readings, query)

    def ranked(self) -> Ranked:
        search, ranking = self._search, self._ranking
        pool, vector, named = search.candidates()
        if not len(pool):
            tells = isinstance(ranking, Calibrated) and (vector is None or self._scale() is not None)
            return Ranked(likelihood=Likelihood(0.0) if tells else None)
        cosine = pool.cosines()
        pending = 0 if vector is None else pool.pending()
        if pending:
            self._notes.append(f"{pending:,} of {pool.size():,} memories have no vector yet: those are found by words")
        text = pool.text(search.query, self._texts(pool) if cosine is None else None)
        if isinstance(ranking, Calibrated):
            hits, positions, likelihood = self._calibrated(pool, ranking, text, cosine, named)
            preceding = self._preceding(pool, positions) if self._question.rerank == LOCAL else {}
            return Ranked(hits, likelihood, pending, preceding)
        similar = None if cosine is None else self._similarity(cosine)
        return Ranked(self._by_evidence(pool, text, similar), None, pending)

    def _similarity(self, cosine: Floats) -> Floats:
        """In terms that mean the same whatever the model, where the model says how."""
        scale = self._scale()
        return cosine if scale is None else scale.similarity(cosine)

    def _scale(self) -> Scale | None:
        from recollect.models.embedders.base import Scaled

        embedder = self._embedding.embedder if self._embedding is not None else None
        return embedder.scale if isinstance(embedder, Scaled) else None

    def _texts(self, pool: Pool) -> Callable[[Sequence[int]], dict[int, str]]:
        def texts(positions: Sequence[int]) -> dict[int, str]:
            records = zip(positions, self._search.read(pool, positions), strict=True)
            return {at: record.text for at, record in records if record is not None}

        return texts

    def _calibrated(
        self, pool: Pool, weights: Calibrated, text: Floats, cosine: Floats | None, named: set[str]
    ) -> tuple[list[Hit], dict[str, int], Likelihood | None]:
        """The hits, the position of each by its id, and how likely an answer is among them."""
        import numpy as np

        from recollect.recall.calibrated import score
        from recollect.recall.judging import Asked, judged

        question = self._question
        when = asked_time(question.text, question.now, question.zone)
        speaker, time = pool.spoken_by(named), pool.close_to(when)
        scores = score(
            text,
            cosine,
            pool.columns(),
            speaker=speaker,
            time=time,
            visible=pool.shown,
            weights=weights,
            lending=pool.lending(weights),
            moments=pool.moments(),
        )
        best = self._best(pool, text, scores.total)
        hits: list[Hit] = []
        positions: dict[str, int] = {}
        asked_when = asks_when(question.text)
        names = ("text", "meaning", "neighbours", part_name("speaker", named), part_name("time", when))
        for at, record in zip(best, self._records(pool, best), strict=True):
            if record is not None:
                # A memory outside any conversation is its own best company.
                company = "alone" if record.address.conversation is None else "conversation"
                shares = [float(part[at]) for part in scores[:6]]
                own = of_itself(record.text, not speaks_for_itself(record), asked_when, weights)
                scored = summed((*names, company), shares, weights, own)
                hits.append(Hit(record, scored))
                positions[record.id] = at
        hits.sort(key=by_score)
        if weights.again and asks_for_list(question.text):
            hits = spread(hits, weights.again)
        hits, superseded = self._apart(hits)
        newer: dict[str, str] = {}
        if weights.fresh:
            hits, newer = freshened(question.text, hits, positions, self._search.model)
        if superseded and question.past is not None:
            hits, moved = past_first(self._view, hits, superseded, question.past)
            newer |= moved
        scale = self._scale()
        if cosine is not None and scale is None:  # a model that does not say what its cosines mean
            return hits, positions, None
        odds = None if cosine is None or scale is None else dict(zip(best, scale.odds(cosine[best]), strict=True))
        deviation = dict(zip(best, scores.meaning[best] / np.float32(weights.meaning or 1.0), strict=True))
        asked = Asked(question.text, self._search.query, named, odds, deviation, time)
        hits, likelihood = judged(hits, positions, pool, asked, self._search, newer)
        return hits, positions, likelihood

    def _preceding(self, pool: Pool, positions: Mapping[str, int]) -> dict[str, str]:
        """What was said before each of these in the same conversation, of what the view sees."""
        from recollect.recall.calibrated import skipping

        before = skipping(pool.columns().before, pool.shown)
        pairs = [(ident, int(before[at])) for ident, at in positions.items()]
        shown = [(ident, at) for ident, at in pairs if at >= 0]
        records = self._records(pool, [at for _, at in shown])
        return {ident: r.text for (ident, _), r in zip(shown, records, strict=True) if r is not None}

    def _best(self, pool: Pool, text: Floats, total: Floats) -> list[int]:
        """The positions of the best that are close enough to the question to be shown at all."""
        import numpy as np

        from recollect.recall.judging import FEW

        wanted = self._rules.fetch(max(self._question.chosen_for, _FRESH // 2))
        best = best_positions(total, wanted)
        if pool.size() <= FEW or (len(best) == wanted and total[best[-1]] > -_NOTHING):
            return best
        # Without a word in common a memory must at least not be below the average; a single memory is the average.
        close = (text > 0) | (total > -_NOTHING)
        return best_positions(np.where(close, total, np.float32(-np.inf)), wanted)

    def _by_evidence(self, pool: Pool, text: Floats, similar: Floats | None) -> list[Hit]:
        """The best hits by words and by vectors, each scored on its own."""
        rules, question = self._rules, self._question
        wanted = rules.fetch(question.chosen_for)
        by_text = ranks(only_above(text, 0.0, pool), wanted)
        by_meaning: dict[int, int] = {}
        if similar is not None:
            threshold = -1.0 if rules.threshold is None else rules.threshold
            by_meaning = ranks(only_above(similar, threshold, pool), wanted)
            if rules.threshold is not None:
                by_text = {at: rank for at, rank in by_text.items() if not similar[at] < rules.threshold}
        order = list(dict.fromkeys([*by_text, *by_meaning]))
        coverage = pool.coverage(self._search.query, order)
        hits: list[Hit] = []
        matched: dict[str, float] = {}
        for at, record in zip(order, self._records(pool, order), strict=True):
            if record is None:
                continue
            words = float(coverage[at]) if at in by_text or similar is None else None
            likeness = None if similar is None or similar[at] != similar[at] else float(similar[at])
            evidence = Evidence(record, question.text, words, by_text.get(at), likeness, by_meaning.get(at))
            hits.append(Hit(record, self._ranking.score(evidence, self._decay, question.now)))
            matched[record.id] = float(text[at])
        # The share of the words is the same for many; of those, the better match by BM25 comes first.
        hits.sort(key=lambda hit: (-hit.score, tier_order(hit), -matched[hit.memory.id], storing_order(hit.memory.id)))
        hits, superseded = self._apart(hits)
        if superseded and question.past is not None:
            hits, _ = past_first(self._view, hits, superseded, question.past)
        return hits

    def _apart(self, hits: list[Hit]) -> tuple[list[Hit], list[Hit]]:
        """Without what was superseded since the time that the question is about, and that."""
        if self._question.past is None:
            return hits, []
        superseded = [hit for hit in hits if hit.memory.superseded_by is not None]
        return [hit for hit in hits if hit.memory.superseded_by is None], superseded

    def _records(self, pool: Pool, order: Sequence[int]) -> list[Record | None]:
        """The memories at these positions that may be recalled; None for one that was deleted just now."""
        records, then, past = self._search.read(pool, order), self._question.as_of, self._question.past
        if past is not None:
            now = self._question.now
            return [r if r is not None and could_answer(r, past, now) else None for r in records]
        return records if then is None else self._as_of(records, then)

    def _as_of(self, records: Sequence[Record | None], then: datetime) -> list[Record | None]:
        """Those that could be recalled at that time."""
        heirs: dict[Place, list[str]] = {}
        for record in records:
            if record is not None and record.superseded_by is not None:
                heirs.setdefault(Place.of(record), []).append(record.superseded_by)
        born = {heir.id: heir.created_at for place, ids in heirs.items() for heir in self._store.get(place, ids)}
        return [r if r is not None and _could_be_recalled(r, then, born) else None for r in records]


def _could_be_recalled(record: Record, then: datetime, born: dict[str, datetime]) -> bool:
    if record.archived_at is not None and record.archived_at <= then:
        return False
    if record.expires_at is not None and record.expires_at <= then:
        return False
    if record.valid_until is not None and record.valid_until <= then:
        return False
    return record.superseded_by is None or born.get(record.superseded_by, then) > then
