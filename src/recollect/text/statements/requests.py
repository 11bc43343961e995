"""What a turn asks of the memory itself: to forget, correct or remember something, or to keep nothing for a while.

The words are data, `[requests]` in `languages/*.toml`: verbs, what may stand around them, and names of the memory. A
clause is an order of such a verb; what it names tells whether it is surely the memory's ("my address", "what I told
you about work"), surely not ("the second paragraph"), or the memory's if something is remembered of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from recollect.text.languages import Requests, language
from recollect.text.late_pattern import LatePattern
from recollect.text.sentences import sentences
from recollect.text.statements.claims import spelled

Act = Literal["forget", "correct", "remember", "off", "on"]
LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl")
_LONGEST = 320
"""Characters of a sentence that is read. People ask the memory for something in few words."""
_LONGEST_TEXT = 4000
_MOST_WORDS = 4
"""Words of a thing that is named without a verb: "the wedding, forget it"."""
_MOST_READINGS = 4
_MOST_CLAUSES = 8
_SPLIT = LatePattern(
    r"\s*[,;–—]\s*|\s+-+\s+|\s*:\s+|\s*\.{2,}\s*|\s*…\s*"
    r"|\s+(?=(?:and|but|so|und|aber|also|et|mais|donc|y|pero|e|ma|mas|en|maar|dus)\s)",
    re.IGNORECASE,
)
_JOINING = LatePattern(r"(?:(and|und|et|y|e|en)|but|so|aber|also|mais|donc|pero|ma|mas|maar|dus)\s+", re.IGNORECASE)
_EDGE = r"[\s.!?…,;:\-–—\"'“”„«»*_()¿¡☀-➿\U0001f300-\U0001faff\ufe0f\u200d]+"
_TRIM = LatePattern(rf"^{_EDGE}|{_EDGE}$")
_QUOTED = LatePattern(r"^[ \t]*>.*$", re.MULTILINE)
_INSIDE_QUOTES = LatePattern(r"\"[^\"\n]{12,}\"|“[^”\n]{12,}”|„[^“”\n]{12,}[“”]|«[^»\n]{12,}»")


_SHORT = (
    (LatePattern(r"\blet[’']?s\b", re.IGNORECASE), "let us"),
    (LatePattern(r"\bu\b", re.IGNORECASE), "you"),
    (LatePattern(r"\bur\b", re.IGNORECASE), "your"),
    (LatePattern(r"\bw/ ?", re.IGNORECASE), "with "),
    (LatePattern(r"\babt\b", re.IGNORECASE), "about"),
    (LatePattern(r"\b(?:pls|plz)\b", re.IGNORECASE), "please"),
    (LatePattern(r"\b(you|i|they|we)ve\b", re.IGNORECASE), r"\1 have"),
)


class MemoryRequest(NamedTuple):
    """One thing that is asked of the memory."""

    act: Act
    about: str = ""
    """The words that say what it is about. Empty where it is the turn before, or everything."""
    value: str = ""
    """What is true instead, or what is to be remembered, in the words of the user."""
    last: bool = False
    """Whether it is about what was just said: "scratch that"."""
    all: bool = False
    """Whether everything about it is meant."""
    old: str = ""
    """What the memory has, which is wrong."""
    names_memory: bool = False
    """Whether a correction says that it is about the memory, or about a fact of the speaker."""
    sure: bool = True
    """Whether the words alone are enough. If not, a memory must have all that they name."""
    sentence: str = ""
    """The sentence that asks, as it stands in the turn."""
    language: str = "en"


def request(text: str) -> MemoryRequest | None:
    """The first thing that a turn asks of the memory; None if there is none."""
    return next(iter(requests(text)), None)


def requests(text: str) -> list[MemoryRequest]:
    """All that a turn surely asks of the memory, in order. At most one for each sentence."""
    return [asked for asked in possible(text) if asked.sure]


@lru_cache(maxsize=512)
def possible(text: str) -> tuple[MemoryRequest, ...]:
    """All that a turn asks of the memory, and what it may ask, if the memory has what it names.

    Of one sentence, at most the last reading is sure. The first one counts that the memory has anything for.
    """
    if len(text) > _LONGEST_TEXT or not any(_table(code).cue.search(text) for code in LANGUAGES):
        return ()
    spoken = _INSIDE_QUOTES.sub(lambda quoted: "x" * len(quoted[0]), _QUOTED.sub("", text))
    asked_for: list[MemoryRequest] = []
    lines = [sentence for sentence in sentences(spoken) if not sentence.code]
    for at, sentence in enumerate(lines):
        near = _Near(lines[at - 1].text if at else "", lines[at + 1].text if at + 1 < len(lines) else "")
        if len(sentence.text) > _LONGEST or any(sentence.text in asked.sentence for asked in asked_for):
            continue
        asked_for += _read(sentence.text, near)
    return tuple(asked_for)


class _Near(NamedTuple):
    """The sentences around one, where there are any."""

    previous: str
    following: str


def _read(sentence: str, near: _Near) -> list[MemoryRequest]:
    unsure: list[MemoryRequest] = []
    for code in LANGUAGES:
        table = _table(code)
        if table.cue.search(sentence):
            read = [asked._replace(sentence=sentence, language=code) for asked in table.read(sentence, near)]
            if read and read[-1].sure:
                return read
            unsure += read
    return unsure[:_MOST_READINGS]


def distinctive(asked: MemoryRequest, words: str = "") -> list[str]:
    """The words of a request that tell one memory from another, in order and in small letters."""
    empty = _table(asked.language).empty
    every = re.findall(r"\d[\d.,:/-]*\d|[^\W_]+", (words or asked.about).lower().replace("’", "'").replace("'", " "))
    return [word for word in dict.fromkeys(every) if word not in empty and (len(word) > 1 or word.isdigit())]


class _Table:
    """The words of a language, compiled."""

    def __init__(self, code: str, raw: Requests) -> None:
        self.code = code
        self._raw = raw
        self.cue = self._compile(rf"\b(?:{raw.forget}|{raw.remove}|{raw.keep}|{raw.cue})")
        self.empty = frozenset(raw.empty.split())
        self._before = self._compile(rf"(?:{raw.before})(?:\s*[,:;!.]+\s*|\s+|$)")
        self._after = self._compile(rf"(?:\s*,\s*|\s+)(?:{raw.after})$")
        self._task = self._compile(rf"(?:{raw.task})")
        self._reason = self._compile(rf"(?:{raw.reason})\b.*")
        self._onward = self._compile(rf"(?:{raw.onward})\b.*")
        self._states = self._compile(rf"(?:{raw.states}).*")
        self._place = self._compile(rf"\s*\b(?:{raw.place})\b\s*")
        self._things = self._compile("{things}")
        self._work = self._compile(rf"\b(?:{raw.work})\b")
        self._not = self._compile("{not}")
        self._memory = self._compile("{memory}")
        self._blames = self._compile(raw.blames)
        self._retelling = self._compile(rf"(?:{raw.retelling})(?:\s+|$|(?=,))")
        self._told_that = self._compile(rf"(?:{raw.told_that})\s+{{about}}")
        self._every = self._compile(rf"(?:{raw.every})\b")
        self._me = self._compile(rf"(?:{raw.me})")
        self._topic = self._compile(rf"(?:{raw.topic})\s+")
        self._own = self._compile(rf"(?:{raw.own})\b.*")
        self._slot = self._compile(rf"(?:{raw.own_slot})")
        self._that = self._compile(rf"(?:{raw.that})")
        self._it = self._compile(rf"(?:{raw.it})")
        acts: tuple[tuple[str, tuple[str, ...]], ...] = (
            ("unkeep", raw.unkeep), ("off", raw.off), ("on", raw.on), ("back", raw.back),
            ("forget", tuple(form.replace("{verb}", f"(?:{raw.forget})") for form in raw.orders if "{verb}" in form)),
            ("remove", tuple(form.replace("{verb}", f"(?:{raw.remove})") for form in raw.orders)),
            ("remove", raw.removed), ("wrong", raw.wrong), ("update", raw.update), ("spelled", raw.spelled),
            ("noted", raw.noted), ("pair", raw.pairs), ("fix", raw.fix), ("remember", raw.remember),
        )  # fmt: skip
        self._patterns = [(act, self._compile(pattern)) for act, patterns in acts for pattern in patterns]

    def _compile(self, pattern: str) -> re.Pattern[str]:
        raw = self._raw
        parts = (
            ("place", raw.place),
            ("not", raw.not_),
            ("memory", raw.memory),
            ("things", raw.things),
            ("own", raw.own),
            ("keep", raw.keep),
        )
        for name, part in parts:
            pattern = pattern.replace(f"{{{name}}}", f"(?:{part})")
        filled = pattern.replace("{about}", "(?P<about>[^,;]+?)").replace("{value}", "(?P<value>.+)")
        return re.compile(filled.replace("{old}", "(?P<old>[^,;]{1,50}?)"), re.IGNORECASE)

    def read(self, sentence: str, near: _Near) -> list[MemoryRequest]:
        """What a sentence surely asks, or else what it may ask."""
        plain = _plain_english(sentence) if self.code == "en" else _one_spelling(sentence)
        if self.code == "en":
            near = _Near(*(_plain_english(text) for text in near))
        question = plain.endswith("?") and not self._after.search(_trimmed(plain))
        unsure: list[MemoryRequest] = []
        for start, end, joined in _runs(plain):
            has_colon = plain[end:].lstrip().startswith(":")
            where = _Where(
                _trimmed(plain[:start]), _trimmed(plain[end:]), near.previous, near.following, has_colon, joined
            )
            for clause, polite in reversed(list(self._forms(_trimmed(plain[start:end])))):
                for asked in self._matches(clause, where) if polite or not question or where.lead else ():
                    if asked.sure:
                        named = [reading for reading in unsure if reading.names_memory and asked.last]
                        return [*named, asked]
                    unsure.append(asked)
        return sorted(dict.fromkeys(unsure), key=lambda reading: not reading.names_memory)[:_MOST_READINGS]

    def _matches(self, clause: str, where: _Where) -> Iterator[MemoryRequest]:
        for act, pattern in self._patterns:
            match = pattern.fullmatch(clause)
            if match and (asked := self._made(act, match, where)) and not self._is_work(asked, clause, where):
                yield asked

    def _is_work(self, asked: MemoryRequest, clause: str, where: _Where) -> bool:
        """Whether it is about what the speaker works on: "change my number in the letter"."""
        if asked.act in ("off", "on") or self._place.search(clause) or self._retelling.search(clause):
            return False
        if asked.act == "remember":
            words = " ".join(asked.value.split()[:2])
            return bool(self._work.search(words) or self._onward.fullmatch(where.rest))
        around = f"{where.lead} {where.rest}"
        if asked.act == "forget" and (asked.sure or self._slot.fullmatch(asked.about)):
            named = "" if self._slot.fullmatch(asked.about) else asked.about
            return bool(self._work.search(f"{around} {named}"))
        return bool(self._work.search(f"{around} {clause}")) and not self._blames.search(clause)

    def _forms(self, clause: str) -> Iterator[tuple[str, bool]]:
        """A clause as it is, and without what is around a request; and whether something polite was before it."""
        polite = False
        while clause:
            endings = [clause]
            while after := self._after.search(endings[-1]):
                endings.append(_trimmed(endings[-1][: after.start()]))
            yield from ((ending, polite) for ending in endings)
            before = self._before.match(clause)
            if not before or not before.end():
                return
            clause, polite = _trimmed(clause[before.end() :]), True

    def _made(self, act: str, match: re.Match[str], where: _Where) -> MemoryRequest | None:
        groups = {name: _trimmed(text or "") for name, text in match.groupdict().items()}
        about, value, old = (groups.get(name, "") for name in ("about", "value", "old"))
        if act in ("off", "on"):
            joining = _JOINING.match(where.rest)
            if joining and joining[1] and not self._not.match(where.rest, joining.end()):
                return None  # "between us and the neighbours"
            return MemoryRequest("off" if act == "off" else "on")
        if act in ("forget", "remove", "unkeep", "back"):
            return self._forgotten(act, about, where, bool(self._place.search(match[0])))
        if act == "remember" and not (value or where.lead or where.previous):
            return None
        if act == "remember":
            value = value or where.lead
            value = f"{value}, {where.rest}" if value and where.rest and "value" in groups else value
            return MemoryRequest("remember", value=value, last=not value)
        if act == "update":
            whole = bool(self._memory.fullmatch(about))
            sure = whole or bool(self._slot.fullmatch(about) or self._place.search(match[0]))
            about = "" if whole else _trimmed(self._place.sub(" ", about))
            return (
                MemoryRequest("correct", about, value, old=old, sure=sure) if not self._task.fullmatch(about) else None
            )
        names_memory = bool(
            self._states.fullmatch(match[0]) or self._blames.search(f"{where.lead} {match[0]} {where.rest}")
        )
        names_memory = (
            names_memory or bool(self._blames.search(f"{where.previous} {where.following}")) or self._is_fix(where)
        )
        if act in ("pair", "spelled"):
            return MemoryRequest(
                "correct", "", value, old=old, names_memory=names_memory or act == "spelled", sure=False
            )
        if act == "noted":
            statement = value or where.rest or where.following or where.lead or where.previous
            return self._bare_value(statement, old) if statement else None
        if act == "fix":
            return self._stated("", where.lead or where.previous)
        if about and not self._things.fullmatch(about) and not self._blames.search(match[0]):
            return MemoryRequest("correct", about, where.rest, sure=False) if where.rest else None
        return self._corrected(about, where)

    # Forgetting

    def _forgotten(self, kind: str, named: str, where: _Where, marked: bool) -> MemoryRequest | None:
        """A request to forget what some words name, if it can be something of the memory."""
        topic = None
        about = self._ended(_trimmed(self._place.sub(" ", named).partition(" (")[0]))
        if not about or self._that.fullmatch(about) or self._it.fullmatch(about):
            return self._pointed(kind, about, where, marked)
        if any(self._onward.fullmatch(_JOINING.sub("", part, count=1)) for part in _SPLIT.split(about)[1:]):
            return None  # "forget everything and write a poem"
        everything = bool(self._every.match(about))
        if retelling := self._retelling.match(about):
            about, marked = _trimmed(about[retelling.end() :].partition(",")[0]), True
        elif topic := self._topic.match(about):
            about, marked = _trimmed(about[topic.end() :]), marked or (kind != "remove" and not everything)
        elif everything and kind == "unkeep":
            return None
        elif everything:
            about = _trimmed(self._every.sub("", about, count=1)) or about
        if self._me.fullmatch(about) and (everything or retelling or marked):
            return MemoryRequest("forget", all=True)
        is_task = self._task.fullmatch(about)
        if not marked and ((is_task and not self._slot.fullmatch(about)) or self._onward.fullmatch(where.rest)):
            return None
        if self._vague(about):
            back = MemoryRequest("forget", all=everything, last=not everything)
            return back if retelling else None
        sure = marked or (not is_task and everything and kind != "remove")
        sure = sure or (self._is_own(kind, about, where) and not (is_task and kind == "remove"))
        apart = not where.lead or bool(topic or self._reason.fullmatch(where.lead))
        if kind == "remove" and not sure and (where.joined or not apart):
            return None
        return MemoryRequest("forget", about, all=everything, names_memory=bool(topic), sure=sure)

    def _ended(self, about: str) -> str:
        while after := self._after.search(about):
            about = _trimmed(about[: after.start()])
        return about

    def _is_own(self, kind: str, about: str, where: _Where) -> bool:
        """Whether words surely name a fact of the speaker, who asks for nothing else."""
        if where.joined:
            return False
        return bool((self._slot if kind == "remove" else self._own).fullmatch(about))

    def _pointed(self, kind: str, pronoun: str, where: _Where, marked: bool) -> MemoryRequest | None:
        """What "forget that" is about: the words before it, the sentence before, or the turn before."""
        lead = self._bare(where.lead)
        for words in (lead, where.previous if not lead else ""):
            if words and (asked := self._named(kind, self._bare(words))):
                return asked
        if pronoun in ("him", "her") and (named := re.match(r"[A-Z]\w+", lead or where.previous)):
            return MemoryRequest("forget", named[0], sure=False)
        if not pronoun and not marked and kind in ("forget", "remove"):
            return None
        if len(lead.split()) >= _MOST_WORDS and not self._that.match(lead) and not where.rest:
            # "I owe Kuba money, forget that": it is in the same sentence, and what was said before it stays.
            bare = MemoryRequest("forget", self._bare(lead), sure=False)
            return bare if self._it.fullmatch(pronoun or "-") else MemoryRequest("forget", last=True, names_memory=True)
        if kind == "unkeep":
            follows = (where.rest and not self._reason.fullmatch(where.rest)) or (
                where.following and not lead and not where.previous
            )
            follows = follows or where.has_colon
            return MemoryRequest("off") if follows else MemoryRequest("forget", last=True)
        if self._onward.fullmatch(where.rest) or (not marked and self._it.fullmatch(pronoun or "-")):
            return MemoryRequest("forget", self._bare(lead), sure=False) if lead and not where.rest else None
        if where.rest and not self._reason.fullmatch(where.rest):
            # "Scratch that, I live in Lyon" is a correction; "scratch that, make it blue" is none of the memory's.
            return self._stated("", where.rest, surely=True)
        if stated := self._stated("", where.rest or where.following, surely=True):
            return stated
        return MemoryRequest("forget", last=True, sure=kind != "remove" or marked)

    def _named(self, kind: str, lead: str) -> MemoryRequest | None:
        """What words name, without a verb, that stand before "delete it"."""
        about, marked, everything = lead, False, bool(self._every.match(lead))
        if match := self._told_that.fullmatch(lead):
            about, marked = match["about"], True
        elif match := self._retelling.match(lead) or self._topic.match(lead):
            about, marked = lead[match.end() :].partition(",")[0], True
        elif not self._own.fullmatch(lead) or (
            self._states.fullmatch(lead) and not self._slot.fullmatch(lead.split(",")[0])
        ):
            short = 1 < len(lead.split()) < _MOST_WORDS and kind != "forget" and not self._task.fullmatch(lead)
            if short and not self._that.match(lead):
                return MemoryRequest("forget", lead, names_memory=True, sure=False)
            return None
        about = _trimmed(about)
        if not about or self._vague(about) or (self._task.fullmatch(about) and not self._slot.fullmatch(about)):
            return MemoryRequest("forget", last=True) if marked and self._vague(about) else None
        return MemoryRequest("forget", about.split(",")[0], all=everything, sure=kind != "forget" or marked)

    # Correcting

    def _bare(self, words: str) -> str:
        """Words without what is polite around them."""
        return list(self._forms(_trimmed(words)))[-1][0] if _trimmed(words) else ""

    def _bare_value(self, statement: str, old: str) -> MemoryRequest:
        value = self._bare(statement)
        pairs = [pattern.fullmatch(value) for act, pattern in self._patterns if act == "pair"]
        value = next((_trimmed(match["value"]) for match in pairs if match), value)
        return MemoryRequest("correct", "", value, old=old, names_memory=True, sure=False)

    def _is_fix(self, where: _Where) -> bool:
        fixes = [pattern for act, pattern in self._patterns if act == "fix"]
        return any(fix.fullmatch(self._bare(words)) for words in (where.rest, where.following) for fix in fixes)

    def _vague(self, about: str) -> bool:
        return not any(word not in self.empty for word in re.findall(r"[^\W_]+", about.lower()))

    def _stated(self, about: str, statement: str, surely: bool = False) -> MemoryRequest | None:
        for clause, _ in self._forms(_trimmed(statement)):
            if self._states.fullmatch(clause):
                return MemoryRequest("correct", about, clause, last=not about)
        bare = self._bare(statement)
        return MemoryRequest("correct", about, bare, sure=False) if bare and not surely else None

    def _corrected(self, about: str, where: _Where) -> MemoryRequest | None:
        """What is wrong, and what is so: in the rest of the sentence, or in the next one."""
        statement = where.rest or where.following
        about = _trimmed(self._place.sub(" ", about))
        if asked := self._stated(about, statement, surely=bool(about)):
            return asked
        if about:
            return MemoryRequest("correct", about, statement)
        alone = not statement and not where.lead and not where.previous
        return MemoryRequest("correct", last=True) if alone else None


class _Where(NamedTuple):
    lead: str
    """What stands before the clause in its sentence."""
    rest: str
    """What follows it there."""
    previous: str
    """The sentence before."""
    following: str
    """The next sentence."""
    has_colon: bool
    """Whether a colon stands behind it, and so what it is about."""
    joined: bool
    """Whether a word such as "and" joins the clause to the one before, which may be about something else."""


def _runs(sentence: str) -> Iterator[tuple[int, int, bool]]:
    """Every run of clauses, from the earliest beginning and the longest first."""
    cuts = [(0, 0), *((match.start(), match.end()) for match in _SPLIT.finditer(sentence))][: _MOST_CLAUSES + 1]
    ends = [cut for cut, _ in cuts[1:]] + [len(sentence)]
    for first, (begin, start) in enumerate(cuts):
        word = _JOINING.match(sentence, start)
        # What stands behind a colon is often a text that something is to be done with.
        if ":" in sentence[begin:start]:
            return
        for end in reversed(ends[first:]):
            yield (word.end() if word and first else start), end, bool(word and word[1]) and first > 0


def _trimmed(text: str) -> str:
    return _TRIM.sub("", text)


def _plain_english(sentence: str) -> str:
    for short, whole in _SHORT:
        sentence = short.sub(whole, sentence)
    return spelled(sentence)


def _one_spelling(sentence: str) -> str:
    return " ".join(re.sub(r"[’‘`´]", "'", sentence).split())


@cache
def _table(code: str) -> _Table:
    raw = language(code).requests
    assert raw is not None, f"languages/{code}.toml has no table of requests"
    return _Table(code, raw)
