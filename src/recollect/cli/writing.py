"""Writing: remember and revise."""

from __future__ import annotations

import click

from recollect.cli import output, text
from recollect.cli.arguments import Call, takes
from recollect.cli.intake import json_lines, parse_json, plain_lines, read_text, store_all
from recollect.cli.lazy import Leaf
from recollect.cli.output import QUIET, Styled
from recollect.cli.records import headline
from recollect.cli.target import Target, scoped
from recollect.policies.importance import assess
from recollect.presets import Preset
from recollect.values.record import Record, utc_now


@click.command(cls=Leaf)
@takes("remember", optional=("content",), hide=("embedding", "embedding_model"))
@click.option("--lines", is_flag=True, help="From stdin, one memory a line.")
@click.option("--jsonl", is_flag=True, help="From stdin, one JSON object of fields a line.")
@click.option("--verbose", "-v", is_flag=True, help="Say how the importance was judged.")
@scoped
def remember(target: Target, call: Call, lines: bool, jsonl: bool, verbose: bool) -> None:
    """Store a memory. TEXT may be piped in.

    A text that is there already is not stored again, but counted. With --lines and --jsonl all lines are stored, or
    none if one is refused. What looks like a credential is refused.

    \b
    Example:
      recollect remember "Alice prefers tabs" --kind preference --tag style
      git log --format=%s | recollect remember --lines --source git
    """
    content, as_json = call.options.pop("content"), call.options["as_json"]
    if (lines or jsonl) and (content or as_json):
        raise click.UsageError("--lines and --jsonl read stdin, one or the other, without TEXT and --content-json.")
    if lines and jsonl:
        raise click.UsageError("--lines and --jsonl read stdin, one or the other.")
    with target.open(create=True, vectors=False) as memory:
        if lines or jsonl:
            fields = call.arguments(memory)
            stored: Record | list[str] = store_all(memory, json_lines(fields) if jsonl else plain_lines(fields))
        else:
            words = read_text(content)
            stored = call.run(memory, content=parse_json(words) if as_json else words)
        preset = memory.preset
    # Only now: what the disk refuses is an error on closing.
    if isinstance(stored, list):
        _print_many(target, stored)
    elif target.json:
        output.emit(stored)
    else:
        output.say("Known already: " if stored.access_count else "Remembered ", *headline(stored))
        if verbose:
            _print_reasons(stored, preset, judged=call.options["importance"] is None)


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
@takes("revise", as_arguments=("content",), hide=("embedding", "embedding_model"))
@scoped
def revise(target: Target, call: Call) -> None:
    """Put a new version in place of a memory.

    The old one is no longer recalled but stays in the history.

    \b
    Example:
      recollect revise 2b7bcfad "Alice prefers spaces"
    """
    content, as_json = call.options.pop("content"), call.options["as_json"]
    with target.open(vectors=False) as memory:
        fields = call.arguments(memory)
        old = fields["id"]
        if content or len(fields) == 1:
            words = read_text(content)
            fields["content"] = parse_json(words) if as_json else words
        new = memory.revise(**fields)
    if target.json:
        output.emit(new)
        return
    output.say("Revised ", *headline(new))
    output.say((f"in place of {text.short(old)}; take it back with: recollect undo{target.typed}", QUIET))
