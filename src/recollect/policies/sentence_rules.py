"""Rules for one English sentence: whether it is worth keeping, as what, and by which rule."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Literal

from recollect.policies.importance import small_talk
from recollect.policies.phrases import (
    ASKS_TO,
    DECISION,
    ECHO,
    FACT,
    FAILURE,
    FLEETING,
    GOES_ON,
    GREETING,
    IDLE,
    INSTRUCTS,
    LASTS,
    MAY_DO,
    NAME,
    NAMED_INSIDE,
    ONLY_LIKENED,
    OVERRULES,
    PASSING,
    PREFERENCE,
    PROMISE,
    REMEMBER,
    REQUEST,
    RESULT,
    TASK,
    THIS_TIME,
    TODAY,
    TOLD,
    VERB,
)
from recollect.policies.substance import is_impersonal, is_substantial, substance
from recollect.text.statements.certainty import certainty

Kind = Literal["decision", "preference", "fact", "task", "error"]


@cache
def find(pattern: str, any_case: bool = True, multiline: bool = False) -> re.Pattern[str]:
    return re.compile(pattern, (re.IGNORECASE if any_case else 0) | (re.MULTILINE if multiline else 0))


_ANY = -9
_IN_SPITE_OF_TODAY = 3
_LEAST = {
    "of somebody": 1,
    "what one has and does": 2,
    "how a thing is": 2,
    "of somebody named before": 1,
    "has done": 1,
    "of oneself without a subject": 1,
    "likes or dislikes": 1,
}
"""Rules whose phrases also tell stories: so much `substance` makes a lasting statement of them."""
_LONG_GREETING = 4
"""Words from which on a greeting is followed by more."""


def has(pattern: str, text: str) -> bool:
    return find(pattern).search(text) is not None


@cache
def _named(pattern: str) -> re.Pattern[str]:
    """A pattern in which a name begins with a capital, and everything else is as it comes."""
    return re.compile(pattern.replace(NAME, f"(?-i:{NAME})"), re.IGNORECASE)


@lru_cache(maxsize=1024)
def judge(sentence: str, role: str) -> tuple[Kind, str] | None:
    """What sort of thing a sentence says, and by which rule; None if it is not worth keeping."""
    if role == "assistant":
        return _of_assistant(sentence)
    sentence = apostrophes(sentence)
    sure = certainty(sentence)
    if sure in ("secret", "about the memory", "supposed", "hearsay"):
        return None
    if wanted := _wanted(sentence):
        return wanted
    if ruled_out(sentence):
        return None
    if has(MAY_DO, sentence):
        return "task", "a plan that is not sure"
    sentence = find(GREETING).sub("", sentence) if len(sentence.split()) > _LONG_GREETING else sentence
    if has(IDLE, sentence) and not has(r"^(?:so |and |but )?it'?s .*\bnow\b", sentence):
        return _beside_idle(sentence)
    lasting = has(REQUEST, sentence) and has(LASTS, sentence)
    judged = _kind(sentence) or (("preference", "a lasting wish") if lasting else _definite(sentence))
    if judged and (_for_now(judged, sentence) or substance(sentence) < _LEAST.get(judged[1], _ANY)):
        return None
    passing = has(PASSING, sentence) or (
        has(TODAY, sentence) and not has(FACT["a change"], sentence) and substance(sentence) < _IN_SPITE_OF_TODAY
    )
    return None if judged and judged[0] == "fact" and passing else judged


def ruled_out(sentence: str) -> str:
    """Why a sentence can be no fact that lasts, whatever it says; nothing if it can be one."""
    sure = certainty(sentence)
    if sure != "stated":
        return sure
    if small_talk(sentence) or len(sentence.split()) < 2:
        return "small talk"
    if has(FLEETING, sentence):
        return "of the moment"
    return "a request" if has(REQUEST, sentence) and not _lasting(sentence) else ""


def _wanted(sentence: str) -> tuple[Kind, str] | None:
    """What is kept whatever is around it: what is to be remembered, vital facts, wishes put as questions."""
    if has(REMEMBER, sentence) and len(sentence.split()) > 3 and not sentence.endswith("?"):
        kind = "task" if has(r"\b(?:forget|remember) to\b", sentence) else (_kind(sentence) or ("fact", ""))[0]
        return kind, "asked to be remembered"
    states = certainty(sentence) != "asked" or has(r"\bi (?:am|have)\b|\bi'm\b", sentence)
    if states and has(OVERRULES, sentence) and has(TOLD, sentence):
        return "fact", "matters whatever is around it"
    if has(ASKS_TO, sentence) and has(INSTRUCTS, sentence) and not has(r"\bremember\b", sentence):
        return judge(find(ASKS_TO).sub("", sentence).rstrip("?"), "user")
    if has(r"^(?:please )?remind me\b", sentence) and certainty(sentence) == "stated":
        return "task", "a reminder"
    return None


def _beside_idle(sentence: str) -> tuple[Kind, str] | None:
    """ "It is on Friday" is idle talk, unless it corrects something, or goes on to say more."""
    if has(FACT["a correction"], sentence):
        return "fact", "a correction"
    if _named(FACT["who belongs to whom"]).search(sentence):
        return "fact", "who belongs to whom"
    rest = find(GOES_ON).split(sentence, maxsplit=1)
    return judge(rest[1], "user") if len(rest) > 1 and len(rest[1].split()) > 4 else None


_SQUEEZED = re.compile(
    r"\b(?:(do|does|did|is|are|was|were|ca|wo|have|has|had|would|should|could)nt|(i)(m|ve)|(that|what|he|she|"
    r"who)s|(they|you)(re|ve)|(we)(ve))\b",
    re.I,
)


def apostrophes(sentence: str) -> str:
    """A sentence with the apostrophes that chats leave out: "dont" is "don't"."""
    return _SQUEEZED.sub(_apostrophe, sentence)


def _apostrophe(match: re.Match[str]) -> str:
    word = match.group()
    if match[1]:
        return f"{word[:-1]}'{word[-1]}"
    at = len(match[2] or match[4] or match[5] or match[7])
    return f"{word[:at]}'{word[at:]}"


def _for_now(judged: tuple[Kind, str], sentence: str) -> bool:
    """Whether it is a wish for this time, or too short to say what it is about."""
    if has(THIS_TIME, sentence) and (judged[0] == "preference" or not has(r"\b(?:i|me|we|my|our)\b", sentence)):
        return not has(r"\b(?:always|never|from now on)\b", sentence)
    if judged[1] == "likes or dislikes" and has(ONLY_LIKENED, sentence):
        return True
    if judged[1] == "how a thing is" and not (
        has(r"\d|^(?:and |so |but )?(?:our|his|her|their)\b|\b(?:we|our|my)\b", sentence)
        or find(NAMED_INSIDE, any_case=False).search(sentence)
    ):
        return not has(
            r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|noon|midnight|\w+day)s?\b|\b(?:under|behind|"
            r"by the|of|next to|from|still|no longer|closes?|opens?|has no)\b",
            sentence,
        )
    return len(sentence.split()) < 4 and judged[1] in ("how a thing is", "failed", "of somebody", "names something")


def _lasting(sentence: str) -> bool:
    """Whether a request is for longer than this moment."""
    return has(INSTRUCTS, sentence) or _sort(DECISION, sentence) is not None


def _definite(sentence: str) -> tuple[Kind, str] | None:
    """A statement that names something: a number, or a name inside the sentence."""
    named = find(NAMED_INSIDE, any_case=False).search(sentence) or any(letter.isdigit() for letter in sentence)
    about = (not is_impersonal(sentence) or substance(sentence) >= 0) and not has(r"^you\b", sentence)
    if named and about and len(sentence.split()) > 4 and has(VERB, sentence):
        return "fact", "names something"
    return ("fact", "has substance") if is_substantial(sentence) else None


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
    if sentence.endswith("?") or len(sentence.split()) < 4 or has(ECHO, sentence) or has(PROMISE, sentence):
        return None
    for name, pattern in RESULT.items():
        if has(pattern, sentence):
            return ("decision" if name == "decided together" else "fact"), name
    return None
