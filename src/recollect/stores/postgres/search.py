"""A question as one statement: the best by words, the best by meaning and their neighbours, and what the whole is like.

The arithmetic that chooses is BM25 and the cosine; the ranking is done by whoever asks, on what comes back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from recollect.stores.port import Place
from recollect.stores.postgres import words
from recollect.stores.postgres.admin.nearest import nearest_sql, vectors_of
from recollect.stores.postgres.memories import halves
from recollect.stores.postgres.server import Runner
from recollect.stores.postgres.statements import place_of, workspace_of
from recollect.stores.postgres.tables import DIALECT
from recollect.stores.resident.snapshot import Mask, Snapshot
from recollect.stores.shortlist import Ask, Positions, Shortlist, Whole
from recollect.stores.tables.conditions import condition
from recollect.stores.tables.engine import Statement
from recollect.stores.tables.memories import embedded_as
from recollect.text.query import TextQuery
from recollect.text.segment import fold
from recollect.text.terms import word_pattern

_TEXTS = 500
"""Texts in memory at a time while patterns are looked for."""

_SEEN = """seen AS MATERIALIZED (
    SELECT m.seq, m.length, m.conversation, m.created_at, m.id, m.speaker, {distance} AS far
    FROM {s}.memories m {vectors}
    WHERE {gate} AND m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND {clause}{required})"""
_VECTORS = """LEFT JOIN {s}.vectors v ON v.tenant = %(tenant)s AND v.workspace = %(workspace)s AND v.seq = m.seq
    AND v.model = %(model)s"""
_ASK = """WITH {seen},
whole AS MATERIALIZED (SELECT count(*)::float8 AS n, greatest(coalesce(avg(length), 0), 0)::float8 AS length,
    count(far) AS compared, coalesce(-avg(far), 0)::float8 AS cosine, coalesce(stddev_pop(far), 0)::float8 AS spread
    FROM seen),
word AS MATERIALIZED (SELECT h.number, h.seq, seen.length
    FROM {s}.having(%(tenant)s, %(workspace)s, CASE WHEN {gate} THEN %(words)s::text[] ELSE '{{}}' END) h
    JOIN seen USING (seq)),
part AS MATERIALIZED (SELECT h.number, h.seq, seen.length
    FROM {s}.having(%(tenant)s, %(workspace)s, CASE WHEN {gate} AND (SELECT count(DISTINCT seq) FROM word) < %(enough)s
        THEN %(parts)s::text[] ELSE '{{}}' END) h JOIN seen USING (seq)),
word_count AS MATERIALIZED ({count_word}),
part_count AS MATERIALIZED ({count_part}),
by_word AS ({best_word}),
by_part AS ({best_part}),
best AS MATERIALIZED (
    SELECT seq FROM seen WHERE (SELECT n FROM whole) <= %(each)s
    UNION SELECT seq FROM by_word UNION SELECT seq FROM by_part
    UNION (SELECT seq FROM seen WHERE far IS NOT NULL ORDER BY far, seq LIMIT %(each)s)
    UNION (SELECT seq FROM seen WHERE %(nothing)s ORDER BY seq LIMIT %(each)s)),
turn AS MATERIALIZED ({turn}),
short AS MATERIALIZED (SELECT seq FROM best UNION
    SELECT near.seq FROM turn CROSS JOIN LATERAL unnest(ARRAY[b[1], b[2], a[1], a[2]]) near (seq)
    WHERE near.seq IS NOT NULL),
told AS MATERIALIZED (SELECT seen.* FROM short JOIN seen USING (seq) ORDER BY seq)
SELECT (SELECT array[array_agg(seq), array_agg(created_at), array_agg(length::bigint)] FROM told),
    n::bigint, length, compared, cosine, spread,
    (SELECT array[array_agg(coalesce(b[3], -1)), array_agg(coalesce(b[2], -1)), array_agg(coalesce(b[1], -1)),
        array_agg(seq), array_agg(coalesce(a[1], -1)), array_agg(coalesce(a[2], -1)), array_agg(coalesce(a[3], -1))]
        FROM turn),
    (SELECT array_agg(far::float8) FROM told), (SELECT array_agg(id) FROM told),
    (SELECT array_agg(conversation) FROM told), (SELECT array_agg(speaker) FROM told),
    (SELECT array[array_agg(number::bigint), array_agg(seq)] FROM word JOIN short USING (seq)),
    (SELECT array[array_agg(number::bigint), array_agg(seq)] FROM part JOIN short USING (seq)),
    (SELECT array[array_agg(number::bigint), array_agg(n)] FROM word_count),
    (SELECT array[array_agg(number::bigint), array_agg(n)] FROM part_count), {speakers}, {lacking}
