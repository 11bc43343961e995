"""Acts on what a turn asks of the memory: forgets, corrects, or proposes to, where too much or too little is sure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from typing import Literal

import msgspec

from recollect.facets.proposals import propose
from recollect.policies.extraction import LONGEST_READ, Extracted, Said, extract
from recollect.policies.importance import small_talk
from recollect.recall.recall import recall
from recollect.text.sentences import sentences
from recollect.text.statements.claims import ME, read
from recollect.text.statements.requests import Act, MemoryRequest, distinctive, possible
from recollect.text.words import WORD, normal, stem
from recollect.values.errors import InputError, RecollectError
from recollect.values.filters import is_private
from recollect.values.record import Record
from recollect.verbs.archive import checked_reason
from recollect.verbs.forget import Forget, forget
from recollect.verbs.revise import revise
from recollect.view import View

Done = Literal["forgotten", "corrected", "proposed", "remembered", "not kept", "nothing", "off", "on"]
MOST_FORGOTTEN = 3
"""A request that would touch more memories becomes a proposal."""
_CANDIDATES = 60
_SHORT = 8
"""Words of a sentence that corrects a memory and says nothing else."""
_ALIKE = 0.72
_SURE = 0.5
"""The relevance from which a memory is proposed that shares no word with the request."""


class RequestOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one request to the memory."""

    act: Act
    done: Done
    about: str = ""
    ids: tuple[str, ...] = ()
    """The memories that were forgotten, corrected or proposed. `undo` brings back what was forgotten."""
    proposal: str | None = None
    """The id of the proposal, which `confirm` and `dismiss` take."""


class Heeded(msgspec.Struct):
    """The turns of a conversation after its requests were acted on."""

    turns: list[Said]
    """As they are read for facts: without requests, and empty where nothing may be kept."""
    outcomes: list[RequestOutcome] = []
    remembered: list[tuple[int, str]] = []
    """Turns and sentences that the user asked to remember."""
    forgotten: list[tuple[int, MemoryRequest]] = []
    corrected: set[str] = set()
    """Sentences whose new value is stored already."""
    off: bool = False
    """Whether nothing is kept at the end."""
    acted: set[int] = set()
    """Positions of turns that ask for something."""

    @property
    def number_forgotten(self) -> int:
        """How many memories were forgotten so far, by all requests together."""
        return sum(len(outcome.ids) for outcome in self.outcomes if outcome.done == "forgotten")

    def facts_left(self, statements: Sequence[Extracted], first: int = 0) -> list[Extracted]:
        """Statements of these turns, without what was taken back; what was to be remembered matters most.

        Where the statements were read from a later turn on, `first` is its position.
        """
        moved = (msgspec.structs.replace(fact, turn=fact.turn + first) for fact in statements)
        facts = [fact for fact in moved if not self._taken_back(fact)]
        for at, sentence in self.remembered:
            named = [
                n
                for n, fact in enumerate(facts)
                if fact.turn == at and (fact.text in sentence or sentence in fact.text)
            ]
            for number in named:
                facts[number] = msgspec.structs.replace(facts[number], importance=1.0)
            if not named:
                facts.append(Extracted(sentence, "fact", "user", "asked to be remembered", 1.0, at))
        return facts

    def _taken_back(self, fact: Extracted) -> bool:
        return any(fact.turn < at and is_about(asked, fact.text) for at, asked in self.forgotten)


def heed(view: View, turns: Sequence[Said], start: int = 0) -> Heeded:
    """Act on the requests of the turns from `start` on. Earlier turns say what is off the record, and what was last."""
    heeded = Heeded(list(turns))
    for at, turn in enumerate(turns):
        asked: list[MemoryRequest] = []
        silent = heeded.off
        for request in possible(turn.text[:LONGEST_READ]) if turn.role == "user" else ():
            if any(request.sentence == other.sentence for other in asked) or not is_own(turn.text, request):
                continue
            if not request.sure and (silent or not _is_clear(view, request, turns[:at])):
                continue
            asked.append(request)
            if request.act in ("off", "on"):
                heeded.off = request.act == "off"
                silent = silent or heeded.off
                if at >= start:
                    heeded.outcomes.append(RequestOutcome(request.act, request.act))
            elif not silent:
                _heed_one(view, heeded, turns, at, request, acting=at >= start)
        if silent:
            heeded.turns[at] = Said(turn.role, "")
        elif asked:
            heeded.acted.update([at] * any(request.act in ("forget", "correct", "on") for request in asked))
            heeded.turns[at] = Said(turn.role, _left(turn.text, asked, heeded.corrected))
    _drop_replies(heeded, turns)
    return heeded


