"""Summaries of older turns, cached and extended: only new turns are read when a conversation goes on."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from recollect.context.request import Request

if TYPE_CHECKING:
    from recollect.models.llm import Condensed

_KNOWN = 64
"""Summaries that are known at a time."""
_ENOUGH = 8
"""From so many new turns on the model is asked again. Fewer are shortened by rules and appended."""


def summary_of(request: Request, turns: Sequence[str], tokens: int) -> Condensed:
    """A summary of these turns in so many tokens. It extends the cached summary of earlier turns, if there is one."""
    from recollect.models.llm import Condensed, condense

    view, count, cache = request.view, request.count, request.view.cache("summaries")
    keys = [(digest, view.llm.name if view.llm else "", count) for digest in _digests(turns)]
    begun, made = next(((at, cache[key]) for at, key in _latest(keys) if key in cache), (0, None))
    if made is None:
        made = condense(view.llm, turns, tokens, count=count)
    elif begun < len(turns) or count(made.text) > tokens:
        lines, new = made.text.splitlines(), turns[begun:]
        by_model = view.llm is not None and made.by == "model"
        if by_model and len(new) < _ENOUGH:
            room = tokens - count(made.text) - 1
            more = condense(None, new, room, count=count).text if room > 0 else ""
            if more or not new:
                return Condensed(f"{made.text}\n{more}".strip(), "model")
        made = condense(view.llm if new else None, [*lines, *new], tokens, count=count)
    if not made.problem and made.text:
        while len(cache) >= _KNOWN:
            cache.pop(next(iter(cache)), None)
        cache[keys[-1]] = made
    return made


def _digests(turns: Sequence[str]) -> list[bytes]:
    """Of the first turn, the first two, and so on."""
    running, digests = sha256(), list[bytes]()
    for turn in turns:
        running.update(sha256(turn.encode("utf-8", "surrogatepass")).digest())
        digests.append(running.copy().digest())
    return digests


def _latest(keys: Sequence[object]) -> list[tuple[int, object]]:
    """How many turns each stands for, the most first."""
    return list(enumerate(keys, 1))[::-1]
