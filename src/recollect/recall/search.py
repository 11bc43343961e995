"""What a question asks of the stores: the candidates, and its words as the memories spell them."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from recollect.policies.ranking import Calibrated
from recollect.recall import spelling
from recollect.recall.question import LOOKED_AT, Question
from recollect.recall.speakers import Speakers
from recollect.stores.port import Place
from recollect.stores.shelves import ShelfItem
from recollect.text.mentions import mentioned_speakers, names_in, without_names
from recollect.text.query import TextQuery
from recollect.text.query_parser import parse_query
from recollect.text.short_forms import full_names, longer_name, may_be_initials, name_beginning, stands_for
from recollect.text.terms import MOST_TERMS
from recollect.values.bodies import ALIASES
from recollect.values.errors import ModelError
from recollect.values.record import Record
from recollect.view import View

if TYPE_CHECKING:
    from recollect.recall.pool import Pool

_STRANGE = 3
"""So many words of a question that no memory has are read otherwise."""
_EACH = 200
"""At least so many of the best by words, and by meaning, are scored where a store does not give all."""
_CANDIDATES = 5
"""So many words that memories have are looked at for the one that was meant."""
_SAMPLE = 20
"""So many memories tell whether a word is a name."""


class Readings:
    """What the searches of one recall share: how words are read, so that each is looked up once, and what to say."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.aliases: list[ShelfItem] | None = None
        """The aliases of the places, whoever sees them. They come with the first search."""
        self.meant: dict[str, str | None] = {}
        self.written: dict[str, bool] = {}


