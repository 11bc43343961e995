"""LoCoMo and LongMemEval as their authors publish them, read into what both have: turns to store, questions to ask."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from recollect.values.errors import InputError
from recollect.values.record import Role

Name = Literal["locomo", "longmemeval"]

_Shape = TypeVar("_Shape")

_LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""Of the fifth, adversarial, nothing can be recalled: its questions have no answer."""

_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
"""Mostly `D1:3`; the published file also has `D8:6; D9:17`, `D:11:26` and `D30:05`."""

_LOCOMO_TIME = re.compile(r"(\d+):(\d+) ([ap]m) on (\d+) (\w+), (\d+)", re.IGNORECASE)
_LONGMEMEVAL_TIME = re.compile(r"(\d+)/(\d+)/(\d+)(?: \(\w+\))?(?: (\d+):(\d+))?")
_MONTHS = "january february march april may june july august september october november december".split()


class DatasetError(InputError):
    """The file is not the data set that it should be."""

    def __init__(self, problem: str) -> None:
        super().__init__("file", problem)


class DatasetTurn(msgspec.Struct, frozen=True):
    """What one speaker said at a time: one memory."""

    id: str
    session: str
    text: str
    at: datetime
    role: Role | None = None


class DatasetQuestion(msgspec.Struct, frozen=True):
    text: str
    category: str
    asked_at: datetime
    turns: frozenset[str]
    """The ids of the turns that hold the answer."""
    sessions: frozenset[str] = frozenset()
    """The sessions that do, where the data set asks for them, too."""


class Corpus(msgspec.Struct, frozen=True):
    """Turns that are stored together, and the questions that are asked of them."""

    name: str
    turns: tuple[DatasetTurn, ...]
    questions: tuple[DatasetQuestion, ...]
    unanswered: tuple[DatasetQuestion, ...] = ()
    """Questions that nothing in the turns answers, where abstaining is right."""


