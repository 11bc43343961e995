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


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of this folder."""

    slots: dict[str, Slot] = {}
    changes: Changes = Changes()
    events: Events = Events()


@cache
def language(code: str) -> Language:
    text = (resources.files(__name__) / f"{code}.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), Language)
