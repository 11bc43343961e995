"""The profile in a context: before the memories, in the system prompt, where it is the same in every call."""

from __future__ import annotations

from recollect.context.request import Request
from recollect.context.sections import Item, Section
from recollect.recall.profile import line_texts, profile
from recollect.text.fence import CLOSE, DATA, OPEN

_SHARE = 4
"""It may have this part of a budget: a quarter."""


def profile_section(request: Request) -> Section | None:
    """As many lines as have room; None where nothing is known of the user.

    It has no times and no numbers that change with other memories: a provider reads a prompt again from where it first
    differs.
    """
    lines = profile(request.view, None, request.without_tags).lines
    texts = line_texts(lines, request.ids)
    head = f"{OPEN}\nWhat the user has told of themselves{', each with its id' if request.ids else ''}. {DATA}"
    items = tuple(Item(text, line.id) for text, line in zip(texts, lines, strict=True))
    section = Section("profile", items, head, CLOSE, where="prompt", fewest=0, stays=True)
    while section.items and request.budget is not None and section.tokens(request.count) > request.budget // _SHARE:
        section, _ = section.cut(len(section.items) - 1)
    return section if section.items else None
