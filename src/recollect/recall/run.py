"""One recall: what a question is after, the searches that it needs, and which of the hits are told."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.policies.importance import small_talk
from recollect.policies.ranking import Calibrated, Part, Score
from recollect.recall.aliases import learnt, other_names, other_readings, saved
from recollect.recall.distinct import distinct
from recollect.recall.hits import Hit, Hits
from recollect.recall.order import by_score
from recollect.recall.past import about_past
from recollect.recall.question import LOOKED_AT, Question
from recollect.recall.reranking import reranked
from recollect.recall.scoring import Ranked, Scoring
from recollect.recall.search import Readings, Search
from recollect.recall.selection import selected, speaks_for_itself
from recollect.runtime import imports
from recollect.stores.integrity import CHANGED, damage_note, is_intact, log_damage
from recollect.stores.port import Place
from recollect.text import questions
from recollect.text.query import TextQuery
from recollect.text.query_parser import parse_query, without_quotes
from recollect.view import View

_LATE = [f"recollect.recall.{name}" for name in ("pool", "calibrated", "distinct", "freshness", "judging")]
"""What needs numpy."""
_WHOLE = 0.99
"""The share of a question from which nothing of it is missing."""
_PART_OF_NAME = 0.4
"""The share of a name by which somebody is called, of first name and surname."""
_NO_QUOTES = str.maketrans({'"': " ", "“": " ", "”": " "})


class RecallRun:
    """One recall."""

    def __init__(self, view: View, question: Question) -> None:
        self._view = view
        self._rules = view.preset.recall
        self._ranking = question.ranking or view.preset.ranking
        chosen_here = isinstance(self._ranking, Calibrated) and question.min_relevance is None
        self._chooses = chosen_here and not (question.topic or question.exact)
        """Whether what is told is chosen by what the question is after."""
        topic = questions.topic(question.text) if self._chooses else None
        self._topic = None if topic is None else _PART_OF_NAME if questions.is_name(topic) else _WHOLE
        text = question.text if topic is None else topic
        self._query = parse_query(text)
        # Names, times and identifiers are looked for several times: not in a whole book.
        self._question = msgspec.structs.replace(question, text=text[:LOOKED_AT])
        self._readings = Readings()
        self._notes = self._readings.notes

    def hits(self) -> Hits:
        """The best, best first. Nothing is touched here."""
        question, query = self._question, self._query
        if not query and (self._view.embedding is None or not question.text.strip()):
            return Hits()
        if self._holds_back and small_talk(question.text) and not (query.patterns or query.phrases):
            hits = Hits()
            hits.answered, hits.report = 0.0, "nothing relevant: nothing was asked"
            return hits
        imports.load(*_LATE)
        question = self._question = about_past(self._view, question)
        ranked = self._ranked()
        answers, why = self._answers(ranked)
        likely = None if ranked.likelihood is None else ranked.likelihood.value
        if self._chooses and question.rerank is None:
            answers, likely = self._with_parts(answers, likely)
        if why and not answers:
            self._notes.append(why)
        hits = Hits(answers)
        hits.pending, hits.report, hits.answered = ranked.pending, "; ".join(dict.fromkeys(self._notes)), likely
        return hits

    @property
    def _holds_back(self) -> bool:
        """Whether anything can be too far from the question to be told."""
        asked = self._question.min_relevance
        return isinstance(self._ranking, Calibrated) and (self._rules.min_relevance if asked is None else asked) > 0.0

    def _answers(self, ranked: Ranked) -> tuple[list[Hit], str]:
        """As many as are wanted of those that answer, and why there are none."""
        question = self._question
        return selected(
            self._intact(self._distinct(self._reranked(ranked))),
            ranked.likelihood,
            question.min_relevance,
            self._rules,
            all_that_bear=question.topic,
            topic=self._topic,
        )

    def _with_parts(self, answers: list[Hit], likely: float | None) -> tuple[list[Hit], float | None]:
        """Where several things are asked, what answers each of them as well. A turn comes by the whole question."""
        both = {hit.memory.id: hit for hit in answers}
        for part in questions.parts(self._question.text):
            ranked = Scoring(self._view, msgspec.structs.replace(self._question, text=part), self._readings).ranked()
            for hit in self._answers(ranked)[0]:
                before = both.get(hit.memory.id)
                if speaks_for_itself(hit.memory) and (before is None or hit.score > before.score):
                    both[hit.memory.id] = hit
            if ranked.likelihood is not None:
                likely = max(likely or 0.0, ranked.likelihood.value)
        if len(both) > len(answers):
            answers = sorted(both.values(), key=by_score)[: self._question.limit]
        return answers, likely

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

    def _ranked(self) -> Ranked:
        """What is found by the question as it is, and by the other names of what it names."""
        ranked = self._as_asked()
        if self._question.exact and not self._question.names:
            return ranked
        pairs = saved(self._view, self._readings.aliases or ()) + learnt(hit.memory.text for hit in ranked.hits)
        readings = other_names if self._question.names else other_readings
        for reading in readings(self._question.text, pairs):
            again = self._scored(msgspec.structs.replace(self._question, text=reading.text))
            if again.hits:
                self._notes.append(f"read {reading.note}")
                ranked = _together(ranked, again)
        return ranked

    def _as_asked(self) -> Ranked:
        """First what has the quoted phrases; nothing else where the question is nothing but a phrase."""
        question, query = self._question, self._query
        if not query.phrases or question.exact or not isinstance(self._ranking, Calibrated):
            return self._scored(question, query)
        having, share = self._having_phrases(query)
        plain = without_quotes(question.text) or ("" if having.hits else question.text.translate(_NO_QUOTES))
        if not plain:
            return having
        if not having.hits:
            phrases = ", ".join(f'"{phrase}"' for phrase in query.phrases)
            self._notes.append(f"no memory has {phrases} as it is written: its words were looked for")
        ranked = self._scored(msgspec.structs.replace(question, text=plain))
        weight = self._ranking.text
        relevance = {hit.memory.id: hit.relevance or 0.0 for hit in ranked.hits}
        best = max(relevance.values(), default=0.0)
        hits = {hit.memory.id: hit for hit in (*having.hits, *ranked.hits)}
        for ident, part in share.items():
            hit = hits[ident]
            phrase = Part("phrase", part, weight, part * weight)
            score = Score(hit.score + phrase.share, "sum", (*hit.scored.parts, phrase))
            # What is written so is more relevant than the best of the rest, and hides little of it.
            value = None if hit.relevance is None else 1.0 - (1.0 - best) * (1.0 - relevance.get(ident, hit.relevance))
            hits[ident] = Hit(hit.memory, score, value)
        return _together(ranked._replace(hits=list(hits.values())), having._replace(hits=()))

    def _having_phrases(self, query: TextQuery) -> tuple[Ranked, dict[str, float]]:
        """What has all phrases, or, if nothing has, some of them; and the share of them that each has."""
        having = self._scored(self._question, query)
        if having.hits or len(query.phrases) == 1:
            return having, {hit.memory.id: 1.0 for hit in having.hits}
        share: dict[str, float] = {}
        hits: dict[str, Hit] = {}
        search = Search(self._view, self._question, self._readings, query)
        for phrase in filter(search.is_written, query.phrases):
            having = self._scored(self._question, msgspec.structs.replace(query, phrases=(phrase,)))
            for hit in having.hits:
                hits.setdefault(hit.memory.id, hit)
                share[hit.memory.id] = share.get(hit.memory.id, 0.0) + 1.0 / len(query.phrases)
        return Ranked(list(hits.values()), having.likelihood, having.pending), share

    def _scored(self, question: Question, query: TextQuery | None = None) -> Ranked:
        return Scoring(self._view, question, self._readings, query).ranked()

    def _reranked(self, ranked: Ranked) -> Sequence[Hit]:
        hits, problem = reranked(ranked.hits, self._question, ranked.preceding, self._rules.patience)
        if problem:
            self._notes.append(problem)
        return hits

    def _distinct(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """Each text once; and where the preset says so, of memories that mean the same only the best."""
        if self._question.doubles:
            return hits
        return distinct(hits, self._rules.same_above)


def _together(first: Ranked, other: Ranked) -> Ranked:
    """The hits of two readings of a question, each by the reading that it answers better."""
    best = {hit.memory.id: hit for hit in first.hits}
    for hit in other.hits:
        before = best.get(hit.memory.id)
        if before is None or hit.score > before.score:
            best[hit.memory.id] = hit
    likely = [ranked.likelihood for ranked in (first, other) if ranked.likelihood is not None]
    likelihood = max(likely, key=lambda likelihood: likelihood.value, default=None)
    return Ranked(
        sorted(best.values(), key=by_score), likelihood, first.pending, {**other.preceding, **first.preceding}
    )
