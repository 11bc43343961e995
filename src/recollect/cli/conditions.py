"""Which memories: the conditions that list and recall share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from recollect.cli import times
from recollect.values.record import ROLES, TIERS

_NAMES = ("kind", "tags", "role", "source", "tier", "since", "until", "min_importance", "from_conversation")
_OPTIONS = (
    click.option("--kind", help="Only this kind."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only with this tag; repeat for more."),
    click.option("--role", type=click.Choice(ROLES), metavar="ROLE", help=f"Only from: {', '.join(ROLES)}."),
    click.option("--source", help="Only from this source."),
    click.option("--tier", type=click.Choice(TIERS), metavar="TIER", help=f"Only of: {', '.join(TIERS)}."),
    click.option("--since", metavar="TIME", help=f"Only made since, {times.WHEN}."),
    click.option("--until", metavar="TIME", help="Only made before."),
    click.option("--min-importance", type=float, metavar="0..1", help="Only this important or more."),
    click.option("--from-conversation", metavar="NAME", help="Only of this conversation."),
)


def conditions(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options, and its function `where`: keyword arguments of Memory.list and Memory.recall."""

    @wraps(command)
    def run(**options: Any) -> None:
        where: dict[str, Any] = {name: options.pop(name) for name in _NAMES}
        where["conversation"] = where.pop("from_conversation")
        for name in ("since", "until"):
            where[name] = times.past(where[name], name)
        command(where=where, **options)

    decorated: Callable[..., None] = run
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
