"""Which words of a turn are the speaker's own, and which were pasted, quoted, written as fiction or given to work on.

What is left out is told with a reason for each block, so that `diagnose` can show why nothing was kept of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from recollect.text.late_pattern import LatePattern
from recollect.text.statements import material_lines
from recollect.text.statements.material_lines import LeftBlock, Span


class Own(NamedTuple):
    text: str
    """The speaker's own words."""
    left: tuple[LeftBlock, ...] = ()
    """What is not, in the order in which it was recognized."""


_ABOUT_ONESELF = LatePattern(
    r"\b(?:my|our)\b(?! (?:text|e?-?mail|letter|essay|sentence|message|cv|resume|bio|paragraph|english|german|french|"
    r"spanish|draft|note|post|code|query|grammar|spelling|answer|reply|book|homework|exercise))|\babout me\b|"
    r"\bi(?:'d| would) like you to\b|\b(?:always|whenever|from now on|in general|every time)\b",
    re.I,
)
_WORK = (
    r"(?:translate|proof-?read|rewrite|re-?phrase|paraphrase|summar(?:y|i[sz]e|i[sz]ing)|sum up|shorten|correct|"
    r"fix|edit|improve|"
    r"polish|check|review|critique|explain|simplify|format|convert|extract|turn|reply to|respond to|answer|analy[sz]e|"
    r"debug|write|draft|compose|generate|continue|sort|spell-?check|classify|role-?play|pretend|plain english|"
    r"grammar|tone|commit m\w+|tl;?dr|into (?:english|spanish|german|french|italian|portuguese|dutch|polish|swedish)|"
    r"(?:who|what|which|why|does|is|are|how)\b[^\n]{0,40}\b(?:this|these|it|that))"
)
_TO_WORK_ON = LatePattern(
    r"^(?:(?:please|pls|plz|can you|could you|would you|will you|hi|hey|ok|okay|now|kindly|help me|quick one|"
    r"so)[,!]? )*"
    rf"{_WORK}\b[^.!?\n]*?:\s|\b(?:{_WORK})\b[^.!?\n]{{0,60}}?\b(?:this|these|the following|it|text|sentence|mail|in)\b"
    r"[^.!?\n:]{0,60}:\s",
    re.I | re.M,
)
"""An order and a colon: what follows is the text that it is about."""
_LANGUAGE_FIRST = LatePattern(r"^(?:[Ii]n)?[Tt]o [A-Z]\w+(?: please| pls)?\b[^:\n]{0,60}:\s")
_CORRECTS = LatePattern(r"(?:fix|edit|update): (?=[^\n]*(?:\d| not ))[^\n\"“«]{4,80}$", re.I | re.M)
"""A correction of what was said before, and no order."""
_ANNOUNCED = LatePattern(
    r"^(?![^\n]*\b(?:i|i'm|my|our|we)\b)[^\n:]{3,80}:[ \t]*\n\s*(?P<text>(?:[^\n]{1,60}\n)?(?=[^\n]{100,})"
    r"(?=[^\n]*[a-z][.!?] [A-Z][^\n]*[a-z0-9][.!?] )[^\n]+(?:\n[^\n]+)*)",
    re.I | re.M,
)
"""A line with a colon and nothing of the speaker, and below it a paragraph of prose."""
_HANDED_OVER = LatePattern(
    rf"\b(?:this|these|the following|below|here(?:'s| is| are)|listen|see my|{_WORK})\b[^\n]*$", re.I
)
"""The end of a paragraph after which comes what somebody else wrote, or what is to be worked on."""
_GENRE = LatePattern(
    r"^(?P<genre>once upon a time|abstract\b|ingredients:|chapter \w+[:.\n]|case study\b|exercise \d+|minutes of\b|"
    r"act [ivx\d]+\b|scene [ivx\d]+\b|int\. |ext\. |\[?(?:verse|chorus|intro)\b[ \d]*[\]:]|press release\b|breaking: )",
    re.I | re.M,
)
_GENRES = {
    "abst": "an article",
    "pres": "an article",
    "brea": "an article",
    "case": "an exercise",
    "exer": "an exercise",
    "ingr": "a recipe",
    "minu": "minutes of others",
}
_LETTER = LatePattern(
    r"^[ \t]*[\"“«']?[ \t]*(?:dear (?!assistant|ai\b|bot|claude|chat)[^\n,!:]{1,50}|(?:hi|hello|hey|hei|hallo) "
    r"(?!there|all good|again)[A-Z][\w.]{0,20}(?: [A-Z][\w.]+)?)[,!:]",
    re.I | re.M,
)
_CLOSING = LatePattern(
    r"^[ \t]*(?:(?:kind|best|warm|many)? ?(?:regards|wishes|greetings)|best|cheers|sincerely|yours\b[^\n]*|love|"
    r"thanks|x+)"
    r",?[ \t]*(?:\n[^\n]{1,60}(?:\n[^\n]{1,60})?)?(?=\n\n|\Z)",
    re.I | re.M,
)
_MAIL_HEAD = LatePattern(
    r"^(?:from|subject|sent|cc|betreff|von|to|re|fwd?): \S.*$|^on .{6,80} wrote:[ \t]*$|^-{2,} ?(?:original|"
    r"forwarded) message",
    re.I | re.M,
)
_OWN_AGAIN = LatePattern(
    r"^[ \t]*(?:→|↑|\^+|⬆|⇧|=>|\(\(|what |is |are |does |do |can |could |how |why |who |should )", re.I
)
_QUOTED_PARAGRAPH = LatePattern(
    r"(?:^|(?<=:\s))[\"“«](?=[^\n]{12,})(?:.(?!\n\n))*?.[\"”»][.!?]?(?=[ \t]*(?:$|\n))", re.S | re.M
)
_QUOTE = LatePattern(r"\"[^\"\n]{8,}\"|“[^”\n]{8,}”|«[^»\n]{8,}»|(?<!\w)'(?=\w)[^'\n]{24,}'(?!\w)")
_NAMED_SO = LatePattern(
    r"\b(?:never|don'?t|do not|always|stop|called|named|titled|motto|slogan|say|use|prefix|format|"
    r"title)\b[^\"“«]{0,30}$",
    re.I,
)
_FIRST_PERSON = LatePattern(
    r"\b(?:i|i'm|im|i've|ive|i'll|i'd|me|my|mine|we|we're|we've|our|ours|us|mum|mom|dad|wife|husband|kids?)\b", re.I
)
_ABOUT_IT = LatePattern(r"\b(?:this|that|it|these|those|above|below|here|anything|names)\b|[↑^]", re.I)
_ORDER_AT_END = LatePattern(
    r"(?:(?<=[.!?…\n])|(?<=\.\.\.))\s*(?P<order>[^.!?\n]+[.!?]?)\s*$|(?P<question>[^.!?\n]*\?)\s*$"
)
_ORDERS = LatePattern(r"^(?:please |pls )?(?:make|give|write|correct|list|sort|find|extract|turn|summari[sz]e|"
    r"translate|add|rank|spot|rate|quiz)\b|\?$", re.I)  # fmt: skip
