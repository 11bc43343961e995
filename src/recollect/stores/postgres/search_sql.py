"""A question as one statement: the best by words, the best by meaning and their neighbours, and what the whole is like.

Of a place of ordinary size every memory that the filter sees is read, though little of it, and every vector compared.
Of a large one only those that a word or the index of vectors finds are read, and a sample tells what the whole is like.
The arithmetic that chooses is BM25 and the cosine; the ranking is done by whoever asks, on what comes back.

`$name` is a part that is put in here; `{s}` and `{v}` are the schemas, which the server puts in.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

COMMON, COMMON_IN_LARGE = 20_000, 2000
"""Where more memories have a word, it is looked for only among those that have a rarer one."""
SAMPLE = 1000
"""Memories that tell what a large place is like."""

VECTORS = """LEFT JOIN {s}.vectors v ON v.tenant = %(tenant)s AND v.workspace = %(workspace)s AND v.seq = m.seq
    AND v.model = %(model)s"""
DISTANCE = "v.v OPERATOR({v}.<#>) %(vector)s::{v}.halfvec"
# Evaluated once, before anything is read: whether the place is asked as one of ordinary size.
UNINDEXED = """NOT EXISTS (SELECT FROM {s}.places p WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s
    AND p.nearest = %(embedded)s)"""
NOT_LARGE = """EXISTS (SELECT FROM {s}.places p WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s
    AND coalesce(p.memories, 0) < %(large)s)"""

_PARTS = {
    "here": "m.tenant = %(tenant)s AND m.workspace = %(workspace)s",
    # With a LIMIT a row is looked up by its key: the planner overrates how many, and would rather read the whole place.
    "row": """CROSS JOIN LATERAL (SELECT m.id, m.created_at, m.length, m.conversation, m.speaker FROM {s}.memories m
    WHERE $here AND m.seq = s.seq LIMIT 1) m""",
    "words": """{s}.postings(%(tenant)s, %(workspace)s, CASE WHEN $gate THEN %(words)s::text[] ELSE '{}' END,
        $common)""",
    # Parts of words only where whole words have not found enough.
    "parts": """{s}.postings(%(tenant)s, %(workspace)s, CASE WHEN $gate AND (
            SELECT count(*) FROM (SELECT seq FROM word GROUP BY seq LIMIT $enough) enough) < $enough
        THEN %(parts)s::text[] ELSE '{}' END, $common)""",
    "visible": """CROSS JOIN LATERAL (SELECT m.length FROM {s}.memories m
        WHERE $here AND m.seq = s.seq AND $clause LIMIT 1) m""",
    # One in each stretch, but not always at its beginning: in a conversation every other turn is of the same speaker.
    "spread_step": "(step + step * 0.6180339887 - floor(step * 0.6180339887))",
    "counted": "count(*) AS n, sum(length) AS length",
}

_ORDINARY = """seen AS MATERIALIZED (
    SELECT m.seq, m.length, m.speaker, $distance AS far FROM {s}.memories m
    $vectors WHERE $gate AND $here AND $clause$required),
by_speaker AS MATERIALIZED (SELECT speaker, $counted, $moments, 1::float8 AS stride FROM seen GROUP BY speaker),
word AS MATERIALIZED (SELECT s.number, s.seq, s.frequency, seen.length FROM $words s JOIN seen USING (seq)),
part AS MATERIALIZED (SELECT s.number, s.seq, s.frequency, seen.length FROM $parts s JOIN seen USING (seq)),
near AS MATERIALIZED (
    (SELECT seq FROM seen WHERE (SELECT sum(n) FROM by_speaker) <= $each LIMIT $each)
    UNION (SELECT seq FROM seen WHERE far IS NOT NULL ORDER BY far, seq LIMIT $each)
    UNION (SELECT seq FROM seen WHERE %(nothing)s ORDER BY seq LIMIT $each))"""
# The numbers of the sample are made first: arithmetic is not leakproof, so that under row-level security no index would
# be used for a condition that has any in it.
_LARGE = f"""step AS MATERIALIZED (
    SELECT 1 + floor($spread_step * last.n / {SAMPLE})::bigint AS seq, last.n / least(last.n, {SAMPLE}) AS stride
    FROM (SELECT greatest(p.memories, 1)::float8 AS n FROM {{s}}.places p
        WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s) last
    CROSS JOIN generate_series(0, {SAMPLE - 1}) step WHERE step < last.n),
