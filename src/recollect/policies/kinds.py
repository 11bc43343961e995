"""The kind of a memory judged from its words: a decision, an approval, a failure, a finished task, or none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal

from recollect.policies.importance import APPROVAL, DECISION, DONE, spaced
from recollect.policies.phrases import FAILURE

Sense = Literal["decision", "approval", "failure", "done"]

_QUESTIONS = re.compile(r"[^.!?\n]*\?")
_REFUSED_BY_A_MACHINE = re.compile(
    r" (?:permission|access)(?: is| was)? denied\b(?! by)| (?:denied|rejected) by (?:the )?server"
)
_REPAIRED = re.compile(
    r"(?<!not)(?<!n't)(?<!be)(?<!never) (?:fixed|resolved|repaired|solved|restored|patched)\b(?! (?:costs?|price|rate))"
)
_FINISHED = re.compile(
    rf"{DONE}|(?:^|[.!;:,] ?) ?done\b| (?:task|job|ticket|migration|backup|export|import|run|build)s?(?: \S+)?"
    r" (?:is |was |has been |have been |are |were )?(?<!not )(?:complete[d]?|done|finished|succeeded|successful)\b"
)
_ERRORS = (
    r"(?:^|[.!;:,\n]) {0,2}(?:fatal )?error\b"
    r"| errors?(?::| \d| codes?\b| messages?\b| (?:on|in|when|while|during|from)\b)"
    r"| traceback\b| exception(?: raised| thrown|:| in\b)| [a-z]+(?:error|exception)\b"
    r"| (?:http )?5\d\d (?:error|response)s?\b"
)


def judge_kind(text: str, kinds: Mapping[Sense, str], otherwise: str) -> str:
    """The kind that `kinds` gives to what the English words say; `otherwise` if they say none of it.

    A text that says more than one of these is of the first: a decision about a failure is a decision. Questions say
    nothing: "was it approved?" is no approval.
    """
    if not kinds:
        return otherwise
    low = spaced(_QUESTIONS.sub(" ", text))
    for sense in _senses(low):
        if sense in kinds:
            return kinds[sense]
    return otherwise


def _senses(low: str) -> list[Sense]:
    """What the text says, the sense that decides first."""
    refused_by_a_machine = _REFUSED_BY_A_MACHINE.search(low) is not None
    failed = refused_by_a_machine or _failure().search(low) is not None
    checks: tuple[tuple[Sense, bool], ...] = (
        ("decision", _compiled(DECISION.pattern).search(low) is not None),
        ("approval", not refused_by_a_machine and _compiled(APPROVAL.pattern).search(low) is not None),
        ("done", failed and _REPAIRED.search(low) is not None),
        ("failure", failed),
        ("done", _FINISHED.search(low) is not None),
    )
    return [sense for sense, applies in checks if applies]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _failure() -> re.Pattern[str]:
    patterns = "|".join(FAILURE.values())
    return re.compile(rf"(?<!not )(?<!never )(?<!n't )(?<!without )(?:{patterns})|{_ERRORS}")
