"""Forgetting and taking back: forget, undo, archive, restore."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from recollect.cli import output, text, times
from recollect.cli.intake import piped
from recollect.cli.lazy import Leaf
from recollect.cli.output import CAREFUL, ID, QUIET
from recollect.cli.records import empty_hint, headline, records_table
from recollect.cli.target import Target, scoped
from recollect.text import short_ids

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.stores.audit import Entry
    from recollect.values.record import Record
    from recollect.verbs.forget import Receipt

_SAMPLE = 5
_EVERYTHING = 1_000_000


@click.command(cls=Leaf)
@click.argument("given", nargs=-1, metavar="[ID...]")
@click.option("--tag", help="All with this tag.")
@click.option("--since", metavar="TIME", help=f"All made since, {times.WHEN}.")
@click.option("--until", metavar="TIME", help="All made before.")
@click.option("--from-conversation", metavar="NAME", help="All of this conversation.")
@click.option("--of-account", metavar="NAME", help="Everything of this person, in all workspaces, talks and all.")
@click.option("--of-agent", metavar="NAME", help="Everything of this agent, likewise.")
@click.option("--reason", help="Why; kept in the audit log.")
@click.option("--erase", is_flag=True, help="Remove from the disk at once and for good: cannot be undone.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@scoped
def forget(target: Target, given: tuple[str, ...], reason: str | None, erase: bool, yes: bool, **where: Any) -> None:
    """Forget memories by id, tag, time or conversation, or a whole person.

    Of several conditions all must hold. Earlier versions go too. Can be undone until `recollect compact`, unless
    --erase is given, which also removes what was forgotten before and what the memories were derived from.

    \b
    Example:
      recollect forget 2b7bcfad --reason "out of date"
      recollect forget --tag draft --until 30d
      recollect forget --of-account user-1 --erase
    """
    conditions = _conditions(**where)
    if bool(given) == bool(conditions):
        options = "--tag, --since, --until, --from-conversation, --of-account or --of-agent"
        raise click.UsageError(f"Say what to forget: ids, or {options}; not both.")
    with target.open(vectors=False) as memory:
        if conditions and not agreed(target, memory, conditions, erase=erase, yes=yes):
            return
        wanted = short_ids.resolve_all(memory, given) if given else None
        receipt = memory.forget(wanted, **conditions, reason=reason, erase=erase)
    if target.json:
        output.emit(receipt)
    else:
        _print_receipt(receipt, target, named=len(set(wanted)) if wanted else None)


def _conditions(
    tag: str | None,
    since: str | None,
    until: str | None,
    from_conversation: str | None,
    of_account: str | None,
    of_agent: str | None,
) -> dict[str, Any]:
    conditions = {
        "tag": tag,
        "since": times.past(since, "since"),
        "until": times.past(until, "until"),
        "conversation": from_conversation,
        "account": of_account,
        "agent": of_agent,
    }
    return {name: value for name, value in conditions.items() if value is not None}


def agreed(target: Target, memory: Memory, conditions: dict[str, Any], *, erase: bool, yes: bool) -> bool:
    """Whether there is something to do. Asks first, after showing what it is about."""
    if yes:
        return True
    quiet = target.json
    tag, others = conditions.get("tag"), {name: value for name, value in conditions.items() if name != "tag"}
    account = others.pop("account", None)
    records = memory.list(state=None, tags=None if tag is None else [tag], **others, limit=_EVERYTHING)
    records = [record for record in records if account in (None, record.address.account)]
    whole = account or others.get("agent")
    things = f", and everything else of {whole}" if whole else ""
    question = f"Forget {text.count(len(records))}{things}{' for good' if erase else ''}?"
    if records or whole or erase or piped():
        confirm(question, lambda: _preview(records, quiet))
    elif not quiet:
        output.say(f"Nothing matched, so nothing was forgotten.{empty_hint(target, memory)}")
    return bool(records or whole or erase) or quiet  # a receipt for nothing is still one JSON document


def _preview(records: list[Record], quiet: bool) -> None:
    if quiet:
        return
    output.say(f"{text.count(len(records))} would be forgotten" + (", the newest:" if len(records) > _SAMPLE else ":"))
    records_table(records[:_SAMPLE], with_state=True)


def confirm(question: str, preview: Callable[[], None] | None = None, no: str = "Nothing was forgotten.") -> None:
    """Ask on the terminal, and end the command on a no. Where there is nobody to ask, --yes must be given."""
    if piped():
        raise click.UsageError(f"{question} There is no terminal to ask on; give --yes to go on.")
    if preview is not None:
        preview()
    if not click.confirm(question, err=True):
        output.note(no)
        click.get_current_context().exit(1)


def _print_receipt(receipt: Receipt, target: Target, named: int | None) -> None:
    if not receipt.count and not receipt.entries:
        output.say("Nothing matched, so nothing was forgotten.")
        return
    verb = "Erased" if receipt.erased else "Forgot"
    earlier = receipt.count - named if named is not None else 0
    versions = f" ({text.count(earlier, 'earlier version', 'earlier versions')} among them)" if earlier else ""
    reason = f": {receipt.reason}" if receipt.reason else ""
    output.say(f"{verb} {text.count(receipt.count)}{versions}{reason}")
    for ident in receipt.ids[:_SAMPLE]:
        output.say((ident, ID), indent=2)
    if receipt.count > _SAMPLE:
        output.say((f"and {receipt.count - _SAMPLE:,} more", QUIET), indent=2)
    if receipt.sources:
        output.say(f"With them went {text.count(len(receipt.sources))} that they were derived from.")
    if receipt.remaining:
        rest = ", ".join(text.short(ident) for ident in receipt.remaining[:_SAMPLE])
        more = ", …" if len(receipt.remaining) > _SAMPLE else ""
        output.say((f"Not erased, and of the same origin: {rest}{more}", CAREFUL))
    for part in receipt.unreached:
        output.say((f"Not reached: {part}", QUIET))
    if receipt.note:
        output.say((receipt.note, CAREFUL))
    elif receipt.erased:
        output.say(("It is gone from the disk; this cannot be undone.", QUIET))
    else:
        changes = " ; ".join(f"recollect undo {text.short(entry)}{target.typed}" for entry in receipt.entries)
        output.say(("Take it back with: ", QUIET), changes)


@click.command(cls=Leaf)
@click.argument("change", required=False)
@scoped
def undo(target: Target, change: str | None) -> None:
    """Take back the last change, or the one given.

    CHANGE is the id that `forget` prints and `recollect audit search` lists.

    \b
    Example:
      recollect undo
      recollect undo 1a78ca4a
    """
    with target.open(vectors=False) as memory:
        entry = memory.undo(None if change is None else short_ids.resolve_change(memory, change))
    if target.json:
        output.emit(entry)
        return
    output.say(entry.message[:1].upper() + entry.message[1:])
    for line in _undone(entry):
        output.say((line, QUIET), indent=2)


def _undone(entry: Entry) -> list[str]:
    labels = (("restored", "as before"), ("removed", "gone again"))
    return [
        f"{text.count(len(ids))} {how}: {', '.join(text.short(ident) for ident in ids[:_SAMPLE])}"
        + (", …" if len(ids) > _SAMPLE else "")
        for key, how in labels
        if (ids := entry.meta.get(key))
    ]


@click.command(cls=Leaf)
@click.argument("given", nargs=-1, required=True, metavar="ID...")
@click.option("--reason", help="Why; kept in the audit log.")
@scoped
def archive(target: Target, given: tuple[str, ...], reason: str | None) -> None:
    """Keep memories, but recall them no more.

    \b
    Example:
      recollect archive 2b7bcfad --reason "old project"
    """
    with target.open(vectors=False) as memory:
        records = memory.archive(short_ids.resolve_all(memory, given), reason=reason)
    _print_changed(target, "Archived", records)


@click.command(cls=Leaf)
@click.argument("given", nargs=-1, required=True, metavar="ID...")
@scoped
def restore(target: Target, given: tuple[str, ...]) -> None:
    """Recall archived memories again.

    \b
    Example:
      recollect restore 2b7bcfad
    """
    with target.open(vectors=False) as memory:
        records = memory.restore(short_ids.resolve_all(memory, given))
    _print_changed(target, "Restored", records)


def _print_changed(target: Target, verb: str, records: list[Record]) -> None:
    if target.json:
        output.emit(records)
        return
    for record in records:
        output.say(f"{verb} ", *headline(record))