sample AS MATERIALIZED (SELECT m.length, m.speaker, $distance AS far, s.stride FROM step s CROSS JOIN LATERAL (
        SELECT m.seq, m.length, m.speaker FROM {{s}}.memories m WHERE $here AND m.seq = s.seq AND $clause LIMIT 1) m
    $vectors),
by_speaker AS MATERIALIZED (SELECT speaker, $counted, $moments, max(stride) AS stride FROM sample GROUP BY speaker),
word AS MATERIALIZED (SELECT s.number, s.seq, s.frequency, m.length FROM $words s $visible),
part AS MATERIALIZED (SELECT s.number, s.seq, s.frequency, m.length FROM $parts s $visible),
near AS MATERIALIZED (SELECT s.seq FROM ($nearest) s $visible)"""
_REST = """
totals AS MATERIALIZED (SELECT coalesce(round(sum(n) * max(stride)), 0)::float8 AS n,
    coalesce(sum(length) / sum(n), 0)::float8 AS length, coalesce(round(sum(compared) * max(stride)), 0) AS compared,
    coalesce(sum(far) / nullif(sum(compared), 0), 0)::float8 AS far,
    coalesce(sum(squares) / nullif(sum(compared), 0), 0)::float8 AS squares FROM by_speaker),
whole AS MATERIALIZED (SELECT n, length, compared::bigint AS compared, -far AS cosine,
    sqrt(greatest(squares - far * far, 0)) AS spread FROM totals),
word_count AS MATERIALIZED ($count_word),
part_count AS MATERIALIZED ($count_part),
best AS MATERIALIZED (SELECT seq FROM near UNION ($best_word) UNION ($best_part)),
turn AS MATERIALIZED ($turn),
short AS MATERIALIZED (SELECT seq FROM best UNION
    SELECT near.seq FROM turn CROSS JOIN LATERAL unnest(ARRAY[b[1], b[2], a[1], a[2]]) near (seq)
    WHERE near.seq IS NOT NULL),
shown AS MATERIALIZED (SELECT s.seq, m.*, $far AS far FROM short s $row $compared ORDER BY s.seq)
SELECT (SELECT array[array_agg(seq), array_agg(created_at), array_agg(length::bigint)] FROM shown),
    n::bigint, length, compared, cosine, spread,
    (SELECT array[array_agg(coalesce(b[3], -1)), array_agg(coalesce(b[2], -1)), array_agg(coalesce(b[1], -1)),
        array_agg(seq), array_agg(coalesce(a[1], -1)), array_agg(coalesce(a[2], -1)), array_agg(coalesce(a[3], -1))]
        FROM turn),
    (SELECT array_agg(far::float8) FROM shown), (SELECT array_agg(id) FROM shown),
    (SELECT array_agg(conversation) FROM shown), (SELECT array_agg(speaker) FROM shown),
    (SELECT array[array_agg(number::bigint), array_agg(seq)] FROM word JOIN short USING (seq)),
    (SELECT array[array_agg(number::bigint), array_agg(seq)] FROM part JOIN short USING (seq)),
    (SELECT array[array_agg(number::bigint), array_agg(n)] FROM word_count),
    (SELECT array[array_agg(number::bigint), array_agg(n)] FROM part_count), $speakers, $lacking