class Dataset(msgspec.Struct, frozen=True):
    name: Name
    title: str
    corpora: tuple[Corpus, ...]
    left_out: int
    """Questions that nothing in the file answers: adversarial, to be abstained from, or without evidence."""

    @property
    def questions(self) -> int:
        return sum(len(corpus.questions) for corpus in self.corpora)

    def limited(self, number: int) -> Dataset:
        """At most so many questions, evenly from the whole file, asked of all turns that they could be asked of."""
        total = self.questions
        if number >= total:
            return self
        chosen = {at * total // number for at in range(number)}
        places = iter(range(total))
        corpora = [
            msgspec.structs.replace(corpus, questions=tuple(q for q in corpus.questions if next(places) in chosen))
            for corpus in self.corpora
        ]
        return msgspec.structs.replace(self, corpora=tuple(corpus for corpus in corpora if corpus.questions))


def load(name: Name, path: str | os.PathLike[str]) -> Dataset:
    """The data set in a file. DatasetError if something else is in it, OSError if it cannot be read."""
    data = Path(path).read_bytes()
    if not data.strip():
        raise DatasetError(f"{os.fspath(path)} is empty")
    dataset = _LOADERS[name](data)
    if not dataset.questions:
        raise DatasetError(f"{os.fspath(path)} has no question with evidence, so there is nothing to measure")
    return dataset


# LoCoMo


class _LocomoTurn(msgspec.Struct):
    speaker: str
    dia_id: str
    text: str
    blip_caption: str | None = None


class _LocomoQuestion(msgspec.Struct):
    question: str
    category: int
    evidence: list[str] = []


class _LocomoSample(msgspec.Struct):
    conversation: dict[str, str | list[_LocomoTurn]]
    qa: list[_LocomoQuestion]
    sample_id: str | None = None


def locomo(data: bytes) -> Dataset:
    """A list of conversations, each with `conversation` (`session_1`, `session_1_date_time`, …) and `qa`."""
    samples = _decoded(data, list[_LocomoSample], "LoCoMo")
    corpora: list[Corpus] = []
    for number, sample in enumerate(samples, 1):
        turns = [*_locomo_turns(sample)]
        if not turns:
            raise DatasetError(f"conversation {number} has no turns: there is no session_1, session_2, …")
        turn_ids, last = {turn.id for turn in turns}, max(turn.at for turn in turns)
        questions = [
            DatasetQuestion(asked.question, _LOCOMO_CATEGORIES[asked.category], last, evidence)
            for asked in sample.qa
            if asked.category in _LOCOMO_CATEGORIES and (evidence := _locomo_evidence(asked) & turn_ids)
        ]
        name = sample.sample_id or f"conversation-{number}"
        if any(name == corpus.name for corpus in corpora):
            raise DatasetError(f"there are two conversations with the sample_id {name}")
        trick = tuple(
            DatasetQuestion(entry.question, "adversarial", last, frozenset())
            for entry in sample.qa
            if entry.category == 5
        )
        corpora.append(Corpus(name, tuple(turns), tuple(questions), trick))
    left_out = sum(len(sample.qa) for sample in samples) - sum(len(corpus.questions) for corpus in corpora)
    return Dataset("locomo", "LoCoMo", tuple(corpora), left_out)


def _locomo_turns(sample: _LocomoSample) -> Iterator[DatasetTurn]:
    for session, spoken in sample.conversation.items():
        if not _SESSION.fullmatch(session) or isinstance(spoken, str):
            continue
        date = sample.conversation.get(f"{session}_date_time")
        if not isinstance(date, str):
            raise DatasetError(f"{session} has no {session}_date_time")
        at = _locomo_time(date)
        for turn in spoken:
            caption = f" [image: {turn.blip_caption}]" if turn.blip_caption else ""
            yield DatasetTurn(_tidy(turn.dia_id), session, f"{turn.speaker}: {turn.text}{caption}", at)


def _locomo_evidence(asked: _LocomoQuestion) -> frozenset[str]:
    return frozenset(_tidy(match[0]) for named in asked.evidence for match in _EVIDENCE.finditer(named))


def _tidy(turn: str) -> str:
    match = _EVIDENCE.fullmatch(turn)
    return f"D{int(match[1])}:{int(match[2])}" if match else turn


def _locomo_time(text: str) -> datetime:
    """`1:56 pm on 8 May, 2023`. Not by strptime, which reads months in the language of the machine."""
    match = _LOCOMO_TIME.fullmatch(text.strip())
    month = match and match[5].lower()
    if not match or month not in _MONTHS:
        raise DatasetError(f"{text[:40]!r} is not a time such as '1:56 pm on 8 May, 2023'")
    hour = int(match[1]) % 12 + 12 * (match[3].lower() == "pm")
    return _time(text, int(match[6]), _MONTHS.index(month) + 1, int(match[4]), hour, int(match[2]))


# LongMemEval


class _Said(msgspec.Struct):
    role: Literal["user", "assistant", "system"]
    content: str
    has_answer: bool | None = None


class _LongMemEvalQuestion(msgspec.Struct):
    question_id: str
    question_type: str
    question: str
    question_date: str
    haystack_dates: list[str]
    haystack_session_ids: list[str]
    haystack_sessions: list[list[_Said]]
    answer_session_ids: list[str]


class _Pool:
    """The sessions of all questions, each once. Questions share sessions; the first date that one has counts."""

    def __init__(self) -> None:
        self.turns: list[DatasetTurn] = []
        self._words_by_name: dict[str, list[tuple[str, str]]] = {}

    def add(self, session: str, date: str, turns: Sequence[_Said]) -> str:
        """Returns the name of the session here, which is another if one with that name holds other words."""
        words = [(turn.role, turn.content) for turn in turns]
        name, number = session, 1
        while self._words_by_name.setdefault(name, words) is not words:
            if self._words_by_name[name] == words:
                return name
            number += 1
            name = f"{session}-{number}"
        at = _longmemeval_time(date)
        self.turns += [
            DatasetTurn(f"{name}:{place}", name, turn.content, at, turn.role) for place, turn in enumerate(turns, 1)
        ]
        return name


def longmemeval(data: bytes) -> Dataset:
    """A list of questions, each with its `haystack_sessions`, whose turns may have `has_answer`."""
    asked = _decoded(data, list[_LongMemEvalQuestion], "LongMemEval")
    pool = _Pool()
    loaded = [_longmemeval_question(each, pool) for each in asked]
    questions = tuple(question for question in loaded if question is not None)
    abstained = tuple(
        DatasetQuestion(entry.question, "abstention", _longmemeval_time(entry.question_date), frozenset())
        for entry in asked
        if entry.question_id.endswith("_abs")
    )
    corpora = (Corpus("longmemeval", tuple(pool.turns), questions, abstained),) if asked else ()
    return Dataset("longmemeval", "LongMemEval", corpora, len(asked) - len(questions))


def _longmemeval_question(asked: _LongMemEvalQuestion, pool: _Pool) -> DatasetQuestion | None:
    """None where abstaining is the answer. The sessions are in the pool all the same."""
    lengths = {len(asked.haystack_dates), len(asked.haystack_session_ids), len(asked.haystack_sessions)}
    if len(lengths) > 1:
        raise DatasetError(f"question {asked.question_id}: its sessions, their ids and their dates differ in number")
    turns, sessions = set[str](), set[str]()
    for session, date, spoken in zip(
        asked.haystack_session_ids, asked.haystack_dates, asked.haystack_sessions, strict=True
    ):
        name = pool.add(session, date, spoken)
        turns.update(f"{name}:{place}" for place, turn in enumerate(spoken, 1) if turn.has_answer)
        if session in asked.answer_session_ids:
            sessions.add(name)
    if asked.question_id.endswith("_abs") or not turns or not sessions:
        return None
    when = _longmemeval_time(asked.question_date)
    return DatasetQuestion(asked.question, asked.question_type, when, frozenset(turns), frozenset(sessions))


def _longmemeval_time(text: str) -> datetime:
    """`2023/04/10 (Mon) 23:07`."""
    match = _LONGMEMEVAL_TIME.fullmatch(text.strip())
    if not match:
        raise DatasetError(f"{text[:40]!r} is not a time such as '2023/04/10 (Mon) 23:07'")
    return _time(text, *(int(part or 0) for part in match.groups()))


# Both


def _time(text: str, *parts: int) -> datetime:
    try:
        return datetime(*parts, tzinfo=UTC)  # type: ignore[misc]
    except ValueError as error:
        raise DatasetError(f"{text[:40]!r} is not a time: {error}") from None


def _decoded(data: bytes, shape: type[_Shape], title: str) -> _Shape:
    try:
        return msgspec.json.decode(data, type=shape)
    except RecursionError:
        raise DatasetError("this is nested too deeply") from None
    except msgspec.ValidationError as error:
        raise DatasetError(f"this is not {title} as it is published: {error}{_advice(data, title)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DatasetError(f"this is not JSON: {error}") from None


def _advice(data: bytes, title: str) -> str:
    looks: dict[str, tuple[Any, str]] = {
        "LoCoMo": (b'"haystack_sessions"', "LongMemEval: recollect eval longmemeval"),
        "LongMemEval": (b'"dia_id"', "LoCoMo: recollect eval locomo"),
    }
    mark, other = looks[title]
    return f". It looks like {other}" if mark in data else ""


_LOADERS: dict[Name, Callable[[bytes], Dataset]] = {"locomo": locomo, "longmemeval": longmemeval}
