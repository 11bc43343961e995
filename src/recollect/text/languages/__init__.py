"""What the languages say in words of their own, as data: one TOML file a language, in this folder.

A speaker can add a language, or what is missing in one, without writing code.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources

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
    """How a sentence speaks to the memory itself. A pattern stands for a whole clause; `{about}` and `{value}` in it
    are what the request is about, and what is true instead; `{memory}` and `{things}` are the patterns below."""

    cue: str
    """Words of which every request has one: texts without them are not read further."""
    before: str
    """What may stand before a request: "please", "could you"."""
    after: str
    """What may stand behind it: "please", "for now"."""
    memory: str
    """The memory by its names: "your memory", "what you know of me"."""
    person: str
    """Tells that a clause is about the speaker: "I", "my"."""
    states: str
    """Begins a clause that tells a fact of the speaker: "I live", "my address". What else is wrong is no memory."""
    things: str
    """Things that a person has one of: "address", "phone number". Plain words correct only these."""
    reason: str
    """Begins a clause that gives a reason, and so does not change what the clause before it asks for."""
    task: str
    """What people forget and change while they work, which is nothing of the memory's: "the last paragraph"."""
    empty: str
    """Words that tell no memory from another."""
    forget: tuple[str, ...]
    """Asks to forget what it names, and cannot be meant in another way."""
    plain: tuple[str, ...]
    """Asks to forget what it names, if nothing follows but a reason."""
    everything: tuple[str, ...]
    last: tuple[str, ...]
    """Takes back what was said before."""
    unsaved: tuple[str, ...]
    """Asks not to keep something: what was said before, or what follows."""
    wrong: tuple[str, ...]
    """Says that something is not so. What is so may follow."""
    noted: tuple[str, ...] = ()
    """Says what the memory has, which is wrong. What is so stands around it."""
    fix: tuple[str, ...] = ()
    """Asks to put something right that the words before it say."""
    correct: tuple[str, ...]
    """Names what is so."""
    remember: tuple[str, ...]
    off: tuple[str, ...]
    on: tuple[str, ...]


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of this folder."""

    slots: dict[str, Slot] = {}
    changes: Changes = Changes()
    events: Events = Events()
    requests: Requests | None = None


@cache
def language(code: str) -> Language:
    text = (resources.files(__name__) / f"{code}.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), Language)
