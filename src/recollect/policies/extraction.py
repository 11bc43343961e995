"""What of a conversation is worth keeping: decisions, preferences, facts, tasks and failures, sentence by sentence.

Rules for English, each with a name that explains what it took. Small talk, questions, requests to the assistant and its
own filler are left. Of the assistant's words only decisions, promises and results count. What is not English is kept
where it is a statement of the user: better too much than to be deaf.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal

import msgspec

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
    found: dict[str, Extracted] = {}
    for at, turn in enumerate(turns):
        before = turns[at - 1] if at else None
        for one in _of_turn(turn, before, at):
            found.setdefault(one.text, one)
    return list(found.values())


def _of_turn(turn: Said, before: Said | None, at: int) -> Iterator[Extracted]:
    if turn.role not in ("user", "assistant"):
        return
    text = _QUOTED.sub("", without(turn.text)).replace("’", "'")
    if material := _find(MATERIAL, multiline=True).search(text):
        text = text[: material.start()]
    if turn.role == "user" and (answer := _answer(text, before)):
        yield _made(answer, "fact", turn.role, "an answer to what was asked", at)
        return
    foreign = turn.role == "user" and not _has(ENGLISH, text)
    last = ""
    for sentence in sentences(text):
        said = sentence.text.strip()
        if sentence.code:
            continue
        # Dictation has no full stops.
        for piece in [said] if len(said) <= _LONGEST else _pieces(said):
            judged = _foreign(piece) if foreign else judge(piece, turn.role)
            if judged is not None:
                kind, rule = judged
                # "It" and "she" are nobody without the sentence before.
                whole = f"{last} {piece}" if last and rule == "of somebody named before" else piece
                yield _made(whole, kind, turn.role, rule, at)
        last = said if len(said) <= _LONGEST // 2 and not said.endswith("?") else ""


def _pieces(said: str) -> list[str]:
    pieces = _find(r"[,;] | and (?=i|we|my|the|he|she)| but | because ").split(said)
    return [piece for piece in pieces if len(piece) <= _LONGEST]


def _made(text: str, kind: Kind, role: str, rule: str, at: int) -> Extracted:
    worth = _WORTH_OF_VITAL if role == "user" and _has(VITAL, text) else WORTH[kind]
    return Extracted(text, kind, role, rule, worth, at)


def _answer(text: str, before: Said | None) -> str:
    """What was asked and what was answered, where the answer alone says nothing."""
    said = text.strip()
    if before is None or before.role != "assistant" or not said or len(said.split()) > 6 or said.endswith("?"):
        return ""
    if judge(said, "user") is not None or small_talk(said) or _has(ASSENT, said) or _has(REQUEST, said):
        return ""
    asked = [one.text.strip() for one in sentences(without(before.text))]
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
    return f"{asked[-1]} {said}"


def _foreign(said: str) -> tuple[Kind, str] | None:
    question = said.rstrip("\"'”’)」』").endswith(("?", "？", "؟"))
    # Chinese and Japanese say in four signs what takes others a sentence.
    dense = ord(max(said, default=" ")) > 0x2E80
    short = len(said) < 4 if dense else len(said) < 12 or len(said.split()) < 3
    return None if question or short or "=" in said else ("fact", "a statement in another language")


def judge(said: str, role: str) -> tuple[Kind, str] | None:
    """What sort of thing a sentence says, and by which rule; None if it is not worth keeping."""
    if role == "assistant":
        return _of_assistant(said)
    if _has(REMEMBER, said) and len(said.split()) > 3 and not said.endswith("?"):
        kind = "task" if _has(r"\b(?:forget|remember) to\b", said) else (_kind(said) or ("fact", ""))[0]
        return kind, "asked to be remembered"
    if (
        _has(OVERRULES, said)
        and _has(TOLD, said)
        and (not said.endswith("?") or _has(r"\bi (?:am|have)\b|\bi'm\b", said))
    ):
        return "fact", "matters whatever is around it"
    if small_talk(said) or _has(QUESTION, said) or len(said.split()) < 3:
        return None
    if _has(r"^(?:please )?remind me\b", said):
        return "task", "a reminder"
    if _has(REQUEST, said) and not _has(INSTRUCTS, said) and _sort(DECISION, said) is None:
        return None
    if _has(IDLE, said):
        # "It is on Friday" is idle talk, unless it corrects something, or goes on to say more.
        if _has(FACT["a correction"], said):
            return "fact", "a correction"
        rest = _find(GOES_ON).split(said, maxsplit=1)
        return judge(rest[1], role) if len(rest) > 1 and len(rest[1].split()) > 4 else None
    judged = _kind(said) or _definite(said)
    passing = _has(PASSING, said) or (_has(TODAY, said) and not _has(FACT["a change"], said))
    return None if judged and judged[0] == "fact" and passing else judged


def _definite(said: str) -> tuple[Kind, str] | None:
    """A statement that names something: a number, or a name inside the sentence."""
    named = _find(NAMED_INSIDE, any_case=False).search(said) or any(letter.isdigit() for letter in said)
    return ("fact", "names something") if named and len(said.split()) > 3 and _has(VERB, said) else None


def _kind(said: str) -> tuple[Kind, str] | None:
    sorts: tuple[tuple[Kind, dict[str, str]], ...] = (
        ("decision", DECISION),
        ("preference", PREFERENCE),
        ("error", FAILURE),
        ("task", TASK),
        ("fact", FACT),
    )
    for kind, rules in sorts:
        if rule := _sort(rules, said):
            return kind, rule
    return None


def _sort(rules: dict[str, str], said: str) -> str | None:
    return next((name for name, pattern in rules.items() if _named(pattern).search(said)), None)


def _of_assistant(said: str) -> tuple[Kind, str] | None:
    if said.endswith("?") or len(said.split()) < 4 or _has(ECHO, said):
        return None
    for name, pattern in RESULT.items():
        if _has(pattern, said):
            return ("decision" if name == "decided together" else "fact"), name
    return ("task", "a promise") if _find(PROMISE, any_case=False).search(said) else None
