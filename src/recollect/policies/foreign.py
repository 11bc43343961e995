"""What of a turn in another language than English is worth keeping.

The words are data, one file a language in `recollect.text.languages`. A sentence is kept only if it has the shape of a
statement: it tells something of the speaker, of people by name, or of a date, and is no question, order, supposition,
mood or small talk. Languages without a file have shapes too, but coarse ones.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple

from recollect.text.languages import language
from recollect.text.languages.detection import UNKNOWN, language_of
from recollect.text.languages.patterns import compiled
from recollect.text.sentences import sentences

Kind = Literal["decision", "preference", "fact", "task", "error"]
ENGLISH = "en"
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_ASKS = re.compile(r"[?？؟][\"'”’»)」』\W]*$")
_QUOTES = re.compile(r"„[^“”\"]*[“”\"]|“[^”]*”|«[^»]*»|\"[^\"\n]*\"|「[^」]*」")
_QUOTED_SPEECH = re.compile(rf"(?:[^.!?:\n]*:\s*)?(?P<said>{_QUOTES.pattern})")
"""What somebody else said, with the words that say who."""
_SURE = 1.7
"""Points of a sentence in another language among English ones: two words, as one may be a name."""
_QUOTED_WORDS = 4
"""Words in quotation marks that are what somebody else said. Fewer are a name, or a word that is spoken of."""
_LOGGED = (
    r"\[?\d{1,2}[:./]\d\d(?:[,:\]][^\n]*)?\]|\[\d|[\w.]*(?:error|exception|err!|traceback)\b[:\s(]|[A-Z]+_[A-Z_]+="
)
"""Begins a line of a log or a chat that was pasted."""
_MINUTES = re.compile(r"\b\d+ ?min")
_CLAUSE = re.compile(r"\s*(?:[,;:–—]|\s-\s|(?=¿))\s*")
_BULLET = re.compile(r"\s*(?:[-*+•‣◦]|\d{1,2}[.)])\s+(?=\S)")
_NOT_LETTERS = re.compile(r"^[^\w¿¡]+")


class _Rules(NamedTuple):
    """The patterns of one language."""

    small_talk: frozenset[str]
    lead: re.Pattern[str]
    question: re.Pattern[str]
    order: re.Pattern[str]
    lasting: re.Pattern[str]
    remember: re.Pattern[str]
    forget: re.Pattern[str]
    hypothetical: re.Pattern[str]
    supposing: re.Pattern[str]
    joke: re.Pattern[str]
    passing: re.Pattern[str]
    idle: re.Pattern[str]
    condition: re.Pattern[str]
    remind: re.Pattern[str]
    material: re.Pattern[str]
    secret: re.Pattern[str]
    first_person: re.Pattern[str]
    relation: re.Pattern[str]
    named: re.Pattern[str]
    field: re.Pattern[str]
    vital: re.Pattern[str]
    preference: re.Pattern[str]
    decision: re.Pattern[str]
    task: re.Pattern[str]
    event: re.Pattern[str]
    date: re.Pattern[str]


@cache
def _rules(code: str) -> _Rules:
    spec = language(code)
    talk, statements = spec.talk, spec.statements
    names = rf"(?-i:[A-ZÀ-Þ])[\w'-]+(?: (?-i:[A-ZÀ-Þ])[\w'-]+)?|{'|'.join(statements.relations) or '(?!)'}"
    return _Rules(
        frozenset(talk.small_talk.split()),
        compiled(talk.lead.split(), r"^", r"(?:[ ,.!:;]+|$)"),
        compiled(talk.question, r"^¿?", r"(?=\W|$|(?<=\s))"),
        compiled(talk.order, r"^¡?", r"(?=\W|$|(?<=\s))"),
        compiled(talk.lasting),
        compiled(talk.remember, after=""),
        compiled(talk.forget, r"^", ""),
        compiled(talk.hypothetical),
        compiled(talk.supposing, r"^", ""),
        compiled(talk.joke, after=""),
        compiled(talk.passing),
        compiled(talk.idle, r"^", r"(?=\W|$|(?<=\s))"),
        compiled(talk.condition.split(), r"^"),
        compiled(talk.remind, r"^"),
        compiled([*talk.material, _LOGGED], r"(?m:^|(?<=[.!?] ))[ \t]*", r""),
        compiled(talk.secret),
        compiled(statements.first_person, r"(?:(?<!\w)|(?=^))", r"(?:(?!\w)|(?<='))"),
        compiled(statements.relations),
        compiled([rf"(?:{names})(?: [\w'-]+){{0,3}}? (?:{'|'.join(statements.verbs) or '(?!)'})"]),
        compiled(statements.fields, r"^(?:[^\W\d_]+ ){0,2}", r"(?: [\w']+){0,2}(?: ?[:=] ?(?=\S)| [-–] )"),
        compiled(statements.vital),
        compiled(statements.preference),
        compiled(statements.decision),
        compiled(statements.task),
        compiled(statements.events),
        compiled(statements.dates),
    )


def turn_language(text: str) -> str:
    """The language that a turn's sentences are in where they do not tell it themselves."""
    return language_of(text)