def is_own(text: str, asked: MemoryRequest) -> bool:
    """Whether a request is the user's own, and not of a text that was handed over.

    Only the first line counts, and in it nothing behind a colon or a quotation mark: what else looks like a request may
    be a page, a mail or the words of somebody else, and would delete memories for them.
    """
    lines = (line.strip() for line in text[:LONGEST_READ].splitlines())
    first = next((line for line in lines if line and not small_talk(line)), "")
    before, sentence, _ = first.partition(asked.sentence.splitlines()[0].strip())
    if not sentence and first not in asked.sentence:
        return False
    return _QUOTES.search(before) is None if asked.act in ("forget", "correct") else True


_QUOTES = re.compile(
    r"[:\"“”«»„]|(?:^|\s)['‘]|\b(?:said|says|wrote|writes|asked|told me|story|pretend|pirate|play)\b", re.IGNORECASE
)


def _heed_one(view: View, heeded: Heeded, turns: Sequence[Said], at: int, asked: MemoryRequest, acting: bool) -> None:
    if asked.act == "remember":
        sentence = asked.sentence if asked.value else _before(turns[at].text, asked.sentence)
        if sentence:
            heeded.remembered.append((at, sentence))
        if acting:
            heeded.outcomes.append(RequestOutcome("remember", "remembered" if sentence else "nothing"))
        return
    if asked.act == "forget" and asked.last and (asked.names_memory or _before(turns[at].text, asked.sentence)):
        if acting:
            heeded.outcomes.append(RequestOutcome("forget", "not kept"))
        return  # what it takes back was said in the same turn
    previous = max((n for n in range(at) if turns[n].role == "user"), default=None)
    if asked.act == "forget" and asked.last and previous is not None:
        heeded.turns[previous] = Said("user", "")
    if asked.act == "forget" and asked.about:
        heeded.forgotten.append((at, asked))
    if acting:
        outcome = _acted(view, asked, turns[:at], MOST_FORGOTTEN - heeded.number_forgotten)
        heeded.outcomes.append(outcome)
        if outcome.done == "corrected":
            heeded.corrected.add(asked.sentence)


def _is_clear(view: View, asked: MemoryRequest, before: Sequence[Said]) -> bool:
    """Whether the memory has what a request names that may be about something else."""
    sure, unsure = _meant(view, asked, before)
    return bool(sure or unsure)


def _before(text: str, sentence: str) -> str:
    """What a turn says before a sentence of it."""
    return text.partition(sentence)[0].strip(" \n,;:-")


def _left(text: str, asked: Sequence[MemoryRequest], corrected: Collection[str]) -> str:
    """What is left of a turn without its requests. What they take back, or put right, goes or stays with them."""
    for request in asked:
        before, sentence, after = text.partition(request.sentence)
        if not sentence or request.act == "remember":
            continue
        if request.act == "forget" and request.last:
            before = ""
        is_new = request.act == "correct" and request.sentence not in corrected
        new_value = request.value if is_new and len(request.value.split()) > 2 else ""
        if request.act == "forget":
            new_value = _instead(sentence)
        text = " ".join(part for part in (before.strip(), f"{new_value}." if new_value else "", after.strip()) if part)
    return text


def _instead(sentence: str) -> str:
    """What is so now, where a request to forget goes on to say it: "scrap the plan, we're taking the fibre one"."""
    clauses = re.split(r"[,;:–—] (?:and |but )?|\bbecause\b|\bso (?=(?:i|we|my|our)\b)", sentence, flags=re.IGNORECASE)[
        1:
    ]
    for at in range(len(clauses)):
        rest = ", ".join(clause.strip() for clause in clauses[at:])
        if _NEW.match(clauses[at].strip()) and any(fact.role == "user" for fact in extract([Said("user", rest)])):
            return rest.rstrip(" .!")
    return ""


_NEW = re.compile(
    r"(?:so )?(?:we|i|it|my|our)\b(?:'(?:re|m|ve|s)|’(?:re|m|ve|s)| (?:am|are|is|have|moved|live|work|take|took))?\b",
    re.IGNORECASE,
)


def _drop_replies(heeded: Heeded, turns: Sequence[Said]) -> None:
    """An answer to "forget my number" repeats the number, and so must not be read."""
    for at, turn in enumerate(turns[:-1]):
        if turns[at + 1].role == "assistant" and (at in heeded.acted or (turn.text and not heeded.turns[at].text)):
            heeded.turns[at + 1] = Said("assistant", "")


