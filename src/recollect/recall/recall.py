"""From a question to hits: what matches in words and in meaning, scored by the preset's policies."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

import msgspec

from recollect.policies.decay import Decay
from recollect.policies.importance import small_talk
from recollect.policies.ranking import Calibrated, Evidence, Part, Ranking, Score
from recollect.recall import spelling
from recollect.recall.distinct import distinct, saying
from recollect.recall.hits import Absence, Hit, Hits
from recollect.recall.order import (
    best_positions,
    by_score,
    freshened,
    of_itself,
    only_above,
    part_name,
    ranks,
    summed,
    tier_order,
)
from recollect.recall.selection import Likelihood, selected, speaks_for_itself
from recollect.recall.speakers import Speakers
from recollect.runtime import imports
from recollect.stores.integrity import CHANGED, damage_note, is_intact, log_damage
from recollect.stores.port import Place
from recollect.text.mentions import mentioned_speakers, without_names
from recollect.text.query import TextQuery
from recollect.text.query_parser import parse_query, without_quotes
from recollect.text.times import asked_time, asks_when, point
from recollect.values import validation
from recollect.values.errors import ModelError
from recollect.values.filters import Filter
from recollect.values.record import Record, moved, storing_order
from recollect.view import View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.models.embedders.base import Scale
    from recollect.recall.pool import Pool

    Floats = NDArray[np.float32]

Rerank = Callable[[str, Sequence[str]], Sequence[float]]
"""Scores of texts as answers to a question, higher is better."""

_MISSPELLED = 3
"""So many words of a question are looked for in another spelling."""
_EACH = 200
"""At least so many of the best by words, and by meaning, are scored where a store does not give all."""
_FRESH = 20
"""So many of the best are looked at for facts that newer ones replace."""


class Question(msgspec.Struct, frozen=True):
    """A query and its filters, which differ in their view only."""

    text: str
    wheres: Sequence[Filter]
    limit: int
    as_of: datetime | None = None
    zone: tzinfo | None = None
    rerank: Rerank | None = None
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
    unlimited: bool = False
    """Whether everything is a candidate, and not only the best by words and by meaning."""

    @property
    def hits_wanted(self) -> int:
        return self.limit if self.wanted is None else self.wanted

    @property
    def chosen_for(self) -> int:
        return self.limit if self.unlimited else self.hits_wanted

    @property
    def now(self) -> datetime:
        return self.wheres[0].now


_LATE = [f"recollect.recall.{name}" for name in ("pool", "calibrated", "distinct", "freshness")]
"""What needs numpy."""


class RecallRun:
    """One recall. `hits` gives its result; `absence` says why a memory is not in it."""

    def __init__(self, view: View, question: Question) -> None:
        self._view = view
        self._store = view.store
        self._rules = view.preset.recall
        self._ranking = question.ranking or view.preset.ranking
        self._decay = question.decay or view.decay
        self._question = question
        self._embedding = view.embedding
        self._query = parse_query(question.text)
        self._read_records: dict[tuple[Place, str], Record] = {}
        """Memories that were read for this question."""
        self._model = None if view.embedding is None else view.embedding.model
        self._notes: list[str] = []
        """What the caller should know about the result."""
        self._pending = 0
        self._likelihood: Likelihood | None = None

    def hits(self) -> Hits:
        """The best, best first. Nothing is touched here."""
        if not self._query and (self._model is None or not self._question.text.strip()):
            return Hits()
        query, greeting = self._query, small_talk(self._question.text)
        if (
            self._holds_back
            and isinstance(self._ranking, Calibrated)
            and greeting
            and not (query.patterns or query.phrases)
        ):
            hits = Hits()
            hits.answered, hits.report = 0.0, "nothing relevant: nothing was asked"
            return hits
        imports.load(*_LATE)
        hits = Hits(self._relevant(self._intact(self._distinct(self._reranked(self._preferring())))))
        notes = dict.fromkeys(self._notes)
        hits.pending, hits.report = self._pending, "; ".join(notes)
        hits.answered = None if self._likelihood is None else self._likelihood.value
        return hits

    def _intact(self, ranked: Sequence[Hit]) -> list[Hit]:
        """As many of the best as were asked for, without memories that were changed outside recollect."""
        wanted, damaged = list[Hit](), 0
        for hit in ranked:
            if len(wanted) == self._question.limit:
                break
            if is_intact(hit.memory):
                wanted.append(hit)
            else:
                damaged += 1
                log_damage(Place.of(hit.memory), hit.memory.id, CHANGED)
        if damaged:
            self._notes.append(damage_note(damaged))
        return wanted

    @property
    def _holds_back(self) -> bool:
        """Whether anything can be too far from the question to be told."""
        asked = self._question.min_relevance
        return (self._rules.min_relevance if asked is None else asked) > 0.0

    def _relevant(self, hits: list[Hit]) -> list[Hit]:
        question = self._question
        answers, note = selected(hits, self._likelihood, question.min_relevance, self._rules, topic=question.topic)
        if note:
            self._notes.append(note)
        return answers

    # Asking

    def _search(self) -> tuple[Pool, bytes | None, set[str]]:
        """The candidates, the vector that they were compared with, and the speakers that the question names.

        The vector is of the question without the names of speakers, and only the store knows who speaks. So the
        speakers of the last answer are supposed to be those of this one. Where that was wrong, or where vectors were
        missing that have been made by now, the store is asked once more.
        """
        text, speakers = self._question.text, Speakers(self._view, self._question.wheres)
        calibrated = isinstance(self._ranking, Calibrated)
        supposed = (
            mentioned_speakers(text, speakers.last()) if calibrated and self._embedding is not None else set[str]()
        )
        vector = self._vector(supposed)
        pool = self._pool(vector)
        named = mentioned_speakers(text, speakers.keep(pool.speakers())) if calibrated else set[str]()
        again = calibrated and not self._question.exact and self._respelled(pool)
        if vector is None:
            return (self._pool(None) if again else pool), None, named
        again = self._caught_up(pool) or again
        if without_names(text, named) != without_names(text, supposed):
            vector, again = self._vector(named), True
        if again:
            pool = self._pool(vector)
        return pool, vector, named

    def _vector(self, named: set[str]) -> bytes | None:
        """Of the question, without the names of speakers. Nothing is locked meanwhile: a model may take its time."""
        if self._embedding is None:
            return None
        try:
            vector = self._embedding.query(without_names(self._question.text, named), self._rules.patience)
        except ModelError as error:
            self._notes.append(f"by words alone: {error}")
            return None
        return vector.astype("<f4").tobytes()

    def _respelled(self, pool: Pool) -> bool:
        """Whether words of the question that no memory has were read as words that are one letter away."""
        unknown, meant = pool.unknown(self._query).words, dict[str, str]()
        for word in [word for word in self._query.words if word in unknown][:_MISSPELLED]:
            begins = spelling.beginning(word)
            right = begins and spelling.meant(word, self._texts_with(begins))
            if right:
                meant[word] = right
        if not meant:
            return False
        words = tuple(dict.fromkeys(meant.get(word, word) for word in self._query.words))
        self._query = msgspec.structs.replace(self._query, words=words)
        self._notes.append(", ".join(f'read "{word}" as "{right}"' for word, right in meant.items()))
        return True

    def _texts_with(self, beginning: str) -> list[str]:
        """Of memories that have a word which begins so: the texts of some, the newest."""
        from recollect.recall.pool import Pool
        from recollect.stores.shortlist import Ask

        query = TextQuery(begins=(beginning,))
        wheres = self._question.wheres
        pool = Pool([shortlist for where in wheres for shortlist in self._store.search(Ask(where, query))])
        positions = pool.having_words()[-_EACH:]
        return [record.text for record in self._read(pool, positions) if record is not None]

    def _caught_up(self, pool: Pool) -> bool:
        """Whether vectors were missing and may be there by now."""
        if self._embedding is None:
            return False
        deadline = time.monotonic() + self._rules.catch_up
        waited = [
            self._embedding.catch_up(place, lacking, deadline - time.monotonic())
            for place, lacking in pool.lacking().items()
        ]
        return any(waited)

    def _pool(self, vector: bytes | None) -> Pool:
        from recollect.recall.pool import Pool
        from recollect.stores.shortlist import Ask

        question = self._question
        each = max(_EACH, self._rules.fetch(question.chosen_for))
        lacking = 0
        if self._embedding is not None and vector is not None:
            lacking = self._embedding.countable(place for where in question.wheres for place in Place.seen_by(where))
        asks = [
            Ask(where, self._query, vector, self._model, question.hits_wanted, each, lacking)
            for where in question.wheres
        ]
        return Pool([shortlist for ask in asks for shortlist in self._store.search(ask)])

    # Scoring

    def _preferring(self) -> list[Hit]:
        """The hits, first those that have the quoted phrases; only those where the question is nothing but a phrase."""
        question, ranking, hits = self._question, self._ranking, self._rank()
        if not self._query.phrases or question.exact or not isinstance(ranking, Calibrated):
            return hits
        plain = without_quotes(question.text) or ("" if hits else question.text.translate(_NO_QUOTES))
        if not plain:
            return hits
        if not hits:
            phrases = ", ".join(f'"{phrase}"' for phrase in self._query.phrases)
            self._notes.append(f"no memory has {phrases} as it is written: its words were looked for")
        likely, self._query = self._likelihood, parse_query(plain)
        phrase = Part("phrase", 1.0, ranking.text, ranking.text)
        have = {hit.memory.id for hit in hits}
        others = self._rank()
        both = {hit.memory.id: hit for hit in (*hits, *others)}
        if likely is not None and self._likelihood is not None:
            self._likelihood = max(likely, self._likelihood)
        again = [
            Hit(hit.memory, Score(hit.score + phrase.share, "sum", (*hit.scored.parts, phrase)), hit.relevance)
            if ident in have
            else hit
            for ident, hit in both.items()
        ]
        return sorted(again, key=by_score)

    def _rank(self) -> list[Hit]:
        ranking = self._ranking
        pool, vector, named = self._search()
        if not len(pool):
            return []
        cosine = pool.cosines()
        if vector is not None and (pending := pool.pending()):
            self._pending = pending
            self._notes.append(f"{pending:,} of {pool.size():,} memories have no vector yet: those are found by words")
        text = pool.text(self._query, self._texts(pool) if cosine is None else None)
        if isinstance(ranking, Calibrated):
            return self._calibrated(pool, ranking, text, cosine, named)
        return self._by_evidence(pool, text, None if cosine is None else self._similarity(cosine))

    def _similarity(self, cosine: Floats) -> Floats:
        """In terms that mean the same whatever the model, where the model says how."""
        scale = self._scale()
        return cosine if scale is None else scale.similarity(cosine)

    def _odds(self, cosine: Floats) -> Floats | None:
        """That a memory belongs to the question, by its meaning; None where the model does not say what it means."""
        scale = self._scale()
        return None if scale is None else scale.odds(cosine)

    def _scale(self) -> Scale | None:
        from recollect.models.embedders.base import Scaled

        embedder = self._embedding.embedder if self._embedding is not None else None
        return embedder.scale if isinstance(embedder, Scaled) else None

    def _texts(self, pool: Pool) -> Callable[[Sequence[int]], dict[int, str]]:
        def texts(positions: Sequence[int]) -> dict[int, str]:
            records = zip(positions, self._read(pool, positions), strict=True)
            return {at: record.text for at, record in records if record is not None}

        return texts

    def _calibrated(
        self, pool: Pool, weights: Calibrated, text: Floats, cosine: Floats | None, named: set[str]
    ) -> list[Hit]:
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
        # Without a word in common a memory must at least not be below the average; a single memory is the average.
        worth = np.where((text > 0) | (scores.total > -_NOTHING), scores.total, -np.inf)
        best = best_positions(worth, self._rules.fetch(max(question.chosen_for, _FRESH // 2)))
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
        if weights.fresh:
            hits = freshened(question.text, hits, positions, self._model)
        odds = None if cosine is None else self._odds(cosine)
        if cosine is not None and odds is None:  # a model that does not say what its cosines mean
            return hits
        deviation = scores.meaning / np.float32(weights.meaning or 1.0)
        asked = Asked(question.text, self._query, named, odds, deviation, time)
        hits, self._likelihood = judged(hits, positions, pool, asked, self._begins_a_word)
        return hits

    def _begins_a_word(self, name: str) -> bool:
        return bool(self._texts_with(name.lower()))

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
        coverage = pool.coverage(self._query)
        order = list(dict.fromkeys([*by_text, *by_meaning]))
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
        return hits

    def _records(self, pool: Pool, order: Sequence[int]) -> list[Record | None]:
        """The memories at these positions that may be recalled; None for one that was deleted just now."""
        records, then = self._read(pool, order), self._question.as_of
        return records if then is None else self._as_of(records, then)

    def _read(self, pool: Pool, order: Sequence[int]) -> list[Record | None]:
        owners, records = [pool.owner(at) for at in order], self._read_records
        wanted: dict[Place, list[str]] = {}
        for owner in owners:
            if owner not in records:
                wanted.setdefault(owner[0], []).append(owner[1])
        for place, ids in wanted.items():
            records.update(((place, record.id), record) for record in self._store.get(place, ids))
        return [records.get(owner) for owner in owners]

    def _as_of(self, records: Sequence[Record | None], then: datetime) -> list[Record | None]:
        """Those that could be recalled at that time."""
        heirs: dict[Place, list[str]] = {}
        for record in records:
            if record is not None and record.superseded_by is not None:
                heirs.setdefault(Place.of(record), []).append(record.superseded_by)
        born = {heir.id: heir.created_at for place, ids in heirs.items() for heir in self._store.get(place, ids)}
        return [r if r is not None and _could_be_recalled(r, then, born) else None for r in records]

    def absence(self, ident: str, hits: Hits) -> Absence:
        """Why a memory is not among the hits."""
        where = self._question.wheres[0]
        records = self._view.get([ident])
        if not records:
            return Absence(ident, "there is no such memory that this view can see")
        for place, hit in enumerate(hits, 1):
            if hit.memory.id == ident:
                return Absence(ident, f"it was recalled, as number {place}", place, hit.score)
        record = records[0]
        state = record.state(where.now)
        if where.state is not None and state != where.state:
            return Absence(ident, f"it is {state}")
        if failing := _unmet(where, record):
            return Absence(ident, f"it does not meet the condition: {failing}")
        return self._outranked(record, hits)

    def _outranked(self, record: Record, hits: Hits) -> Absence:
        # With the settings of the recall that is explained: only the number of hits is another.
        everything = msgspec.structs.replace(self._question, limit=_ALL, wanted=self._question.limit, min_relevance=0.0)
        ranked = RecallRun(self._view, everything).hits()
        for place, hit in enumerate(ranked, 1):
            if hit.memory.id == record.id:
                last = f"; the last that was recalled has {hits[-1].score:.3f}" if hits else f"; {hits.report}"
                reason = f"it comes {place} of {len(ranked)} with {hit.score:.3f}{last}"
                return Absence(record.id, reason, place, hit.score)
        said_before = saying(record)
        for place, hit in enumerate(ranked, 1):
            if saying(hit.memory) == said_before:
                return Absence(record.id, f"it says the same as {hit.memory.id}", place, hit.score)
        unlimited = RecallRun(self._view, msgspec.structs.replace(everything, unlimited=True)).hits()
        if any(hit.memory.id == record.id for hit in unlimited):
            most = self._rules.fetch(self._question.limit)
            return Absence(record.id, f"it is not among the {most} best by words or by meaning, which are ranked")
        if self._model is None:
            return Absence(record.id, "it has no word of the question, and there is no model to compare the meaning")
        return Absence(record.id, "it is too far from the question in words and meaning, or has no vector yet")

    def _reranked(self, hits: list[Hit]) -> list[Hit]:
        rerank = self._question.rerank
        if rerank is None or not hits:
            return hits
        scores = rerank(self._question.text, [hit.memory.text for hit in hits])
        again = [
            Hit(hit.memory, _with_rerank(hit.scored, float(score)), hit.relevance)
            for hit, score in zip(hits, scores, strict=True)
        ]
        return sorted(again, key=by_score)

    def _distinct(self, hits: list[Hit]) -> list[Hit]:
        """Each text once; and where the preset says so, of memories that mean the same only the best."""
        if self._question.doubles:
            return hits
        return distinct(hits, self._rules.same_above)


def _with_rerank(scored: Score, rerank: float) -> Score:
    """A sum has one part more. What is multiplied cannot be added to, and gives way."""
    part = Part("rerank", rerank, 1.0, rerank)
    parts = (*scored.parts, part) if scored.how == "sum" else (part,)
    return Score(sum(part.share for part in parts), "sum", parts)


def recall(
    view: View,
    query: str,
    conditions: Mapping[str, Any],
    *,
    limit: int | None = None,
    touch: bool = True,
    as_of: datetime | str | None = None,
    why_not: str | None = None,
    rerank: Rerank | None = None,
    zone: tzinfo | None = None,
    ranking: Ranking | None = None,
    min_relevance: float | None = None,
    topic: bool = False,
) -> Hits:
    """The verb: from what a caller asks of a view to hits. `topic` is for all that bears on the query."""
    limit = view.preset.recall.limit if limit is None else validation.count(limit, "limit", high=1000)
    zone = None if zone is None else validation.zone(zone)
    then = None if as_of is None else point(as_of, "as_of", view.now(), zone)
    where = view.narrowed("live" if then is None else None, conditions, zone)
    if then is not None:
        where = filter_as_of(where, then)
    threshold = None if min_relevance is None else validation.importance(min_relevance, "min_relevance")
    question = Question(
        validation.query(query),
        [where],
        limit,
        then,
        zone,
        rerank,
        ranking=ranking,
        min_relevance=threshold,
        topic=topic,
    )
    asking = RecallRun(view, question)
    hits = asking.hits()
    if why_not is not None:
        hits.absence = asking.absence(validation.memory_id(why_not, "why_not"), hits)
    if touch and then is None:
        view.touch([hit.memory for hit in hits])
    return hits


_ALL = 1_000_000
_NO_QUOTES = str.maketrans({'"': " ", "“": " ", "”": " "})
_NOTHING = 1e-6
"""Rounding, where all are as far from the question."""


def filter_as_of(where: Filter, then: datetime) -> Filter:
    """The filter as it would have been at that time. Which memories were live then is told from each of them."""
    end = moved(then, timedelta(microseconds=1))
    return msgspec.structs.replace(where, now=then, until=end if where.until is None else min(where.until, end))


def _could_be_recalled(record: Record, then: datetime, born: dict[str, datetime]) -> bool:
    if record.archived_at is not None and record.archived_at <= then:
        return False
    if record.expires_at is not None and record.expires_at <= then:
        return False
    return record.superseded_by is None or born.get(record.superseded_by, then) > then


def _unmet(where: Filter, record: Record) -> str:
    """The first condition that a memory does not meet."""
    bare = Filter(seen_from=where.seen_from, now=where.now, state=None)
    for name in Filter.__struct_fields__:
        if name not in ("seen_from", "now", "state"):
            single = msgspec.structs.replace(bare, **{name: getattr(where, name)})
            if not single.matches(record):
                return name.replace("_", " ")
    return ""
