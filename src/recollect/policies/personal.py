"""Personal data in a text: what identifies a person, what is sensitive, and what a preset does with it.

Values that were found are repeated nowhere: what leaves this module are types, places and masks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast, get_args

import msgspec

from recollect.policies.national_numbers import cards, ibans, passports, social_numbers
from recollect.policies.secrets import Screen, find
from recollect.policies.sensitive_topics import WORD, beginnings_of, folded, may_be_sensitive, topics
from recollect.policies.told_passwords import access_codes, passwords, pins
from recollect.values.errors import SecretError

Type = Literal["card", "iban", "ssn", "passport", "code", "pin", "password"]
Action = Literal["keep", "mask", "refuse"]
"""In the order of strictness."""
_ACTIONS = get_args(Action)


class Personal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is done with a memory that has personal data in its words."""

    card: Action = "keep"
    iban: Action = "keep"
    ssn: Action = "keep"
    passport: Action = "keep"
    code: Action = "keep"
    """Codes of doors, gates and alarms."""
    pin: Action = "refuse"
    password: Action = "refuse"
    topics: Literal["tag", "refuse", "ignore"] = "tag"
    """What is done with a text about somebody's health, religion and the like."""
    automatic: Action = "refuse"
    """At least this is done with what is stored automatically: facts of conversations, and turns of wrapped clients."""

    def action(self, type: Type, secrets: Screen) -> Action:
        """A rule of `secrets` that is switched off refuses nothing here either."""
        action: Action = getattr(self, type)
        rule = _RULES.get(type)
        is_off = rule is not None and (not secrets.enabled or rule in secrets.allow)
        return "keep" if is_off and action == "refuse" else action

    def of_automatic(self) -> Personal:
        """The same, as it holds for what is stored automatically."""
        stricter = {type: max(getattr(self, type), self.automatic, key=_ACTIONS.index) for type in get_args(Type)}
        return msgspec.structs.replace(self, **stricter)


_RULES = {"card": "card-number", "iban": "iban", "pin": "password", "password": "password"}
"""The rule of `policies.secrets` for the same, which screens all that is not a memory's content."""


class Identifier(msgspec.Struct, frozen=True):
    """Something that identifies a person, and where it is in the text."""

    type: Type
    start: int
    end: int
    mask: str


class Judged(msgspec.Struct, frozen=True):
    text: str
    """What may be stored: with masks where the preset says so."""
    tags: tuple[str, ...] = ()
    masked: Type | None = None
    """The first type that was masked."""


_FINDERS: tuple[tuple[Type, Callable[[str], Iterator[tuple[int, int]]]], ...] = (
    ("card", cards),
    ("iban", ibans),
    ("ssn", social_numbers),
)
_OPENING = (
    *(
        "unlock",
        " opens",
        "disarm",
        "offnet",
        "offnen",
        "entsperrt",
        "ouvre",
        "verrou",
        " abre",
        "bloque",
        " apre",
        "sblocc",
    ),
    *("gaat open",),
)
_PASSWORD_KEYS = (
    *(
        "passw",
        "pass w",
        "pass-w",
        "passp",
        "pass p",
        "passc",
        "pass c",
        "pwd",
        "p/w",
        "pw ",
        "pw:",
        "kennw",
        "schluss",
    ),
    *(
        "de passe",
        "-passe",
        " passe",
        "mdp",
        "wi-fi",
        "wifi",
        "clave",
        "contras",
        "parola",
        "senha",
        "wachtw",
        " key",
        " pass",
    ),
    *_OPENING,
)
_PIN_KEYS = ("pin", "geheim", "passc", "pass c", "k code", "n code", "e code", "m code", "l code", "k cod", *_OPENING)
_CODE_KEYS = (
    *(
        "code",
        "codig",
        "codic",
        "alarm",
        "allarme",
        "safe",
        "lockbox",
        "voicemail",
        "tresor",
        "coffre",
        "cassaf",
        "kluis",
    ),
    *_OPENING,
)
_PASSPORT_KEYS = (
    "travel doc",
    "reisedok",
    "documento d",
    "document de",
    "pass",
    "pasap",
    "pasp",
    "ausweis",
    "ident",
    "id card",
)
_LONG_NUMBER = re.compile(
    r"\d(?:[ ./-]?\d){8}|\d{2}[A-Za-z]\d\d|\d{8}[ -]?[A-Za-z]|\d\.\d{3}\.\d{3}|[A-Za-z] ?\d\d ?\d\d ?\d\d"
    r"|[A-Za-z]{2}\d\d[ -]?[A-Za-z0-9]{4}"
)
_TWO_DIGITS = re.compile(r"\d\d")
_MARK = re.compile(rf"⟦({'|'.join(get_args(Type))}) ([^⟧\n]{{1,24}})⟧")


_WORD_FINDERS: tuple[tuple[Type, Callable[[str], Iterator[tuple[int, int]]], tuple[str, ...]], ...] = (
    ("passport", passports, _PASSPORT_KEYS),
    ("pin", pins, _PIN_KEYS),
    ("code", access_codes, _CODE_KEYS),
    ("password", passwords, _PASSWORD_KEYS),
)
"""Each with what every text that it finds something in contains, one of them, without accents."""
_KEY_BEGINNINGS = frozenset(
    "trav reis docu pasa pasp iden id unlo open disa offn ents ouvr verr abre bloq desb dese apre sblo gaat pwd p pw"
    " kenn schl mot mots mdp wi wifi wlan clav cont paro senh wach key keys pin pins pinc pinn gehe cod codi alar alla"
    " safe lock voic tres coff cass klui netz deve cart carte clef cle".split()
)


