"""Searching: which statement a question becomes for each place, and what its answer means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from recollect.stores.port import Place
from recollect.stores.postgres import words
from recollect.stores.postgres.admin.nearest import nearest_sql, vectors_of
from recollect.stores.postgres.memories import halves
from recollect.stores.postgres.search_sql import NOT_LARGE, UNINDEXED, question
from recollect.stores.postgres.server import Runner
from recollect.stores.postgres.statements import place_of, workspace_of
from recollect.stores.postgres.tables import DIALECT
from recollect.stores.resident.snapshot import Mask, Snapshot
from recollect.stores.shelves import COLUMNS, ShelfItem, from_row
from recollect.stores.shortlist import Ask, Positions, Shortlist, Whole
from recollect.stores.tables.conditions import condition
from recollect.stores.tables.engine import Rows, Statement
from recollect.stores.tables.memories import embedded_as
from recollect.text.query import TextQuery
from recollect.text.segment import fold
from recollect.text.terms import word_pattern

LARGE = 20_000
"""Memories from which a place that is asked by words alone is not read whole: a sample tells what it is like."""
_TEXTS = 500
"""Texts in memory at a time while patterns are looked for."""

_REQUIRED = """SELECT h.seq FROM {s}.places p CROSS JOIN LATERAL {s}.having(%s, %s, %s::text[]) h
    WHERE p.tenant = %s AND p.workspace = %s GROUP BY h.seq HAVING count(*) = %s"""

# Right after many memories were stored the server has no statistics: it takes thousands of rows for one, and would
# compare each with each. Rows that are looked up by their key still are: a LATERAL join knows no other way.
_JOIN_BY_HASH, _JOIN_AS_BEFORE = (Statement(f"SET LOCAL enable_nestloop = {how}") for how in ("off", "default"))
_HEADS = "SELECT workspace, memories, nearest, {beside} FROM {s}.places p WHERE tenant = %s AND workspace = ANY(%s)"
_DOCUMENT = ", ".join(f"t.{column}" for column in COLUMNS)
_BESIDE = f"""(SELECT json_agg(json_build_array({_DOCUMENT}) ORDER BY t.seq)::text FROM {{s}}.things t
    WHERE t.tenant = %s AND t.workspace = p.workspace AND t.shelf = %s)"""


class PlaceHead(NamedTuple):
    """What is known of a place before it is asked."""

    memories: int
    nearest: str | None
    """The vectors that it has an index for: the model with its dimensions."""
    beside: str | None = None
    """The documents of the shelf that was asked for, as JSON."""

    @property
    def documents(self) -> list[ShelfItem]:
        return [from_row(row) for row in msgspec.json.decode(self.beside)] if self.beside else []


def search(server: Runner, ask: Ask) -> list[Shortlist]:
    """Of each place in which the filter sees something."""
    places = Place.seen_by(ask.where)
    if not places:
        return []
    if ask.words.phrases or ask.words.patterns:
        heads = _heads(server, places, server.rows(places[0].tenant, *_asking_heads(places, ask)))
        answers = [_search_few(server, place, ask, head) for place, head in heads.items()]
    else:
        answers = _search_at_once(server, places, ask)
    return [answer for answer in answers if answer is not None]


def _search_at_once(server: Runner, places: Sequence[Place], ask: Ask) -> list[Shortlist | None]:
    """In one round trip, by what was known of the places when they were asked last.

    One that was empty and is not any more, or that has become large, is asked again.
    """
    hints, way = server.hints, _way(ask)
    questions = {
        place: _PlaceQuery(server, place, ask, None, large=(place, way) in hints.large)
        for place in places
        if place not in hints.empty
    }
    statements = [statement for question in questions.values() for statement in question.statements]
    head_rows, *rest = _read(server, places[0].tenant, [Statement(*_asking_heads(places, ask)), *statements])
    heads = _heads(server, places, head_rows)
    answers: list[Shortlist | None] = []
    for place in places:
        question = questions.get(place)
        rows = [rest.pop(0) for _ in question.statements] if question is not None else []
        head = heads.get(place)
        large = head is not None and _is_large(ask, head)
        hints.note(place, way, empty=head is None, large=large)
        if head is None:
            continue
        if question is None or (large and not question.large):
            question = _PlaceQuery(server, place, ask, None, large=large)
            rows = _read(server, place.tenant, question.statements)
        answers.append(question.answer(rows[-1], head))
    return answers


def _read(server: Runner, tenant: str, statements: Sequence[Statement]) -> list[Rows]:
    """What the statements answer. In an open transaction what comes after them is planned as before."""
    after = [] if server.transaction is None else [_JOIN_AS_BEFORE]
    answers = server.read(tenant, [_JOIN_BY_HASH, *statements, *after], binary=True)
    return answers[1 : len(statements) + 1]


def _way(ask: Ask) -> str:
    """What it depends on whether a place is large: the model of the vectors, or that words alone are looked for."""
    return _embedded(ask) if ask.vector is not None else "words" if _may_sample(ask) else "all"


def _asking_heads(places: Sequence[Place], ask: Ask) -> tuple[str, Any]:
    tenant, workspaces = places[0].tenant, [workspace_of(place) for place in places]
    if ask.beside is None:
        return _HEADS.replace("{beside}", "NULL::text"), (tenant, workspaces)
    return _HEADS.replace("{beside}", _BESIDE), (tenant, ask.beside, tenant, workspaces)


def _heads(server: Runner, places: Sequence[Place], rows: Sequence[Sequence[Any]]) -> dict[Place, PlaceHead]:
    """The places that hold something. Most accounts share nothing."""
    stored = {place_of(places[0].tenant, workspace): PlaceHead(*head) for workspace, *head in rows}
    opened = server.transaction.heads if server.transaction is not None else {}
    heads = {place: stored.get(place, PlaceHead(0, None)) for place in places}
    counted = {p: head._replace(memories=opened[p].memories) if p in opened else head for p, head in heads.items()}
    return {place: head for place, head in counted.items() if head.memories}


def _is_large(ask: Ask, head: PlaceHead) -> bool:
    """Whether a sample tells what the place is like: never where all vectors are to be compared."""
    if ask.vector is not None:
        return head.nearest is not None and head.nearest == _embedded(ask)
    return head.memories >= LARGE and _may_sample(ask)


def _may_sample(ask: Ask) -> bool:
    """Whether words alone say what is looked at. Under a filter a sample, or rare words, might miss all it sees."""
    where, view = ask.where, ask.where.seen_from
    bound = view.agent, view.account, view.channel, view.conversation
    narrowed = msgspec.structs.replace(where, state=None).comparisons() or where.tags or where.any_tags
    return bool(ask.words.words or ask.words.begins) and not narrowed and not where.without_tags and not any(bound)


def _embedded(ask: Ask) -> str:
    return embedded_as(ask.model or "", len(ask.vector or b"") // 4)


def _search_few(server: Runner, place: Place, ask: Ask, head: PlaceHead) -> Shortlist | None:
    """Of the memories that have every phrase and pattern; None where there are none."""
    required = _required(server, place, ask)
    if not required:
        return None
    question = _PlaceQuery(server, place, ask, required)
    return question.answer(_read(server, place.tenant, question.statements)[-1], head)


class _PlaceQuery:
    """The statements for one place, and what the answer of the last one means."""

    def __init__(
        self, server: Runner, place: Place, ask: Ask, required: Sequence[int] | None, *, large: bool = False
    ) -> None:
        self._place = place
        self._words = words.queries(place, ask.words)
        self._loose = words.queries(place, msgspec.structs.replace(ask.words, loose=True)) if ask.words.words else {}
        compares = ask.vector is not None and ask.model is not None and server.facts_of(place.tenant).vectors
        self.large = large and (compares or (ask.vector is None and _may_sample(ask)))
        clause, values = _condition(ask)
        values |= {"tenant": place.tenant, "workspace": workspace_of(place), "large": LARGE, "required": required}
        values |= {"words": list(self._words.values()), "parts": list(self._loose.values())}
        values["nothing"] = not self._words and ask.vector is None
        if ask.vector is not None:
            values |= {"embedded": _embedded(ask), "lacking": ask.lacking}
            values |= {"vector": halves(ask.vector), "model": _embedded(ask)} if compares else {}
        # Numbers and not values: what the planner knows of a LIMIT is what it goes by.
        parts = {"clause": clause, "gate": "TRUE", "each": str(ask.each), "enough": str(ask.enough)}
        if not self.large and required is None and (compares or _may_sample(ask)):
            parts["gate"] = UNINDEXED if compares else NOT_LARGE
        nearest = self._nearest(place, ask, compares) if self.large else None
        lacking = bool(ask.lacking) and ask.vector is not None
        sql = question(parts, compares=compares, few=required is not None, nearest=nearest, lacking=lacking)
        used = {name: value for name, value in values.items() if f"%({name})s" in sql}
        # Planned with its values where there is an index: only then is it seen that it is of this very place.
        self.statements = [Statement(sql, used, prepare=False if self.large and compares else None)]
        if self.large and compares:
            settings = f"hnsw.ef_search = {min(1000, 2 * ask.each)}", "hnsw.iterative_scan = relaxed_order"
            self.statements[:0] = [Statement(f"SET LOCAL {setting}") for setting in settings]

    def _nearest(self, place: Place, ask: Ask, compares: bool) -> str:
        if not compares:
            return "SELECT NULL::bigint AS seq WHERE FALSE"
        model = _embedded(ask)
        return nearest_sql(vectors_of(place, model).replace("%", "%%").replace("$", "$$"), model, ask.each)

    def answer(self, rows: Sequence[Sequence[Any]], head: PlaceHead) -> Shortlist | None:
        """None where the filter sees nothing."""
        # The count is not the first: the connections take a single zero for a sign that the tenant may have moved.
        ((numbers, n, length, compared, cosine, spread, turns, far, ids, talks, said_by, *lists),) = rows
        if not (n or self.large) or numbers is None or ids is None:
            return None
        word, part, word_counts, part_counts, speakers, lacking = lists
        seqs = np.array(numbers[0], np.int64)
        block = _block(numbers, turns, ids, talks, said_by)
        strict, loose = list(self._words), list(self._loose)
        frequency = _frequency(part_counts, loose) | _frequency(word_counts, strict)
        names = {*(speakers or ()), *said_by}
        whole = Whole(max(n, len(seqs)), length, frequency, speakers=frozenset(names), lacking=lacking)
        cosines = None
        if compared:
            cosines = -np.array([np.nan if distance is None else distance for distance in far], np.float32)
            whole = whole._replace(compared=compared, cosine=cosine, spread=spread)
        seen = Mask(block, np.ones(len(seqs), np.bool_))
        words, parts = _postings(seqs, word, strict), _postings(seqs, part, loose)
        return Shortlist(self._place, seen, words, parts, cosines, whole, head.documents)


def _condition(ask: Ask) -> tuple[str, dict[str, Any]]:
    """The filter, with its values by name."""
    clause, parameters = condition(ask.where, DIALECT)
    values: dict[str, Any] = {}
    for number, value in enumerate(parameters):
        clause = clause.replace("%s", f"%(c{number})s", 1)
        values[f"c{number}"] = value
    return clause, values


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
        turn_seqs = np.array(turns, np.int64)  # one row for each step, one column for each turn that was among the best
        at = np.minimum(np.searchsorted(seqs, turn_seqs), len(seqs) - 1)
        at[seqs[at] != turn_seqs] = -1
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
    matching: list[int] = []
    for at in range(0, len(seqs), _TEXTS):
        some = list(seqs[at : at + _TEXTS])
        values = place.tenant, workspace_of(place), some
        for seq, text in server.rows(place.tenant, _TEXT, values):
            folded = fold(text)
            if all(pattern.search(folded) for pattern in patterns):
                matching.append(seq)
    return matching


_TEXT = "SELECT seq, text FROM {s}.contents WHERE tenant = %s AND workspace = %s AND seq = ANY(%s)"
