"""What the languages say in words of their own, as data: one TOML file a language, in this folder.

A speaker can add a language, or what is missing in one, without writing code.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec


class Slot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that a person or a thing has, and the patterns that tell it."""

    single: bool = False
    """Whether there is one value at a time."""
    verb: tuple[str, ...] = ()
    """What stands between whom it is said of and the value."""
    noun: tuple[str, ...] = ()
    """What it is called: "my NOUN is value", "NOUN: value"."""
    ends: tuple[str, ...] = ()
    """Tells that there is no value any more."""
    capital: bool = False
    """Whether a value is a name, and begins with a capital."""
    words: str = ""
    """By which older statements of the same are found, in whatever words the newer one tells it."""
    answers: bool = False
    """Whether it is about how the assistant answers, whoever the sentence speaks of."""


class Changes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a sentence says that something is different from before."""

    from_to: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    cue: str = r"(?!)"
    """Says that something is different, and not what."""


class Events(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Things that have a time."""

    noun: str = ""
    called_off: str = r"(?!)"
    put_off: str = r"(?!)"
    """Says that it is at another time, or another place."""


class Requests(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a sentence speaks to the memory itself: the words of an order, and a few forms, each of a whole clause.

    In a form, `{about}`, `{value}` and `{old}` are what the request is about, what is true, and what the memory has;
    `{verb}` is every word of `forget`, then of `remove`; other names in braces are the patterns below.
    """

    cue: str
    """Words of which every request has one, besides the verbs: texts without them are not read further."""
    before: str
    """What may stand before a request: "please", "could you"."""
    after: str
    """What may stand behind it: "please", "for now"."""
    memory: str
    """The memory by its names: "your memory", "what you know of me"."""
    states: str
    """Begins a clause that tells a fact of the speaker: "I live", "my address"."""
    things: str
    """Things that a person has one of: "address", "phone number"."""
    reason: str
    """Begins a clause that gives a reason, and so does not change what the clause before it asks for."""
    onward: str
    """Begins a clause that goes on with the work: "let us", "make it"."""
    task: str
    """What people forget and change while they work, which is nothing of the memory's: "the last paragraph"."""
    work: str
    """Things that people work on with an assistant. A sentence that has one is not about the memory."""
    empty: str
    """Words that tell no memory from another."""
    forget: str
    """Verbs that are said to the memory alone: "forget"."""
    remove: str
    """Verbs that are said of work as well: "delete"."""
    keep: str
    not_: str = msgspec.field(name="not")
    """What asks not to: "do not", "stop"."""
    place: str
    """Says that a thing is in the memory: "from your memory"."""
    every: str
    me: str
    retelling: str
    """Names what was told, or is known: "what I told you about"."""
    told_that: str
    """The same as a clause of its own: "you think that"."""
    topic: str
    """Stands before what something is about: "the thing with"."""
    own: str
    """Begins what is the speaker's: "my", "where I"."""
    own_slot: str
    that: str
    """What was just said: "that", "what I just said"."""
    it: str
    """What was named before, and else nothing of the memory's: "forget it"."""
    blames: str
    """Says what the memory has: "you noted"."""
    orders: tuple[str, ...]
    """How an order of a verb is said."""
    removed: tuple[str, ...]
    """Asks to forget without such an order: "my address should be deleted"."""
    unkeep: tuple[str, ...]
    """Asks not to keep something: what it names, what was said before, or what follows."""
    back: tuple[str, ...]
    """Takes back what was said before."""
    wrong: tuple[str, ...]
    """Says that something is not so. What is so may follow."""
    noted: tuple[str, ...]
    """Says what the memory has, which is wrong. What is so stands around it."""
    pairs: tuple[str, ...]
    """Says what is so, and what is not."""
    spelled: tuple[str, ...] = ()
    """Says how a name is written, of which the memory has another form."""
    update: tuple[str, ...]
    fix: tuple[str, ...]
    """Asks to put something right that the words before it say."""
    remember: tuple[str, ...]
    off: tuple[str, ...]
    on: tuple[str, ...]


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """By what a text is recognised to be in the language. Accents may be left out by whoever types."""

    common: str = ""
    """Its frequent words, in small letters, with spaces between them."""
    letters: str = ""
    """Letters and marks that are frequent in it and rare in the others."""


class Sentences(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a full stop does not end a sentence. All in small letters, with spaces between them."""

    abbreviations: str = ""
    may_end: str = ""
    """Abbreviations after which a sentence ends if a capital follows."""
    before_numbers: str = ""
    """Abbreviations only where a number follows."""
    before_ordinals: str = ""
    """Words before a number with a full stop that is an ordinal: "am 12. Juni"."""
    after_ordinals: str = ""
    """Words after such a number."""


class TalkPatterns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What people say without telling anything. Patterns; `^` is where the sentence begins, after "ok" and the like."""

    small_talk: str = ""
    """Words; a sentence of nothing else is small talk."""
    lead: str = ""
    """Words before a sentence that change nothing: "and", "but", "well"."""
    question: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    """Asks the assistant to do something now."""
    lasting: tuple[str, ...] = ()
    """Makes a rule of an order: "always"."""
    remember: tuple[str, ...] = ()
    """Asks to keep what the sentence says."""
    forget: tuple[str, ...] = ()
    """Asks not to keep something."""
    hypothetical: tuple[str, ...] = ()
    supposing: tuple[str, ...] = ()
    """Begins a supposition or a role that the rest of the turn goes on with."""
    joke: tuple[str, ...] = ()
    """Says of the turn that it is not meant."""
    passing: tuple[str, ...] = ()
    """Is over in a few hours."""
    idle: tuple[str, ...] = ()
    """Is about the talk itself, or an opinion about what was said."""
    condition: str = ""
    """Words that begin a clause which says nothing alone: "if", "that"."""
    remind: tuple[str, ...] = ()
    """Asks to be reminded of something."""
    material: tuple[str, ...] = ()
    """Announces a text to work on, after a colon or on the next line."""
    secret: tuple[str, ...] = ()


class Statements(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """By what a sentence is a statement worth keeping. Patterns."""

    first_person: tuple[str, ...] = ()
    """The speaker, as a word or as the form of a verb."""
    verbs: tuple[str, ...] = ()
    """What is told of a person or a thing by name: "NAME lives"."""
    relations: tuple[str, ...] = ()
    """People and animals of the speaker's."""
    fields: tuple[str, ...] = ()
    """What stands before a colon in "Name: Ann"."""
    vital: tuple[str, ...] = ()
    """Is kept though it stands beside a question or an order."""
    preference: tuple[str, ...] = ()
    decision: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    """What has a date."""
    dates: tuple[str, ...] = ()


class Grammar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the slots need to know of a language. Patterns."""

    me: str = r"(?!)"
    my: str = r"(?!)"
    others: str = r"(?!)"
    """He, she and they."""
    the: str = r"(?!)"
    """Articles."""
    you: str = r"(?!)"
    verb: str = r"(?!)"
    """Where the words of a thing end: "my sister | lives"."""
    be: str = r"(?!)"
    """Between a noun and its value: "my name IS Ann"."""
    cut: str = r"(?!)"
    """Words at which a value ends."""
    empty: str = ""
    """Words that say nothing in a value."""
    unsure: str = r"(?!)"
    past: str = r"(?!)"
    temporary: str = r"(?!)"
    denied: str = r"(?!)"


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of this folder."""

    slots: dict[str, Slot] = {}
    changes: Changes = Changes()
    events: Events = Events()
    requests: Requests | None = None
    words: Words = Words()
    sentences: Sentences = Sentences()
    talk: TalkPatterns = TalkPatterns()
    statements: Statements = Statements()
    grammar: Grammar = Grammar()


msgspec.json.Decoder(Language)
"""Reads the types now: msgspec crashes where two threads read them for the first time."""


@cache
def language(code: str) -> Language:
    return parse(f"{code}.toml", (Path(__file__).parent / f"{code}.toml").read_text("utf-8"))


def parse(name: str, text: str) -> Language:
    """Reads the text of one file. An error names the file and the key."""
    import tomllib  # which is needed only once a text is read

    try:
        return msgspec.convert(tomllib.loads(text), Language)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"{name}: {error}") from error


@cache
def codes() -> tuple[str, ...]:
    """The languages that there is a file for, in order."""
    return tuple(sorted(file.stem for file in Path(__file__).parent.glob("*.toml")))