_FICTION_ORDER = LatePattern(
    r"\b(?:write|compose|invent|make up|generate|create|draft|tell me|give me|make)\b(?![^.!?\n]*\b(?:for|"
    r"about) (?:my|our)\b)"
    r"[^.!?\n]{0,70}\b(?:story|poem|haiku|sonnet|limerick|chapter|novel|scene|diary|dialogue|monologue|persona|"
    r"character|sketch|song|lyrics|fairy ?tale|screenplay|fanfic\w*|fictional|made-up)\b",
    re.I,
)
_FICTION_TOLD = LatePattern(
    r"^(?:my character\b|the (?:main )?character\b|the (?:hero|heroine|protagonist|speaker|narrator)\b|"
    r"in the (?:poem|story|scene|novel|chapter|script)\b|(?:\w+ )?(?:sketch|story|poem|haiku|limerick|sonnet|scene|"
    r"fanfic|song)(?: idea)?: )",
    re.I | re.M,
)


def own(text: str) -> Own:
    """What of a text its speaker says, and what was left out and why."""
    left: list[LeftBlock] = []
    for find in _FINDERS:
        if spans := list(find(text)):
            text = _without(text, spans, left)
    return Own(text, tuple(left))


def _without(text: str, spans: list[Span], left: list[LeftBlock]) -> str:
    at, rest = 0, list[str]()
    for span in sorted(spans):
        if span.start < at:
            continue
        left.append(LeftBlock(span.reason, text[span.start : span.end].strip("\n")))
        rest += [text[at : span.start], span.instead]
        at = span.end
    return "".join([*rest, text[at:]])


# Finders, each of which sees what those before it have left


def _mails(text: str) -> Iterator[Span]:
    """From a header to the closing, or to where the speaker asks about it."""
    if head := _MAIL_HEAD.search(text):
        yield Span(head.start(), _end_of_letter(text, head.end()), "a mail")


