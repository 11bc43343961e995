"""Questions to sessions: to one, or to all of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from recollect.cli import output, text, times
from recollect.cli.completing import COMPLETED
from recollect.cli.entries import TYPES
from recollect.cli.intake import TextArgument
from recollect.cli.lazy import Leaf
from recollect.cli.output import ID, Column, Styled
from recollect.cli.recalling import document, print_explained, shown_content, shown_scores
from recollect.cli.sessions import opened
from recollect.cli.target import Target, scoped
from recollect.text import short_ids
from recollect.values.record import utc_now

if TYPE_CHECKING:
    from recollect.recall.hits import Hit, Hits
    from recollect.recall.query import Query

Fields = dict[str, Any]
_SORTS = ("relevance", "newest", "oldest", "importance")
_MOST = 1_000_000
"""The largest limit of a query."""
_DISTANCE = re.compile(r"\d{1,6}\s*[mhdw]", re.IGNORECASE)
_NARROW, _WIDE = 60, 100

_OF_SESSIONS = click.option(
    "--kind", "types", multiple=True, type=click.Choice(TYPES), metavar="KIND", help=f"Of: {', '.join(TYPES)}."
)
_OF_ANY_KIND = click.option(
    "--kind",
    "types",
    multiple=True,
    metavar="KIND",
    shell_complete=COMPLETED["kind"],
    help="Of this kind; repeat for more.",
)
_OPTIONS = (
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="With this tag or one below it; repeat for more."),
    click.option("--any-tag", "any_tags", multiple=True, metavar="TAG", help="With one of these; repeat for more."),
    click.option("--without-tag", "without_tags", multiple=True, metavar="TAG", help="Without this; repeat for more."),
    click.option("--since", metavar="TIME", help=f"Made since, {times.WHEN}."),
    click.option("--until", metavar="TIME", help="Made before."),
    click.option(
        "--last", metavar="SPAN", help='Made in the last "3 days", hour, "2 weeks", 12h; or today, yesterday.'
    ),
    click.option("--min-importance", type=float, metavar="0..1", help="This important or more."),
    click.option(
        "--sort",
        type=click.Choice(_SORTS),
        default="relevance",
        show_default=True,
        metavar="ORDER",
        help=", ".join(_SORTS),
    ),
    click.option("--limit", "-n", type=click.IntRange(min=1), default=20, show_default=True, help="At most this many."),
    click.option("--explain", "-x", is_flag=True, help="Show the parts of each score."),
)


def _asking(command: Callable[..., None], kinds: Callable[..., Any] = _OF_SESSIONS) -> Callable[..., None]:
    """Gives a command these options, and its function `fields`: those of a Query."""

    @wraps(command)
    def run(since: str | None, until: str | None, last: str | None, sort: str, **options: Any) -> None:
        request = {
            name: options.pop(name) for name in ("types", "tags", "any_tags", "without_tags", "min_importance", "limit")
        }
        if last is not None and (since is not None or until is not None):
            raise click.UsageError("--last says both when it begins and when it ends: leave out --since and --until.")
        if last is not None:
            request["time_range"] = _span(last)
        elif since is not None or until is not None:
            request["time_range"] = (times.past(since, "since"), times.past(until, "until"))
        command(fields={**request, "sort_by": sort}, **options)

    decorated: Callable[..., None] = run
    for option in reversed((kinds, *_OPTIONS)):
        decorated = option(decorated)
    return decorated


def _near(command: Callable[..., None]) -> Callable[..., None]:
    """The options about references."""
    depth = click.option(
        "--depth", type=click.IntRange(1, 16), default=1, show_default=True, help="How many references away."
    )
    words = "What this memory refers to, or refers to it; repeat for more."
    return click.option("--ref", "--references", "references", multiple=True, metavar="ID", help=words)(depth(command))


@click.command(cls=Leaf)
@click.argument("words", cls=TextArgument, nargs=-1, metavar="[TEXT...]")
@_near
@partial(_asking, kinds=_OF_ANY_KIND)
@scoped
def query(
    target: Target, words: tuple[str, ...], references: tuple[str, ...], depth: int, explain: bool, fields: Fields
) -> None:
    """Find memories by words and conditions, in an order of your choice. Not counted as a retrieval.

    All conditions must hold. "Quoted phrases" must occur as they are; auth* and colo?r match words.

    \b
    Example:
      recollect query deploy* --kind decision --last "3 days"
      recollect query --tag security --without-tag security.old --sort newest
    """
    with target.open() as memory:
        near = tuple(short_ids.resolve_all(memory, references))
        hits = memory.query(_query(words, {**fields, "references": near, "max_depth": depth}))
    _print(target, hits, fields["limit"], explain, by_session=False)


def _span(last: str) -> tuple[datetime | None, datetime | None]:
    """As times are said elsewhere, `last 3 days`; people leave out the first word, or type `3d`."""
    from recollect.text.times import span

    if _DISTANCE.fullmatch(last.strip()):
        return times.past(last, "last"), None
    word = (last.split() or [""])[0].lower()
    period = last if word in ("today", "yesterday", "last", "past", "the") else f"last {last}"
    return span(period, utc_now(), "last")


def _query(words: tuple[str, ...], fields: dict[str, Any]) -> Query:
    from recollect.recall.query import Query

    return Query(text=" ".join(words) or None, **fields)


@click.command("query", cls=Leaf)
@click.argument("session", metavar="ID")
@click.argument("words", cls=TextArgument, nargs=-1, metavar="[TEXT...]")
@_near
@_asking
@scoped
def query_session(
    target: Target,
    session: str,
    words: tuple[str, ...],
    references: tuple[str, ...],
    depth: int,
    explain: bool,
    fields: Fields,
) -> None:
    """Find memories of a session by words and conditions.

    All conditions must hold. "Quoted phrases" must occur as they are; auth* and colo?r match words.

    \b
    Example:
      recollect ledger query sess_20260110_alice deploy* --kind decision --last "3 days"
      recollect ledger query sess_20260110_alice --tag security --without-tag security.old --sort newest
    """
    with opened(target, session) as memory:
        memory.sessions.load(session)
        near = tuple(short_ids.resolve_all(memory, references))
        hits = memory.sessions.query(session, _query(words, {**fields, "references": near, "max_depth": depth}))
    _print(target, hits, fields["limit"], explain, by_session=False)


@click.command(cls=Leaf)
@click.argument("words", cls=TextArgument, nargs=-1, metavar="[TEXT...]")
@_asking
@scoped
def search(target: Target, words: tuple[str, ...], explain: bool, fields: Fields) -> None:
    """Find memories in all sessions.

    All conditions must hold. "Quoted phrases" must occur as they are; auth* and colo?r match words.

    \b
    Example:
      recollect ledger search "which server?" --tag ops
    """
    with opened(target) as memory:
        hits = memory.sessions.search(_query(words, fields))
    _print(target, hits, fields["limit"], explain, by_session=True)


def _print(target: Target, hits: Hits, limit: int, explain: bool, *, by_session: bool) -> None:
    if target.json:
        output.emit([document(hit) for hit in hits])
        return
    if not hits:
        output.say("Nothing matched.")
    elif explain:
        print_explained(hits)
    else:
        _print_hits(hits, by_session)
    if len(hits) == limit:
        output.note(f"These are the first {limit}; there may be more: --limit {min(limit * 5, _MOST)}")


def _print_hits(hits: Hits, by_session: bool) -> None:
    now, width = utc_now(), output.width()
    scores = dict(zip((hit.memory.id for hit in hits), shown_scores([hit.score for hit in hits]), strict=True))
    columns: list[tuple[Column, Callable[[Hit], Styled]]] = [
        (Column("score", right=True), lambda hit: scores[hit.memory.id]),
        (Column("id", ID), lambda hit: text.short(hit.memory.id)),
    ]
    if by_session:
        columns.append((Column("session", wrap=True), lambda hit: hit.memory.address.workspace or ""))
    if width >= _NARROW:
        columns.append((Column("made"), lambda hit: text.ago(hit.memory.created_at, now)))
        columns.append((Column("kind"), lambda hit: hit.memory.kind))
    if width >= _WIDE and any(hit.memory.tags for hit in hits):
        columns.append((Column("tags", output.QUIET), lambda hit: text.one_line(text.tags(hit.memory), 24)))
    columns.append((Column("memory", flexible=True, wrap=True), shown_content))
    output.table([column for column, _ in columns], ([cell(hit) for _, cell in columns] for hit in hits))
