"""What is in a session: add, get and delete its memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from recollect.cli import output, text, times
from recollect.cli.forgetting import agreed
from recollect.cli.intake import TextArgument, check_all, json_lines, parse_json, read_text
from recollect.cli.lazy import Leaf
from recollect.cli.output import ID, QUIET, STRONG
from recollect.cli.paths import PATH
from recollect.cli.records import facts_of, headline
from recollect.cli.sessions import opened
from recollect.cli.target import Target, scoped
from recollect.text import short_ids
from recollect.values.errors import InputError, NotFoundError, RecollectError
from recollect.values.record import utc_now
from recollect.verbs.remember.draft import draft_record

if TYPE_CHECKING:
    from recollect.memory import Memory

TYPES = ("conversation", "decision", "finding", "preference")
_FIELDS = frozenset(("type", "content", "importance", "tags", "references", "timestamp"))


@click.command(cls=Leaf)
@click.argument("session", metavar="ID")
@click.argument("content", cls=TextArgument, nargs=-1, metavar="TEXT...")
@click.option(
    "--kind",
    "kind",
    type=click.Choice(TYPES),
    default=TYPES[0],
    show_default=True,
    metavar="KIND",
    help=", ".join(TYPES),
)
@click.option("--importance", type=float, metavar="0..1", help="How much it matters.  [default: judged from the words]")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag, such as ops.deploy; repeat for more.")
@click.option("--reference", "refs", multiple=True, metavar="ID", help="A memory it refers to; repeat for more.")
@click.option("--timestamp", metavar="TIME", help="When it was: ISO 8601, or 7d, 12h, 30m, 2w ago.  [default: now]")
@click.option("--content-json", is_flag=True, help="TEXT is JSON and is kept as such.")
@click.option(
    "--from", "file", metavar="FILE|-", type=PATH, help="From a file or stdin, one JSON object of fields a line."
)
@scoped
def add(target: Target, session: str, content: tuple[str, ...], file: str | None, **options: Any) -> None:
    """Store a memory in a session. TEXT may be piped in.

    With --from all lines are stored, or none if one is refused; what a line leaves open is as the options say.

    \b
    Example:
      recollect ledger add sess_20260110_alice "We deploy on Fridays" --kind decision --tag ops.deploy
      recollect ledger add sess_20260110_alice --from entries.jsonl
    """
    as_json = options.pop("content_json")
    if file is not None and (content or as_json):
        raise click.UsageError("--from reads a file, or stdin if it is -, without TEXT and --content-json.")
    with opened(target, session, vectors=False) as memory:
        memory.sessions.load(session)
        fields = _fields(memory, **options)
        if file is not None:
            _add_all(target, memory, session, file, fields)
            return
        words = read_text(content)
        ident = memory.sessions.add(session, {**fields, "content": parse_json(words) if as_json else words})
        record = memory.get(ident)
    if target.json:
        output.emit(record)
    else:
        output.say("Added ", *headline(record))


def _fields(
    memory: Memory,
    kind: str,
    importance: float | None,
    tags: tuple[str, ...],
    refs: tuple[str, ...],
    timestamp: str | None,
) -> dict[str, Any]:
    fields = {
        "type": kind,
        "importance": importance,
        "tags": tags,
        "references": short_ids.resolve_all(memory, refs),
        "timestamp": times.past(timestamp, "timestamp"),
    }
    return {name: value for name, value in fields.items() if value not in (None, (), [])}


def _add_all(target: Target, memory: Memory, session: str, file: str, fields: dict[str, Any]) -> None:
    items = json_lines(fields, file)
    check_all(items, lambda entry: _try(memory, session, entry))
    stored = memory.sessions.add_many(session, [entry for _, entry in items]) if items else []
    if target.json:
        output.emit({"session": session, "stored": len(stored), "ids": stored})
    else:
        output.say(f"Added {text.count(len(stored))} to ", (session, STRONG))


def _try(memory: Memory, session: str, entry: dict[str, Any]) -> None:
    """What seems wrong is left to the session to refuse, so that the refusal is in its audit log."""
    item = {name: value for name, value in entry.items() if name not in ("type", "timestamp")}
    item |= {"kind": entry.get("type"), "created_at": entry.get("timestamp")}
    try:
        if not entry.keys() <= _FIELDS or entry["type"] not in TYPES:
            raise InputError("entry", "is not one")
        draft_record(item, memory.address, memory.preset, utc_now())
    except RecollectError:
        memory.sessions.add_many(session, [entry])


@click.command(cls=Leaf)
@click.argument("session", metavar="ID")
@click.argument("memory_id")
@scoped
def get(target: Target, session: str, memory_id: str) -> None:
    """Show one memory of a session with everything that is known about it.

    MEMORY_ID is the whole id, or the short one that tables show.

    \b
    Example:
      recollect ledger get sess_20260110_alice 2b7bcfad
    """
    with opened(target, session, vectors=False) as memory:
        memory.sessions.load(session)
        entry = memory.sessions.get(session, short_ids.resolve(memory, memory_id))
    if entry is None:
        raise NotFoundError(f"there is no memory {memory_id} in the session {session}")
    if target.json:
        output.emit(entry)
        return
    output.say((entry.text, STRONG))
    output.say("")
    output.facts(facts_of(entry))


@click.command(cls=Leaf)
@click.argument("session", metavar="ID")
@click.argument("memory_id")
@click.option("--reason", help="Why; kept with the mark that it was deleted, and in the audit log.")
@scoped
def forget(target: Target, session: str, memory_id: str, reason: str | None) -> None:
    """Forget one memory of a session. It leaves the disk when the session is compacted.

    \b
    Example:
      recollect ledger forget sess_20260110_alice 2b7bcfad --reason "out of date"
    """
    with opened(target, session, vectors=False) as memory:
        memory.sessions.load(session)
        ident = short_ids.resolve(memory, memory_id)
        if not memory.sessions.delete(session, ident, reason=reason):
            raise NotFoundError(f"there is no memory {memory_id} in the session {session}")
    if target.json:
        output.emit({"session": session, "deleted": 1, "ids": [ident]})
        return
    output.say("Deleted ", (text.short(ident), ID), f": {reason}" if reason else "")
    _print_way_back(target, session)


@click.command(cls=Leaf)
@click.argument("session", metavar="ID")
@click.argument("topic")
@click.option("--reason", help="Why; kept with the marks that they were deleted, and in the audit log.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@scoped
def forget_topic(target: Target, session: str, topic: str, reason: str | None, yes: bool) -> None:
    """Forget the memories of a session that have a tag, or one below it.

    \b
    Example:
      recollect ledger forget-topic sess_20260110_alice ops.deploy
    """
    with opened(target, session, vectors=False) as memory:
        memory.sessions.load(session)
        if not agreed(target, memory, {"tag": topic}, erase=False, yes=yes):
            return
        number = memory.sessions.delete_by_topic(session, topic, reason=reason)
    _print_deleted(target, session, number)


@click.command(cls=Leaf)
@click.argument("session", metavar="ID")
@click.argument("start")
@click.argument("end")
@click.option("--reason", help="Why; kept with the marks that they were deleted, and in the audit log.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@scoped
def forget_range(target: Target, session: str, start: str, end: str, reason: str | None, yes: bool) -> None:
    """Forget the memories of a session that were made in a time.

    From START, which is included, until END, which is not. Times are ISO 8601, or 7d, 12h, 30m, 2w ago.

    \b
    Example:
      recollect ledger forget-range sess_20260110_alice 2026-01-01 2026-02-01
    """
    since, until = times.past(start, "start"), times.past(end, "end")
    assert since is not None
    assert until is not None
    if since > until:
        raise InputError("end", f"{end} is before {start}")
    with opened(target, session, vectors=False) as memory:
        memory.sessions.load(session)
        if not agreed(target, memory, {"since": since, "until": until}, erase=False, yes=yes):
            return
        number = memory.sessions.delete_by_time_range(session, since, until, reason=reason)
    _print_deleted(target, session, number)


def _print_deleted(target: Target, session: str, number: int) -> None:
    if target.json:
        output.emit({"session": session, "deleted": number})
    elif not number:
        output.say("Nothing matched, so nothing was deleted.")
    else:
        output.say(f"Deleted {text.count(number)} of ", (session, STRONG))
        _print_way_back(target, session)


def _print_way_back(target: Target, session: str) -> None:
    chosen = "" if target.workspace else f" --workspace {session}"
    output.say(("Take it back with: ", QUIET), f"recollect undo{chosen}{target.typed}")
