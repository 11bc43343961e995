"""The knowledge base: add documents, publish them, search them, and say which agent may read what."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli import names, output, text
from recollect.cli.arguments import Call, takes
from recollect.cli.derived import derived
from recollect.cli.lazy import LazyGroup, Leaf
from recollect.cli.output import BAD, CAREFUL, GOOD, ID, QUIET, STRONG, Column, Styled
from recollect.cli.paths import PATH
from recollect.cli.progress import progress
from recollect.cli.target import Target, scoped
from recollect.values.record import utc_now

if TYPE_CHECKING:
    from recollect.facets.knowledge import Document, Ingested, Passage
    from recollect.memory import Memory
    from recollect.verbs.forget import Receipt

_OWNER = ("tenant", "workspace")
"""The knowledge base is the tenant's: the agent and account in recollect.toml are ignored."""
_SHOWN = 300
_USES = ("store", "preset", "tenant")
_scoped = partial(scoped, uses=_USES)


@click.group(
    cls=LazyGroup,
    default="list",
    sections={
        "Commands": {
            name: f"knowledge:{name if name != 'list' else 'list_'}"
            for name in ("add", "list", "show", "search", "publish", "withdraw", "remove", "allow")
        }
    },
)
def knowledge() -> None:
    """The documents of the tenant, which its agents search. Short: kb.

    \b
    Example:
      recollect knowledge add ./docs --category guides --publish
      recollect knowledge search "how is it installed?"
    """


@click.command(cls=Leaf)
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@takes("knowledge.add_folder", hide=("path", "status"))
@click.option(
    "--publish", is_flag=True, help="Publish them, so that they are searched. Without it, new ones are drafts."
)
@_scoped
def add(target: Target, call: Call, paths: tuple[str, ...], publish: bool) -> None:
    """Add files, and folders with all their md, txt, html, pdf and docx files.

    Run it again at any time: files that have not changed are passed over, and an interrupted run goes on. Files that
    cannot be read or hold a secret are named at the end, with the exit code 1.

    \b
    Example:
      recollect knowledge add ./docs --category guides --publish
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
            ingested: Ingested = call.run(memory, path=Path(path), status=status, progress=partial(_tell, tell, before))
            before += ingested.added + ingested.changed + ingested.unchanged + len(ingested.refused)
            report = _sum(report, ingested)
    if target.json:
        output.emit(report)
    else:
        _print_added(report)
    if report.refused:
        click.get_current_context().exit(1)


def _tell(tell: Callable[[int], None], before: int, done: int) -> None:
    tell(before + done)


def _sum(first: Ingested, second: Ingested) -> Ingested:
    return type(first)(*(getattr(first, field) + getattr(second, field) for field in first.__struct_fields__))


def _print_added(report: Ingested) -> None:
    counts = f"{report.added:,} new, {report.changed:,} changed, {report.unchanged:,} unchanged"
    output.say(counts, (f"  {text.count(report.chunks, 'passage', 'passages')} written", QUIET))
    for entry in report.refused:
        output.note(f"recollect: {entry.source}: {entry.reason}")
    for entry in report.left_out:
        place, _, rule = entry.reason.partition(": ")
        output.note(f"recollect: {entry.source}, {place} was left out: it looks like a secret ({rule})")


def _print_documents(documents: Sequence[Document]) -> None:
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


def _print_document(document: Document) -> None:
    output.say((text.one_line(document.title), STRONG))
    output.facts(
        [
            ("id", document.id),
            ("source", document.source),
            ("category", document.category),
            ("status", _status(document)),
            ("passages", f"{document.chunks:,}"),
            ("added", f"{document.created_at:%Y-%m-%d %H:%M}"),
            ("changed", f"{document.updated_at:%Y-%m-%d %H:%M}"),
            ("version", str(document.version)),
            ("hash", document.hash),
        ],
        indent=2,
    )


def _print_receipt(receipt: Receipt) -> None:
    output.say(f"Removed the document and {text.count(receipt.count, 'passage', 'passages')} for good.")
    if receipt.note:
        output.say((receipt.note, BAD))


def _subject(memory: Memory, arguments: Mapping[str, Any]) -> str:
    document = memory.knowledge.get(arguments["id"])
    return f"{text.one_line(document.title)} and its {text.count(document.chunks, 'passage', 'passages')}"


list_ = derived(
    "knowledge.list",
    "List the documents, in the order in which they were added.",
    "knowledge list --status draft",
    show=_print_documents,
    uses=_USES,
)
show = derived(
    "knowledge.get",
    "Show everything about one document. ID may also be its title or its source.",
    'knowledge show "The guide"',
    show=_print_document,
    name="show",
    uses=_USES,
)
remove = derived(
    "knowledge.remove",
    "Remove a document with its passages, for good. The file that it was read from stays.",
    'knowledge remove "The guide" --yes',
    show=_print_receipt,
    subject=_subject,
    of_tenant=True,
    uses=_USES,
)


@click.command(cls=Leaf)
@takes("knowledge.search")
@click.option("--explain", "-x", is_flag=True, help="Show the parts of each score.")
@partial(scoped, uses=(*_USES, "embedder", "agent"))
def search(target: Target, call: Call, explain: bool) -> None:
    """Search published documents; with --agent, those that this agent may read.

    \b
    Example:
      recollect knowledge search "how is it installed?" --agent atlas
    """
    with target.open() as memory:
        passages: list[Passage] = call.run(memory)
    if target.json:
        output.emit([{"score": passage.score, "passage": passage} for passage in passages])
        return
    if not passages:
        output.say("Nothing matched.")
    for passage in passages:
        place = f"{passage.source}, {passage.where}" if passage.where else passage.source
        output.say((f"{passage.score:.3f}  ", QUIET), (" › ".join(passage.trail), STRONG), (f"  {place}", QUIET))
        body = passage.text.partition("\n\n")[2]
        output.say(text.one_line(body, _SHOWN) or "(a heading)", indent=2)
        if explain:
            output.say((str(passage.explain()), QUIET), indent=2)


def _changes_status(verb: str, done: str, words: str) -> click.Command:
    """A command that publishes or withdraws several documents."""

    @click.argument("documents", nargs=-1, required=True, metavar="ID...")
    @_scoped
    def run(target: Target, documents: tuple[str, ...]) -> None:
        with target.open(vectors=False, usual=_OWNER) as memory:
            chosen = [names.document(memory, title) for title in documents]
            changed: list[Document] = [getattr(memory.knowledge, verb)(document.id) for document in chosen]
        if target.json:
            output.emit(changed)
            return
        for document in changed:
            output.say(f"{done} ", (text.short(document.id), ID), f" {text.one_line(document.title)}")

    run.__doc__ = f'{words}\n\n\b\nExample:\n  recollect knowledge {verb} "The guide"\n'
    return click.command(verb, cls=Leaf)(run)


publish = _changes_status("publish", "Published", "Publish documents: they are searched from then on.")
withdraw = _changes_status(
    "withdraw", "Withdrew", "Make documents drafts again: they stay, and are not searched any more."
)


@click.command(cls=Leaf)
@click.argument("name", metavar="AGENT")
@click.argument("categories", nargs=-1, metavar="[CATEGORY...]")
@click.option("--all", "everything", is_flag=True, help="All categories again.")
@click.option("--none", "nothing", is_flag=True, help="None at all.")
@_scoped
def allow(target: Target, name: str, categories: tuple[str, ...], everything: bool, nothing: bool) -> None:
    """Let an agent search some categories only; without any, show which it may search.

    \b
    Example:
      recollect knowledge allow atlas guides policies
      recollect knowledge allow atlas --all
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
