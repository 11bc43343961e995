"""Aliases: other names for the same thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from recollect.cli import output, text
from recollect.cli.derived import derived
from recollect.cli.lazy import LazyGroup
from recollect.cli.output import STRONG, Column, Styled
from recollect.values.errors import NotFoundError

if TYPE_CHECKING:
    from recollect.facets.aliases import Alias
    from recollect.memory import Memory


@click.group(
    cls=LazyGroup,
    default="list",
    sections={"Commands": {"list": "aliases:list_", "save": "aliases:save", "remove": "aliases:remove"}},
)
def aliases() -> None:
    """Other names for the same thing. A question with the one finds what has the other.

    \b
    Example:
      recollect aliases save PostgreSQL pg
      recollect aliases
    """


def _print_aliases(aliases: Sequence[Alias]) -> None:
    if not aliases:
        output.say("There are no aliases yet.")
        return
    rows: list[list[Styled]] = [[text.one_line(alias.name), text.one_line(alias.also)] for alias in aliases]
    output.table([Column("name", STRONG, wrap=True), Column("also", wrap=True)], rows)


def _subject(memory: Memory, arguments: Mapping[str, Any]) -> str:
    name = arguments["name"].strip().casefold()
    having = [alias for alias in memory.aliases.list() if name in (alias.name.casefold(), alias.also.casefold())]
    if not having:
        raise NotFoundError(f"there is no alias with the name {arguments['name']!r}; `recollect aliases` lists all")
    return ", ".join(f"the alias {alias.name} = {alias.also}" for alias in having)


list_ = derived(
    "aliases.list", "List the aliases, in the order in which they were saved.", "aliases", show=_print_aliases
)
save = derived(
    "aliases.save",
    "Save two names for the same thing.",
    "aliases save PostgreSQL pg",
    show=lambda alias: output.say("Saved ", (f"{alias.name} = {alias.also}", STRONG)),
)
remove = derived(
    "aliases.remove",
    "Remove every alias with a name.",
    "aliases remove pg --yes",
    show=lambda number: output.say(f"Removed {text.count(number, 'alias', 'aliases')}."),
    document=lambda number: {"removed": number},
    subject=_subject,
)