def sentence_language(sentence: str, turn: str) -> str:
    """A sentence of a mixed turn has its own language, if it has words enough to tell it."""
    code = language_of(sentence, _SURE) if turn == ENGLISH else language_of(sentence)
    return turn if code == UNKNOWN else code


def own_words(text: str) -> str:
    """A turn without what the user did not say of themself: texts to work on, roles, suppositions and jokes.

    A list becomes one line with what stands above it, as its items say nothing alone.
    """
    code = language_of(text)
    if code in (ENGLISH, UNKNOWN):
        return text
    rules = _rules(code)
    if rules.joke.search(text):
        return ""
    if material := rules.material.search(text):
        text = text[: material.start()]
    text = _QUOTED_SPEECH.sub(_without_speech, text)
    text = "\n".join(_joined(text.splitlines(), rules))
    at = 0
    for sentence in sentences(text):
        begun = text.find(sentence.text, at)
        if rules.supposing.search(_bare(sentence.text, rules)):
            return text[: max(begun, 0)]
        at = max(begun, at)
    return text


def _without_speech(quote: re.Match[str]) -> str:
    return "" if len(quote["said"].split()) > _QUOTED_WORDS else quote[0]


def _joined(lines: list[str], rules: _Rules) -> list[str]:
    """Lines of which the items of a list, and what belongs to a block of fields, stand in one."""
    is_field = [rules.field.search(_bare(line, rules)) is not None for line in lines]
    block = sum(is_field) > 1
    result: list[str] = []
    in_list = False
    for line, field in zip(lines, is_field, strict=True):
        item = _BULLET.match(line)
        if item and result and (in_list or result[-1].rstrip().endswith((":", "："))):
            result[-1] = f"{result[-1]}{',' if in_list else ''} {line[item.end() :].strip()}"
            in_list = True
            continue
        in_list = False
        if block and line.strip() and not field and result and result[-1].strip() and not _ASKS.search(line):
            result[-1] = f"{result[-1]}, {line.strip()}"
        else:
            result.append(line)
    return result


def judge(sentence: str, code: str) -> tuple[Kind, str] | None:
    """What sort of thing a sentence says, and by which rule; None if it is not worth keeping."""
    if code == UNKNOWN:
        return _of_no_known_language(sentence)
    rules = _rules(code)
    if _is_quote(sentence):
        return None
    bare = _bare(sentence, rules)
    if _is_talk(bare, rules) or rules.secret.search(bare) or rules.forget.search(bare):
        return None
    if rules.remind.search(bare):
        return ("task", "a reminder") if not _MINUTES.search(bare) and len(bare.split()) > 3 else None
    if (cue := rules.remember.search(bare)) and len(bare[cue.end() :].split()) > 1 + bare.endswith("?"):
        return _kind(bare, rules), "asked to be remembered"
    if rules.hypothetical.search(bare):
        return None
    if _ASKS.search(sentence) or rules.question.search(bare) or rules.order.search(bare):
        return _beside_a_request(bare, rules)
    return _statement(bare, rules)


