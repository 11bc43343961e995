"""Downloads that go on where they were broken off."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from recollect.values.errors import ModelError

Progress = Callable[[int, int], None]
"""Called with how many bytes there are, and how many there will be."""

_CHUNK = 1 << 16
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")
_PARTIAL, _NO_SUCH_RANGE = 206, 416


class _BrokenOffError(Exception):
    """The other side could not be reached, or fell silent. Errors of the disk are not among this."""


def download(url: str, part: Path, limit: int, progress: Progress, timeout: float = 30.0) -> None:
    """Bring what is at a URL into `part`, after what is in it from an earlier time.

    A broken connection is taken up again for as long as each brings something; `part` stays when it is given up.
    ModelError where nothing can be reached, or where there is more than `limit` bytes.
    """
    while True:
        before = _size(part)
        try:
            if _continue(url, part, limit, progress, timeout):
                return
            problem = "the connection was broken off"
        except HTTPError as error:
            error.close()
            if error.code != _NO_SUCH_RANGE or not before:
                raise ModelError(f"{shown(url)} answered with {error.code} {error.reason}") from None
            part.unlink()
            continue
        except _BrokenOffError as error:
            problem = str(error)
        if _size(part) <= before:
            raise ModelError(f"{shown(url)} cannot be reached ({problem})")


def _continue(url: str, part: Path, limit: int, progress: Progress, timeout: float) -> bool:
    """Whether all of it is there now."""
    have = _size(part)
    with _open(url, have, timeout) as answer:
        start, total = _extent(answer)
        if start not in (0, have) or (total or 0) > limit:
            raise ModelError(f"{shown(url)} has not the size of a model's file")
        with part.open("r+b" if have else "wb") as file:
            file.truncate(start)
            file.seek(start)
            got = start
            while chunk := _read(answer):
                got += file.write(chunk)
                if got > limit:
                    raise ModelError(f"{shown(url)} has not the size of a model's file")
                progress(got, total or limit)
    return total is None or got == total


def _open(url: str, have: int, timeout: float) -> HTTPResponse:
    parts = urlsplit(url)
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    request = Request(urlunsplit(bare), headers={"User-Agent": "recollect", "Accept-Encoding": "identity"})
    if parts.username:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", f"Basic {b64encode(login.encode()).decode()}")
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        return urlopen(request, timeout=timeout)
    except HTTPError:
        raise
    except (OSError, HTTPException) as error:
        raise _BrokenOffError(str(getattr(error, "reason", error))) from None


def _read(answer: HTTPResponse) -> bytes:
    try:
        return answer.read1(_CHUNK)
    except (OSError, HTTPException) as error:
        raise _BrokenOffError(str(error)) from None


def _extent(answer: HTTPResponse) -> tuple[int, int | None]:
    """Where in the file the answer begins, and how long the file is."""
    match = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    if answer.status == _PARTIAL and match:
        return int(match[1]), int(match[2])
    length = answer.headers.get("Content-Length", "")
    return 0, int(length) if length.isdecimal() else None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def shown(url: str) -> str:
    """A URL without a user, a password and a query, which may be secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
