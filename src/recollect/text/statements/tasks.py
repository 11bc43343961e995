"""Whether a sentence says that a task is done, is called off, or has another deadline."""

from __future__ import annotations

import re
from typing import Literal

from recollect.text.late_pattern import LatePattern
from recollect.text.statements.claims import spelled
from recollect.text.statements.contradicting import EMPTY
from recollect.text.times import names_time
from recollect.text.words import WORD, stem

TaskEffect = Literal["closes", "moves"]

_DONE = LatePattern(
    r"\b(?:(?:is|are|got|all|have|has|been|was|were|am) (?:\w+ ){0,2}?(?:done|finished|completed|sorted|handled|"
    r"settled)|done(?= *[.!]?$)|"
    r"finished|completed|sorted|dealt with|taken care of|all set|ticked off|crossed off|off (?:my|the) list|"
    r"out of the way)\b|[✓✔✅☑]",
    re.IGNORECASE,
)
_NOT_DONE = LatePattern(
    r"\b(?:still (?:have|need|got|has|must|to|not|need(?:s)? to)|not yet|have not|has not|had not|did not|"
    r"do not forget|remind|"
    r"(?:need|have|has|want|going|about|plan|planning|trying|try|meant|supposed|ought|forgot|remember|failed) to|"
    r"must|should|"
    r"will|shall|let me|half|almost|nearly|not (?:done|finished|paid|sent)|started|begun|working on|tomorrow|if|"
    r"when|once|"
    r"tried|could not|can not|would|might|maybe|another|next time|wish|hopefully|soon|still no|to go|only|where|"
    r"what|how)\b",
    re.IGNORECASE,
)
_FREED = LatePattern(
    r"\b(?:no longer (?:need|have) to|(?:do|does) not (?:need|have) to|no need to|not necessary|called off|"
    r"cancel(?:l)?ed|"
    r"forget about|never ?mind|will not (?:need|be (?:going|doing))|decided not to|decided against|not going to)\b",
    re.IGNORECASE,
)
_PUT_OFF = LatePattern(
    r"\b(?:moved|pushed|postponed|rescheduled|extended|extension|delayed|deadline|due|until|till|instead|now on|"
    r"brought forward|"
    r"shifted|put off|later|earlier|more time|another (?:week|day|month)|by (?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"new date|changed to|slipped|bumped|not before|make it)\b",
    re.IGNORECASE,
)
_DOING = frozenset(
    map(
        stem,
        """need have must should remember remind forget get go do make take call buy send pay book pick drop renew
        submit file sign fix finish write bring give ask tell check find see new by before until on today tomorrow
        week next monday tuesday wednesday thursday friday saturday sunday someone something thing
        please want""".split(),
    )
)
"""Words of a task that tell what is done, and not with what."""


_CLAUSE = LatePattern(
    r"[,;.!?()\n—–]+(?:\s|$)|\s-\s| (?:and|but|so|because|while|then)(?= (?:i|we|he|she|they|the|my|our|it|"
    r"still)\b)| still ",
    re.IGNORECASE,
)
_OTHERS = LatePattern(
    r"\b(?:(?:[Hh]is|[Hh]er|[Tt]heir|[A-Z]\w+'s)\b|(?:[Mm]y|[Oo]ur|[Tt]he|[Aa]) (?:wife|husband|partner|son|"
    r"daughter|sister|brother|"
    r"mother|father|mum|mom|dad|"
    r"boss|friend|colleague|neighbou?r|parents)(?:'s)?\b|myself\b)"
)


_BY_ANOTHER = LatePattern(
    r"(?!(?:I|We|Got|Done|The|It|My|Our|All|Finally|Just)\b)[A-Z]\w+ (?:has |have )?\w+ed (?:me|us)\b"
)
"""Somebody else has done it to the speaker: "Bob called me"."""


def may_close(sentence: str) -> bool:
    """Whether a sentence could do something to any task: it says that something is done, or off, or moved."""
    plain = spelled(sentence)
    return any(pattern.search(plain) for pattern in (_DONE, _FREED, _PUT_OFF, _ENDED))


