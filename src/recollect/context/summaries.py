"""A summary of older turns that grows with the conversation: what is new is worked in, the rest is not read again."""

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
"""So many new turns are worth asking a model again; fewer are shortened by rules and put behind what it wrote."""


def summary_of(request: Request, said: Sequence[str], tokens: int) -> Condensed:
    """In so many tokens. The same turns are summarised once, and turns that go on from them work in what is new."""
    from recollect.models.llm import Condensed, condense

    view, count, known = request.view, request.count, request.view.cache("summaries")
    keys = [(digest, view.llm.name if view.llm else "", count) for digest in _digests(said)]
    begun, made = next(((at, known[key]) for at, key in _latest(keys) if key in known), (0, None))
    if made is None:
        made = condense(view.llm, said, tokens, count=count)
    elif begun < len(said) or count(made.text) > tokens:
        lines, new = made.text.splitlines(), said[begun:]
        by_model = view.llm is not None and made.by == "model"
        if by_model and len(new) < _ENOUGH:
            room = tokens - count(made.text) - 1
            more = condense(None, new, room, count=count).text if room > 0 else ""
            if more or not new:
                return Condensed(f"{made.text}\n{more}".strip(), "model")
        made = condense(view.llm if new else None, [*lines, *new], tokens, count=count)
    if not made.problem and made.text:
        while len(known) >= _KNOWN:
            known.pop(next(iter(known)), None)
        known[keys[-1]] = made
    return made


def _digests(said: Sequence[str]) -> list[bytes]:
    """Of the first turn, the first two, and so on."""
    running, found = sha256(), list[bytes]()
    for turn in said:
        running.update(sha256(turn.encode("utf-8", "surrogatepass")).digest())
        found.append(running.copy().digest())
    return found


def _latest(keys: Sequence[object]) -> list[tuple[int, object]]:
    """How many turns each stands for, the most first."""
    return list(enumerate(keys, 1))[::-1]