FROM whole"""
# Evaluated once, before anything is read: whether the place has no index for the model.
_UNINDEXED = """NOT EXISTS (SELECT FROM {s}.places p WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s
    AND p.nearest = %(embedded)s)"""
_SPEAKERS = "(SELECT array_agg(DISTINCT speaker) FROM seen)"
# Where phrases or patterns narrow what is seen, whoever speaks elsewhere is a speaker too.
_ALL_SPEAKERS = """(SELECT array_agg(DISTINCT m.speaker) FROM {s}.memories m
    WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND {clause})"""
# By the index of what is embedded, so that a place that has all its vectors is not read for it.
_UNEMBEDDED = """SELECT FROM {{s}}.memories WHERE tenant = %(tenant)s AND workspace = %(workspace)s
    AND embedded {} AND superseded_by IS NULL"""
_LACKING = "(SELECT count(*) FROM ({} LIMIT %(lacking)s) lacking)".format(
    " UNION ALL ".join(_UNEMBEDDED.format(way) for way in ("< %(embedded)s", "> %(embedded)s", "IS NULL"))
)
# The three turns of the conversation before one of the best, nearest first, and the three after it. Two come along on
# either side; the third only tells what is next to them.
_NEXT = """SELECT m.seq FROM {{s}}.memories m WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s
        AND m.conversation = s.conversation AND m.seq {way} s.seq AND {{clause}} ORDER BY m.seq {order} LIMIT 3"""
_BY_INDEX = f"""SELECT s.seq, ARRAY({_NEXT.format(way="<", order="DESC")}) AS b,
    ARRAY({_NEXT.format(way=">", order="")}) AS a
    FROM best JOIN seen s USING (seq) WHERE s.conversation IS NOT NULL"""
# Among a few that are looked for, whatever was said between them.
_BY_ORDER = """SELECT seq, ARRAY[lag(seq) OVER talk, lag(seq, 2) OVER talk, lag(seq, 3) OVER talk] AS b,
    ARRAY[lead(seq) OVER talk, lead(seq, 2) OVER talk, lead(seq, 3) OVER talk] AS a
    FROM seen WHERE conversation IS NOT NULL WINDOW talk AS (PARTITION BY conversation ORDER BY seq)"""
_COUNT = """SELECT number, count(*) AS n, greatest(ln(((SELECT n FROM whole) - count(*) + 0.5) / (count(*) + 0.5)),
    1e-6::float8) AS rarity FROM {t} GROUP BY number"""
_BEST = """SELECT seq FROM (SELECT {t}.seq, {t}.length, sum(rarity) AS worth FROM {t} JOIN {t}_count USING (number)
        GROUP BY {t}.seq, {t}.length) found
    ORDER BY worth / (1.3 + 0.9::float8 * length / (SELECT greatest(length, 1) FROM whole)) DESC, seq LIMIT %(each)s"""
_REQUIRED = """SELECT h.seq FROM {s}.places p CROSS JOIN LATERAL {s}.having(%s, %s, %s::text[]) h
    WHERE p.tenant = %s AND p.workspace = %s GROUP BY h.seq HAVING count(*) = %s"""

# Of a large place: what may be near by its index and by words, and what the whole is like by every so manieth memory.
_LARGE = """WITH near AS MATERIALIZED ({nearest}),
sample AS (SELECT m.length, m.speaker, {distance} AS far, last.n AS of, last.n / least(last.n, %(sample)s) AS stride
    FROM (SELECT greatest(memories, 1)::float8 AS n FROM {s}.places WHERE tenant = %(tenant)s
        AND workspace = %(workspace)s) last
    CROSS JOIN generate_series(0, %(sample)s - 1) step
    JOIN {s}.memories m ON m.tenant = %(tenant)s AND m.workspace = %(workspace)s
        AND m.seq = 1 + floor(step * last.n / %(sample)s)::bigint
    {vectors} WHERE step < last.n AND {clause}{required}),
whole AS MATERIALIZED (SELECT coalesce(round(count(*) * max(stride)), 0)::float8 AS n,
    coalesce(avg(length), 0)::float8 AS length, coalesce(round(count(far) * max(stride)), 0)::bigint AS compared,
    coalesce(-avg(far), 0)::float8 AS cosine, coalesce(stddev_pop(far), 0)::float8 AS spread FROM sample),
