"""Export and import over HTTP: as one JSON document, or line by line as NDJSON.

Both go by way of a temporary file: so a refusal can still be a refusal, and no lock waits for a slow client.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import IO

from recollect.remote import wire
from recollect.server.access.caller import Caller
from recollect.server.bodies import check_no_query
from recollect.server.serving import Serving
from recollect.server.web import JSON, Answer, HttpRequest, StreamedBody, as_json
from recollect.values.record import SCHEMA_VERSION

LINES = "application/x-ndjson"
_CHUNK = 1 << 16


def export(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    view = serving.view(caller, wire.address_of(request.headers))
    file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the answer was sent)
    try:
        view.export(file)  # type: ignore[arg-type]
        file.seek(0)
    except BaseException:
        file.close()
        raise
    as_lines = request.prefers(LINES, JSON)
    parts = _lines(file) if as_lines else iter(lambda: file.read(_CHUNK), b"")
    return Answer(b"", 200, LINES if as_lines else JSON, {"vary": "accept"}, stream=StreamedBody(file, parts))


def import_(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    assert request.file is not None
    with request.file as file:
        check_no_query(request)
        view = serving.view(caller, wire.address_of(request.headers))
        with contextlib.closing(_document(file) if _is_lines(request) else file) as whole:
            return as_json(view.import_(whole))  # type: ignore[arg-type]


def _is_lines(request: HttpRequest) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == LINES


def _document(file: IO[bytes]) -> IO[bytes]:
    """An export in lines as one document. Lines with a shelf are things, which come after the memories."""
    document: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by the caller)
    with tempfile.TemporaryFile() as items:
        counts = {document: 0, items: 0}
        document.write(b'{"format":"recollect","schema_version":%d,"memories":[' % SCHEMA_VERSION)
        for line in file:
            if bare := line.strip():
                part = items if bare.startswith(b'{"shelf":') else document
                part.write((b"," if counts[part] else b"") + b"\n" + bare)
                counts[part] += 1
        document.write(b'\n],"things":[')
        items.seek(0)
        shutil.copyfileobj(items, document)
    document.write(b"\n]}\n")
    document.seek(0)
    return document


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    while lines := file.readlines(_CHUNK):
        if part := b"".join(filter(None, map(_line, lines))):
            yield part


def _line(line: bytes) -> bytes:
    bare = line.strip()
    return b"" if bare[:1] in (b"]", b"") or bare.endswith(b'"memories":[') else bare.removesuffix(b",") + b"\n"
