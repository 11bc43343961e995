"""What of a conversation is worth keeping: decisions, preferences, facts, tasks and failures, sentence by sentence.

Rules for English, each with a name that explains what it took. Small talk, questions, requests to the assistant and its
own filler are left. Of the assistant's words only decisions, promises and results count. `policies.foreign` reads
what is not English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from recollect.policies import foreign
from recollect.policies.importance import small_talk
from recollect.policies.names import names_in, with_capitals
from recollect.policies.phrases import (
    ASKS_USER,
    ASSENT,
    CLAUSES,
    ENGLISH,
    FLEETING,
    IDLE,
    INTRODUCES,
    LASTS,
    NAMED_INSIDE,
    NAMES_SOMEBODY,
    OF_SOMEBODY,
    REQUEST,
    TASKS_FOLLOW,
    VITAL,
)
from recollect.policies.sentence_rules import Kind, find, has, judge
from recollect.policies.substance import is_detail, is_substantial
from recollect.text.fence import without
from recollect.text.late_pattern import LatePattern
from recollect.text.sentences import sentences
from recollect.text.statements.certainty import NOT_KEPT, NOTHING_KEPT, certainty, stated
from recollect.text.statements.changes import calls_off
from recollect.text.statements.claims import ME, read
from recollect.text.statements.lists import parts
from recollect.text.statements.material import own
from recollect.text.statements.material_lines import LeftBlock
from recollect.text.statements.roleplay import Scene, spoken_by_user
from recollect.text.words import stems


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
_LONGEST_ANSWER, _LONGEST_BEGUN = 6, 12
"""Words of an answer that is all of a turn, and of one that begins it or names more."""
_RAMBLES = 240
"""Characters from which on a sentence is cut to what it tells."""
_MANY = 5
"""So many clauses one after the other are a ramble, each of which is read by itself."""
_REPEATED = 0.8
"""Of the words of what the assistant says so many are the user's own, if it only repeats them."""


def extract(turns: Sequence[Said], earlier: Sequence[Said] = ()) -> list[Extracted]:
    """What is worth keeping, in order; each text once. `earlier` turns tell whether somebody plays a part by now."""
    facts: dict[str, Extracted] = {}
    names = set[str]().union(*(names_in(turn.text, turn.role) for turn in earlier))
    for at, (turn, words) in enumerate(zip(turns, own_words(turns, earlier), strict=True)):
        names |= names_in(turn.text, turn.role)
        if turn.role == "assistant":
            statements = _of_reply(turn, at, turns[:at])
        else:
            statements = _of_user(words, turns[at - 1] if at else None, at, frozenset(names)) if words else iter(())
        for fact in statements:
            facts.setdefault(fact.text, fact)
    return list(facts.values())


def own_words(turns: Sequence[Said], earlier: Sequence[Said] = ()) -> list[str]:
    """For each turn what may be read of it as the user's own words. Empty for the turns of others."""
    scene, silent = _standing(earlier)
    words: list[str] = []
    for at, turn in enumerate(turns):
        own_text = ""
        if turn.role == "user":
            reading = read_turn(turn.text, turns[at - 1] if at else None, scene)
            scene, silent = reading.scene, silent or reading.silences
            own_text = "" if silent else reading.own
        words.append(own_text)
    return words


def is_certain(fact: Extracted) -> bool:
    """Whether a statement of the user tells a slot's value or a vital fact, or was to be remembered."""
    return fact.rule == "asked to be remembered" or has(VITAL, fact.text) or bool(read(fact.text).claims)


def _standing(turns: Sequence[Said]) -> tuple[Scene, bool]:
    scene, silent = Scene(), False
    for at, turn in enumerate(turns):
        if turn.role == "user":
            reading = read_turn(turn.text, turns[at - 1] if at else None, scene)
            scene, silent = reading.scene, silent or reading.silences
    return scene, silent


NO_SCENE = Scene()


class TurnReading(msgspec.Struct, frozen=True):
    """A turn of the user: the user's own words, and what was left out of it and why."""

    own: str
    left: tuple[LeftBlock, ...] = ()
    scene: Scene = Scene()
    silences: bool = False
    """Whether nothing of the whole conversation is to be kept."""


