"""Memories as people see them, in tables and one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from recollect.cli import output, text
from recollect.cli.output import ID, QUIET, Column, Styled
from recollect.values.record import Record, utc_now

if TYPE_CHECKING:
    from recollect.cli.target import Target
    from recollect.memory import Memory

_NARROW, _WIDE = 60, 100


def records_table(records: Sequence[Record], *, with_state: bool = False) -> None:
    """One line each. Narrow terminals go without kind and importance; wide ones have tags and agents, too."""
    now, width = utc_now(), output.width()
    columns: list[tuple[Column, Callable[[Record], Styled]]] = [
        (Column("id", ID), lambda record: text.short(record.id)),
        (Column("made"), lambda record: text.ago(record.created_at, now)),
    ]
    if width >= _NARROW:
        columns.append((Column("kind"), lambda record: record.kind))
        columns.append((Column("imp.", right=True), lambda record: f"{record.importance:.2f}"))
    if with_state:
        columns.append((Column("state"), lambda record: record.state(now)))
    if with_state and width >= _NARROW and any(record.valid_from or record.valid_until for record in records):
        columns.append((Column("valid"), lambda record: text.span(record.valid_from, record.valid_until)))
    if width >= _WIDE and any(record.address.agent for record in records):
        columns.append((Column("agent"), lambda record: record.address.agent or ("shared", QUIET)))
    if width >= _WIDE and any(record.tags for record in records):
        columns.append((Column("tags", QUIET), lambda record: text.one_line(text.tags(record), 24)))
    columns.append((Column("memory", flexible=True), lambda record: text.one_line(record.text)))
    output.table([column for column, _ in columns], ([cell(record) for _, cell in columns] for record in records))


def headline(record: Record) -> list[Styled]:
    """Short id, kind and importance on one line."""
    parts: list[Styled] = [(text.short(record.id), ID), "  ", record.kind, f" · importance {record.importance:.2f}"]
    if record.tags:
        parts.append((f" · {text.tags(record)}", QUIET))
    return parts


def facts_of(record: Record) -> Iterator[tuple[str, Styled | None]]:
    """Everything about a memory but its content."""
    now, address = utc_now(), record.address
    yield "id", (record.id, ID)
    yield "state", record.state(now)
    yield "kind", record.kind
    yield "importance", f"{record.importance:.2f}"
    yield "tags", text.tags(record) or None
    yield "role", record.role
    yield "source", record.source
    yield "tier", record.tier
    for part in ("tenant", "workspace", "account", "channel", "conversation", "agent"):
        yield part, getattr(address, part)
    yield "lifetime", record.lifetime
    yield "created", text.moment(record.created_at, now)
    yield "recalled", _recalled(record)
    yield "expires", text.moment(record.expires_at, now) if record.expires_at else None
    yield "archived", text.moment(record.archived_at, now) if record.archived_at else None
    yield "valid from", text.moment(record.valid_from, now) if record.valid_from else None
    yield "valid until", text.moment(record.valid_until, now) if record.valid_until else None
    yield "superseded by", (record.superseded_by, ID) if record.superseded_by else None
    yield "references", "\n".join(record.references) or None
    yield "metadata", msgspec.json.encode(record.metadata).decode() if record.metadata else None
    yield "embedding", f"{len(record.embedding) // 4} dimensions" if record.embedding else None
    yield "checksum", "matches" if record.digest() == record.checksum else ("does not match", output.BAD)


def _recalled(record: Record) -> str:
    if not record.access_count:
        return "never"
    times = text.count(record.access_count, "time", "times")
    return f"{times}, last {text.moment(record.accessed_at, utc_now())}"


def empty_hint(target: Target, memory: Memory) -> str:
    """What may be wrong when nothing was found: a workspace that is not there."""
    workspace = memory.address.workspace
    if workspace in memory.workspaces():
        return ""
    workspaces = target.workspaces()
    if not workspaces:
        return ' Nothing was stored here yet: recollect remember "…"'
    return f" There is no workspace {workspace}; the workspaces are: {', '.join(workspaces)}."