def _acted(view: View, asked: MemoryRequest, before: Sequence[Said], most: int) -> RequestOutcome:
    """Forget or correct what is surely meant; propose it where it is not sure, or too much at once."""
    sure, unsure = _meant(view, asked, before)
    ids = tuple(record.id for record in sure)
    if asked.act == "correct" and asked.value and len(sure) == 1:
        return _corrected(view, asked, sure[0])
    if asked.act == "forget" and 0 < len(sure) <= most and not (asked.all and not asked.about):
        forget(_unbound(view), Forget(id=ids, reason=_reason(view, asked)))
        return RequestOutcome("forget", "forgotten", asked.about, ids)
    chosen = ids or tuple(record.id for record in unsure)
    if not chosen:
        return RequestOutcome(asked.act, "nothing", asked.about)
    if asked.act == "correct" and asked.value:
        act, value = "correct", replacement(asked)
    else:
        act, value = "forget", ""
    try:
        proposal = propose(view, act, asked.sentence, chosen, value)
    except InputError:  # the words look like a credential, which nothing may keep
        return RequestOutcome(asked.act, "nothing", asked.about)
    return RequestOutcome(asked.act, "proposed", asked.about, chosen, proposal)


def _corrected(view: View, asked: MemoryRequest, record: Record) -> RequestOutcome:
    new = _exchanged(asked, record.text) or replacement(asked)
    if normal(new) == normal(record.text):
        return RequestOutcome("correct", "nothing", asked.about)
    try:
        revised = revise(_unbound(view), record.id, {"content": new})
    except InputError:  # such as a credential; it was noted in the audit log
        return RequestOutcome("correct", "nothing", asked.about)
    return RequestOutcome("correct", "corrected", asked.about, (record.id, revised.id))


def _exchanged(asked: MemoryRequest, text: str) -> str:
    """A memory with the new words in the place of the old ones, if those are all that is new."""
    old, new = asked.old, asked.value
    if not old or len(new.split()) > len(old.split()) + 1 or text.lower().count(old.lower()) != 1:
        return ""
    at = text.lower().index(old.lower())
    return f"{text[:at]}{new}{text[at + len(old) :]}"


def replacement(asked: MemoryRequest) -> str:
    """What is true instead, in the words of the user."""
    value = asked.value[:1].upper() + asked.value[1:]
    if len(asked.value.split()) > 2 and read(asked.value).claims:
        return value
    about = asked.about[:1].upper() + asked.about[1:]
    return f"{about}: {asked.value}" if about and asked.about.lower() not in asked.value.lower() else value


def _reason(view: View, asked: MemoryRequest) -> str:
    try:
        return checked_reason(view, asked.sentence) or "the user asked for it"
    except RecollectError:
        return "the user asked for it"


def _unbound(view: View) -> View:
    """Outside the conversation, where its facts are."""
    address = msgspec.structs.replace(view.address, conversation=None)
    return msgspec.structs.replace(
        view, address=address, bound=view.bound - {"conversation"}, acting=view.acting or view
    )


# Which memories are meant


def _meant(view: View, asked: MemoryRequest, before: Sequence[Said]) -> tuple[list[Record], list[Record]]:
    """Memories of the speaker's own that are surely meant, and others that may be."""
    if asked.last and not asked.value:
        return _said_last(view, asked, before)
    if asked.all and not asked.about:
        records = view.scan(view.where(), order="newest", limit=1000)
        return [record for record in records if _is_own(view, record)][: MOST_FORGOTTEN * 30], []
    words = " ".join((asked.about, asked.value)) if asked.act == "correct" else asked.about
    candidates = _candidates(view, words)
    own = [record for record, _ in candidates]
    if asked.act == "correct":
        return _to_correct(asked, own) if asked.sure else _to_replace(asked, own)
    sure = [record for record in own if is_about(asked, record.text)]
    if not asked.sure:
        return _named(asked, sure)
    if sure:
        return sure, []
    return _best(distinctive(asked), candidates)


def _candidates(view: View, words: str) -> list[tuple[Record, float]]:
    outside = _unbound(view)
    hits = recall(outside, words[:1000], {}, limit=_CANDIDATES, touch=False, min_relevance=0.0, rerank="none")
    candidates = [(hit.memory, hit.relevance or 0.0) for hit in hits]
    ids = {record.id for record, _ in candidates}
    recent = outside.scan(outside.where(), order="newest", limit=_CANDIDATES)  # "where I live" has no word of "Berlin"
    candidates += [(record, 0.0) for record in recent if record.id not in ids]
    return [(record, relevance) for record, relevance in candidates if _is_own(view, record)]


