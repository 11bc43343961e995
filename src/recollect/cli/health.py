"""Doctor: what is wrong with a memory or could be better, and how duplicates are merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from recollect.cli import output, text
from recollect.cli.arguments import Call, takes
from recollect.cli.asking import confirm
from recollect.cli.lazy import Leaf
from recollect.cli.output import BAD, CAREFUL, GOOD, QUIET, STRONG, Column, Styled
from recollect.cli.target import Target, scoped
from recollect.cli.upkeep import damage_elsewhere
from recollect.values.record import Record, utc_now

if TYPE_CHECKING:
    from recollect.verbs.deduplicate import Duplicates
    from recollect.verbs.diagnose import Finding, Health

_LOOKS = {"error": BAD, "warning": CAREFUL, "info": QUIET}


@click.command(cls=Leaf)
@click.option("--fix", type=click.Choice(["duplicates"]), help="Show memories that say the same, and make one of them.")
@click.option("--dry-run", is_flag=True, help="With --fix: only show what would be done.")
@click.option("--yes", "-y", is_flag=True, help="With --fix: do not ask.")
@click.option(
    "--text", "examined", metavar="TEXT", help="Only show the personal data in this, and what is done with it."
)
@takes("doctor")
@scoped
def doctor(target: Target, call: Call, fix: str | None, dry_run: bool, yes: bool, examined: str | None) -> None:
    """Look for damage, secrets, duplicates and stale memories. Exits with 1 if something is wrong.

    --deep also reads everything on the disk again, in all workspaces of the tenant, and checks how a server is set up.

    \b
    Example:
      recollect doctor
      recollect doctor --deep
      recollect doctor --fix duplicates
      recollect doctor --text "my pin is 2211"
    """
    if examined is not None:
        _print_personal_data(target, examined)
        return
    if fix is None and (dry_run or yes):
        raise click.UsageError("--dry-run and --yes are for --fix.")
    if fix is not None:
        _fix_duplicates(target, dry_run, yes)
        return
    with target.open(report_damage=False) as memory:
        health: Health = call.run(memory)
    damaged = damage_elsewhere(target) if call.options["deep"] else {}
    ok = health.ok and not damaged
    if target.json:
        more = {"damaged": damaged} if call.options["deep"] else {}
        output.emit({"ok": ok, "memories": health.memories, "findings": health.findings, **more})
    else:
        _print_health(health)
        for workspace, problems in damaged.items():
            output.say("")
            output.say((f"{workspace} is damaged", BAD))
            for problem in problems:
                output.say(problem, indent=9)
    if not ok:
        click.get_current_context().exit(1)


def _print_personal_data(target: Target, examined: str) -> None:
    """By the preset of this target; nothing is stored or sent."""
    from recollect.verbs.diagnose import personal_data

    findings = personal_data(target.rules(), examined)
    if target.json:
        output.emit({"findings": findings})
    elif not findings:
        output.say("No personal data was found.")
    for finding in [] if target.json else findings:
        output.say((finding.problem, _LOOKS[finding.severity]), " ", *finding.examples, f" {finding.advice}")


def _fix_duplicates(target: Target, dry_run: bool, yes: bool) -> None:
    with target.open(vectors=False) as memory:
        merged = memory.deduplicate(dry_run=True)
        count = sum(len(group.others) for group in merged)
        question = f"Merge {text.count(count, 'duplicate', 'duplicates')} into {text.count(len(merged))}?"
        if merged and not dry_run:
            if not yes:
                confirm(question, lambda: _print_duplicates(merged), no="nothing was merged")
            merged = memory.deduplicate(groups=merged)
            count = sum(len(group.others) for group in merged)
    if target.json:
        groups = [{"keep": g.keep.id, "merged": [r.id for r in g.others], "alike": g.alike} for g in merged]
        output.emit({"dry_run": dry_run, "merged": count, "groups": groups})
    elif dry_run and merged:
        _print_duplicates(merged)
        output.say(f"Would merge {text.count(count, 'duplicate', 'duplicates')} into {text.count(len(merged))}.")
    elif merged:
        output.say(f"Merged {text.count(count, 'duplicate', 'duplicates')} into {text.count(len(merged))}.")
        output.say((f"Take it back with: recollect undo{target.typed}", QUIET))
    else:
        output.say("No two memories say the same.")


def _print_duplicates(groups: Sequence[Duplicates]) -> None:
    for group in groups:
        output.say((f"The same {group.alike}", STRONG))
        rows: list[Sequence[Styled]] = [[("keep", GOOD), *_duplicate_row(group.keep)]]
        rows += [[("merge", CAREFUL), *_duplicate_row(other)] for other in group.others]
        output.table([Column(""), Column("id", QUIET), Column("made"), Column("memory", flexible=True)], rows)


def _duplicate_row(record: Record) -> list[Styled]:
    return [text.short(record.id), text.ago(record.created_at, utc_now()), text.one_line(record.text)]


def _print_health(health: Health) -> None:
    looked = f"Looked at {text.count(health.memories)}: "
    if not health.findings:
        output.say(looked, ("everything is fine", GOOD))
        return
    kinds = [finding.severity for finding in health.findings]
    words = (("error", "error", "errors"), ("warning", "warning", "warnings"), ("info", "note", "notes"))
    counts = [text.count(kinds.count(kind), singular, plural) for kind, singular, plural in words if kind in kinds]
    output.say(looked, (", ".join(counts), GOOD if health.ok and "warning" not in kinds else _LOOKS[kinds[0]]))
    for finding in health.findings:
        output.say("")
        _print_finding(finding)


def _print_finding(finding: Finding) -> None:
    label = "note" if finding.severity == "info" else finding.severity
    output.say((f"{label:<9}", _LOOKS[finding.severity]), (f"{finding.problem}", STRONG), f"  {finding.count:,}")
    output.say(finding.advice, indent=9)
    shown = [text.short(example) if len(example) == 32 else example for example in finding.examples]
    if all(len(example) == 32 for example in finding.examples):
        more = " …" if finding.count > len(shown) else ""
        output.say((" ".join(shown) + more, QUIET), indent=9)
        return
    for example in shown:
        output.say((example, QUIET), indent=9)
