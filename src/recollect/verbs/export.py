"""Export: one JSON document, one memory a line, written as a stream."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TypeVar

import msgspec

from recollect.stores.audit import TEXTS
from recollect.stores.integrity import CHANGED, is_intact, log_damage
from recollect.stores.port import Place
from recollect.stores.shelves import ShelfItem
from recollect.values.bodies import CONVERSATIONS, REF_CODES
from recollect.values.errors import InputError
from recollect.values.filters import belongs_to
from recollect.values.record import SCHEMA_VERSION, Record, new_id
from recollect.view import View

Target = str | os.PathLike[str] | IO[bytes]
Progress = Callable[[int], object]

T = TypeVar("T")
FORMAT = "recollect"
_BATCH = 1000
_encode = msgspec.json.Encoder().encode
_record = msgspec.json.Decoder(Record).decode
_thing = msgspec.json.Decoder(ShelfItem).decode
_names = msgspec.json.Decoder(list[str]).decode
_DAMAGED = b'],"damaged":'
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def export(view: View, target: Target, progress: Progress | None = None) -> int:
    """Everything the view can see, in every state. A file is complete or not there at all.

    A memory that was changed outside recollect is left out; the file and the log name it.
    """
    view.settle_answers()
    damaged: list[str] = []
    with written_to(target) as out:
        head = {"format": FORMAT, "schema_version": SCHEMA_VERSION, "exported_at": view.now()}
        out.write(_encode(head)[:-1] + b',"memories":[')
        count = 0
        for record in view.store.scan(view.where(state=None)):
            if not is_intact(record):
                log_damage(Place.of(record), record.id, CHANGED)
                damaged.append(record.id)
                continue
            count += 1
            out.write((b"\n" if count == 1 else b",\n") + _encode(record))
            if progress and count % _BATCH == 0:
                progress(count)
        for number, item in enumerate(_things(view)):
            out.write((b'\n],"things":[\n' if number == 0 else b",\n") + _encode(item))
        out.write((b'\n],"damaged":' + _encode(damaged) + b"}\n") if damaged else b"\n]}\n")
    if progress:
        progress(count)
    return count


def _things(view: View) -> Iterator[ShelfItem]:
    """The readable things on the shelves that this view may export."""
    address = view.address
    conversations = {item.key for item in view.things(CONVERSATIONS)}
    for item in view.things(None):
        if item.shelf == TEXTS:
            continue  # of the audit log, which stays here
        if item.shelf == REF_CODES and item.body["key"] not in conversations:
            continue  # its conversation cannot be read, and no import takes a ref code without one
        own = belongs_to(address, item.account, item.agent) and address.conversation in (None, item.parent)
        if own and view.sees(item):
            yield item


@contextmanager
def written_to(target: Target) -> Generator[IO[bytes]]:
    if not isinstance(target, str | os.PathLike):
        yield target
        return
    path = os.path.abspath(target)
    # A name that nobody can guess, and made new: somebody may have put a link to another file there.
    part = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{new_id()}.part")
    try:
        with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(part, path)
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else error
        raise InputError("target", f"{path!r} cannot be written: {problem}") from error
    finally:
        with suppress(FileNotFoundError, ValueError):
            os.unlink(part)
