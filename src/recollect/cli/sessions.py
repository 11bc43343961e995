"""Sessions of a ledger: create, list, look at, look after, remove."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

from recollect.cli import batch, output, text
from recollect.cli.asking import confirm
from recollect.cli.intake import ABOUT_VALUES, check_new, pairs
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import BAD, CAREFUL, ID, QUIET, STRONG, Column, Styled
from recollect.cli.paths import PATH
from recollect.cli.target import Target, scoped
from recollect.values.errors import InputError, StoreError
from recollect.values.record import utc_now

if TYPE_CHECKING:
    from recollect.facets.sessions import SessionStats
    from recollect.memory import Memory
    from recollect.stores.port import Damage
    from recollect.stores.sessions import SessionDecay, SessionMetadata

PRESET = "ledger"
"""Sessions are of the ledger document, so its behaviour is what is meant where none is asked for."""

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
_NARROW = 60

_SECTIONS = {
    "Sessions": {
        "create": "sessions:create",
        "list": "sessions:list_",
        "show": "sessions:show",
        "stats": "sessions:stats",
        "export": "sessions:export",
        "remove": "sessions:remove",
    },
    "What is in one": {
        "add": "entries:add",
        "get": "entries:get",
        "query": "searching:query_session",
        "search": "searching:search",
        "forget": "entries:forget",
        "forget-topic": "entries:forget_topic",
        "forget-range": "entries:forget_range",
    },
    "Look after": {
        "compact": "sessions:compact",
        "rebuild": "upkeep:rebuild",
        "migrate": "upkeep:migrate",
        "metrics": "sessions:metrics",
    },
}


_FORMER = {"drop": "remove", "delete": "forget", "delete-topic": "forget-topic", "delete-range": "forget-range"}


@click.group(cls=LazyGroup, default="list", sections=_SECTIONS, former=_FORMER)
def ledger() -> None:
    """Keep memories by session, in the plain files of a ledger.

    The preset is `ledger` unless another is asked for.

    \b
    Example:
      recollect ledger create alice --store ledger:./memory
      recollect ledger add sess_20260110_alice "We deploy on Fridays" --kind decision --store ledger:./memory
    """


@contextmanager
def opened(
    target: Target,
    session: str | None = None,
    *,
    create: bool = False,
    report_damage: bool = True,
    vectors: bool = True,
    usual: Sequence[str] = ("tenant", "agent", "account"),
) -> Generator[Memory]:
    """A memory with sessions, at the session that is meant if there is one. Whether it exists is not looked at."""
    from recollect.stores.sessions import SessionStore

    located = None if target.served else target.find()
    if located is not None and not isinstance(located[0], SessionStore):
        raise InputError(
            "store", f"{target.location} keeps no sessions; use a ledger, as in --store {_as_ledger(target)}"
        )
    # One who is bound to something inside a workspace can only choose the session together with that.
    inside = {"workspace": session} if session and target.workspace is None and _NAME.fullmatch(session) else {}
    with target.open(
        located, create=create, preset=PRESET, report_damage=report_damage, vectors=vectors, usual=usual, **inside
    ) as memory:
        yield memory


def _as_ledger(target: Target) -> str:
    kind, colon, path = target.location.partition(":")
    return f"ledger:{path if colon and kind in ('sqlite', 'notebook') else target.location}"


@click.command(cls=Leaf)
@click.argument("user")
@click.option("--id", "ident", metavar="ID", help="Its id.  [default: of the day and the user]")
@click.option("--half-life", type=float, metavar="HOURS", help="After how many hours a memory counts half.")
@click.option("--min-decay", type=float, metavar="0..1", help="What always remains of a memory's strength.")
@click.option("--no-decay", is_flag=True, help="Memories keep their strength.")
@click.option("--compact-at", type=float, metavar="0..1", help="How full it may be before it is compacted.")
@click.option("--no-auto-compact", is_flag=True, help="Compact only when asked to.")
@click.option("--language", help="What the user speaks.  [default: en]")
@click.option("--verbosity", help="How much the user wants to read.  [default: medium]")
@click.option(
    "--custom",
    multiple=True,
    metavar="KEY=VALUE",
    help=f"Another preference of the user. {ABOUT_VALUES} Repeat for more.",
)
@scoped
def create(target: Target, user: str, ident: str | None, **options: Any) -> None:
    """Create a session for a user.

    Settings that are left out are those of all sessions, in config.json.

    \b
    Example:
      recollect ledger create alice --half-life 48 --language pt
    """
    with opened(target, ident, create=True) as memory:
        made = memory.sessions.create(user, session_id=ident, **_settings(**options))
    if target.json:
        output.emit(made)
        return
    output.say("Created the session ", (made.session_id, STRONG))
    typed = f'recollect ledger add {made.session_id} "…" --kind decision{target.typed}'
    output.say(("Next: ", QUIET), typed)


def _settings(
    half_life: float | None,
    min_decay: float | None,
    no_decay: bool,
    compact_at: float | None,
    no_auto_compact: bool,
    language: str | None,
    verbosity: str | None,
    custom: tuple[str, ...],
) -> dict[str, dict[str, Any]]:
    if no_decay and (half_life is not None or min_decay is not None):
        raise click.UsageError("--no-decay leaves nothing for --half-life and --min-decay to say.")
    decay = {"enabled": not no_decay, "half_life_hours": half_life, "min_decay_factor": min_decay}
    compaction = {"auto_compact": False if no_auto_compact else None, "threshold": compact_at}
    preferences = {"language": language, "verbosity": verbosity, "custom": pairs(custom, "--custom")}
    return {
        "decay": {name: value for name, value in decay.items() if value is not None},
        "compaction": {name: value for name, value in compaction.items() if value is not None},
        "preferences": {name: value for name, value in preferences.items() if value is not None},
    }


@click.command("list", cls=Leaf)
@scoped
def list_(target: Target) -> None:
    """List all sessions, the one used last first.

    \b
    Example:
      recollect ledger list --store ledger:./memory
    """
    failed: dict[str, str] = {}
    with opened(target) as memory:
        try:
            sessions = memory.sessions.list()
        except StoreError:  # which is one session's fault: the others are listed
            loaded, failed = batch.each("Reading", memory.workspaces(), memory.sessions.load)
            sessions = sorted(loaded.values(), key=lambda session: session.last_accessed, reverse=True)
    if target.json:
        output.emit(sessions)
    elif not sessions and not failed:
        output.say(f"There are no sessions yet: recollect ledger create USER{target.typed}")
    elif sessions:
        _print_sessions(sessions)
    batch.end(failed, quiet=False)


def _print_sessions(sessions: list[SessionMetadata]) -> None:
    now, wide = utc_now(), output.width() >= _NARROW
    ill = any(session.corrupt_entries or session.buffered_writes for session in sessions)
    columns = [Column("session", ID, wrap=True), Column("user"), Column("memories", right=True)]
    columns += [Column("size", right=True), Column("used")] * wide + [Column("problems", CAREFUL)] * ill
    rows: list[list[Styled]] = []
    for session in sessions:
        row: list[Styled] = [session.session_id, session.user_id or ("-", QUIET), f"{session.total_entries:,}"]
        if wide:
            row += [text.size(session.total_size_bytes), text.ago(session.last_accessed, now)]
        if ill:
            row.append(_problems(session))
        rows.append(row)
    output.table(columns, rows)


def _problems(session: SessionMetadata) -> str:
    problems = [f"{session.corrupt_entries:,} corrupt"] if session.corrupt_entries else []
    return ", ".join([*problems, f"{session.buffered_writes:,} buffered"] if session.buffered_writes else problems)


@click.command(cls=Leaf)
@click.argument("session", metavar="ID")
@scoped
def show(target: Target, session: str) -> None:
    """Show whose a session is, how it is set, and what is wrong with it.

    \b
    Example:
      recollect ledger show sess_20260110_alice
    """
    with opened(target, session, report_damage=False) as memory:
        figures = memory.sessions.stats(session)
    if target.json:
        output.emit(figures)
        return
    output.say((figures.metadata.session_id, STRONG))
    output.facts(_facts(figures))
    print_damage(figures.corrupt)


def _facts(figures: SessionStats) -> Iterator[tuple[str, Styled | None]]:
    now, session = utc_now(), figures.metadata
    yield "user", session.user_id or "nobody in particular"
    yield "created", text.moment(session.created_at, now)
    yield "last used", text.moment(session.last_accessed, now)
    kinds = ", ".join(
        text.count(number, kind.removesuffix("s"), kind) for kind, number in session.statistics.items() if number
    )
    yield "memories", f"{figures.entries:,}{kinds and f' ({kinds})'}"
    yield "deleted", f"{figures.deleted:,}, on the disk until it is compacted" if figures.deleted else None
    yield "size", text.size(figures.size_bytes)
    yield "decay", _decay(session.decay_config)
    yield "compaction", _compaction(session)
    yield "compacted", text.moment(session.last_compaction, now) if session.last_compaction else "never"
    yield "language", session.preferences.language
    yield "verbosity", session.preferences.verbosity
    for name, value in session.preferences.custom.items():
        yield name, str(value)
    yield "buffered", (f"{figures.buffered:,} not written yet", CAREFUL) if figures.buffered else None
    yield "corrupt", (f"{text.count(len(figures.corrupt), 'line', 'lines')}", BAD) if figures.corrupt else "nothing"


def _decay(decay: SessionDecay) -> str:
    if not decay.enabled:
        return "none"
    parts: list[str] = []
    if decay.half_life_hours is not None:
        parts.append(f"by half in {decay.half_life_hours:g} hours")
    if decay.min_decay_factor is not None:
        parts.append(f"never below {decay.min_decay_factor:g}")
    return ", ".join(parts) or "as in all sessions"


def _compaction(session: SessionMetadata) -> str:
    own = session.compaction_config
    if own.auto_compact is False:
        return "only when asked for"
    return "as in all sessions" if own.threshold is None else f"when it is {100 * own.threshold:g} % full"


def print_damage(damages: tuple[Damage, ...] | list[Damage], indent: int = 2) -> None:
    for damage in damages:
        output.hanging((damage.where, BAD), damage.problem, indent=indent)


@click.command(cls=Leaf)
@click.argument("session", metavar="ID")
@scoped
def stats(target: Target, session: str) -> None:
    """Count what is in a session.

    \b
    Example:
      recollect ledger stats sess_20260110_alice
    """
    with opened(target, session, report_damage=False) as memory:
        figures = memory.sessions.stats(session)
    if target.json:
        output.emit(figures)
        return
    output.say((text.count(figures.entries), STRONG), f" · {text.size(figures.size_bytes)} on disk")
    counts = [*figures.metadata.statistics.items(), ("deleted", figures.deleted)]
    counts += [("buffered", figures.buffered), ("corrupt lines", len(figures.corrupt))]
    rows: list[list[Styled]] = [[name, f"{number:,}"] for name, number in counts]
    output.say("")
    output.table([Column(""), Column("count", right=True)], rows)
    print_damage(figures.corrupt, indent=0)


@click.command(cls=Leaf)
@click.argument("session", metavar="ID")
@click.option("--format", "form", type=click.Choice(["json", "jsonl"]), help="As one document, or an entry a line.")
@click.option("--output", "-o", "file", metavar="FILE", type=PATH, help="Into this file.  [default: stdout]")
@click.option("--force", "-f", is_flag=True, help="In place of a file that is there.")
@scoped
def export(target: Target, session: str, form: str | None, file: str | None, force: bool) -> None:
    """Write a session's entries to stdout or a file, oldest first.

    As jsonl unless another format is asked for. A file is complete or not there at all.

    \b
    Example:
      recollect ledger export sess_20260110_alice --format json -o alice.json
    """
    from recollect.stores.files import files

    if target.json and file is None and form == "jsonl":
        raise click.UsageError("--json prints one JSON document, and jsonl is many: give -o, or leave --json out.")
    chosen = form or ("json" if target.json and file is None else "jsonl")
    if file is not None:
        check_new(file, force)
    with opened(target, session) as memory:
        written = memory.sessions.export(session, "json" if chosen == "json" else "jsonl")
    if file is None:
        # To stdout the export itself is the one JSON document.
        if target.json:
            output.emit(msgspec.json.decode(written))
        else:
            output.stream().write(written.encode() + b"\n" * (chosen == "json"))
        return
    files.replace(os.path.abspath(file), written.encode() + b"\n" * (chosen == "json"))
    if target.json:
        output.emit({"session": session, "file": file, "format": chosen})
    else:
        output.say("Exported ", (session, STRONG), " to ", (file, STRONG))


@click.command(cls=Leaf)
@click.argument("session", metavar="ID")
@click.option("--reason", help="Why; kept in the tenant's audit log.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@scoped
def remove(target: Target, session: str, reason: str | None, yes: bool) -> None:
    """Remove a session with everything in it, for good.

    \b
    Example:
      recollect ledger remove sess_20260110_alice --reason "asked to" --yes
    """
    with opened(target, session) as memory:
        loaded = memory.sessions.load(session)
        whose = f" of {loaded.user_id}" if loaded.user_id else ""
        if not yes:
            confirm(f"Remove the session {session}{whose} with {text.count(loaded.total_entries)} for good?")
        number = memory.sessions.delete_session(session, reason=reason)
    if target.json:
        output.emit({"session": session, "deleted": number})
        return
    output.say("Removed the session ", (session, STRONG), f" with {text.count(number)}.")
    output.say(("Its folder is gone; this cannot be undone.", QUIET))


@click.command(cls=Leaf)
@click.argument("session", metavar="ID")
@scoped
def compact(target: Target, session: str) -> None:
    """Remove what was deleted, and what has decayed, from the disk for good.

    Damaged lines go, too: to keep what is in them, copy the file before.

    \b
    Example:
      recollect ledger compact sess_20260110_alice
    """
    with opened(target, session, report_damage=False) as memory:
        before = memory.sessions.stats(session)
        freed = memory.sessions.compact(session)
        left = memory.sessions.load(session).total_entries
    # Whether a damaged line was counted as an entry is not known, so what has decayed is not either.
    decayed = 0 if before.corrupt else max(before.entries - left, 0)
    counts = ((before.deleted, "deleted"), (decayed, "decayed"), (len(before.corrupt), "damaged"))
    if target.json:
        gone = {how: number for number, how in counts}
        output.emit({"session": session, "freed_bytes": freed, "entries": left, **gone})
        return
    words = ", ".join(f"{number:,} {how}" for number, how in counts if number)
    what = f" {text.count(left)} left{f'; gone for good: {words}' if words else ''}."
    output.say("Compacted ", (session, STRONG), f"; {text.size(max(freed, 0))} freed.{what}")


@click.command(cls=Leaf)
@scoped
def metrics(target: Target) -> None:
    """Print how many and how large all sessions are.

    Durations are in milliseconds, of what this process did.

    \b
    Example:
      recollect ledger metrics --json
    """
    with opened(target) as memory:
        figures = memory.sessions.metrics()
    if target.json:
        output.emit(figures)
        return
    rows: list[list[Styled]] = [
        [name, f"{value:,.2f}" if "duration" in name else f"{value:,.0f}"] for name, value in sorted(figures.items())
    ]
    output.table([Column("metric", wrap=True), Column("value", right=True)], rows)