FROM whole"""
_COUNT = """SELECT number, n, greatest(ln(((SELECT n FROM whole) - n + 0.5) / (n + 0.5)), 1e-6::float8) AS rarity
    FROM (SELECT number, least(coalesce(round(max(frequency))::bigint, count(*)), (SELECT n::bigint FROM whole)) AS n
        FROM $table GROUP BY number) counted"""
_BEST = """SELECT seq FROM (SELECT $table.seq, $table.length, sum(rarity) AS worth FROM $table
        JOIN ${table}_count USING (number) GROUP BY $table.seq, $table.length) scored
    ORDER BY worth / (1.3 + 0.9::float8 * length / (SELECT greatest(length, 1) FROM whole)) DESC, seq LIMIT $each"""
# The three turns of the conversation before one of the best, nearest first, and the three after it. Two come along on
# either side; the third only tells what is next to them.
_NEXT = """SELECT m.seq FROM {s}.memories m WHERE $here AND m.conversation = s.conversation AND m.seq $way s.seq
        AND $clause ORDER BY m.seq $order LIMIT 3"""
_BEFORE = Template(_NEXT).safe_substitute(way="<", order="DESC")
_AFTER = Template(_NEXT).safe_substitute(way=">", order="")
_TURN = f"""SELECT s.seq, ARRAY({_BEFORE}) AS b, ARRAY({_AFTER}) AS a
    FROM (SELECT s.seq, m.conversation FROM best s $row) s WHERE s.conversation IS NOT NULL"""
# Among a few that are looked for, whatever was said between them.
_TURN_OF_FEW = """SELECT seq, ARRAY[lag(seq) OVER talk, lag(seq, 2) OVER talk, lag(seq, 3) OVER talk] AS b,
    ARRAY[lead(seq) OVER talk, lead(seq, 2) OVER talk, lead(seq, 3) OVER talk] AS a
    FROM (SELECT s.seq, m.conversation FROM seen s $row) s WHERE conversation IS NOT NULL
    WINDOW talk AS (PARTITION BY conversation ORDER BY seq)"""
_COMPARED = "LEFT JOIN seen v ON v.seq = s.seq"
_COMPARED_IN_LARGE = """LEFT JOIN LATERAL (SELECT $distance AS far FROM {s}.vectors v WHERE v.tenant = %(tenant)s
    AND v.workspace = %(workspace)s AND v.seq = s.seq AND v.model = %(model)s LIMIT 1) v ON TRUE"""
_MOMENTS = "count(far) AS compared, sum(far)::float8 AS far, sum(far * far)::float8 AS squares"
_NO_MOMENTS = "0::bigint AS compared, 0::float8 AS far, 0::float8 AS squares"
_SPEAKERS = "(SELECT array_agg(speaker) FROM by_speaker)"
# Where phrases or patterns narrow what is seen, whoever speaks elsewhere is a speaker too.
_ALL_SPEAKERS = "(SELECT array_agg(DISTINCT m.speaker) FROM {s}.memories m WHERE $here AND $clause)"
# By the index of what is embedded, so that a place that has all its vectors is not read for it.
_UNEMBEDDED = """SELECT FROM {{s}}.memories WHERE tenant = %(tenant)s AND workspace = %(workspace)s
    AND embedded {} AND superseded_by IS NULL"""
_LACKING = "(SELECT count(*) FROM ({} LIMIT %(lacking)s) lacking)".format(
    " UNION ALL ".join(_UNEMBEDDED.format(way) for way in ("< %(embedded)s", "> %(embedded)s", "IS NULL"))
)


def question(
    parts: Mapping[str, str], *, compares: bool, few: bool = False, nearest: str | None = None, lacking: bool = False
) -> str:
    """The statement. `few` if only some memories are looked for, `nearest` of a large place: its nearest by the index.

    `parts` are `clause`, `gate`, `each` and `enough`.
    """
    named = {
        **_PARTS,
        "distance": DISTANCE if compares else "NULL::float8",
        "vectors": VECTORS if compares else "",
        "required": " AND m.seq = ANY(%(required)s::bigint[])" if few else "",
        "nearest": nearest or "",
        "common": str(COMMON if nearest is None else COMMON_IN_LARGE),
        "turn": _TURN_OF_FEW if few else _TURN,
        "far": "v.far" if compares else "NULL::float8",
        "compared": (_COMPARED if nearest is None else _COMPARED_IN_LARGE) if compares else "",
        "moments": _MOMENTS if compares else _NO_MOMENTS,
        "speakers": _ALL_SPEAKERS if few else _SPEAKERS,
        "lacking": _LACKING if lacking else "0",
        **{f"count_{table}": Template(_COUNT).safe_substitute(table=table) for table in ("word", "part")},
        **{f"best_{table}": Template(_BEST).safe_substitute(table=table) for table in ("word", "part")},
        **parts,
    }
    sql = f"WITH {_LARGE if nearest is not None else _ORDINARY},{_REST}"
    while "$" in sql:  # parts have parts; a value is never one
        sql = Template(sql).substitute(named)
    return sql