LONGEST_READ = 6000
"""Characters of a turn that are read. Who says more hands over a text; and time grows with the square of it."""
_HANDED_OVER = LatePattern(
    r"(?m:^)[^\n]*\b(?:wrote|writes|says|lyrics|letter from|tool output|search results?|readme|article|"
    r"(?:mail|e-?mail|message|text|letter) (?:i got|from))\b[^\n]{0,60}:[ \t]*\n",
    re.IGNORECASE,
)
"""Where a text begins that somebody else wrote."""


def read_turn(text: str, before: Said | None = None, scene: Scene = NO_SCENE) -> TurnReading:
    """What of a turn is the user's own, after `before` and in a role play or none. For `extract` and for diagnoses."""
    text = _HANDED_OVER.split(without(text).replace("’", "'")[:LONGEST_READ], maxsplit=1)[0]
    spoken, parts, scene = spoken_by_user(text, before.text if before else "", scene)
    read = own(spoken)
    if NOT_KEPT.search(read.text):
        left = LeftBlock("the user asked not to keep it", read.text)
        return TurnReading("", (*parts, *read.left, left), scene, NOTHING_KEPT.search(read.text) is not None)
    return TurnReading(read.text, (*parts, *read.left), scene)


def _of_user(text: str, before: Said | None, at: int, names: frozenset[str] = frozenset()) -> Iterator[Extracted]:
    if answer := _answer(text, before):
        yield made(answer, "fact", "user", "an answer to what was asked", at)
        text = _rest(text)
    spoken_in = _language(text)
    listed = list(parts(text))
    if text.strip() and spoken_in != foreign.ENGLISH and not any(part.item for part in listed):
        yield from _of_foreign(foreign.own_words(text), spoken_in, at)
        return
    for part in listed:
        if part.item:
            yield made(part.text, _kind_of_item(part.text), "user", "an item of a list", at)
        else:
            yield from _of_prose(part.text, at, names)


def _of_foreign(text: str, spoken_in: str, at: int) -> Iterator[Extracted]:
    for sentence in sentences(text):
        for piece in [] if sentence.code else _pieces(sentence.text.strip()):
            code = foreign.sentence_language(piece, spoken_in)
            judged = judge(piece, "user") if code == foreign.ENGLISH else foreign.judge(piece, code)
            if judged is not None and not piece.endswith(":") and "“…”" not in piece:
                yield made(piece, judged[0], "user", judged[1], at)


def _of_prose(text: str, at: int, names: frozenset[str] = frozenset()) -> Iterator[Extracted]:
    earlier: list[str] = []
    spoken = list(_telegrams([sentence.text.strip() for sentence in sentences(text) if not sentence.code]))
    introduces = introduction(spoken)
    all_tasks = bool(spoken) and spoken[0].endswith(":") and has(TASKS_FOLLOW, spoken[0])
    tasks = any(has(TASKS_FOLLOW, sentence) for sentence in spoken)
    for sentence in spoken:
        if sentence.endswith(":"):
            continue
        if (code := foreign.sentence_language(sentence, foreign.ENGLISH)) != foreign.ENGLISH:
            if (judged := foreign.judge(sentence, code)) is not None:
                yield made(sentence, judged[0], "user", judged[1], at)
            continue
        for piece in _pieces(sentence):
            for clause in (clause for part in stated(piece) for clause in _facts_of(part)):
                if earlier and has(OF_SOMEBODY, clause) and certainty(earlier[-1]) == "about the memory":
                    continue  # "Scrap that. She would not like it."
                judged = (
                    judge(with_capitals(clause, names), "user")
                    or (_of_introduction(clause) if introduces else None)
                    or _change(clause)
                )
                if judged is None and tasks and (all_tasks or has(REQUEST, clause)) and certainty(clause) == "stated":
                    judged = "task", "a task among others"
                if judged is not None:
                    yield made(_with_name(clause, earlier), judged[0], "user", judged[1], at)
        earlier.append(sentence)


_TERSE, _TERSE_BEFORE = 4, 7
"""Words of a fragment that says something only with what stands before it, and of what stands there."""


def _telegrams(spoken: list[str]) -> Iterator[str]:
    """Sentences, and fragments such as "easter w mother. novi sad. by car" as one, with commas.

    A date, an amount or a relation also belongs to a whole sentence before it: "They put it off. 2 December now."
    """
    run: list[str] = []
    terse = False
    for sentence in spoken:
        fragment = _is_fragment(sentence)
        if run and len(sentence.split()) <= _TERSE and fragment and (terse or is_detail(sentence)):
            run.append(sentence)
            continue
        yield from _joined_run(run)
        run, terse = [], fragment
        if fragment or _is_statement(sentence):
            run = [sentence]
        else:
            yield sentence
    yield from _joined_run(run)


