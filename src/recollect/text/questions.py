"""Questions that ask for several things, and such as only name what they are about."""

from __future__ import annotations

import re

_ASKS = (
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|has|have|had|can|could|should|will|"
    r"would|may|must)(?:['’]s)?"
)
_SENTENCE = re.compile(r"[^?!.\n]+\?")
_NEXT = re.compile(
    rf"(?:\s*[,;]\s*(?:and|or|but)?\s*(?:also\s+)?|\s+(?:and|or)\s+(?:also\s+)?)(?={_ASKS}\s)", re.IGNORECASE
)
_FIRST = re.compile(rf"\W*{_ASKS}\b", re.IGNORECASE)
_PERSON = re.compile(r"\b(?:he|she|they|him|them)\b", re.IGNORECASE)
_OWNER = re.compile(r"\b(?:his|her|hers|their|theirs)\b", re.IGNORECASE)
_MOST = 4
_LONGEST = 400
"""Characters. Who tells a story asks one thing in the end, and not in every clause."""
_LETTERS = 3

_ABOUT = re.compile(
    r"(?:(?:please|can you|could you)\s+)*(?:(?:tell|show|give) (?:me|us)\s+)?(?:"
    r"(?:everything|all|anything|more|something|a bit|what)\s*(?:that\s+)?(?:(?:you|we|i)(?: all)? know\s*)?about"
    r"|about|what (?:do|did) (?:you|we|i) (?:know|remember|have)(?: \w+)? (?:about|on))\s+(?P<what>.+?)[\s?.!]*",
    re.IGNORECASE,
)
_MOST_WORDS = 3
_PLURAL = r"(?!(?:was|does|has|its|\w*(?:is|us|ss))\b)(?:\w+[^\Ws]s|people|children|men|women)"
_DONE = r"(?:are|were|do|does|did|has|have|had|can|could|will|would)"
_LIST = re.compile(
    rf"(?:(?:in|on|at|with|from|to|for|about) )?(?:what|which|whose)(?: \w+){{0,3}}? {_PLURAL}"
    rf"(?: (?!is\b|was\b)\w+){{0,9}}? {_DONE}\b"
    r"|how many\b|(?:please )?(?:list|name|enumerate)\b|(?:who|what) (?:are|were)\b|(?:where|what) (?:has|have)\b"
    r"|(?:what|which) (?:all|else|kinds|types|sorts)\b|where (?:all|else)\b",
    re.IGNORECASE,
)


def parts(question: str) -> list[str]:
    """What is asked of each, where a question asks for several things; else nothing.

    A pronoun of a later part becomes the name of the first.
    """
    if len(question) > _LONGEST:
        return []
    sentences = _SENTENCE.findall(question) or [question]
    clauses = [part.strip(" ?,;") for sentence in sentences for part in _clauses(sentence)]
    clauses = [part for part in clauses if len(part) >= _LETTERS]
    if not 1 < len(clauses) <= _MOST:
        return []
    return [clauses[0], *(_with_name(part, clauses[0]) for part in clauses[1:])]


def _clauses(sentence: str) -> list[str]:
    return _NEXT.split(sentence) if _FIRST.match(sentence) else [sentence]


def _with_name(part: str, first: str) -> str:
    names = _names(first)
    if len(names) != 1 or _names(part):
        return part
    return _PERSON.sub(names[0], _OWNER.sub(f"{names[0]}'s", part))


def _names(part: str) -> list[str]:
    return re.findall(r"(?<=\s)[A-Z]\w+(?:\s[A-Z]\w+)*", part)


def asks_for_list(question: str) -> bool:
    """Whether it asks for several things of a kind: "which books has Ada read?", "how many times did they meet?"."""
    return len(question) <= _LONGEST and _LIST.match(question.strip()) is not None


def topic(question: str) -> str | None:
    """What is named where nothing is asked of it: "Karen", "tell me all about the boiler". None for a question."""
    if len(question) > _LONGEST:
        return None
    if about := _ABOUT.fullmatch(question.strip()):
        return about["what"]
    bare = question.strip(" \t\n.!,")
    if not bare or "?" in bare or len(bare.split()) > _MOST_WORDS or _FIRST.match(bare):
        return None
    return bare


def is_name(topic: str) -> bool:
    return all(word[:1].isupper() and word.isalpha() for word in topic.split())
