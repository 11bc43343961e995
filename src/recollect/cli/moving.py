"""Moving memories: export and import."""

from __future__ import annotations

import sys

import click
import msgspec

from recollect.cli import output, text
from recollect.cli.intake import check_new, piped
from recollect.cli.lazy import Leaf
from recollect.cli.output import STRONG
from recollect.cli.paths import PATH
from recollect.cli.progress import progress
from recollect.cli.sessions import print_damage
from recollect.cli.target import Target, scoped
from recollect.values.errors import AccessError


@click.command(cls=Leaf)
@click.argument("file", default="-", metavar="[FILE|-]", type=PATH)
@click.option("--force", "-f", is_flag=True, help="In place of a file that is there.")
@scoped
def export(target: Target, file: str, force: bool) -> None:
    """Write every memory to a file or stdout, as JSON.

    A file is complete or not there at all, and in place of another only with --force. It can be read back with
    `recollect import`.

    \b
    Example:
      recollect export backup.json
      recollect export | gzip > backup.json.gz
    """
    if file != "-":
        check_new(file, force)
    with target.open() as memory, progress("Exporting", memory.stats().total) as tell:
        if file == "-":
            # To stdout the export itself is the one JSON document.
            stream = output.stream()
            memory.export(stream, progress=tell)
            stream.flush()
            return
        number = memory.export(file, progress=tell)
    if target.json:
        output.emit({"exported": number, "file": file})
    else:
        output.say(f"Exported {text.count(number)} to ", (file, STRONG))


@click.command(cls=Leaf)
@click.argument("folder", metavar="TARGET", type=PATH)
@scoped
def backup(target: Target, folder: str) -> None:
    """Copy the whole store into a new folder.

    All tenants and workspaces, with their audit logs, while other processes go on writing. The copy is a store like
    this one. It is verified, and there as a whole or not at all. Exits with 1 if something in the store is damaged.

    \b
    Example:
      recollect backup ~/backups/memory-2026-03-01
    """
    if bound := sorted(target.address()):
        raise AccessError(f"backup: it holds the whole store; leave out --{bound[0]}")
    from recollect.stores.integrity import all_places

    store, home = target.find()
    with (
        target.open((store, home), report_damage=False, usual=()) as memory,
        progress("Copying", len(all_places(store))) as tell,
    ):
        done = memory.backup(folder, progress=tell)
    if target.json:
        output.emit({**msgspec.structs.asdict(done), "damage": [damage._asdict() for damage in done.damage]})
    else:
        output.say(f"Copied {text.size(done.size_bytes)} to ", (done.path, STRONG))
        print_damage(list(done.damage))
    if done.damage:
        click.get_current_context().exit(1)


@click.command("import", cls=Leaf)
@click.argument("file", required=False, metavar="[FILE|-]", type=PATH)
@scoped
def import_(target: Target, file: str | None) -> None:
    """Read an export back from a file or stdin.

    Ids, times and states stay as they were. What is there already is left alone, so it is safe to do twice. One bad
    line, and nothing is changed.

    \b
    Example:
      recollect import backup.json --store ./new
      gunzip -c backup.json.gz | recollect import
    """
    if file is None and not piped():
        raise click.UsageError("Give the FILE, or pipe it in.")
    source = sys.stdin.buffer if file in (None, "-") else file
    with target.open(create=True, vectors=False) as memory, progress("Importing", None) as tell:
        done = memory.import_(source, progress=tell)
    if target.json:
        output.emit(done)
        return
    unchanged = f" {done.unchanged:,} of the file were there already." if done.unchanged else ""
    output.say(f"Imported {text.count(done.added)}.{unchanged}")
