"""Parses a query: quoted phrases, wildcards, and the words that carry meaning."""

from __future__ import annotations

import re

from recollect.text.query import LETTER, TextQuery

_PHRASE = re.compile(r'"([^"]+)"|“([^“”]+)”')
_TOKEN = re.compile(rf"(?:{LETTER}|[*?])+")
_WORD = re.compile(f"{LETTER}+")
_EMOJI = re.compile("[\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]")
"""Symbols and emoji, without the skin tone modifiers: a query for a thumb finds thumbs of every colour."""
_MOST = 16
"""Phrases, and patterns, of one query. More would only keep the store busy."""
_LONGEST_PATTERN = 64
"""Characters. Nobody types a longer pattern, so a longer run of letters and stars is read as words."""

_STOP_WORDS = frozenset(
    """a about an and are as at be been by can could did do does for from had has have how i if in into is it its me my
    of on or our please should so tell than that the their them then there these they this to us was we were what when
    where which who whom whose why will with would you your""".split()
)
"""English stop words. They count only if a query has no other words."""


_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz_")


def parse_query(query: str) -> TextQuery:
    phrases: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    if '"' in query or "“" in query:
        quoted = list(dict.fromkeys(a or b for a, b in _PHRASE.findall(query)))[:_MOST]
        query = _PHRASE.sub(" ", query)
        phrases = tuple(phrase for phrase in quoted if _WORD.search(phrase))
        # No index of words holds emoji, so they are searched like patterns: in the texts themselves.
        patterns = tuple(symbol for phrase in quoted if phrase not in phrases for symbol in _EMOJI.findall(phrase))
    if "*" in query or "?" in query:
        wild = [token for token in _TOKEN.findall(query) if _is_wild(token)]
        patterns = tuple(dict.fromkeys([*patterns, *wild]))[:_MOST]
        query = _TOKEN.sub(lambda token: " " if _is_wild(token[0]) else token[0], query)
    words = dict.fromkeys(_WORD.findall(query.lower()))
    content_words = tuple(word for word in words if word not in _STOP_WORDS and (len(word) > 1 or word not in _LETTERS))
    if not content_words and not phrases and not patterns and not query.isascii():
        patterns = tuple(dict.fromkeys(_EMOJI.findall(query)))[:_MOST]
        if patterns:
            return TextQuery(patterns=patterns)
    return TextQuery(content_words or tuple(words), phrases, patterns)


def without_quotes(query: str) -> str | None:
    """The query with quoted phrases as plain words; None where there is nothing else in it, or no phrase."""
    bare = _PHRASE.sub(" ", query)
    if bare == query or not _WORD.search(bare):
        return None
    return _PHRASE.sub(lambda quoted: quoted[1] or quoted[2], query)


def _is_wild(pattern: str) -> bool:
    """Whether a token is a pattern. A question mark at its end is punctuation, not a wildcard."""
    if len(pattern) > _LONGEST_PATTERN:
        return False
    return bool(pattern.strip("*?")) and ("*" in pattern or "?" in pattern.rstrip("?"))
