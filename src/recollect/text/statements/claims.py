"""What a sentence says of whom, as claims: an owner, a slot such as `home`, and a value.

The slots and the words that tell them are data, `languages/en.toml`; `slot_forms` reads those of other languages. What
no slot knows gives no claim; it may be kept all the same, and compared in other ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from recollect.text.languages import Language, Slot, language
from recollect.text.languages.detection import UNKNOWN, language_of
from recollect.text.late_pattern import LatePattern
from recollect.text.sentences import sentences
from recollect.text.speakers import prefix
from recollect.text.statements.slot_forms import is_temporary, is_unsure, slot_values
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


def _unsqueezed(match: re.Match[str]) -> str:
    return _SQUEEZED[match[1].lower()]


_SPELLED: tuple[tuple[LatePattern, str | Callable[[re.Match[str]], str]], ...] = (
    (LatePattern(r"[’‘`]"), "'"),
    (LatePattern(r"\b(?:can't|cannot)\b", re.I), "can not"),
    (LatePattern(r"\bwon't\b", re.I), "will not"),
    (LatePattern(r"\bain't\b", re.I), "is not"),
    (LatePattern(r"n't\b", re.I), " not"),
    (LatePattern(r"\b(dont|doesnt|didnt|isnt|arent|wont|cant|havent|hasnt)\b", re.I), _unsqueezed),
    (LatePattern(r"\b(?:I'm|im)\b", re.I), "I am"),
    (LatePattern(r"\b(?:ive)\b", re.I), "I have"),
    (LatePattern(r"\b(we|you|they)'re\b", re.I), r"\1 are"),
    (LatePattern(r"\b(i|we|you|they)'ve\b", re.I), r"\1 have"),
    (LatePattern(r"\b(i|we|you|they|he|she|it|that)'ll\b", re.I), r"\1 will"),
    (LatePattern(r"\b(i|we|you|they|he|she)'d\b", re.I), r"\1 would"),
    (LatePattern(r"\b(he|she|it|that|there|here|who|what|where)'s\b", re.I), r"\1 is"),
    (LatePattern(r"(\w)'s (been|got|gone|become|moved|died|passed|left|quit|started|taken|had)\b", re.I), r"\1 has \2"),
    (LatePattern(r"\s+"), " "),
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

NOT_NAMES = frozenset(
    """you it he she they we i this that these those there what who how if so and but the my our your his her their no
    yes not ok okay well then also just now oh when where why please thanks actually since as in on at from for to
    by with after before because while until today tomorrow yesterday monday tuesday wednesday thursday friday
    saturday sunday january february march april may june july august september october november december finally
    recently currently sorry hey hi update correction btw fyi turns by still quick small big good great bad new last
    next every each all some any one two three first second never always maybe perhaps got had has have been went
    moved quit switched started stopped changed sold bought left joined decided cancelled canceled remember note
    scrap forget don do does did is are was were can could would should will let make""".split()
)
_STOPS = (
    r"(?!(?:is|are|was|were|be|been|has|have|had|will|would|can|could|should|must|lives?|lived|works?|worked|and|"
    r"but|who|that|which|"
    r"just|now|also|does|do|did|got|moved|started|joined|quit|left|costs?|runs?|goes|needs?|takes?|used|said|says|"
    r"thinks?|told|"
    r"bought|sold|gave|wants?|likes?|loves?|hates?|eats?|drives?|became|came|went)\b)"
)
_SUBJECT = LatePattern(
    r"\b(?P<me>I|we|me and \w+)\b"
    rf"|\b(?P<of>my|our|his|her|their)\b(?P<thing>(?: {_STOPS}[\w'-]+){{0,4}})"
    r"|\b(?P<other>he|she|they|you|it)\b"
    rf"|\b(?P<the>(?:the|this|that|these|those|a|an)\b(?: {_STOPS}[\w'-]+){{1,6}})"
    rf"|(?P<name>\b(?-i:[A-Z])[\w-]+(?: (?-i:[A-Z])[\w-]+)?)(?P<of_name>'s(?: {_STOPS}[\w'-]+){{1,3}})?",
    re.IGNORECASE,
)
_NAME = LatePattern(r"[A-Z]")


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
    if whose := match["of"]:
        of = {"my": "my", "our": "my"}.get(whose.lower(), f"@{whose.lower()}")
        return f"{of} {_stemmed(match['thing'])}".strip() if match["thing"] else (ME if of == "my" else of)
    if match["the"]:
        return f"the {_stemmed(match['the'].partition(' ')[2])}"
    name = match["name"]
    if not _NAME.match(name) or name.split()[0].lower() in NOT_NAMES:
        return ""
    return f"{name.lower()} {_stemmed((match['of_name'] or '').removeprefix(chr(39) + 's'))}".strip()


def _stemmed(words: str) -> str:
    return " ".join(stem(word) for word in words.lower().split())


# Values

_CUT = LatePattern(
    r"[,;!?()\n—–]|\.(?!\d)|\s-\s|: | (?:but|because|since|so|which|where|who|when|while|although|though|if|"
    r"unless|until|"
    r"now|these days|nowadays|and (?:i|we|my|he|she|they|it|am|is|have|has|the|work|works|live|lives|moved|"
    r"started|quit)|"
    r"instead|rather than|any ?more|again|for now|right now|at the moment|from now on|as of|starting|last|next|"
    r"this (?:week|month|year|spring|summer)|a (?:week|month|year|while|few)|after|before|with (?:my|our|the))\b.*",
    re.IGNORECASE,
)
_EMPTY = frozenset(
    """a an the my our your his her their its this that these those is are was were be been am of in on at to for with
    by as and or it i we you he she they me us him them so very really quite now currently also just still already
    only actually finally about around roughly approximately ca new old current please""".split()
)


def value_of(text: str) -> frozenset[str]:
    text = _CUT.split(text, maxsplit=1)[0]
    words = [word.lower() for word in WORD.findall(text)][:_MOST_VALUE]
    return frozenset(stem(word) for word in words if word not in _EMPTY)


# Reading

_LEAD = (
    r"(?:(?:really|also|always|usually|actually|now|just|currently|still|already|recently|finally|both|mostly|only|"
    r"since) )*"
)
_IS = (
    r"(?: (?:is|are|was|will be|has become|became|changed to|has changed to|is now|are now|has been|went (?:up|"
    r"down) to|"
    r"goes (?:up|down) to|rose to|fell to|dropped to|was (?:raised|lowered|changed|set|cut|increased|reduced|moved|"
    r"pushed|bumped) to|got (?:raised|lowered|changed|cut|bumped) to|increased to|moved to|switched to|to be))"
)
_UNSURE = LatePattern(
    r"\b(?:if|unless|maybe|perhaps|might|may|could|would|should|suppose|supposing|whether|imagine|pretend|"
    r"thinking (?:about|of)|"
    r"(?:i|sometimes i|we) think about|consider(?:ing)?|wonder(?:ing)?|hope to|hoping|wish|planning to|dream(?:s|"
    r"ing)? of|"
    r"probably|possibly|not sure|in case|what if|let us say|looking (?:at|for|into)|interested in|one day|some ?day|"
    r"remember (?:my|our|when|how)|would love|haven't decided|almost|nearly|dream(?:t|ed)|kidding|joking|(?:but|"
    r"and) moved back|"
    r"as my character|said my|my \w+ said|says my|next (?:week|month|year|summer|winter|spring|autumn|term)|"
    r"role-?play)\b(?! have to\b)"
    r"|\bwhen (?:i|we) (?:win|retire|grow)\b",
    re.IGNORECASE,
)
"""Says that something is not so, or not sure."""
_PAST = LatePattern(
    r"\b(?:used to|was (?:in|at)|lived|worked|as a (?:kid|child|teenager|student)|years? (?:ago|back|before)|"
    r"back (?:then|in|when)|"
    r"once|before that|(?:my|our|her|his) (?:first|former|old|previous|late) \w+ (?:was|were|had)|in my (?:teens|"
    r"twenties|thirties|youth)|"
    r"(?:in|since|until) (?:19|20)\d\d|when (?:i|we) (?:was|were)|the (?:summer|winter|year) before|grew up|"
    r"back when)\b",
    re.IGNORECASE,
)
"""Tells of a time that is over, and nothing of now."""
_FOR_NOW = LatePattern(
    r"\b(?:this (?:week|weekend|month|summer|morning|afternoon|evening|time)|today|tonight|tomorrow|for (?:now|"
    r"a (?:few|"
    r"couple|while|week|month|day)|the (?:week|weekend|day|moment|summer|winter)|(?:two|three|four|five|six|"
    r"\d+) (?:days|"
    r"weeks|months)|a couple of)|until|till|temporar\w+|at the moment|on (?:holiday|vacation|business|a trip)|visiting|"
    r"in (?:the )?(?:summers?|winters?|spring|autumn)|(?:on|at) (?:weekends|the weekend|christmas|night|(?:mon|"
    r"tues|wednes|thurs|"
    r"fri|satur|sun)days)|during the week|every (?:summer|winter|weekend)|for lent|over christmas|crashing|"
    r"house-?sitting|subletting|filling in|covering for|just (?:this|for)|over the (?:weekend|holidays|"
    r"summer))\b",
    re.IGNORECASE,
)


class ReadStatement(NamedTuple):
    """A statement, read once."""

    text: str
    claims: tuple[Claim, ...]
    unsure: bool
    """Whether it asks, supposes, remembers or plans: what it says is not so now."""
    temporary: bool


@lru_cache(maxsize=8192)
def read(text: str) -> ReadStatement:
    """What a text says. Only the first sentences of a long one are looked at."""
    head = prefix(text)
    speaker, body = (head[0].lower(), text[head[1] :]) if head else ("", text)
    claims: list[Claim] = []
    unsure = temporary = False
    for sentence in sentences(body)[:6]:
        if sentence.code or len(sentence.text) > _LONGEST:
            continue
        if (code := _other_language(sentence.text, body)) and not sentence.text.endswith("?"):
            claims += [Claim(*value) for value in slot_values(sentence.text, code)]
            unsure = unsure or is_unsure(sentence.text, code)
            temporary = temporary or is_temporary(sentence.text, code)
            continue
        plain = spelled(sentence.text)
        if plain.endswith("?"):
            unsure = True
            continue
        claims += _claims(plain)
        temporary = temporary or _FOR_NOW.search(plain) is not None
    unsure = unsure or any(pattern.search(spelled(body)) for pattern in (_UNSURE, _PAST))
    if speaker:
        claims = [claim._replace(owner=speaker if claim.owner == ME else claim.owner) for claim in claims]
    return ReadStatement(text, tuple(dict.fromkeys(claims)), unsure, temporary)


def _other_language(sentence: str, text: str) -> str:
    """The code of a language with slots of its own that a sentence is in, or nothing if it is read as English."""
    code = language_of(sentence)
    code = language_of(text) if code == UNKNOWN else code
    return code if code not in ("en", UNKNOWN) and language(code).slots else ""


def _claims(sentence: str) -> Iterator[Claim]:
    low = sentence.lower()
    taken: set[tuple[str, str]] = set()
    for form in _forms():
        if not any(word in low for word in form.gate):
            continue
        for match in form.pattern.finditer(sentence):
            claim = form.claim(sentence, match)
            if claim is not None and (claim.owner, claim.slot) not in taken:
                taken.add((claim.owner, claim.slot))
                yield claim


_NAMED = LatePattern(r"(?:now |currently )?(?:the )?(?:[A-Z]|\d)")
_WITHOUT_CAPITALS = LatePattern(r"[a-z]+(?: last| this| now| for good| with|[,.!]|$)")
_TOOLS = LatePattern(
    r"(?:the )?(?:linux|vim|neovim|emacs|windows|mac(?:os)?|python|java|go|rust|postgres\w*|mysql|sqlite|aws|azure|gcp|"
    r"slack|teams|notion|obsidian|github|gitlab|docker|kubernetes|react|vue|typescript|javascript|vs ?code|"
    r"firefox|chrome|"
    r"android|ios|iphone|night|home|fear|peace)\b",
    re.IGNORECASE,
)
"""What people move to, or live in, that is no place."""


def _is_name(value: str, sentence: str) -> bool:
    """Whether a value begins as a name does. Of those who write no capitals, a single word may be one."""
    if _TOOLS.match(value):
        return False
    return bool(_NAMED.match(value)) or (sentence.islower() and bool(_WITHOUT_CAPITALS.match(value)))


class _Form(NamedTuple):
    """One way to tell one slot."""

    slot: str
    spec: Slot
    way: str
    pattern: re.Pattern[str]
    gate: tuple[str, ...]

    def claim(self, sentence: str, match: re.Match[str]) -> Claim | None:
        of = (match.groupdict().get("of") or "").strip().lower()
        slot = f"{self.slot} {stem(of)}" if of else self.slot
        if self.way == "noun":
            owner = _of_noun(match)
        else:
            owner = ME if self.spec.answers else owner_before(sentence, match.start())
        if self.way == "ends":
            return Claim(owner, slot, frozenset(), self.spec.single, ended=True)
        if self.spec.capital and self.way == "verb" and not _is_name(match["value"], sentence):
            return None
        if self.slot == "name" and not _NAMED.match(match["value"]) and not sentence.islower():
            return None
        if owner == "@you" or (self.slot in ("age", "height") and owner.startswith("the ")):
            return None
        value = value_of(match["value"])
        denied = bool(
            re.search(r"\b(?:not|never|no longer|stopped|quit)\b(?: \w+){0,2} ?$", sentence[: match.start()])
        ) or bool(re.match(r"\s*not\b", match["value"]))
        return Claim(owner, slot, value - {"not"}, self.spec.single, denied=denied) if value - {"not"} else None


def _of_noun(match: re.Match[str]) -> str:
    whose = (match["whose"] or "my").strip().lower()
    if whose in ("my", "our"):
        return ME
    if whose == "the":
        return "the"
    if whose in ("his", "her", "their"):
        return {"his": "@he", "her": "@she", "their": "@they"}[whose]
    if whose.startswith(("my ", "our ")):
        return "my " + " ".join(stem(word) for word in whose.removesuffix("'s").split()[1:])
    return whose.removesuffix("'s")


_WHOSE = (
    r"(?:(?<!of )(?<!for )(?<!with )(?P<whose>my (?:[\w'-]+ ){0,3}?[\w-]+'s|(?-i:[A-Z])[\w-]+'s|my|our|his|her|"
    r"their|the) (?:new |current |own )?"
    r"|(?P<lead>(?:^|[\n,;:] ?)(?:[-*•] )?))"
)


@cache
def _forms() -> tuple[_Form, ...]:
    forms: list[_Form] = []
    for name, slot in english().slots.items():
        for pattern in slot.ends:
            forms.append(_Form(name, slot, "ends", re.compile(rf"\b{_LEAD}(?:{pattern})", re.I), _gate(pattern)))
        for noun in slot.noun:
            form = rf"{_WHOSE}{noun}(?:(?(lead)(?: ?[:=]| -)|{_IS})) ?(?P<value>.+)"
            forms.append(_Form(name, slot, "noun", re.compile(rf"(?:^|(?<=\W)){form}", re.I), _gate(noun)))
        for verb in slot.verb:
            forms.append(
                _Form(name, slot, "verb", re.compile(rf"\b(?:{verb})(?=\W|(?<=\W)) ?(?P<value>.+)", re.I), _gate(verb))
            )
    return tuple(forms)


def _gate(pattern: str) -> tuple[str, ...]:
    """Letters of which a sentence must have some for the pattern to match it: cheaper to ask than the pattern."""
    plain = re.sub(r"\(\?P<\w+>|\\x\w\w|\\[a-zA-Z]|\[[^\]]*\]|\w\?", " ", pattern)
    return tuple(dict.fromkeys(re.findall(r"[a-zé]{2,}", plain))) or ("",)
