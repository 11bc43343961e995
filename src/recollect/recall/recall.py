"""From a question to hits: what matches in words and in meaning, scored by the preset's policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

import msgspec

from recollect.errors import ConcurrencyError
from recollect.filters import Filter
from recollect.models.vectors import Embedding
from recollect.policies.decay import Decay
from recollect.policies.ranking import Calibrated, Evidence, Part, Score, content_hash
from recollect.presets import Preset
from recollect.recall.hits import Absence, Hit, Hits
from recollect.record import Address, Record
from recollect.stores.port import Place, Store
from recollect.text.reading import read
from recollect.text.times import Asked, asked_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.recall.pool import Pool

    Floats = NDArray[np.float32]

Rerank = Callable[[str, Sequence[str]], Sequence[float]]
"""Scores of texts as answers to a question, higher is better."""

_FRESH = 20
"""So many of the best are looked at for facts that newer ones replace."""
_TRIES = 100
_CATCH_UP = 2.0
"""Seconds that a recall waits for the vectors of what was just stored."""


class Question(msgspec.Struct, frozen=True):
    """What was asked, and where. The filters differ in their view only."""

    text: str
    wheres: Sequence[Filter]
    limit: int
    as_of: datetime | None = None
    zone: tzinfo | None = None
    rerank: Rerank | None = None
    doubles: bool = False
    """Whether memories of the same text are all wanted."""

    @property
    def now(self) -> datetime:
        return self.wheres[0].now


class Recall:
    """One question to one store. `hits` answers it; `absence` says what kept a memory out."""

    def __init__(
        self, store: Store, preset: Preset, decay: Decay, question: Question, embedding: Embedding | None
    ) -> None:
        self._store = store
        self._preset = preset
        self._decay = decay
        self._question = question
        self._embedding = embedding
        self._wish = read(question.text)
        self._model = None if embedding is None else embedding.embedder

    def hits(self) -> Hits:
        """The best, best first. Nothing is touched here."""
        if not self._wish and (self._model is None or not self._question.text.strip()):
            return Hits()
        found = self._reranked(self._found())
        return Hits(self._distinct(found)[: self._question.limit])

    def _found(self) -> list[Hit]:
        """Once more where a workspace was forgotten by somebody else while it was read."""
        for _ in range(_TRIES):
            with suppress(ConcurrencyError), ExitStack() as stack:
                return self._rank(self._pool(stack))
        with ExitStack() as stack:
            return self._rank(self._pool(stack))

    def _pool(self, stack: ExitStack) -> Pool:
        from recollect.recall.pool import Pool, part

        model = self._model
        parts: list[Any] = []
        for where in self._question.wheres:
            for place in _places(where):
                if model is not None and self._embedding is not None:
                    self._embedding.catch_up(place, _CATCH_UP)
                corpus = stack.enter_context(self._store.corpus(place, model.model if model else None))
                if corpus.columns.size:
                    parts.append(part(place, corpus, where, self._wish))
        return Pool(parts)

    # Scoring

    def _rank(self, pool: Pool) -> list[Hit]:
        if not len(pool):
            return []
        question, ranking = self._question, self._preset.ranking
        named = pool.asked(question.text) if isinstance(ranking, Calibrated) else set[str]()
        cosine = self._cosines(pool, named)
        text = pool.text(self._wish, question.limit, sharpen=cosine is None)
        if isinstance(ranking, Calibrated):
            return self._calibrated(pool, ranking, text, cosine, named)
        return self._by_evidence(pool, text, cosine)

    def _cosines(self, pool: Pool, named: set[str]) -> Floats | None:
        if self._model is None or self._embedding is None:
            return None
        from recollect.text.asked import without_names

        vector = self._embedding.query(without_names(self._question.text, named))
        return None if vector is None else pool.cosines(vector)

    def _calibrated(
        self, pool: Pool, weights: Calibrated, text: Floats, cosine: Floats | None, named: set[str]
    ) -> list[Hit]:
        import numpy as np

        from recollect.recall.calibrated import score

        question = self._question
        asked = asked_time(question.text, question.now, question.zone)
        speaker, time = pool.said_by(named), pool.close_to(asked)
        scores = score(
            text,
            cosine,
            pool.kept(),
            speaker=speaker,
            time=time,
            visible=pool.shown,
            weights=weights,
            lending=pool.lending(weights),
        )
        # Without a word in common it must not stand behind the others. One that stands alone is behind nobody.
        worth = np.where((text > 0) | (scores.total > -_NOTHING), scores.total, -np.inf)
        best = _best(worth, self._preset.recall.fetch(max(question.limit, _FRESH // 2)))
        found: list[Hit] = []
        places: dict[str, int] = {}
        names = ("text", "meaning", "neighbours", _said("speaker", named), _said("time", asked), "conversation")
        for at, record in zip(best, self._records(pool, best), strict=True):
            if record is not None:
                found.append(Hit(record, _sum(names, [float(part[at]) for part in scores[:6]], weights)))
                places[record.id] = at
        found.sort(key=_by_score)
        return _freshened(question.text, found, pool, places) if weights.fresh else found

    def _by_evidence(self, pool: Pool, text: Floats, cosine: Floats | None) -> list[Hit]:
        """The best by words and the best by meaning, each with what is known of it, scored one by one."""
        recall, question = self._preset.recall, self._question
        wanted = recall.fetch(question.limit)
        by_text = {at: rank for rank, at in enumerate(_best(_above(text, 0.0, pool), wanted), 1)}
        by_meaning: dict[int, int] = {}
        if cosine is not None:
            least = -1.0 if recall.threshold is None else recall.threshold
            by_meaning = {at: rank for rank, at in enumerate(_best(_above(cosine, least, pool), wanted), 1)}
            if recall.threshold is not None:
                by_text = {at: rank for at, rank in by_text.items() if not cosine[at] < recall.threshold}
        top = max(float(text.max(initial=0.0)), 1e-9)
        order = list(dict.fromkeys([*by_text, *by_meaning]))
        found: list[Hit] = []
        for at, record in zip(order, self._records(pool, order), strict=True):
            if record is None:
                continue
            words = float(text[at]) / top if at in by_text or cosine is None else None
            likeness = None if cosine is None or cosine[at] != cosine[at] else float(cosine[at])
            evidence = Evidence(record, question.text, words, by_text.get(at), likeness, by_meaning.get(at))
            found.append(Hit(record, self._preset.ranking.score(evidence, self._decay, question.now)))
        found.sort(key=_by_score)
        return found

    def _records(self, pool: Pool, order: Sequence[int]) -> list[Record | None]:
        """The memories at these positions; None for one that was deleted just now."""
        wanted: dict[Place, list[str]] = {}
        owners = [(pool.owner(at)[0].place, pool.ident(at)) for at in order]
        for place, ident in owners:
            wanted.setdefault(place, []).append(ident)
        found = {
            (place, record.id): record
            for place, ids in wanted.items()
            for record in self._store.get(ids, Address(*place))
            if Place.of(record) == place
        }
        if self._question.as_of is not None:
            found = self._as_of(found, self._question.as_of)
        return [found.get(owner) for owner in owners]

    def _as_of(self, found: dict[tuple[Place, str], Record], then: datetime) -> dict[tuple[Place, str], Record]:
        """Those that could be recalled at that time."""
        heirs = {record.superseded_by: place for (place, _), record in found.items() if record.superseded_by}
        born = {
            heir.id: heir.created_at
            for place in set(heirs.values())
            for heir in self._store.get([ident for ident, at in heirs.items() if at == place], Address(*place))
        }
        return {key: record for key, record in found.items() if _could_be_recalled(record, then, born)}

    def absence(self, ident: str, hits: Hits) -> Absence:
        """Why a memory is not among the hits."""
        where = self._question.wheres[0]
        known = self._store.get([ident], where.view)
        if not known:
            return Absence(ident, "there is no such memory that this view can see")
        for place, hit in enumerate(hits, 1):
            if hit.memory.id == ident:
                return Absence(ident, f"it was recalled, as number {place}", place, hit.score)
        record = known[0]
        state = record.state(where.now)
        if where.state is not None and state != where.state:
            return Absence(ident, f"it is {state}")
        if failing := _unmet(where, record):
            return Absence(ident, f"it does not meet the condition: {failing}")
        return self._outranked(record, hits)

    def _outranked(self, record: Record, hits: Hits) -> Absence:
        everything = msgspec.structs.replace(self._question, limit=_ALL, doubles=True)
        ranked = Recall(self._store, self._preset, self._decay, everything, self._embedding).hits()
        key = content_hash(record.text)
        for place, hit in enumerate(ranked, 1):
            if hit.memory.id != record.id:
                continue
            for other in hits:
                if content_hash(other.memory.text) == key:
                    return Absence(record.id, f"it says the same as {other.memory.id}", place, hit.score)
            last = f"; the last that was recalled has {hits[-1].score:.3f}" if hits else ""
            return Absence(record.id, f"it comes {place} of {len(ranked)} with {hit.score:.3f}{last}", place, hit.score)
        if self._model is None:
            return Absence(record.id, "it has no word of the question, and there is no model to compare the meaning")
        return Absence(record.id, "it is too far from the question in words and meaning, or has no vector yet")

    def _reranked(self, found: list[Hit]) -> list[Hit]:
        rerank = self._question.rerank
        if rerank is None or not found:
            return found
        scores = rerank(self._question.text, [hit.memory.text for hit in found])
        again = [
            Hit(hit.memory, Score(float(score), "sum", (Part("rerank", float(score), 1.0, float(score)),)))
            for hit, score in zip(found, scores, strict=True)
        ]
        return sorted(again, key=_by_score)

    def _distinct(self, found: list[Hit]) -> list[Hit]:
        """Each text once; and where the preset says so, of memories that mean the same only the best."""
        if self._question.doubles:
            return found
        seen: set[str] = set()
        kept: list[Hit] = []
        for hit in found:
            key = content_hash(hit.memory.text)
            if key not in seen and not _same(hit, kept, self._preset.recall.same_above):
                seen.add(key)
                kept.append(hit)
        return kept


_ALL = 1_000_000
_NOTHING = 1e-6
"""Rounding, where all are as far from the question."""


def _sum(names: Sequence[str], shares: Sequence[float], weights: Calibrated) -> Score:
    """The parts that had a say, each with its weight where it has one of its own."""
    given = (weights.text, weights.meaning, 1.0, weights.speaker, weights.time, 1.0)
    parts = tuple(
        Part(name, share / weight, weight, share)
        for name, share, weight in zip(names, shares, given, strict=True)
        if share and weight
    )
    return Score(sum(part.share for part in parts), "sum", parts)


def past(where: Filter, then: datetime) -> Filter:
    """The filter as it would have been at that time. Which memories were live then is told from each of them."""
    end = then + timedelta(microseconds=1)
    return msgspec.structs.replace(where, now=then, until=end if where.until is None else min(where.until, end))


def _could_be_recalled(record: Record, then: datetime, born: dict[str, datetime]) -> bool:
    if record.archived_at is not None and record.archived_at <= then:
        return False
    if record.expires_at is not None and record.expires_at <= then:
        return False
    return record.superseded_by is None or born.get(record.superseded_by, then) > then


def _unmet(where: Filter, record: Record) -> str:
    """The first condition that a memory does not meet."""
    bare = Filter(view=where.view, now=where.now, state=None)
    for name in Filter.__struct_fields__:
        if name not in ("view", "now", "state"):
            one = msgspec.structs.replace(bare, **{name: getattr(where, name)})
            if not one.matches(record):
                return name.replace("_", " ")
    return ""


def _said(part: str, what: Asked | set[str] | None) -> str:
    """The name of a part, with what in the question it comes from."""
    if not what:
        return part
    return f"{part} ({what.words if isinstance(what, Asked) else ', '.join(sorted(what))})"


def _by_score(hit: Hit) -> tuple[float, str]:
    return -hit.score, hit.memory.id


def _places(where: Filter) -> list[Place]:
    view = where.view
    own = [] if view.workspace is None or where.tiers == ("account",) else [Place(view.tenant, view.workspace)]
    return own if where.tiers and "account" not in where.tiers else [*own, Place(view.tenant, None)]


def _above(values: Floats, least: float, pool: Pool) -> Floats:
    import numpy as np

    return np.where(pool.shown & (values > least), values, -np.inf).astype(np.float32)


def _best(values: Floats, count: int) -> list[int]:
    """The positions of the highest values, best first, without those of minus infinity."""
    import numpy as np

    if len(values) > count:
        some = np.argpartition(-values, count)[:count]
        # All that are as good as the last one, so that which of them comes is no accident.
        some = np.flatnonzero(values >= values[some].min())
    else:
        some = np.arange(len(values))
    some = some[np.isfinite(values[some])]
    return some[np.argsort(-values[some], kind="stable")].tolist()[:count]


def _freshened(query: str, found: list[Hit], pool: Pool, places: dict[str, int]) -> list[Hit]:
    """Newer facts before older ones that they replace. The score says so, and stays the order."""
    from recollect.recall.freshness import freshen

    ranked = list(range(len(found)))
    order, moved = freshen(
        query,
        ranked,
        [hit.score for hit in found],
        [hit.memory.text for hit in found],
        [(hit.memory.created_at, places[hit.memory.id]) for hit in found],
        [pool.vector(places[hit.memory.id]) for hit in found],
    )
    if not moved:
        return found
    again: list[Hit] = []
    for at in reversed(order):
        hit = found[at]
        floor = again[-1].score if again else hit.score
        if at in moved and hit.score <= floor:
            gain = floor - hit.score + _STEP
            fresh = Part(f"newer than {found[moved[at]].memory.id[:8]}", gain, 1.0, gain)
            hit = Hit(hit.memory, Score(hit.score + gain, "sum", (*hit.scored.parts, fresh)))
        again.append(hit)
    return again[::-1]


_STEP = 1e-4
"""By how much a newer fact is put above the older one."""


def _same(hit: Hit, kept: Sequence[Hit], above: float | None) -> bool:
    mine = hit.memory.floats if above is not None else None
    if above is None or mine is None:
        return False
    import numpy as np

    a = np.array(mine, np.float32)
    for other in kept:
        if other.memory.embedding_model == hit.memory.embedding_model and (theirs := other.memory.floats) is not None:
            b = np.array(theirs, np.float32)
            if a.shape == b.shape and float(a @ b) > above * float(np.linalg.norm(a) * np.linalg.norm(b)):
                return True
    return False
