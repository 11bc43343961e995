"""What of a conversation is worth keeping: decisions, preferences, facts, tasks and failures, sentence by sentence.

Rules for English, each with a name that explains what it took. Small talk, questions, requests to the assistant and its
own filler are left. Of the assistant's words only decisions, promises and results count. `policies.foreign` reads
what is not English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal

import msgspec

from recollect.policies import foreign
from recollect.policies.importance import small_talk
from recollect.policies.phrases import (
    ASKS_USER,
    ASSENT,
    DECISION,
    ECHO,
    ENGLISH,
    FACT,
    FAILURE,
    GOES_ON,
    IDLE,
    INSTRUCTS,
    MATERIAL,
    NAME,
    NAMED_INSIDE,
    OVERRULES,
    PASSING,
    PREFERENCE,
    PROMISE,
    QUESTION,
    REMEMBER,
    REQUEST,
    RESULT,
    TASK,
    TODAY,
    TOLD,
    VERB,
    VITAL,
)
from recollect.text.fence import without
from recollect.text.sentences import sentences

Kind = Literal["decision", "preference", "fact", "task", "error"]


class Said(msgspec.Struct, frozen=True):
    """One turn."""

    role: str
    text: str


class Extracted(msgspec.Struct, frozen=True):
    text: str
    kind: Kind
    role: str
    rule: str
    """What found it."""
    importance: float
    """At least this, before other rules are asked."""
    turn: int
    """The position of the turn."""


WORTH: dict[Kind, float] = {"decision": 0.7, "preference": 0.6, "fact": 0.5, "task": 0.6, "error": 0.6}
_WORTH_OF_VITAL = 0.85
_LONGEST = 600
"""Characters of a sentence. What is longer is a document, and no statement."""
_QUOTED = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
"""What somebody else wrote, as mails quote it."""


@cache
def _find(pattern: str, any_case: bool = True, multiline: bool = False) -> re.Pattern[str]:
    return re.compile(pattern, (re.IGNORECASE if any_case else 0) | (re.MULTILINE if multiline else 0))


def _has(pattern: str, text: str) -> bool:
    return _find(pattern).search(text) is not None


@cache
def _named(pattern: str) -> re.Pattern[str]:
    """A pattern in which a name begins with a capital, and everything else is as it comes."""
    return re.compile(pattern.replace(NAME, f"(?-i:{NAME})"), re.IGNORECASE)


def extract(turns: Sequence[Said]) -> list[Extracted]:
    """What is worth keeping, in order; each text once."""
    facts: dict[str, Extracted] = {}
    for at, turn in enumerate(turns):
        before = turns[at - 1] if at else None
        for fact in _of_turn(turn, before, at):
            facts.setdefault(fact.text, fact)
    return list(facts.values())


def _of_turn(turn: Said, before: Said | None, at: int) -> Iterator[Extracted]:
    if turn.role not in ("user", "assistant"):
        return
    text = _QUOTED.sub("", without(turn.text)).replace("’", "'")
    if material := _find(MATERIAL, multiline=True).search(text):
        text = text[: material.start()]
    if turn.role == "user" and (answer := _answer(text, before)):
        yield _made(answer, "fact", turn.role, "an answer to what was asked", at)
        return
    spoken_in = _language(text) if turn.role == "user" else foreign.ENGLISH
    if spoken_in != foreign.ENGLISH:
        text = foreign.own_words(text)
    last = ""
    for sentence in sentences(text):
        spoken = sentence.text.strip()
        if sentence.code:
            continue
        # Dictation has no full stops.
        for piece in [spoken] if len(spoken) <= _LONGEST else _pieces(spoken):
            code = foreign.sentence_language(piece, spoken_in) if turn.role == "user" else spoken_in
            judged = judge(piece, turn.role) if code == foreign.ENGLISH else foreign.judge(piece, code)
            if judged is not None:
                kind, rule = judged
                # "It" and "she" are nobody without the sentence before.
                whole = f"{last} {piece}" if last and rule == "of somebody named before" else piece
                yield _made(whole, kind, turn.role, rule, at)
        last = spoken if len(spoken) <= _LONGEST // 2 and not spoken.endswith("?") else ""


def _pieces(sentence: str) -> list[str]:
    pieces = _find(r"[,;] | and (?=i|we|my|the|he|she)| but | because ").split(sentence)
    return [piece for piece in pieces if len(piece) <= _LONGEST]


def _made(text: str, kind: Kind, role: str, rule: str, at: int) -> Extracted:
    worth = _WORTH_OF_VITAL if role == "user" and _has(VITAL, text) else WORTH[kind]
    return Extracted(text, kind, role, rule, worth, at)


def _answer(text: str, before: Said | None) -> str:
    """What was asked and what was answered, where the answer alone says nothing."""
    reply = text.strip()
    if before is None or before.role != "assistant" or not reply or len(reply.split()) > 6 or reply.endswith("?"):
        return ""
    if judge(reply, "user") is not None or small_talk(reply) or _has(ASSENT, reply) or _has(REQUEST, reply):
        return ""
    asked = [sentence.text.strip() for sentence in sentences(without(before.text))]
    if (
        not asked
        or not _has(ASKS_USER, asked[-1])
        or _has(
            r"\b(?:help|password|passphrase|passcode|pin|secret|token|code|can i|shall i|should i|"
            r"would you like|do you want|anything else)\b",
            asked[-1],
        )
    ):
        return ""
    return f"{asked[-1]} {reply}"


def _language(text: str) -> str:
    """The language of a turn. Short ones are English if they have one English word."""
    code = foreign.turn_language(text)
    return foreign.ENGLISH if code == foreign.UNKNOWN and _has(ENGLISH, text) else code


def judge(sentence: str, role: str) -> tuple[Kind, str] | None:
    """What sort of thing a sentence says, and by which rule; None if it is not worth keeping."""
    if role == "assistant":
        return _of_assistant(sentence)
    if _has(REMEMBER, sentence) and len(sentence.split()) > 3 and not sentence.endswith("?"):
        kind = "task" if _has(r"\b(?:forget|remember) to\b", sentence) else (_kind(sentence) or ("fact", ""))[0]
        return kind, "asked to be remembered"
    if (
        _has(OVERRULES, sentence)
        and _has(TOLD, sentence)
        and (not sentence.endswith("?") or _has(r"\bi (?:am|have)\b|\bi'm\b", sentence))
    ):
        return "fact", "matters whatever is around it"
    if small_talk(sentence) or _has(QUESTION, sentence) or len(sentence.split()) < 3:
        return None
    if _has(r"^(?:please )?remind me\b", sentence):
        return "task", "a reminder"
    if _has(REQUEST, sentence) and not _has(INSTRUCTS, sentence) and _sort(DECISION, sentence) is None:
        return None
    if _has(IDLE, sentence):
        # "It is on Friday" is idle talk, unless it corrects something, or goes on to say more.
        if _has(FACT["a correction"], sentence):
            return "fact", "a correction"
        rest = _find(GOES_ON).split(sentence, maxsplit=1)
        return judge(rest[1], role) if len(rest) > 1 and len(rest[1].split()) > 4 else None
    judged = _kind(sentence) or _definite(sentence)
    passing = _has(PASSING, sentence) or (_has(TODAY, sentence) and not _has(FACT["a change"], sentence))
    return None if judged and judged[0] == "fact" and passing else judged


def _definite(sentence: str) -> tuple[Kind, str] | None:
    """A statement that names something: a number, or a name inside the sentence."""
    named = _find(NAMED_INSIDE, any_case=False).search(sentence) or any(letter.isdigit() for letter in sentence)
    return ("fact", "names something") if named and len(sentence.split()) > 3 and _has(VERB, sentence) else None


def _kind(sentence: str) -> tuple[Kind, str] | None:
    sorts: tuple[tuple[Kind, dict[str, str]], ...] = (
        ("decision", DECISION),
        ("preference", PREFERENCE),
        ("error", FAILURE),
        ("task", TASK),
        ("fact", FACT),
    )
    for kind, rules in sorts:
        if rule := _sort(rules, sentence):
            return kind, rule
    return None


def _sort(rules: dict[str, str], sentence: str) -> str | None:
    return next((name for name, pattern in rules.items() if _named(pattern).search(sentence)), None)


def _of_assistant(sentence: str) -> tuple[Kind, str] | None:
    if sentence.endswith("?") or len(sentence.split()) < 4 or _has(ECHO, sentence):
        return None
    for name, pattern in RESULT.items():
        if _has(pattern, sentence):
            return ("decision" if name == "decided together" else "fact"), name
    return ("task", "a promise") if _find(PROMISE, any_case=False).search(sentence) else None
