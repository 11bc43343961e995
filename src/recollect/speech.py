"""Who said something, as far as the words tell."""

from __future__ import annotations

import re

_PREFIX = re.compile(r"([^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,2}): ")
HEAD = 80
"""Letters at the beginning of a text that a name may stand in."""


def speaker(head: str) -> str | None:
    """The name before a colon in small letters, as in `Alice: I moved`. Words that can begin with a capital must."""
    found = _PREFIX.match(head)
    if found is None:
        return None
    name = found[1]
    return name.lower() if all(not word[0].islower() for word in name.split()) else None
