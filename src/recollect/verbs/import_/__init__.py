"""Import: an export is read once to check it, and once more to store it as one change."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC
from itertools import count, islice
from typing import IO, Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from recollect.policies.personal import secret_in
from recollect.policies.secrets import screen, screen_name
from recollect.stores.integrity import is_intact
from recollect.stores.port import Place, by_place
from recollect.stores.shelves import ShelfItem, names
from recollect.values import validation
from recollect.values.errors import AccessError, ConflictError, InputError, SecretError
from recollect.values.filters import private_owner
from recollect.values.record import SCHEMA_VERSION, Record, new_id, render, unpack
from recollect.verbs.archive import memories_text
from recollect.verbs.export import FORMAT, Progress, Target
from recollect.verbs.import_.things import ThingCheck, thing_here
from recollect.verbs.remember.quota import keep_quota
from recollect.view import View

T = TypeVar("T")
_BATCH = 1000
_LONGEST_WHOLE = 16 * 1024 * 1024
"""Bytes of a document that must be read as a whole. What that takes in memory can be forty times as many."""
_record = msgspec.json.Decoder(Record).decode
_thing = msgspec.json.Decoder(ShelfItem).decode
_names = msgspec.json.Decoder(list[str]).decode
_DAMAGED = b'],"damaged":'
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Imported(msgspec.Struct, frozen=True):
    added: int
    unchanged: int
    """Were there already, exactly the same."""
    damaged: tuple[str, ...] = ()
    """Ids of memories that the export has left out, because they were damaged."""


class _Header(msgspec.Struct):
    format: str
    schema_version: int
    memories: list[msgspec.Raw] = []
    things: list[msgspec.Raw] = []
    damaged: list[str] = []


class _LeftOut(NamedTuple):
    """Memories that an export does not have, because they were damaged."""

    ids: list[str]


def import_(view: View, source: Target, progress: Progress | None = None) -> Imported:
    """Read everything once to check it, then once more to store it as one change."""
    with view.logging_refusals("import"), read_from(source) as stream:
        view.screen_address()
        places, ids, successors, damaged = {view.place}, set[str](), dict[str, int](), list[str]()
        memories, items = count(1), ThingCheck(view)
        for item in _items(stream):
            if isinstance(item, _LeftOut):
                damaged = validation.memory_ids(item.ids)
            elif isinstance(item, Record):
                number = next(memories)
                _check(view, item, number)
                places.add(Place.of(_here(view, item)))
                ids.add(item.id)
                if item.superseded_by is not None:
                    successors[item.superseded_by] = number
            else:
                items.check(item)
        items.check_links()
        lost = set(damaged) - {record.id for record in view.get(damaged, damaged=True)} if damaged else set[str]()
        for ident in successors.keys() - ids - lost:  # else an import could rewrite the history of existing memories
            raise InputError("source", f"memory {successors[ident]}: superseded_by {ident} is not in the export")
        stream.seek(0)
        with view.store.transaction(*places):
            imported = replace(_store(view, stream, progress), damaged=tuple(damaged))
    if imported.added:
        keep_quota(view, imported.added)
        view.new_in(*places)
    return imported


def _store(view: View, stream: IO[bytes], progress: Progress | None) -> Imported:
    """In a transaction."""
    created: dict[Place, list[str]] = {}
    private: dict[Place, dict[str | None, Record]] = {}
    """By place and agent one memory that is private to the agent, and under None one that is not private."""
    stored: dict[Place, list[ShelfItem]] = {}
    total = added = 0
    items = _items(stream)
    while batch := list(islice(items, _BATCH)):
        records = [_here(view, item) for item in batch if isinstance(item, Record)]
        for place, group in by_place(_new(view, records)).items():
            created.setdefault(place, []).extend(record.id for record in view.store.put(place, group))
            private.setdefault(place, {}).update((private_owner(record), record) for record in group)
            added += len(group)
        for item in (item for item in batch if isinstance(item, ShelfItem)):
            if not view.store.find(view.place, item.shelf, [item.key]):
                view.store.keep(view.place, thing_here(view, item))
                stored.setdefault(view.place, []).append(replace(item, version=0))
        total += len(records)
        if progress:
            progress(total)
    changed = list(dict.fromkeys([*created, *stored]))
    whole = new_id() if len(changed) > 1 else None
    for place in changed:
        ids, shelf_items = created.get(place, []), stored.get(place, [])
        message = f"imported {memories_text(len(ids))}"
        some = private.get(place, {}).values()
        changes: dict[str, Any] = {"created": ids, "things_changed": names(shelf_items)}
        view.log(place, "import", message, (), shelf_items, concerning=some, part_of=whole, **changes)
    return Imported(added, total - added)


@contextmanager
def read_from(source: Target) -> Generator[IO[bytes]]:
    if isinstance(source, str | os.PathLike):
        try:
            stream = open(source, "rb")  # noqa: SIM115
        except FileNotFoundError:
            raise InputError("source", f"there is no file {os.fspath(source)}") from None
        except (OSError, ValueError) as error:
            problem = error.strerror if isinstance(error, OSError) else error
            raise InputError("source", f"{os.fspath(source)!r} cannot be read: {problem}") from None
        with stream:
            yield stream
        return
    import tempfile

    with tempfile.SpooledTemporaryFile(max_size=1 << 24) as stream:
        while chunk := source.read(1 << 20):
            stream.write(chunk)
        stream.seek(0)
        yield stream  # pyright: ignore[reportReturnType]


def _items(stream: IO[bytes]) -> Iterator[Record | ShelfItem | _LeftOut]:
    """Line by line as exported; a document that was laid out otherwise is read as a whole."""
    head = stream.readline(_LONGEST_WHOLE)
    if head.rstrip().endswith(b'"memories":['):
        _check_header(head.rstrip() + b"]}")
        decode: Callable[[bytes], Record | ShelfItem] = _record
        for number, line in enumerate(stream, 2):
            line = line.strip()
            if line == b"]}":
                return
            if line == b'],"things":[':
                decode = _thing
                continue
            if line.startswith(_DAMAGED):
                yield _LeftOut(_decoded(_names, line.removeprefix(_DAMAGED).removesuffix(b"}"), f"line {number}"))
                return
            yield _decoded(decode, line.removesuffix(b","), f"line {number}")
        raise InputError("source", "ends in the middle: the export is not complete")
    stream.seek(0)
    text = stream.read(_LONGEST_WHOLE + 1)
    if len(text) > _LONGEST_WHOLE:
        advice = "as `recollect export` writes it, with each memory in a line of its own"
        raise InputError("source", f"may have at most {_LONGEST_WHOLE:,} bytes unless it is laid out {advice}")
    document = _check_header(text)
    for number, raw in enumerate(document.memories, 1):
        yield _decoded(_record, raw, f"memory {number}")
    for number, raw in enumerate(document.things, 1):
        yield _decoded(_thing, raw, f"thing {number}")
    if document.damaged:
        yield _LeftOut(document.damaged)


def _check_header(document: bytes) -> _Header:
    try:
        header = msgspec.json.decode(document, type=_Header)
    except _UNREADABLE as error:
        raise InputError("source", f"is not an export of recollect: {error}") from None
    if header.format != FORMAT:
        raise InputError("source", f"is not an export of recollect: its format is {header.format[:40]!r}")
    if header.schema_version > SCHEMA_VERSION:
        raise InputError(
            "source",
            f"has schema version {header.schema_version}; this recollect knows up to {SCHEMA_VERSION}: upgrade it",
        )
    return header


def _decoded(decode: Callable[[bytes], T], line: Any, where: str) -> T:
    try:
        return decode(line)
    except _UNREADABLE as error:
        raise InputError("source", f"{where}: {error}") from None


def _here(view: View, record: Record) -> Record:
    """At the view's tenant and workspace, whatever they were called where the export was made."""
    workspace = None if record.tier == "account" else view.address.workspace
    return replace(record, address=replace(record.address, tenant=view.address.tenant, workspace=workspace))


