"""Who speaks in a turn: the user, or somebody whom the user plays. A play goes on over turns until it is ended."""

from __future__ import annotations

import re
from typing import NamedTuple

from recollect.text.late_pattern import LatePattern
from recollect.text.statements.material_lines import LeftBlock


class Scene(NamedTuple):
    """Where a conversation stands after a turn."""

    playing: bool = False
    brackets: bool = False
    """Whether the user said that only what stands in brackets is meant."""
    unmarked: int = 0
    """How many turns of a play had nothing that tells it: no stage directions and no quotation marks."""


_STARTS = LatePattern(
    r"\b(?:let'?s|let us) (?:play|role-?play|pretend|practi[sc]e then)\b|\brole-?play\b|\bpretend (?:you|to be|"
    r"i'm|that)|"
    r"^(?:please |now |ok(?:ay)?,? )*(?:act|speak|talk|answer) (?:as|like) (?:a|an|my|the|if)\b|\b(?:stay|"
    r"remain) in character\b|"
    r"^(?:now |ok(?:ay)?,? )*be (?:the|my) \w+, (?:and )?i(?:'m| am)\b|\byou play (?:the |a |an |my |[A-Z])|"
    r"\byou be (?:the|my|a|an) \w+|"
    r"\bi(?:'m| am) [^.!?,]{2,30},? (?:and )?you(?:'re| are) (?:(?:my|an?|the) (?!best\b|only|one\b|legend|star|"
    r"bit|great)|(?-i:[A-Z]\w+))",
    re.I | re.M,
)
_CASTS = LatePattern(
    r"(?:^|[.!?] |\(\()(?:[Oo]k(?:ay)?,? |[Nn]ow,? |[Ss]o,? )*[Yy]ou(?:'re| are) (?:now )?(?:(?:a|an|the|"
    r"my) (?!best\b|legend|star|genius|"
    r"angel|life ?saver|absolute|total|real|gem|hero|treasure|great|very|good|bit|machine\b|bot\b|lot)[a-z]+|"
    r"(?:Mr|Mrs|Ms|Dr|Sir|Lady|"
    r"Lord|Brother|Sister|Captain|Professor)\b|[A-Z][a-z]+ (?:tonight|now|today))"
)
"""Gives the assistant a part."""
_BRACKETS = LatePattern(r"\(\(\s*\)\)|\b(?:double )?(?:brackets|parenthes[ei]s)\b", re.I)
_MEANT = LatePattern(r"\(\(\s*(.+?)\s*\)\)|\b(?:ooc|out of character)[:,]\s*(.+)", re.I | re.S)
_ENDS = LatePattern(
    r"\b(?:curtain|real (?:world|life)|back to (?:reality|real|normal|work|business)|out of character|"
    r"end (?:of )?(?:the )?"
    r"(?:scene|play|role-?play|game)|(?:stop|enough|no more) (?:of )?(?:the |this |with the )?(?:theatre|theater|"
    r"role-?play\w*|pretending|game|play)|"
    r"(?:that|it) was (?:\w+ )*(?:fun|great|brilliant|useful|helpful|good practice)|to (?:pleasanter|other|"
    r"serious) things|"
    r"(?<!.)(?:(?:ha){2,4}|lol|lmao|love it|thanks|thank you)|"
    r"(?:ok(?:ay)?|right|now|anyway),? (?:but )?(?:seriously|serious now|for real)|(?:thanks|"
    r"thank you),? (?:that|for playing))\b",
    re.I,
)
_NO_PLAY = LatePattern(r"\bno (?:theatre|theater|role-?play\w*|games?|pretending)\b", re.I)
_MARKED = LatePattern(r"^\s*[\"“*(]|\*[a-z][^*\n]{2,}\*", re.I)
_FANTASY = LatePattern(
    r"^\s*\*[a-z][^*\n]{3,}\*|"
    r"\b(?:hit points|half[- ](?:orc|elf)|\d+d(?:4|6|8|10|12|20)\b|i cast \w+|level \d+ (?:wizard|cleric|rogue|"
    r"ranger|paladin|bard|"
    r"druid|sorcerer|warlock|monk|fighter)|lvl \d+)\b|"
    r"\bi(?:'m| am) (?:also )?(?:the|an?) (?:queen|king|emperor|empress|pope|tsar|wizard|witch|vampire|dragon|"
    r"elf|orc|god|goddess|"
    r"pirate|ghost|robot|ai|time travell?er|knight|parrot|alien|unicorn|mermaid)\b",
    re.I,
)
_LONGEST_UNMARKED = 1


def spoken_by_user(text: str, before: str, scene: Scene) -> tuple[str, tuple[LeftBlock, ...], Scene]:
    """What of a turn the user means, what belongs to a part that is played, and where that leaves the conversation."""
    after = _after(text, before, scene)
    fantasy = _FANTASY.search(text) is not None
    meant = [(first or second).strip() for first, second in _MEANT.findall(text)]
    if scene.playing and _ENDS.search(text):
        return " ".join(meant) if meant else text, (), after
    if not (scene.playing or after.playing or fantasy):
        return ("\n".join(meant) if scene.brackets and meant else text), (), after
    if after.brackets and not scene.brackets and not _STARTS.search(text):
        return text, (), after
    own = "" if _CASTS.search(" ".join(meant)) or _STARTS.search(" ".join(meant)) else "\n".join(meant)
    return own, (LeftBlock("a part that is played", text),), after


def _after(text: str, before: str, scene: Scene) -> Scene:
    brackets = scene.brackets or (_BRACKETS.search(text) is not None and "myself" in text.lower())
    if _NO_PLAY.search(text) or (scene.playing and _ENDS.search(text)):
        return Scene(False, brackets)
    part = _CASTS.search(text) is not None and re.search(r"\bi(?:'m| am)\b|[\"“]", text, re.I) is not None
    if _STARTS.search(text) or part:
        return Scene(True, brackets)
    if not scene.playing:
        return Scene(False, brackets)
    marked = bool(_MARKED.search(text) or _MARKED.search(before))
    unmarked = 0 if marked else scene.unmarked + 1
    return Scene(unmarked <= _LONGEST_UNMARKED, brackets, unmarked)
