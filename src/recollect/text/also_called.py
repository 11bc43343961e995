"""Two names for one thing, where an English text says so: "Robert, also called Bob"."""

from __future__ import annotations

import re

_SIGNS = ("called", "known", "aka", "a.k.a", "AKA", "goes by", "short for")
"""One of these is in every text that is read more closely."""
_WORD = r"[\w+#-]{1,40}"
_NAME = r"[A-Z0-9][\w+#-]{0,40}(?: [A-Z0-9][\w+#-]{0,40}){0,3}"
_THING = r"\b(?:[Tt]he|[Mm]y|[Oo]ur|[Hh]is|[Hh]er|[Tt]heir|[Aa]n?) (?P<thing>[\w-]{1,40}(?: [\w-]{1,40}){0,2}?)"
_ALSO = r"(?:also|otherwise|sometimes|often|usually|better) (?:called|known as|referred to as)"
_SAYS = (
    rf",? \(?(?:(?:(?:is|are|was|were) )?{_ALSO}|aka|a\.k\.a\.|AKA|goes by(?: the name(?: of)?)?|(?:is )?short for) "
)
_OBJECT = r"(?:the|my|our|his|her|their|an?) (?P<object>[\w-]{1,40}(?: [\w-]{1,40}){0,2})(?=[^\w\s]|$)"
_OTHER = rf"""(?:["“'‘](?P<quoted>[^"“”'‘’\n]{{1,80}})["”'’]|{_OBJECT}|(?:the )?(?P<other>{_NAME}|{_WORD}))"""
_PAIR = re.compile(rf"(?:{_THING}|(?<![\w+#-])(?P<name>{_NAME}|{_WORD})){_SAYS}{_OTHER}")
_ITS_NAME = re.compile(rf"(?:^| )({_NAME})$")
"""The name at the end of what is called so: Tommy of "dog Tommy"."""
_NO_NAMES = frozenset(
    """a about after and at by for from he her him his i in is it me my off on or our out she so that the their them
    then they this to up us was we were what which who with you your""".split()
)


def also_called(text: str) -> list[tuple[str, str]]:
    """The pairs of names that a text gives."""
    if not any(sign in text for sign in _SIGNS):
        return []
    pairs: list[tuple[str, str]] = []
    for match in _PAIR.finditer(text):
        name, other = match["thing"] or match["name"], match["quoted"] or match["object"] or match["other"]
        if (own := _ITS_NAME.search(name)) is not None:
            name = own[1]
        if name.lower() not in _NO_NAMES and other.lower() not in _NO_NAMES:
            pairs.append((name, other))
    return pairs
