"""How much a memory matters, judged from its words when it is stored."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Annotated, Literal

import msgspec

from recollect.values.errors import PresetError


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes the importance of a text in which `pattern` (a regular expression, in any case) occurs."""

    name: str
    pattern: str
    change: Annotated[float, msgspec.Meta(ge=-1.0, le=1.0)] = 0.0
    explicit: bool = False
    """Whether it means that the user asked to remember; then the importance is exactly 1.0."""


class Importance(msgspec.Struct, frozen=True, forbid_unknown_fields=True, cache_hash=True):
    base: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.5
    use: tuple[Literal["english"], ...] = ("english",)
    """Rule sets that come with recollect. With none of them and no rules, every memory gets `base`."""
    rules: tuple[Rule, ...] = ()


class Reason(msgspec.Struct, frozen=True):
    rule: str
    change: float


class Assessment(msgspec.Struct, frozen=True):
    """`base` and the changes add up to the score, kept within 0 and 1."""

    score: float
    reasons: tuple[Reason, ...] = ()
    explicit: bool = False


def assess(text: str, policy: Importance) -> Assessment:
    plan = _plan(policy)
    fired = _english(text) if plan.english else []
    for rule, search in plan.rules:
        if search(text):
            fired.append(rule)
    return _sum(policy.base, fired) if fired else plan.nothing


def small_talk(text: str) -> bool:
    """Whether it is greeting, thanks or assent in English, and nothing else."""
    return len(text) <= _SMALL_TALK_CHARS and bool(_small_talk()(" " + text.lower()))


def check(policy: Importance) -> None:
    """Raises PresetError if a pattern is not a regular expression."""
    _plan(policy)


def _sum(base: float, fired: list[Rule]) -> Assessment:
    for rule in fired:
        if rule.explicit:
            return Assessment(1.0, (Reason(rule.name, 1.0 - base),), explicit=True)
    score = base
    for rule in fired:
        score += rule.change
    # Rounded, because 0.5 + 0.2 + 0.1 should be 0.8 and not 0.7999999999999999.
    score = round(min(max(score, 0.0), 1.0), 9)
    return Assessment(score, tuple([Reason(rule.name, rule.change) for rule in fired]))


class _ScoringPlan(msgspec.Struct, frozen=True):
    english: bool
    rules: tuple[tuple[Rule, Callable[[str], object]], ...]
    nothing: Assessment


@lru_cache(maxsize=64)
def _plan(policy: Importance) -> _ScoringPlan:
    rules = tuple([(rule, _compile(rule)) for rule in policy.rules])
    return _ScoringPlan("english" in policy.use, rules, Assessment(policy.base))


def _compile(rule: Rule) -> Callable[[str], object]:
    try:
        return re.compile(rule.pattern, re.IGNORECASE).search
    except re.error as error:
        path = f"importance.rules.{rule.name}.pattern"
        raise PresetError(path, f"not a regular expression ({error}): {rule.pattern}") from None


# The English rules run on every memory stored. Each looks at the text in lower case with a space before every word, so
# that its pattern can begin with a space: a literal that the regular expression engine skips to. All of them are behind
# one gate of word beginnings, which ordinary text does not pass.

_CLAUSE = (
    r"(?:^ {0,4}|[.!?;:,–—-] {0,4}| (?:please|pls|plz|but|also|so|just|always|now|you to|(?:can|could|will|would) you"
    r"|(?:make|be) sure (?:to|(?:that )?(?:you|we))|let['’]?s|let us))"
)
# "You should remember this" asks for it; "he said you should remember this" tells what somebody else asked for.
_NOT_REPORTED = "".join(
    f"(?<! {words})"
    for words in ("said", "says", "told me", "told us", "claims", "claimed", "thinks", "thought", "said that",
                  "says that", "me that", "us that", "whether", "if", "why")
)  # fmt: skip
_ASKED_OF_YOU = (
    rf"{_NOT_REPORTED} (?:(?:you|we|u)(?:['’]ll|['’]d)? (?:should|must|need to|have to|has to|ought to|gotta|better|"
    r"had better|(?:might |may |will |would )?want to)(?: (?:really|always|definitely|also|please))?"
    r"|(?:important|good|great|nice|helpful|best|crucial|vital|worth it) (?:to|if (?:you|we)(?: could| can)?|"
    r"(?:that )?(?:you|we))"
    r"|(?:ok|okay|hey|hi|yes|well|oh|then|right|try to|try and|do|kindly|claude|assistant|and)"
    r"|if you (?:could|can|would|will)|(?:can|could) we) remember"
    r" (?:this\b|these\b|it[.!]|that (?:i|we|my|our)\b)"
    r"| (?:mind|worth) remembering (?:this|it)\b| (?:this|it) (?:should|must|has to|needs to) be remembered\b"
)

