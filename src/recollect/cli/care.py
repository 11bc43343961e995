"""Looking after a memory: init, embed, stats, compact."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

import click
import msgspec

from recollect import defaults
from recollect.cli import batch, output, text
from recollect.cli.lazy import Leaf
from recollect.cli.output import BAD, QUIET, STRONG, Column, Styled
from recollect.cli.paths import PATH
from recollect.cli.progress import progress
from recollect.cli.records import empty_hint
from recollect.cli.target import Target, scoped
from recollect.defaults import Defaults
from recollect.presets import load
from recollect.stores import split
from recollect.values.errors import InputError


@click.command(cls=Leaf)
@click.argument("path", required=False, type=PATH)
@scoped
def init(target: Target, path: str | None) -> None:
    """Make a memory, and recollect.toml in it. Harmless where there is one already.

    PATH may name the kind of store, as in ledger:./memory or notebook:./notes.jsonl; otherwise the preset does. The
    preset, embedder, tenant, workspace, agent and account that are given here are written into recollect.toml, and
    used from then on by every command and by Memory(PATH) unless told otherwise. Edit it by hand.

    \b
    Example:
      recollect init ./memory --preset atlas --workspace shop
      recollect init ledger:./memory
    """
    from recollect.stores.sessions import SessionStore

    target = _chosen(target, path)
    store, home = target.find()
    created = home is not None and not home.exists(target.location)
    settings = _settings(target) if home is not None else None
    if home is not None and created:
        home.make()
    file = _written(target, settings) if settings is not None else None
    if home is not None and not home.is_file:
        _keep_out_of_git(home.path)
    if target.json:
        where = None if home is None else str(home.path)
        output.emit({"store": target.shown, "path": where, "created": created, "settings": file})
        return
    made = "Made the file " if home is not None and home.is_file else "Made the folder "
    output.say(made if created else "There is a memory in ", (str(home.path) if home else target.shown, STRONG))
    if file is not None:
        output.say(("Settings: ", QUIET), file)
    first, then = f'remember "Alice prefers tabs"{target.typed}', f"recall alice{target.typed}"
    if isinstance(store, SessionStore):
        first, then = f"sessions create alice{target.typed}", f"sessions{target.typed}"
    output.say(("Next: ", QUIET), f"recollect {first}")
    output.say(("      ", QUIET), f"recollect {then}")


def _keep_out_of_git(folder: Path) -> None:
    """Memories are private, and change all the time. A file that is there already is left alone."""
    with contextlib.suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
        file.write("# Made by `recollect init`: memories do not belong into git.\n*\n")


def _chosen(target: Target, path: str | None) -> Target:
    """A memory is made here, whatever there is further up."""
    if path is not None and "store" in target.typed_options:
        raise click.UsageError("Give PATH or --store, not both.")
    location = path or target.store or load(target.preset or "recollect").location
    typed = target.typed if path is None else f" --store {quote(path)}{target.typed}"
    return msgspec.structs.replace(target, store=location, typed=typed)


def _settings(target: Target) -> Defaults:
    """What was typed: what the environment says, it says to later commands too."""
    named = {name: getattr(target, name) for name in Defaults.__struct_fields__ if name in target.typed_options}
    settings = Defaults(**(named | {"store": split(target.location)[0]}))
    defaults.check(target.location, settings)
    return settings


def _written(target: Target, settings: Defaults) -> str:
    """The path of the file. InputError where there is one that says otherwise: it may have been edited."""
    path = defaults.path_for(target.location)
    if not os.path.exists(path):
        return defaults.write(target.location, settings)
    current = target.defaults
    for key in ("store", *target.typed_options):
        wanted = getattr(settings, key, None)
        if wanted is not None and wanted != getattr(current, key):
            raise InputError(key, f"{path} is there already and says otherwise; edit it")
    return path


@click.command(cls=Leaf)
@click.option("--all", "everywhere", is_flag=True, help="In every workspace of the tenant.")
@scoped
def embed(target: Target, everywhere: bool) -> None:
    """Make the vectors that are missing, as after a bulk load, and wait for them.

    They are made in the background anyway; until then memories without one are found by their words.

    \b
    Example:
      recollect embed
      recollect embed --all --json
    """
    with target.open(usual=("tenant",) if everywhere else ("tenant", "workspace")) as memory:
        names = memory.workspaces() if everywhere else [str(memory.address.workspace)]
        made: dict[str, int] = {}
        for name in names:
            view = memory.at(workspace=name) if everywhere else memory
            made[name] = view.embed(wait=False)
            with progress(f"Making vectors in {name}", made[name]) as tell:
                view.embed(progress=tell)
    if target.json:
        output.emit({"made": sum(made.values()), "workspaces": made})
    else:
        output.say(f"Made {sum(made.values()):,} vectors" if any(made.values()) else "Nothing was missing.")


@click.command(cls=Leaf)
@scoped
def stats(target: Target) -> None:
    """Count memories by state, kind, tier and agent.

    \b
    Example:
      recollect stats
    """
    with target.open() as memory:
        figures = memory.stats()
        hint = "" if figures.total else empty_hint(target, memory)
        agent = memory.address.agent
    if target.json:
        output.emit(figures)
        return
    on_disk = f" · {text.size(figures.size_bytes)} on disk" if figures.size_bytes else ""
    output.say((text.count(figures.total), STRONG), f"{on_disk}{hint and f'.{hint}'}")
    if figures.unsaved:
        output.say((f"{figures.unsaved:,} not saved yet", BAD), ": the disk refuses them")
    if not figures.total:
        return
    groups: dict[str, Mapping[str, int]] = {"state": figures.states, "kind": figures.kinds, "tier": figures.tiers}
    if agent is None:
        groups["agent"] = {name or "(shared)": number for name, number in figures.agents.items()}
    if figures.embedded:
        groups["embedded"] = {"yes": figures.embedded, "no": figures.total - figures.embedded}
    rows: list[Sequence[Styled]] = []
    for group, counts in groups.items():
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        rows += [[group if not at else "", name, f"{number:,}"] for at, (name, number) in enumerate(ordered)]
    output.say("")
    output.table([Column("by", QUIET), Column(""), Column("count", right=True)], rows)


@click.command(cls=Leaf)
@click.option("--all", "everywhere", is_flag=True, help="Every workspace of the tenant.")
@scoped
def compact(target: Target, everywhere: bool) -> None:
    """Remove the last traces of what was forgotten.

    Gives the space back. Changes made before cannot be undone any more.

    \b
    Example:
      recollect compact
      recollect compact --all
    """
    if everywhere:
        _compact_all(target)
        return
    with target.open(usual=("tenant", "workspace")) as memory:
        freed = memory.compact()
    if target.json:
        output.emit({"freed_bytes": freed})
    else:
        output.say(f"Compacted; {text.size(max(freed, 0))} freed. What was forgotten is gone for good.")


def _compact_all(target: Target) -> None:
    if target.workspace is not None:
        raise click.UsageError("--all is every workspace: leave out --workspace, or --all.")
    target.check_whole("compact")
    with target.open(usual=("tenant",)) as memory:
        freed, failed = batch.each("Compacting", memory.workspaces(), lambda name: memory.at(workspace=name).compact())
    total = sum(freed.values())
    if target.json:
        each = [{"name": name, "freed_bytes": number} for name, number in freed.items()]
        output.emit({"freed_bytes": total, "workspaces": each, "failed": failed})
    elif not freed and not failed:
        output.say("There are no workspaces yet.")
    elif freed:
        rows: list[Sequence[Styled]] = [[name, text.size(max(number, 0))] for name, number in freed.items()]
        output.table([Column("workspace", wrap=True), Column("freed", right=True)], rows)
        what = text.count(len(freed), "workspace", "workspaces")
        output.say(f"Compacted {what}; {text.size(max(total, 0))} freed. What was forgotten is gone for good.")
    batch.end(failed, quiet=target.json)