def _beside_a_request(bare: str, rules: _Rules) -> tuple[Kind, str] | None:
    """What a question or an order tells all the same: a rule for later, or a fact in a clause of its own."""
    asks = _ASKS.search(bare) is not None
    if not asks and rules.lasting.search(bare):
        return "preference", "a lasting wish"
    if rules.vital.search(bare) and rules.first_person.search(bare):
        return "fact", "matters whatever is around it"
    clauses = _CLAUSE.split(bare)
    for clause in clauses[: -1 if asks else None]:
        sure = rules.relation.search(clause) or any(letter.isdigit() for letter in clause)
        talk = rules.condition.search(clause) or rules.question.search(clause) or rules.order.search(clause)
        if sure and not talk and len(clause.split()) > 3 and _statement(clause, rules):
            return "fact", "told beside a request"
    return None


def _statement(bare: str, rules: _Rules) -> tuple[Kind, str] | None:
    if rules.field.search(bare):
        return _kind(bare, rules), "a field and its value"
    vital = rules.vital.search(bare) is not None
    due = rules.event.search(bare) or rules.task.search(bare)
    dated = due is not None and rules.date.search(bare) is not None
    if not vital and rules.idle.search(bare):
        return None
    if rules.passing.search(bare) and not (vital or dated or rules.lasting.search(bare)):
        return None
    if vital:
        return "fact", "matters whatever is around it"
    if len(bare.split()) < 3:
        return None
    if rules.first_person.search(bare):
        return _kind(bare, rules), "tells something of the speaker"
    if rules.named.search(bare):
        return _kind(bare, rules), "tells something of somebody by name"
    if rules.decision.search(bare):
        return "decision", "a decision"
    if len(bare.split()) > 3 and (rules.lasting.search(bare) or rules.preference.search(bare)):
        return "preference", "a lasting wish"
    return (_kind(bare, rules), "something with a date") if dated else None


def _kind(bare: str, rules: _Rules) -> Kind:
    if rules.decision.search(bare):
        return "decision"
    if rules.preference.search(bare):
        return "preference"
    return "task" if rules.task.search(bare) else "fact"


def _bare(sentence: str, rules: _Rules) -> str:
    """A sentence without what stands before it: marks, "and", "ok", "thanks,"."""
    bare = _NOT_LETTERS.sub("", sentence).strip()
    while True:
        shorter = rules.lead.sub("", bare, count=1)
        head, mark, rest = shorter.partition(",")
        if mark and rest.strip() and _is_talk(head, rules):
            shorter = rest
        shorter = shorter.strip()
        if shorter == bare or not shorter:
            return bare
        bare = shorter


def _is_talk(text: str, rules: _Rules) -> bool:
    words = _WORD.findall(text.lower())
    return not any(letter.isdigit() for letter in text) and all(word in rules.small_talk for word in words)


def _is_quote(sentence: str) -> bool:
    quoted = _QUOTES.findall(sentence)
    return sum(len(quote.split()) for quote in quoted) >= max(_QUOTED_WORDS, len(sentence.split()) / 2)


# Languages without a file

_DENSE = 0x2E80
"""Chinese, Japanese and Korean say in four signs what takes others a sentence."""
_DENSE_SELF = re.compile(r"[私僕俺我]|わたし|ぼく|うちの|咱|저는|저의|제 |제가|나는|내 |내가|우리|\d")
_DENSE_REQUEST = re.compile(r"ください|お願い|てくれ|[请請]|주세요|[吗嗎呢か][。！!？?]*$")


def _of_no_known_language(sentence: str) -> tuple[Kind, str] | None:
    if _ASKS.search(sentence) or "=" in sentence or _is_quote(sentence):
        return None
    if ord(max(sentence, default=" ")) > _DENSE:
        stated = len(sentence) >= 5 and _DENSE_SELF.search(sentence) and not _DENSE_REQUEST.search(sentence)
    else:
        words = sentence.split()
        named = any(word[:1].isupper() or any(letter.isdigit() for letter in word) for word in words[1:])
        stated = len(sentence) >= 12 and len(words) >= 3 and named and not sentence.endswith("!")
    return ("fact", "a statement in another language") if stated else None