word AS MATERIALIZED (SELECT h.number, h.seq, m.length
    FROM {s}.having(%(tenant)s, %(workspace)s, %(words)s::text[]) h
    JOIN {s}.memories m ON m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.seq = h.seq
    WHERE {clause}{required}),
word_count AS MATERIALIZED ({count_word}),
best AS MATERIALIZED (SELECT m.seq, m.conversation FROM {s}.memories m
    WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND {clause}{required}
    AND m.seq IN (SELECT seq FROM near UNION ({best_word}))),
turns AS (SELECT near.seq FROM best CROSS JOIN LATERAL (
    (SELECT m.seq FROM {s}.memories m WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s
        AND m.conversation = best.conversation AND m.seq < best.seq AND {clause} ORDER BY m.seq DESC LIMIT 2)
    UNION ALL
    (SELECT m.seq FROM {s}.memories m WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s
        AND m.conversation = best.conversation AND m.seq > best.seq AND {clause} ORDER BY m.seq LIMIT 2)) near)
SELECT n::bigint, length, compared, cosine, spread,
    (SELECT array_agg(seq) FROM (SELECT seq FROM best UNION SELECT seq FROM turns) short),
    (SELECT array[array_agg(number::bigint), array_agg(n)] FROM word_count),
    (SELECT array_agg(DISTINCT speaker) FROM sample)
