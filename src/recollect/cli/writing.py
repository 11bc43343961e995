"""Writing: remember and revise."""

from __future__ import annotations

from typing import Any

import click

from recollect.cli import output, text, times
from recollect.cli.intake import json_lines, meta_pairs, parse_json, plain_lines, read_text, store_all
from recollect.cli.lazy import Leaf
from recollect.cli.output import QUIET, Styled
from recollect.cli.records import headline
from recollect.cli.target import Target, scoped
from recollect.policies.importance import assess
from recollect.presets import Preset
from recollect.text import short_ids
from recollect.values.record import ROLES, TIERS, Record, utc_now


@click.command(cls=Leaf)
@click.argument("content", nargs=-1, metavar="TEXT...")
@click.option("--kind", help="What it is: fact, preference, decision, …  [default: the preset's]")
@click.option("--importance", type=float, metavar="0..1", help="How much it matters.  [default: judged from the words]")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag; repeat for more.")
@click.option("--role", type=click.Choice(ROLES), metavar="ROLE", help=f"Who said it: {', '.join(ROLES)}.")
@click.option("--source", help="Where it comes from.")
@click.option("--expires", "--expires-at", "expires", metavar="TIME", help="Until when: ISO 8601, or 7d, 12h from now.")
@click.option("--meta", "--metadata", "meta", multiple=True, metavar="KEY=VALUE", help="Metadata; repeat for more.")
@click.option("--ref", "--reference", "refs", multiple=True, metavar="ID", help="A memory it refers to; repeatable.")
@click.option("--tier", type=click.Choice(TIERS), metavar="TIER", help=f"How far it is seen: {', '.join(TIERS)}.")
@click.option("--again", is_flag=True, help="Store it even if it is there already.")
@click.option("--shared", is_flag=True, help="With --agent: for all agents, not only this one.")
@click.option("--content-json", is_flag=True, help="TEXT is JSON and is kept as such.")
@click.option("--lines", is_flag=True, help="From stdin, one memory a line.")
@click.option("--jsonl", is_flag=True, help="From stdin, one JSON object of fields a line.")
@click.option("--verbose", "-v", is_flag=True, help="Say how the importance was judged.")
@scoped
def remember(target: Target, content: tuple[str, ...], lines: bool, jsonl: bool, **options: Any) -> None:
    """Store a memory. TEXT may be - for stdin, or be piped in.

    A text that is there already is not stored again, but counted. With --lines and --jsonl all lines are stored, or
    none if one is refused. What looks like a credential is refused.

    \b
    Example:
      recollect remember "Alice prefers tabs" --kind preference --tag style
      git log --format=%s | recollect remember --lines --source git
    """
    verbose, as_json = options.pop("verbose"), options.pop("content_json")
    if (lines or jsonl) and (content not in ((), ("-",)) or (lines and jsonl) or as_json):
        raise click.UsageError("--lines and --jsonl read stdin, one or the other, without TEXT and --content-json.")
    with target.open(create=True, vectors=False) as memory:
        fields = _fields(options)
        fields["references"] = short_ids.resolve_all(memory, options["refs"])
        if lines or jsonl:
            stored: Record | list[str] = store_all(memory, json_lines(fields) if jsonl else plain_lines(fields))
        else:
            words = read_text(content)
            stored = memory.remember(parse_json(words) if as_json else words, **fields)
        preset = memory.preset
    # Only now: what the disk refuses is an error on closing.
    if isinstance(stored, list):
        _print_many(target, stored)
    elif target.json:
        output.emit(stored)
    else:
        output.say("Known already: " if stored.access_count else "Remembered ", *headline(stored))
        if verbose:
            _print_reasons(stored, preset, judged=options["importance"] is None)


def _fields(options: dict[str, Any]) -> dict[str, Any]:
    fields = {name: options[name] for name in ("kind", "importance", "tags", "role", "source", "tier")}
    fields |= {"shared": options["shared"] or None, "again": options["again"] or None}
    fields["expires_at"] = times.future(options["expires"], "expires")
    fields["metadata"] = meta_pairs(options["meta"])
    return fields


def _print_many(target: Target, stored: list[str]) -> None:
    if target.json:
        output.emit({"stored": len(stored), "ids": stored})
    else:
        output.say(f"Remembered {text.count(len(stored))}.")


def _print_reasons(record: Record, preset: Preset, *, judged: bool) -> None:
    now = utc_now()
    why = "as given"
    if judged:
        assessment = assess(record.text, preset.importance)
        changes = [f"{reason.change:+.2f} {reason.rule}" for reason in assessment.reasons]
        why = " ".join([f"{preset.importance.base:.2f} base", *changes])
    rows: list[tuple[str, Styled | None]] = [
        ("id", (record.id, QUIET)),
        ("importance", f"{record.importance:.2f}: {why}"),
        ("seen by", f"the whole {record.tier}" if record.address.agent is None else f"agent {record.address.agent}"),
        ("expires", text.moment(record.expires_at, now) if record.expires_at else "never"),
    ]
    output.facts(rows, indent=2)


@click.command(cls=Leaf)
@click.argument("id")
@click.argument("content", nargs=-1, metavar="[TEXT...]")
@click.option("--kind", help="Another kind.")
@click.option("--importance", type=float, metavar="0..1", help="Another importance.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tags in place of the old ones; repeat for more.")
@click.option("--role", type=click.Choice(ROLES), metavar="ROLE", help="Another role.")
@click.option("--source", help="Another source.")
@click.option(
    "--meta",
    "--metadata",
    "meta",
    multiple=True,
    metavar="KEY=VALUE",
    help="Metadata in place of the old.",
)
@click.option("--ref", "--reference", "refs", multiple=True, metavar="ID", help="References in place of the old.")
@click.option("--content-json", is_flag=True, help="TEXT is JSON and is kept as such.")
@scoped
def revise(target: Target, id: str, content: tuple[str, ...], content_json: bool, **options: Any) -> None:
    """Put a new version in place of a memory.

    The old one is no longer recalled but stays in the history. TEXT may be - for stdin.

    \b
    Example:
      recollect revise 2b7bcfad "Alice prefers spaces"
    """
    with target.open(vectors=False) as memory:
        old = short_ids.resolve(memory, id)
        fields = {name: options[name] for name in ("kind", "importance", "role", "source")}
        fields["tags"] = options["tags"] or None
        fields["metadata"] = meta_pairs(options["meta"])
        fields["references"] = short_ids.resolve_all(memory, options["refs"]) or None
        if content or all(value is None for value in fields.values()):
            words = read_text(content)
            fields["content"] = parse_json(words) if content_json else words
        new = memory.revise(old, **fields)
    if target.json:
        output.emit(new)
        return
    output.say("Revised ", *headline(new))
    output.say((f"in place of {text.short(old)}; take it back with: recollect undo{target.typed}", QUIET))