def _is_own(view: View, record: Record) -> bool:
    """Whether a memory is the speaker's: of the same account and agent, and of no other channel."""
    own, address = view.address, record.address
    same = (own.account, own.agent) == (address.account, address.agent)
    return (
        same
        and not is_private(record)
        and record.tier != "conversation"
        and own.channel in (None, address.channel or own.channel)
    )


def _said_last(view: View, asked: MemoryRequest, before: Sequence[Said]) -> tuple[list[Record], list[Record]]:
    """What was stored of the user's turn before; of "that's wrong", what the assistant has just said."""
    at = max((n for n in range(len(before)) if before[n].role == "user"), default=None)
    if at is None:
        return [], []
    turn = before[at]
    facts = [fact.text for fact in extract([Said("assistant", ""), turn]) if fact.turn == 1]
    texts = {normal(text) for text in (*facts, turn.text, *(s.text for s in sentences(turn.text)))}
    own = [record for record, _ in _candidates(view, turn.text) if normal(record.text) in texts]
    if asked.act == "forget":
        return own, []
    reply = before[-1].text.lower() if before[-1].role == "assistant" else ""
    reply_stems = {stem(word) for word in WORD.findall(reply)}
    quoted = [
        r
        for r, _ in _candidates(view, before[-1].text)
        if reply_stems and _telling(r.text) and _telling(r.text) <= reply_stems
    ]
    return [], quoted[:MOST_FORGOTTEN] or own[:MOST_FORGOTTEN]


def _telling(text: str) -> set[str]:
    return {stem(word) for word in distinctive(MemoryRequest("forget", text))}


