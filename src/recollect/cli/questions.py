"""Further ways to ask a memory: orient, consult, about, profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.cli import output, text
from recollect.cli.derived import derived
from recollect.cli.lazy import SHARED
from recollect.cli.output import ID, QUIET, STRONG, Column, Styled
from recollect.cli.recalling import document, print_hits
from recollect.values.record import utc_now

if TYPE_CHECKING:
    from recollect.recall.consult import Consulted
    from recollect.recall.hits import Hits
    from recollect.recall.profile import PersonProfile


orient = derived(
    "orient",
    "Print what is known about a topic, for a system prompt.\n\nWith what always matters, as one document.",
    'orient "the release"',
    show=lambda document: output.say(str(document) or "There is nothing to say yet."),
    document=lambda orientation: {"text": str(orientation), "orientation": orientation},
    uses=SHARED,
)


def _print_consulted(consulted: Consulted) -> None:
    now = utc_now()
    rows: list[list[Styled]] = [
        [
            f"{result.score:.3f}",
            (result.source, STRONG),
            text.ago(result.at, now) if result.at else ("-", QUIET),
            (text.short(result.id), ID) if result.id else ("-", QUIET),
            text.one_line(result.text),
        ]
        for result in consulted.results
    ]
    if rows:
        columns = [Column("score", right=True), Column("source"), Column("when"), Column("id")]
        output.table([*columns, Column("text", flexible=True)], rows)
    else:
        output.say("Nothing matched.")
    for failure in consulted.failures:
        output.note(f"recollect: {failure.source} gave no answer: {failure.reason}")


consult = derived(
    "consult",
    "Search memories, the audit log, workflows and the knowledge base at once.",
    'consult "how did the last release go?"',
    'consult "lease" --source workflow --source knowledge',
    show=_print_consulted,
    uses=SHARED,
)


def _print_about(hits: Hits) -> None:
    if not hits:
        output.say("No memory has this name.")
        return
    if hits.report:
        output.note(f"{hits.report[:1].upper()}{hits.report[1:]}.")
    print_hits(hits)


about = derived(
    "about",
    "List all memories that name somebody or something.\n\nUnder this name, or under another by an alias.",
    "about Alice",
    "about PostgreSQL --kind decision -n 5",
    hide=("agent", "tag"),
    spelled={"conversation": "--from-conversation"},
    show=_print_about,
    document=lambda hits: {"report": hits.report, "hits": [document(hit) for hit in hits]},
)


def _print_profile(profile: PersonProfile) -> None:
    if not profile.lines:
        output.say(f"Nothing is known of {profile.subject or 'the user'} yet.")
        return
    now = utc_now()
    rows: list[list[Styled]] = [
        [line.label, text.one_line(line.text), text.ago(line.since, now), (text.short(line.id), ID)]
        for line in profile.lines
    ]
    output.table([Column("about", STRONG), Column("text", flexible=True), Column("since"), Column("id")], rows)


profile = derived(
    "profile",
    "Show what current statements say of the user, or of somebody else.",
    "profile",
    "profile --subject Mara",
    as_options=("subject",),
    show=_print_profile,
)