def _check(view: View, record: Record, number: int) -> None:
    where, rules = f"memory {number}", view.preset.secrets
    for field, text in (("content", record.text), ("metadata", render(record.metadata))):
        if rule := secret_in(text, view.preset.personal, rules):
            raise SecretError(field, rule)
    for field in ("tags", "references", "derived_from"):
        screen(rules, field, " ".join(getattr(record, field)))
    for field in ("source", "embedding_model"):
        screen(rules, field, getattr(record, field) or "")
    screen_name(rules, "kind", record.kind)
    for part in ("account", "channel", "conversation", "agent"):
        screen_name(rules, part, getattr(record.address, part) or "")
    try:
        _check_fields(record)
    except InputError as error:
        raise InputError("source", f"{where}: {error}") from None
    if record.digest() != record.checksum:
        raise InputError("source", f"{where} ({record.id}) does not match its checksum: the file was changed")
    most, tags = view.preset.remember.max_chars, view.preset.remember.max_tags
    if most is not None and len(record.text) > most:
        raise InputError("source", f"{where}: {len(record.text):,} characters is over the limit of {most:,}")
    if tags is not None and len(record.tags) > tags:
        raise InputError("source", f"{where}: {len(record.tags)} tags are over the limit of {tags}")
    if not view.sees_memory(_here(view, record)):
        raise AccessError(f"source: {where} belongs to another agent, account, channel or conversation than this view")


