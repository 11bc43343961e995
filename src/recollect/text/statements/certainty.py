"""How surely a sentence says what it says: stated, asked, supposed, of strangers, or about the memory itself."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from recollect.text.late_pattern import LatePattern

Certainty = Literal["stated", "asked", "supposed", "hearsay", "about the memory", "secret"]

_LEAD = (
    r"^(?:(?:and|so|but|also|ok(?:ay)?|hey|hi|well|then|oh|ah|please|pls|just|actually|wait|no|yes|btw|hmm+|lol|"
    r"now|anyway|right),? )*"
)
_ASKS = (
    r"(?:who|whom|whose|what|what's|whats|which|where|where's|when|when's|why|how|how's|hows|is|are|am|was|were|"
    r"do|does|did|"
    r"can|could|would|should|shall|will|may|might|have|has|had|any)"
)
ASKED = LatePattern(
    rf"\?[\"'”’)\]*\s]*(?:[^\w\s]|x+)*$|{_LEAD}(?!when(?:ever)? (?:i|we|you) |what (?:i|we|my|our) [\w ]{2, 20}: )"
    rf"{_ASKS} (?:i|you|we|they|he|she|it|"
    rf"the|a|an|there|this|that|these|those|my|your|our|"
    r"is|are|was|were|do|does|did|can|could|would|should|to|about|many|much|long|often|far|old|else|some|idea|"
    r"thoughts|chance|"
    rf"one|ones|of|does|\w+ (?:for|to|on|about|with)|tips?|ideas|advice|anyone|good|best|kind|sort|\w+(?:'s|s)"
    rf"? (?:do|does|did|is|are|was|"
    rf"were|can|could|should|would|"
    rf"to|came|come)|dogs|cats|people)\b|{_LEAD}(?:whats|hows|wheres|whos|whens)\b|{_LEAD}(?:which|how come|"
    rf"what's|is|are|does) \w|{_LEAD}anyone know|{_LEAD}remind me (?:what|how|who|why|where|when|which|if)\b",
    re.I,
)
_SUPPOSED = LatePattern(
    rf"{_LEAD}(?:pretend\b|picture (?:this|it|a|an)\b|if\b.*\b(?:would(?:n't)?|could|'d)\b(?!.*\byou\b)|if (?:i|we|"
    rf"im|i'm|he|she|they|my|our|it|there|only|the|someone) (?!ever\b|ask|say|tell|don'?t|do not|"
    rf"need|forget|write|send|am\b)|"
    r"if i (?:was|were|had)\b|imagine\b|suppose\b|supposing\b|let'?s (?:say|assume|imagine|suppose)\b|say (?:a|"
    r"an|i|you|we)\b|"
    r"assum(?:e|ing) (?:i|we|you|that|a|an)\b|what if\b|had (?:i|we)\b|were (?:i|we) to\b|in (?:a|"
    r"another) (?:world|life|universe)\b|"
    r"for the sake of argument|hypothetical\w*|theoretically|in theory\b|take a (?:made-up|hypothetical|"
    r"fictional|imaginary)|"
    r"would (?:you|we) rather|one can dream)|"
    r"\bif (?:i|we) (?:was|were|had|won|could|earned|lived|owned|knew|ruled|became|got to|ever (?:won|"
    r"became))\b(?!.{0,30}\bask)|"
    r"\b(?:purely|just) (?:theoretical|hypothetical)|\bi'?d (?:jack it all in|rather be)\b",
    re.I,
)
"""Says how it would be. "If I ever ask you…" is a rule, and no supposition."""
_HEARSAY = LatePattern(
    r"\b(?:the|an?|this|that|some|there's this) (?:ad|article|sign|tiktok|video|lady|guy|blog|post|meme|book|"
    r"poster|headline|caption|"
    r"label|movie|film|song|quote|textbook|exercise|character|novel)\b[^.!?,]{0,40}\b(?:says?|said|goes|reads?|"
    r"claims?|states?|wrote|"
    r"writes)\b|\b(?:somebody|someone|a guy|some guy) on (?:reddit|twitter|x|facebook|the internet|quora|here)\b|“…”|"
    r"\b(?:posted|sent|wrote|pushed|forwarded|shared|writes?) (?:me |us )?this\b|^here(?:'s| is) what\b|"
    r"\bthis (?:arrives?|arrived|came|landed)\b|"
    r"\b(?:reply|respond) to this\b",
    re.I,
)
"""What a text or a stranger says. What a doctor or a friend says is told as a fact."""
ABOUT_MEMORY = LatePattern(
    rf"{_LEAD}(?:(?:can|could|would|will) you |i want you to |i(?:'d| would) like you to |you can |you should |"
    rf"let'?s )*"
    r"(?:please |pls |just )*(?:forget|erase|unlearn|unremember|disregard|scratch|"
    r"strike)\b(?! to\b)(?!.{0,12}\bme not\b)|"
    r"\b(?:delete|remove|erase|wipe|clear|scrub|purge|take|drop|lose|get rid of)\b[^.!?]{0,50}\b(?:you (?:know|"
    r"remember|have|saved|noted|"
    r"stored|kept)|(?:your|the|from) memory|from your (?:head|notes|memory|records)|out of your (?:head|notes|memory)|"
    r"(?:about|of) (?:me|my|us)\b|part about|lose it|it please$)|"
    r"\b(?:don'?t|do not|never|not to|no need to) (?:\w+ )?(?:remember|save|keep|store|note|log|record|"
    r"memori[sz]e|retain|hold on to|write down)\b"
    r"(?= (?:this|that|it|any|anything|nothing|a thing|the|what|my|of)\b)|\b(?:forget|forgot) (?:about )?(?:that|"
    r"what) i (?:said|told)|"
    r"\boff the record\b|\bnot for the record\b|\b(?:let|should|must|may) (?:that|this|it) not stay\b|"
    r"\b(?:not|n't|dont) (?:go|stay|end up|land|be) (?:here|in (?:your|the) (?:memory|notes|records?|file))\b|"
    r"\b(?:that|this|the) (?:stuff|thing|bit|part)\b[^.!?]{0,40}\b(?:scrap|bin|strike|lose|forget|drop) (?:it|that)\b|"
    r"\b(?:i don'?t want (?:it|this|that) (?:popping|coming|showing|"
    r"floating|turning)|"
    r"stop (?:bringing|mentioning|reminding))\b|\bplease (?:forget|lose|erase)\b|\bun-?know\b|\b(?:drop|"
    r"forget) it\b|\btake (?:that|this|it) off\b|\bwipe everything\b|"
    r"\b(?:don'?t|do not|no longer) want you (?:to )?(?:know|have|keep|store|hold|remember|hang)|"
    r"\bhold on to my\b|\b(?:never should have|should(?:n'?t| not| never) have) (?:told|said)\b|"
    r"\bstop (?:remembering|saving|storing|recording|taking notes)\b|\b(?:resume|restart|start) (?:note|"
    r"remembering|saving|recording)|\bremember (?:stuff|things) (?:as before|again|between)|\b(?:don'?t|"
    r"do not) take notes\b|\b(?:lose|drop|delete|forget) (?:it|that),? please\b|"
    r"^(?:no,? )?that(?:'s| is) (?:wrong|incorrect|not (?:right|true|correct|what i (?:said|meant)))[.!]*$|"
    r"\bpretend (?:you never|i never|that never)",
    re.I,
)
"""Asks to forget, to keep nothing, or to correct. Nothing of it is a fact."""
NOT_KEPT = LatePattern(
    r"\boff the record\b|\b(?:don'?t|do not|never) (?:put|add|write|take) (?:this|that|it)\b[^.!?]{0,20}\b(?:memory|"
    r"notes|"
    r"records?|file)\b|\b(?:don'?t|do not|never) (?:\w+ )?(?:remember|save|keep|store|note|log|record|"
    r"memori[sz]e|retain)\b"
    r"(?= (?:this|any(?:thing)?|nothing|a thing|what i)\b)",
    re.I,
)
"""Nothing of the turn is to be kept."""
NOTHING_KEPT = LatePattern(r"\b(?:this|the|our|whole|entire) (?:\w+ )?(?:conversation|chat|talk|session)\b", re.I)
_SECRET = LatePattern(
    r"\b(?:pass ?(?:word|phrase|code)|pass(?:wd)?(?= ?[:=])|pw|pwd|pin(?: (?:code|number))?|cvv|cvc|ssn|(?:api|"
    r"secret|access|private|recovery) ?_?key|"
    r"token|combination|combo|seed phrase|login|logged in with|security (?:code|answer)|one-time code|otp|"
    r"safe code|door code|"
    r"alarm code|gate code|unlock code)(?:'s)?\b(?=[^.!?]*(?:\d{3,}|\d\d-\d\d|[:=] ?\S{4,}|"
    r"\b\S*[A-Za-z]\S*[\d!@#$%^&*]\S*\b))|"
    r"\b(?:sk-|gh[pousr]_|xox[abp]-|eyJ|AKIA)[\w.-]{10,}|\bbearer \S{12,}|\b(?:p|pass|pw): ?(?=\S*[\d!])\S{5,}|"
    r"\b(?:safe|vault|locker|gate|alarm|padlock)\b[^.!?]{0,15}\b(?:opens? with|code|is|to)\b[^.!?]{0,8}\d\d[\d-]+|"
    r"\b(?:\d{4}[ -]){3}\d{4}\b|\b\d{3}-\d\d-\d{4}\b|\bcard (?:number )?\d{4}\b",
    re.I,
)
_INSIDE = (
    LatePattern(
        r"^(?:(?:so|and|but|ok(?:ay)?|hey|hi|well|oh|also),? )*(?:since|as|because|given that|"
        r"considering(?: that)?|seeing(?: as| that)?|now that|"
        r"being that|while|with|for|as someone with|as an?)\b,? (?!i (?:said|mentioned|"
        r"told)\b)(?P<told>.+?),? (?=(?:can|could|what|which|how|where|when|who|is|are|do|does|should|would|will|"
        r"any)\b(?!'))",
        re.I,
    ),
)
_AFTER_QUESTION = LatePattern(r"[,;:–—-]+ (?=(?:i'?m|i'?ve|i am|i have|my|we'?re|we'?ve|we are|we have|our)\b)", re.I)
_ASIDE = LatePattern(r"\((?P<told>(?:i'?m|i'?ve|i am|i have|my|we'?re|we'?ve|we are|we have|our)\b[^()]{4,})\)", re.I)
_TAIL = LatePattern(r",? (?:so|and|but|then)$", re.I)
_BEFORE_QUESTION = LatePattern(
    rf"[,;:–—-]+ (?:(?:so|and|but|also|then|any|now) )*(?={_ASKS}\b(?! (?:my|our|in|on|at|for|from|with|"
    rf"the kids)\b) )|[,;–—-]+ (?=(?:any|thoughts|tips|ideas|advice|suggestions|right|ok)\b)|"
    rf" (?:so|and|but) (?={_ASKS}\b (?:i|you|we|it|the|is|are|do|does|should|can|about|would)\b)",
    re.I,
)


_APPOINTED = LatePattern(
    r"\b(?:on|at|by) (?:the )?(?:\d|mon|tue|wed|thu|fri|sat|sun)|\b\d{1,2}(?::|st|nd|rd|th)\b", re.I
)


@lru_cache(maxsize=1024)
def certainty(sentence: str) -> Certainty:
    if _SECRET.search(sentence):
        return "secret"
    if ABOUT_MEMORY.search(sentence):
        return "about the memory"
    if ASKED.search(sentence):
        return "asked"
    if _SUPPOSED.search(sentence):
        return "supposed"
    return "hearsay" if _HEARSAY.search(sentence) else "stated"


def secret(sentence: str) -> bool:
    return _SECRET.search(sentence) is not None


def told_in_question(sentence: str) -> list[str]:
    """The parts of a question that state something: "Since I'm vegan, what can I cook?" states the first half."""
    for form in _INSIDE:
        if (inside := form.match(sentence)) and len(inside["told"].split()) > 1:
            return [sentence[: inside.end("told")].strip(" ,")]
    if aside := _ASIDE.search(sentence):
        return [aside["told"].strip(" ,")]
    parts = [part for half in _BEFORE_QUESTION.split(sentence) for part in _AFTER_QUESTION.split(half)]
    return (
        [_TAIL.sub("", part.strip(" ,;:–—-")) for part in parts if part.strip() and not ASKED.search(part)]
        if len(parts) > 1
        else []
    )


_CLAUSE = LatePattern(r"\s*[;–—]\s*|,? (?:and|anyway|but) (?=since|it|i\b|my|we\b|anyway)")
_OF_ONESELF = LatePattern(
    r"\b(?:i|i'm|im|i've|ive|my|mine|me|we|we're|our|us|mum|mom|dad|wife|husband|kids?|son|daughter)\b", re.I
)


def stated(sentence: str) -> list[str]:
    """What is stated of a sentence: itself, what a question tells besides, or what stands beside a secret."""
    if secret(sentence):
        return [clause for clause in _CLAUSE.split(sentence) if not secret(clause)]
    if not ASKED.search(sentence):
        return [sentence]
    parts = [part for part in told_in_question(sentence) if _OF_ONESELF.search(part) or _APPOINTED.search(part)]
    return parts or [sentence]
