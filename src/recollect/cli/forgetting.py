"""Forgetting and taking back: forget, undo, archive, restore."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from recollect.cli import output, text
from recollect.cli.arguments import Call, takes
from recollect.cli.asking import confirm
from recollect.cli.derived import derived
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
@takes(
    "forget",
    hide=("workspace",),
    spelled={"conversation": "--from-conversation", "account": "--of-account", "agent": "--of-agent"},
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@scoped
def forget(target: Target, call: Call, yes: bool) -> None:
    """Forget memories by id, tag, time or conversation, or a whole person.

    Of several conditions all must hold. Earlier versions go too. Can be undone until `recollect compact`, unless
    --erase is given, which also removes what was forgotten before and what the memories were derived from.

    \b
    Example:
      recollect forget 2b7bcfad --reason "out of date"
      recollect forget --tag draft --until 30d
      recollect forget --of-account user-1 --erase
    """
    ids = call.options.pop("id")
    with target.open(vectors=False) as memory:
        arguments = call.arguments(memory)
        conditions = {name: value for name, value in arguments.items() if name not in ("reason", "erase", "shared")}
        if bool(ids) == bool(conditions):
            options = "--tag, --since, --until, --from-conversation, --of-account or --of-agent"
            raise click.UsageError(f"Say what to forget: ids, or {options}; not both.")
        wanted = short_ids.resolve_all(memory, ids) if ids else None
        if conditions and not agreed(target, memory, conditions, erase="erase" in arguments, yes=yes):
            return
        if wanted and "erase" in arguments and not yes:
            confirm(
                f"Erase {text.count(len(set(wanted)))} for good?",
                lambda: _preview(_stored(memory, wanted), target.json),
            )
        receipt = memory.forget(wanted, **arguments)
    if target.json:
        output.emit(receipt)
    else:
        _print_receipt(receipt, target, named=len(set(wanted)) if wanted else None)


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
    items = f", and everything else of {whole}" if whole else ""
    question = f"Forget {text.count(len(records))}{items}{' for good' if erase else ''}?"
    if records or whole or erase or piped():
        confirm(question, lambda: _preview(records, quiet))
    elif not quiet:
        output.say(f"Nothing matched, so nothing was forgotten.{empty_hint(target, memory)}")
    return bool(records or whole or erase) or quiet  # a receipt for nothing is still one JSON document


def _stored(memory: Memory, ids: list[str]) -> list[Record]:
    """Those of the ids that are memories. One that was forgotten before can be erased as well."""
    from recollect.values.errors import NotFoundError

    records: list[Record] = []
    for ident in dict.fromkeys(ids):
        with suppress(NotFoundError):
            records.append(memory.get(ident))
    return records


def _preview(records: list[Record], quiet: bool) -> None:
    if quiet:
        return
    output.say(f"{text.count(len(records))} would be forgotten" + (", the newest:" if len(records) > _SAMPLE else ":"))
    records_table(records[:_SAMPLE], with_state=True)


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


def _undone(entry: Entry) -> list[str]:
    labels = (("restored", "as before"), ("removed", "gone again"))
    return [
        f"{text.count(len(ids))} {how}: {', '.join(text.short(ident) for ident in ids[:_SAMPLE])}"
        + (", …" if len(ids) > _SAMPLE else "")
        for key, how in labels
        if (ids := entry.meta.get(key))
    ]


def _print_undone(entry: Entry) -> None:
    output.say(entry.message[:1].upper() + entry.message[1:])
    for line in _undone(entry):
        output.say((line, QUIET), indent=2)


def _print_changed(done: str, records: list[Record]) -> None:
    for record in records:
        output.say(f"{done} ", *headline(record))


undo = derived(
    "undo",
    "Take back the last change, or the one given.\n\nID is what `forget` prints and `recollect audit search` lists.",
    "undo",
    "undo 1a78ca4a",
    show=_print_undone,
)
archive = derived(
    "archive",
    "Keep memories, but do not recall them.",
    'archive 2b7bcfad --reason "old project"',
    show=partial(_print_changed, "Archived"),
)
restore = derived(
    "restore",
    "Recall archived memories again.",
    "restore 2b7bcfad",
    show=partial(_print_changed, "Restored"),
)
