"""The columns file: what every recall looks at, as it is in memory, so that a new process need not read every row.

It is derived and may be deleted at any time. Whoever finds one that is torn, of another version, or of another state of
the database goes on without it. It has a header, then parts, which one checksum covers: columns, ids, tables, and the
vectors in bytes. It is mapped into memory with copy on write: processes share what none of them has changed, and none
changes the file.

A new one is written under another name and put in place as a whole. Whoever erases removes both, the unfinished ones
first: a writer makes its file before it looks at the memories, so either it does not see what is erased, or its file is
there to be removed and cannot be put in place any more.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from recollect.stores.resident.codes import Ids
from recollect.stores.resident.columns import Columns, ColumnsCopy
from recollect.stores.resident.columns_path import path_of, temporaries
from recollect.stores.resident.compacting import compacted
from recollect.stores.resident.vectors import Vectors
from recollect.values.record import Address, Tier, new_id

VERSION = 2
_MAGIC = b"RCOLUMNS"
_HEAD = struct.Struct("<8sIII")
"""The magic, the version, and the length and CRC-32 of the header."""
_ROOM = 1 << 14
"""Bytes before the first part."""
_ALIGNED = 4096
_CHUNK = 1 << 20
_ROWS = 16_384
"""Vectors that are written at a time."""
_IDS, _ENDS, _TABLES, _SCALE, _CODES = "ids", "ends", "tables", "scale", "codes"


class FilePart(msgspec.Struct, array_like=True, frozen=True):
    offset: int
    length: int
    kind: str
    """As numpy names it, with the order of its bytes."""


class Mark(NamedTuple):
    """A row of the database's list of changes, by which a file proves that it is of this database."""

    rev: int
    number: int


class Header(msgspec.Struct, frozen=True):
    byte_order: str
    rev: int
    """The last change of the database that the file has; whatever came later is read from there."""
    mark: Mark
    last: int
    """The highest key that it has."""
    size: int
    length: int
    """Of the whole file."""
    crc: int
    """Of everything after the header."""
    model: str | None
    dimensions: int
    parts: dict[str, FilePart]


class CodeTables(msgspec.Struct, frozen=True):
    """The values that columns have codes of, and the numbers of conversations."""

    who: list[tuple[Tier, str | None, str | None, str | None, str | None]]
    tags: list[tuple[str, ...]]
    others: dict[str, list[str | None]]
    conversations: dict[str, int]


# Reading


def load(
    database: str, tenant: str, workspace: str | None, is_of: Callable[[Header], bool]
) -> tuple[Header, Columns] | None:
    """The columns of a place as the file has them; None if it is not one that can be used."""
    try:
        with open(path_of(database), "rb") as file:
            header = _header(file)
            if header is None or not is_of(header) or _checksum(file, header) != header.crc:
                return None
            mapped = mmap.mmap(file.fileno(), header.length, access=mmap.ACCESS_COPY)
            return header, _columns(mapped, header, tenant, workspace)
    except (OSError, ValueError, KeyError, struct.error, msgspec.MsgspecError):
        return None


def header_of(database: str) -> Header | None:
    """None if there is no file, or one that is damaged."""
    with suppress(OSError, ValueError, struct.error, msgspec.MsgspecError), open(path_of(database), "rb") as file:
        header = _header(file)
        return header if header is not None and _checksum(file, header) == header.crc else None
    return None


def _header(file: BinaryIO) -> Header | None:
    magic, version, length, crc = _HEAD.unpack(file.read(_HEAD.size))
    if magic != _MAGIC or version != VERSION or length > _ROOM:
        return None
    encoded = file.read(length)
    if zlib.crc32(encoded) != crc:
        return None
    header = msgspec.json.decode(encoded, type=Header)
    is_whole = os.fstat(file.fileno()).st_size == header.length
    return header if is_whole and header.byte_order == sys.byteorder else None


def _checksum(file: BinaryIO, header: Header) -> int:
    """Read by the way of files, not of memory, so that what nobody looks at later is not resident."""
    file.seek(_ROOM)
    crc, left = 0, header.length - _ROOM
    while left > 0 and (chunk := file.read(min(left, _CHUNK))):
        crc, left = zlib.crc32(chunk, crc), left - len(chunk)
    return crc


