"""Answers of writes made anew, from what the writes have stored."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, cast

import msgspec

from recollect.audit import with_words
from recollect.memory import Memory, view_of
from recollect.operations import Operation, served_operations, signature
from recollect.recall.hits import Hit
from recollect.remote import wire
from recollect.server.web import Answer, HttpRequest
from recollect.stores.audit import Entry
from recollect.stores.shelves import names
from recollect.values.errors import RecollectError
from recollect.values.record import Record
from recollect.verbs.forget import Receipt


def replayed(
    memory: Memory, operation: Operation, request: HttpRequest, ids: Sequence[str], entries: Sequence[Entry]
) -> Answer | None:
    """The answer of a write that was done, from the memories in it or its audit entries; None if they do not tell."""
    gives = signature(operation.name).gives
    if gives in (Record, list[Record]):
        records = {record.id: record for record in view_of(memory).get(list(ids))}
        if not ids or any(ident not in records for ident in ids):
            return None
        several: Any = [records[ident] for ident in ids]
        if not wants_vectors(request):
            several = without_vectors(several)
        return _answer(operation, several[0] if gives is Record else several)
    if not entries:
        return None
    if gives is Entry:
        return _answer(operation, with_words(view_of(memory), entries[0]))
    if gives is Receipt:
        return _answer(operation, _receipt(entries))
    if gives is type(None):
        return _answer(operation, None)
    if gives in (str, list[str]) and ids:
        return _answer(operation, ids[0] if gives is str else list(ids))
    if operation.method == "DELETE":  # they tell how many, or whether
        count = len(_named(entries, "deleted")) or len(_named(entries, "things_changed"))
        return _answer(operation, bool(count) if gives is bool else count)
    return _read(memory, operation, request, entries, gives)


def _named(entries: Sequence[Entry], detail: str) -> list[str]:
    return [name for entry in entries for name in entry.meta.get(detail) or ()]


def _answer(operation: Operation, value: Any) -> Answer:
    return Answer(wire.encoded(value), operation.status)


def _receipt(entries: Sequence[Entry]) -> Receipt:
    """Whether the disk was scrubbed after it is not logged, so it is not claimed."""
    ids = tuple(ident for entry in entries for ident in entry.meta.get("deleted") or ())
    note = "told from the audit log, which does not say whether the disk was scrubbed; run compact to be sure"
    erased = any(entry.action == "erase" for entry in entries)
    audit_ids = tuple(entry.id for entry in entries)
    return Receipt(entries[0].at, len(ids), ids, None, False, audit_ids, note if erased else None)


def _read(
    memory: Memory, operation: Operation, request: HttpRequest, entries: Sequence[Entry], gives: Any
) -> Answer | None:
    """What is there now under the address that the write was about, or that it has made."""
    details = {name: value for entry in entries for name, value in entry.meta.items() if isinstance(value, str)}
    made = list(dict.fromkeys([*details.values(), *_addresses(memory, entries)]))
    for reader in served_operations().values():
        if reader.method != "GET":
            continue
        result_type, above = signature(reader.name).gives, reader.path.rpartition("/{")[0]
        names_in_path = [part[1:-1] for part in reader.path.split("/") if part.startswith("{")]
        arguments: list[dict[str, str]] = []
        if result_type == gives and reader.path in (operation.path, operation.path.rpartition("/")[0]):
            arguments = [dict(request.parts)]
        elif result_type == gives and above == operation.path:
            arguments = [{names_in_path[0]: ident} for ident in made]
        elif result_type == list[gives] and set(names_in_path) <= details.keys():
            arguments = [{name: details[name] for name in names_in_path}]
        for candidate in arguments:
            with contextlib.suppress(RecollectError):
                value = _call(memory, reader, candidate)
                if not isinstance(value, list):
                    return _answer(operation, value)
                for element in cast("list[Any]", value):
                    if element.id in made:
                        return _answer(operation, element)
    return None


def _call(memory: Memory, reader: Operation, arguments: dict[str, str]) -> Any:
    target: Any = memory
    for part in reader.name.split("."):
        target = getattr(target, part)
    return target(**arguments)


def _addresses(memory: Memory, entries: Sequence[Entry]) -> Iterator[str]:
    """What the things that the entries name may be asked for by.

    They are named by a hash, because an audit log must not hold a key that somebody chose.
    """
    named, view = set(_named(entries, "things_changed")), view_of(memory)
    for place in view.store.places(view.address.tenant) if named else ():
        if place not in view.places and (place.hidden or not place.reserved):
            continue
        for item in view.store.shelf(place, newest_first=True):
            if named.intersection(names([item]) or ()):
                yield from filter(None, (item.key, item.parent))


def wants_vectors(request: HttpRequest) -> bool:
    return request.headers.get(wire.VECTORS) == "1"


def without_vectors(result: Any) -> Any:
    """Vectors are left out unless they are asked for: only programs want them, and only some."""
    if isinstance(result, Record):
        return result if result.embedding is None else msgspec.structs.replace(result, embedding=None)
    if isinstance(result, Hit):
        return msgspec.structs.replace(result, memory=without_vectors(result.memory))
    several = cast("list[Any]", result) if isinstance(result, list) else []
    if not several or not isinstance(several[0], Record | Hit):
        return cast("Any", result)
    bare = copy(several)  # of hits, with what they say beside themselves
    bare[:] = [without_vectors(element) for element in several]
    return bare