FROM whole"""
_SAMPLE = 1000
_HEADS = "SELECT workspace, memories, nearest FROM {s}.places WHERE tenant = %s AND workspace = ANY(%s)"


def search(server: Runner, ask: Ask) -> list[Shortlist]:
    """Of each place in which the filter sees something."""
    places = Place.seen_by(ask.where)
    if not places:
        return []
    if ask.words.phrases or ask.words.patterns or server.transaction is not None:
        heads = _heads(server, places, server.rows(places[0].tenant, *_asking_heads(places)))
        answers = [_search(server, place, ask, nearest) for place, nearest in heads.items()]
    else:
        answers = _search_at_once(server, places, ask)
    return [answer for answer in answers if answer is not None]


def _search_at_once(server: Runner, places: Sequence[Place], ask: Ask) -> list[Shortlist | None]:
    """In one round trip, without knowing which places hold something. One with an index of its own is asked again."""
    questions = [_PlaceQuery(server, place, ask, None, _SPEAKERS, unless_indexed=True) for place in places]
    statements = [Statement(*_asking_heads(places)), *(question.statement for question in questions)]
    head_rows, *answers = server.read(places[0].tenant, statements, binary=True)
    heads = _heads(server, places, head_rows)
    return [
        _search(server, place, ask, heads[place]) if _has_index(ask, heads[place]) else question.answer(rows)
        for place, question, rows in zip(places, questions, answers, strict=True)
        if place in heads
    ]


def _asking_heads(places: Sequence[Place]) -> tuple[str, Any]:
    return _HEADS, (places[0].tenant, [workspace_of(place) for place in places])


def _heads(server: Runner, places: Sequence[Place], rows: Sequence[Sequence[Any]]) -> dict[Place, str | None]:
    """The places that hold something, each with the model that it has an index for. Most accounts share nothing."""
    stored = {place_of(places[0].tenant, workspace): (memories, nearest) for workspace, memories, nearest in rows}
    opened = server.transaction.heads if server.transaction is not None else {}
    counts = {place: opened[place].memories if place in opened else stored.get(place, (0, None))[0] for place in places}
    return {place: stored[place][1] if place in stored else None for place in places if counts[place]}


def _has_index(ask: Ask, nearest: str | None) -> bool:
    return (
        nearest is not None and ask.vector is not None and nearest == embedded_as(ask.model or "", len(ask.vector) // 4)
    )


def _search(server: Runner, place: Place, ask: Ask, nearest: str | None) -> Shortlist | None:
    """None where the filter sees nothing."""
    required = _required(server, place, ask)
    if required is not None and not required:
        return None
    whole: Whole | None = None
    speakers = _SPEAKERS if required is None else _ALL_SPEAKERS
    if nearest is not None and _has_index(ask, nearest):
        required, whole = _narrowed(server, place, ask, required, words.queries(place, ask.words), nearest)
        speakers = _SPEAKERS
    question = _PlaceQuery(server, place, ask, required, speakers)
    (rows,) = server.read(place.tenant, [question.statement], binary=True)
    shortlist = question.answer(rows)
    if shortlist is None or whole is None:
        return shortlist
    frequency = {**shortlist.whole.frequency, **whole.frequency}
    names = {*shortlist.whole.speakers, *whole.speakers}
    lacking = shortlist.whole.lacking
    return shortlist._replace(whole=whole._replace(frequency=frequency, speakers=names, lacking=lacking))


class _PlaceQuery:
    """The statement for one place, and what its answer means."""

    def __init__(
        self,
        server: Runner,
        place: Place,
        ask: Ask,
        required: Sequence[int] | None,
        speakers: str,
        *,
        unless_indexed: bool = False,
    ) -> None:
        self._place = place
        self._words = words.queries(place, ask.words)
        self._loose = words.queries(place, msgspec.structs.replace(ask.words, loose=True)) if ask.words.words else {}
        parts, values = _parts(server, place, ask, required)
        values |= {"words": list(self._words.values()), "parts": list(self._loose.values()), "enough": ask.enough}
        values["nothing"] = not self._words and ask.vector is None
        parts["gate"] = "TRUE"
        if unless_indexed and ask.vector is not None:
            parts["gate"] = _UNINDEXED
            values["embedded"] = embedded_as(ask.model or "", len(ask.vector) // 4)
        parts["lacking"] = "0"
        if ask.lacking and ask.vector is not None:
            parts["lacking"] = _LACKING
            values |= {"lacking": ask.lacking, "embedded": embedded_as(ask.model or "", len(ask.vector) // 4)}
        parts |= {"seen": _SEEN.format(**parts), "speakers": speakers.format(**parts)}
        self.statement = Statement(_ASK.format(**parts), values)

    def answer(self, rows: Sequence[Sequence[Any]]) -> Shortlist | None:
        # The count is not the first: the connections take a single zero for a sign that the tenant may have moved.
        ((numbers, n, length, compared, cosine, spread, turns, far, ids, talks, said_by, *lists),) = rows
        if not n or numbers is None or ids is None:
            return None
        word, part, word_counts, part_counts, speakers, lacking = lists
        seqs = np.array(numbers[0], np.int64)
        block = _block(numbers, turns, ids, talks, said_by)
        strict, loose = list(self._words), list(self._loose)
        frequency = _frequency(part_counts, loose) | _frequency(word_counts, strict)
        whole = Whole(n, length, frequency, speakers=frozenset(speakers or ()), lacking=lacking)
        cosines = None
        if compared:
            cosines = -np.array([np.nan if distance is None else distance for distance in far], np.float32)
            whole = whole._replace(compared=compared, cosine=cosine, spread=spread)
        seen = Mask(block, np.ones(len(seqs), np.bool_))
        return Shortlist(self._place, seen, _postings(seqs, word, strict), _postings(seqs, part, loose), cosines, whole)


def _parts(
    server: Runner, place: Place, ask: Ask, required: Sequence[int] | None
) -> tuple[dict[str, str], dict[str, Any]]:
    """What statements are put together from, and their values."""
    clause, given = condition(ask.where, DIALECT)
    values: dict[str, Any] = {"tenant": place.tenant, "workspace": workspace_of(place), "each": ask.each}
    for number, value in enumerate(given):
        clause = clause.replace("%s", f"%(c{number})s", 1)
        values[f"c{number}"] = value
    distance, vectors = "NULL::float8", ""
    if ask.vector is not None and ask.model is not None and server.facts_of(place.tenant).vectors:
        distance, vectors = "v.v OPERATOR({v}.<#>) %(vector)s::{v}.halfvec", _VECTORS
        values |= {"vector": halves(ask.vector), "model": embedded_as(ask.model, len(ask.vector) // 4)}
    if required is not None:
        values["required"] = list(required)
    parts = {"s": "{s}", "distance": distance, "vectors": vectors, "clause": clause}
    parts["turn"] = (_BY_INDEX if required is None else _BY_ORDER).format(**parts)
    parts["required"] = "" if required is None else " AND m.seq = ANY(%(required)s::bigint[])"
    for table in ("word", "part"):
        parts |= {f"best_{table}": _BEST.format(t=table), f"count_{table}": _COUNT.format(t=table)}
    return parts, values


def _narrowed(
    server: Runner, place: Place, ask: Ask, required: Sequence[int] | None, asked: dict[str, str], model: str
) -> tuple[list[int], Whole]:
    """The memories that a shortlist may come from, and what the whole is like."""
    parts, values = _parts(server, place, ask, required)
    near = nearest_sql(vectors_of(place, model).replace("%", "%%"), model, "%(each)s")
    values |= {"words": list(asked.values()), "sample": _SAMPLE}
    statements = [
        Statement(f"SET LOCAL hnsw.ef_search = {min(1000, 2 * ask.each)}"),
        Statement("SET LOCAL hnsw.iterative_scan = relaxed_order"),
        # Planned with its values: only then is it seen that the index is of this very place.
        Statement(_LARGE.format(nearest=near, **parts), values, prepare=False),
    ]
    ((n, length, compared, cosine, spread, seqs, counts, names),) = server.read(place.tenant, statements, binary=True)[
        -1
    ]
    frequency = _frequency(counts, list(asked))
    size, speakers = max(n, len(seqs or [])), frozenset(names or ())
    return seqs or [], Whole(size, length, frequency, compared, cosine, spread, speakers)


def _block(
    numbers: Sequence[Sequence[int]],
    turns: Sequence[Sequence[int]] | None,
    ids: Sequence[str],
    talks: Sequence[str | None],
    speakers: Sequence[str],
) -> Snapshot:
    seqs, created, length = (np.array(column, np.int64) for column in numbers)
    groups: dict[object, int] = {}
    conversation = [groups.setdefault(at if talk is None else talk, len(groups)) for at, talk in enumerate(talks)]
    names = list(dict.fromkeys(speakers))
    codes = {name: code for code, name in enumerate(names)}
    before, after = _next_to(seqs, turns)
    return Snapshot(
        ids,
        created,
        length.astype(np.int32),
        np.array(conversation, np.int32),
        before,
        after,
        np.array([codes[name] for name in speakers], np.int32),
        names,
    )


def _next_to(
    seqs: NDArray[np.int64], turns: Sequence[Sequence[int]] | None
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Who is before and after each in its conversation, by position among the shortlisted; -1 for nobody there."""
    before, after = np.full(len(seqs), -1, np.int32), np.full(len(seqs), -1, np.int32)
    if turns and turns[0]:
        said = np.array(turns, np.int64)  # one row for each step, one column for each turn that was among the best
        at = np.minimum(np.searchsorted(seqs, said), len(seqs) - 1)
        at[seqs[at] != said] = -1
        first, second = at[:-1].ravel(), at[1:].ravel()
        linked = (first >= 0) & (second >= 0)
        before[second[linked]], after[first[linked]] = first[linked], second[linked]
    return before, after