def _columns(mapped: mmap.mmap, header: Header, tenant: str, workspace: str | None) -> Columns:
    def part(name: str) -> NDArray[Any]:
        where = header.parts[name]
        kind = np.dtype(where.kind)
        return np.frombuffer(mapped, kind, where.length // kind.itemsize, where.offset)

    tables = msgspec.json.decode(part(_TABLES).data, type=CodeTables)
    values: dict[str, list[Any]] = {**tables.others, "tags": list[Any](tables.tags)}
    values["who"] = [(Address(tenant, workspace, *address), tier) for tier, *address in tables.who]
    vectors = None
    if header.model is not None:
        base = part(_CODES).reshape(header.size, header.dimensions)
        vectors = Vectors(header.model, header.dimensions, header.size, base)
        vectors.scale = part(_SCALE)
    data = {name: part(name) for name in header.parts if name not in (_IDS, _ENDS, _TABLES, _SCALE, _CODES)}
    copied = ColumnsCopy(data, Ids(part(_IDS), part(_ENDS)), values, tables.conversations, vectors)
    return Columns.restored(copied, header.size)


# Writing


class Writing:
    """A file that is being written. Made before the memories are looked at: see the module."""

    def __init__(self, database: str, file: BinaryIO, temporary: str) -> None:
        self._database = database
        self._file = file
        self._temporary = temporary
        self._parts: dict[str, FilePart] = {}
        self._crc = 0

    def write(self, copied: ColumnsCopy, is_cancelled: Callable[[], bool]) -> None:
        """Everything but the header. InterruptedError if it is cancelled."""
        self._fits(copied)
        alive, copied = copied.data["alive"], compacted(copied)
        self._file.seek(_ROOM)
        for name, column in copied.data.items():
            self._part(name, column.dtype.str, [column])
        text, ends = copied.ids.packed()
        self._part(_IDS, "|u1", [text])
        self._part(_ENDS, ends.dtype.str, [ends])
        self._part(_TABLES, "|u1", [np.frombuffer(_encoded_tables(copied), np.uint8)])
        vectors, self._size = copied.vectors, len(copied.ids)
        self._last = int(copied.data["key"][-1]) if self._size else 0
        self._of = (None, 0) if vectors is None else (vectors.model, vectors.dimensions)
        if vectors is not None:
            self._part(_SCALE, vectors.scale.dtype.str, [vectors.scale[alive]])
            self._part(_CODES, "|i1", _blocks(vectors, alive, is_cancelled))

    def _fits(self, copied: ColumnsCopy) -> None:
        """OSError unless twice as much is free: whoever stores memories needs the disk more than this does."""
        vectors = copied.vectors
        wanted = sum(column.nbytes for column in copied.data.values()) + (0 if vectors is None else vectors.bytes)
        disk = os.fstatvfs(self._file.fileno())
        if disk.f_bavail * disk.f_frsize < 2 * wanted:
            raise OSError("the disk is nearly full")

    def _part(self, name: str, kind: str, blocks: Iterable[NDArray[Any]]) -> None:
        padding = -self._file.tell() % _ALIGNED
        self._crc = zlib.crc32(bytes(padding), self._crc)
        self._file.write(bytes(padding))
        start = self._file.tell()
        for block in blocks:
            data = np.ascontiguousarray(block).reshape(-1).view(np.uint8).data
            self._crc = zlib.crc32(data, self._crc)
            self._file.write(data)
        self._parts[name] = FilePart(start, self._file.tell() - start, kind)

    def finish(self, rev: int, mark: Mark) -> None:
        """Put it in place, unless it was removed meanwhile."""
        length = self._file.tell()
        model, dimensions = self._of
        header = msgspec.json.encode(
            Header(
                sys.byteorder,
                rev,
                mark,
                self._last,
                self._size,
                length,
                self._crc,
                model,
                dimensions,
                self._parts,
            )
        )
        assert len(header) <= _ROOM - _HEAD.size
        self._file.seek(0)
        self._file.write(_HEAD.pack(_MAGIC, VERSION, len(header), zlib.crc32(header)) + header)
        self._file.flush()
        # After a power cut there must not be a file with a good header and empty parts.
        os.fsync(self._file.fileno())
        os.rename(self._temporary, path_of(self._database))

    def close(self) -> None:
        """Leave nothing behind of what was not finished."""
        with suppress(OSError):
            os.unlink(self._temporary)
        with suppress(OSError):
            self._file.close()


def begin(database: str) -> Writing | None:
    """None while another process writes one."""
    for other in temporaries(database):
        if not _is_abandoned(other):
            return None
        with suppress(OSError):
            os.unlink(other)
    temporary = f"{path_of(database)}-{new_id()}"
    file = os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "r+b")
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return Writing(database, file, temporary)


def _is_abandoned(temporary: str) -> bool:
    """Whether its writer has ended: the lock went with it."""
    try:
        with open(temporary, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _encoded_tables(copied: ColumnsCopy) -> bytes:
    values = copied.values
    who = [(tier, owner.account, owner.channel, owner.conversation, owner.agent) for owner, tier in values["who"]]
    others = {name: some for name, some in values.items() if name not in ("who", "tags")}
    return msgspec.json.encode(CodeTables(who, values["tags"], others, copied.conversations))


def _blocks(vectors: Vectors, alive: NDArray[np.bool_], is_cancelled: Callable[[], bool]) -> Iterator[NDArray[np.int8]]:
    begin = 0
    for matrix in (vectors.base, vectors.tail):
        for start in range(0, len(matrix), _ROWS):
            if is_cancelled():
                raise InterruptedError
            block = matrix[start : start + _ROWS]
            living = alive[begin : begin + len(block)]
            yield block if living.all() else block[living]
            begin += len(block)