def _joined_run(run: list[str]) -> list[str]:
    joined = ", ".join([*(fragment.rstrip(".!") for fragment in run[:-1]), *run[-1:]])
    return [joined] if len(run) > 1 and (is_substantial(joined) or judge(joined, "user")) else run


def _is_statement(sentence: str) -> bool:
    return (
        len(sentence) <= _RAMBLES
        and certainty(sentence) == "stated"
        and not (
            sentence.endswith(":")
            or small_talk(sentence)
            or has(REQUEST, sentence)
            or has(IDLE, sentence)
            or has(FLEETING, sentence)
        )
    )


def _is_fragment(sentence: str) -> bool:
    if len(sentence.split()) > _TERSE_BEFORE or sentence.endswith(("!", ":")) or certainty(sentence) != "stated":
        return False
    if any(has(pattern, sentence) for pattern in (FLEETING, IDLE, REQUEST, ASSENT, OF_SOMEBODY)) or small_talk(
        sentence
    ):
        return False
    return (judged := judge(sentence, "user")) is None or judged[1] == "has substance"


def _change(sentence: str) -> tuple[Kind, str] | None:
    """What tells where somebody lives, works and the like, or that something is off, however it is said."""
    if certainty(sentence) != "stated" or len(sentence.split()) < _FEWEST:
        return None
    if has(REQUEST, sentence) and not has(LASTS, sentence):
        return None
    statement = read(sentence)
    if statement.unsure or statement.temporary:
        return None
    if any(claim.owner == ME and (claim.single or claim.ended) for claim in statement.claims):
        return "fact", "tells what is so of somebody"
    return ("fact", "something is called off") if calls_off(sentence) else None


_FEWEST = 3
_AND = re.compile(r",? and (?=(?:I|we|my|our)\b)|; (?=(?:I|we|my|our)\b)", re.IGNORECASE)


def _facts_of(sentence: str) -> list[str]:
    """A sentence; of one that tells several things of somebody, or rambles, each clause by itself."""
    if len(sentence) <= _RAMBLES:
        both = _AND.split(sentence)
        # So that what changes of it later leaves the rest as it is.
        return both if len(both) > 1 and all(read(clause).claims for clause in both) else [sentence]
    clauses = find(CLAUSES).split(sentence)
    return clauses if len(clauses) >= _MANY else [_trimmed(sentence)]


def _trimmed(sentence: str) -> str:
    """Of a long sentence, from the first clause that says something worth keeping to the last."""
    starts = [
        0,
        *(comma.end() for comma in find(r"[;:—–] |, (?:and |but |so |then |anyway )*").finditer(sentence)),
        len(sentence),
    ]
    clauses = [sentence[start:end].strip(" ,;:—–") for start, end in pairwise(starts)]
    worth = [
        at
        for at, clause in enumerate(clauses)
        if judge(clause, "user") or find(NAMED_INSIDE, any_case=False).search(clause) or has(r"\d", clause)
    ]
    return sentence[starts[worth[0]] : starts[worth[-1] + 1]].rstrip(" ,;:—–") if worth else sentence


def _of_reply(turn: Said, at: int, turns: Sequence[Said]) -> Iterator[Extracted]:
    """What the assistant did and found. What it promises is its own, and what it repeats was said by the user."""
    user_stems = set[str]()
    for sentence in sentences(own(without(turn.text).replace("’", "'")).text):
        if sentence.code or (judged := judge(sentence.text.strip(), "assistant")) is None:
            continue
        user_stems = user_stems or {word for before in turns if before.role == "user" for word in stems(before.text)}
        words = stems(sentence.text)
        if len(user_stems.intersection(words)) < _REPEATED * len(words):
            yield made(sentence.text.strip(), judged[0], "assistant", judged[1], at)


def _with_name(sentence: str, earlier: list[str]) -> str:
    """A sentence about "him" or "it" after those that say who that is: alone it would be about nobody."""
    if not has(OF_SOMEBODY, sentence):
        return sentence
    context: list[str] = []
    for before in reversed(earlier[-2:]):
        if len(before) > _LONGEST // 2:
            break
        context.insert(0, before)
        if (len(before.split()) > 2 and has(NAMES_SOMEBODY, before)) or find(NAMED_INSIDE, any_case=False).search(
            before
        ):
            break
    return " ".join([*context, sentence])


