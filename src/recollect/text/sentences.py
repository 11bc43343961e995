"""Cuts text into sentences and blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from recollect.text.languages import Sentences, codes, language
from recollect.text.languages.detection import UNKNOWN, language_of
from recollect.text.speakers import HEAD, speaker

_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"\s*(?:[-*+•‣◦]|\d{1,3}[.)])\s+(?=\S)")
_HEADING = re.compile(r"\s*#{1,6}\s")
_RULE = re.compile(r"[\s|:=_*-]+")
_WRAPPED_FROM = 40
"""A line of fewer letters was ended on purpose, and not by the edge of a page."""
_CLOSERS = r"\"'”’»)\]」』】）〉》"
_END = re.compile(
    rf"(?P<wide>[。！？｡]+(?:[{_CLOSERS}]+(?!と|って)|(?![{_CLOSERS}])))\s*"  # what was said, and then who said it
    rf"|(?P<mark>[.!?…؟۔।]+)(?P<closing>[{_CLOSERS}]*)(?:\s+|$)"
)
_PAUSES = frozenset(["..", "...", "....", "…"])
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘]+$")
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof rev gen sen rep gov capt lt sgt st mt messrs mme mlle hon sr jr vs cf ca approx dept est fig "
    "figs vol vols pp ed eds inc ltd co corp e.g i.e eg ie viz resp bzw z.b d.h u.a o.ä z.t bspw ggf evtl inkl exkl "
    "zzgl jan feb apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri ext tel ave blvd".split()
)
_BEFORE_NUMBERS = frozenset("no nos nr art sec ch p ver v".split())
_MAY_END = frozenset("etc al a.m p.m am pm u.s u.k e.u usw".split())
"""Abbreviations after which a sentence ends if a capital follows."""
_SPEAKER = re.compile(rf"\s*(?P<name>[^:：\n]{{1,{HEAD}}})(?:: |:(?=\n)|：)\s*")
_ROLES = frozenset(["user", "assistant", "system", "tool", "developer", "human", "ai"])


class Sentence(NamedTuple):
    text: str
    code: bool = False


def spoken(turn: str) -> tuple[str, str]:
    """Who a turn begins with, as it is written there, and what is said. The name is empty if there is none."""
    match = _SPEAKER.match(turn)
    if match and (match["name"].lower() in _ROLES or speaker(f"{match['name']}: ")):
        return match["name"], turn[match.end() :]
    return "", turn


def sentences(text: str) -> list[Sentence]:
    """In order. A block of code is one; headings and lines that only draw something are none."""
    result: list[Sentence] = []
    at = 0
    for block in _FENCE.finditer(text):
        result += _prose(text[at : block.start()])
        result.append(Sentence(block.group().strip("\n"), code=True))
        at = block.end()
    return [*result, *_prose(text[at:])]


def _prose(text: str) -> list[Sentence]:
    return [Sentence(part) for line in _lines(text) for part in _split(line, text)]


def _lines(text: str) -> Iterator[str]:
    """Lines of which each begins something: a line that goes on with the one before is part of that."""
    whole, last = "", ""
    for line in text.splitlines():
        item = _ITEM.match(line)
        if whole and not item and _goes_on(last, line):
            whole = f"{whole} {line.strip()}"
        else:
            yield whole
            whole = "" if _HEADING.match(line) or _RULE.fullmatch(line) else line[item.end() if item else 0 :].strip()
        last = line
    yield whole


def _goes_on(last: str, line: str) -> bool:
    return len(last.strip()) >= _WRAPPED_FROM and not _END.search(last[-4:]) and line.strip()[:1].islower()


def _split(line: str, text: str) -> Iterator[str]:
    begin = 0
    for end in _END.finditer(line):
        if end["wide"] or (_ends(line, end) and not _goes_on_elsewhere(line, end, text)):
            if part := line[begin : end.end()].strip():
                yield part
            begin = end.end()
    if part := line[begin:].strip():
        yield part


def _ends(line: str, end: re.Match[str]) -> bool:
    """Whether a sentence ends at a mark. Much of what people chat has no capitals, so a small letter may begin one."""
    following = line[end.end() : end.end() + 1]
    if not following:
        return True
    if following.islower() and (end["closing"] or end["mark"] in _PAUSES):
        return False
    if end["mark"] != ".":
        return True
    last_word = _LAST_WORD.search(line, max(0, end.start() - 20), end.start())
    word = last_word.group() if last_word else ""
    low = word.lower()
    if len(word) == 1 and word.isupper() and word != "I":
        return False
    if low in _BEFORE_NUMBERS:
        return not following.isdigit()
    if low in _MAY_END:
        return not following.islower()
    return low not in _ABBREVIATIONS


# Full stops of other languages

_STOP_WORD = re.compile(r"(?:[\w/]+(?:\.[\w/]+)*)$")
_NEXT_WORD = re.compile(r"[^\W_]+")
_LONGEST_STOP_WORD = 20
_ENDINGS = ("nr", "str")
"""Abbreviations that words are put together with: "Lindenstr. 14", "ticketnr. 7"."""


class _Stops(NamedTuple):
    """What does not end a sentence in a language."""

    abbreviations: frozenset[str]
    may_end: frozenset[str]
    before_numbers: frozenset[str]
    before_ordinals: frozenset[str]
    after_ordinals: frozenset[str]


@cache
def _stops(code: str) -> _Stops:
    spec: Sentences = language(code).sentences
    return _Stops(
        frozenset(spec.abbreviations.split()),
        frozenset(spec.may_end.split()),
        frozenset(spec.before_numbers.split()),
        frozenset(spec.before_ordinals.split()),
        frozenset(spec.after_ordinals.split()),
    )


@cache
def _any_stop() -> frozenset[str]:
    """Abbreviations of any language: what is none of them needs no look at the language."""
    return frozenset[str]().union(*(word for code in codes() for word in _stops(code)[:3]))


def _goes_on_elsewhere(line: str, end: re.Match[str], text: str) -> bool:
    """Whether a full stop that would end an English sentence ends none in the language of the line."""
    if end["mark"] != "." or end["closing"] or end.end() == len(line):
        return False
    before = _STOP_WORD.search(line, max(0, end.start() - _LONGEST_STOP_WORD), end.start())
    word = before.group().lower() if before else ""
    if not before or not (word in _any_stop() or word.endswith(_ENDINGS) or word.replace(".", "").isdigit()):
        return False
    code = language_of(line)
    code = language_of(text) if code == UNKNOWN else code
    if code == UNKNOWN:
        return False
    stops, following = _stops(code), line[end.end() : end.end() + 1]
    if word.replace(".", "").isdigit():
        return _is_ordinal(line, before, end, stops)
    if word in stops.before_numbers:
        return following.isdigit() or word in stops.abbreviations
    if word in stops.may_end:
        return following.islower()
    return word in stops.abbreviations or (
        word.endswith(_ENDINGS) and any(word.endswith(e) and e in stops.abbreviations for e in _ENDINGS)
    )


def _is_ordinal(line: str, number: re.Match[str], end: re.Match[str], stops: _Stops) -> bool:
    if not stops.after_ordinals or len(number.group()) > len("31.12"):
        return False
    following = _NEXT_WORD.match(line, end.end())
    if following and (following.group().islower() or following.group().lower() in stops.after_ordinals):
        return True
    words = line[: number.start()].lower().split()
    return bool(words) and words[-1] in stops.before_ordinals