def _letters(text: str) -> Iterator[Span]:
    letter = _LETTER.search(text)
    if letter is None or (not letter.start() and "\n" not in text.strip() and not text.lstrip().startswith(('"', "“"))):
        return
    if letter.start() == 0 and not letter.group().lstrip('"“« ').lower().startswith("dear"):
        return  # a greeting to the assistant
    yield Span(letter.start(), _end_of_letter(text, letter.end()), "a letter")


def _end_of_letter(text: str, at: int) -> int:
    if closing := _CLOSING.search(text, at):
        return closing.end()
    for paragraph in re.finditer(r"\n\s*\n(?=\S)", text[at:]):
        if _OWN_AGAIN.match(text, at + paragraph.end()):
            return at + paragraph.end()
    return len(text)


def _handed_over(text: str) -> Iterator[Span]:
    """What follows an order and a colon, or a paragraph that hands something over."""
    if (order := _LANGUAGE_FIRST.search(text) or _TO_WORK_ON.search(text)) and not _ABOUT_ONESELF.search(
        text[text.rfind("\n", 0, order.start() + 1) + 1 : order.end()]
    ):
        if not _CORRECTS.match(text):
            yield Span(order.end(), _end_of_given(text, order.end()), "a text to work on")
        return
    if announced := _ANNOUNCED.search(text):
        yield Span(announced.start("text"), announced.end("text"), "a text to work on")
        return
    paragraph = re.search(r"\n\s*\n(?=\S)", text)
    if paragraph is None:
        return
    lead = text[: paragraph.start()].rstrip()
    last = re.split(r"(?<=[.!?]) ", lead.rsplit("\n", 1)[-1])[-1]
    if _HANDED_OVER.search(last) and not _ABOUT_ONESELF.search(last) and len(text) - paragraph.end() > 20:
        yield Span(paragraph.end(), len(text), "a text to work on")


def _end_of_given(text: str, at: int) -> int:
    """A quoted text ends with its quotation marks, any other with the turn."""
    quoted = re.compile(r"\s*[\"“«][^\"”»]*[\"”»]").match(text, at)
    return quoted.end() if quoted else len(text)


def _genres(text: str) -> Iterator[Span]:
    for genre in _GENRE.finditer(text):
        end = text.find("\n\n", genre.end())
        reason = _GENRES.get(genre["genre"].lower()[:4], "a story")
        yield Span(genre.start(), len(text) if end < 0 else end, reason)


def _headed_texts(text: str) -> Iterator[Span]:
    """Facts under a heading, which say nothing of the speaker, and an order about them."""
    order = _ORDER_AT_END.search(text)
    request = (order["order"] or order["question"]).strip() if order else ""
    if order is None or not _ORDERS.search(request) or not _ABOUT_IT.search(request):
        return
    body = text[: order.start()]
    headed = "\n" in body.strip() or re.match(r"[A-Z][\w ,.'-]{0,40}: ", body)
    if headed and len(body.split()) > 5 and not _FIRST_PERSON.search(body):
        yield Span(0, len(body), "a text to work on")


def _quoted_paragraphs(text: str) -> Iterator[Span]:
    for quote in _QUOTED_PARAGRAPH.finditer(text):
        if len(quote.group().split()) > 3:
            yield Span(quote.start(), quote.end(), "a quotation")


def _quotes(text: str) -> Iterator[Span]:
    """Quotations inside sentences. Short ones are names and words, and stay."""
    for quote in _QUOTE.finditer(text):
        if len(quote.group().split()) > 4 and not _NAMED_SO.search(text, max(0, quote.start() - 60), quote.start()):
            yield Span(quote.start(), quote.end(), "a quotation", "“…”")


def _fiction(text: str) -> Iterator[Span]:
    """A story that is to be written: its people are not the speaker's."""
    if opening := _FICTION_TOLD.search(text):
        end = text.find("\n\n", opening.end())
        yield Span(opening.start(), len(text) if end < 0 else end, "fiction")
    elif order := _FICTION_ORDER.search(text):
        end = text.find("\n\n", order.end())
        yield Span(order.start(), len(text) if end < 0 else end, "fiction")


_FINDERS = (
    material_lines.fences,
    material_lines.quoted_lines,
    material_lines.pasted,
    _mails,
    _letters,
    _handed_over,
    _genres,
    _fiction,
    _quoted_paragraphs,
    _headed_texts,
    _quotes,
)
