"""The speaker of a text, if the text names one."""

from __future__ import annotations

import re

from recollect.text.query import LETTER

_WORD = rf"(?=[^\W\d_])(?:{LETTER}|[.'’-])+"
_PREFIX = re.compile(rf"({_WORD}(?: {_WORD}){{0,2}})(?:: |：)")
HEAD = 80
"""Letters at the beginning of a text that a name may stand in."""


def prefix(text: str) -> tuple[str, int] | None:
    """The name before a colon, as in `Alice: I moved`, and the index at which the words begin."""
    match = _PREFIX.match(text)
    # Regular expressions do not know capitals of every script, and many scripts have none.
    if not match or any(word[0].islower() for word in match[1].split(" ")):
        return None
    return match[1], match.end()


def speaker(head: str) -> str | None:
    """The name before a colon, in small letters."""
    start = prefix(head)
    return start[0].lower() if start else None
