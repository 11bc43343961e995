"""What it takes to undo an audit entry: memories that it deleted, old values of fields, older versions of documents.

The content of a memory is in one place: in its row while it is stored, and in the undo data once it was deleted. Undo
data of a change holds the old values of the fields that may change, and no content.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from recollect.stores.fields import ADDRESS, CHANGEABLE, FIELDS
from recollect.stores.shelves import ShelfItem
from recollect.values.record import Record

_ALWAYS = ("id", "created_at", "checksum", "schema_version")
"""Fields that a memory's own line in a file always has."""
_KINDS: list[tuple[str, Any, Any]] = [
    (field.name, field.type | msgspec.UnsetType, msgspec.UNSET)
    for field in sorted(FIELDS, key=lambda field: not field.changes)
    if field.name not in _ALWAYS
]
_Fields: Any = msgspec.defstruct("_Fields", [*_KINDS, ("content", Any, msgspec.UNSET)], omit_defaults=True)


class FieldValues(_Fields):
    """Values of some fields of a memory. A field that is UNSET keeps its value.

    Some of these fields never change. They stand here where a memory's own line in a file has no room for them.
    """

    def onto(self, record: Record) -> Record:
        """The record with these values."""
        values: dict[str, Any] = {name: value for name in _NAMES if (value := getattr(self, name)) is not msgspec.UNSET}
        if parts := {name: values.pop(name) for name in ADDRESS if name in values}:
            values["address"] = replace(record.address, **parts)
        if values.get("tier") == "account":
            values["address"] = replace(values.get("address", record.address), workspace=None)
        return replace(record, **values)


_NAMES: tuple[str, ...] = FieldValues.__struct_fields__


class OldValues(NamedTuple):
    """The fields of a memory that may change, as they were before an entry."""

    id: str
    fields: FieldValues

    @classmethod
    def of(cls, record: Record) -> OldValues:
        return cls(record.id, FieldValues(**{name: getattr(record, name) for name in CHANGEABLE}))


def document_name(shelf: str, key: str) -> str:
    """What stands for a document among the ids of memories, which have no slash."""
    return f"{shelf}/{key}"


class Undo(NamedTuple):
    """What an entry of the audit log replaced."""

    deleted: Sequence[Record] = ()
    """Memories that it deleted, whole."""
    changed: Sequence[OldValues] = ()
    things: Sequence[ShelfItem] = ()
    """Documents as they were before. One of version 0 was not there, and has no content here."""

    @classmethod
    def of(cls, before: Iterable[Record], deleted: Iterable[str], items: Iterable[ShelfItem] = ()) -> Undo:
        """From memories as they were before. Those with the ids `deleted` are gone, and the others are still there."""
        records, gone, documents = list(before), set(deleted), [_without_content(item) for item in items]
        if not records and not documents:
            return NO_UNDO
        return cls(
            [record for record in records if record.id in gone],
            [OldValues.of(record) for record in records if record.id not in gone],
            documents,
        )

    @property
    def ids(self) -> set[str]:
        """Of the memories that it tells of."""
        return {record.id for record in self.deleted} | {values.id for values in self.changed}


NO_UNDO = Undo()


def _without_content(item: ShelfItem) -> ShelfItem:
    """A document that the entry made, and that was not there before: undo needs its key only, and sight its channel."""
    if item.version:
        return item
    return replace(item, body={name: value for name, value in item.body.items() if name == "channel"})


What = Literal["deleted", "changed", "thing"]


class UndoItem(NamedTuple):
    """One part of an entry's undo data, as a row has it."""

    what: What
    name: str
    """The id of the memory, or shelf and key of the document."""
    body: bytes


_encode = msgspec.json.Encoder().encode
_record = msgspec.json.Decoder(Record).decode
_fields = msgspec.json.Decoder(FieldValues).decode
_thing = msgspec.json.Decoder(ShelfItem).decode


def to_items(undo: Undo) -> list[UndoItem]:
    return [
        *(UndoItem("deleted", record.id, _encode(record)) for record in undo.deleted),
        *(UndoItem("changed", values.id, _encode(values.fields)) for values in undo.changed),
        *(UndoItem("thing", document_name(item.shelf, item.key), _encode(item)) for item in undo.things),
    ]


def from_items(items: Iterable[tuple[str, str, bytes]]) -> Undo:
    """From the items of one entry, in their order."""
    deleted: list[Record] = []
    changed: list[OldValues] = []
    shelf_items: list[ShelfItem] = []
    for what, name, body in items:
        if what == "deleted":
            deleted.append(_record(body))
        elif what == "changed":
            changed.append(OldValues(name, _fields(body)))
        else:
            shelf_items.append(_thing(body))
    return Undo(deleted, changed, shelf_items)