def _check_fields(record: Record) -> None:
    """What the types allow, but `remember` would not."""
    validation.memory_id(record.id)
    validation.kind(record.kind)
    validation.importance(record.importance)
    validation.content(record.content)
    validation.metadata(record.metadata)
    validation.tags(record.tags)
    validation.references(record.references)
    validation.sources(record.derived_from)
    validation.count(record.access_count, "access_count", 0, 1 << 53)
    validation.count(record.schema_version, "schema_version", 1, SCHEMA_VERSION)
    for part in ("account", "channel", "conversation", "agent"):
        if (name := getattr(record.address, part)) is not None:
            validation.name(name, part)
    for field in ("source", "embedding_model"):
        if (label := getattr(record, field)) is not None:
            validation.label(label, field)
    for field in ("created_at", "accessed_at", "expires_at", "archived_at", "valid_from", "valid_until"):
        if (time := getattr(record, field)) is not None and time.tzinfo is not UTC:
            raise InputError(field, "must be in UTC, as it was exported")
    validation.validity(record.valid_from, record.valid_until)
    if record.superseded_by is not None:
        validation.memory_id(record.superseded_by, "superseded_by")
    if record.embedding is not None:
        if len(record.embedding) % 4:
            raise InputError("embedding", "is not a list of float32 values")
        validation.embedding(unpack(record.embedding))


def _new(view: View, batch: list[Record]) -> list[Record]:
    """Those that are not there yet. The same id with something else in it is a ConflictError."""
    existing = (
        {record.id: record for record in view.get([record.id for record in batch], damaged=True)} if batch else {}
    )
    for record in batch:
        twin = existing.get(record.id)
        if twin is not None and twin.checksum != record.checksum:
            raise ConflictError(f"memory {record.id} exists with other content; nothing of it was changed")
        if twin is not None and not is_intact(twin):
            raise ConflictError(f"memory {record.id} is here, but damaged; forget it and import again")
    new = [record for record in batch if record.id not in existing]
    for record in new:
        for part in view.bound.intersection(("account", "agent")):
            if getattr(record.address, part) != getattr(view.address, part):
                raise AccessError(
                    f"source: {record.id} is shared, and this view is bound to the {part} "
                    f"{getattr(view.address, part)}; whoever owns the workspace can import it"
                )
    return new
