"""The knowledge base: add documents, publish them, search them, and say which agent may read what."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect.cli import output, text
from recollect.cli.forgetting import confirm
from recollect.cli.intake import TextArgument
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import BAD, CAREFUL, GOOD, ID, QUIET, STRONG, Column, Styled
from recollect.cli.progress import progress
from recollect.cli.target import Target, scoped
from recollect.values.errors import NotFoundError
from recollect.values.record import utc_now

if TYPE_CHECKING:
    from recollect.facets.knowledge import Document, Ingested
    from recollect.memory import Memory

_OWNER = ("tenant", "workspace")
"""The knowledge base is the tenant's: what the store's file says of an agent is not meant."""
_SHOWN = 300


@click.group(
    cls=LazyGroup,
    default="list",
    sections={
        "Commands": {
            "add": "kb:add",
            "list": "kb:list_",
            "show": "kb:show",
            "search": "kb:search",
            "publish": "kb:publish",
            "withdraw": "kb:withdraw",
            "remove": "kb:remove",
            "allow": "kb:allow",
        }
    },
)
def kb() -> None:
    """The knowledge base of the tenant, which its agents search.

    \b
    Example:
      recollect kb add ./docs --category guides --publish
      recollect kb search "how is it installed?"
    """


@click.command(cls=Leaf)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--category", "-c", help="Of all these documents.  [default: general, or as they have it]")
@click.option("--publish", is_flag=True, help="Have them searched at once. Without it, new ones are drafts.")
@click.option("--name", help="What the folder is called, wherever it is, so that its files are known by that.")
@scoped
def add(target: Target, paths: tuple[Path, ...], category: str | None, publish: bool, name: str | None) -> None:
    """Add files, and folders with all their md, txt, html, pdf and docx files.

    Run it again at any time: what has not changed is passed over, and what was interrupted goes on. Files that cannot
    be read or hold a secret are named at the end, with the exit code 1.

    \b
    Example:
      recollect kb add ./docs --category guides --publish
    """
    from recollect.documents.files import inside
    from recollect.facets.knowledge import Ingested

    total = sum(1 for path in paths for _ in inside(Path(os.path.abspath(path))))
    report, before = Ingested(), 0
    with (
        target.open(create=True, vectors=False, usual=_OWNER) as memory,
        progress("Reading", total) as tell,
    ):
        for path in paths:
            status = "published" if publish else None
            ingested = memory.knowledge.add_folder(
                path, category=category, status=status, name=name, progress=lambda done, n=before: tell(n + done)
            )
            before += ingested.added + ingested.changed + ingested.unchanged + len(ingested.refused)
            report = _sum(report, ingested)
    if target.json:
        output.emit(report)
    else:
        _say_added(report)
    if report.refused:
        click.get_current_context().exit(1)


def _sum(first: Ingested, second: Ingested) -> Ingested:
    return type(first)(*(getattr(first, field) + getattr(second, field) for field in first.__struct_fields__))


def _say_added(report: Ingested) -> None:
    counts = f"{report.added:,} new, {report.changed:,} changed, {report.unchanged:,} unchanged"
    output.say(counts, (f"  {text.count(report.chunks, 'passage', 'passages')} written", QUIET))
    for entry in report.refused:
        output.note(f"recollect: {entry.source}: {entry.reason}")
    for entry in report.left_out:
        place, _, rule = entry.reason.partition(": ")
        output.note(f"recollect: {entry.source}, {place} was left out: it looks like a secret ({rule})")


@click.command("list", cls=Leaf)
@click.option("--category", "-c", help="Of this category.")
@click.option("--status", type=click.Choice(["draft", "published"]), help="Only those.")
@click.option("--contains", help="With this in the title or the source.")
@scoped
def list_(target: Target, category: str | None, status: str | None, contains: str | None) -> None:
    """List the documents, in the order in which they were added.

    \b
    Example:
      recollect kb list --status draft
    """
    with target.open() as memory:
        documents = memory.knowledge.list(category=category, status=status, contains=contains)  # pyright: ignore[reportArgumentType]
    if target.json:
        output.emit(documents)
        return
    if not documents:
        output.say("There are no such documents.")
        return
    now = utc_now()
    rows: list[list[Styled]] = [
        [
            text.short(document.id),
            _status(document),
            document.category,
            f"{document.chunks:,}",
            text.ago(document.updated_at, now),
            text.one_line(document.title),
        ]
        for document in documents
    ]
    columns = [Column("id", ID), Column("status"), Column("category"), Column("passages", right=True)]
    output.table([*columns, Column("changed"), Column("title", flexible=True)], rows)


def _status(document: Document) -> tuple[str, str]:
    return document.status, GOOD if document.status == "published" else CAREFUL


@click.command(cls=Leaf)
@click.argument("document", metavar="ID")
@scoped
def show(target: Target, document: str) -> None:
    """Show everything about one document. ID may also be its title or its source.

    \b
    Example:
      recollect kb show "The guide"
    """
    with target.open() as memory:
        doc = _named(memory, document)
    if target.json:
        output.emit(doc)
        return
    output.say((text.one_line(doc.title), STRONG))
    output.facts(
        [
            ("id", doc.id),
            ("source", doc.source),
            ("category", doc.category),
            ("status", _status(doc)),
            ("passages", f"{doc.chunks:,}"),
            ("added", f"{doc.created_at:%Y-%m-%d %H:%M}"),
            ("changed", f"{doc.updated_at:%Y-%m-%d %H:%M}"),
            ("version", str(doc.version)),
            ("hash", doc.hash),
        ],
        indent=2,
    )


@click.command(cls=Leaf)
@click.argument("query", cls=TextArgument, nargs=-1, required=True, metavar="QUERY...")
@click.option("--limit", "-n", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many.")
@click.option("--category", "-c", "categories", multiple=True, help="Only in these; give it several times.")
@click.option("--explain", "-x", is_flag=True, help="What each score is made of.")
@scoped
def search(target: Target, query: tuple[str, ...], limit: int, categories: tuple[str, ...], explain: bool) -> None:
    """Search what is published; with --agent, as far as that agent may.

    \b
    Example:
      recollect kb search "how is it installed?" --agent atlas
    """
    with target.open() as memory:
        passages = memory.knowledge.search(" ".join(query), limit=limit, categories=categories or None)
    if target.json:
        output.emit([{"score": passage.score, "passage": passage} for passage in passages])
        return
    if not passages:
        output.say("Nothing found.")
    for passage in passages:
        place = f"{passage.source}, {passage.where}" if passage.where else passage.source
        output.say((f"{passage.score:.3f}  ", QUIET), (" › ".join(passage.trail), STRONG), (f"  {place}", QUIET))
        body = passage.text.partition("\n\n")[2]
        output.say(text.one_line(body, _SHOWN) or "(a heading)", indent=2)
        if explain:
            output.say((str(passage.explain()), QUIET), indent=2)


@click.command(cls=Leaf)
@click.argument("documents", nargs=-1, required=True, metavar="ID...")
@scoped
def publish(target: Target, documents: tuple[str, ...]) -> None:
    """Have documents searched from now on.

    \b
    Example:
      recollect kb publish "The guide"
    """
    _change(target, documents, "Published")


@click.command(cls=Leaf)
@click.argument("documents", nargs=-1, required=True, metavar="ID...")
@scoped
def withdraw(target: Target, documents: tuple[str, ...]) -> None:
    """Make documents drafts again: they stay, and are searched no more.

    \b
    Example:
      recollect kb withdraw "The guide"
    """
    _change(target, documents, "Withdrew")


def _change(target: Target, names: tuple[str, ...], done: str) -> None:
    with target.open(vectors=False, usual=_OWNER) as memory:
        documents = [_named(memory, name) for name in names]
        set_status = memory.knowledge.publish if done == "Published" else memory.knowledge.withdraw
        changed = [set_status(document.id) for document in documents]
    if target.json:
        output.emit(changed)
        return
    for document in changed:
        output.say(f"{done} ", (text.short(document.id), ID), f" {text.one_line(document.title)}")


@click.command(cls=Leaf)
@click.argument("document", metavar="ID")
@click.option("--reason", help="Why; kept in the audit log.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@scoped
def remove(target: Target, document: str, reason: str | None, yes: bool) -> None:
    """Erase a document with its passages, for good. The file that it was read from stays.

    \b
    Example:
      recollect kb remove "The guide" --yes
    """
    with target.open(vectors=False, usual=_OWNER) as memory:
        doc = _named(memory, document)
        if not yes:
            confirm(f"Erase {text.one_line(doc.title)} and its {text.count(doc.chunks, 'passage', 'passages')}?")
        receipt = memory.knowledge.remove(doc.id, reason=reason)
    if target.json:
        output.emit(receipt)
        return
    output.say(
        "Erased ", (text.one_line(doc.title), STRONG), f" and {text.count(receipt.count, 'passage', 'passages')}."
    )
    if receipt.note:
        output.say((receipt.note, BAD))


@click.command(cls=Leaf)
@click.argument("name", metavar="AGENT")
@click.argument("categories", nargs=-1, metavar="[CATEGORY...]")
@click.option("--all", "everything", is_flag=True, help="All categories again.")
@click.option("--none", "nothing", is_flag=True, help="None at all.")
@scoped
def allow(target: Target, name: str, categories: tuple[str, ...], everything: bool, nothing: bool) -> None:
    """Let an agent search some categories only; without any, show which it may search.

    \b
    Example:
      recollect kb allow atlas guides policies
      recollect kb allow atlas --all
    """
    if sum((bool(categories), everything, nothing)) > 1:
        raise click.UsageError("CATEGORY, --all and --none: one of them.")
    with target.open(create=True, vectors=False, usual=_OWNER) as memory:
        if categories or everything or nothing:
            memory.knowledge.allow(name, None if everything else categories)
        allowed = memory.knowledge.allowed(name)
    if target.json:
        output.emit({"agent": name, "categories": allowed})
        return
    which = "all categories" if allowed is None else ", ".join(allowed) or "nothing"
    output.say((name, STRONG), f" may search {which}.")


def _named(memory: Memory, name: str) -> Document:
    """By its id, the end of its id, its title or its source."""
    documents = memory.knowledge.list()
    matching = [document for document in documents if name in (document.id, document.title, document.source)]
    matching = matching or [
        document for document in documents if len(name) >= text.SHORT and document.id.endswith(name)
    ]
    if not matching:
        raise NotFoundError(f"there is no document {name}; `recollect kb list` shows those that there are")
    if len(matching) > 1:
        ids = ", ".join(text.short(document.id) for document in matching)
        raise NotFoundError(f"{len(matching)} documents are called {name}; give an id: {ids}")
    return matching[0]