def _to_correct(asked: MemoryRequest, own: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """The memory whose slot the new value has, or which has the old value, or what is corrected."""
    new = {(claim.owner, claim.slot): claim.value for claim in read(asked.value).claims if claim.single}
    slots = [r for r in own if any(new.get((c.owner, c.slot), c.value) != c.value for c in read(r.text).claims)]
    same = [r for r in own if any((c.owner, c.slot) in new for c in read(r.text).claims)]
    words = distinctive(asked)
    named = [record for record in (slots or own) if words and _has_all(words, record.text)]
    for chosen in (named, slots):
        if len(chosen) == 1:
            return list(chosen), []
        if chosen:
            return [], list(chosen)[:MOST_FORGOTTEN]
    if same:
        return [], []  # it is known already
    words = distinctive(asked, f"{asked.about} {asked.value}")
    having = [record for record in own if any(_has_all([word], record.text) for word in words)]
    if len(having) == 1:
        return having, []
    sure, unsure = _best(words, [(record, 0.0) for record in own])
    return (sure, unsure) if len(sure) == 1 else ([], [*sure, *unsure])


def _named(asked: MemoryRequest, sure: list[Record]) -> tuple[list[Record], list[Record]]:
    """Of memories that have all of what an unsure request names: surely meant if it is much, or a name."""
    words = distinctive(asked)
    if len(sure) > MOST_FORGOTTEN:
        return [], []
    if (asked.names_memory or asked.about.lower().startswith(("my ", "our "))) and len(sure) == 1:
        return sure, []
    much = len(words) > 1 or any(word[:1].upper() + word[1:] in asked.about for word in words) or bool(_slots(asked))
    return (sure, []) if much else ([], sure)


def _to_replace(asked: MemoryRequest, own: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """The memory that has what is not so, of "Ruth, not Naomi"; or tells something else of the same."""
    if not asked.value:
        return [], []
    if asked.about:
        own = [r for r in own if _has_exactly(distinctive(asked), r.text)]
        if not asked.old:
            return (
                (list(own), []) if len(own) == 1 and len(distinctive(asked)) > 1 else ([], list(own)[:MOST_FORGOTTEN])
            )
    new = _telling(asked.value)
    if not asked.old:
        return _to_restate(asked, own)
    old = distinctive(asked, asked.old)
    having = [r for r in own if _has_exactly(old, r.text) and not new - _telling(asked.old) <= _telling(r.text)]
    shared = [r for r in having if (_telling(r.text) - _telling(asked.old)) & _telling(asked.sentence)]
    chosen = shared or having
    if not old or not chosen or (not shared and any(word.isdigit() for word in old) and not asked.names_memory):
        return [], []
    if len(chosen) == 1 and (shared or asked.names_memory):
        return chosen, []
    short = len(asked.sentence.split()) <= _SHORT
    return [], chosen if short and len(chosen) <= MOST_FORGOTTEN else []


def _to_restate(asked: MemoryRequest, own: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """The one memory that begins like a statement and ends in another way; or has a name that is written alike."""
    new = distinctive(asked, asked.value)
    if asked.names_memory:
        same = [r for r in own if _written_alike(asked.value, r.text)]
    else:
        same = [r for r in own if _differs_at_the_end(new, distinctive(asked, r.text))]
    return (same, []) if len(same) == 1 else ([], [])


def _differs_at_the_end(new: Sequence[str], old: Sequence[str]) -> bool:
    shared = next((n for n in range(min(len(new), len(old))) if stem(new[n]) != stem(old[n])), 0)
    return 0 < shared < len(old) <= shared * 3 and len(new) <= len(old) + 2


def _written_alike(value: str, text: str) -> bool:
    """Whether a text has another form of a name in a value: "Katarzyna" and "Catarzina"."""
    names = [word for word in WORD.findall(value) if word[:1].isupper() and len(word) > 3]
    others = [word for word in WORD.findall(text) if word[:1].isupper()]
    return any(
        name != other and SequenceMatcher(None, _plain(name.lower()), _plain(other.lower())).ratio() > _ALIKE
        for name in names
        for other in others
        if name not in others
    )


def _has_exactly(words: Sequence[str], text: str) -> bool:
    text = re.sub(r"(\d)(?:st|nd|rd|th)\b", r"\1", text)
    words = [re.sub(r"(\d)(?:st|nd|rd|th)$", r"\1", word) for word in words]
    having = {stem(_plain(word)) for word in WORD.findall(text.lower())} | set(
        re.findall(r"\w+(?:[.:]\w+)*", text.lower())
    )
    return bool(words) and all(stem(_plain(word)) in having or word in having for word in words)


def _is_head(word: str, text: str) -> bool:
    """Whether a text tells of a thing of this name, without saying which: "plate" of "My plate is 7KLM"."""
    return distinctive(MemoryRequest("forget", text))[:1] == [word]


def _best(words: Sequence[str], candidates: Sequence[tuple[Record, float]]) -> tuple[list[Record], list[Record]]:
    """The one memory that has nearly all of the words, if no other has any; else those that may be meant."""
    counts = [(sum(_has_all([word], record.text) for word in words), record) for record, _ in candidates]
    most = max((count for count, _ in counts), default=0)
    best = [record for count, record in counts if count == most and count]
    others = [record for count, record in counts if 0 < count < most]
    if len(best) == 1 and not others and (most * 3 >= len(words) * 2 or _is_head(words[-1], best[0].text)):
        return best, []
    if best:
        return [], best[:MOST_FORGOTTEN]
    return [], [record for record, relevance in candidates[:1] if relevance >= _SURE]


def is_about(asked: MemoryRequest, text: str) -> bool:
    """Whether a text is surely what a request names: it has all its words, or the same slot of the same person."""
    wanted, claims = _slots(asked), read(text).claims
    if wanted and any((claim.owner, claim.slot) in wanted for claim in claims):
        return True
    words = distinctive(asked)
    if not words or not _has_all(words, text):
        return False
    # "My phone number" is not the phone number of my sister.
    owners = {claim.owner for claim in claims if claim.slot in {slot for _, slot in wanted}}
    return not owners or any(owner == whose for owner in owners for whose, _ in wanted)


def _slots(asked: MemoryRequest) -> set[tuple[str, str]]:
    """The slots that words such as "my phone number" or "where I live" name, of whom."""
    about = asked.about
    for asking, place in (("where ", " in Xanadu"), ("how old ", " 33"), ("what ", " Xanadu")):
        if about.lower().startswith(asking):
            plain = about[len(asking) :].replace("I am", "I am")
            tries = [f"{plain}{place}", f"{plain} at Xanadu", f"I am{place}" if asking == "how old " else plain]
            return {(c.owner, c.slot) for text in tries for c in read(text).claims if c.owner == ME}
    if about.lower().startswith(("my ", "our ")):
        return {(claim.owner, claim.slot) for claim in read(f"{about} is Xanadu").claims}
    return set()


def _has_all(words: Sequence[str], text: str) -> bool:
    having = [_plain(word) for word in WORD.findall(text.lower().replace("’", "'").replace("'", " "))]
    return bool(words) and all(any(_alike(_plain(word), other) for other in having) for word in words)


def _alike(word: str, other: str) -> bool:
    """Whether two words are forms of one: "opération" and "opérer"."""
    if word == other or stem(word) == stem(other):
        return True
    shorter = min(len(word), len(other))
    shared = next((n for n in range(shorter) if word[n] != other[n]), shorter)
    return shorter >= 5 and shared >= 4 and shared * 3 >= shorter * 2


def _plain(word: str) -> str:
    """Without accents, which people leave out."""
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
