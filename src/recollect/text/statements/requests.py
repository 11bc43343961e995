"""What a turn asks of the memory itself: to forget, correct or remember something, or to keep nothing for a while.

The words are data, `[requests]` in `languages/*.toml`. A false request is far worse than a missed one, so a pattern
stands for a whole clause, and what merely could be meant for the memory is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from recollect.text.languages import Requests, language
from recollect.text.sentences import sentences
from recollect.text.statements.claims import spelled

Act = Literal["forget", "correct", "remember", "off", "on"]
LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl")
_LONGEST = 320
"""Characters of a sentence that is read. People ask the memory for something in few words."""
_LONGEST_TEXT = 4000
_MOST_WORDS = 9
"""Words of a second sentence that asks something about the first."""
_MOST_CLAUSES = 8
_SPLIT = re.compile(
    r"\s*[,;–—]\s*|\s+-+\s+|\s*:\s+|\s*\.{2,}\s*|\s*…\s*"
    r"|\s+(?=(?:and|but|so|und|aber|also|et|mais|donc|y|pero|e|ma|mas|en|maar|dus)\s)",
    re.IGNORECASE,
)
_JOINING = re.compile(r"(?:(and|und|et|y|e|en)|but|so|aber|also|mais|donc|pero|ma|mas|maar|dus)\s+", re.IGNORECASE)
_EDGE = r"[\s.!?…,;:\-–—\"'“”„«»*_()¿¡☀-➿\U0001f300-\U0001faff\ufe0f\u200d]+"
_TRIM = re.compile(rf"^{_EDGE}|{_EDGE}$")
_QUOTED = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_INSIDE_QUOTES = re.compile(r"\"[^\"\n]{12,}\"|“[^”\n]{12,}”|„[^“”\n]{12,}[“”]|«[^»\n]{12,}»")


_SHORT = (
    (re.compile(r"\blet[’']?s\b", re.IGNORECASE), "let us"),
    (re.compile(r"\bu\b", re.IGNORECASE), "you"),
    (re.compile(r"\bur\b", re.IGNORECASE), "your"),
    (re.compile(r"\bw/ ?", re.IGNORECASE), "with "),
    (re.compile(r"\b(you|i|they|we)ve\b", re.IGNORECASE), r"\1 have"),
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
    sentence: str = ""
    """The sentence that asks, as it stands in the turn."""
    language: str = "en"


def request(text: str) -> MemoryRequest | None:
    """The first thing that a turn asks of the memory; None if there is none."""
    return next(iter(requests(text)), None)


@lru_cache(maxsize=512)
def requests(text: str) -> tuple[MemoryRequest, ...]:
    """All that a turn asks of the memory, in order. At most one for each sentence."""
    if len(text) > _LONGEST_TEXT or not any(_table(code).cue.search(text) for code in LANGUAGES):
        return ()
    spoken = _INSIDE_QUOTES.sub(lambda quoted: "x" * len(quoted[0]), _QUOTED.sub("", text))
    asked_for: list[MemoryRequest] = []
    lines = [sentence for sentence in sentences(spoken) if not sentence.code]
    for at, sentence in enumerate(lines):
        near = _Near(lines[at - 1].text if at else "", lines[at + 1].text if at + 1 < len(lines) else "")
        if len(sentence.text) > _LONGEST or any(sentence.text in asked.sentence for asked in asked_for):
            continue
        if asked := _read(sentence.text, near) or _of_two(text, sentence.text, near):
            asked_for.append(asked)
    return tuple(asked_for)


class _Near(NamedTuple):
    """The sentences around one, where there are any."""

    previous: str
    following: str


def _of_two(text: str, sentence: str, near: _Near) -> MemoryRequest | None:
    """A request in two sentences: "My old number. Delete it."."""
    begin = text.find(sentence)
    end = text.find(near.following, begin + len(sentence)) + len(near.following)
    if begin < 0 or not near.following or len(near.following.split()) > _MOST_WORDS or end - begin > _LONGEST:
        return None
    asked = _read(text[begin:end], _Near(near.previous, ""))
    return asked if asked and asked.act == "forget" and asked.about else None


def _read(sentence: str, near: _Near) -> MemoryRequest | None:
    for code in LANGUAGES:
        table = _table(code)
        if table.cue.search(sentence) and (asked := table.read(sentence, near)):
            return asked._replace(sentence=sentence, language=code)
    return None


def distinctive(asked: MemoryRequest, words: str = "") -> list[str]:
    """The words of a request that tell one memory from another, in order and in small letters."""
    empty = _table(asked.language).empty
    every = re.findall(r"\d[\d.,:/-]*\d|[^\W_]+", (words or asked.about).lower().replace("’", "'").replace("'", " "))
    return [word for word in dict.fromkeys(every) if word not in empty and (len(word) > 1 or word.isdigit())]


class _Table:
    """The patterns of a language, compiled."""

    def __init__(self, code: str, raw: Requests) -> None:
        self.code = code
        self._raw = raw
        self.cue = re.compile(raw.cue, re.IGNORECASE)
        self.empty = frozenset(raw.empty.split())
        self._before = self._compile(rf"(?:{raw.before})(?:\s*[,:;!.]+\s*|\s+|$)")
        self._after = self._compile(rf"(?:\s*,\s*|\s+)(?:{raw.after})$")
        self._task = self._compile(rf"(?:{raw.task})")
        self._reason = self._compile(rf"(?:{raw.reason})\b.*")
        self._states = self._compile(rf"(?:{raw.states}).*")
        acts: tuple[tuple[str, tuple[str, ...]], ...] = (
            ("off", raw.off), ("on", raw.on), ("everything", raw.everything), ("forget", raw.forget),
            ("last", raw.last), ("unsaved", raw.unsaved), ("plain", raw.plain),
            ("correct", raw.correct), ("noted", raw.noted), ("wrong", raw.wrong), ("fix", raw.fix),
            ("remember", raw.remember),
        )  # fmt: skip
        self._patterns = [(act, self._compile(pattern)) for act, patterns in acts for pattern in patterns]

    def _compile(self, pattern: str) -> re.Pattern[str]:
        raw = self._raw
        filled = pattern.replace("{about}", "(?P<about>[^,;]+?)").replace("{value}", "(?P<value>.+)")
        return re.compile(filled.replace("{memory}", raw.memory).replace("{things}", raw.things), re.IGNORECASE)

    def read(self, sentence: str, near: _Near) -> MemoryRequest | None:
        plain = _plain_english(sentence) if self.code == "en" else _one_spelling(sentence)
        question = plain.rstrip().endswith("?")
        for start, end, joined in _runs(plain):
            where = _Where(plain[:start], _trimmed(plain[end:]), near.previous, near.following, joined)
            for clause, polite in self._forms(_trimmed(plain[start:end])):
                if (polite or not question) and (asked := self._match(clause, where)):
                    return asked
        return None

    def _match(self, clause: str, where: _Where) -> MemoryRequest | None:
        for act, pattern in self._patterns:
            match = pattern.fullmatch(clause)
            if match and (asked := self._made(act, match, where)):
                return asked
        return None

    def _forms(self, clause: str) -> Iterator[tuple[str, bool]]:
        """A clause as it is, and without what is around a request; and whether something polite was before it."""
        polite = False
        while clause:
            endings = [clause]
            while after := self._after.search(endings[-1]):
                endings.append(_trimmed(endings[-1][: after.start()]))
            yield from ((ending, polite) for ending in reversed(endings))
            before = self._before.match(clause)
            if not before or not before.end():
                return
            clause, polite = _trimmed(clause[before.end() :]), True

    def _made(self, act: str, match: re.Match[str], where: _Where) -> MemoryRequest | None:
        groups, rest = match.groupdict(), where.rest
        about, value = _trimmed(groups.get("about") or ""), _trimmed(groups.get("value") or "")
        if act in ("off", "on"):
            return MemoryRequest("off" if act == "off" else "on")
        if act == "remember":
            return MemoryRequest("remember", value=f"{value}, {rest}" if value and rest else value, last=not value)
        if act == "correct":
            return MemoryRequest("correct", about, value)
        if act == "unsaved":
            follows = (rest and not self._reason.fullmatch(rest)) or (
                where.following and not where.lead and not where.previous
            )
            return MemoryRequest("off") if follows else MemoryRequest("forget", last=True)
        if act == "noted":
            statement = rest or where.following or where.lead or where.previous
            return MemoryRequest("correct", about, _trimmed(statement)) if statement else None
        if act == "fix":
            return self._stated("fix", where.lead or where.previous)
        if act == "wrong":
            return self._corrected(about, where)
        vague = bool(about) and not any(word not in self.empty for word in re.findall(r"[^\W_]+", about.lower()))
        if act == "everything":
            return MemoryRequest("forget", "" if vague else about, all=True)
        if vague or (about and self._task.fullmatch(about)):
            return None
        if rest and act in ("plain", "last") and not self._reason.fullmatch(rest):
            # "Scratch that, I live in Lyon" is a correction; "scratch that, make it blue" is none of the memory's.
            return self._stated("", rest) if act == "last" else None
        if act == "last":
            return self._stated("", rest or where.following) or MemoryRequest("forget", last=True)
        return None if act == "plain" and where.joined else MemoryRequest("forget", about)

    def _stated(self, about: str, statement: str) -> MemoryRequest | None:
        for clause, _ in self._forms(_trimmed(statement)):
            if self._states.fullmatch(clause):
                return MemoryRequest("correct", "" if about == "fix" else about, clause, last=not about)
        return None

    def _corrected(self, about: str, where: _Where) -> MemoryRequest | None:
        """What is wrong, and what is so: in the rest of the sentence, or in the next one."""
        statement = where.rest or where.following
        if asked := self._stated(about, statement):
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
