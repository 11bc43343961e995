"""What a question says under its other names: by the aliases that people saved, and by what memories say of names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from recollect.recall.question import LOOKED_AT
from recollect.stores.shelves import ShelfItem
from recollect.text.also_called import also_called
from recollect.text.query import LETTER
from recollect.text.segment import fold, spaceless
from recollect.view import View

MOST_ALIASES = 500
"""Of a workspace: every recall reads them."""
_MOST_READINGS = 3
"""So many more times a question is asked, at most."""
_MOST_NAMES = 30
"""So many further names of one thing are looked for where all about it is wanted."""


class Reading(NamedTuple):
    text: str
    """The question with other names."""
    note: str


def saved(view: View, items: Iterable[ShelfItem]) -> list[tuple[str, str]]:
    """The pairs of names that a view sees."""
    return [(item.body["name"], item.body["also"]) for item in items if view.sees(item)]


def learnt(texts: Iterable[str]) -> list[tuple[str, str]]:
    """The pairs of names that texts give: "the big printer, also called Bertha"."""
    return list(chain.from_iterable(also_called(text[:LOOKED_AT]) for text in texts))


def other_readings(question: str, pairs: Iterable[tuple[str, str]]) -> list[Reading]:
    """The question with other names for what it names; first all of them replaced, then each by itself."""
    others: dict[str, list[str]] = {}
    for name, also in pairs:
        for named, other in ((name, also), (also, name)):
            if _is_in(named, question) and not _is_in(other, question):
                others.setdefault(named, []).append(other)
    if not others:
        return []
    chosen = [[(named, names[0]) for named, names in others.items()]]
    chosen += [[(named, other)] for named, names in others.items() for other in names]
    renamed = dict.fromkeys(_renamed(question, pair) for pair in chosen)
    return [reading for reading in renamed if reading.text != question][:_MOST_READINGS]


def other_names(phrase: str, pairs: Sequence[tuple[str, str]]) -> list[Reading]:
    """A name in quotes, as its other names in quotes, and as the other names of these."""
    names = [phrase.strip('"')]
    for name in names:
        for pair in pairs:
            folded = [fold(other) for other in pair]
            if fold(name) in folded and len(names) <= _MOST_NAMES:
                before = {fold(other) for other in names}
                names += [other for other in pair if fold(other) not in before]
    return [Reading(f'"{other}"', f'{phrase} also as "{other}"') for other in names[1:]]


def _renamed(question: str, pairs: Sequence[tuple[str, str]]) -> Reading:
    for name, other in pairs:
        question = _pattern(name).sub(lambda _, other=other: other, question)
    return Reading(question, ", ".join(f'"{name}" also as "{other}"' for name, other in pairs))


def _is_in(name: str, question: str) -> bool:
    return name[:1].lower() in question.lower() and _pattern(name).search(question) is not None


def _pattern(name: str) -> re.Pattern[str]:
    plain = re.escape(name)
    if spaceless(name):
        return re.compile(plain, re.IGNORECASE)
    return re.compile(rf"(?<!{LETTER}){plain}(?!{LETTER})", re.IGNORECASE)