def _postings(
    seqs: NDArray[np.int64], pairs: Sequence[Sequence[int]] | None, entries: list[str]
) -> dict[str, Positions]:
    if not pairs or not pairs[0]:
        return {}
    number, seq = np.array(pairs[0], np.int64), np.array(pairs[1], np.int64)
    at = np.searchsorted(seqs, seq)
    rows = {entry: np.sort(at[number == n]) for n, entry in enumerate(entries, 1)}
    return {entry: row for entry, row in rows.items() if len(row)}


def _frequency(counts: Sequence[Sequence[int]] | None, entries: list[str]) -> dict[str, int]:
    if not counts or not counts[0]:
        return {}
    return {entries[number - 1]: count for number, count in zip(*counts, strict=True)}


def _required(server: Runner, place: Place, ask: Ask) -> list[int] | None:
    """Which memories have every phrase and pattern; None if there are neither."""
    query = ask.words
    if not query.phrases and not query.patterns:
        return None
    asked = words.required(place, query)
    if asked is None:
        return []
    here = place.tenant, workspace_of(place)
    if asked:
        seqs = [seq for (seq,) in server.rows(place.tenant, _REQUIRED, (*here, asked, *here, len(asked)))]
    else:  # nothing is known of the patterns but themselves
        sql = "SELECT seq FROM {s}.memories WHERE tenant = %s AND workspace = %s ORDER BY seq"
        seqs = [seq for (seq,) in server.rows(place.tenant, sql, here)]
    return _with_patterns(server, place, query, sorted(seqs)) if query.patterns else seqs


def _with_patterns(server: Runner, place: Place, query: TextQuery, seqs: Sequence[int]) -> list[int]:
    patterns = [re.compile(word_pattern(pattern)) for pattern in query.patterns]
    found: list[int] = []
    for at in range(0, len(seqs), _TEXTS):
        some = list(seqs[at : at + _TEXTS])
        values = place.tenant, workspace_of(place), some
        for seq, text in server.rows(place.tenant, _TEXT, values):
            folded = fold(text)
            if all(pattern.search(folded) for pattern in patterns):
                found.append(seq)
    return found


_TEXT = "SELECT seq, text FROM {s}.contents WHERE tenant = %s AND workspace = %s AND seq = ANY(%s)"
