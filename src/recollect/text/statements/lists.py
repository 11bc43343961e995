"""Lists and blocks of `key: value` lines about somebody, as statements that stand alone with their head."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from recollect.text.late_pattern import LatePattern
from recollect.text.statements.certainty import certainty


class ListPart(NamedTuple):
    text: str
    item: bool
    """Whether it is an item of a list about the speaker, and needs no verb to be a statement."""


_BULLET = LatePattern(r"\s*(?:[-*+•‣◦·–—]|->|→|\d{1,2}[.)])\s+(?=\S)")
_KEYED = LatePattern(r"(?P<key>[^\W\d][\w '/&.]{0,28}?) ?(?::| [-–—] |=) ?(?P<value>\S.*)$")
_OWN = LatePattern(r"\b(?:i|i'm|im|i've|my|our|me|we|us|mine|myself|ours)\b|\b[^\W\d_]+(?:'s|s')(?= )", re.I)
_THEMES = LatePattern(
    r"\b(?:team|birthdays?|meds|medications?|trip|itinerary|schedule|conventions?|rules?|preferences?|details|"
    r"clients?|customers|contacts?|"
    r"project|to-?do|to do|tasks?|deadlines?|family|kids|pets|animals|allerg\w+|wedding|gear|setup|stack|car|"
    r"house|flat|decisions?|"
    r"agreed|budget|hobbies|appointments?|dates|reading|basics|intro|background|profile|facts|remember|note|"
    r"people|guidelines|policy|"
    r"goals|routine|diet|instruments|skills|languages|measurements|sizes)\b",
    re.I,
)
_NO_THEME = LatePattern(
    r"\b(?:pros|cons|ingredients|options|steps|questions?|answers?|words|sort|sorted|rank|shopping|groceries|"
    r"which|choose|pick|list of|"
    r"recipe|lyrics|names for|ideas|compare|difference|example)\b|\?$",
    re.I,
)
_KEYS = LatePattern(
    r"^(?:(?:full |first |last |sur)?name|age|born|birthday|birth date|dob|city|town|home|address|job|work|"
    r"occupation|profession|role|"
    r"employer|company|allerg\w+|diet\w*|e-?mail|phone|mobile|tel|number|height|weight|goal|shoes?|shirt|waist|"
    r"size|plate|car|bike|dad|"
    r"mum|mom|mother|father|sister|brother|wife|husband|partner|son|daughter|kids|children|pets?|dog|cat|me|"
    r"degree|current job|school|"
    r"university|languages?|language|hobbies|likes|dislikes|pronouns|blood type|meds|conditions?|timezone|"
    r"time zone|country|nationality|"
    r"married|status|owner|birthplace|hometown|rate|budget|deadline)$",
    re.I,
)
_SUBJECTS = LatePattern(
    r"^(?:project|car|bike|client|customer|company|house|trip|event|pet|dog|cat|team|flat|boat|repo)$", re.I
)
_KIN = LatePattern(
    r"^(?:dad|mum|mom|mother|father|sister|brother|wife|husband|partner|son|daughter|me|grandma|grandpa|nan)$", re.I
)
_TRIM = LatePattern(
    r"^(?:(?:so|ok(?:ay)?|hey|hi|hello|right|also|and|well|here(?:'s| is| are)|these are|this is|"
    r"for context),?!? )+|[\s:!→>(,–—-]+$",
    re.I,
)
_INLINE = LatePattern(
    r"^(?P<head>[^:→>\n.!?]{0,60}\b(?:about me|about myself|me|myself|basics|facts|intro|background|gear|kit|"
    r"meds|details|context|things|profile)\b"
    r"[^:→>\n.!?]{0,30}?) ?(?::|->|→|–|—) ?(?P<items>[^\n]+)$",
    re.I,
)
_ABOUT = LatePattern(
    r"\b(?:about (?:me|myself)|(?:a few|some|\d|three|four|five|six|\w*) ?things|basics|facts|intro|background|"
    r"profile|context|for the record)\b|^(?:me|myself)$",
    re.I,
)
_ITEMS = LatePattern(r"[,;] (?:and |& )?(?![^(]*\))")
_LONGEST_LINE = 110


def parts(text: str) -> Iterator[ListPart]:
    """The statements that a text lists, and what is left of it, in order."""
    lines = text.splitlines()
    prose: list[str] = []
    at = 0
    while at < len(lines):
        end = _end_of_list(lines, at, prose)
        head, items = (_headed(prose, lines[at:end])) if end - at > 1 else ("", [])
        if items:
            if prose:
                yield ListPart("\n".join(prose), item=False)
            prose = []
            yield from (ListPart(item, item=True) for item in _joined(head, items))
            at = end
            continue
        inline = _INLINE.match(lines[at].strip())
        if inline and (listed := _split(inline["items"])) and _OWN.search(inline["head"] + " " + inline["items"]):
            if prose:
                yield ListPart("\n".join(prose), item=False)
            prose = []
            yield from (ListPart(item, item=True) for item in _joined(inline["head"], listed))
        else:
            prose.append(lines[at])
        at += 1
    if prose:
        yield ListPart("\n".join(prose), item=False)


def _split(items: str) -> list[str]:
    first, *rest = re.split(r"(?<=[a-z)][.!?]) (?=\w)|(?<=\d[.!?]) (?=[A-Z])", items)
    listed = [item.strip(" .!") for item in _ITEMS.split(first)]
    return [*listed, *rest] if len(listed) > 2 else []


def _end_of_list(lines: list[str], at: int, prose: list[str]) -> int:
    """The number of the line after the items that begin here: bulleted, keyed, or short lines under a heading."""
    bulleted = _BULLET.match(lines[at]) is not None
    keyed = not bulleted and _is_keyed(lines[at])
    headed = (
        bool(prose)
        and len(prose[-1]) <= 60
        and (_THEMES.search(prose[-1]) or _OWN.search(prose[-1]))
        and not re.search(r"[.?,]\s*$", prose[-1])
    )
    if not (bulleted or keyed or headed):
        return at
    end = at
    while end < len(lines) and lines[end].strip() and len(lines[end]) <= 200:
        line = lines[end]
        if bulleted != (_BULLET.match(line) is not None) and not (bulleted and line[:1] in " \t"):
            break
        if not bulleted and not _is_keyed(line) and (len(line) > 70 or re.search(r"[.!?…]\s*$|→ ", line)):
            break
        end += 1
    return end if end - at > (1 if bulleted or keyed else 2) else at


def _is_keyed(line: str) -> bool:
    return _KEYED.match(line.strip()) is not None and len(line) <= _LONGEST_LINE


def _headed(before: list[str], lines: list[str]) -> tuple[str, list[str]]:
    """The head of a list and its items, if it is about the speaker or what is theirs; else no items."""
    items = [line[match.end() :].strip() if (match := _BULLET.match(line)) else line.strip() for line in lines]
    head = next((line for line in reversed(before) if line.strip()), "").strip()
    if sum(len(item.split()) for item in items) < 2 * len(items):
        return "", []
    if head and (len(head) > 140 or not (head.endswith((":", "!", "→", ">", ")")) or len(head) <= 60)):
        head = ""
    keys = [match["key"] if (match := _KEYED.match(item)) else item.split()[0] for item in items if item]
    personal = (
        _OWN.search(head)
        or _THEMES.search(head)
        or sum(_KEYS.match(key) is not None for key in keys) > (len(keys) > 2)
        or sum(bool(re.search(r"\b(?:i|i'm|my|we|our|me)\b", item, re.I)) for item in items) > 0
        or (keys and _SUBJECTS.match(keys[0]))
    )
    if not personal or (_NO_THEME.search(head) and not re.search(r"\b(?:i|my|our|we|me)\b", head, re.I)):
        return "", []
    if head:
        _drop_last(before, head)
    return head, items


def _drop_last(lines: list[str], line: str) -> None:
    while lines and lines[-1].strip() != line:
        lines.pop()
    if lines:
        lines.pop()


def _joined(head: str, items: list[str]) -> Iterator[str]:
    about = _name(head)
    for number, item in enumerate(items):
        keyed = _KEYED.match(item)
        if not number and keyed and not about and _SUBJECTS.match(keyed["key"]):
            about = f"{keyed['key']} {keyed['value']}"
            yield item
        elif not item or certainty(item) in ("asked", "secret"):
            continue
        elif keyed and _KIN.match(keyed["key"]):
            yield item if keyed["key"].lower() != "me" else f"About me: {keyed['value']}"
        else:
            yield f"{about or 'About me'}: {item}"


def _name(head: str) -> str:
    """What the items belong to, in few words."""
    head = re.sub(r"[^\w\s,.:;'()/&+%!-]", "", head.strip())
    if not head.endswith(")"):
        head = re.split(r"(?<=[.!?]) ", head)[-1]
    head = _TRIM.sub("", head).strip()
    if _ABOUT.search(head):
        return "About me"
    return re.split(r",| \(| so (?:i|you)\b| because ", head)[0].strip() if len(head) > 30 else head