def _pieces(sentence: str) -> list[str]:
    """A sentence, or what is told between the commas of one that never ends: dictation has no full stops."""
    if len(sentence) <= _LONGEST:
        return [sentence]
    pieces = find(r"[,;] | and (?=i|we|my|the|he|she)| but | because ").split(sentence)
    return [piece for piece in pieces if len(piece) <= _LONGEST]


def _kind_of_item(text: str) -> Kind:
    head = text.partition(":")[0]
    if has(r"\bto-?do\b|\bto do\b|\btasks?\b|\bdeadlines?\b", head):
        return "task"
    return "preference" if has(r"\b(?:conventions?|rules?|preferences?|answer|like|guidelines)\b", head) else "fact"


def made(text: str, kind: Kind, role: str, rule: str, at: int) -> Extracted:
    """A statement, with the importance of its kind."""
    worth = _WORTH_OF_VITAL if role == "user" and has(VITAL, text) else WORTH[kind]
    return Extracted(text, kind, role, rule, worth, at)


def _answer(text: str, before: Said | None) -> str:
    """What was asked and what was answered, where the answer alone says nothing."""
    spoken = sentences(text)
    reply = spoken[0].text.strip() if spoken else ""
    most = _LONGEST_BEGUN
    if before is None or before.role != "assistant" or not reply or len(reply.split()) > most or reply.endswith("?"):
        return ""
    if len(reply.split()) > _LONGEST_ANSWER and (
        has(r"\b(?:i|you|we|it|that|this)\b", reply) or not has(r"\b(?:what|where|which|who|how)\b", before.text)
    ):
        return ""
    if (
        certainty(reply) == "asked"
        or judge(reply, "user") is not None
        or small_talk(reply)
        or has(ASSENT, reply)
        or has(REQUEST, reply)
    ):
        return ""
    asked = [sentence.text.strip() for sentence in sentences(without(before.text))]
    if (
        not asked
        or not has(ASKS_USER, asked[-1])
        or has(
            r"\b(?:help|password|passphrase|passcode|pin|secret|token|code|can i|shall i|should i|"
            r"would you like|do you want|anything else)\b",
            asked[-1],
        )
    ):
        return ""
    return f"{asked[-1]} {reply}"


def _rest(text: str) -> str:
    """What comes after the first sentence."""
    spoken = sentences(text)
    return text[text.find(spoken[0].text) + len(spoken[0].text) :] if len(spoken) > 1 else ""


def _language(text: str) -> str:
    """The language of a turn. Short ones are English if they have one English word."""
    code = foreign.turn_language(text)
    english = has(ENGLISH, text) or (
        all(letter.isascii() for letter in text if letter.isalpha())
        and any(is_substantial(line) or judge(line, "user") for line in text.splitlines())
    )
    return foreign.ENGLISH if code == foreign.UNKNOWN and english else code


def _of_introduction(sentence: str) -> tuple[Kind, str] | None:
    """What somebody who introduces themselves says without a verb, such as "Divorced, two kids"."""
    if certainty(sentence) != "stated" or small_talk(sentence) or has(REQUEST, sentence):
        return None
    # One word is a name, an age or a condition.
    word = find(r"^(?:hi|hello|hey|good \w+)[,!. ]+").sub("", sentence).strip(" .!")
    if (
        has(IDLE, word)
        or has(FLEETING, word)
        or len(word) < 2
        or (" " not in word and not (word.isdigit() or word[0].isupper()))
    ):
        return None
    return (
        None
        if has(
            r"^(?:anyway|ok|intro|\w+ intro|also|classic|lovely|truly|yes|no|ps)\b.{0,12}$|^[a-z ]+ ideas\b|"
            r"^just \w+ing\b|^\w+(?: \w+)? or \w+|^ok you wanted\b|\ball over the shop\b",
            word,
        )
        else ("fact", "an introduction")
    )


def introduction(spoken: Sequence[str]) -> bool:
    """Whether sentences introduce their speaker: several short ones, with a name, an age or a trade."""
    plain = [sentence for sentence in spoken if certainty(sentence) == "stated"]
    return len(plain) > 1 and any(find(INTRODUCES, any_case=False).search(sentence) for sentence in plain[:2])