REMEMBER = Rule(
    "remember",
    rf"{_CLAUSE} (?:remember(?:,|:| (?:this|that|these|the|my|our|me|i|we|to|for|how|when|where|what|which)\b)"
    r"|(?:(?:do not|don['’]?t|never) forget)(?::| (?:this|that|these|the|my|our|about|to|i|we)\b)"
    r"|(?:keep|bear) (?:this|that|it )?.{0,40}\bin mind\b"
    r"|(?:commit|save|add) (?:this|that|it|the following) (?:to|in) (?:your |the )?memory\b)"
    rf"| (?:please|pls|plz),? remember\b|{_ASKED_OF_YOU}",
    explicit=True,
)
DECISION = Rule(
    "decision",
    r" (?=[acdgiorsw])(?<!not )(?<!n't )(?<!n’t )(?<!yet to )(?<!never )(?<!can )(?<!no )"
    r"(?:decided|decision|agreed (?:to|on|that|with)"
    r"|settled on|opted (?:for|to|out)|chose\b|chosen\b|concluded\b|ruled out|going with\b|go with\b"
    r"|(?:we|i)(?:'ll|’ll| will) (?:use|adopt|switch|go|keep|drop|move|stop|start)\b)",
    0.2,
)
# What was done, as a past form. After these words it was not done, or it describes a thing: "the finished product".
_NOT_DONE = (
    " not", "n't", "n’t", " never", " be", " being", " get", " gets", " are", " is", " usually", " well", " who",
    " if i had", "ould have", " nobody has", " nothing was", " the", " a", " an", " my", " his", " our",
)  # fmt: skip
_DONE = (
    "accepted", "added(?! sugar)", "applied for", "archived", "assigned", "backed up", "billed",
    "booked", "bought", "called (?:the|my|our|back|off)", "cancell?ed", "closed", "completed", "confirmed", "contacted",
    "created", "declined", "delegated", "deleted", "delivered", "deployed", "disabled", "downgraded", "drafted",
    "dropped off", "emailed", "e-mailed", "enabled", "escalated", "exported", "filed", "finished",
    "fixed(?! (?:costs?|prices?|rate|salary|income|term))", "forwarded", "handed (?:over|in|off)", "hired", "imported",
    "installed", "invoiced", "launched", "mailed", "merged", "migrated", "moved (?:the|my|our|all|everything|it|them)",
    "negotiated", "notified", "onboarded", "ordered", "organi[sz]ed the",
    "paid(?! (?:plans?|leave|vacation|holidays?|time|ads?|search|version|tier|accounts?|attention|work))", "picked up",
    "posted", "postponed", "presented (?:the|my|our)", "published", "purchased", "quit (?:the|my|his|her|their|our)",
    "refunded", "registered", "released", "removed", "renewed", "reopened", "repaired", "replaced", "replied",
    "rescheduled", "reset", "resolved", "restored", "returned", "reviewed(?! nothing)", "rolled back", "scheduled",
    "sent", "set up", "shared (?:the|my|our|it|them|this)", "shipped", "signed", "sold", "submitted", "terminated",
    "tested", "texted", "transferred", "unsubscribed", "updated", "upgraded", "uploaded", "wired",
)  # fmt: skip
_TO_DO = ("action items?", "todo:")


def _past_form(forms: Sequence[str]) -> str:
    letters = "".join(sorted({form[0] for form in forms}))
    return (
        rf" (?=[{letters}])"
        + "".join(f"(?<!{word} )" for word in _NOT_DONE)
        + rf"(?:{'|'.join(forms)})(?!\w)(?! that\b)(?![^.!?]{{0,200}}\?)"
    )


