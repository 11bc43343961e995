"""Lines that cannot be read, kept beside the memories when these are written anew: one may be a person's slip."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from recollect.stores.files import files
from recollect.stores.files.fileset import UNREAD, FileSet
from recollect.stores.files.formats import Format
from recollect.stores.files.lines import named
from recollect.stores.files.replay import UNREADABLE, Replay
from recollect.stores.port import Damage, Place

_CONTENT = ("content", "text")


def set_aside(place: Place, fileset: FileSet, format: Format, damaged: set[int], deleted: set[str]) -> None:
    """Add the lines that begin at these bytes, and let go of what tells of memories that were deleted. OSError."""
    path = fileset.path(UNREAD)
    before = files.read_whole(path)
    memories = list(files.lines(files.read_whole(fileset.main_path)))
    if memories and not memories[-1].whole and _problem(place, format, memories[-1].data):
        damaged = {*damaged, memories[-1].start}  # no damage so far: somebody might still have been writing it
    new = [line.data for line in memories if line.start in damaged]
    unread_lines = list(dict.fromkeys([*_lines(before), *new]))  # a crash after this must not make them twice as many
    if not unread_lines:
        return
    gone = [line.data for line in memories if line.start not in damaged and _id(line.data) in deleted]
    contents = [content for line in gone if (content := _content(format, line)) is not None]
    unread_lines = [line for line in unread_lines if not _tells_of(line, deleted, gone, contents)]
    after = b"".join(line + b"\n" for line in unread_lines)
    if after != before:
        files.replace(path, after)


def count(fileset: FileSet) -> int:
    return len(_lines(files.read_whole(fileset.path(UNREAD)))) if fileset.identity(UNREAD).size else 0


def damage(place: Place, fileset: FileSet, format: Format) -> list[Damage]:
    """What is there, each with what is wrong with it."""
    damages: list[Damage] = []
    for number, line in enumerate(_lines(files.read_whole(fileset.path(UNREAD))), 1):
        why = _problem(place, format, line)
        problem = f"was set aside{why and f': it {why}'}. Add it to {format.file} as it should be, and remove it here"
        damages.append(Damage(f"{UNREAD}, line {number}", problem))
    return damages


def _problem(place: Place, format: Format, line: bytes) -> str:
    """Why it cannot be read; nothing if it can."""
    alone = Replay(place, format)
    alone.read(format.file, files.Line(0, len(line) + 1, line, True))
    return next((damage.problem for damage in alone.damage.values()), "")


def _lines(data: bytes) -> list[bytes]:
    return [line.data for line in files.lines(data) if line.data.strip()]


def _id(line: bytes) -> str | None:
    try:
        return named(line)
    except UNREADABLE:
        return None


def _content(format: Format, line: bytes) -> Any:
    try:
        return format.content(line)
    except UNREADABLE:
        return None


def _tells_of(line: bytes, deleted: set[str], gone: Iterable[bytes], contents: list[Any]) -> bool:
    """Whether it has the id or the content of a memory that was deleted, or is a piece of its line."""
    if _id(line) in deleted or any(line in whole for whole in gone):
        return True
    try:
        fields = msgspec.json.decode(line, type=dict[str, Any])
    except UNREADABLE:
        return any(msgspec.json.encode(content).strip(b'"') in line for content in contents)
    return any(fields[name] in contents for name in _CONTENT if name in fields)
