"""What a sentence says of whom, as claims: an owner, a slot such as `home`, and a value.

The slots and the words that tell them are data, `languages/en.toml`. What no slot knows gives no claim; it may be kept
all the same, and compared in other ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from recollect.text.languages import Language, Slot, language
from recollect.text.sentences import sentences
from recollect.text.speakers import prefix
from recollect.text.words import WORD, stem

ME = "@me"
_LONGEST = 400
"""Characters of a sentence that is read. Longer ones are no plain statement."""
_MOST_VALUE = 8
"""Words of a value. What follows says more about it."""


class Claim(NamedTuple):
    owner: str
    """`@me`, a name in small letters, "my sister", or the thing itself."""
    slot: str
    value: frozenset[str]
    """The stems of its words, without those that say nothing. None if it tells that there is no value any more."""
    single: bool = True
    """Whether there can be one value only."""
    ended: bool = False
    """Whether it tells that there is no value any more."""
    denied: bool = False
    """Whether it says that this is not the value."""


@cache
def english() -> Language:
    return language("en")


# Sentences in one spelling

_SPELLED = (
    (re.compile(r"[’‘`]"), "'"),
    (re.compile(r"\b(?:can't|cannot)\b", re.I), "can not"),
    (re.compile(r"\bwon't\b", re.I), "will not"),
    (re.compile(r"\bain't\b", re.I), "is not"),
    (re.compile(r"n't\b", re.I), " not"),
    (re.compile(r"\b(dont|doesnt|didnt|isnt|arent|wont|cant|havent|hasnt)\b", re.I), lambda m: _SQUEEZED[m[1].lower()]),
    (re.compile(r"\b(?:I'm|im)\b", re.I), "I am"),
    (re.compile(r"\b(?:ive)\b", re.I), "I have"),
    (re.compile(r"\b(we|you|they)'re\b", re.I), r"\1 are"),
    (re.compile(r"\b(i|we|you|they)'ve\b", re.I), r"\1 have"),
    (re.compile(r"\b(i|we|you|they|he|she|it|that)'ll\b", re.I), r"\1 will"),
    (re.compile(r"\b(i|we|you|they|he|she)'d\b", re.I), r"\1 would"),
    (re.compile(r"\b(he|she|it|that|there|here|who|what|where)'s\b", re.I), r"\1 is"),
    (re.compile(r"\s+"), " "),
)
_SQUEEZED = {
    "dont": "do not", "doesnt": "does not", "didnt": "did not", "isnt": "is not", "arent": "are not",
    "wont": "will not", "cant": "can not", "havent": "have not", "hasnt": "has not",
}  # fmt: skip


@lru_cache(maxsize=4096)
def spelled(sentence: str) -> str:
    """A sentence without its short forms: "I'm" is "I am"."""
    for pattern, plain in _SPELLED:
        sentence = pattern.sub(plain, sentence)
    return sentence.strip()


# Owners

_NOT_NAMES = frozenset(
    """you it he she they we i this that these those there what who how if so and but the my our your his her their no
    yes not ok okay well then also just now oh when where why please thanks actually since as in on at from for to by
    with after before because while until today tomorrow yesterday monday tuesday wednesday thursday friday saturday
    sunday january february march april may june july august september october november december finally recently
    currently sorry hey hi update correction btw fyi turns by still quick small big good great bad new last next every
    each all some any one two three first second never always maybe perhaps got had has have been went moved quit
    switched started stopped changed sold bought left joined decided cancelled canceled remember note scrap forget
    don do does did is are was were can could would should will let make""".split()
)
_SUBJECT = re.compile(
    r"\b(?P<me>I|we|me and [A-Z]\w+)\b"
    r"|\b(?P<of>my|our|his|her|their)\b(?P<thing>(?: (?!(?:is|are|was|were|has|have|had|will|would|lives?|works?|and|but|who|"
    r"just|now|also|does|do|did|can|got|moved|started|joined|quit|left)\b)[a-z][\w-]*){1,3})?(?: (?P<called>[A-Z][\w-]+))?(?P<s>'s)?"
    r"|\b(?P<other>he|she|they)\b"
    r"|(?P<name>\b[A-Z][\w-]+(?: [A-Z][\w-]+)?)(?P<of_name>'s(?: (?!(?:is|are|was|were|has|have|had)\b)[a-z][\w-]*){1,3})?"
    r"|\b(?P<the>the|this|that|these) (?P<what>[a-z][\w-]*(?: [a-z][\w-]*)?)",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Z]")


def owner_before(sentence: str, at: int) -> str:
    """Whom the words at a position are said of: the nearest subject before them; the speaker where there is none."""
    nearest = ME
    for match in _SUBJECT.finditer(sentence, 0, at):
        nearest = _owner(match) or nearest
    return nearest


def _owner(match: re.Match[str]) -> str:
    if match["me"]:
        return ME
    if match["other"]:
        return f"@{match['other'].lower()}"
    if match["of"]:
        of = {"my": "my", "our": "my", "his": "@he", "her": "@she", "their": "@they"}[match["of"].lower()]
        thing = " ".join(stem(word) for word in (match["thing"] or "").lower().split())
        return f"{of} {thing}".strip() if thing else (ME if of == "my" else of)
    if name := match["name"]:
        if not _NAME.match(name) or name.split()[0].lower() in _NOT_NAMES:
            return ""
        inside = " ".join(stem(word) for word in (match["of_name"] or "").removeprefix("'s").lower().split())
        return f"{name.lower()} {inside}".strip()
    return ""


# Values

_CUT = re.compile(
    r"[,;!?()\n—–]|\.(?!\d)|\s-\s|: | (?:but|because|since|so|which|where|who|when|while|although|though|if|unless|until|"
    r"now|these days|nowadays|and (?:i|we|my|he|she|they|it|am|is|have|has|the|work|works|live|lives|moved|started|quit)|"
    r"instead|rather than|any ?more|again|for now|right now|at the moment|from now on|as of|starting|last|next|"
    r"this (?:week|month|year|spring|summer)|a (?:week|month|year|while|few)|after|before|with (?:my|our|the))\b.*",
    re.IGNORECASE,
)
_EMPTY = frozenset(
    """a an the my our your his her their its this that these those is are was were be been am of in on at to for with by
    as and or it i we you he she they me us him them so very really quite now currently also just still already only
    actually finally about around roughly approximately ca new old current please""".split()
)


def value_of(text: str) -> frozenset[str]:
    text = _CUT.split(text, maxsplit=1)[0]
    words = [word.lower() for word in WORD.findall(text)][:_MOST_VALUE]
    return frozenset(stem(word) for word in words if word not in _EMPTY)


# Reading

_LEAD = r"(?:(?:really|also|always|usually|actually|now|just|currently|still|already|recently|finally|both|mostly|only|since) )*"
_IS = (
    r"(?: (?:is|are|was|will be|has become|became|changed to|has changed to|is now|are now|has been|went (?:up|down) to|"
    r"goes (?:up|down) to|rose to|fell to|dropped to|was (?:raised|lowered|changed|set|cut|increased|reduced|moved|"
    r"pushed|bumped) to|got (?:raised|lowered|changed|cut|bumped) to|increased to|moved to|switched to|to be))"
)
_UNSURE = re.compile(
    r"\b(?:if|unless|maybe|perhaps|might|may|could|would|should|suppose|supposing|whether|imagine|pretend|thinking (?:about|of)|"
    r"consider(?:ing)?|wonder(?:ing)?|hope to|hoping|wish|used to|planning to|want(?:s)? to|dream(?:s|ing)? of|probably|"
    r"possibly|not sure|in case|what if|let us say|looking (?:at|for|into)|interested in|will|going to|was (?:in|at)|"
    r"lived|worked|as a (?:kid|child|teenager|student)|years? ago|back then|back in|once|"
    r"last (?:year|summer|winter|spring|autumn|month|week|weekend)|grew up)\b",
    re.IGNORECASE,
)
"""Says that something is not so, or not now."""
_FOR_NOW = re.compile(
    r"\b(?:this (?:week|weekend|month|summer|morning|afternoon|evening|time)|today|tonight|tomorrow|for (?:now|a (?:few|"
    r"couple|while|week|month|day)|the (?:week|weekend|day|moment|summer|winter)|(?:two|three|four|five|six|\d+) (?:days|"
    r"weeks|months)|a couple of)|until|till|temporar\w+|at the moment|on (?:holiday|vacation|business|a trip)|visiting|"
    r"crashing|house-?sitting|subletting|filling in|covering for|just (?:this|for)|over the (?:weekend|holidays|summer))\b",
    re.IGNORECASE,
)


class Read(NamedTuple):
    """A statement, read once."""

    text: str
    claims: tuple[Claim, ...]
    unsure: bool
    """Whether it asks, supposes, remembers or plans: what it says is not so now."""
    temporary: bool


@lru_cache(maxsize=8192)
def read(text: str) -> Read:
    """What a text says. Only the first sentences of a long one are looked at."""
    head = prefix(text)
    speaker, body = (head[0].lower(), text[head[1] :]) if head else ("", text)
    claims: list[Claim] = []
    unsure = temporary = False
    for sentence in sentences(body)[:6]:
        if sentence.code or len(sentence.text) > _LONGEST:
            continue
        plain = spelled(sentence.text)
        if plain.endswith("?"):
            unsure = True
            continue
        claims += _claims(plain)
        temporary = temporary or _FOR_NOW.search(plain) is not None
    unsure = unsure or _UNSURE.search(spelled(body)) is not None
    if speaker:
        claims = [claim._replace(owner=speaker if claim.owner == ME else claim.owner) for claim in claims]
    return Read(text, tuple(dict.fromkeys(claims)), unsure, temporary)


def _claims(sentence: str) -> Iterator[Claim]:
    words = {word.lower() for word in re.findall(r"[^\W\d_]+", sentence)}
    taken: set[tuple[str, str]] = set()
    for form in _forms():
        if form.gate and not form.gate & words:
            continue
        for match in form.pattern.finditer(sentence):
            claim = form.claim(sentence, match)
            if claim is not None and (claim.owner, claim.slot) not in taken:
                taken.add((claim.owner, claim.slot))
                yield claim


class _Form(NamedTuple):
    """One way to tell one slot."""

    slot: str
    spec: Slot
    way: str
    pattern: re.Pattern[str]
    gate: frozenset[str]

    def claim(self, sentence: str, match: re.Match[str]) -> Claim | None:
        slot = f"{self.slot} {stem(of.lower())}" if (of := match.groupdict().get("of")) else self.slot
        if self.way == "noun":
            owner = _of_noun(match)
        else:
            owner = ME if self.spec.answers else owner_before(sentence, match.start())
        if self.way == "ends":
            return Claim(owner, slot, frozenset(), self.spec.single, ended=True)
        value = value_of(match["value"])
        denied = bool(
            re.search(r"\b(?:not|never|no longer|stopped|quit)\b(?: \w+){0,2} ?$", sentence[: match.start()])
        ) or bool(re.match(r"\s*not\b", match["value"]))
        return Claim(owner, slot, value - {"not"}, self.spec.single, denied=denied) if value - {"not"} else None


def _of_noun(match: re.Match[str]) -> str:
    whose = (match["whose"] or "my").strip().lower()
    if whose in ("my", "our", "the"):
        return ME
    if whose in ("his", "her", "their"):
        return {"his": "@he", "her": "@she", "their": "@they"}[whose]
    if whose.startswith(("my ", "our ")):
        return "my " + " ".join(stem(word) for word in whose.removesuffix("'s").split()[1:])
    return whose.removesuffix("'s")


_WHOSE = (
    r"(?:(?P<whose>my (?:[\w-]+ ){0,2}?[\w-]+'s|[A-Z][\w-]+'s|my|our|his|her|their|the) (?:new |current |own |first |main |other )?"
    r"|(?P<lead>(?:^|[\n,;:] ?)(?:[-*•] )?))"
)


@cache
def _forms() -> tuple[_Form, ...]:
    forms: list[_Form] = []
    for name, slot in english().slots.items():
        for pattern in slot.ends:
            forms.append(_Form(name, slot, "ends", re.compile(rf"\b{_LEAD}(?:{pattern})", re.I), _gate(pattern)))
        for noun in slot.noun:
            told = rf"{_WHOSE}{noun}(?:(?(lead)(?: ?[:=]| -)|{_IS})) ?(?P<value>.+)"
            forms.append(_Form(name, slot, "noun", re.compile(rf"(?:^|(?<=\W)){told}", re.I), _gate(noun)))
        for verb in slot.verb:
            forms.append(_Form(name, slot, "verb", re.compile(rf"\b(?:{verb}) ?(?P<value>.+)", re.I), _gate(verb)))
    return tuple(forms)


def _gate(pattern: str) -> frozenset[str]:
    """Nothing: which words a pattern needs is worked out by the caller that measures it."""
    return frozenset()