ACTION = Rule("action", _past_form((*_DONE, *_TO_DO)), 0.15)
DONE = _past_form(_DONE)
"""The pattern of ACTION without what is still to do; for texts as `spaced` gives them."""
APPROVAL = Rule(
    "approval",
    r" (?:(?:pre-|dis)?approv(?:ed?|al|als|es|ing)\b|reject(?:ed|s|ion)?\b|denied\b|signed off\b|sign-?off\b"
    r"|authori[sz](?:ed?|ation)\b|go-ahead\b|vetoed\b|green-?lit\b)",
    0.2,
)
_CURRENCIES = (
    "usd|eur|gbp|chf|jpy|inr|cad|aud|cny|sek|nok|dkk|pln|brl|dollars?|euros?|pounds sterling|cents|yen|yuan|rupees?"
    "|(?:swiss )?francs|quid|bucks|kron(?:or|er|a|e)|pesos?|zlot(?:y|ys|ych)"
)
MONEY = Rule(
    "money",
    r" (?:us|ca|au|nz|hk|r)?[$€£¥₹] ?\d|\d ?€| (?:usd|eur|gbp|chf|jpy|inr|cad|aud|cny|sek|nok|dkk|pln|brl) ?\d"
    rf"|\d[\d.,]{{0,20}} ?(?:k|m|bn|hundred|thousand|million|billion)? (?:{_CURRENCIES})\b"
    rf"| (?:hundred|thousand|million|billion) (?:{_CURRENCIES}|pounds)\b",
    0.2,
)
SMALL_TALK = Rule(
    "small_talk",
    r"\W*(?:(?:ok|okay|okey|k|kk|yes|yep|yeah|yup|no|nope|sure|right|alright|fine|cool|great|nice|perfect|awesome|"
    r"amazing|excellent|good|thanks|thank you|thank u|thx|ty|cheers|much|so|very|a lot|lots|again|welcome|hi|hey|hello|"
    r"yo|hiya|howdy|there|all|team|everyone|folks|guys|bye|goodbye|see you|see ya|later|soon|tomorrow|good morning|"
    r"morning|good evening|good afternoon|good night|how are you|how['’]?s it going|what['’]?s up|sup|i['’]?m|im|doing|"
    r"well|you too|you['’]?re welcome|no problem|np|no worries|my pleasure|sounds good|looks good|lgtm|got it|gotcha|"
    r"understood|noted|will do|i see|makes sense|fair enough|lol|lmao|rofl|haha(?:ha)*|hehe|heh|hmm+|ah|oh|wow|yay|"
    r"have a (?:nice|good|great) (?:day|one|weekend|evening)|and you|today|please|man|mate|[👍🙏😂🎉👌❤️😊😀🙂])"
    r"(?:\W+|$))+$",
    -0.35,
)
ENGLISH = (REMEMBER, DECISION, ACTION, APPROVAL, MONEY, SMALL_TALK)

_SMALL_TALK_CHARS = 80
_GATE: dict[str, tuple[str, ...]] = {
    "remember": ("rememb", "forget", "in mind", "commit ", "save ", "add "),
    "decision": ("decid", "decis", "agreed", "settled", "opted", "chose", "conclud", "ruled", "go with", "going with",
                 "we will", "we'll", "we’ll", "i will", "i'll", "i’ll"),
    "action": tuple([form.partition(" ")[0].partition("(")[0][:5] for form in (*_DONE, *_TO_DO)]),
    "approval": ("approv", "pre-approv", "disapprov", "reject", "denied", "signed", "sign-off", "signoff", "authori",
                 "go-ahead", "veto", "green"),
    "money": ("$", "€", "£", "¥", "₹", "us$", "ca$", "au$", "nz$", "hk$", "r$", "dollar", "euro", "pounds", "cent",
              "yen", "yuan", "rupee", "swiss", "franc", "quid", "bucks", "kron", "peso", "zlot", "hundred",
              "thousand", "million", "billion", "usd", "eur", "gbp", "chf", "jpy", "inr", "cad", "aud", "cny", "sek",
              "nok", "dkk", "pln", "brl"),
}  # fmt: skip
# What can stand before a word instead of a space. A new line or bracket also begins a clause.
_OPENERS = (("\n", "; "), ("(", "; "), ("\t", " "), ('"', " "), ("“", " "), ("*", " "), ("[", " "))


def spaced(text: str) -> str:
    """The text as the English rules read it: in lower case, with a space before every word."""
    low = " " + text.lower()
    for opener, space in _OPENERS:
        if opener in low:
            low = low.replace(opener, space)
    return low


def _english(text: str) -> list[Rule]:
    low = spaced(text)
    gate = _gate()
    words = gate.findall(low)
    if "€" in low:
        words.append(" €")
    fired: list[Rule] = []
    if words:
        names = {name for word in words for name in gate.names[word[1:]]}
        fired = [rule for rule, search in _searches() if rule.name in names and search(low)]
    if len(text) <= _SMALL_TALK_CHARS and not fired and _small_talk()(low):
        fired.append(SMALL_TALK)
    return fired


class _Gate(msgspec.Struct, frozen=True):
    findall: Callable[[str], list[str]]
    names: dict[str, list[str]]


@cache
def _gate() -> _Gate:
    names: dict[str, list[str]] = {}
    everything = [(word, name) for name, words in _GATE.items() for word in words]
    for word, _ in everything:
        # The search stops at the shortest word, "set", and a longer one, "settled", may belong to another rule.
        names[word] = [name for longer, name in everything if longer.startswith(word)]
    # Alternatives grouped by first letter: a word that begins with none of the letters costs a few comparisons.
    by_letter: dict[str, list[str]] = {}
    for word in sorted(names):
        by_letter.setdefault(word[0], []).append(re.escape(word[1:]))
    groups = "|".join(f"{re.escape(letter)}(?:{'|'.join(rest)})" for letter, rest in by_letter.items())
    return _Gate(re.compile(f" (?:{groups})").findall, names)


@cache
def _searches() -> tuple[tuple[Rule, Callable[[str], object]], ...]:
    return tuple([(rule, re.compile(rule.pattern).search) for rule in ENGLISH if rule is not SMALL_TALK])


@cache
def _small_talk() -> Callable[[str], object]:
    return re.compile(SMALL_TALK.pattern).match