def task_effect(task: str, text: str) -> TaskEffect | None:
    """What the user's sentence does to a task."""
    if _LEFT.search(text):
        return None
    effect: TaskEffect | None = None
    for clause in _CLAUSE.split(text):
        plain = spelled(clause or "")
        if _BY_ANOTHER.match(plain):
            continue
        if not plain or not _is_about(task, plain):
            continue
        if _FREED.search(plain):
            return "closes"
        if (
            text.rstrip().endswith("?")
            and text.count("?") == 1
            and clause.strip()
            and text.rstrip(" ?").endswith(clause.strip())
        ):
            continue
        if _PUT_OFF.search(spelled(text)) and _names_day(text) and not _finished(task, plain):
            effect = "moves"
        elif (
            (_finished(task, plain) or _DONE.search(plain)) and not _NOT_DONE.search(plain) and _same_month(task, plain)
        ):
            return "closes"
    return effect


def _same_month(task: str, clause: str) -> bool:
    """The rent for May is not that for June."""
    when, due = ({month.lower() for month in _MONTH.findall(text)} for text in (clause, task))
    return not (when and due) or bool(when & due)


def _names_day(sentence: str) -> bool:
    return names_time(sentence) or re.search(r"\b\d{1,2}(?:st|nd|rd|th|\.)?\b", sentence) is not None


def _finished(task: str, clause: str) -> bool:
    """Whether what was to be done is told as past: "renew" and "renewed"."""
    doing = {word for word in WORD.findall(spelled(task).lower())[:4] if len(word) > 2 and word not in EMPTY}
    ends = {word + end for word in doing for end in ("ed", "d", word[-1] + "ed", "ied")} | {
        w[:-1] + "ied" for w in doing
    }
    irregular = {_PAST[word] for word in doing if word in _PAST}
    return not (ends | irregular).isdisjoint(WORD.findall(clause.lower()))


_VERBS = """write/written send/sent buy/bought pay/paid bring/brought take/taken get/got sell/sold find/found
build/built make/made give/given read/read do/done see/saw meet/met bleed/bled hang/hung put/put cut/cut feed/fed
teach/taught tell/told catch/caught win/won lose/lost drive/driven choose/chosen ring/rung sew/sewn sweep/swept"""
_PAST = {now: then for now, _, then in (pair.partition("/") for pair in _VERBS.split())}
_ENDED = LatePattern(rf"\b(?:\w+ed|{'|'.join(_PAST.values())})\b", re.IGNORECASE)
"""A verb in the past."""


def _is_about(task: str, clause: str) -> bool:
    """Whether the things of the task are named, and not those of somebody else or of another number."""
    things = _things(task)
    text = {stem(word) for word in WORD.findall(clause.lower())}
    numbers = {word for word in text if word[0].isdigit()}
    own = {word for word in WORD.findall(_BY.sub(" ", task)) if word[0].isdigit()}
    if not things or (own and numbers and not own & numbers):
        return False
    others = {stem(word) for match in _OTHERS.findall(clause) for word in WORD.findall(match.lower())}
    of_task = {stem(word) for word in WORD.findall(task.lower())}
    if {word for word in others if not word.startswith("@")} - of_task or ("myself" in clause and "myself" not in task):
        return False
    if any(theirs not in task for theirs in _THEIRS.findall(clause)):
        return False
    return things <= text and _LONG_AGO.search(clause) is None


_BY = LatePattern(r"\b(?:by|before|until|till|due|on|at) (?:the )?[\d:./]+", re.IGNORECASE)
_LEFT = LatePattern(r"\b\d+ (?:more )?(?:to go|left)\b", re.IGNORECASE)
_THEIRS = LatePattern(r"\b[A-Z]\w+'s\b")
_MONTH = LatePattern(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b", re.IGNORECASE
)
_LONG_AGO = LatePattern(
    r"\b(?:in (?:19|20)\d\d|(?:of |for )?last (?:week|month|year)(?:'s)?|years? ago|an? (?:idiot|"
    r"fool))\b",
    re.IGNORECASE,
)
"""Tells of another time than that of the task."""


def _things(task: str) -> frozenset[str]:
    every = WORD.findall(spelled(_MONTH.sub(" ", _BY.sub(" ", task))).lower())
    words = {stem(word) for word in every[len(every) > 1 :] if word not in EMPTY}
    return frozenset(
        word
        for word in words
        if word not in _DOING and not word.startswith("@") and len(word) > 2 and not word[0].isdigit()
    )
