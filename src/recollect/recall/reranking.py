"""What a reranker adds to the scores of the best hits: a function of the caller's, or the local cross-encoder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from recollect.policies.ranking import Part, Score
from recollect.recall.hits import Hit
from recollect.recall.order import by_score
from recollect.recall.question import LOCAL, Question
from recollect.values.errors import InputError, ModelError

_LOOKED_AT = 20
"""So many of the best are read by the local model, which takes some 20 ms for each."""
_WEIGHT = 0.5
"""Of what the local model says. By itself it orders no better than the score."""


def reranked(
    hits: Sequence[Hit], question: Question, preceding: Mapping[str, str], patience: float
) -> tuple[Sequence[Hit], str]:
    """The hits in their new order, and why it is the old one where the model gave no answer.

    `preceding` is what was said before each turn: "yes, three" answers nothing by itself.
    """
    rerank = question.rerank
    if rerank is None or not hits:
        return hits, ""
    if rerank != LOCAL:
        again = [_added(hit, Part("rerank", score, 1.0, score)) for hit, score in _scored(hits, question)]
        return _in_order(again), ""
    from recollect.models.reranker import local_reranker

    first = hits[:_LOOKED_AT]
    texts = [f"{preceding.get(hit.memory.id, '')}\n{hit.memory.text}".lstrip() for hit in first]
    try:
        scores = local_reranker().scores(question.text, texts, patience)
    except ModelError as error:
        return hits, f"not reranked: {error}"
    # What was not read counts as much as the worst of what was, so that nothing gains by not being looked at.
    scores += [min(scores)] * (len(hits) - len(first))
    parts = [Part("rerank", score, _WEIGHT, _WEIGHT * score) for score in scores]
    return _in_order([_added(hit, part) for hit, part in zip(hits, parts, strict=True)]), ""


def _scored(hits: Sequence[Hit], question: Question) -> list[tuple[Hit, float]]:
    """By the caller's function."""
    rerank: Any = question.rerank
    try:
        scores = [float(score) for score in rerank(question.text, [hit.memory.text for hit in hits])]
    except (TypeError, ValueError) as error:
        raise InputError("rerank", f"must be a function that gives a number for each text: {error}") from error
    if len(scores) != len(hits) or not all(map(math.isfinite, scores)):
        raise InputError("rerank", f"gave {len(scores)} numbers, or such as are no numbers, for {len(hits)} texts")
    return list(zip(hits, scores, strict=True))


def _added(hit: Hit, part: Part) -> Hit:
    """A sum has one part more. What is multiplied cannot be added to, and gives way."""
    parts = (*hit.scored.parts, part) if hit.scored.how == "sum" else (part,)
    return Hit(hit.memory, Score(sum(part.share for part in parts), "sum", parts), hit.relevance)


def _in_order(hits: Sequence[Hit]) -> Sequence[Hit]:
    """By the new score. What is put above another is as relevant, whatever words and meaning say."""
    again = sorted(hits, key=by_score)
    if any(hit.relevance is None for hit in again):
        return again
    relevance = list(accumulate((hit.relevance or 0.0 for hit in reversed(again)), max))[::-1]
    return [Hit(hit.memory, hit.scored, value) for hit, value in zip(again, relevance, strict=True)]
