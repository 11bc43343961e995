"""Ids as short as people and models can still tell them apart by."""

from __future__ import annotations

from collections.abc import Sequence

FULL = 32
"""Characters of an id of ours."""
LEAST = 4
_ODDS = 10_000


def shortened(idents: Sequence[str], among: int) -> dict[str, str]:
    """The end of each id, which is random where its beginning is the time, as short as tells it from the others.

    Another of `among` that are not given has the same in one of ten thousand cases: `resolve` then asks for more.
    """
    least = LEAST
    while 16**least < among * _ODDS:
        least += 1
    return {ident: _end(ident, idents, least) for ident in idents}


def _end(ident: str, idents: Sequence[str], least: int) -> str:
    for size in range(least, FULL if len(ident) == FULL else 0):
        end = ident[-size:]
        if not any(other != ident and (other.startswith(end) or other.endswith(end)) for other in idents):
            return end
    return ident  # some stores have ids of their own, which are short
