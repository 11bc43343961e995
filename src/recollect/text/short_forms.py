"""What a short form may stand for: Bob for Robert, Kathi for Katharina, PLI for public liability insurance, k8s."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

_NICKNAMES = """
abby abigail|al albert alan alfred alexander|alex alexander alexandra alexis|allie alice allison|andy andrew andreas
angie angela angelina|annie ann anna anne|art arthur|barb barbara|bea beatrice beatrix|becky rebecca|bella isabella
ben benjamin benedict|bernie bernard|bert albert herbert robert|bess elizabeth|beth elizabeth bethany|betty elizabeth
bill william|billy william|bob robert|bobby robert|brad bradley|bram abraham|cathy catherine|charlie charles charlotte
chris christopher christian christine christina|chuck charles|cindy cynthia lucinda|connie constance|dan daniel
danny daniel|dave david|deb deborah|debbie deborah|dee deirdre|denny dennis|dick richard|dolly dorothy|don donald
dora dorothea theodora|doug douglas|drew andrew|ed edward edwin edmund|eddie edward edwin|ellie eleanor elizabeth
emmy emma emily|ernie ernest|evie eve evelyn|fran frances francis|frank francis franklin
fred frederick friedrich alfred|gabe gabriel|gabi gabriele gabriela|gene eugene|george georgina|gerry gerald gerard
gina regina georgina|ginny virginia|greg gregory|greta margaret margarete|gus augustus gustav|hal harold henry
hank henry|hannes johannes|hans johannes|harry henry harold|heidi adelheid|ina katharina|jack john jackson
jackie jacqueline|jake jacob|jamie james|jan johannes|jeff jeffrey geoffrey|jen jennifer|jenny jennifer
jerry gerald jeremy jerome|jess jessica|jim james|jimmy james|jo joanna josephine|joe joseph|joey joseph|johnny john
jon jonathan|josh joshua|judy judith|kat katherine|kate katherine catherine|kathi katharina|kathy katherine kathleen
katie katherine|kay kayleigh katherine|ken kenneth|kim kimberly|kit christopher|klaus nikolaus|larry lawrence laurence
lena helena magdalena|lenny leonard|leo leonard leopold|lexi alexandra|lilli elisabeth lilian|lisa elisabeth elizabeth
liz elizabeth|lizzie elizabeth|lou louis louise|lucy lucia|maddie madeleine madison|maggie margaret|mandy amanda
marge margaret|marty martin|matt matthew matthias|max maximilian maxwell|meg margaret megan|mel melanie melissa
mia maria|mick michael|mickey michael|mike michael|millie mildred emily|mindy melinda|moe maurice moses|molly mary
nan nancy anne|nat nathan natalie nathaniel|ned edward|nell eleanor helen helena|nick nicholas nicolas nikolaus
nicky nicole nicholas|nina antonina|nora eleanor leonora honora|pam pamela|pat patrick patricia|patty patricia
peggy margaret|penny penelope|pete peter|phil philip phillip|polly mary pauline|randy randall|ray raymond
reggie reginald|rich richard|rick richard frederick|ricky richard|rob robert|robbie robert|rod roderick rodney
ron ronald|ronnie ronald veronica|rosie rose rosemary|rudi rudolf|rusty russell|sally sarah|sam samuel samantha
sandy sandra alexander|sasha alexander alexandra|seb sebastian|sepp josef|sid sidney|steffi stefanie
steph stephanie stephen|steve steven stephen|stu stuart|sue susan suzanne|susi susanne|suzie susan|ted edward theodore
teddy edward theodore|terry terence theresa|tess theresa|tessa theresa|theo theodore|tilly matilda|tim timothy
tina christina martina|toby tobias|tom thomas tomas|tommy thomas|toni antonia anton|tony anthony antonio|tracy theresa
trish patricia|uli ulrich ulrike|ursel ursula|val valerie valentine|vicky victoria|vince vincent|viv vivian
wally walter wallace|wendy gwendolyn|will william|willy william wilhelm|zach zachary|zoe zoey
"""
_ENDING = re.compile(r"(?:ie|y|i|s|o)$")
_DOES = r"(?:['’]s?\b| (?:is|was|has|had|will|can|[a-z]+s|[a-z]+ed)\b)"
"""What makes the first word of a sentence a name: somebody does something."""
_NUMERONYM = re.compile(r"([a-z])(\d{1,2})([a-z])")
_SMALL = frozenset("of and the for in on to at by de und der des von für".split())
_COMMON = frozenset(
    "a an i is are was were be has have had my our your his her its their it he she we you they".split()
)
_INITIAL_WORD = re.compile(r"\w+")
_LONGEST = 64
_LEAST_BEGINNING = 3
_MOST_INITIALS = 6


@cache
def _nicknames() -> dict[str, list[str]]:
    names = (entry.split() for entry in re.split(r"[|\n]", _NICKNAMES) if entry)
    return {short: full for short, *full in names}


def full_names(word: str) -> list[str]:
    """The names that somebody who is called so mostly has."""
    return _nicknames().get(word.lower(), [])


def name_beginning(word: str) -> str | None:
    """What a longer name begins with: "sam", and "deb" for "Debbie". None if too little is left."""
    bare = _ENDING.sub("", word.lower())
    if len(bare) > _LEAST_BEGINNING and bare[-1] == bare[-2]:
        bare = bare[:-1]
    beginning = bare if len(bare) >= _LEAST_BEGINNING else word.lower()
    return beginning if len(beginning) >= _LEAST_BEGINNING and beginning.isalpha() else None


def longer_name(word: str, texts: Iterable[str]) -> str | None:
    """The name that most texts have of those that begin so."""
    beginning = name_beginning(word)
    if beginning is None:
        return None
    begins = beginning[0].upper() + beginning[1:]
    name = re.compile(rf"(?:(?<=[\w,;:] )|\b(?={begins}\w{{1,24}}{_DOES}))({begins}\w{{1,24}})\b")
    names = Counter(match for text in texts for match in set(name.findall(text)) if match.lower() != word.lower())
    return min(names, key=lambda other: (-names[other], other)) if names else None


def may_be_initials(word: str) -> bool:
    return bool(_patterns(word)) or _are_initials(word)


def stands_for(short: str, text: str) -> str | None:
    """The words of a text that a short form has the initials of, or begins and ends as: as they are written."""
    for pattern in _patterns(short):
        if match := pattern.search(text):
            return match[0]
    return _with_initials(short.lower(), text) if _are_initials(short) else None


def _are_initials(word: str) -> bool:
    return word.isupper() and word.isalpha() and 2 <= len(word) <= _MOST_INITIALS


def _patterns(short: str) -> list[re.Pattern[str]]:
    """One word, in time linear in the text: k8s for Kubernetes, GQL for GraphQL."""
    if numbered := _NUMERONYM.fullmatch(short.lower()):
        first, number, last = numbered.groups()
        return [re.compile(rf"\b{first}\w{{{number}}}{last}\b", re.IGNORECASE)]
    return [re.compile(r"\b" + "[a-z]{0,24}".join(short) + r"[a-z]{0,24}\b")] if _are_initials(short) else []


def _with_initials(letters: str, text: str) -> str | None:
    words = [(match[0], match.start(), match.end()) for match in _INITIAL_WORD.finditer(text)]
    for begin, (word, start, _) in enumerate(words):
        if word[0].lower() != letters[0] or word.lower() in _SMALL:
            continue
        place, end, run = 1, words[begin][2], [word]
        for other, begins, ends in words[begin + 1 : begin + 2 * _MOST_INITIALS]:
            if text[end:begins] not in (" ", "-", " & "):
                break
            end = ends
            if other.lower() not in _SMALL:
                if place == len(letters) or other[0].lower() != letters[place]:
                    break
                place, run = place + 1, [*run, other]
            if place == len(letters):
                break
        if place == len(letters) and end - start <= _LONGEST and _are_nouns(run):
            return text[start:end]
    return None


def _are_nouns(words: Sequence[str]) -> bool:
    """As far as that can be seen: "public liability insurance", but not "Peter likes ice"."""
    return not any(word.lower() in _COMMON for word in words) and not any(
        word.islower() and word.endswith("s") and not word.endswith("ss") for word in words[:-1]
    )
