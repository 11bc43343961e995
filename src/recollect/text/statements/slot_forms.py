"""Reads the slots of other languages than English off a sentence, by the tables of their files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from recollect.text.languages import Grammar, Slot, language
from recollect.text.languages.patterns import compiled, loose
from recollect.text.words import WORD, stem

ME = "@me"
_MOST_VALUE = 8
_NAME = r"(?-i:[A-ZÀ-Þ])[\w'-]+"
_CAPITAL = re.compile(r"[A-ZÀ-Þ\d]|\w+(?:[,.!]|$)")


class SlotValue(NamedTuple):
    """The fields of a claim."""

    owner: str
    slot: str
    value: frozenset[str]
    single: bool
    ended: bool
    denied: bool


class _SlotForm(NamedTuple):
    """One way to tell one slot."""

    slot: str
    spec: Slot
    way: str
    pattern: re.Pattern[str]
    gate: tuple[str, ...]


class _SlotReader(NamedTuple):
    forms: tuple[_SlotForm, ...]
    subject: re.Pattern[str]
    me: re.Pattern[str]
    cut: re.Pattern[str]
    empty: frozenset[str]
    denied: re.Pattern[str]
    unsure: re.Pattern[str]
    temporary: re.Pattern[str]


def slot_values(sentence: str, code: str) -> Iterator[SlotValue]:
    """What a sentence says of whom; each slot of an owner once."""
    reader, low = _reader(code), sentence.lower()
    taken: set[tuple[str, str]] = set()
    for form in reader.forms:
        if not any(letters in low for letters in form.gate):
            continue
        for match in form.pattern.finditer(sentence):
            value = _slot_value(sentence, match, form, reader)
            if value is not None and (value.owner, value.slot) not in taken:
                taken.add((value.owner, value.slot))
                yield value


def is_unsure(text: str, code: str) -> bool:
    """Whether a text supposes, plans or remembers: what it says is not so now."""
    return _reader(code).unsure.search(text) is not None


def is_temporary(text: str, code: str) -> bool:
    return _reader(code).temporary.search(text) is not None


def _slot_value(sentence: str, match: re.Match[str], form: _SlotForm, reader: _SlotReader) -> SlotValue | None:
    owner = ME if form.way == "noun" else _owner(sentence, match, reader)
    if not owner:
        return None
    if form.way == "ends":
        return SlotValue(owner, form.slot, frozenset(), form.spec.single, True, False)
    text = match["value"]
    if form.spec.capital and not _CAPITAL.match(text):
        return None
    value = _value_of(text, reader)
    # "Ich wohne NICHT in Köln", "je N'habite PAS à Lyon", "NO vivo en Roma"
    before = [*sentence[: match.start()].split()[-2:], *sentence[match.start() : match.start("value")].split()]
    denied = any(reader.denied.fullmatch(word) for word in before)
    return SlotValue(owner, form.slot, value, form.spec.single, False, denied) if value else None


def _value_of(text: str, reader: _SlotReader) -> frozenset[str]:
    words = [word.lower() for word in WORD.findall(reader.cut.split(text, maxsplit=1)[0])][:_MOST_VALUE]
    return frozenset(stem(word) for word in words if word not in reader.empty)


def _owner(sentence: str, match: re.Match[str], reader: _SlotReader) -> str:
    """Whom a verb is said of: the speaker if its form says so, or else the nearest subject before it."""
    if reader.me.match(match.group()):
        return ME
    nearest = ""
    for subject in reader.subject.finditer(sentence, 0, match.start()):
        if subject["me"]:
            nearest = ME
        elif thing := subject["thing"]:
            nearest = "my " + " ".join(stem(word) for word in thing.lower().split())
        elif other := subject["other"]:
            nearest = f"@{other.lower()}"
        else:
            nearest = "" if subject["you"] or subject["the"] else subject["name"].lower()
    return nearest


@cache
def _reader(code: str) -> _SlotReader:
    spec = language(code)
    grammar = spec.grammar
    word = rf"(?!(?:{loose(grammar.verb)})\b)[\w'-]+"
    subject = (
        rf"(?<!\w)(?:(?:{loose(grammar.my)}) (?P<thing>{word}(?: {word})?)|(?P<me>{loose(grammar.me)})(?:(?!\w)|(?<='))"
        rf"|(?P<other>{loose(grammar.others)})(?!\w)|(?P<you>{loose(grammar.you)})(?!\w)"
        rf"|(?P<the>(?:{loose(grammar.the)})(?: \w+|(?<=')\w+))|(?P<name>{_NAME}(?: {_NAME})?))"
    )
    return _SlotReader(
        tuple(_forms(spec.slots, grammar)),
        re.compile(subject, re.IGNORECASE),
        compiled([grammar.me], "", r"(?:(?!\w)|(?<='))"),
        re.compile(rf"[,;!?()\n—–]|\s-\s|: | (?:{loose(grammar.cut)})(?!\w)|\.$", re.IGNORECASE),
        frozenset(grammar.empty.split()),
        re.compile(loose(grammar.denied), re.IGNORECASE),
        compiled([grammar.unsure, grammar.past]),
        compiled([grammar.temporary]),
    )


def _forms(slots: dict[str, Slot], grammar: Grammar) -> Iterator[_SlotForm]:
    for name, slot in slots.items():
        for pattern in slot.ends:
            yield _SlotForm(name, slot, "ends", compiled([pattern]), _gate(pattern))
        for noun in slot.noun:
            expression = (
                rf"(?<!\w)(?:(?P<my>{loose(grammar.my)}) |^)(?:{loose(noun)})"
                rf"(?: ?[:=]|(?(my) (?:{loose(grammar.be)})(?!\w)|(?!))) ?(?P<value>.+)"
            )
            yield _SlotForm(name, slot, "noun", re.compile(expression, re.IGNORECASE), _gate(noun))
        for verb in slot.verb:
            expression = rf"(?<!\w)(?:{loose(verb)})(?=\W|(?<=\W)) ?(?P<value>.+)"
            yield _SlotForm(name, slot, "verb", re.compile(expression, re.IGNORECASE), _gate(verb))


def _gate(pattern: str) -> tuple[str, ...]:
    """Letters of which a sentence must have some for the pattern to match it: cheaper to ask than the pattern."""
    plain = re.sub(r"\(\?(?:P<\w+>|<?[=!:])|\\[a-zA-Z]|\[[^\]]*\]|\w\?|[^\x00-\x7f]", " ", pattern)
    return tuple(dict.fromkeys(re.findall(r"[a-z']{2,}", plain))) or ("",)
