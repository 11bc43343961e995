"""Deleted memories whose lines are still in the log, under their tombstones, until the log is written anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable

from msgspec.structs import replace

from recollect.stores.files.files import Line
from recollect.stores.files.fileset import CHANGES, TOMBSTONES, VECTORS
from recollect.stores.files.formats import Format
from recollect.stores.files.lines import Buried
from recollect.stores.files.replay import PENDING, UNREADABLE, Replay, head
from recollect.stores.port import Place
from recollect.values.record import Record

_Lines = dict[str, list[tuple[str, bytes, int]]]
"""By the id of a memory: the file, the line, and its version."""


def read_buried(
    place: Place, format: Format, wanted: Collection[Buried], lines: Callable[[str], Iterable[bytes]]
) -> dict[Buried, Record]:
    """Those of the wanted memories that can be read. `lines` gives all lines of a file of the log."""
    if not wanted:
        return {}
    # Earlier tombstones come first: a memory may have been deleted, stored again under its id, and deleted again.
    names = (TOMBSTONES, format.file, CHANGES, VECTORS)
    lines_by_id = _lines_of({buried.id for buried in wanted}, names, lines)
    records: dict[Buried, Record] = {}
    for buried in wanted:
        replay = Replay(place, format)
        for name, data, version in lines_by_id[buried.id]:
            if version < buried.version or (version == buried.version and name != TOMBSTONES):
                replay.read(name, Line(PENDING, PENDING, data, True))
        if (row := replay.row(buried.id)) is not None:
            records[buried] = replace(row.record, checksum=row.record.digest())
    return records


def _lines_of(ids: set[str], names: Iterable[str], lines: Callable[[str], Iterable[bytes]]) -> _Lines:
    lines_by_id: _Lines = defaultdict(list)
    for name in names:
        for data in lines(name):
            try:
                line = head(data)
            except UNREADABLE:
                continue
            if line.id in ids:
                lines_by_id[line.id].append((name, data, line.version))
    return lines_by_id