class Search:
    """Of one question. Its words may become others, and then the notes say so."""

    def __init__(self, view: View, question: Question, readings: Readings, query: TextQuery | None = None) -> None:
        self._view = view
        self._question = question
        self._readings = readings
        self._rules = view.preset.recall
        self._embedding = view.embedding
        self._text = question.text
        self._calibrated = isinstance(question.ranking or view.preset.ranking, Calibrated)
        self._read_records: dict[tuple[Place, str], Record] = {}
        self.query = query or parse_query(question.text)
        self._model_answers = False
        self.guessed: set[str] = set()
        """Words that nobody asked for: those of the question were taken for their misspellings."""

    @property
    def model(self) -> str | None:
        return None if self._embedding is None else self._embedding.model

    def candidates(self) -> tuple[Pool, bytes | None, set[str]]:
        """The candidates, the vector that they were compared with, and the speakers that the question names.

        The vector is of the question without the names of speakers, and only the store knows who speaks. So the
        speakers of the last answer are supposed to be those of this one. Where that was wrong, where a word was
        misspelled, or where vectors were missing that have been made by now, the store is asked once more.
        """
        speakers = Speakers(self._view, self._question.wheres)
        supposed = (
            mentioned_speakers(self._text, speakers.last())
            if self._calibrated and self._embedding is not None
            else set[str]()
        )
        vector = self._vector(supposed)
        self._model_answers = vector is not None
        pool = self._pool(vector)
        named = mentioned_speakers(self._text, speakers.keep(pool.speakers())) if self._calibrated else set[str]()
        meant = self._calibrated and not self._question.exact and self._read_otherwise(pool)
        if vector is None:
            return (self._pool(None) if meant else pool), None, named
        again = self._caught_up(pool) or meant
        if meant or without_names(self._text, named) != without_names(self._text, supposed):
            vector, again = self._vector(named), True
        if again:
            pool = self._pool(vector)
        return pool, vector, named

    def read(self, pool: Pool, order: Sequence[int]) -> list[Record | None]:
        """The memories at these positions; None for one that was deleted just now."""
        owners, records = [pool.owner(at) for at in order], self._read_records
        wanted: dict[Place, list[str]] = {}
        for owner in owners:
            if owner not in records:
                wanted.setdefault(owner[0], []).append(owner[1])
        for place, ids in wanted.items():
            records.update(((place, record.id), record) for record in self._view.store.get(place, ids))
        return [records.get(owner) for owner in owners]

    def is_written(self, phrase: str) -> bool:
        """Whether any memory that can be seen has these words one after the other."""
        written = self._readings.written
        if phrase not in written:
            written[phrase] = bool(self._asked(TextQuery(phrases=(phrase,))).shown.any())
        return written[phrase]

    def _vector(self, named: set[str]) -> bytes | None:
        """Of the question, without the names of speakers. Nothing is locked meanwhile: a model may take its time."""
        if self._embedding is None:
            return None
        try:
            vector = self._embedding.query(without_names(self._text, named), self._rules.patience)
        except ModelError as error:
            self._readings.notes.append(f"by words alone: {error}")
            return None
        return vector.astype("<f4").tobytes()

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
        readings = self._readings
        beside = ALIASES if readings.aliases is None else None
        asks = [
            Ask(where, self.query, vector, self.model, question.hits_wanted, each, lacking, beside=beside)
            for where in question.wheres
        ]
        shortlists = [shortlist for ask in asks for shortlist in self._view.store.search(ask)]
        if beside is not None:
            readings.aliases = [item for shortlist in shortlists for item in shortlist.beside]
        return Pool(shortlists)

    # Other spellings

    def _read_otherwise(self, pool: Pool) -> bool:
        """Whether words of the question that no memory has were read as what memories may call it."""
        if self._question.as_of is not None:  # what was known then cannot be told from the words of now
            return False
        unknown, meant = pool.unknown(self.query).words, dict[str, str]()
        for word in [word for word in self.query.words if word in unknown]:
            if other := self._reading(word, pool):
                meant[word] = other
        if not meant:
            return False
        words = [parse_query(meant[word]).words if word in meant else (word,) for word in self.query.words]
        self.query = msgspec.structs.replace(self.query, words=tuple(dict.fromkeys(chain.from_iterable(words))))
        self._text = re.sub(r"\w+", lambda word: meant.get(word[0].lower(), word[0]), self._text)
        self.guessed |= set(chain.from_iterable(parse_query(other).words for other in meant.values()))
        self._readings.notes += [f'read "{word}" as "{other}"' for word, other in meant.items()]
        return True

    def _reading(self, word: str, pool: Pool) -> str | None:
        meant = self._readings.meant
        if word not in meant and len(meant) < _STRANGE:
            meant[word] = self._in_full(word, pool) or self._meant(word)
        return meant.get(word)

    def _in_full(self, word: str, pool: Pool) -> str | None:
        """What it is short for: a name, or words whose initials it has."""
        if names := self._in_memories(full_names(word)):
            return names[0]
        written = re.search(rf"\b{re.escape(word)}\b", self._question.text, re.IGNORECASE)
        if written is None:
            return None
        if not written[0].isupper() and word in names_in(self._question.text) and (begins := name_beginning(word)):
            return longer_name(word, self._texts(self._asked(TextQuery(begins=(begins,))), _EACH))
        texts = self.read(pool, pool.nearest(self.query, _SAMPLE)) if may_be_initials(written[0]) else ()
        forms = (stands_for(written[0], record.text[:LOOKED_AT]) for record in texts if record is not None)
        return next(filter(None, forms), None)

    def _meant(self, word: str) -> str | None:
        """The word that some memory has, and that this one most likely was to be."""
        if not spelling.may_be_misspelled(word) or self._is_a_word(word):
            return None
        named = word in names_in(self._question.text)
        for others, doubtful in ((spelling.slips(word), False), (spelling.neighbours(word), True)):
            for other in self._in_memories(others)[:_CANDIDATES]:
                texts = self._texts(self._asked(TextQuery((other,))), _SAMPLE)
                right = spelling.as_written(other, texts)
                if right and not (doubtful and spelling.is_name(right, texts, asked_as_name=named)):
                    return right
        return None

    def _in_memories(self, words: Sequence[str]) -> list[str]:
        """Those that memories have, first what most have."""
        frequency: dict[str, int] = {}
        for some in (words[at : at + MOST_TERMS] for at in range(0, len(words), MOST_TERMS)):
            pool = self._asked(TextQuery(tuple(some)))
            frequency |= {word: pool.frequency(word) for word in some}
        return sorted(filter(frequency.get, frequency), key=lambda word: (-frequency[word], word))

    def _is_a_word(self, word: str) -> bool:
        """Whether the model knows it, or a memory that the conditions leave out has it."""
        from recollect.models.embedders.base import Literate

        embedder = None if self._embedding is None else self._embedding.embedder
        if self._model_answers and isinstance(embedder, Literate):  # nobody waits for one that is still being loaded
            with suppress(ModelError):
                if embedder.knows(word):
                    return True
        return bool(self._asked(TextQuery((word,))).frequency(word))

    def _asked(self, query: TextQuery) -> Pool:
        """What of all that can be seen matches, whatever the conditions of the question."""
        from recollect.recall.pool import Pool
        from recollect.stores.shortlist import Ask

        asks = [Ask(where.bare(), query) for where in self._question.wheres]
        return Pool([shortlist for ask in asks for shortlist in self._view.store.search(ask)])

    def _texts(self, pool: Pool, most: int) -> list[str]:
        """Of the newest that have one of the words that were looked for."""
        records = self.read(pool, pool.having_words()[-most:])
        return [record.text[:LOOKED_AT] for record in records if record is not None]