def find_personal(text: str) -> list[Identifier]:
    """In the order of the text; what two finders claim belongs to the first."""
    plain = folded(text)
    return _identifiers(text, plain, beginnings_of(WORD.findall(plain)))


def _identifiers(text: str, plain: str, beginnings: Sequence[str]) -> list[Identifier]:
    findings: list[Identifier] = []
    if "⟦" in text:
        findings += [Identifier(cast("Type", mark[1]), *mark.span(), mark[2]) for mark in _MARK.finditer(text)]
    if _TWO_DIGITS.search(text) and _LONG_NUMBER.search(text):
        for type, finder in _FINDERS:
            _add(findings, text, type, finder)
    is_keyed = not _KEY_BEGINNINGS.isdisjoint(beginnings)
    if is_keyed or "code" in plain or "pass" in plain or "ausweis" in plain:
        for type, finder, keys in _WORD_FINDERS:
            if any(key in plain for key in keys):
                _add(findings, text, type, finder)
    return sorted(findings, key=lambda finding: finding.start) if len(findings) > 1 else findings


def _add(findings: list[Identifier], text: str, type: Type, finder: Callable[[str], Iterator[tuple[int, int]]]) -> None:
    for start, end in finder(text):
        if all(end <= other.start or start >= other.end for other in findings):
            findings.append(Identifier(type, start, end, _mask(type, text[start:end])))


def _mask(type: Type, value: str) -> str:
    """The value with its middle replaced. A PIN or password keeps nothing."""
    compact = re.sub(r"[ .-]", "", value)
    if type == "iban":
        return f"{compact[:2].upper()}•• •••• {compact[-4:]}"
    shown = _SHOWN.get(type, 0)
    return f"•••• {compact[-shown:]}" if shown else "••••"


_SHOWN = {"card": 4, "ssn": 2, "passport": 2}
"""So many letters at the end of a value are left."""


def mark(text: str, rules: Personal) -> str:
    """The text with a mark in place of each value that may not be stored as it is: `⟦card •••• 1111⟧`.

    Sentences that are taken from the text lose the words that told what a number is. The mark still tells it: `judge`
    refuses or masks it.
    """
    strict = rules.of_automatic()
    findings = [finding for finding in find_personal(text) if getattr(strict, finding.type) != "keep"]
    return _replaced(text, findings, lambda finding: f"⟦{finding.type} {finding.mask}⟧")


def marked(text: str) -> tuple[Type, ...]:
    """The types of the marks in a text."""
    return tuple(dict.fromkeys(cast("Type", match[1]) for match in _MARK.finditer(text))) if "⟦" in text else ()


def judge(field: str, text: str, rules: Personal, secrets: Screen) -> Judged:
    """The text as it may be stored, and its tags. SecretError names the field and what it is, never the value."""
    plain = folded(text)
    words = WORD.findall(plain)
    beginnings = beginnings_of(words)
    findings = _identifiers(text, plain, beginnings)
    subjects = topics(text) if rules.topics != "ignore" and may_be_sensitive(words, beginnings) else ()
    if not findings and not subjects:
        _refuse_secret(field, text, secrets)
        return Judged(text)
    for finding in findings:
        if rules.action(finding.type, secrets) == "refuse":
            raise SecretError(field, finding.type)
    if subjects and rules.topics == "refuse":
        raise SecretError(field, subjects[0])
    # What was decided on here is not a credential as well.
    _refuse_secret(field, _replaced(text, findings, lambda finding: finding.mask), secrets)
    masked = [f for f in findings if text[f.start] == "⟦" or rules.action(f.type, secrets) == "mask"]
    stored = _replaced(text, masked, lambda finding: finding.mask)
    return Judged(stored, _tags(findings, subjects), masked[0].type if masked else None)


def _refuse_secret(field: str, text: str, secrets: Screen) -> None:
    if rule := find(text, secrets):
        raise SecretError(field, rule)


def _tags(findings: list[Identifier], subjects: tuple[str, ...]) -> tuple[str, ...]:
    named = [f"personal.{finding.type}" for finding in findings]
    return tuple(
        dict.fromkeys([*named, *(["sensitive"] if subjects else []), *(f"sensitive.{name}" for name in subjects)])
    )


def is_automatic_tag(tag: str) -> bool:
    """Whether a tag is one that `judge` gives."""
    return tag.partition(".")[0] in ("personal", "sensitive")


def _replaced(text: str, findings: list[Identifier], by: Callable[[Identifier], str]) -> str:
    for finding in sorted(findings, key=lambda finding: finding.start, reverse=True):
        text = text[: finding.start] + by(finding) + text[finding.end :]
    return text


def masked_content(content: Any, rules: Personal, secrets: Screen) -> Any:
    """JSON with the strings in it masked, each by itself."""
    if isinstance(content, str):
        return judge("content", content, rules, secrets).text
    if isinstance(content, Mapping):
        items = cast("Mapping[str, Any]", content).items()
        return {key: masked_content(value, rules, secrets) for key, value in items}
    if isinstance(content, list):
        return [masked_content(value, rules, secrets) for value in cast("list[Any]", content)]
    return content


def secret_in(text: str, rules: Personal, secrets: Screen) -> str | None:
    """What the preset refuses in a memory with this text: a type or a rule; None if nothing."""
    try:
        judge("content", text, rules, secrets)
    except SecretError as error:
        return error.rule
    return None
